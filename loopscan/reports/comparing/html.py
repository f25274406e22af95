"""``html`` of ``loopscan compare``: one offline page without scripts.

Texts are made clean as for other formats, then escaped by the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from loopscan.comparing.compare import Comparison
from loopscan.reports.base import Options
from loopscan.reports.comparing import words
from loopscan.reports.page import render
from loopscan.reports.phrases import counted
from loopscan.reports.plain import sentence, title

BINARY = True

#: So many changes the page holds.
MOST: Final = 5000


def write(found: Comparison, out: BinaryIO, options: Options) -> None:
    """Write the page in UTF-8."""
    out.write(document(found).encode())


def document(found: Comparison) -> str:
    """Return the page."""
    changes = words.told(found)
    tables = [words.totals(found)]
    if len(found.labels) > 2:
        tables.append(words.matrix(found))
    tables += (([f"by {what}", *words.KINDS], rows) for what, rows in words.breakdowns(found))
    rest = len(changes) - MOST
    return render(
        "compare.html",
        styles=("page.css",),
        scripts=(),
        made=title(f"loopscan {found.version} · {' against '.join(found.labels)}"),
        headline=sentence(words.headline(found)),
        tables=[_table(*table) for table in tables],
        changes=[
            (each.kind, sentence(each.what), sentence(each.where), sentence(each.why)) for each in changes[:MOST]
        ],
        rest=f"and {counted(rest, 'more change')}: the json report holds all" if rest > 0 else "",
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"head": [sentence(cell) for cell in head], "rows": [[sentence(cell) for cell in row] for row in rows]}
