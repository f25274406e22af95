"""``loopscan inspect``: what was found, without judging it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.options import (
    MAX_EXPANDED,
    MAX_LINE,
    AllowEmpty,
    Debug,
    InputFormat,
    Jobs,
    MaxExpanded,
    MaxLine,
    Paths,
    SkipErrors,
    parse_size,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, progress_of, quiet_stdout, say

if TYPE_CHECKING:
    from loopscan.inspection import Inspection
    from loopscan.report import SourceReport


class Format(StrEnum):
    """What ``inspect`` can print."""

    TEXT = "text"
    JSON = "json"


def inspect(
    paths: Paths,
    input_format: InputFormat = None,
    max_line: MaxLine = MAX_LINE,
    max_expanded: MaxExpanded = MAX_EXPANDED,
    format_: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TEXT,
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
        for line in remarks(inspection, code):
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
    failed = inspection.unread_files or any(source.report.failures for source in inspection.sources)
    if failed and not skip_errors:
        return NO_INPUT
    return 0 if inspection.sessions or allow_empty else NO_INPUT


def remarks(inspection: Inspection, code: int) -> Iterator[str]:
    """Yield what is to be said beside the answer, a line each."""
    failures = [complaint for source in inspection.sources for complaint in source.report.complaints()]
    failures += [f"{file.path}: {file.reason}" for file in inspection.unread_files]
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not inspection.sessions and not failures:
        yield nothing_found(inspection.skipped, len(inspection.sources))


def _print(inspection: Inspection, format_: Format, *, quiet: bool, verbose: bool) -> None:
    if format_ is Format.JSON:
        from loopscan.reports.encode import encode

        sys.stdout.flush()
        sys.stdout.buffer.write(encode(inspection.to_dict(), indent=True))
        sys.stdout.flush()
        return
    from loopscan.reports.base import Options
    from loopscan.reports.inspection import write

    write(inspection, sys.stdout, Options(quiet=quiet, verbose=verbose))
    sys.stdout.flush()
