"""``loopscan inspect``: what was found, without judging it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.options import (
    MAX_EXPANDED,
    MAX_LINE,
    AllowEmpty,
    Debug,
    Format,
    InputFormat,
    Jobs,
    MaxExpanded,
    MaxLine,
    Paths,
    PrintFormat,
    SkipErrors,
    parse_size,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, print_json, progress_of, quiet_stdout, say

if TYPE_CHECKING:
    from loopscan.inspection import Inspection
    from loopscan.report import SourceReport


def inspect(
    paths: Paths,
    input_format: InputFormat = None,
    max_line: MaxLine = MAX_LINE,
    max_expanded: MaxExpanded = MAX_EXPANDED,
    format_: PrintFormat = Format.TEXT,
    jobs: Jobs = 1,
    skip_errors: SkipErrors = False,
    allow_empty: AllowEmpty = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the totals alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every session and every problem.")] = False,
    debug: Debug = False,
) -> None:
    """Show what transcripts hold: formats, sessions, runs, calls, time, tokens, problems. Nothing is judged."""
    done: list[SourceReport] = []
    code = 0
    try:
        from loopscan.inspection import inspect as run

        with progress_of("inspecting", done, shown=not quiet) as progress:
            inspection = run(
                paths,
                input_format=input_format,
                max_line=parse_size("--max-line", max_line),
                max_expanded=parse_size("--max-expanded", max_expanded),
                jobs=jobs,
                progress=progress,
                debug=debug,
            )
        code = exit_code(inspection, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in remarks(inspection, code, input_format):
            say(line)
        _print(inspection, format_, quiet=quiet, verbose=verbose)
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def exit_code(inspection: Inspection, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: 3 for input that could not be read, or if there was none."""
    if inspection.unread_count() and not skip_errors:
        return NO_INPUT
    return 0 if inspection.sessions or allow_empty else NO_INPUT


def remarks(inspection: Inspection, code: int, input_format: str | None) -> Iterator[str]:
    """Yield what is to be said beside the answer, a line each."""
    failures = inspection.complaints()
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not inspection.sessions and not failures:
        shown = "the kinds of entries tell what is in there"
        yield nothing_found(inspection.skipped, len(inspection.sources), shown, input_format)


def _print(inspection: Inspection, format_: Format, *, quiet: bool, verbose: bool) -> None:
    if format_ is Format.JSON:
        print_json(inspection.to_dict())
        return
    from loopscan.reports.base import Options
    from loopscan.reports.inspection import write

    write(inspection, sys.stdout, Options(quiet=quiet, verbose=verbose))
    sys.stdout.flush()
