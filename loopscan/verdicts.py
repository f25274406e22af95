"""Verdicts of the live engine that stand apart from the session: those of a log or of a trajectory beside it.

Readers of such sources give sessions without calls, whose verdicts belong to no run (:class:`Recorded` with an empty
``run``). Here they are brought to the sessions that other sources hold.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from loopscan.engine.names import tool_name
from loopscan.events import Recorded
from loopscan.marks import Kind
from loopscan.pairs import APART_SECONDS, pair
from loopscan.report import SessionReport
from loopscan.rulesets import Ruleset

#: How many sessions are looked at for a verdict that names none: those that began last.
MOST_LOOKED_AT = 1000

#: The session of verdicts that say neither its id nor its key.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attached:
    """Sessions with the verdicts that stood apart from them."""

    sessions: list[SessionReport]
    """Those that hold more than such verdicts, in their order."""
    apart: list[SessionReport]
    """Those that held such verdicts alone, with the verdicts whose session is not here; without any left, none."""

    @property
    def elsewhere(self) -> list[Recorded]:
        """The verdicts of sessions that are not here."""
        return [recorded for session in self.apart for recorded in session.recorded]


def stands_apart(session: SessionReport) -> bool:
    """Say whether a session is nothing but verdicts that belong to no run."""
    return bool(session.recorded) and not session.calls and all(not recorded.run for recorded in session.recorded)


def attach(sessions: Iterable[SessionReport], ruleset: Ruleset) -> Attached:
    """Bring verdicts that stand apart to the sessions with the same id; nothing that is given is changed.

    A verdict that the session records already is not added again, and what the log says more of it is kept. A
    log does not always know the id of a session: a verdict that names a key alone goes to the only session that it
    can be of, by its agent and time. ``ruleset`` says which names are of the same tool.
    """
    everything = list(sessions)
    kept = [session for session in everything if not stands_apart(session)]
    by_id: dict[str, list[int]] = {}
    for place, session in enumerate(kept):
        by_id.setdefault(session.session, []).append(place)
    apart: list[SessionReport] = []
    clock = _Clock(kept)
    for session in everything:
        if not stands_apart(session):
            continue
        theirs: dict[int | None, list[Recorded]] = {}
        for recorded in session.recorded:
            theirs.setdefault(_home(session, recorded, kept, by_id, clock), []).append(recorded)
        for home, verdicts in theirs.items():
            if home is not None:
                kept[home] = _with(kept[home], verdicts, ruleset)
        if None in theirs:
            apart.append(replace(session, recorded=theirs[None]))
    return Attached(kept, apart)


def _home(
    session: SessionReport,
    recorded: Recorded,
    kept: Sequence[SessionReport],
    by_id: dict[str, list[int]],
    clock: _Clock,
) -> int | None:
    """Return the place of the session that a verdict of ``session`` is of, ``None`` if it is not here."""
    places = by_id.get(session.session, [])
    if places:
        return next((place for place in places if _goes_on(kept[place], recorded)), places[0])
    if session.session != UNKNOWN and ":" not in session.session:
        return None
    return clock.only(session.agent, recorded)


class _Clock:
    """Which sessions went on at a time."""

    def __init__(self, sessions: Sequence[SessionReport]) -> None:
        self._sessions = sessions
        timed = [
            (each.started, each.ended, place)
            for place, each in enumerate(sessions)
            if each.started is not None and each.ended is not None
        ]
        self._timed = sorted(timed)
        self._starts = [started for started, _, _ in self._timed]
        self._latest = list(accumulate((ended for _, ended, _ in self._timed), max))
        """When the last of the sessions up to each one ended."""
        self._armed = [place for place, each in enumerate(sessions) if _is_armed(each)]

    def only(self, agent: str | None, recorded: Recorded) -> int | None:
        """Return the only session of ``agent`` that a verdict can be of; ``None`` for none, or several.

        Where a time is not known, that asks for the post-compaction guard. Where more sessions would have to be
        looked at than :data:`MOST_LOOKED_AT`, it may be of several.
        """
        found: int | None = None
        for looked_at, place in enumerate(self._possible(recorded)):
            if looked_at == MOST_LOOKED_AT:
                return None
            if place is not None and _may_be(self._sessions[place].agent, agent):
                if found is not None:
                    return None
                found = place
        return found

    def _possible(self, recorded: Recorded) -> Iterator[int | None]:
        """Yield the sessions, ``None`` for one that was looked at in vain."""
        time = recorded.where.time
        if time is not None:
            for at in range(bisect_right(self._starts, time + APART_SECONDS) - 1, -1, -1):
                if self._latest[at] < time - APART_SECONDS:
                    break
                _, ended, place = self._timed[at]
                yield place if ended >= time - APART_SECONDS else None
        if recorded.kind == Kind.COMPACTION_ABORT:
            for place in self._armed:
                each = self._sessions[place]
                yield place if time is None or each.started is None or each.ended is None else None


def _may_be(agent: str | None, other: str | None) -> bool:
    return agent is None or other is None or agent == other


def _goes_on(session: SessionReport, recorded: Recorded) -> bool:
    """Say whether a session went on when the verdict was given, as far as both times are known."""
    time = recorded.where.time
    if time is None or session.started is None or session.ended is None:
        return True
    return session.started - APART_SECONDS <= time <= session.ended + APART_SECONDS


def _is_armed(session: SessionReport) -> bool:
    """Say whether the post-compaction guard was armed in the replay."""
    armed = {Kind.GUARD_ARMED, Kind.COMPACTION_ABORT}
    return any(mark.kind in armed for _, mark in session.marks())


def _with(session: SessionReport, told: Sequence[Recorded], ruleset: Ruleset) -> SessionReport:
    """Return a session with verdicts that were told of it elsewhere, in its timelines too."""
    merged = _merged(session.recorded, told, ruleset)
    filled = {known: now for known, now in zip(session.recorded, merged, strict=False) if known != now}
    runs = [
        replace(
            run,
            steps=[
                replace(step, recorded=filled.get(step.recorded, step.recorded)) if step.recorded in filled else step
                for step in run.steps
            ],
        )
        if filled and run.steps
        else run
        for run in session.runs
    ]
    return replace(session, recorded=merged, runs=runs)


def _merged(known: Sequence[Recorded], told: Sequence[Recorded], ruleset: Ruleset) -> list[Recorded]:
    """Return what is known with what was told: a verdict that both tell of once, with all that either says of it."""
    merged = list(known)
    waiting: dict[tuple[str, str | None, int | None], tuple[list[int], list[int]]] = {}
    for side, verdicts in enumerate((known, told)):
        for place, each in enumerate(verdicts):
            tool = tool_name(each.tool, ruleset) if each.tool is not None else None
            waiting.setdefault((each.kind, tool, each.count), ([], []))[side].append(place)
    new = set(range(len(told)))
    for ours, theirs in waiting.values():
        for detector in sorted({told[place].detector or "" for place in theirs}):
            # Some records do not name the detector: it may be any.
            left = [place for place in ours if (known[place].detector or detector) == detector]
            right = [place for place in theirs if (told[place].detector or "") == detector]
            met = pair([known[place].where.time for place in left], [told[place].where.time for place in right])
            for at, to in met:
                merged[left[at]] = replace(known[left[at]], detector=detector or None)
                new.discard(right[to])
            taken = {left[at] for at, _ in met}
            ours = [place for place in ours if place not in taken]
    return merged + [_by_name(each, ruleset) for place, each in enumerate(told) if place in new]


def _by_name(recorded: Recorded, ruleset: Ruleset) -> Recorded:
    """Return a verdict with the name that the engine has for its tool."""
    return recorded if recorded.tool is None else replace(recorded, tool=tool_name(recorded.tool, ruleset))
