"""The words and tables of a comparison; what comes from a transcript is for the formats to make clean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from loopscan.comparing.compare import Change, Comparison, RunChange
from loopscan.comparing.pairing import Kind
from loopscan.marks import Kind as MarkKind
from loopscan.marks import Mark
from loopscan.report import RunReport
from loopscan.reports.phrases import counted, kind_words, number, saved

#: The columns of tables of changes.
KINDS: Final = tuple(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class Told:
    """One change as a line."""

    kind: str
    """What became of the mark, or ``ends`` for a run that ends otherwise."""
    where: str
    what: str
    why: str
    """The engine's reason, or what is not reached."""


def headline(found: Comparison) -> str:
    """Return the answer in one line."""
    if len(found.labels) > 2:
        most = max(found.differing.values(), default=0)
        if not most:
            return f"no difference: all rulesets make the same marks in {counted(found.sessions, 'session')}"
        return f"up to {number(most)} of {counted(found.sessions, 'session')} differ between two of the rulesets"
    if not found.changed:
        return f"no change in {counted(found.sessions, 'session')}"
    parts = [f"{number(found.count(kind))} {kind.value}" for kind in Kind if found.count(kind)]
    marks = f"marks: {', '.join(parts)}" if parts else "the same marks, other ends of runs"
    return f"{number(found.differing[0, 1])} of {counted(found.sessions, 'session')} differ; {marks}"


def totals(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return a table of the marks of each side: its head and its rows."""
    kinds = [kind for kind in MarkKind if any(each.marks[kind] for each in found.totals)]
    head = ["side", *(kind_words(kind.value) for kind in kinds), "sessions with marks", "not reached"]
    rows = [
        [
            label,
            *(number(each.marks[kind]) for kind in kinds),
            number(each.sessions_with_marks),
            saved(each.not_reached) or "nothing",
        ]
        for label, each in zip(found.labels, found.totals, strict=True)
    ]
    return head, rows


def matrix(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return in how many sessions each two sides differ: head and rows."""
    labels = found.labels
    rows = [
        [one, *("" if a == b else number(found.differing[min(a, b), max(a, b)]) for b in range(len(labels)))]
        for a, one in enumerate(labels)
    ]
    return ["sessions that differ", *labels], rows


def breakdowns(found: Comparison) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the changes by detector, tool and agent, where there is more than one name."""
    for what in ("detector", "tool", "agent"):
        by = found.by(what)
        if len(by) > 1 or (by and what == "detector"):
            yield what, [[name, *_counts(counts)] for name, counts in by.items()]


def _counts(counts: Counter[Kind]) -> list[str]:
    return [number(counts[kind]) if counts[kind] else "" for kind in Kind]


def told(found: Comparison) -> list[Told]:
    """Return every change, those of marks first; what one loop gains or loses again and again is one line."""
    return [*(_change(list(group)) for _, group in groupby(found.changes, _loop)), *map(_run, found.runs)]


def _loop(change: Change) -> tuple[object, ...]:
    """Return what is told of in one line: marks of a loop that one side has alone; a pair stands by itself."""
    mark = change.pair.mark
    if change.kind not in (Kind.GAINED, Kind.LOST):
        return (id(change),)
    return (change.kind, change.source, change.session, change.run, mark.kind, mark.detector, mark.signature)


def _change(changes: Sequence[Change]) -> Told:
    first, last = changes[0], changes[-1]
    mark = first.pair.mark
    if first.pair.a is not None and first.pair.b is not None:
        what = f"{_mark(first.pair.a)} → {_mark(first.pair.b)}"
    elif len(changes) > 1:
        what = f"{_mark(mark)}, and {number(len(changes) - 1)} more up to call {last.pair.mark.call}"
    else:
        what = _mark(mark)
    return Told(first.kind.value, _place(first, mark), what, mark.message)


def _run(change: RunChange) -> Told:
    what = f"{_end(change.a)} → {_end(change.b)}"
    where = f"{change.source} · run {change.run} of {change.session}"
    return Told("ends", where, what, "")


def _end(run: RunReport) -> str:
    words = saved(run.not_reached)
    return run.outcome.replace("_", " ") + (f", not reached: {words}" if words else "")


def _place(change: Change, mark: Mark) -> str:
    line = f":{mark.where.line}" if mark.where.line else ""
    call = f", call {mark.call}" if mark.call is not None else ""
    return f"{change.source}{line} · run {change.run}{call} of {change.session}"


def _mark(mark: Mark) -> str:
    at = f" at call {mark.call}" if mark.call is not None else ""
    count = f" {mark.count}" if mark.count is not None else ""
    return f"{kind_words(mark.kind.value)} {mark.detector.value}{count}{at}"
