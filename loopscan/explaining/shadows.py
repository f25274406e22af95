"""Shadows: engines beside the one that decides, each with one thing otherwise.

What a shadow blocks and the engine does not is so because of that one thing: no rule is told twice to find it out.
Every shadow has the detectors on, and observes: it marks whatever the recorded calls would meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from loopscan.engine.detectors import Counts, Verdict, decide
from loopscan.engine.guards import Failure, IdenticalErrorGuard
from loopscan.engine.identify import Identifier
from loopscan.engine.session import RunState, SessionEngine, Slot
from loopscan.events import Fate, Outcome, Result, SessionEvent, Turn
from loopscan.explaining.identities import EqualArguments, EqualOutcomes, Masked
from loopscan.explaining.repetitions import MOST_COUNTED
from loopscan.marks import Kind, Level, Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.policy import Policy

#: A history that holds more than any loop should be diluted by.
LONG_HISTORY = 1000


class Reason(StrEnum):
    """Why a repetition was not stepped into."""

    DETECTION_OFF = "detection_off"
    DETECTOR_OFF = "detector_off"
    GUARD_NOT_ARMED = "guard_not_armed"
    GUARD_NOT_MET = "guard_not_met"
    HIDDEN = "hidden"
    SPLIT_BY_RUNS = "split_by_runs"
    DILUTED = "diluted"
    REJECTED = "rejected"
    RESULT_CHANGED = "result_changed"
    NO_OUTCOME = "no_outcome"
    ARGUMENTS_CHANGED = "arguments_changed"
    BOTH_CHANGED = "arguments_and_result_changed"
    GUARD_RESET = "guard_reset"
    BELOW_THRESHOLD = "below_threshold"
    NOTHING_REPEATS = "nothing_repeats"


@dataclass(frozen=True, slots=True)
class Met:
    """Where a shadow would have stepped in, or warned, in one run."""

    mark: Mark
    reaches_back: int = 0
    """How many records the history has to hold for the count, where that is of the history."""


@dataclass(slots=True)
class Shadow:
    """One engine with one thing otherwise."""

    reason: Reason
    engine: SessionEngine
    met: dict[str, Met] = field(default_factory=dict)
    """By run, the first critical mark."""
    longest: dict[str, int] = field(default_factory=dict)
    """By run, the highest count of a critical mark."""
    warned: dict[str, Met] = field(default_factory=dict)
    """By run, the first warning."""
    stuck: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By run, the most calls without progress before a call, and the tool that was called."""
    answers: bool = False
    """Calls without outcome, and those that did not run, are given one."""
    loose: bool = False
    """More is the same than is: its warnings, which go by calls whatever came of them, mean nothing."""
    over_arguments: bool = False
    """Calls with other arguments are the same: that a few of them fail alike is no loop yet."""
    _reaches: dict[tuple[str, int | None], int] = field(default_factory=dict)
    """For the calls of the latest event, how many records hold what their verdict counts."""
    _stuck: dict[str, bytes] = field(default_factory=dict)
    """By run, the signature whose own streak its highest count is of."""

    @classmethod
    def of(
        cls,
        reason: Reason,
        policy: Policy,
        arm: Arm,
        scope: ScopeRule,
        identifier: Identifier | None = None,
        *,
        answers: bool = False,
        patient: bool = False,
    ) -> Shadow:
        """Return a shadow that goes by ``policy``."""
        made: Shadow

        def judging(run: RunState, slot: Slot, counts: Counts) -> Verdict | None:
            found = decide(counts, policy)
            if counts.stuck > made.stuck.get(run.key, (0, ""))[0]:
                made.stuck[run.key] = counts.stuck, slot.tool
            if found is not None and run.key not in (made.met if found.critical else made.warned):
                made._reaches[run.key, slot.number] = _reach(made.engine, run, slot, counts, found)
            critical = found is not None and found.critical
            if found is not None and critical and found.count == counts.own >= made.longest.get(run.key, 0):
                made._stuck[run.key] = slot.signature
            return found

        kind = PatientEngine if patient else SessionEngine
        engine = kind(policy, mode=Mode.OBSERVE, scope=scope, arm=arm, identifier=identifier, judging=judging)
        over_arguments = isinstance(identifier, EqualArguments | Masked)
        made = cls(reason, engine, answers=answers, loose=identifier is not None, over_arguments=over_arguments)
        return made

    def feed(self, event: SessionEvent) -> None:
        """Take in the next event of the session."""
        for each in _answered(event) if self.answers else (event,):
            self._reaches.clear()
            for mark in self.engine.feed(each):
                met = Met(mark, self._reaches.get((mark.run, mark.call), 0))
                if mark.kind is Kind.ERROR_STREAK_END and self.over_arguments:
                    continue
                if mark.level is Level.CRITICAL:
                    self.longest[mark.run] = max(self.longest.get(mark.run, 0), mark.count or 0)
                    self.met.setdefault(mark.run, met)
                elif mark.kind is Kind.WARNING and not self.loose:
                    self.warned.setdefault(mark.run, met)
            if isinstance(each, Result) and each.run in self._stuck:
                self._count_in(each.run)

    def _count_in(self, key: str) -> None:
        """Count what has just come back in with the streak that it may belong to: counts are of earlier calls."""
        scope = self.engine.history.scope(self.engine.scope_id(self.engine.run(key)))
        count = scope.no_progress(self._stuck[key], scope.projection())
        self.longest[key] = max(self.longest[key], count)


