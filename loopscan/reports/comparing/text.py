"""Comparisons as text: the answer first, then the tables, then every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from loopscan.comparing.compare import Comparison
from loopscan.reports.base import Options
from loopscan.reports.comparing import words
from loopscan.reports.console import console, grid, heading, safe
from loopscan.reports.phrases import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

BINARY = False

#: So many changes are told of unless all are asked for.
MOST: Final = 40
_CELL: Final = 60
_LINE: Final = 300


def write(found: Comparison, out: TextIO, options: Options) -> None:
    """Write the comparison; with ``quiet`` without the single changes, with ``verbose`` all of them."""
    to = console(out, width=options.width, color=options.color)
    to.print(safe(words.headline(found), "bold"))
    to.print()
    to.print(_table(*words.totals(found)))
    if len(found.labels) > 2:
        to.print()
        to.print(_table(*words.matrix(found)))
    for what, rows in words.breakdowns(found):
        to.print()
        to.print(_table([f"by {what}", *words.KINDS], rows))
    changes = words.told(found)
    if options.quiet or not changes:
        return
    to.print()
    to.print(heading("Changes"))
    for each in changes if options.verbose else changes[:MOST]:
        line = safe(each.kind, "bold")
        line.append(" ")
        line.append_text(safe(each.what, "not bold default", _LINE))
        line.append("\n  ")
        line.append_text(safe(each.where, "not bold dim", _LINE))
        if each.why:
            line.append("\n  ")
            line.append_text(safe(each.why, "not bold dim", _LINE))
        to.print(line)
    rest = len(changes) - MOST
    if rest > 0 and not options.verbose:
        to.print(safe(f"… and {counted(rest, 'more change')}; --verbose shows all", "dim"))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    right: dict[str, object] = {"justify": "right"}
    columns: list[dict[str, object]] = [{}, *(right for _ in head[1:])]
    made = grid(*columns)
    made.add_row(*(safe(cell, "dim", _CELL) for cell in head))
    for row in rows:
        made.add_row(*(safe(cell, "", 2 * _CELL) for cell in row))
    return made
