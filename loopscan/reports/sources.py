"""What is to say of the sources: problems, copies, other names of tools, files that were not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from loopscan.report import SourceReport
from loopscan.reports.console import grid, heading, safe
from loopscan.reports.phrases import counted, number
from loopscan.sanitize import clean
from loopscan.sanitize import name as shown_name
from loopscan.transcripts.discover import Skipped

if TYPE_CHECKING:
    from rich.console import RenderableType

_SOURCE = 90
_TOOL = 40
_MESSAGE = 400
_PROBLEMS_A_SOURCE = 3
_SOURCES_WITH_PROBLEMS = 10


def problems(sources: Sequence[SourceReport], *, verbose: bool) -> Iterator[RenderableType]:
    """Yield what could not be used, source by source; without ``verbose`` the first of each kind of it."""
    affected = [source for source in sources if source.problem_count]
    if not affected:
        return
    yield heading("Problems")
    # What could not be read comes first: it must not be among what is left out.
    affected.sort(key=lambda source: not source.failures)
    shown = affected if verbose else affected[:_SOURCES_WITH_PROBLEMS]
    for source in shown:
        line = safe(source.path, limit=_SOURCE)
        line.append(f" · {counted(source.problem_count, 'problem')}", "yellow")
        yield line
        table = grid({"min_width": 8, "justify": "right", "no_wrap": True, "style": "dim"}, {"ratio": 1})
        failures = source.failures
        named = failures + [problem for problem in source.problems if problem not in failures]
        named = named if verbose else named[:_PROBLEMS_A_SOURCE]
        for problem in named:
            detail = safe(problem.kind, "bold red" if problem in failures else "yellow", _TOOL)
            detail.append(f" {clean(problem.detail, _MESSAGE)}", "not bold default")
            table.add_row(safe(f"line {problem.line}" if problem.line else ""), detail)
        rest = source.problem_count - len(named)
        if rest:
            table.add_row("", safe(f"… and {number(rest)} more", "dim"))
        yield table
    rest = len(affected) - len(shown)
    if rest:
        yield safe(f"… and {counted(rest, 'more source')} with problems; --verbose shows all", "dim")


def skipped(files: Sequence[Skipped]) -> Iterator[RenderableType]:
    """Yield the files that were not read, with the reasons."""
    if not files:
        return
    yield heading("Files that were not read")
    table = grid({"ratio": 1}, {"ratio": 1, "style": "dim"})
    for file in files:
        table.add_row(safe(file.path, limit=_SOURCE), safe(file.reason, limit=_MESSAGE))
    yield table


def copied(sources: Sequence[SourceReport]) -> str | None:
    """Return in a sentence how much was left out as a copy, ``None`` if nothing was."""
    entries = sum(sum(source.copies.values()) for source in sources)
    if not entries:
        return None
    holders = sum(bool(source.copies) for source in sources)
    return f"{counted(entries, 'entry', 'entries')} of {counted(holders, 'source')} left out: recorded before"


def copies(sources: Sequence[SourceReport]) -> Iterator[RenderableType]:
    """Yield which source had entries left out because another one, or itself, had given them before."""
    rows = [(source.path, of, entries) for source in sources for of, entries in source.copies.items()]
    if not rows:
        return
    yield heading("Entries that were left out as copies")
    table = grid({"no_wrap": True, "justify": "right"}, {"ratio": 1})
    for path, of, entries in rows:
        where = "recorded again in the same source" if of == path else f"taken from {of}"
        table.add_row(safe(number(entries)), safe(path, limit=_MESSAGE))
        table.add_row("", safe(where, "dim", _MESSAGE))
    yield table


def judged_as(sources: Sequence[SourceReport]) -> Iterator[RenderableType]:
    """Yield, format by format, which tools were judged by another name, and what was normalised."""
    tools: dict[str, dict[str, str]] = {}
    normalised: dict[str, Counter[str]] = {}
    for source in sources:
        tools.setdefault(source.format, {}).update(source.tools)
        normalised.setdefault(source.format, Counter()).update(source.normalised)
    table = grid({"no_wrap": True, "style": "dim"}, {"ratio": 1})
    for name in sorted(tools):
        parts: list[str] = []
        if tools[name]:
            pairs = (
                f"{shown_name(own, _TOOL)} as {shown_name(other, _TOOL)}"
                for own, other in sorted(tools[name].items())
            )
            parts.append("judged " + ", ".join(pairs))
        if normalised[name]:
            counts = (f"{clean(each, _TOOL)} {number(count)}" for each, count in sorted(normalised[name].items()))
            parts.append("normalised: " + ", ".join(counts))
        if parts:
            table.add_row(safe(name, limit=_TOOL), safe("; ".join(parts)))
    if table.row_count:
        yield heading("How these formats were judged")
        yield table
