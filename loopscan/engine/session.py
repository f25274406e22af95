"""The engine of one session: events in, marks out.

Everything happens in the order of the events. A call that the engine vetoes leaves no outcome, and
what a run does after its end is not reached; in observe mode nothing is vetoed and nothing ends,
every verdict that the recorded calls would have met is marked all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from loopscan.engine import sentences
from loopscan.engine.detectors import Counts, Proposal, Verdict, Warnings, decide, measure
from loopscan.engine.guards import (
    PASSED,
    CallOrder,
    Failure,
    Fared,
    IdenticalErrorGuard,
    PostCompactionGuard,
    UnknownToolGuard,
)
from loopscan.engine.history import History, Scope
from loopscan.engine.identify import ByContent, Identified, Identifier
from loopscan.engine.records import Record
from loopscan.engine.streaks import Projection
from loopscan.events import (
    AbsentCall,
    Call,
    Compaction,
    Fate,
    Json,
    Result,
    RunEnded,
    SessionEvent,
    Turn,
    UnknownToolStopped,
    UserMessage,
    Where,
)
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.policy import Policy


@dataclass(slots=True)
class Slot:
    """One call of a batch, as the engine sees it."""

    call: Call | AbsentCall
    number: int | None
    """Its number within the run; ``None`` for one that was not stored."""
    identified: Identified
    record: Record | None = None
    vetoed: bool = False

    @property
    def tool(self) -> str:
        """The name that the engine goes by."""
        return self.identified.tool

    @property
    def signature(self) -> bytes:
        """The identity of the call."""
        return self.identified.signature

    @property
    def arguments(self) -> Json:
        """What is compared of the call's arguments."""
        return self.identified.arguments


@dataclass(slots=True)
class Batch:
    """The calls of one assistant message."""

    index: int
    where: Where
    slots: list[Slot]
    """In the order in which the model asked for them."""
    calls: list[int]
    """For each of ``Turn.calls`` its place in ``slots``."""
    order: CallOrder


@dataclass(slots=True)
class RunState:
    """What the engine knows of one run."""

    key: str
    run_id: str | None
    guard: PostCompactionGuard
    errors: IdenticalErrorGuard | None
    unknown: UnknownToolGuard = field(default_factory=UnknownToolGuard)
    batches: int = 0
    calls: int = 0
    blocks: int = 0
    """Critical verdicts so far; the second one ends the run where batches are admitted as a whole."""
    suppressed_warnings: int = 0
    ended: Kind | None = None
    """What ended the run in the replay, if anything did."""
    ended_at: Where | None = None
    batch: Batch | None = None
    """The latest batch, while results of it may come."""
    armed_from: int = 0
    """The batch that came next when the post-compaction guard was armed."""


#: Says what becomes of a proposed call of a run, by what the detectors count.
Judging: TypeAlias = Callable[[RunState, Slot, Counts], Verdict | None]


