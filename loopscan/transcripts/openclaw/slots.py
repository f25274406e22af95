"""The places in the queue that wait for what follows: user messages, turns, results, compactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from loopscan.events import (
    AbsentCall,
    Call,
    Compaction,
    Event,
    Fate,
    Outcome,
    Recorded,
    Result,
    SessionStarted,
    Turn,
    UserMessage,
    Where,
)
from loopscan.transcripts.openclaw.entries import FAILED_STOPS, Entry, RawCall, usage_of
from loopscan.transcripts.openclaw.held import MAX_HELD
from loopscan.transcripts.openclaw.runs import Run
from loopscan.transcripts.values import Object, string

#: Results of absent tools at most this far apart belong to one message, in seconds. No model answers in less:
#: in the recordings siblings are up to 12 ms apart, attempts of a scripted model next door 14 ms and more.
ALIKE_SECONDS = 0.0125


class Start:
    """The start of a session, which waits for the name of the model."""

    __slots__ = ("_agent", "_session", "_version", "_where", "decided", "model", "size")

    def __init__(self, session: str, where: Where, agent: str | None, version: str | None) -> None:
        self._session = session
        self._where = where
        self._agent = agent
        self._version = version
        self.model: str | None = None
        self.decided = False
        self.size = 0

    def name_model(self, model: str | None) -> None:
        """Take the first model that is named."""
        if not self.decided and model is not None:
            self.model = model
            self.decided = True

    def force(self) -> None:
        """Do without a model."""
        self.decided = True

    def events(self) -> Sequence[Event]:
        """Return the start of the session."""
        return (SessionStarted(self._session, self._where, self._agent, self.model, self._version),)


class OpeningUser:
    """A user message: it opens its run, unless what follows shows that it came into one that goes on."""

    __slots__ = ("_settle", "before", "retry", "run", "size", "steering", "where")

    def __init__(self, where: Where, size: int, settle: Callable[[Run], None]) -> None:
        self.run: Run
        self.where = where
        self.size = size
        self.steering = False
        self.retry = False
        self.before: list[Event] = []
        """What ends when this run begins."""
        self._settle = settle

    @property
    def decided(self) -> bool:
        """Whether its run is settled."""
        return self.run.root().settled

    def force(self) -> None:
        """Take it for the opener of a run of its own."""
        self._settle(self.run)

    def events(self) -> Sequence[Event]:
        """Return the user message."""
        run = self.run.root()
        message = UserMessage(run.key, self.where, run.run_id, steering=self.steering, retry=self.retry)
        return (*self.before, message)


class CompactionSlot:
    """A compaction; ``in_run`` is ``None`` until it is known whether its run went on after it."""

    __slots__ = ("_from_hook", "_run", "_settle", "_where", "in_run", "size")

    def __init__(self, entry: Entry, run: Run | None, in_run: bool | None, settle: Callable[[Run], None]) -> None:
        hook = entry.body.get("fromHook")
        self._from_hook = hook if isinstance(hook, bool) else None
        self._where = entry.where
        self._run = run
        self._settle = settle
        self.in_run = in_run
        self.size = entry.size

    @property
    def decided(self) -> bool:
        """Whether it is known if the run went on, and which run that is."""
        return self.in_run is False or (self.in_run is True and self._run is not None and self._run.root().settled)

    def force(self) -> None:
        """Take it for one between runs, unless the record said otherwise."""
        if not self.in_run or self._run is None:
            self.in_run = False
        else:
            self._settle(self._run)

    def events(self) -> Sequence[Event]:
        """Return the compaction."""
        run = self._run.root().key if self._run is not None and self.in_run else None
        return (Compaction(run, self._where, bool(self.in_run), self._from_hook),)


class Batch:
    """An assistant message with calls, which waits for their results."""

    __slots__ = (
        "_absent",
        "_answered",
        "_fates",
        "_indices",
        "_message",
        "_orphans",
        "_waiting",
        "calls",
        "closed",
        "failed",
        "latest",
        "run",
        "size",
        "where",
    )

    def __init__(self, entry: Entry, run: Run, calls: list[RawCall]) -> None:
        self.run = run
        self.where = entry.where
        self.size = entry.size
        self.calls = calls
        self.failed = string(entry.message.get("stopReason")) in FAILED_STOPS
        """The model's response failed or was aborted: none of its calls ran."""
        self.latest = entry.sent_at
        """When the newest of its results was made, in seconds."""
        self.closed = self.failed
        """Its fates are final."""
        self._message = entry.message
        self._fates: list[Fate | None] = [Fate.NOT_RUN if self.failed else None] * len(calls)
        self._waiting: dict[str, deque[int]] = {}
        """Places of calls without a result, by id (or by tool, for those without an id)."""
        self._answered: set[str] = set()
        for place, call in enumerate(calls):
            self._waiting.setdefault(asks_for(call.id, call.tool), deque()).append(place)
        self._absent: dict[int, AbsentCall] = {}
        """Absent tools by the place of their call in the message."""
        self._orphans: list[AbsentCall] = []
        """Absent tools that the message was stored without."""
        self._indices: list[int] = []

    @property
    def decided(self) -> bool:
        """Whether the fates of its calls are final."""
        return self.closed

    @property
    def complete(self) -> bool:
        """Whether every call has its result."""
        return not self._waiting

    @property
    def lacks_results(self) -> bool:
        """Whether it is not known what became of some of its calls."""
        return any(fate is None or fate is Fate.LOST for fate in self._fates)

    def waits_for(self, call_id: str | None, tool: str | None) -> bool:
        """Say whether a call waits for this result. One without an id is for a call without one of the same tool."""
        return asks_for(call_id, tool) in self._waiting

    def has_had(self, call_id: str | None, tool: str | None) -> bool:
        """Say whether a call had this result already."""
        return asks_for(call_id, tool) in self._answered

    def take(self, call_id: str | None, tool: str | None) -> int:
        """Return the place of the first call that waits for this result, which waits no longer."""
        asks = asks_for(call_id, tool)
        places = self._waiting[asks]
        place = places.popleft()
        if not places:
            del self._waiting[asks]
        self._answered.add(asks)
        return place

    def answer(self, place: int, fate: Fate, made: float | None, absent: AbsentCall | None = None) -> None:
        """Take in what became of the call at ``place``, or that its tool does not exist; ``made`` in seconds."""
        if self.failed:
            return
        self._fates[place] = fate
        if absent is not None:
            self._absent[place] = absent
        if made is not None:
            self.latest = made

    @property
    def has_orphans(self) -> bool:
        """Whether an absent tool was taken in that the message was stored without."""
        return bool(self._orphans)

    def asks(self) -> set[str]:
        """Return what its calls wait for or had; see :func:`asks_for`."""
        return {asks_for(call.id, call.tool) for call in self.calls}

    def adopt(self, absent: AbsentCall, made: float | None) -> None:
        """Take in an absent tool that the message was stored without; its result was ``made`` then, in seconds."""
        self._orphans.append(absent)
        if made is not None:
            self.latest = made

    def close(self) -> None:
        """Make the fates final: calls without a result are lost."""
        self.closed = True
        self._fates = [Fate.LOST if fate is None else fate for fate in self._fates]

    def force(self) -> None:
        """Close it."""
        self.close()

    def index(self, place: int) -> int:
        """Return the number of a call among those of the event, which leave out absent tools; once it is closed."""
        return self._indices[place] if self._indices else place

    def events(self) -> Sequence[Event]:
        """Return the turn."""
        calls: list[Call] = []
        for place, call in enumerate(self.calls):
            if self._absent:
                self._indices.append(len(calls))
            if place not in self._absent:
                calls.append(Call(call.tool, call.arguments, call.id, self._fates[place] or Fate.LOST))
        absent = (*(found for _, found in sorted(self._absent.items())), *self._orphans)
        event = turn(self._message, self.run.root(), self.where, calls=tuple(calls), absent=absent)
        # Its run remembers the batch, but need not remember what was in it.
        self._message = {}
        self.calls = [RawCall(call.tool, None, call.id) for call in self.calls]
        return (event,)


