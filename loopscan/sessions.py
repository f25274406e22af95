"""One session on its way through the engine: what its report says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from loopscan.configfile import agent_key
from loopscan.engine.detectors import Counts, Verdict, decide
from loopscan.engine.identify import ByContent, Identifier, Once
from loopscan.engine.session import Judging, RunState, SessionEngine, Slot
from loopscan.events import (
    AbsentCall,
    Compaction,
    Fate,
    Recorded,
    RunEnded,
    SessionEnded,
    SessionEvent,
    SessionStarted,
    Turn,
    UnknownToolStopped,
    UserMessage,
    Where,
)
from loopscan.marks import Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.policy import Policy
from loopscan.report import RunReport, SessionReport, mark_dict
from loopscan.timeline import Timeline

if TYPE_CHECKING:
    from loopscan.nearmisses.watch import NearMisses
    from loopscan.tuning.profiles import ProfileBuilder


@dataclass(frozen=True, slots=True)
class Options:
    """What every session is replayed with."""

    policy: Policy
    agents: Mapping[str, Policy] = field(default_factory=dict)
    """Policies of agents that have a block of their own, by :func:`agent_key`; they go before ``policy``."""
    mode: Mode = Mode.ENFORCE
    scope: ScopeRule = ScopeRule.RUN
    arm: Arm = Arm.AUTO
    tool_map: Mapping[str, str] = field(default_factory=dict)
    """Tools by the names that the engine's rules know, over what readers declare."""
    previews: bool = True
    expected: Mapping[tuple[str, int], Mapping[int, Sequence[str]]] = field(default_factory=dict)
    """Marks that somebody expected and the replay does not make, in words: by session and run, then by batch."""

    profiles: bool = False
    """Whether to keep what answers other settings; see :mod:`loopscan.tuning.profiles`."""
    on_for: Sequence[str] = ()
    """The agents whose own block has detection on, by :func:`agent_key`, whoever the sessions are of."""

    near_misses: bool = False
    """Whether to look for repetitions that the rules cannot see; see :mod:`loopscan.nearmisses`."""

    def own_policy(self, agent: str | None) -> Policy | None:
        """Return the policy of an agent that has a block of its own."""
        return self.agents.get(agent_key(agent)) if agent is not None else None

    def policy_of(self, agent: str | None) -> Policy:
        """Return the policy that the sessions of an agent are judged with."""
        return self.own_policy(agent) or self.policy

    def engine(
        self, agent: str | None, identifier: Identifier | None = None, judging: Judging | None = None
    ) -> SessionEngine:
        """Return a fresh engine for one session of ``agent``."""
        return SessionEngine(
            self.policy_of(agent),
            mode=self.mode,
            scope=self.scope,
            arm=self.arm,
            identifier=identifier,
            judging=judging,
        )


class Observer(Protocol):
    """Looks on while a session is replayed."""

    def judged(self, run: RunState, slot: Slot, counts: Counts, found: Verdict | None) -> None:
        """Take in what the detectors say of a call, before anything comes of it."""
        ...

    def fed(self, event: SessionEvent, marks: Sequence[Mark]) -> None:
        """Take in an event that the engine has taken in, and the marks that it made."""
        ...


#: Makes the observer of a session from how it started and the engine that replays it.
Observing: TypeAlias = Callable[[SessionStarted, SessionEngine], Observer]


@dataclass(slots=True)
class _Run:
    """One run: its report, its timeline, and how the record says it ended."""

    report: RunReport
    timeline: Timeline
    recorded_ending: str = "completed"


