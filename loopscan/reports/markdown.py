"""``markdown``: a summary fit for a pull request or a job summary.

Whatever comes from a transcript stands in code (a span or a block), where neither Markdown nor GitHub sees elements,
links, pictures, mentions or addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, Final, TypeVar

from loopscan.findings import Case, Findings, Status
from loopscan.reports.base import Options, Subject
from loopscan.reports.cases import findings_of, place_of, story, unsaid
from loopscan.reports.phrases import counted, number
from loopscan.reports.plain import path, sentence, title

BINARY = True

#: GitHub takes no larger summary of a step, in bytes.
LIMIT: Final = 1 << 20
# More than the words take that stand around the cases, and the line that says that some are left out.
_FRAME = 800

_BAD = {Status.FAILED: "failed", Status.ERROR: "error"}
_T = TypeVar("_T")
_BACKTICKS = re.compile(r"`+")


def write(subject: Subject, out: BinaryIO, options: Options) -> None:
    """Write a summary of at most :data:`LIMIT` bytes in UTF-8."""
    out.write(document(findings_of(subject, options)).encode())


def document(findings: Findings, limit: int = LIMIT) -> str:
    """Return the summary, which takes at most ``limit`` bytes in UTF-8 if the facts leave room for any case.

    First comes a table of the cases that failed, then each of them with what is to be read of it. The other ones are
    folded if there is something to say of them, and counted if not. A case that does not fit is left out whole; the
    last line says how many are.
    """
    bad = [case for case in findings.cases if case.status in _BAD]
    told = [case for case in findings.cases if case.status is Status.PASSED and case.findings]
    skipped = [case for case in findings.cases if case.status is Status.SKIPPED]
    page = Page(limit - _FRAME)
    page.add(_head(findings, len(bad)))
    page.fit(unsaid(findings), _error, page.room // 4)
    if bad:
        page.add("\n| case | transcript | | why |\n|---|---|---|---|\n")
        # Half of the room is for what the rows are about.
        listed = page.fit(bad, _row, page.room // 2)
        page.fit(listed, _part, page.room)
    for words, cases, shown in (
        (f"{counted(len(told), 'passed case')} with findings", told, _part),
        (counted(len(skipped), "skipped case"), skipped, _skipped),
    ):
        if cases:
            page.add(f"\n<details>\n<summary>{words}</summary>\n\n")
            page.fit(cases, shown, page.room)
            page.add("\n</details>\n")
    clean = len(findings.cases) - len(bad) - len(told) - len(skipped)
    if clean:
        page.add(f"\n{counted(clean, 'case')} passed without findings.\n")
    if page.left_out:
        words = counted(page.left_out, "case or error is", "cases or errors are")
        page.add(
            f"\n**{words} left out**: this summary may have {number(limit)} bytes. Other reports hold everything.\n"
        )
    return page.text()


class Page:
    """Text with room for so many bytes of cases."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.left_out = 0
        self._parts: list[str] = []

    def add(self, text: str) -> None:
        """Add what has to be there."""
        self._parts.append(text)
        self.room -= len(text.encode())

    def fit(self, things: Iterable[_T], shown: Callable[[_T], str], room: int) -> list[_T]:
        """Add each of ``things`` that ``room`` is left for, count the other ones, and return those added."""
        end = self.room - room
        added = []
        for thing in things:
            text = shown(thing)
            if self.room - len(text.encode()) < end:
                self.left_out += 1
            else:
                self.add(text)
                added.append(thing)
        return added

    def text(self) -> str:
        """Return all that was added."""
        return "".join(self._parts)


def _head(findings: Findings, bad: int) -> str:
    cases = len(findings.cases)
    outcome = f"{number(bad)} of {counted(cases, 'case')} failed" if bad else f"{counted(cases, 'case')}, none failed"
    facts = "".join(f"- {code(title(fact))}: {code(sentence(value))}\n" for fact, value in findings.facts)
    return f"## loopscan {findings.command}: {outcome}\n\n{facts}"


def _error(error: str) -> str:
    return f"- error: {code(sentence(error))}\n"


def _row(case: Case) -> str:
    cells = (code(title(case.name)), code(place_of(case)), _BAD[case.status], code(sentence(case.reason or "")))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _part(case: Case) -> str:
    """Return a case with its findings and its text, which nothing in them can end."""
    return f"\n### {code(title(case.name))}\n\n{code(place_of(case))}\n\n{fenced(story(case))}\n"


def _skipped(case: Case) -> str:
    why = f": {code(sentence(case.reason))}" if case.reason else ""
    return f"- {code(title(case.name))} of {code(path(case.group))}{why}\n"


def fenced(told: Sequence[str], language: str = "text") -> str:
    """Return clean lines as a block that nothing in them can end, without a newline at its end."""
    fence = "`" * max(3, 1 + _longest("\n".join(told)))
    return "\n".join([f"{fence}{language}", *told, fence])


def code(text: str) -> str:
    """Return clean text of one line as a code span, nothing for nothing."""
    if not text:
        return ""
    # Of a space at both ends one is taken off again, unless there is nothing else.
    around = " " if text.strip(" ") and {text[0], text[-1]} & {"`", " "} else ""
    fence = "`" * (1 + _longest(text))
    return f"{fence}{around}{text}{around}{fence}"


def _longest(text: str) -> int:
    """Return the length of the longest row of backticks."""
    return max(map(len, _BACKTICKS.findall(text)), default=0)
