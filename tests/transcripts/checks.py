"""What holds for the events of every reader, whatever it was given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loopscan.events import (
    Compaction,
    Event,
    Fate,
    Pause,
    Problem,
    Recorded,
    Result,
    RunEnded,
    SessionEnded,
    SessionResumed,
    SessionStarted,
    Turn,
)
from loopscan.transcripts.reader import Source


def of(kind: type[Any], events: Iterable[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@dataclass
class _Session:
    line: int
    latest: dict[str, Turn] = field(default_factory=dict)
    due: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    seen: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


def check(events: list[Event]) -> None:
    """Assert what every reader promises about its events.

    Sessions are bracketed, and named where they are resumed; within one, events keep the order of the lines; a result
    belongs to a call of its run's latest turn with calls, which ran or was rejected, and each such call has
    exactly one; each run ends once.
    """
    going: dict[str, _Session] = {}
    name: str | None = None
    for event in events:
        if isinstance(event, Pause):
            continue
        if isinstance(event, Problem):
            assert event.line >= 0
            assert event.kind
            assert event.detail
        elif isinstance(event, SessionStarted):
            assert event.session not in going
            name = event.session
            going[name] = _Session(event.where.line)
        elif isinstance(event, SessionResumed):
            assert event.session in going
            name = event.session
        else:
            assert name is not None
            _check(going[name], event)
            if isinstance(event, SessionEnded):
                del going[name]
                name = None
    assert not going


def account(source: Source, entries: int | None = None) -> None:
    """Assert that nothing was lost silently: every entry was used, passed over, a copy, or a problem.

    ``entries`` is how many there are; without it, they are the lines.
    """
    known = source.used.total() + source.unused.total() + source.copies.total() + source.unusable
    assert known == (source.lines - source.blank if entries is None else entries)


def _check(session: _Session, event: Any) -> None:
    assert event.where.time is None or event.where.time >= 0
    if isinstance(event, SessionEnded):
        assert not any(session.due.values())
        assert session.seen == session.ended
        return
    if isinstance(event, RunEnded):
        assert event.run not in session.ended
        session.seen.add(event.run)
        session.ended.add(event.run)
        return
    assert event.where.line >= session.line
    session.line = event.where.line
    if isinstance(event, Compaction):
        assert event.in_run == (event.run is not None)
        return
    if isinstance(event, Recorded) and not event.run:
        return
    assert event.run
    session.seen.add(event.run)
    if isinstance(event, Turn) and event.calls:
        assert not session.due[event.run]
        session.latest[event.run] = event
        session.due[event.run] = {
            index for index, each in enumerate(event.calls) if each.fate in (Fate.RAN, Fate.REJECTED)
        }
    elif isinstance(event, Result):
        session.due[event.run].remove(event.index)
        rejected = session.latest[event.run].calls[event.index].fate is Fate.REJECTED
        assert not rejected or event.outcome.error is not None
        assert (event.outcome.error is None) != (event.outcome.result is None)
