"""``loopscan tune``: which thresholds the record supports, with the evidence behind them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from loopscan.cli.options import (
    MAX_EXPANDED,
    MAX_LINE,
    AllowEmpty,
    Arming,
    ConfigFile,
    Debug,
    InputFormat,
    Jobs,
    MaxExpanded,
    MaxLine,
    NoConfig,
    Outputs,
    Scope,
    Settings,
    SkipErrors,
    ToolMap,
    parse_size,
    parse_tool_map,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, progress_of, quiet_stdout, say
from loopscan.modes import Arm, By, ScopeRule

if TYPE_CHECKING:
    from loopscan.replayer import Plan
    from loopscan.report import SourceReport
    from loopscan.tuning.report import TuningReport


#: The lowest rate that can be asked for, and the distance of the highest from 1.
_LEAST: Final = 1e-6
_MOST_COST: Final = 1e6
_SHARE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,12})?)(%?)")


def tune(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Transcripts, folders, archives and so on as for replay; and profiles (.parquet).",
            metavar="PATHS...",
        ),
    ] = None,
    ruleset: Annotated[
        str | None,
        typer.Option(help="2026.6, 2026.9 or latest (the default, or that of profiles).", metavar="NAME"),
    ] = None,
    config: ConfigFile = None,
    no_config: NoConfig = False,
    agent: Annotated[
        str | None,
        typer.Option(help="Take this agent's block for what is in force everywhere.", metavar="ID"),
    ] = None,
    settings: Settings = None,
    tried: Annotated[
        list[str] | None,
        typer.Option(
            "--try", help="Values to try of one field: criticalThreshold=10..40:5; repeatable.", metavar="NAME=VALUES"
        ),
    ] = None,
    by: Annotated[By | None, typer.Option(help="Choose for each agent or model as well.")] = None,
    max_false_block: Annotated[
        str, typer.Option(help="The highest rate of false blocks to promise.", metavar="RATE")
    ] = "5%",
    confidence: Annotated[str, typer.Option(help="How sure the promise is to be.", metavar="RATE")] = "95%",
    cost_ratio: Annotated[
        float | None,
        typer.Option(
            help="Promise nothing, and choose the least cost: how many missed sessions one false block is worth.",
            metavar="NUMBER",
        ),
    ] = None,
    holdout: Annotated[
        str,
        typer.Option(
            help="Choose on the older sessions and verify on this share of the newest; agent: also on each agent.",
            metavar="SHARE",
        ),
    ] = "0.3",
    labels: Annotated[
        str | None,
        typer.Option(
            help="Labels of incidents, runs or sessions (CSV, JSON lines, parquet); they go before the rules.",
            metavar="FILE",
        ),
    ] = None,
    explain_labels: Annotated[
        bool, typer.Option("--explain-labels", help="List the rules by which incidents are labelled, and exit.")
    ] = False,
    export_incidents: Annotated[
        str | None, typer.Option(help="Write the incidents for review (.csv, .jsonl, .parquet).", metavar="FILE")
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            help="Dollars per million tokens by model (JSON or CSV), where no cost is recorded.", metavar="FILE"
        ),
    ] = None,
    profiles_out: Annotated[
        str | None,
        typer.Option(help="Write the profiles (.parquet), to go on with later or elsewhere.", metavar="FILE"),
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(
            help="Merge what is recommended into this openclaw.json, after showing the difference.", metavar="FILE"
        ),
    ] = None,
    scope: Scope = ScopeRule.RUN,
    arm: Arming = Arm.AUTO,
    tool_map: ToolMap = None,
    input_format: InputFormat = None,
    max_line: MaxLine = MAX_LINE,
    max_expanded: MaxExpanded = MAX_EXPANDED,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="What goes to standard output: text, json, markdown, html, csv or parquet.",
            metavar="FORMAT",
        ),
    ] = None,
    outputs: Outputs = None,
    jobs: Jobs = 1,
    skip_errors: SkipErrors = False,
    allow_empty: AllowEmpty = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print what to do alone.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every setting that differs, and every incident.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Try every threshold on recorded sessions, and choose with evidence."""
    if explain_labels:
        _explain_labels()
        raise typer.Exit
    done: list[SourceReport] = []
    try:
        from loopscan.configfile import parse_settings
        from loopscan.errors import UsageError
        from loopscan.replayer import plan
        from loopscan.reports.base import TUNE_FORMATS, Options, Target, asked_for, prepare, write_all
        from loopscan.tuning.given import read_labels
        from loopscan.tuning.parts import Wishes
        from loopscan.tuning.prices import read_prices
        from loopscan.tuning.rows import export, export_format
        from loopscan.tuning.settings import tried_axes
        from loopscan.tuning.store import SUFFIX
        from loopscan.tuning.store import write as write_profiles
        from loopscan.tuning.tune import gather, read_files, tune

        if not paths:
            raise UsageError("name transcripts, folders or profiles to tune by")
        ready = prepare(asked_for(format_, outputs or ()), TUNE_FORMATS)
        share, by_agent = parse_holdout(holdout)
        if cost_ratio is not None and not 0 <= cost_ratio <= _MOST_COST:
            raise UsageError(f"--cost-ratio must be a number of missed sessions, from 0 to 1000000, not {cost_ratio}")
        wishes = Wishes(
            parse_rate("--max-false-block", max_false_block),
            parse_rate("--confidence", confidence),
            cost_ratio,
            share,
            by_agent,
        )
        tried_axes(tried or ())
        given = read_labels(labels) if labels is not None else None
        priced = read_prices(prices) if prices is not None else None
        if export_incidents is not None:
            export_format(export_incidents)
        if profiles_out is not None and not profiles_out.endswith(SUFFIX):
            raise UsageError(f"--profiles-out {profiles_out}: the name must end in {SUFFIX}")
        if write is not None and config is None and Path(write).is_file():
            config = Path(write)  # what is written to is what is in force
        stored = [path for path in paths if path.endswith(SUFFIX) and "://" not in path]
        sources = [path for path in paths if path not in stored]
        profiles, unread = read_files(stored)
        if ruleset is None and not sources:
            ruleset = next((each.basis.ruleset for each in profiles if each.sessions), None)
        planned = plan(
            sources,
            config=config,
            agent=agent,
            ruleset=ruleset or "latest",
            overrides=parse_settings(settings or ()),
            mode="observe",
            scope=scope.value,
            arm=arm.value,
            tool_map=parse_tool_map(tool_map or ()),
            input_format=input_format,
            max_line=parse_size("--max-line", max_line),
            max_expanded=parse_size("--max-expanded", max_expanded),
            find_config=not no_config,
            previews=False,
            profiles=True,
        )
        with progress_of("reading", done, shown=not quiet) as progress:
            gathered = gather(planned, jobs=jobs, progress=progress, debug=debug)
        for each in profiles:
            gathered.add(each)
        if profiles_out is not None:
            write_profiles(profiles_out, gathered.basis, gathered.profiles)
        report = tune(
            gathered,
            planned.options,
            tried=tried or (),
            by=by,
            wishes=wishes,
            prices=priced,
            labels=given,
            jobs=jobs,
        )
        code = exit_code(report, unread, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in remarks(
            report,
            planned,
            unread,
            code,
            input_format=input_format,
            text=ready[0].target == Target("text") and not quiet,
        ):
            say(line)
        if export_incidents is not None:
            export(export_incidents, report.incidents)
        write_all(report, ready, Options(verbose=verbose, quiet=quiet))
        if write is not None:
            merge(report, write, planned)
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; nothing was tuned")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
        code = 0
    raise typer.Exit(code)


def parse_rate(option: str, text: str) -> float:
    """Return a rate between 0 and 1, given as ``5%`` or ``0.05``; raises :class:`UsageError` for what is none."""
    from loopscan.errors import UsageError

    rate = _share(text)
    if rate is None or not _LEAST <= rate <= 1 - _LEAST:
        raise UsageError(f"{option} must be a rate such as 5% or 0.05, from 0.0001% to 99.9999%, not {text!r}")
    return rate


def _share(text: str) -> float | None:
    """Return a share that is written as a number or a percentage; ``None`` for what is neither."""
    found = _SHARE.fullmatch(text)
    return float(found[1]) / (100 if found[2] else 1) if found else None


def parse_holdout(text: str) -> tuple[float, bool]:
    """Return what ``--holdout`` says: the share of the newest sessions, and whether each agent is held out too."""
    from loopscan.errors import UsageError

    if text == "agent":
        return 0.0, True
    share = _share(text)
    if share is None or share >= 1:
        raise UsageError(f"--holdout must be a share such as 0.3, 0 for none, or agent, not {text!r}")
    return share, False


def exit_code(report: TuningReport, unread: list[str], *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code; that nothing can be recommended is none of its business."""
    from loopscan.report import unread_count

    if (unread or unread_count(report.sources, report.skipped)) and not skip_errors:
        return NO_INPUT
    return NO_INPUT if not report.whole.sessions and not allow_empty else 0


def remarks(
    report: TuningReport, planned: Plan, unread: list[str], code: int, *, input_format: str | None, text: bool
) -> list[str]:
    """Return what is to be said beside the report, a line each; ``text``: the report itself shows its notes."""
    from loopscan.report import complaints

    failures = [*complaints(report.sources, report.skipped), *unread]
    lines = [f"error: {detail}" for detail in failures]
    if code == NO_INPUT and not report.whole.sessions and not failures:
        lines.append(
            nothing_found(report.skipped, len(report.sources), "loopscan inspect shows what was found", input_format)
        )
    if planned.state.path is not None:
        lines.append(
            f"in force is {planned.state.path}, which lies in a folder that was named; --no-config does without"
        )
    if report.agreement is not None and report.agreement.unmatched:
        what = "line of --labels means" if report.agreement.unmatched == 1 else "lines of --labels mean"
        lines.append(f"{report.agreement.unmatched} {what} no incident of five calls or more that is here")
    if not text:
        lines += report.notes
    return lines


def merge(report: TuningReport, path: str, planned: Plan) -> None:
    """Merge what is recommended into a configuration, after the difference was shown on standard error."""
    from loopscan.configedit import edit
    from loopscan.rulesets import ruleset as rules_of
    from loopscan.tuning.tune import changes_of

    changes = changes_of(report)
    if not changes:
        say(f"{path} stays as it is: nothing is recommended to be changed")
        return
    made = edit(path, changes, rules_of(report.basis.ruleset))
    difference = made.diff()
    if not difference:
        say(f"{path} says so already: nothing was written")
        return
    sys.stdout.flush()
    for line in difference.splitlines():
        print(line, file=sys.stderr)  # noqa: T201 - diff() is safe to print
    made.write()
    say(f"{path} is written")


def _explain_labels() -> None:
    from rich.text import Text

    from loopscan.cli.terminal import wide_console
    from loopscan.tuning.labels import explained

    out = wide_console()
    out.print(
        Text(
            "A loop is labelled from the call on at which a setting would step in; the first rule that holds counts."
        )
    )
    for label, name, sentence in explained():
        out.print(Text(f"{label.value:<11}{name:<24}{sentence}"))