class SessionEngine:
    """Replays one session. Feed it the session's events in order; each returns the marks it makes."""

    def __init__(
        self,
        policy: Policy,
        *,
        mode: Mode = Mode.ENFORCE,
        scope: ScopeRule = ScopeRule.RUN,
        arm: Arm = Arm.AUTO,
        identifier: Identifier | None = None,
        judging: Judging | None = None,
    ) -> None:
        """Make a fresh engine. ``identifier`` and ``judging`` go before the content and the rules of the ruleset."""
        self.policy = policy
        self.runs: dict[str, RunState] = {}
        self._ruleset = policy.ruleset
        self._identifier = identifier or ByContent(policy.ruleset)
        self._judging = judging or (lambda run, slot, counts: decide(counts, policy))
        self._enforce = mode is Mode.ENFORCE
        self._scope_rule = scope
        self._arm = arm
        self.history = History(policy.history_size)
        self.warnings = Warnings()

    def feed(self, event: SessionEvent) -> list[Mark]:
        """Take in the next event and return the marks that it makes, in order."""
        match event:
            case Turn():
                return self._turn(self.run(event.run, event.run_id), event)
            case Result():
                return self._result(self.run(event.run), event)
            case UserMessage():
                run = self.run(event.run, event.run_id)
                if run.errors and not event.retry:
                    run.errors.reset()
            case Compaction():
                return self._compaction(event)
            case UnknownToolStopped():
                return self._unknown_tool_stopped(self.run(event.run, event.run_id), event)
            case RunEnded():
                return self._run_ended(self.run(event.run), event)
            case _:
                pass
        return []

    def run(self, key: str, run_id: str | None = None) -> RunState:
        """Return the state of a run, new at its first mention."""
        state = self.runs.get(key)
        if state is None:
            limit = self._ruleset.identical_errors
            state = self.runs[key] = RunState(
                key,
                run_id,
                PostCompactionGuard(self.policy.guard_window),
                IdenticalErrorGuard(limit) if limit else None,
            )
        elif state.run_id is None:
            state.run_id = run_id
        return state

    def pass_over(self, key: str, messages: int, calls: int, recorded: int) -> None:
        """Take in messages of a run of whose calls it is known that nothing depends on what they ask for.

        Those that are ``recorded`` in the history differ from all other calls; no outcome is taken of any.
        """
        run = self.run(key)
        if run.ended:
            return
        run.batch = None
        run.unknown.reset()
        if run.errors:
            run.errors.reset()
        run.calls, run.batches = run.calls + calls, run.batches + messages
        if self.policy.enabled and recorded:
            self.history.pass_over(self.scope_id(run), recorded)

    # --- assistant messages

    def _turn(self, run: RunState, turn: Turn) -> list[Mark]:
        if run.ended:
            return []
        if not turn.calls and not turn.absent:
            if not turn.failed:
                run.unknown.reset()
            return []
        batch = self._open_batch(run, turn)
        marks: list[Mark] = []
        if turn.calls:
            run.unknown.reset()
            marks += self._admit(run, batch)
        else:
            attempts = run.unknown.attempt({slot.tool for slot in batch.slots})
            if attempts > self.policy.unknown_tool:
                return self._take_out(run, batch, attempts)
        for place, slot in enumerate(batch.slots):
            if isinstance(slot.call, AbsentCall):
                error = self._identifier.absence(slot.call)
                failure = Failure(slot.signature, error, lossy=slot.call.position is None)
                marks += self._fared(run, batch, place, failure)
        return marks

    def _open_batch(self, run: RunState, turn: Turn) -> Batch:
        """Make a batch of an assistant message: its calls and those of absent tools in the model's order."""
        calls: Sequence[Call | AbsentCall] = list(_in_order(turn)) if turn.absent else turn.calls
        slots: list[Slot] = []
        number = run.calls
        for call in calls:
            numbered = isinstance(call, Call) or call.position is not None
            slots.append(Slot(call, number if numbered else None, self._identifier.call(call)))
            number += numbered
        places = [place for place, slot in enumerate(slots) if isinstance(slot.call, Call)]
        batch = Batch(run.batches, turn.where, slots, places, CallOrder(len(slots)))
        if turn.stored:
            run.batches += 1
            run.calls = number
            run.batch = batch
        return batch

    def _admit(self, run: RunState, batch: Batch) -> list[Mark]:
        """Judge the calls of a batch and record those that are let through."""
        proposed = [place for place in batch.calls if self._is_proposed(batch.slots[place].call)]
        marks: list[Mark] = []
        if self._ruleset.batch_admission:
            trigger = self._judge_batch(run, batch, proposed, marks)
            if trigger is not None and self._enforce:
                self._veto(run, batch, proposed, batch.slots[trigger].signature)
                return marks
        for place, slot in enumerate(batch.slots):
            call = slot.call
            if isinstance(call, AbsentCall):
                continue
            if not self._is_proposed(call):
                if call.fate is Fate.NOT_RUN:
                    marks += self._fared(run, batch, place, PASSED)
                continue
            if not self._ruleset.batch_admission and self._judge_call(run, batch, place, marks):
                slot.vetoed = True
                marks += self._fared(run, batch, place, PASSED)
                continue
            unknown = call.fate in (Fate.LOST, Fate.VETOED)
            if self.policy.enabled:
                slot.record = self.history.append(slot.tool, slot.signature, self.scope_id(run), settled=unknown)
            if unknown:
                marks += self._fared(run, batch, place, None)
        return marks

    def _is_proposed(self, call: Call | AbsentCall) -> bool:
        """Whether a call reached the loop detection."""
        if isinstance(call, AbsentCall) or call.fate is Fate.NOT_RUN:
            return False
        return call.fate is not Fate.REJECTED or self._ruleset.record_rejections

    def _judge_batch(self, run: RunState, batch: Batch, proposed: list[int], marks: list[Mark]) -> int | None:
        """Judge a batch before any of it runs; return the place of the call that vetoes it all, if one does."""
        if not self.policy.enabled:
            return None
        scope = self.history.scope(self.scope_id(run))
        ahead = scope.projection()
        for place in proposed:
            slot = batch.slots[place]
            found = self._judge(run, slot, scope, ahead)
            if found and found.critical:
                marks.append(self._verdict(run, batch, slot, Kind.BLOCK, found, blocked=len(proposed)))
                run.blocks += 1
                if run.blocks == 2:
                    marks.append(self._verdict(run, batch, slot, Kind.RUN_END, found))
                    self._end(run, Kind.RUN_END, batch.where)
                return place
            if found:
                self._warn(run, batch, slot, found, marks)
            ahead.add(slot.tool, slot.signature)
        return None

    def _judge_call(self, run: RunState, batch: Batch, place: int, marks: list[Mark]) -> bool:
        """Judge one call as it starts; return whether it is vetoed."""
        if not self.policy.enabled:
            return False
        slot = batch.slots[place]
        scope = self.history.scope(self.scope_id(run))
        found = self._judge(run, slot, scope, scope.projection())
        if found and found.critical:
            marks.append(self._verdict(run, batch, slot, Kind.BLOCK, found, blocked=1))
            run.blocks += 1
            return self._enforce
        if found:
            self._warn(run, batch, slot, found, marks)
        return False

    def _veto(self, run: RunState, batch: Batch, proposed: list[int], trigger: bytes) -> None:
        """Veto a batch: each call with the triggering signature is recorded, the others leave no trace."""
        for slot in batch.slots:
            slot.vetoed = True
        for place in proposed:
            slot = batch.slots[place]
            if slot.signature == trigger:
                self.history.append(slot.tool, slot.signature, self.scope_id(run), veto=True)
        batch.order = CallOrder(0)  # vetoes leave the streak of identical errors as it is

    def _judge(self, run: RunState, slot: Slot, scope: Scope, ahead: Projection) -> Verdict | None:
        call = slot.identified
        counts = measure(Proposal(call.tool, call.signature, call.known_poll), scope, ahead, self._ruleset)
        found = self._judging(run, slot, counts)
        if found and found.rests_on and scope.is_lossy(*found.rests_on):
            found = replace(found, lossy=True)
        return found

    def scope_id(self, run: RunState) -> str | None:
        """Return what tells the records of a run from those of others; ``None``: nothing does."""
        if self._scope_rule is ScopeRule.SESSION:
            return None
        return f"key {run.key}" if run.run_id is None else f"id {run.run_id}"

    # --- outcomes

    def _result(self, run: RunState, event: Result) -> list[Mark]:
        batch = run.batch
        if batch is None or event.index >= len(batch.calls):
            return []
        place = batch.calls[event.index]
        slot = batch.slots[place]
        call = slot.call
        if slot.vetoed or not isinstance(call, Call) or call.fate not in (Fate.RAN, Fate.REJECTED):
            return []
        outcome = event.outcome
        rejected = call.fate is Fate.REJECTED
        judged = self._identifier.outcome(slot.tool, call, outcome)
        if slot.record:
            self.history.settle(slot.record, judged, lossy=outcome.lossy, passed_over=rejected)
        if run.ended:  # the rest of a batch that had started still finishes
            return []
        marks: list[Mark] = []
        if judged.identity is not None and not rejected and run.guard.observe(slot.signature, judged.identity):
            marks.append(self._abort(run, batch, slot, event.where, judged.identity, lossy=outcome.lossy))
        failed = outcome.error is not None or outcome.is_error
        failure = Failure(slot.signature, judged.identity or b"", outcome.lossy) if failed else None
        return marks + self._fared(run, batch, place, failure)

    def _fared(self, run: RunState, batch: Batch, place: int, fared: Fared) -> list[Mark]:
        """Tell the identical-error guard, which takes a batch in the model's call order."""
        if run.errors is None or run.ended:
            return []
        marks: list[Mark] = []
        for ready, how in batch.order.put(place, fared):
            if how is PASSED:
                continue
            if how is None:
                run.errors.reset()
            elif run.errors.failure(how):
                slot = batch.slots[ready]
                marks.append(
                    self._mark(
                        run,
                        batch,
                        slot,
                        Kind.ERROR_STREAK_END,
                        Detector.IDENTICAL_ERROR,
                        Level.CRITICAL,
                        (run.errors.count, run.errors.limit),
                        sentences.error_streak(slot.tool, run.errors.count, arguments_known=slot.number is not None),
                        outcome=how.error,
                        lossy=run.errors.lossy,
                    )
                )
                self._end(run, Kind.ERROR_STREAK_END, batch.where)
                break
        return marks

    # --- compaction

    def _compaction(self, event: Compaction) -> list[Mark]:
        if event.run is None or not event.in_run or self.policy.enabled is False or self._arm is Arm.NEVER:
            return []
        if self._arm is Arm.AUTO and self._ruleset.arms_on_hook_only and event.from_hook is not True:
            return []
        run = self.run(event.run)
        if run.ended:
            return []
        run.guard.arm()
        run.armed_from = run.batches
        return [
            Mark(
                run=run.key,
                kind=Kind.GUARD_ARMED,
                detector=Detector.COMPACTION_LOOP,
                level=Level.INFO,
                count=None,
                threshold=run.guard.window,
                batch=run.batches,
                where=event.where,
                message=sentences.guard_armed(run.guard.window),
            )
        ]

    def _abort(
        self, run: RunState, batch: Batch, slot: Slot, where: Where, outcome: bytes | None, *, lossy: bool
    ) -> Mark:
        self._end(run, Kind.COMPACTION_ABORT, where)
        window = run.guard.window
        return self._mark(
            run,
            batch,
            slot,
            Kind.COMPACTION_ABORT,
            Detector.COMPACTION_LOOP,
            Level.CRITICAL,
            (window, window),
            sentences.compaction_abort(slot.tool, window),
            where=where,
            outcome=outcome,
            lossy=lossy,
        )

    def _run_ended(self, run: RunState, event: RunEnded) -> list[Mark]:
        """Infer an abort that the record cannot show: 2026.9 stores nothing after it, not even the result."""
        batch, run.batch = run.batch, None
        if not event.unanswered or run.ended or batch is None or batch.index < run.armed_from:
            return []
        lost = [s for s in batch.slots if isinstance(s.call, Call) and s.call.fate is Fate.LOST and not s.vetoed]
        if not lost or not run.guard.would_complete([slot.signature for slot in lost]):
            return []
        last = lost[run.guard.remaining - 1]
        return [self._abort(run, batch, last, batch.where, None, lossy=True)]

    # --- absent tools

    def _take_out(self, run: RunState, batch: Batch, attempts: int) -> list[Mark]:
        for slot in batch.slots:
            slot.vetoed = True
        return [self._unknown_tool_stop(run, batch.index, batch.where, batch.slots[0].tool, attempts, batch.slots)]

    def _unknown_tool_stopped(self, run: RunState, event: UnknownToolStopped) -> list[Mark]:
        """Mark where the live guard stepped in: it stands for the attempt that it replaced."""
        if run.ended:
            return []
        tool = self._identifier.tool(event.tool)
        attempts = run.unknown.attempt({tool})
        return [self._unknown_tool_stop(run, run.batches, event.where, tool, attempts, [])]

    def _unknown_tool_stop(
        self, run: RunState, batch: int, where: Where, tool: str, attempts: int, taken_out: list[Slot]
    ) -> Mark:
        self._end(run, Kind.UNKNOWN_TOOL_STOP, where)
        stored = [slot for slot in taken_out if slot.number is not None]
        return Mark(
            run=run.key,
            kind=Kind.UNKNOWN_TOOL_STOP,
            detector=Detector.UNKNOWN_TOOL_GUARD,
            level=Level.CRITICAL,
            count=attempts,
            threshold=self.policy.unknown_tool,
            batch=batch,
            call=stored[0].number if stored else None,
            tool=tool,
            tool_call_id=taken_out[0].call.id if taken_out else None,
            where=where,
            signature=_digest(stored[0].signature) if stored else None,
            message=sentences.unknown_tool_stop(tool, attempts),
            blocked_calls=len(taken_out) if self._enforce else 0,
        )

    # --- marks

    def _warn(self, run: RunState, batch: Batch, slot: Slot, found: Verdict, marks: list[Mark]) -> None:
        if self.warnings.emit(self.scope_id(run), found.key, found.count):
            marks.append(self._verdict(run, batch, slot, Kind.WARNING, found))
        else:
            run.suppressed_warnings += 1

    def _verdict(
        self, run: RunState, batch: Batch, slot: Slot, kind: Kind, found: Verdict, *, blocked: int = 0
    ) -> Mark:
        return self._mark(
            run,
            batch,
            slot,
            kind,
            found.detector,
            found.level,
            (found.count, found.threshold),
            sentences.of(kind, found, slot.tool),
            outcome=found.outcome,
            lossy=found.lossy,
            paired_tool=found.paired_tool,
            blocked_calls=blocked if self._enforce else 0,
        )

    def _mark(
        self,
        run: RunState,
        batch: Batch,
        slot: Slot,
        kind: Kind,
        detector: Detector,
        level: Level,
        reached: tuple[int, int],
        message: str,
        *,
        where: Where | None = None,
        outcome: bytes | None = None,
        lossy: bool = False,
        paired_tool: str | None = None,
        blocked_calls: int = 0,
    ) -> Mark:
        """Return a mark at one call; ``reached`` is the count and the threshold that it met."""
        count, threshold = reached
        return Mark(
            run=run.key,
            kind=kind,
            detector=detector,
            level=level,
            count=count,
            threshold=threshold,
            batch=batch.index,
            call=slot.number,
            tool=slot.tool,
            paired_tool=paired_tool,
            tool_call_id=slot.call.id,
            where=where or batch.where,
            signature=_digest(slot.signature),
            outcome=_digest(outcome),
            lossy=lossy,
            message=message,
            blocked_calls=blocked_calls,
        )

    def _end(self, run: RunState, kind: Kind, where: Where) -> None:
        if self._enforce:
            run.ended, run.ended_at = kind, where


def _in_order(turn: Turn) -> Iterator[Call | AbsentCall]:
    """Yield the calls of an assistant message and those of absent tools, in the model's order."""
    absent = {call.position: call for call in turn.absent if call.position is not None}
    existing = iter(turn.calls)
    for place in range(turn.stored_calls):
        found = absent.get(place) or next(existing, None)
        if found is not None:
            yield found
    yield from existing
    yield from (call for call in turn.absent if call.position is None)


def _digest(value: bytes | None) -> str | None:
    """Return the first 12 hex digits of an identity: enough to tell loops apart."""
    return value.hex()[:12] if value else None