class ResultSlot:
    """The outcome of a call, which is numbered when its turn has been."""

    __slots__ = ("_batch", "_outcome", "_place", "_recorded", "_where", "size")

    decided = True

    def __init__(
        self, entry: Entry, batch: Batch, place: int, outcome: Outcome, recorded: Sequence[Recorded]
    ) -> None:
        self._where = entry.where
        self._batch = batch
        self._place = place
        self._outcome = outcome
        self._recorded = recorded
        self.size = entry.size

    def force(self) -> None:
        """Nothing to decide."""

    def events(self) -> Sequence[Event]:
        """Return the result, and what the live engine left in it."""
        batch = self._batch
        result = Result(batch.run.root().key, self._where, batch.index(self._place), self._outcome)
        return (result, *self._recorded)


class AbsentGroup:
    """Orphan results of absent tools, for a message that was not stored."""

    __slots__ = ("_run", "_where", "absent", "closed", "latest", "size")

    def __init__(self, entry: Entry, run: Run, absent: AbsentCall) -> None:
        self._run = run
        self._where = entry.where
        self.size = entry.size
        self.absent = [absent]
        self.latest = entry.sent_at
        self.closed = False

    @property
    def decided(self) -> bool:
        """Whether no more of this message follows."""
        return self.closed

    def takes(self, made: float | None) -> bool:
        """Say whether a result made at ``made`` (seconds) is of the same message."""
        if made is None or self.latest is None or len(self.absent) >= MAX_HELD:
            return False
        return abs(made - self.latest) <= ALIKE_SECONDS

    def force(self) -> None:
        """Close it."""
        self.closed = True

    def events(self) -> Sequence[Event]:
        """Return the turn that was not stored."""
        run = self._run.root()
        return (Turn(run.key, self._where, absent=tuple(self.absent), stored=False, run_id=run.run_id),)


def turn(
    message: Object,
    run: Run,
    where: Where,
    *,
    calls: tuple[Call, ...] = (),
    absent: tuple[AbsentCall, ...] = (),
) -> Turn:
    """Return the event of a stored assistant message."""
    stop = string(message.get("stopReason"))
    return Turn(
        run=run.key,
        where=where,
        calls=calls,
        absent=absent,
        run_id=run.run_id,
        model=string(message.get("model")),
        stop_reason=stop,
        usage=usage_of(message),
        failed=stop in FAILED_STOPS,
    )


def asks_for(call_id: str | None, tool: str | None) -> str:
    """Return what a call waits for and its result brings: the id, or the tool where there is no id."""
    return f"id {call_id}" if call_id is not None else f"tool {tool or ''}"