class SessionReplay:
    """Feeds one session to an engine and keeps account of it."""

    def __init__(
        self, source: str, started: SessionStarted, options: Options, observing: Observing | None = None
    ) -> None:
        """Begin the session; what ``observing`` makes looks on."""
        at = started.where.time
        self._report = SessionReport(source, started.session, started.agent, started.model, at, at)
        rules = options.policy.ruleset
        self._identifier = Once(ByContent(rules))
        self._engine = options.engine(started.agent, self._identifier, self._judge if observing else None)
        self._observer = observing(started, self._engine) if observing else None
        self._profile: ProfileBuilder | None = None
        if options.profiles:
            from loopscan.tuning.profiles import Basis, ProfileBuilder

            basis = Basis(rules.name, options.scope, options.arm)
            self._profile = ProfileBuilder(source, started, basis, self._identifier)
        self._near: NearMisses | None = None
        if options.near_misses:
            from loopscan.nearmisses.watch import NearMisses

            policy = options.policy_of(started.agent)
            self._near = NearMisses(policy, self._identifier, options.scope, options.arm)
        self._previews = options.previews
        self._expected = options.expected
        self._runs: dict[str, _Run] = {}

    def feed(self, event: SessionEvent) -> list[Mark]:
        """Take in the next event of the session and return the marks that it makes."""
        self._clock(event.where)
        if event.run is None:
            return []
        self._identifier.forget()
        if self._profile is not None:
            self._profile.feed(event)
        run = self._run(event.run)
        state = self._engine.run(event.run)
        over = state.ended is not None
        marks = self._engine.feed(event)
        run.report.marks += marks
        if self._observer is not None:
            self._observer.fed(event, marks)
        if self._near is not None and not over:
            self._near.feed(event, marks)
        if isinstance(event, Turn):
            run.report.calls += event.stored_calls
            run.report.batches += event.stored_calls > 0
            self._report.model = self._report.model or event.model
            if self._expected and event.stored_calls:
                self._show_expected(run)
        if isinstance(event, Recorded):
            self._report.recorded.append(event)
            run.timeline.recorded(state.batches, event)
        elif over:
            add_not_reached(event, run.report, state)
        else:
            _show(event, marks, run.timeline, state)
        if isinstance(event, RunEnded):
            run.recorded_ending = event.ending.value
            run.timeline.close()
        return marks

    def _judge(self, run: RunState, slot: Slot, counts: Counts) -> Verdict | None:
        """Judge a call as the engine does, and let the observer know."""
        found = decide(counts, self._engine.policy)
        if self._observer is not None:
            self._observer.judged(run, slot, counts, found)
        return found

    def row(self, mark: Mark) -> dict[str, Any]:
        """Return a mark of the session as a row of the report, whatever else is still to come."""
        report = self._report
        return {"source": report.source, **mark_dict(report.session, self._runs[mark.run].report, mark)}

    def finish(self, event: SessionEnded) -> SessionReport:
        """Return the report of the session."""
        self._clock(event.where)
        for key, run in self._runs.items():
            state = self._engine.run(key)
            run.report.run_id = state.run_id
            run.report.outcome = state.ended.value if state.ended else run.recorded_ending
            run.report.suppressed_warnings = state.suppressed_warnings
            run.report.steps = run.timeline.steps()
        self._report.runs = [run.report for run in self._runs.values()]
        self._report.calls = sum(run.calls for run in self._report.runs)
        if self._near is not None:
            self._report.near_misses = self._near.finish()
        if self._profile is not None:
            self._report.profile = self._profile.finish(event.where)
        return self._report

    def _show_expected(self, run: _Run) -> None:
        """Put what was expected at the latest batch into the timeline, before its calls."""
        batch = run.report.batches - 1
        for words in self._expected.get((self._report.session, run.report.run), {}).get(batch, ()):
            run.timeline.expected(batch, words)

    def _run(self, key: str) -> _Run:
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = _Run(RunReport(len(self._runs), None), Timeline(previews=self._previews))
        return run

    def _clock(self, where: Where) -> None:
        time, report = where.time, self._report
        if time is not None:
            report.started = time if report.started is None else min(report.started, time)
            report.ended = time if report.ended is None else max(report.ended, time)


def add_not_reached(event: SessionEvent, report: RunReport, state: RunState) -> None:
    """Count what the run did after its end in the replay; an upper bound of what ending it would have saved."""
    saved = report.not_reached
    # What unstored responses cost is of a whole attempt: nobody knows how much of it came after the end.
    if isinstance(event, UnknownToolStopped) or (isinstance(event, Turn) and event.stored):
        saved.tokens += event.usage.total
        saved.cost_usd += event.usage.cost_usd
        saved.responses += 1
        saved.responses_without_usage += event.usage.total == 0
    if isinstance(event, Turn):
        saved.calls += event.stored_calls
    end = state.ended_at.time if state.ended_at else None
    if event.where.time is not None and end is not None:
        saved.seconds = max(saved.seconds, event.where.time - end)


def _show(event: SessionEvent, marks: list[Mark], timeline: Timeline, state: RunState) -> None:
    """Put an event and its marks into the timeline: a mark stands before the call that it is about."""
    match event:
        case Turn(stored=False):
            for absent in event.absent:
                timeline.call(
                    state.batches, absent.tool, absent.tool.encode("utf-8", "surrogatepass"), None, "absent"
                )
        case Turn() if state.batch and event.stored_calls:
            by_call: dict[int | None, list[Mark]] = {}
            slots = state.batch.slots
            whole = all(slot.vetoed for slot in slots)  # what vetoes a whole batch stands before all of it
            for mark in marks:
                by_call.setdefault(slots[0].number if whole else mark.call, []).append(mark)
            for slot in slots:
                for mark in by_call.pop(slot.number, []):
                    timeline.mark(mark)
                call = slot.call
                timeline.call(state.batch.index, call.tool, slot.signature, slot.arguments, _became(slot))
            marks = [mark for rest in by_call.values() for mark in rest]
        case UserMessage(steering=True):
            timeline.note(state.batches, "a steering message")
        case UserMessage(retry=True):
            timeline.note(state.batches, "the same prompt again")
        case Compaction() if not marks:
            timeline.note(state.batches, "compaction within the run" if event.in_run else "compaction between runs")
        case _:
            pass
    for mark in marks:
        timeline.mark(mark)


def _became(slot: Slot) -> str:
    if slot.vetoed:
        return "blocked"
    if isinstance(slot.call, AbsentCall):
        return "absent"
    return {Fate.NOT_RUN: "not_run", Fate.REJECTED: "rejected"}.get(slot.call.fate, "ran")
