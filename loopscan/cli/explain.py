"""``loopscan explain``: why it fired, and why it did not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.options import (
    MAX_EXPANDED,
    MAX_LINE,
    AllowEmpty,
    Arming,
    ConfigFile,
    Debug,
    Format,
    InputFormat,
    Jobs,
    MaxExpanded,
    MaxLine,
    NoConfig,
    PrintFormat,
    RulesetName,
    Scope,
    Settings,
    SkipErrors,
    ToolMap,
    parse_size,
    parse_tool_map,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, print_json, progress_of, quiet_stdout, say
from loopscan.modes import Arm, Mode, ScopeRule

if TYPE_CHECKING:
    from loopscan.explaining.explain import Explanation
    from loopscan.report import SourceReport


def explain(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Transcripts; PATH:CALL is one call, by its number within the run, PATH:#N the message shown as #N.",
            metavar="PATH[:CALL]...",
        ),
    ],
    entry: Annotated[
        str | None, typer.Option("--entry", help="The call's message, by the transcript's own id.", metavar="ID")
    ] = None,
    tool_call: Annotated[
        str | None, typer.Option("--tool-call", help="The call, by the transcript's own id.", metavar="ID")
    ] = None,
    session: Annotated[str | None, typer.Option(help="One session, by its id.", metavar="ID")] = None,
    run: Annotated[
        str | None, typer.Option(help="One run: its number within the session, from 0, or its run id.", metavar="RUN")
    ] = None,
    ruleset: RulesetName = "latest",
    config: ConfigFile = None,
    no_config: NoConfig = False,
    agent: Annotated[
        str | None,
        typer.Option(help="Judge all sessions with this agent's block, not each with its own agent's.", metavar="ID"),
    ] = None,
    settings: Settings = None,
    mode: Annotated[
        Mode,
        typer.Option(help="enforce: vetoes and run ends take effect; observe: mark every verdict, change nothing."),
    ] = Mode.ENFORCE,
    scope: Scope = ScopeRule.RUN,
    arm: Arming = Arm.AUTO,
    tool_map: ToolMap = None,
    input_format: InputFormat = None,
    max_line: MaxLine = MAX_LINE,
    max_expanded: MaxExpanded = MAX_EXPANDED,
    format_: PrintFormat = Format.TEXT,
    jobs: Jobs = 1,
    skip_errors: SkipErrors = False,
    allow_empty: AllowEmpty = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answers without the state of the engine.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every run.")] = False,
    debug: Debug = False,
) -> None:
    """Explain a call, or each run: why the engine would have stepped in, or why it would not."""
    done: list[SourceReport] = []
    code = 0
    try:
        from loopscan.configfile import parse_settings
        from loopscan.errors import UsageError
        from loopscan.explaining.explain import explain as run_explain
        from loopscan.explaining.wanted import Wanted, addressed
        from loopscan.replayer import plan

        wanted = Wanted(entry=entry, tool_call=tool_call, session=session, run=run)
        if len(paths) == 1:
            path, wanted = addressed(paths[0], wanted)
            paths = [path]
        planned = plan(
            paths,
            config=config,
            agent=agent,
            ruleset=ruleset,
            overrides=parse_settings(settings or ()),
            mode=mode.value,
            scope=scope.value,
            arm=arm.value,
            tool_map=parse_tool_map(tool_map or ()),
            input_format=input_format,
            max_line=parse_size("--max-line", max_line),
            max_expanded=parse_size("--max-expanded", max_expanded),
            find_config=not no_config,
            on_for=True,
        )
        with progress_of("explaining", done, shown=not quiet) as progress:
            found = run_explain(planned, wanted, jobs=jobs, progress=progress, debug=debug)
        code = exit_code(found, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in remarks(found, code, input_format):
            say(line)
        if not found.answers and not code and wanted != Wanted():
            raise UsageError(missing(found))
        _print(found, format_, quiet=quiet, verbose=verbose)
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; nothing was explained")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def exit_code(found: Explanation, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: 3 for input that could not be read, or if there was none."""
    from loopscan.report import unread_count

    if unread_count(found.sources, found.skipped) and not skip_errors:
        return NO_INPUT
    return 0 if any(source.sessions for source in found.sources) or allow_empty else NO_INPUT


def remarks(found: Explanation, code: int, input_format: str | None) -> Iterator[str]:
    """Yield what is to be said beside the answers, a line each."""
    from loopscan.report import complaints

    failures = complaints(found.sources, found.skipped)
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not failures and not any(source.sessions for source in found.sources):
        yield nothing_found(found.skipped, len(found.sources), "loopscan inspect tells what is there", input_format)


def missing(found: Explanation) -> str:
    """Return the message for a call, run or session that is not there."""
    what = found.wanted.words()
    if found.wanted.one_call:
        return (
            f"no judged call is {what}; loopscan replay --verbose shows all of them (what comes after the end of a "
            "run is judged with --mode observe)"
        )
    return f"there is no {what}; loopscan inspect --verbose lists the sessions, loopscan replay --verbose their runs"


def _print(found: Explanation, format_: Format, *, quiet: bool, verbose: bool) -> None:
    if format_ is Format.JSON:
        print_json(found.to_dict())
        return
    from loopscan.reports.base import Options
    from loopscan.reports.explaining.text import write

    write(found, sys.stdout, Options(quiet=quiet, verbose=verbose))
    sys.stdout.flush()
