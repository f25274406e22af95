"""Looks on while a session is replayed, and tells of each run why it was stepped into, or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from loopscan.configfile import agent_key
from loopscan.engine.detectors import Counts, Verdict
from loopscan.engine.identify import ByContent, Once
from loopscan.engine.outcomes import compared
from loopscan.engine.session import RunState, SessionEngine, Slot
from loopscan.events import Call, Result, SessionEvent, SessionStarted, Turn
from loopscan.explaining.looks import Look, look
from loopscan.explaining.repetitions import Repeating
from loopscan.explaining.shadows import shadows_of
from loopscan.explaining.silence import Silence, silence_of
from loopscan.explaining.wanted import Wanted
from loopscan.marks import Kind, Level, Mark
from loopscan.sessions import Options


@dataclass(slots=True)
class Explained:
    """One answer: of a call, or of a run that nothing stepped into."""

    source: str
    session: str
    agent: str | None
    run: int
    """Its number within the session."""
    run_id: str | None
    look: Look | None
    mark: Mark | None
    """The gravest mark of the call, or the one that no call of the record is behind."""
    silence: Silence | None
    """Why nothing stepped in, or not more than a warning."""


class Watcher:
    """The observer of one session."""

    def __init__(
        self, source: str, started: SessionStarted, engine: SessionEngine, options: Options, wanted: Wanted
    ) -> None:
        self._source, self._started, self._engine, self._wanted = source, started, engine, wanted
        self._rules = engine.policy.ruleset
        self._identifier = Once(ByContent(self._rules))
        self._runs: dict[str, Repeating] = {}
        self._looks: dict[str, list[Look]] = {}
        """Of the latest message of each run."""
        self._kept: list[Look] = []
        """Those that are asked for."""
        self._steps: dict[str, tuple[Mark, Look | None]] = {}
        """The first critical mark of each run, or the first warning until there is one."""
        self._on_for = [agent for agent in options.on_for if agent != agent_key(started.agent or "")]
        self._split: dict[str, str] = {}
        """For each loop that runs split, the run in which it is told of."""
        self._armed: set[str] = set()
        """The runs in which the post-compaction guard was armed."""
        self._shadows = [] if wanted.one_call else shadows_of(engine.policy, options.scope, options.arm)

    # --- while it is replayed

    def judged(self, run: RunState, slot: Slot, counts: Counts, found: Verdict | None) -> None:
        """Look at a call that the detectors judge, if it may be asked for or a mark may be made of it."""
        known = self._runs.get(run.key)
        repeated = known.signatures.get(slot.signature) if known is not None else None
        if repeated is not None:
            repeated.held = max(repeated.held, counts.own)
        if self._may_matter(run, slot, found):
            made = look(self._engine, self._engine.policy, run, slot, (counts, found))
            self._looks.setdefault(run.key, []).append(made)

    def _may_matter(self, run: RunState, slot: Slot, found: Verdict | None) -> bool:
        if self._wanted.one_call:
            batch = run.batch.index if run.batch is not None else -1
            return self._wanted.may_be_call(slot.number, batch, slot.call.id)
        failing = run.errors is not None and run.errors.count > 0
        return found is not None or run.guard.armed or failing

    def fed(self, event: SessionEvent, marks: Sequence[Mark]) -> None:
        """Take in an event that the engine has taken in."""
        if not event.run:
            return
        self._identifier.forget()
        for shadow in self._shadows:
            shadow.feed(event)
        run = self._runs.setdefault(event.run, Repeating(len(self._runs)))
        if self._shadows:
            run.feed(event, self._identifier, self._rules)
        looks = self._of_message(event, marks) if isinstance(event, Turn) else self._looks.get(event.run, [])
        if isinstance(event, Result):
            self._came(event, looks)
        for mark in marks:
            self._marked(mark, looks)

    def _of_message(self, turn: Turn, marks: Sequence[Mark]) -> list[Look]:
        """Complete the looks at the calls of a message that has just been judged."""
        state = self._engine.run(turn.run)
        looks = self._looks.get(turn.run, [])
        if state.batch is not None and turn.calls and state.ended is None and self._engine.policy.enabled is not True:
            slots = [slot for slot in state.batch.slots if isinstance(slot.call, Call)]
            looks = [
                look(self._engine, self._engine.policy, state, slot, None)
                for slot in slots
                if self._may_matter(state, slot, None)
            ]
        batch = state.batch.index if state.batch is not None else state.batches
        fresh = [each for each in looks if not each.line and each.batch == batch]
        for each in fresh:
            each.line, each.entry, each.time = turn.where.line, turn.where.entry, turn.where.time
            found = each.verdict
            emitted = any(mark.kind is Kind.WARNING and mark.call == each.call for mark in marks)
            each.suppressed = found is not None and not found.critical and not emitted
        number = self._runs[turn.run].number
        if self._wanted.is_run(number, state.run_id):
            self._kept += (
                each for each in fresh if self._wanted.is_call(each.call, each.batch, each.entry, each.tool_call_id)
            )
        self._looks[turn.run] = fresh
        return fresh

    def _came(self, result: Result, looks: Sequence[Look]) -> None:
        """Note what a call that was looked at came back with."""
        batch = self._engine.run(result.run).batch
        if batch is None or result.index >= len(batch.calls):
            return
        slot = batch.slots[batch.calls[result.index]]
        for each in looks:
            if (each.batch, each.call) == (batch.index, slot.number) and isinstance(slot.call, Call):
                each.outcome = compared(slot.tool, slot.call.arguments, result.outcome, self._rules)
                each.outcome_identity = self._identifier.outcome(slot.tool, slot.call, result.outcome).identity
                each.lossy = result.outcome.lossy

    def _marked(self, mark: Mark, looks: Sequence[Look]) -> None:
        mine = next((each for each in looks if (each.batch, each.call) == (mark.batch, mark.call)), None)
        if mine is not None:
            mine.marks.append(mark)
        if mark.kind is Kind.GUARD_ARMED:
            self._armed.add(mark.run)
            return
        known = self._steps.get(mark.run)
        if known is None or (known[0].level is not Level.CRITICAL and mark.level is Level.CRITICAL):
            self._steps[mark.run] = (mark, mine)

    # --- afterwards

    def explained(self) -> Iterator[Explained]:
        """Yield the answers: for the calls that are asked for, or for each run that is."""
        if not self._wanted.is_session(self._started.session):
            return
        if self._wanted.one_call:
            for each in self._kept:
                yield replace(self._answer(each.run), look=each, mark=gravest(each.marks))
            return
        for key, answer in self._runs_explained():
            loop = self._split_loop(answer)
            if loop is None or self._split.setdefault(loop, key) == key:
                yield answer

    def _runs_explained(self) -> Iterator[tuple[str, Explained]]:
        """Yield the answer for each run; a repetition over several runs is told of where it would be stepped into."""
        runs = Counter(loop for run in self._runs.values() for loop in run.loops())
        found = [(key, self._run_explained(key, runs)) for key in self._runs if self._is_asked(key)]
        for key, answer in found:
            if answer.silence is not None and answer.silence.over_runs and answer.silence.steps_in:
                self._split.setdefault(answer.silence.loop, key)
        yield from found

    def _split_loop(self, answer: Explained) -> str | None:
        """Return the loop that runs split, if that is all there is to say of a run that nobody asked for."""
        silence = answer.silence
        alone = answer.mark is None and self._wanted.run is None
        return silence.loop if alone and silence is not None and silence.over_runs else None

    def _is_asked(self, key: str) -> bool:
        return self._wanted.is_run(self._runs[key].number, self._engine.run(key).run_id)

    def _run_explained(self, key: str, runs: Mapping[str, int]) -> Explained:
        answer, step = self._answer(key), self._steps.get(key)
        if step is not None:
            answer = replace(answer, mark=step[0], look=step[1])
        if step is None or step[0].level is not Level.CRITICAL:
            silence = silence_of(
                key,
                self._runs[key],
                self._engine.policy,
                self._shadows,
                runs,
                warned=step is not None,
                armed=key in self._armed,
                on_for=self._on_for,
            )
            answer = replace(answer, silence=silence)
        return answer

    def _answer(self, key: str) -> Explained:
        started, state = self._started, self._engine.run(key)
        number = self._runs[key].number
        return Explained(self._source, started.session, started.agent, number, state.run_id, None, None, None)


def gravest(marks: Sequence[Mark]) -> Mark | None:
    """Return the mark that says most of a call: the last of the gravest."""
    grave = [mark for mark in marks if mark.level is Level.CRITICAL]
    return (grave or list(marks))[-1] if marks else None
