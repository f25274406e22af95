"""``loopscan check``: regression tests for loop detection."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopscan.cli.jobsummary import append_summary, summary_file
from loopscan.cli.options import (
    ConfigFile,
    Debug,
    Jobs,
    JobSummary,
    NoPreviews,
    Outputs,
    Settings,
    SkipErrors,
)
from loopscan.cli.terminal import INTERRUPTED, progress_of, quiet_stdout, say
from loopscan.errors import UsageError
from loopscan.modes import Mode, ScopeRule

if TYPE_CHECKING:
    from loopscan.checks.report import CheckReport
    from loopscan.checks.run import Checked
    from loopscan.checks.schema import Settings as CheckSettings
    from loopscan.findings import Case
    from loopscan.report import SourceReport


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Transcripts, their expectations, or folders; this folder by default.", metavar="PATHS..."
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Rewrite snapshots (or the baseline) to what is found; not in CI.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what --update would change, as a unified diff.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Make the checks whose name has this in it, or meets it.", metavar="PATTERN"),
    ] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Make the checks that failed last time.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="A transcript that nothing is said of is a failure.")
    ] = False,
    benign: Annotated[
        list[str] | None,
        typer.Option("--benign", help="A folder of sessions in which a block is a false alarm.", metavar="FOLDER"),
    ] = None,
    max_warnings: Annotated[
        int | None,
        typer.Option(
            "--max-warnings", help="How many warnings a --benign folder may have; 0 by default.", min=0, metavar="N"
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            help="Let the marks pass that this file knows; PATHS are logs as for replay.",
            metavar="FILE",
            readable=False,
        ),
    ] = None,
    ruleset: Annotated[
        str | None, typer.Option("--ruleset", help="Check under this ruleset, whatever files say.", metavar="NAME")
    ] = None,
    config: ConfigFile = None,
    agent: Annotated[str | None, typer.Option(help="Judge with this agent's block.", metavar="ID")] = None,
    settings: Settings = None,
    mode: Annotated[Mode | None, typer.Option(help="Replay in this mode, whatever files say.")] = None,
    scope: Annotated[ScopeRule | None, typer.Option(help="Look back so, whatever files say.")] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="What goes to standard output: text (default), json, junit, sarif, github, gitlab, tap, markdown.",
            metavar="FORMAT",
        ),
    ] = None,
    outputs: Outputs = None,
    job_summary: JobSummary = False,
    jobs: Jobs = 1,
    skip_errors: SkipErrors = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Do not fail where there is nothing to check.")
    ] = False,
    no_previews: NoPreviews = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the totals alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every check.")] = False,
    debug: Debug = False,
) -> None:
    """Check transcripts against what they must meet: x.jsonl against x.expect.yaml."""
    done: list[Checked] = []
    read: list[SourceReport] = []
    code = 0
    try:
        from loopscan.checks.baseline.check import check_baseline
        from loopscan.checks.check import check as run
        from loopscan.checks.tasks import BenignFolder
        from loopscan.reports.base import CHECK_FORMATS, Options, asked_for, prepare, write_all

        if update:
            refuse_in_ci(os.environ)
        ready = prepare(asked_for(format_, outputs or ()), CHECK_FORMATS)
        summary = summary_file() if job_summary else None
        over = settings_over(ruleset, config, agent, settings, mode, scope)
        alike: dict[str, Any] = {
            "over": over,
            "update": update,
            "allow_empty": allow_empty,
            "jobs": jobs,
            "previews": not no_previews,
            "debug": debug,
        }
        if baseline is not None:
            refuse_beside_baseline(
                diff=diff, only=only, rerun=rerun, strict=strict, benign=benign, max_warnings=max_warnings is not None
            )
            today = datetime.now(UTC).date()
            with progress_of("replaying", read, shown=not quiet) as replayed:
                report = check_baseline(
                    paths or ["."], baseline, today, skip_errors=skip_errors, progress=replayed, **alike
                )
        else:
            if max_warnings is not None and not benign:
                raise UsageError("--max-warnings is about --benign folders, and none was named")
            if "" in (benign or ()):
                raise UsageError("--benign names an empty path")
            given = over.model_dump(exclude_none=True)
            folders = [BenignFolder(folder, max_warnings or 0, given) for folder in benign or ()]
            with progress_of("checking", done, shown=not quiet, what="checks") as progress:
                report = run(
                    paths or ([] if folders else ["."]),
                    benign=folders,
                    only=only or (),
                    rerun=rerun,
                    strict=strict,
                    diff=diff,
                    progress=progress,
                    **alike,
                )
        code = report.exit_code(skip_errors=skip_errors)
        for line in remarks(report):
            say(line)
        looks = Options(previews=not no_previews, verbose=verbose, quiet=quiet)
        if summary is not None:
            append_summary(report, summary, looks)
        write_all(report, ready, looks)
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} checks" if baseline is None else f"interrupted after {len(read)} sources")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def refuse_in_ci(environment: Mapping[str, str]) -> None:
    """Raise :class:`UsageError` where the environment says that this is CI: what it finds must not become right."""
    if environment.get("CI", "").strip().lower() not in {"", "0", "false", "no"}:
        raise UsageError(
            "--update is refused in CI (the variable CI is set): update where the change can be reviewed"
        )


def refuse_beside_baseline(**given: object) -> None:
    """Raise :class:`UsageError` for an option that is about expectations, where there are none."""
    for name, value in given.items():
        if value:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option} is about expectations and has no effect with --baseline: leave one of them out"
            )


def settings_over(
    ruleset: str | None,
    config: Path | None,
    agent: str | None,
    settings: list[str] | None,
    mode: Mode | None,
    scope: ScopeRule | None,
) -> CheckSettings:
    """Return what the options say over files. Raises :class:`UsageError` for what makes no sense."""
    from pydantic import ValidationError

    from loopscan.checks.schema import Settings as Model
    from loopscan.configfile import parse_settings
    from loopscan.rulesets import ruleset as known

    if ruleset is not None:
        known(ruleset)
    given: dict[str, Any] = {
        "ruleset": ruleset,
        "config": None if config is None else str(config),
        "agent": agent,
        "set": dict(parse_settings(settings)) if settings else None,
        "mode": mode,
        "scope": scope,
    }
    try:
        return Model.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        names = ", ".join(dict.fromkeys(str(each["loc"][1]) for each in error.errors() if len(each["loc"]) > 1))
        raise UsageError(f"--set {names}: must be true, false or a whole number here") from error


def remarks(report: CheckReport) -> Iterator[str]:
    """Yield what is to be said beside the report, a line each."""
    for mistake in report.mistakes:
        yield f"error: {mistake}"
    for line in report.missing:
        yield f"error: {line}"
    by_reason: dict[str, list[Case]] = {}
    for case in report.errors:
        by_reason.setdefault(case.reason or "", []).append(case)
    for reason, (case, *others) in by_reason.items():
        line = reason if reason.startswith(case.place.path) else f"{case.place}: {reason}"
        yield f"error: {line}" + (f" (and so for {len(others)} more checks)" if others else "")
    yield from report.notes
    for file in report.updated:
        yield f"wrote {file}"
