"""``loopscan replay``: what would have fired, when, and what it would have saved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.terminal import quiet_stdout, say

if TYPE_CHECKING:
    from loopscan.marks import Kind
    from loopscan.replayer import Progress
    from loopscan.report import Report, SourceReport

FINDINGS = 1
NO_INPUT = 3


class Mode(StrEnum):
    """Whether verdicts have consequences in the replay."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class Scope(StrEnum):
    """What the detectors look back over."""

    RUN = "run"
    SESSION = "session"


class Arm(StrEnum):
    """When an in-run compaction arms the post-compaction guard."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


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
        list[Path], typer.Argument(help="Transcripts, and folders that are searched for them.", metavar="PATHS...")
    ],
    ruleset: Annotated[
        str, typer.Option(help="Which releases decide: 2026.6, 2026.9 or latest.", metavar="NAME")
    ] = "latest",
    config: Annotated[
        Path | None,
        typer.Option(help="openclaw.json, or its tools.loopDetection block (JSON5).", metavar="FILE"),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Agent whose block goes over the global one.", metavar="ID")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override one field, such as warningThreshold=8.", metavar="NAME=VALUE"),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(help="enforce: vetoes and run ends take effect; observe: mark every verdict, change nothing."),
    ] = Mode.ENFORCE,
    scope: Annotated[
        Scope, typer.Option(help="Look back over the run, or over the whole session as without run ids.")
    ] = Scope.RUN,
    arm: Annotated[
        Arm, typer.Option(help="When a compaction within a run arms the post-compaction guard.")
    ] = Arm.AUTO,
    format_: Annotated[
        str, typer.Option("--format", help="What goes to standard output: text, json, jsonl.", metavar="FORMAT")
    ] = "text",
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", help="Write a report to a file as well; repeatable.", metavar="FORMAT=FILE"),
    ] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Exit with 1 from this kind of mark on.")] = FailOn.NEVER,
    jobs: Annotated[int, typer.Option(help="Processes to work with.", min=1, metavar="N")] = 1,
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Exit with 0 although some input was unreadable.")
    ] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 although there was no transcript.")
    ] = False,
    no_previews: Annotated[
        bool, typer.Option("--no-previews", help="Leave out the (masked) arguments of calls.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the summary alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every session and every problem.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Replay recorded sessions and mark where loop detection would have stepped in."""
    from loopscan.configfile import parse_settings
    from loopscan.reports.base import Options, Target, parse_target, prepare, write_all

    targets = [Target(format_), *map(parse_target, outputs or ())]
    if any(target.path == "-" for target in targets[1:]):
        del targets[0]
    ready = prepare(targets)
    overrides = parse_settings(settings or ())
    from loopscan.replayer import replay as run

    done: list[SourceReport] = []
    try:
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
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; no report was written")
        raise typer.Exit(130) from None
    for source in report.sources:
        for problem in source.failures:
            say(f"error: {problem.detail}")
    code = exit_code(report, fail_on, skip_errors=skip_errors, allow_empty=allow_empty)
    if code == NO_INPUT and not report.sessions and not any(source.failures for source in report.sources):
        say("error: no transcript found; name session files or folders that hold them, or use --allow-empty")
    try:
        write_all(report, ready, Options(previews=not no_previews, verbose=verbose, quiet=quiet))
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def exit_code(report: Report, fail_on: FailOn, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: unreadable input first, then findings at or above ``fail_on``."""
    if any(source.failures for source in report.sources) and not skip_errors:
        return NO_INPUT
    if not report.sessions and not allow_empty:
        return NO_INPUT
    return (
        FINDINGS
        if any(severity(mark.kind) >= _FROM[fail_on] for s in report.sessions for _, mark in s.marks())
        else 0
    )


def severity(kind: Kind) -> int:
    """Return how grave a kind of mark is: 0 arming, 1 warning, 2 block, 3 the end of a run."""
    from loopscan.marks import ENDS_RUN, Kind

    if kind in ENDS_RUN:
        return 3
    return {Kind.WARNING: 1, Kind.BLOCK: 2}.get(kind, 0)


@contextmanager
def _progress(done: list[SourceReport], *, shown: bool) -> Iterator[Progress]:
    """Yield what is to be called with each source that is done; draws a bar on a terminal only."""
    if not (shown and sys.stderr.isatty()):
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
