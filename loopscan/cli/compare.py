"""``loopscan compare``: what changes from one ruleset or configuration to another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

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
    Paths,
    RulesetName,
    Scope,
    Settings,
    SkipErrors,
    ToolMap,
    parse_size,
    parse_tool_map,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, progress_of, quiet_stdout, say
from loopscan.modes import Arm, Mode, ScopeRule

if TYPE_CHECKING:
    from loopscan.comparing.compare import Comparison
    from loopscan.comparing.sides import Side
    from loopscan.report import SourceReport

FINDINGS = 1


def compare(
    paths: Paths,
    a: Annotated[
        list[str] | None,
        typer.Option(
            "--a",
            help="One side: a ruleset, an openclaw.json, or NAME=VALUE; repeatable.",
            metavar="SIDE",
        ),
    ] = None,
    b: Annotated[list[str] | None, typer.Option("--b", help="The other side, likewise.", metavar="SIDE")] = None,
    all_rulesets: Annotated[
        bool, typer.Option("--all-rulesets", help="Compare all rulesets with each other instead.")
    ] = False,
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
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", help="What goes to standard output: text, json, markdown or html.", metavar="FORMAT"
        ),
    ] = None,
    outputs: Outputs = None,
    fail_on_change: Annotated[
        bool, typer.Option("--fail-on-change", help="Exit with 1 if any mark, or any end of a run, is another one.")
    ] = False,
    jobs: Jobs = 1,
    skip_errors: SkipErrors = False,
    allow_empty: AllowEmpty = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the tables alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every change.")] = False,
    debug: Debug = False,
) -> None:
    """Compare what two rulesets or configurations (or all rulesets) make of the same sessions."""
    done: list[SourceReport] = []
    code = 0
    try:
        from loopscan.comparing.compare import compare as run_compare
        from loopscan.configfile import parse_settings
        from loopscan.replayer import plan
        from loopscan.reports.base import COMPARE_FORMATS, Options, asked_for, prepare, write_all

        sides = asked_sides(a or (), b or (), all_rulesets=all_rulesets)
        ready = prepare(asked_for(format_, outputs or ()), COMPARE_FORMATS)
        plans = [
            plan(
                paths,
                config=side.config or config,
                agent=agent,
                ruleset=side.ruleset or ruleset,
                overrides=parse_settings((*(settings or ()), *side.settings)),
                mode=mode.value,
                scope=scope.value,
                arm=arm.value,
                tool_map=parse_tool_map(tool_map or ()),
                input_format=input_format,
                max_line=parse_size("--max-line", max_line),
                max_expanded=parse_size("--max-expanded", max_expanded),
                find_config=not no_config,
                previews=False,
            )
            for side in sides
        ]
        labels = [side.label(ruleset) for side in sides]
        with progress_of("comparing", done, shown=not quiet) as progress:
            found = run_compare(plans, labels, jobs=jobs, progress=progress, debug=debug)
        code = exit_code(found, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in remarks(found, code, input_format):
            say(line)
        if not code and fail_on_change and found.changed:
            code = FINDINGS
        write_all(found, ready, Options(quiet=quiet, verbose=verbose))
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; nothing was compared")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def asked_sides(a: list[str] | tuple[()], b: list[str] | tuple[()], *, all_rulesets: bool) -> list[Side]:
    """Return the sides that are asked for. Raises :class:`UsageError` where that is not two, or all rulesets."""
    from loopscan.comparing.sides import Side, side_of
    from loopscan.errors import UsageError
    from loopscan.rulesets import RULESETS

    if all_rulesets:
        if a or b:
            raise UsageError("--all-rulesets goes without --a and --b")
        return [Side(name) for name in RULESETS]
    if not a or not b:
        raise UsageError("name both sides, such as --a 2026.6 --b 2026.9, or --all-rulesets")
    sides = [side_of("--a", a), side_of("--b", b)]
    if any(one == other for one, other in pairwise(sides)):
        raise UsageError("--a and --b are the same")
    return sides


def exit_code(found: Comparison, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: 3 for input that could not be read, or if there was none."""
    from loopscan.report import unread_count

    if unread_count(found.sources, found.skipped) and not skip_errors:
        return NO_INPUT
    return 0 if found.sessions or allow_empty else NO_INPUT


def remarks(found: Comparison, code: int, input_format: str | None) -> Iterator[str]:
    """Yield what is to be said beside the comparison, a line each."""
    from loopscan.report import complaints

    failures = complaints(found.sources, found.skipped)
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not failures and not found.sessions:
        yield nothing_found(found.skipped, len(found.sources), "loopscan inspect tells what is there", input_format)
