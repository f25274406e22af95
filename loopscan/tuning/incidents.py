"""Incidents: maximal streaks of one loop, as the record has them, whatever thresholds there are.

A streak is what a detector counts, without the limit of a history: calls of one signature that come back alike,
commands that fail alike whatever their arguments, two calls that alternate, a tool that is unknown, a tool that is
absent. Streaks that share a call are one incident. A call at which a detector would step in *meets* the streak that
it counts, even where it is the very call whose outcome ends it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from loopscan.marks import Detector
from loopscan.modes import ScopeRule
from loopscan.rulesets import Ruleset
from loopscan.tuning.evidence import Activity, Evidence, Response, evidence_of
from loopscan.tuning.steps import MODEL_FAILED, NOT_RUN, REJECTED, STEERING, STORED, Step

#: How long a streak has to be to make an incident: calls alike, or calls that alternate without progress.
SHORTEST: Final = 3
SHORTEST_ALTERNATION: Final = 4


class Loop(StrEnum):
    """What repeats in a streak."""

    SAME_CALL = "same_call"
    SAME_FAILURE = "same_failure"
    ALTERNATION = "alternation"
    UNKNOWN_TOOL = "unknown_tool"
    ABSENT_TOOL = "absent_tool"


#: Which streaks each detector counts.
LOOPS: Final = {
    Detector.GENERIC_REPEAT: Loop.SAME_CALL,
    Detector.KNOWN_POLL_NO_PROGRESS: Loop.SAME_CALL,
    Detector.GLOBAL_CIRCUIT_BREAKER: Loop.SAME_CALL,
    Detector.COMPACTION_LOOP: Loop.SAME_CALL,
    Detector.PING_PONG: Loop.ALTERNATION,
    Detector.UNKNOWN_TOOL_REPEAT: Loop.UNKNOWN_TOOL,
    Detector.UNKNOWN_TOOL_GUARD: Loop.ABSENT_TOOL,
}


@dataclass(frozen=True, slots=True, order=True)
class At:
    """One call of a unit: ``order`` counts all of its calls, in the order in which the model asked for them."""

    order: int
    run: str
    batch: int
    call: int
    """Its number within the run, -1 for one that was not stored."""
    line: int
    time: float | None


@dataclass(slots=True, eq=False)
class Streak:
    """One streak while it goes on and after."""

    loop: Loop
    tool: str
    calls: list[At] = field(default_factory=list)
    signatures: set[int] = field(default_factory=set)
    still: int = 0
    """How many of its newest calls came back alike; for an alternation, on each side."""
    longest: int = 0
    changes: list[int] = field(default_factory=list)
    """The orders of calls whose outcome was another one than before."""

    def counts(self) -> bool:
        """Say whether it is long enough to make an incident."""
        return self.longest >= (SHORTEST_ALTERNATION if self.loop is Loop.ALTERNATION else SHORTEST)

    def grow(self, at: At, signature: int) -> None:
        """Take in the next call."""
        self.calls.append(at)
        self.signatures.add(signature)

    def alike(self) -> None:
        """Note that the latest call came back as those before."""
        self.still += 1
        self.longest = max(self.longest, self.still)


@dataclass(slots=True, eq=False)
class Incident:
    """One maximal streak of one loop, or several that share calls."""

    number: int
    """Within the unit, from 0, in order of their first call."""
    run: str
    loops: tuple[Loop, ...]
    tools: tuple[str, ...]
    calls: list[At]
    """In order."""
    evidence: Evidence


@dataclass(slots=True)
class Incidents:
    """All incidents of one unit, and which of them a call meets."""

    incidents: list[Incident]
    calls: dict[tuple[str, int], At]
    """By run and number within the run."""
    attempts: dict[str, list[Streak]]
    """Streaks of messages that name an absent tool alone, by run."""
    met: dict[tuple[Loop, int], int]
    """The number of the incident whose streak a call extends or ends, by loop and order."""
    activity: dict[str, Activity]
    """What each run did, by its key."""

    def meeting(self, loop: Loop, run: str, call: int | None) -> int | None:
        """Return the number of the incident that a call meets, if it does."""
        at = self.calls.get((run, call)) if call is not None else None
        return None if at is None else self.met.get((loop, at.order))

    def attempt(self, run: str, count: int, line: int) -> At | None:
        """Return attempt number ``count`` at an absent tool; ``line`` tells which streak is meant if several are."""
        found = [streak.calls[count - 1] for streak in self.attempts.get(run, ()) if len(streak.calls) >= count > 0]
        return next((at for at in found if at.line == line), found[0] if found else None)


@dataclass(slots=True)
class _Lane:
    """One signature in one scope: its streak, and its newest outcome."""

    streak: Streak
    outcome: int | None


@dataclass(slots=True)
class _Scope:
    """The streaks that go on in one scope."""

    lanes: dict[int, _Lane] = field(default_factory=dict)
    failing: Streak | None = None
    failure: int | None = None
    alternation: Streak | None = None
    last: int | None = None
    """The signature of the newest call, and of the one before it."""
    before: int | None = None
    newest: At | None = None
    sides: dict[int, int | None] = field(default_factory=dict)
    """The newest outcome of each side of the alternation."""
    unknown: Streak | None = None
    name: int | None = None
    tool: str | None = None


@dataclass(slots=True)
class _Asked:
    """A stored call while its outcome may come."""

    at: At
    tool: str
    signature: int
    lane: _Lane | None
    alternation: Streak | None


class _Scan:
    """Goes through the steps of one unit."""

    def __init__(self, rules: Ruleset, scope: ScopeRule) -> None:
        self.rules, self.whole = rules, scope is ScopeRule.SESSION
        self.scopes: dict[str, _Scope] = {}
        self.streaks: list[Streak] = []
        self.met: dict[tuple[Loop, int], Streak] = {}
        self.calls: dict[tuple[str, int], At] = {}
        self.attempts: dict[str, list[Streak]] = {}
        self.activity: dict[str, Activity] = {}
        self._order = 0
        self._asked: dict[str, list[_Asked | None]] = {}
        self._counted: Counter[str] = Counter()
        self._batches: Counter[str] = Counter()
        self._absent: dict[str, Streak] = {}

    def step(self, step: Step) -> None:
        run = step[1]
        activity = self.activity.setdefault(run, Activity())
        match step[0]:
            case "t":
                self._turn(run, step, activity)
            case "r":
                self._result(run, step, activity)
            case "u":
                activity.user(self._order, steering=bool(step[4] & STEERING))
            case "s":
                self._stopped(run, step, activity)
            case "e":
                self._asked.pop(run, None)
                activity.ended(step[4], step[3])
            case "v" if step[4] != "warning":
                activity.live_verdict(self._order)
            case _:
                pass

    def _scope(self, run: str) -> _Scope:
        return self.scopes.setdefault("" if self.whole else run, _Scope())

    def _new(self, loop: Loop, tool: str) -> Streak:
        streak = Streak(loop, tool)
        self.streaks.append(streak)
        return streak

    def _next(self, run: str, step: Step, *, stored: bool = True) -> At:
        call = -1
        if stored:
            call, self._counted[run] = self._counted[run], self._counted[run] + 1
        at = At(self._order, run, self._batches[run], call, step[2], step[3])
        self._order += 1
        if stored:
            self.calls[run, call] = at
        return at

    def _turn(self, run: str, step: Step, activity: Activity) -> None:
        flags, stop, model, usage, calls, absent = step[4:]
        response = Response(self._order, step[3], usage, model)
        activity.response(response, stop, failed=bool(flags & MODEL_FAILED))
        if not calls and not absent:
            if not flags & MODEL_FAILED:
                self._absent.pop(run, None)
            return
        stored = bool(flags & STORED)
        placed = {position for *_, position, _ in absent if position is not None}
        existing = iter(calls)
        asked: list[_Asked | None] = []
        first = self._order
        for place in range(len(calls) + sum(position is not None for *_, position, _ in absent)):
            if place in placed:
                self._next(run, step)
            elif (call := next(existing, None)) is not None:
                asked.append(self._ask(run, step, call))
        asked += (self._ask(run, step, call) for call in existing)
        if not calls:
            tools = {tool for tool, *_ in absent}
            if first == self._order:
                self._next(run, step, stored=False)
            self._attempt(run, step, tools)
        else:
            self._absent.pop(run, None)
        if stored:
            self._asked[run] = asked
            self._batches[run] += 1

    def _ask(self, run: str, step: Step, call: Step) -> _Asked | None:
        """Take in a call of a message; ``None`` if it did not reach the detectors."""
        tool, sign, _, fate = call
        at = self._next(run, step)
        if fate == NOT_RUN or (fate == REJECTED and not self.rules.record_rejections):
            return None
        return self._propose(run, at, tool, sign)

    def _attempt(self, run: str, step: Step, tools: set[str]) -> None:
        """Take in a message whose calls all name absent tools."""
        at = At(self._order - 1, run, self._batches[run], -1, step[2], step[3])
        streak = self._absent.get(run)
        if len(tools) != 1:
            self._absent.pop(run, None)
            return
        (tool,) = tools
        if streak is None or streak.tool != tool:
            streak = self._absent[run] = self._new(Loop.ABSENT_TOOL, tool)
            self.attempts.setdefault(run, []).append(streak)
        streak.grow(at, -1)
        streak.alike()
        self.met[Loop.ABSENT_TOOL, at.order] = streak

    def _stopped(self, run: str, step: Step, activity: Activity) -> None:
        self._next(run, step, stored=False)
        activity.live_verdict(self._order)
        self._attempt(run, step, {step[4]})

    def _propose(self, run: str, at: At, tool: str, sign: int) -> _Asked:
        """Take in a call that reached the detectors: it meets the streaks that they count for it."""
        scope = self._scope(run)
        lane = scope.lanes.get(sign)
        if lane is not None:
            self.met[Loop.SAME_CALL, at.order] = lane.streak
        if tool == "exec" and scope.failing is not None:
            self.met[Loop.SAME_FAILURE, at.order] = scope.failing
        if scope.alternation is not None and scope.before == sign:
            self.met[Loop.ALTERNATION, at.order] = scope.alternation
        if scope.unknown is not None and scope.unknown.tool == tool:
            self.met[Loop.UNKNOWN_TOOL, at.order] = scope.unknown
        self._alternate(scope, at, tool, sign)
        if tool != "exec":
            scope.failing = None
        if scope.unknown is not None and scope.unknown.tool != tool:
            scope.unknown = None
        return _Asked(at, tool, sign, lane, scope.alternation)

    def _alternate(self, scope: _Scope, at: At, tool: str, sign: int) -> None:
        last, before, going = scope.last, scope.before, scope.alternation
        if last is None or sign == last:
            scope.alternation = None
        elif going is not None and sign == before:
            going.grow(at, sign)
        else:
            going = scope.alternation = self._new(Loop.ALTERNATION, tool)
            if scope.newest is not None:
                going.grow(scope.newest, last)
            going.grow(at, sign)
            scope.sides = {last: self._newest(scope, last)}
            going.still = 1
        scope.before, scope.last, scope.newest = scope.last, sign, at

    def _newest(self, scope: _Scope, sign: int) -> int | None:
        lane = scope.lanes.get(sign)
        return lane.outcome if lane else None

    def _result(self, run: str, step: Step, activity: Activity) -> None:
        index, identity, flags, failure, unknown = step[4:]
        batch = self._asked.get(run) or []
        asked = batch[index] if index < len(batch) else None
        if asked is None:
            return
        scope, at = self._scope(run), asked.at
        activity.outcome(at.order, asked.signature, identity, flags, step[3])
        if identity is None:
            return
        self._settle_lane(scope, asked, identity)
        self._settle_failure(scope, asked, failure)
        self._settle_sides(scope, asked, identity)
        self._settle_unknown(scope, asked, unknown)

    def _settle_lane(self, scope: _Scope, asked: _Asked, identity: int) -> None:
        lane = scope.lanes.get(asked.signature)
        if lane is None or lane.outcome != identity:
            if lane is not None:
                lane.streak.changes.append(asked.at.order)
            lane = scope.lanes[asked.signature] = _Lane(self._new(Loop.SAME_CALL, asked.tool), identity)
        lane.streak.grow(asked.at, asked.signature)
        lane.streak.alike()

    def _settle_failure(self, scope: _Scope, asked: _Asked, failure: int | None) -> None:
        if asked.tool != "exec" or not self.rules.failures_across_arguments:
            return
        if failure is None or failure != scope.failure or scope.failing is None:
            scope.failing = self._new(Loop.SAME_FAILURE, asked.tool) if failure is not None else None
            scope.failure = failure
        if scope.failing is not None:
            scope.failing.grow(asked.at, asked.signature)
            scope.failing.alike()

    def _settle_sides(self, scope: _Scope, asked: _Asked, identity: int) -> None:
        going = scope.alternation
        if (
            going is None
            or going is not asked.alternation
            or not going.calls
            or asked.at.order < going.calls[0].order
        ):
            return
        if asked.signature in scope.sides and scope.sides[asked.signature] != identity:
            going.still = 0
            going.changes.append(asked.at.order)
        scope.sides[asked.signature] = identity
        going.alike()

    def _settle_unknown(self, scope: _Scope, asked: _Asked, unknown: int | None) -> None:
        if unknown is None:
            scope.unknown, scope.name = None, None
            return
        if scope.unknown is None or scope.name != unknown or scope.unknown.tool != asked.tool:
            scope.unknown, scope.name = self._new(Loop.UNKNOWN_TOOL, asked.tool), unknown
        scope.unknown.grow(asked.at, asked.signature)
        scope.unknown.alike()


def scan(steps: Iterable[Step], rules: Ruleset, scope: ScopeRule, followed: frozenset[str]) -> Incidents:
    """Return the incidents of a unit, given by its steps; ``followed`` are the runs after which others came."""
    scanning = _Scan(rules, scope)
    for step in steps:
        scanning.step(step)
    kept = [streak for streak in scanning.streaks if streak.counts()]
    groups = _together(kept)
    incidents: list[Incident] = []
    number_of: dict[int, int] = {}
    for group in sorted(groups, key=lambda group: min(streak.calls[0].order for streak in group)):
        number = len(incidents)
        number_of.update((id(streak), number) for streak in group)
        incidents.append(_incident(number, group, scanning.activity, followed))
    met = {key: number_of[id(streak)] for key, streak in scanning.met.items() if id(streak) in number_of}
    return Incidents(incidents, scanning.calls, scanning.attempts, met, scanning.activity)


def _incident(
    number: int, group: Sequence[Streak], activity: dict[str, Activity], followed: frozenset[str]
) -> Incident:
    calls = sorted({at.order: at for streak in group for at in streak.calls}.values())
    signatures = {sign for streak in group for sign in streak.signatures}
    changes = [order for streak in group for order in streak.changes]
    loops = tuple(loop for loop in Loop if any(streak.loop is loop for streak in group))
    run = calls[-1].run
    orders = [at.order for at in calls]
    evidence = evidence_of(orders, signatures, changes, activity[run], followed=run in followed)
    return Incident(number, run, loops, tuple(sorted({streak.tool for streak in group})), calls, evidence)


def _together(streaks: Sequence[Streak]) -> list[list[Streak]]:
    """Return the streaks, those that share a call together."""
    parent = list(range(len(streaks)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    owner: dict[int, int] = {}
    for place, streak in enumerate(streaks):
        for at in streak.calls:
            parent[root(place)] = root(owner.setdefault(at.order, place))
    groups: dict[int, list[Streak]] = {}
    for place, streak in enumerate(streaks):
        groups.setdefault(root(place), []).append(streak)
    return list(groups.values())
