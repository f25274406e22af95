"""Looks for near misses while a session is replayed: one pass, and per run no more than its repetitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from loopscan.engine.identify import Identified, Identifier
from loopscan.engine.outcomes import compared
from loopscan.engine.session import SessionEngine
from loopscan.events import Call, Result, SessionEvent, Turn
from loopscan.marks import Kind, Level, Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.nearmisses.masks import Masked, progresses
from loopscan.policy import Policy

#: Cycles of these lengths are looked for: one and two calls are the engine's own.
CYCLES: Final = range(3, 9)
#: So many repetitions of a run are followed at the same time; what was not seen for longest goes.
MOST_LANES: Final = 1000
#: Of a repetition so many steps are kept, to see whether a number progresses.
MOST_STEPS: Final = 200


class Relaxation(StrEnum):
    """What would have to count as the same for a loop to be seen, the tightest first."""

    OUTCOMES = "outcomes"
    """Equal arguments; outcomes equal but for numbers, times, ids, durations, temporary paths."""
    ONE_SCOPE = "one_scope"
    """The runs of the session looked at as one."""
    SAME_ERROR = "same_error"
    """The same error, whatever the arguments."""
    ARGUMENTS = "arguments"
    """Arguments and outcomes equal but for numbers, times, ids, durations, temporary paths."""
    CYCLE = "cycle"
    """Three to eight calls in turn, each coming back as the time before."""


@dataclass(slots=True)
class NearMiss:
    """A repetition that the rules cannot see."""

    relaxation: Relaxation
    run: int
    """Its number within the session, from 0."""
    tools: tuple[str, ...]
    calls: int
    """How long it is, in calls."""
    first_call: int
    last_call: int
    first_line: int
    last_line: int
    tokens: int
    """Of the responses from the threshold on, as recorded; an upper bound of what stepping in would have saved."""
    cost_usd: float
    period: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "relaxation": self.relaxation.value,
            "run": self.run,
            "tools": list(self.tools),
            "calls": self.calls,
            "period": self.period,
            "first_call": self.first_call,
            "last_call": self.last_call,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "tokens": self.tokens,
            "cost_usd": round(self.cost_usd, 6),
        }


@dataclass(slots=True)
class _Asked:
    """A call while its outcome may come."""

    number: int
    line: int
    known: Identified
    spent: tuple[int, float]
    """Tokens and dollars of the run up to its message."""


@dataclass(slots=True)
class _Lane:
    """Calls that came back alike, by some looser identity."""

    outcome: bytes
    asked: list[tuple[int, int, tuple[int, float]]] = field(default_factory=list)
    """Number, line and what was spent, of the first, the one at the threshold and the last."""
    calls: int = 0
    varied: bool = False
    """Some of it differs by the engine's own identities: else it is no near miss."""
    exact: tuple[bytes, bytes] | None = None
    steps: deque[tuple[float, ...]] = field(default_factory=lambda: deque(maxlen=MOST_STEPS))
    tool: str = ""

    def add(self, asked: _Asked, exact: tuple[bytes, bytes], numbers: tuple[float, ...], threshold: int) -> None:
        """Take in the next call."""
        self.calls += 1
        self.varied |= self.exact is not None and exact != self.exact
        self.exact, self.tool = exact, asked.known.tool
        self.steps.append(numbers)
        place = (asked.number, asked.line, asked.spent)
        if self.calls in (1, threshold):
            self.asked.append(place)
        self.asked[2:] = [place] if self.calls > threshold else []


@dataclass(slots=True)
class _Run:
    """One run."""

    number: int
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    asked: list[_Asked] = field(default_factory=list)
    lanes: dict[tuple[Relaxation, bytes], _Lane] = field(default_factory=dict)
    seen: dict[bytes, None] = field(default_factory=dict)
    """Signatures that were called, of late."""
    recent: deque[tuple[bytes, bytes, _Asked]] = field(default_factory=lambda: deque(maxlen=max(CYCLES)))
    cycling: dict[int, _Lane] = field(default_factory=dict)
    stepped_in: set[str] = field(default_factory=set)
    """Digests of the calls that the engine stepped into, and their tools."""
    tools: set[str] = field(default_factory=set)
    calls_of: Sequence[Call] = ()
    """The calls of the latest message."""
    ended: list[NearMiss] = field(default_factory=list)


