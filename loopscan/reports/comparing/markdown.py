"""``markdown`` of ``loopscan compare``: a summary fit for a pull request or a job summary.

Whatever comes from a transcript, or from people, stands in code as in :mod:`loopscan.reports.markdown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from loopscan.comparing.compare import Comparison
from loopscan.reports.base import Options
from loopscan.reports.comparing import words
from loopscan.reports.markdown import LIMIT, Page, code
from loopscan.reports.phrases import counted, number
from loopscan.reports.plain import sentence

BINARY = True

_FRAME: Final = 800


def write(found: Comparison, out: BinaryIO, options: Options) -> None:
    """Write a summary of at most :data:`~loopscan.reports.markdown.LIMIT` bytes in UTF-8."""
    out.write(document(found).encode())


def document(found: Comparison, limit: int = LIMIT) -> str:
    """Return the summary; what does not fit is counted in the last line."""
    page = Page(limit - _FRAME)
    page.add(f"## loopscan compare: {words.headline(found)}\n")
    page.fit([words.totals(found)], _table, page.room // 4)
    if len(found.labels) > 2:
        page.fit([words.matrix(found)], _table, page.room // 4)
    tables = [([f"by {what}", *words.KINDS], rows) for what, rows in words.breakdowns(found)]
    page.fit(tables, _table, page.room // 2)
    changes = words.told(found)
    if changes:
        page.add(f"\n<details>\n<summary>{counted(len(changes), 'change')}</summary>\n\n")
        page.fit(changes, _line, page.room)
        page.add("\n</details>\n")
    if page.left_out:
        left = counted(page.left_out, "change or table is", "changes or tables are")
        page.add(
            f"\n**{left} left out**: this summary may have {number(limit)} bytes. Other reports hold everything.\n"
        )
    return page.text()


def _table(table: tuple[Sequence[str], Sequence[Sequence[str]]]) -> str:
    head, rows = table
    lines = [f"| {' | '.join(_cell(cell) for cell in head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    lines += (f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows)
    return "\n" + "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return code(sentence(text)).replace("|", "\\|") if text else ""


def _line(each: words.Told) -> str:
    why = f" {code(sentence(each.why))}" if each.why else ""
    return f"- **{each.kind}** {code(sentence(each.what))} {code(sentence(each.where))}{why}\n"
