"""``markdown`` of ``loopscan tune``: a summary fit for a pull request or a job summary.

Whatever comes from a transcript, or from people, stands in code as in :mod:`loopscan.reports.markdown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

from loopscan.reports.base import Options
from loopscan.reports.markdown import LIMIT, Page, code, fenced
from loopscan.reports.phrases import counted, number
from loopscan.reports.plain import lines, sentence, title
from loopscan.reports.tuning import words
from loopscan.reports.tuning.tables import COLUMNS, Shown, left_out, shown
from loopscan.tuning.report import Flip, IncidentRow, Part, TuningReport

BINARY = True

# More than the words take that stand around what may be left out, and the line that says so.
_FRAME: Final = 800


def write(report: TuningReport, out: BinaryIO, options: Options) -> None:
    """Write a summary of at most :data:`~loopscan.reports.markdown.LIMIT` bytes in UTF-8."""
    out.write(document(report).encode())


def document(report: TuningReport, limit: int = LIMIT) -> str:
    """Return the summary, which takes at most ``limit`` bytes in UTF-8 if the facts leave room for any row.

    What is recommended comes first, then what to do, the settings, and how far it can be trusted; incidents near the
    recommendation are folded. What does not fit is counted in the last line.
    """
    page = Page(limit - _FRAME)
    page.add(f"## loopscan tune: {_verdict(report.whole)}\n\n")
    page.fit(_choice(report, report.whole), str, page.room // 4)
    page.fit(_decisions(report), str, page.room // 4)
    page.fit(_block(report), str, page.room // 4)
    page.add("\n### Read\n\n")
    page.fit([*words.read(report.whole), *words.made_with(report)], _fact, page.room // 4)
    rows = shown(report.whole)
    page.add(f"\n### Settings, from the most lenient to the strictest\n\n{_head()}")
    page.fit(rows, _row, page.room // 2)
    page.add(f"\nCalls, tokens, cached, dollars and minutes would be saved: {words.UPPER_BOUND}.\n")
    if rest := left_out(report, report.whole, rows):
        page.add(f"\n{rest}.\n".replace("-o csv=FILE", "`-o csv=FILE`"))
    page.fit(_checked(report.whole), str, page.room)
    for part in report.parts:
        page.fit([_part(report, part)], str, page.room)
    page.fit(_agreement(report), str, page.room)
    if report.whole.flips:
        near = counted(len(report.whole.flips), "incident")
        page.add(f"\n<details>\n<summary>{near} near it: what moves with one threshold by one</summary>\n\n")
        page.fit(report.whole.flips, _flip, page.room)
        page.add("\n</details>\n")
    if report.notes:
        page.add("\n### Notes\n\n")
        page.fit(report.notes, _note, page.room)
    if page.left_out:
        things = counted(page.left_out, "thing is", "things are")
        page.add(
            f"\n**{things} left out**: this summary may have {number(limit)} bytes. Other reports hold everything.\n"
        )
    return page.text()


def _verdict(part: Part) -> str:
    return words.verdict(part.chosen)


def _note(text: str) -> str:
    return f"- {code(sentence(text))}\n"


def _fact(fact: tuple[str, str]) -> str:
    name, value = fact
    return f"- {name}: {code(sentence(value))}\n"


def _choice(report: TuningReport, part: Part) -> Iterator[str]:
    if part.chosen.reason:
        yield f"{code(sentence(part.chosen.reason))}\n\n"
    for fact in words.evidence(report, part):
        yield _fact(fact)
    if part.name is None:
        for line in report.advice:
            yield _note(line)


def _decisions(report: TuningReport) -> Iterator[str]:
    """Yield what to do, a row each."""
    for place, each in enumerate(report.decisions):
        head = "" if place else "\n### What to do\n\n| agent | set | why |\n|---|---|---|\n"
        agent = "all" if each.agent is None else _cell(title(each.agent))
        yield f"{head}| {agent} | {words.decision(each)} | {_cell(sentence(each.reason))} |\n"


def _block(report: TuningReport) -> Iterator[str]:
    if report.block:
        yield f"\n{fenced(lines(report.block.rstrip()), 'json5')}\n"


def _head() -> str:
    return f"| setting | {' | '.join(column.head for column in COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}\n"


def _row(row: Shown) -> str:
    roles = f" ({', '.join(row.roles)})" if row.roles else ""
    name = f"**{row.setting}**" if row.recommended else row.setting
    cells = (column.cell(row.candidate.figures) for column in COLUMNS)
    return f"| {name}{roles} | {' | '.join(cells)} |\n".replace("$", "\\$").replace("<", "&lt;")


def _checked(part: Part) -> Iterator[str]:
    """Yield how the choice fares on sessions held out, and how stable it is."""
    if part.held_out or part.stability is not None:
        yield "\n### How far it can be trusted\n\n"
    for each in part.held_out:
        told, rows = words.held_out(each)
        yield f"- {code(title(each.name))}: {code(sentence(told))}\n{_table(['', 'chosen on', 'held out'], rows)}"
    if part.stability is not None:
        told, others = words.stability(part, part.stability)
        yield f"- stability: {told}\n".replace("<", "&lt;")
        yield from (f"  - {other}\n".replace("<", "&lt;") for other in others)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    told = [f"| {' | '.join(row)} |\n" for row in rows]
    if not told:
        return ""
    made = f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}\n{''.join(told)}\n"
    return made.replace("$", "\\$").replace("<", "&lt;")


def _part(report: TuningReport, part: Part) -> str:
    """Return what there is to say of an agent or model."""
    facts = "".join(_fact(fact) for fact in words.read(part))
    chosen = "".join(_choice(report, part))
    checked = "".join(_checked(part)).replace("###", "####")
    return f"\n### {code(title(part.name or ''))}\n\n{facts}\n**{_verdict(part)}**\n\n{chosen}{checked}"


def _flip(each: Flip) -> str:
    moved, becomes = words.flip(each)
    return f"- {moved}, {becomes}: {_incident(each.incident)} {code(sentence(words.explaining(each.incident)))}\n"


def _incident(row: IncidentRow) -> str:
    about = f"{words.where(row)}: {words.what(row)}; {words.judged(row)}"
    return f"{code(sentence(words.place(row)))} {code(sentence(about))}"


def _agreement(report: TuningReport) -> Iterator[str]:
    if report.agreement is not None:
        yield f"\n### Rules and given labels\n\n{words.agreement(report.agreement)}\n"
        yield _table(*words.agreement_table(report.agreement))


def _cell(text: str) -> str:
    return code(text).replace("|", "\\|")