class NearMisses:
    """The observer of one session."""

    def __init__(self, policy: Policy, identifier: Identifier, scope: ScopeRule, arm: Arm) -> None:
        """Look for repetitions of as many calls as the engine would block at, by ``policy``."""
        self._rules, self._identifier = policy.ruleset, identifier
        self._threshold = policy.critical
        self._runs: dict[str, _Run] = {}
        self._whole: SessionEngine | None = None
        self._met: dict[tuple[str, str], list[Mark]] = {}
        """Where one scope would have stepped in, by run and call."""
        if scope is ScopeRule.RUN and policy.enabled:
            self._whole = SessionEngine(
                policy, mode=Mode.OBSERVE, scope=ScopeRule.SESSION, arm=arm, identifier=identifier
            )

    def feed(self, event: SessionEvent, marks: Sequence[Mark]) -> None:
        """Take in the next event, and the marks that the engine made of it."""
        if not event.run:
            return
        run = self._runs.setdefault(event.run, _Run(len(self._runs)))
        for mark in marks:
            if mark.level is Level.CRITICAL:
                run.stepped_in.add(mark.signature or "")
                run.tools.add(mark.tool or "")
        if self._whole is not None:
            for mark in self._whole.feed(event):
                if mark.kind is Kind.BLOCK and mark.signature is not None:
                    self._met.setdefault((mark.signature, mark.tool or ""), []).append(mark)
        if isinstance(event, Turn):
            self._turn(run, event)
        elif isinstance(event, Result):
            self._result(run, event)

    def finish(self) -> list[NearMiss]:
        """Return what was found, by run, the tightest relaxation first; nothing follows."""
        found: list[NearMiss] = []
        for run in self._runs.values():
            for key, lane in list(run.lanes.items()):
                self._end(run, key[0], key[1], lane)
            for period, lane in run.cycling.items():
                self._end_cycle(run, period, lane)
            found += _apart(run.ended)
        return sorted([*found, *self._over_runs()], key=lambda each: (each.run, each.first_call))

    # --- while it is replayed

    def _turn(self, run: _Run, turn: Turn) -> None:
        run.tokens += turn.usage.total
        run.cost_usd += turn.usage.cost_usd
        if not (turn.calls and turn.stored):
            return
        absent = {each.position for each in turn.absent}
        numbers = [run.calls + place for place in range(turn.stored_calls) if place not in absent]
        spent = (run.tokens, run.cost_usd)
        run.asked = [
            _Asked(number, turn.where.line, self._identifier.call(call), spent)
            for number, call in zip(numbers, turn.calls, strict=True)
        ]
        run.calls += turn.stored_calls
        run.calls_of = turn.calls

    def _result(self, run: _Run, result: Result) -> None:
        if result.index >= len(run.asked):
            return
        asked, call, outcome = run.asked[result.index], run.calls_of[result.index], result.outcome
        known = asked.known
        judged = self._identifier.outcome(known.tool, call, outcome)
        if judged.identity is None:
            return
        exact = (known.signature, judged.identity)
        self._cycle(run, asked, exact)
        value = compared(known.tool, call.arguments, outcome, self._rules).value
        came = Masked(value)
        again = known.signature in run.seen
        run.seen.pop(known.signature, None)
        run.seen[known.signature] = None
        if len(run.seen) > MOST_LANES:
            del run.seen[next(iter(run.seen))]
        self._add(run, Relaxation.OUTCOMES, known.signature, came, asked, exact, came.numbers)
        if not again or (Relaxation.ARGUMENTS, known.signature) in run.lanes:
            arguments = Masked(known.arguments)
            key = arguments.identity + known.tool.encode("utf-8", "surrogatepass")
            self._add(run, Relaxation.ARGUMENTS, key, came, asked, exact, arguments.numbers + came.numbers)
        tool = known.tool.encode("utf-8", "surrogatepass")
        if outcome.error is not None or outcome.is_error or judged.failure is not None:
            self._add(run, Relaxation.SAME_ERROR, tool, came, asked, exact, came.numbers)
        elif lane := run.lanes.pop((Relaxation.SAME_ERROR, tool), None):
            self._end(run, Relaxation.SAME_ERROR, tool, lane)

    def _add(
        self,
        run: _Run,
        relaxation: Relaxation,
        key: bytes,
        came: Masked,
        asked: _Asked,
        exact: tuple[bytes, bytes],
        numbers: tuple[float, ...],
    ) -> None:
        lane = run.lanes.pop((relaxation, key), None)
        if lane is not None and lane.outcome != came.identity:
            self._end(run, relaxation, key, lane)
            lane = None
        if lane is None:
            lane = _Lane(came.identity)
        run.lanes[relaxation, key] = lane
        lane.add(asked, exact, numbers, self._threshold)
        if len(run.lanes) > 3 * MOST_LANES:
            oldest = next(iter(run.lanes))
            self._end(run, *oldest, run.lanes.pop(oldest))

    def _cycle(self, run: _Run, asked: _Asked, exact: tuple[bytes, bytes]) -> None:
        """Follow the cycles: each call compared with the one a period before it."""
        for period in CYCLES:
            before = run.recent[-period] if len(run.recent) >= period else None
            lane = run.cycling.get(period)
            if before is None or before[:2] != exact:
                if lane is not None:
                    self._end_cycle(run, period, run.cycling.pop(period))
                continue
            if lane is None:
                lane = run.cycling[period] = _Lane(b"")
                for each in list(run.recent)[-period:]:
                    lane.add(each[2], each[:2], (), self._threshold)
            lane.add(asked, exact, (), self._threshold)
        run.recent.append((*exact, asked))

    # --- what ends

    def _end(self, run: _Run, relaxation: Relaxation, key: bytes, lane: _Lane) -> None:
        if lane.calls < self._threshold or not lane.varied or progresses(list(lane.steps)):
            return
        self._miss(run, relaxation, lane, (lane.tool,), lane.exact[0] if lane.exact else b"")

    def _end_cycle(self, run: _Run, period: int, lane: _Lane) -> None:
        if lane.calls < max(self._threshold, 3 * period):
            return
        turn = list(run.recent)[-period:]
        if any(_repeats([each[:2] for each in turn], shorter) for shorter in range(1, period)):
            return
        tools = tuple(dict.fromkeys(each[2].known.tool for each in turn))
        self._miss(run, Relaxation.CYCLE, lane, tools, b"", period)

    def _miss(
        self,
        run: _Run,
        relaxation: Relaxation,
        lane: _Lane,
        tools: tuple[str, ...],
        signature: bytes,
        period: int = 1,
    ) -> None:
        if signature.hex()[:12] in run.stepped_in:
            return
        if relaxation is not Relaxation.OUTCOMES and run.tools.intersection(tools):
            return
        first, last = lane.asked[0], lane.asked[-1]
        at = lane.asked[1] if len(lane.asked) > 1 else first
        run.ended.append(
            NearMiss(
                relaxation,
                run.number,
                tools,
                lane.calls,
                first[0],
                last[0],
                first[1],
                last[1],
                max(0, last[2][0] - at[2][0]),
                max(0.0, last[2][1] - at[2][1]),
                period,
            )
        )

    def _over_runs(self) -> list[NearMiss]:
        """Return what one scope over all runs would have stepped into, where no run by itself was."""
        found: list[NearMiss] = []
        for (signature, tool), marks in self._met.items():
            runs = {mark.run for mark in marks}
            first, last = marks[0], marks[-1]
            if self._runs[first.run].stepped_in or any(signature in run.stepped_in for run in self._runs.values()):
                continue
            found.append(
                NearMiss(
                    Relaxation.ONE_SCOPE,
                    self._runs[first.run].number,
                    (tool,),
                    (first.count or 0) + len(marks),
                    first.call if first.call is not None else -1,
                    last.call if last.call is not None and len(runs) == 1 else -1,
                    first.where.line,
                    last.where.line,
                    0,
                    0.0,
                )
            )
        return found


def _repeats(turn: Sequence[tuple[bytes, bytes]], period: int) -> bool:
    """Say whether a cycle is a shorter one several times over."""
    return len(turn) % period == 0 and all(each == turn[place % period] for place, each in enumerate(turn))


_ORDER: Final = {relaxation: place for place, relaxation in enumerate(Relaxation)}


def _apart(found: Sequence[NearMiss]) -> list[NearMiss]:
    """Return near misses of one run without those that lie for the most part within a tighter one."""
    kept: list[NearMiss] = []
    for each in sorted(found, key=lambda each: (_ORDER[each.relaxation], -each.calls, each.first_call)):
        if not any(_overlap(each, other) for other in kept):
            kept.append(each)
    return kept


def _overlap(one: NearMiss, other: NearMiss) -> bool:
    shared = min(one.last_call, other.last_call) - max(one.first_call, other.first_call) + 1
    return 2 * shared > one.last_call - one.first_call + 1
