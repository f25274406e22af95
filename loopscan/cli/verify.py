"""``loopscan verify``: how far the replay agrees with what the live engine did."""

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
    Paths,
    PrintFormat,
    Scope,
    Settings,
    SkipErrors,
    ToolMap,
    parse_size,
    parse_tool_map,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, print_json, progress_of, quiet_stdout, say
from loopscan.modes import Arm, ScopeRule

if TYPE_CHECKING:
    from loopscan.fidelity.verify import Fidelity
    from loopscan.report import SourceReport

FINDINGS = 1


def verify(
    paths: Paths,
    ruleset: Annotated[
        str | None,
        typer.Option(
            "--ruleset", help="Judge all by this ruleset, not by what each record suggests.", metavar="NAME"
        ),
    ] = None,
    guess_ruleset: Annotated[
        bool, typer.Option("--guess-ruleset", help="Say which ruleset agrees best, and nothing else.")
    ] = False,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score", help="Exit with 1 if a smaller share of verdicts agrees.", min=0, max=1, metavar="SHARE"
        ),
    ] = None,
    config: ConfigFile = None,
    no_config: NoConfig = False,
    agent: Annotated[
        str | None,
        typer.Option(help="Judge all sessions with this agent's block, not each with its own agent's.", metavar="ID"),
    ] = None,
    settings: Settings = None,
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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the score alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every disagreement.")] = False,
    debug: Debug = False,
) -> None:
    """Compare the verdicts that records hold with those of their replay: a score, and the cause of what differs."""
    done: list[SourceReport] = []
    code = 0
    try:
        from loopscan.configfile import parse_settings
        from loopscan.fidelity.verify import verify as run_verify
        from loopscan.replayer import plan
        from loopscan.rulesets import RULESETS
        from loopscan.rulesets import ruleset as known

        asked = known(ruleset).name if ruleset is not None else None
        plans = {
            name: plan(
                paths,
                config=config,
                agent=agent,
                ruleset=name,
                overrides=parse_settings(settings or ()),
                scope=scope.value,
                arm=arm.value,
                tool_map=parse_tool_map(tool_map or ()),
                input_format=input_format,
                max_line=parse_size("--max-line", max_line),
                max_expanded=parse_size("--max-expanded", max_expanded),
                find_config=not no_config,
                previews=False,
            )
            for name in RULESETS
        }
        with progress_of("verifying", done, shown=not quiet) as progress:
            found = run_verify(plans, asked, jobs=jobs, progress=progress, debug=debug)
        code = exit_code(found, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in remarks(found, code, input_format):
            say(line)
        score = found.tally.score
        if not code and min_score is not None and (score is None or score < min_score):
            code = FINDINGS
        _print(found, format_, guess=guess_ruleset, quiet=quiet, verbose=verbose)
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; nothing was verified")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def exit_code(found: Fidelity, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: 3 for input that could not be read, or if there was none."""
    from loopscan.report import unread_count

    if unread_count(found.sources, found.skipped) and not skip_errors:
        return NO_INPUT
    return 0 if found.sessions or found.elsewhere or allow_empty else NO_INPUT


def remarks(found: Fidelity, code: int, input_format: str | None) -> Iterator[str]:
    """Yield what is to be said beside the score, a line each."""
    from loopscan.report import complaints

    failures = complaints(found.sources, found.skipped)
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not failures and not found.sessions:
        yield nothing_found(found.skipped, len(found.sources), "loopscan inspect tells what is there", input_format)


def _print(found: Fidelity, format_: Format, *, guess: bool, quiet: bool, verbose: bool) -> None:
    if format_ is Format.JSON:
        print_json(found.to_dict())
        return
    from loopscan.reports.base import Options
    from loopscan.reports.fidelity.text import guess_line, write

    if guess:
        from loopscan.reports.console import console, safe

        console(sys.stdout).print(safe(guess_line(found), "bold"))
    else:
        write(found, sys.stdout, Options(quiet=quiet, verbose=verbose))
    sys.stdout.flush()
