"""Marks as expectations write them: every field that says something, and one line that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopscan.checks.schema import Pattern, Snapshot, SnapshotMark
from loopscan.marks import Mark
from loopscan.report import Report, RunReport, SessionReport, mark_dict
from loopscan.sanitize import name as shown

#: The fields of a mark in a snapshot, in the order in which they are written. The sentence of a mark is no part of
#: it, since its words may change; nor is the level, which follows from the kind.
FIELDS: Final = tuple(SnapshotMark.model_fields)
_OF_A_PLACE: Final = frozenset({"tool_call_id", "entry", "time"})
_TOOL: Final = 60

#: One mark by the fields that say something.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FoundMark:
    """A mark of a replay with all that it belongs to."""

    row: Row
    """As a snapshot has it."""
    full: Row
    """As the report has it."""
    mark: Mark
    run: RunReport
    session: SessionReport

    def meets(self, pattern: Pattern) -> bool:
        """Tell whether all fields that ``pattern`` gives are equal, or one of those it lists."""
        return all(
            _writable(self.full[name]) in (wanted if isinstance(wanted, list) else [wanted])
            for name, wanted in pattern.wanted().items()
        )


def found_marks(report: Report) -> list[FoundMark]:
    """Return every mark of ``report``, in order."""
    return [
        FoundMark(_row(full), full, mark, run, session)
        for session in report.sessions
        for run, mark in session.marks()
        for full in (mark_dict(session.session, run, mark),)
    ]


def expected_rows(snapshot: Snapshot) -> list[Row]:
    """Return the marks of a snapshot in the form of :attr:`FoundMark.row`."""
    return [
        _row({**mark.model_dump(mode="json"), "session": mark.session or snapshot.session}) for mark in snapshot.marks
    ]


def sizes(report: Report) -> dict[str, int]:
    """Return how many sessions, runs and calls were replayed."""
    return {
        "sessions": len(report.sessions),
        "runs": sum(len(session.runs) for session in report.sessions),
        "calls": sum(session.calls for session in report.sessions),
    }


def snapshot_of(report: Report) -> dict[str, Any]:
    """Return what a snapshot says of ``report``."""
    return {
        **sizes(report),
        **({"problems": report.problems} if report.problems else {}),
        "marks": [found.row for found in found_marks(report)],
    }


def written(snapshot: Mapping[str, Any]) -> Row:
    """Return a snapshot as it is written: what all marks are of is said once."""
    sessions = {mark["session"] for mark in snapshot["marks"]}
    if len(sessions) != 1:
        return dict(snapshot)
    counts = {name: value for name, value in snapshot.items() if name != "marks"}
    marks = [{name: value for name, value in mark.items() if name != "session"} for mark in snapshot["marks"]]
    return {**counts, "session": sessions.pop(), "marks": marks}


def title(row: Row) -> str:
    """Return what a mark is in a few words, such as ``block generic_repeat``."""
    return f"{row['kind'].replace('_', ' ')} {row['detector']}"


def words(row: Row) -> str:
    """Return a mark in one line: what, and where."""
    parts = [title(row)]
    if row.get("count") is not None:
        parts.append(f"count {row['count']}")
    if row.get("threshold") is not None:
        parts.append(f"threshold {row['threshold']}")
    if row.get("tool") is not None:
        tool = row["tool"]
        other = row.get("paired_tool")
        parts.append(shown(f"{tool} with {other}" if other not in {None, tool} else str(tool), _TOOL))
    parts.append(place(row))
    if row.get("blocked_calls"):
        parts.append(f"{row['blocked_calls']} blocked")
    return " · ".join(parts)


def place(row: Row) -> str:
    """Return where in its session a mark is."""
    call = "" if row.get("call") is None else f", call {row['call']}"
    return f"run {row['run']}, batch {row['batch']}{call}"


def pattern_words(pattern: Pattern) -> str:
    """Return what a pattern asks for in one line, such as ``block generic_repeat · tool read``."""
    wanted = pattern.wanted()
    kind, detector = wanted.pop("kind", None), wanted.pop("detector", None)
    parts = [] if kind is None else [_value(kind).replace("_", " ")]
    parts += [] if detector is None else [_value(detector)]
    named = [f"{name} {_value(value)}" for name, value in wanted.items()]
    return " · ".join([*([" ".join(parts)] if parts else []), *named]) or "any mark"


def changes(expected: Row, found: Row) -> Iterator[tuple[str, str, str]]:
    """Yield each field in which two marks differ, with both values; ids and times go without saying elsewhere."""
    moved = any(expected.get(name) != found.get(name) for name in ("run", "batch", "call"))
    for name in FIELDS:
        before, after = expected.get(name), found.get(name)
        if before != after and not (moved and name in _OF_A_PLACE):
            yield name, _value(before), _value(after)


def _row(full: Row) -> Row:
    row = {name: _writable(full[name]) for name in FIELDS if full[name] is not None and full[name] is not False}
    if not row.get("blocked_calls"):
        row.pop("blocked_calls", None)
    return row


def _writable(value: object) -> object:
    """Return a value that a file can hold: a lone surrogate is spelt out."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _value(value: object) -> str:
    if isinstance(value, list):
        return " or ".join(_value(each) for each in value)
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else shown(str(value), _TOOL)
