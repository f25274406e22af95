"""``loopscan replay``: what would have fired, when, and what it would have saved."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.options import ConfigFile, RulesetName, Settings
from loopscan.cli.terminal import INTERRUPTED, quiet_stdout, say
from loopscan.modes import Arm, Mode, ScopeRule

if TYPE_CHECKING:
    from loopscan.marks import Kind
    from loopscan.replayer import Progress
    from loopscan.report import Report, SourceReport

FINDINGS = 1
NO_INPUT = 3


class FailOn(StrEnum):
    """From which kind of mark on the command exits with 1."""

    WARNING = "warning"
    BLOCK = "block"
    END = "end"
    NEVER = "never"


#: The severity that each ``--fail-on`` asks for; see :func:`severity`.
_FROM = {FailOn.WARNING: 1, FailOn.BLOCK: 2, FailOn.END: 3, FailOn.NEVER: 4}


def replay(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Transcripts, and folders that are searched for them.", metavar="PATHS...", readable=False
        ),
    ],
    ruleset: RulesetName = "latest",
    config: ConfigFile = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Judge all sessions with this agent's block, not each with its own agent's.", metavar="ID"),
    ] = None,
    settings: Settings = None,
    mode: Annotated[
        Mode,
        typer.Option(help="enforce: vetoes and run ends take effect; observe: mark every verdict, change nothing."),
    ] = Mode.ENFORCE,
    scope: Annotated[
        ScopeRule, typer.Option(help="Look back over the run, or over the whole session as without run ids.")
    ] = ScopeRule.RUN,
    arm: Annotated[
        Arm, typer.Option(help="When a compaction within a run arms the post-compaction guard.")
    ] = Arm.AUTO,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="What goes to standard output: text (default), json, jsonl.", metavar="FORMAT"),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", help="Write a report to a file as well; repeatable.", metavar="FORMAT=FILE"),
    ] = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(help="Exit with 1 at such a mark or a graver one; end: run ends, aborts and stops of a guard."),
    ] = FailOn.NEVER,
    jobs: Annotated[int, typer.Option(help="Processes to work with.", min=1, metavar="N")] = 1,
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Do not exit with 3 for input that could not be read.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Do not exit with 3 for want of a transcript.")
    ] = False,
    no_previews: Annotated[
        bool, typer.Option("--no-previews", help="Leave out the (masked) arguments of calls.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the summary alone; reports in files stay whole.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every session and every problem.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Replay recorded sessions and mark where loop detection would have stepped in."""
    done: list[SourceReport] = []
    try:
        from loopscan.configfile import parse_settings
        from loopscan.replayer import replay as run
        from loopscan.reports.base import STDOUT, Options, Target, parse_target, prepare, write_all

        targets = [parse_target(output) for output in outputs or ()]
        if format_ is not None or not any(target.path == STDOUT for target in targets):
            targets.insert(0, Target(format_ or "text"))
        ready = prepare(targets)
        overrides = parse_settings(settings or ())
        with _progress(done, shown=not quiet) as progress:
            report = run(
                paths,
                config=config,
                agent=agent,
                ruleset=ruleset,
                overrides=overrides,
                mode=mode.value,
                scope=scope.value,
                arm=arm.value,
                jobs=jobs,
                previews=not no_previews,
                progress=progress,
                debug=debug,
            )
        code = exit_code(report, fail_on, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in remarks(report, fail_on, code, text_shown=ready[0].target == Target("text")):
            say(line)
        write_all(report, ready, Options(previews=not no_previews, verbose=verbose, quiet=quiet))
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; what was not written yet is missing")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def exit_code(report: Report, fail_on: FailOn, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: input that could not be read goes before findings at or above ``fail_on``."""
    if any(source.failures for source in report.sources) and not skip_errors:
        return NO_INPUT
    if not report.sessions and not allow_empty:
        return NO_INPUT
    return FINDINGS if findings(report, fail_on) else 0


def findings(report: Report, fail_on: FailOn) -> int:
    """Return how many marks are at or above ``fail_on``."""
    return sum(severity(mark.kind) >= _FROM[fail_on] for session in report.sessions for _, mark in session.marks())


def remarks(report: Report, fail_on: FailOn, code: int, *, text_shown: bool) -> Iterator[str]:
    """Yield what is to be said beside the report, a line each: the exit code must not come as a surprise."""
    failures = [problem.detail for source in report.sources for problem in source.failures]
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not report.sessions and not failures:
        reasons = Counter(file.reason for file in report.skipped)
        skipped = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
        looked = f" ({len(report.skipped)} files skipped: {skipped})" if skipped else ""
        yield f"error: no transcript found{looked}; name session files or their folders, or use --allow-empty"
    if not text_shown or fail_on is not FailOn.NEVER:
        for note in report.silenced:
            yield f"detectors are silenced: {note.message}"
    if code == FINDINGS:
        found = findings(report, fail_on)
        yield f"{found} {'mark' if found == 1 else 'marks'} at or above --fail-on {fail_on.value}"


def severity(kind: Kind) -> int:
    """Return how grave a kind of mark is: 0 arming, 1 warning, 2 block, 3 the end of a run."""
    from loopscan.marks import ENDS_RUN, Kind

    if kind in ENDS_RUN:
        return 3
    return {Kind.WARNING: 1, Kind.BLOCK: 2}.get(kind, 0)


@contextmanager
def _progress(done: list[SourceReport], *, shown: bool) -> Iterator[Progress]:
    """Yield what is to be called with each source that is done; draws a bar on a terminal only."""
    if not (shown and sys.stderr is not None and sys.stderr.isatty()):
        yield lambda source, of: done.append(source)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("replaying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("sources"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replaying", total=None)

        def advance(source: SourceReport, of: int) -> None:
            done.append(source)
            bar.update(task, completed=len(done), total=of)

        yield advance
