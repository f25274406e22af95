"""One session while it is read: entries in, events out, in the order of the file.

The rules of runs, steering, branches and compactions are those of the engine rules, "from a transcript to
the engine".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from loopscan.events import (
    NO_USAGE,
    AbsentCall,
    Event,
    Fate,
    Problem,
    Recorded,
    SessionEnded,
    Turn,
    UnknownToolStopped,
    Usage,
    Where,
)
from loopscan.transcripts.openclaw.copies import Closings, Copies
from loopscan.transcripts.openclaw.entries import (
    FAILED_STOPS,
    FINAL_STOPS,
    GATEWAY_MODELS,
    Entry,
    calls_of,
    faults,
    openclaw,
    usage_of,
)
from loopscan.transcripts.openclaw.held import Held, Ready
from loopscan.transcripts.openclaw.results import (
    Reading,
    compaction_loop,
    context_overflow,
    read_result,
    recorded_in,
    unavailable_tool,
)
from loopscan.transcripts.openclaw.runs import Run, Runs
from loopscan.transcripts.openclaw.slots import (
    ALIKE_SECONDS,
    AbsentGroup,
    Batch,
    CompactionSlot,
    OpeningUser,
    ResultSlot,
    Start,
    asks_for,
    turn,
)
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import identifier, string, text_of, written

#: Kinds of entries that say something to the loop detection.
USED = frozenset({"message", "compaction", "model_change", "custom"})


@dataclass(frozen=True, slots=True)
class Said:
    """What something other than an entry says of a run; see :meth:`Session.told`."""

    where: Where
    run_id: str | None
    stop: str | None = None
    """How its latest model response ended, where no entry says so."""
    explains: bool = False
    """It tells why the run ended as it did."""
    usage: Usage = NO_USAGE
    """What responses cost that are not in the record."""
    abort: tuple[str, int] | None = None
    """The post-compaction guard ended it: the tool, and how often it was called."""


class Session:
    """Turns the entries of one session into events; ``source`` counts what became of each."""

    def __init__(
        self,
        name: str,
        where: Where,
        source: Source,
        *,
        agent: str | None = None,
        model: str | None = None,
        version: str | None = None,
    ) -> None:
        self.name = name
        self._source = source
        self._where = where
        self._held = Held()
        self._runs = Runs()
        self._repeated = Copies()
        self._closings = Closings()
        self._open: dict[str, deque[Batch]] = {}
        """Messages whose results are still to come, oldest first, by what they wait for."""
        self._asked: Recent[str, bool] = Recent()
        """The ids of calls, and whether a result named them."""
        self._start = Start(name, where, agent, version)
        self._held.add(self._start)
        self._start.name_model(model)

    def feed(self, entry: Entry) -> Iterator[Event]:
        """Take in the next entry and yield what can be told now."""
        self._where = entry.where
        node = self._runs.node(entry)
        parent = self._runs.branching_point(entry)
        if parent is not None:
            self._repeated.branch(parent, node.place)
        node.run = self._read(entry, node.place, self._runs.above(entry))
        self._runs.remember(entry, node)
        return self._held.drain()

    def note(self, problem: Problem) -> Iterator[Event]:
        """Put a problem with a line where the line would have been, and yield what can be told now."""
        self._held.add(Ready(problem))
        return self._held.drain()

    def told(self, said: Said) -> Iterator[Event]:
        """Take in what something other than an entry says of a run, and yield what can be told now.

        It is about the run with that id: where none has it, the run of the latest entry gets it, if it has none.
        What explains a run that is not in the record is passed over.
        """
        self._where = said.where
        run = self._runs.named(said.run_id)
        if run is None:
            run = self._runs.latest
            if said.run_id is not None or run is None:
                if (run is None or run.run_id is not None) and said.abort is None and said.usage == NO_USAGE:
                    return self._held.drain()
                run = self._runs.bind(said.run_id, run) if said.run_id is not None else self._runs.preamble()
        self._pass(run)
        self._runs.settle(run)
        run.explained |= said.explains
        if said.stop is not None and run.stop not in FINAL_STOPS:
            run.stop = said.stop
        if said.usage != NO_USAGE:
            unstored = Turn(run.key, said.where, stored=False, run_id=run.run_id, usage=said.usage)
            self._held.add(Ready(unstored))
        if said.abort is not None:
            self._held.add(Ready(_compaction_abort(run, said.where, said.abort)))
        return self._held.drain()

    def finish(self) -> Iterator[Event]:
        """Yield the rest: nothing follows."""
        yield from self._held.flush()
        for run in list(self._runs.going.values()):
            self._close_all(run)
            yield self._runs.end(run)
        yield SessionEnded(self._where)

    # --- one entry

    def _read(self, entry: Entry, place: int, run: Run | None) -> Run | None:
        """Read one entry that stands at ``place`` and hangs below one of ``run``; return its own run."""
        original, closed = self._repeated.original(entry, place), self._closings.original(entry, place)
        if original is not None:
            self._source.copies[self._source.name] += 1
            before = self._runs.at(original)
            run = before.run if before is not None else run
            if run is not None:
                run.retryable = True
            return run
        if closed is not None:
            self._source.copies[self._source.name] += 1
            before = self._runs.at(closed)
            if before is not None and before.run is not None:
                self._pass(before.run)
                before.run.stop = string(entry.message.get("stopReason"))
            return run
        if self._source.ledger is not None:
            # Entries of version 1 have no id: what they say is theirs.
            identity = entry.id if entry.id is not None else written(entry.body)
            if self._source.is_copy(self.name, identity):
                return run
        self._source.count(entry.kind, used=entry.kind in USED)
        fault = faults(entry)
        if fault:
            self._held.add(Ready(Problem(entry.where.line, "malformed-entry", fault)))
        if entry.role == "toolResult":
            return self._result(entry, run)
        if run is not None:
            self._pass(run)
        if entry.role == "user":
            return self._user(entry, run)
        if entry.role == "assistant":
            return self._assistant(entry, run)
        if entry.kind == "compaction":
            return self._compaction(entry, run)
        if entry.kind == "model_change":
            self._start.name_model(string(entry.body.get("modelId")))
        elif entry.kind == "custom":
            self._custom(entry, run)
        return run

    def _user(self, entry: Entry, run: Run | None) -> Run:
        target = string(openclaw(entry.message).get("steerTargetRunId"))
        steered = (self._runs.named(target) or run) if target is not None else None
        prompt = hash(text_of(entry.message.get("content")))
        opener = OpeningUser(entry.where, entry.size, self._runs.settle)
        self._held.add(opener)
        if steered is not None:
            opener.run, opener.steering = steered, True
            return self._at(steered, entry)
        if run is not None and run.retryable and run.stop not in FINAL_STOPS and run.prompt == prompt:
            opener.run, opener.retry = run, True
            run.goes_on(True)
            return self._at(run, entry)
        self._repeated.end()
        if run is not None:
            run.goes_on(False)
            if not run.settled and not self._can_be_steered(run):
                self._runs.settle(run)
        opened = Run(run, opener)
        opened.prompt = prompt
        opener.run = opened
        return self._at(opened, entry)

    def _assistant(self, entry: Entry, run: Run | None) -> Run | None:
        message = entry.message
        model = string(message.get("model"))
        stop = string(message.get("stopReason"))
        calls = calls_of(message)
        if model in GATEWAY_MODELS and not calls and stop not in FAILED_STOPS:
            if run is not None and run.opener is not None and run.batch is None and run.stop is None:
                # A command such as /compact, which the gateway answers by itself.
                run.stop = stop
            return run
        self._start.name_model(model)
        self._start.force()
        run = self._own(entry, run)
        self._runs.settle(run)
        run.goes_on(True)
        batch = run.batch
        # A text alone cannot be the model's answer to a batch that still runs: somebody else wrote it.
        if batch is not None and (calls or stop in FAILED_STOPS or batch.complete):
            self._close(batch)
        run.retryable = context_overflow(message)
        run.stop = stop
        self._at(run, entry)
        stopped = unavailable_tool(message) if not calls else None
        if calls:
            self._batch(Batch(entry, run, calls))
        elif stopped is not None:
            kind = "unknown_tool_stop"
            self._held.add(
                Ready(
                    UnknownToolStopped(run.key, entry.where, stopped, run.run_id, usage_of(message)),
                    Recorded(run.key, entry.where, kind, tool=stopped, detector="unknown_tool_guard"),
                    size=entry.size,
                )
            )
        else:
            self._held.add(Ready(turn(message, run, entry.where), size=entry.size))
        return run

    def _batch(self, batch: Batch) -> None:
        batch.run.batch = batch
        if not batch.failed:
            batch.run.stop = None
            for asks in batch.asks():
                self._open.setdefault(asks, deque()).append(batch)
        self._held.add(batch)
        for call in batch.calls:
            if call.id is not None:
                self._asked[call.id] = False

    def _result(self, entry: Entry, run: Run | None) -> Run:
        call_id = identifier(entry.message.get("toolCallId"))
        tool = string(entry.message.get("toolName"))
        reading = read_result(entry.message, call_id)
        run = self._own(entry, run)
        found = self._asking(run, call_id, tool)
        if found is not None:
            batch, place = found
            # A result below a user message, of a call above it: the message came into a run that went on.
            if not run.settled and batch.run is self._runs.settled_above(run):
                self._runs.steer(run, batch.run)
            self._answer(entry, reading, batch, place)
        self._runs.settle(run)
        run = run.root()
        run.goes_on(True)
        if found is None:
            if reading.absent is not None:
                self._absent(entry, reading, run, call_id)
            else:
                self._unasked(entry, reading, run, call_id, tool)
        if call_id is not None:
            self._asked[call_id] = True
        return self._at(run, entry)

    def _compaction(self, entry: Entry, run: Run | None) -> Run | None:
        in_run: bool | None = None
        if run is None or run.stop in FINAL_STOPS:
            in_run = False
        elif entry.run_id is not None:
            in_run = True
        if in_run:
            run = self._own(entry, run)
            self._runs.settle(run)
        slot = CompactionSlot(entry, run, in_run, self._runs.settle)
        self._held.add(slot)
        if run is not None:
            if in_run is None:
                run.compactions.append(slot)
            if in_run is not False:
                run.retryable = True
            self._at(run, entry)
        return run

    def _custom(self, entry: Entry, run: Run | None) -> None:
        data = entry.body.get("data")
        if not isinstance(data, dict):
            return
        kind = entry.body.get("customType")
        if kind == "model-snapshot":
            self._start.name_model(string(data.get("modelId")))
        elif kind == "openclaw:prompt-error":
            run = self._runs.named(string(data.get("runId"))) or run
            if run is None:
                return
            run.explained = True
            loop = compaction_loop(data.get("error"))
            if loop is not None:
                self._runs.settle(run)
                self._held.add(Ready(_compaction_abort(run, entry.where, loop), size=entry.size))

    # --- results

    def _asking(self, run: Run, call_id: str | None, tool: str | None) -> tuple[Batch, int] | None:
        """Return the open message and the place in it of the call that a result in ``run`` is for.

        The run's own message is searched first, then that of the run above a user message that may have
        come into it, then those of all others.
        """
        own = [run.batch] if run.batch is not None else []
        above = None if run.settled else self._runs.settled_above(run)
        if above is not None and above.batch is not None:
            own.append(above.batch)
        for batch in own:
            if batch.waits_for(call_id, tool) and (batch.failed or not batch.closed):
                return batch, batch.take(call_id, tool)
        asks = asks_for(call_id, tool)
        others = self._open.get(asks, deque())
        while others:
            if not others[0].closed and others[0].waits_for(call_id, tool):
                return others[0], others[0].take(call_id, tool)
            others.popleft()
        self._open.pop(asks, None)
        return None

    def _answer(self, entry: Entry, reading: Reading, batch: Batch, place: int) -> None:
        """Take in the result of a call that asked for it."""
        call = batch.calls[place]
        absent = None
        if reading.absent is not None:
            absent = AbsentCall(call.tool, reading.text, call.id, entry.where, place, call.arguments)
        batch.answer(place, reading.fate, entry.sent_at, absent)
        if batch.failed:
            if reading.fate in (Fate.RAN, Fate.REJECTED, Fate.VETOED):
                detail = "a result of a call in a message that failed: such calls never run"
                self._held.add(Ready(Problem(entry.where.line, "result-of-failed-turn", detail)))
            return
        run = batch.run
        recorded = recorded_in(reading, run.key, entry.where, call.id, call.tool)
        if absent is None and reading.outcome is not None:
            self._held.add(ResultSlot(entry, batch, place, reading.outcome, recorded))
        elif recorded:
            self._held.add(Ready(*recorded, size=entry.size))

    def _absent(self, entry: Entry, reading: Reading, run: Run, call_id: str | None) -> None:
        """Take in the result of a call to an absent tool, which the message was stored without, if it was stored."""
        absent = AbsentCall(reading.absent or "", reading.text, call_id, entry.where)
        batch, made = run.batch, entry.sent_at
        if batch is not None and not batch.closed:
            alike = made is not None and batch.latest is not None and abs(made - batch.latest) <= ALIKE_SECONDS
            if alike or not (batch.complete or batch.has_orphans):
                batch.adopt(absent, made)
                return
            self._close(batch)
        group = run.group
        if group is not None and group.takes(made):
            group.absent.append(absent)
            group.latest = made
            return
        if group is not None:
            group.closed = True
        run.group = AbsentGroup(entry, run, absent)
        run.stop = "not stored"
        self._held.add(run.group)

    def _unasked(self, entry: Entry, reading: Reading, run: Run, call_id: str | None, tool: str | None) -> None:
        """Name the problem with a result that no open call asked for."""
        self._pass(run)
        answered = self._asked.get(call_id) if call_id is not None else None
        latest = run.batch
        if answered or (latest is not None and latest.has_had(call_id, tool)):
            kind, detail = "duplicate-result", "a second result of a call that had its result already"
        elif answered is False:
            kind, detail = "late-result", "a result that came after its call had been given up"
        else:
            kind, detail = "orphan-result", "a result of a call that is not in the record"
        self._held.add(Ready(Problem(entry.where.line, kind, detail)))

    # --- runs

    def _own(self, entry: Entry, run: Run | None) -> Run:
        """Return the run that a message of the model or a tool belongs to, below one of ``run``."""
        run_id = entry.run_id
        if run_id is None:
            return run if run is not None else self._runs.preamble()
        named = self._runs.named(run_id)
        if named is None:
            return self._runs.bind(run_id, run)
        if run is not None and not run.settled and run is not named:
            self._runs.steer(run, named)
        return named

    def _can_be_steered(self, run: Run) -> bool:
        """Whether a user message below ``run`` may have come into a run that goes on."""
        above = self._runs.settled_above(run)
        return above is not None and above.batch is not None and not above.batch.closed

    def _at(self, run: Run, entry: Entry) -> Run:
        run.where = entry.where
        return run

    # --- deciding

    def _pass(self, run: Run) -> None:
        """Something other than a result follows in the run: no more absent tools join the message before."""
        if run.group is not None:
            run.group.closed = True
            run.group = None
        if run.batch is not None and run.batch.complete:
            self._close(run.batch)

    def _close(self, batch: Batch) -> None:
        if not batch.closed:
            batch.close()
        for asks in batch.asks():
            others = self._open.get(asks)
            while others and others[0].closed:
                others.popleft()
            if others is not None and not others:
                del self._open[asks]

    def _close_all(self, run: Run) -> None:
        self._pass(run)
        if run.batch is not None:
            self._close(run.batch)


def _compaction_abort(run: Run, where: Where, loop: tuple[str, int]) -> Recorded:
    tool, count = loop
    detector = "compaction_loop_persisted"
    return Recorded(run.key, where, "compaction_abort", tool=tool, detector=detector, count=count)