@dataclass(slots=True)
class PatientGuard(IdenticalErrorGuard):
    """Counts identical failures of a run whatever comes between them."""

    seen: Counter[tuple[bytes, bytes]] = field(default_factory=Counter)

    def reset(self) -> None:
        """Go on."""

    def failure(self, failure: Failure) -> bool:
        """Take in a failure; return whether there were as many as end a run if they come in a row."""
        if len(self.seen) > MOST_COUNTED:
            self.seen.clear()
        self.seen[failure.signature, failure.error] += 1
        self.count = self.seen[failure.signature, failure.error]
        self.lossy = failure.lossy
        return self.count >= self.limit


class PatientEngine(SessionEngine):
    """An engine whose guard against identical errors nothing resets."""

    def run(self, key: str, run_id: str | None = None) -> RunState:
        """Return the state of a run, new at its first mention."""
        state = super().run(key, run_id)
        if state.errors is not None and not isinstance(state.errors, PatientGuard):
            state.errors = PatientGuard(state.errors.limit)
        return state


def _reach(engine: SessionEngine, run: RunState, slot: Slot, counts: Counts, found: Verdict) -> int:
    """Return how many of the newest records hold what a count is made of."""
    scope = engine.scope_id(run)
    alike = {slot.signature, counts.other} if counts.swings == found.count else {slot.signature}
    left = found.count - (len(alike) > 1)
    reach = 0
    for record in reversed(engine.history.records):
        reach += 1
        left -= record.run_id == scope and (found.across or record.signature in alike)
        if left <= 0:
            break
    return reach


def _answered(event: SessionEvent) -> Iterator[SessionEvent]:
    """Yield an event with outcomes for the calls of which none is known, or that did not run."""
    if not isinstance(event, Turn):
        yield event
        return
    lost = [place for place, call in enumerate(event.calls) if call.fate in (Fate.LOST, Fate.NOT_RUN)]
    calls = tuple(replace(call, fate=Fate.RAN) if place in lost else call for place, call in enumerate(event.calls))
    yield replace(event, calls=calls)
    for place in lost:
        yield Result(event.run, event.where, place, Outcome(None))


def shadows_of(policy: Policy, scope: ScopeRule, arm: Arm) -> list[Shadow]:
    """Return the shadows of an engine, in the order in which they are asked: the smallest change first."""
    rules = policy.ruleset
    on = replace(policy, enabled=True, generic_repeat=True, known_poll=True, ping_pong=True)
    made: list[tuple[Reason, Policy, ScopeRule, dict[str, Any]]] = []
    """Each with what it goes by, the scope, and what else is otherwise."""
    if policy.enabled is not True:
        made.append((Reason.DETECTION_OFF, replace(policy, enabled=True), scope, {}))
    if not (policy.generic_repeat and policy.known_poll and policy.ping_pong):
        made.append((Reason.DETECTOR_OFF, on, scope, {}))
    if arm is Arm.AUTO and rules.arms_on_hook_only:
        made.append((Reason.GUARD_NOT_ARMED, on, scope, {"arm": Arm.ALWAYS}))
    made.append((Reason.HIDDEN, replace(on, ping_pong=False), scope, {}))
    if scope is ScopeRule.RUN:
        made.append((Reason.SPLIT_BY_RUNS, on, ScopeRule.SESSION, {}))
    made.append((Reason.DILUTED, replace(on, history_size=max(LONG_HISTORY, policy.history_size)), scope, {}))
    if not rules.record_rejections:
        recording = replace(on, ruleset=replace(rules, record_rejections=True))
        made.append((Reason.REJECTED, recording, scope, {}))
    made += [
        (Reason.NO_OUTCOME, on, scope, {"answers": True}),
        (Reason.RESULT_CHANGED, on, scope, {"identifier": EqualOutcomes(rules)}),
        (Reason.NO_OUTCOME, on, scope, {"identifier": EqualOutcomes(rules), "answers": True}),
        (Reason.ARGUMENTS_CHANGED, on, scope, {"identifier": EqualArguments(rules)}),
        (Reason.BOTH_CHANGED, on, scope, {"identifier": Masked(rules)}),
    ]
    if rules.identical_errors is not None:
        made.append((Reason.GUARD_RESET, on, scope, {"patient": True}))
    return [Shadow.of(reason, each, scope=at, **{"arm": arm, **more}) for reason, each, at, more in made]
