"""Sessions of formats in which one message follows another: user, model, results, user again.

Readers of such formats tell a :class:`Dialogue` what they find, in the order of the record; it knows what the
events of :mod:`loopscan.events` ask for: which results belong to which calls, what became of the calls without
one, where a run begins and ends, and whether a compaction was within a run.

A model's message with its results is held back until it is complete, or something follows that no longer
belongs to it. So memory is bounded by one message and its results, and by :data:`MOST_HELD`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from loopscan.events import (
    NO_USAGE,
    AbsentCall,
    Call,
    Compaction,
    Ending,
    Event,
    Fate,
    Json,
    Outcome,
    Problem,
    Recorded,
    Result,
    RunEnded,
    SessionEnded,
    SessionResumed,
    SessionStarted,
    Turn,
    Usage,
    UserMessage,
    Where,
)
from loopscan.transcripts.recent import Recent

#: How many results and other events are held back at most for one message of the model.
MOST_HELD = 16_384
#: How many bytes of lines are held back at most for one message of the model.
MOST_HELD_BYTES = 64 << 20

_NOTHING: deque[int] = deque()


@dataclass(slots=True)
class _Message:
    """One message of the model while its results come in."""

    where: Where
    message: str | None
    model: str | None
    stop_reason: str | None
    usage: Usage
    failed: bool
    calls: list[Call] = field(default_factory=list)
    fates: list[Fate | None] = field(default_factory=list)
    absent: dict[int, AbsentCall] = field(default_factory=dict)
    after: list[tuple[int, Where, Outcome] | Event] = field(default_factory=list)
    """Results by the place of their call, and what else came meanwhile."""
    waiting: dict[str, deque[int]] = field(default_factory=dict)
    """The places of calls without a result, by id; calls without one under ``"\\0" + tool``."""
    open: int = 0
    """How many calls have no result yet."""
    first: int = 0
    """All calls before this place have one."""
    taken: set[int] = field(default_factory=set)
    """The places of calls from there on that have one."""
    size: int = 0

    def add(self, calls: Iterable[Call]) -> None:
        for call in calls:
            self.waiting.setdefault(_key(call.id, call.tool), deque()).append(len(self.calls))
            self.calls.append(call)
            self.fates.append(None)
            self.open += 1

    def take(self, call_id: str | None, tool: str | None) -> int | None:
        """Return the place of the call that a result is for; without an id, of the first that it can be for."""
        place: int | None = None
        if call_id is None and tool is None:
            while self.first < len(self.calls) and self.first in self.taken:
                self.taken.remove(self.first)
                self.first += 1
            place = self.first if self.first < len(self.calls) else None
        else:
            places = self.waiting.get(_key(call_id, tool or ""), _NOTHING)
            while places and place is None:
                place = places.popleft()
                if place < self.first or place in self.taken:
                    place = None  # a result that named nothing was for it
        if place is not None:
            self.taken.add(place)
            self.open -= 1
        return place

    def events(self, run: str, run_id: str | None) -> Iterator[Event]:
        existing = [place for place in range(len(self.calls)) if place not in self.absent]
        places = {place: index for index, place in enumerate(existing)}
        unknown = Fate.NOT_RUN if self.failed else Fate.LOST
        calls = tuple(replace(self.calls[place], fate=self.fates[place] or unknown) for place in existing)
        yield Turn(
            run,
            self.where,
            calls,
            tuple(self.absent[place] for place in sorted(self.absent)),
            run_id=run_id,
            model=self.model,
            stop_reason=self.stop_reason,
            usage=self.usage,
            failed=self.failed,
        )
        for item in self.after:
            if isinstance(item, tuple):
                place, where, outcome = item
                yield Result(run, where, places[place], outcome)
            else:
                yield item


class Dialogue:
    """One session. Tell it what the record says, in its order; :meth:`drain` gives the events."""

    def __init__(
        self,
        session: str,
        where: Where,
        *,
        agent: str | None = None,
        model: str | None = None,
        version: str | None = None,
    ) -> None:
        self.session = session
        self.ended = False
        self._ready: list[Event] = [SessionStarted(session, where, agent, model, version)]
        self._where = where
        self._runs = 0
        self._run: str | None = None
        self._run_id: str | None = None
        self._final = False
        """The model's latest message in the run wanted nothing more."""
        self._open: _Message | None = None
        self._asked: Recent[str, bool] = Recent()
        """The ids of calls, and whether a result named them."""
        self._prompts: list[tuple[Where, str | None]] = []
        """User messages of which it is not known whether they came into a run that goes on."""
        self._compactions: list[Where] = []
        """Compactions of which it is not known whether the run goes on after them."""

    def drain(self) -> list[Event]:
        """Return the events that are certain by now and were not returned before."""
        ready, self._ready = self._ready, []
        return ready

    # --- what the record says

    def user(self, where: Where, *, run_id: str | None = None, steering: bool | None = None) -> None:
        """Take in new user input: it opens a run.

        Not so if it came into a run that goes on: ``steering`` says that, or else a result of a call that was
        open before. ``run_id`` is the recorded id of the run that it opens.
        """
        self._where = where
        waits = self._open is not None and self._open.open and not self._open.failed
        if steering is None and waits and len(self._prompts) < MOST_HELD:
            self._prompts.append((where, run_id))
        elif steering and self._run is not None:
            self._steer_prompts()
            self._steer(where)
        else:
            self._close()
            self._begin(where, run_id)

    def turn(
        self,
        where: Where,
        calls: Sequence[Call] = (),
        *,
        message: str | None = None,
        run_id: str | None = None,
        model: str | None = None,
        stop_reason: str | None = None,
        usage: Usage = NO_USAGE,
        failed: bool = False,
        size: int = 0,
    ) -> None:
        """Take in a message of the model, or a further part of one.

        Parts of one message have the same ``message`` id, follow one another (with results between them, maybe)
        and repeat the same ``usage``, which counts once. The fate of ``calls`` is told by their results.
        ``failed``: the model's response failed or was aborted, so that its calls did not run unless a result says
        so. ``size`` is that of the line, in bytes.
        """
        self._where = where
        held = self._open
        if held is not None and message is not None and held.message == message and not self._prompts:
            held.model = held.model or model
            held.stop_reason = stop_reason or held.stop_reason
            held.usage = usage if usage.total or not held.usage.total else held.usage
            held.failed = held.failed or failed
        else:
            self._close()
            self._follow()
            if self._run is None:
                self._begin(None, run_id)
            self._run_id = self._run_id or run_id
            self._open = held = _Message(where, message, model, stop_reason, usage, failed)
        held.add(calls)
        held.size += size
        for call in calls:
            if call.id is not None:
                self._asked[call.id] = False
        self._final = not held.calls and not held.failed

    def result(
        self,
        where: Where,
        outcome: Outcome | None,
        *,
        call_id: str | None = None,
        tool: str | None = None,
        fate: Fate = Fate.RAN,
        recorded: Sequence[Recorded] = (),
        size: int = 0,
    ) -> bool:
        """Take in the outcome of a call; return whether a call was open for it.

        Without ``call_id`` it is for the first open call of ``tool``, or for the first one if that is ``None`` too.
        ``outcome`` is ``None`` where ``fate`` says that there is none (not run, lost, vetoed). A result that no
        open call asked for is a problem.
        """
        self._where = where
        held, place = self._answer(where, call_id, tool)
        if held is None or place is None:
            return False
        held.fates[place] = fate
        if outcome is not None and fate in (Fate.RAN, Fate.REJECTED):
            held.after.append((place, where, outcome))
        held.after += recorded
        self._grown(held, size)
        return True

    def absent(
        self, where: Where, error: str, *, call_id: str | None = None, tool: str | None = None, size: int = 0
    ) -> bool:
        """Take in that the tool of a call does not exist: ``error`` says so; see :meth:`result`."""
        self._where = where
        held, place = self._answer(where, call_id, tool)
        if held is None or place is None:
            return False
        call = held.calls[place]
        held.absent[place] = AbsentCall(call.tool, error, call.id, where, place, call.arguments)
        self._grown(held, size)
        return True

    def compaction(self, where: Where, *, in_run: bool | None = None) -> None:
        """Take in a compaction of the context. What follows tells if it is within the run, unless ``in_run`` does."""
        self._where = where
        self._close()
        if in_run is None and self._run is not None and not self._final and len(self._compactions) < MOST_HELD:
            self._compactions.append(where)
        else:
            self._ready.append(Compaction(self._run if in_run else None, where, bool(in_run)))

    def stopped(self, where: Where) -> None:
        """Take in that the run was stopped: by the user, say, or by an error."""
        self._where = where
        self._close()
        self._end(Ending.INTERRUPTED)

    def completed(self, where: Where) -> None:
        """Take in that the run is over and was not stopped."""
        self._where = where
        self._close()
        self._end(Ending.COMPLETED)

    def problem(self, problem: Problem) -> None:
        """Take in a problem."""
        self._ready.append(problem)

    def recorded(self, where: Where, kind: str, **what: str | int | None) -> None:
        """Take in a verdict of a live engine: the fields of :class:`~loopscan.events.Recorded`."""
        self._where = where
        if self._run is None:
            self._begin(None, None)
        event = Recorded(self._run or "", where, kind, **what)  # type: ignore[arg-type]
        if self._open is not None:
            self._open.after.append(event)
        else:
            self._ready.append(event)

    def finish(self) -> None:
        """Take in that nothing follows."""
        if self.ended:
            return
        self._close()
        self._end(None)
        self._ready.append(SessionEnded(self._where))
        self.ended = True

    # --- what follows from it

    def _answer(self, where: Where, call_id: str | None, tool: str | None) -> tuple[_Message | None, int | None]:
        """Return the open message, and the place in it of the call that a result is for; none is a problem."""
        held = self._open
        place = held.take(call_id, tool) if held is not None else None
        if held is None or place is None:
            answered = self._asked.get(call_id) if call_id is not None else None
            if answered:
                kind, detail = "duplicate-result", "a second result of a call that had its result already"
            elif answered is False:
                kind, detail = "late-result", "a result that came after its call had been given up"
            else:
                kind, detail = "orphan-result", "a result of a call that is not in the record"
            self._ready.append(Problem(where.line, kind, detail))
            return None, None
        if call_id is not None:
            self._asked[call_id] = True
        self._steer_prompts()
        return held, place

    def _grown(self, held: _Message, size: int) -> None:
        held.size += size
        complete = not held.open and held.message is None
        if complete or len(held.after) >= MOST_HELD or held.size > MOST_HELD_BYTES:
            self._close()

    def _steer_prompts(self) -> None:
        """The run goes on after the user messages of which that was open."""
        for prompt, _ in self._prompts:
            self._steer(prompt)
        self._prompts.clear()

    def _steer(self, where: Where) -> None:
        event = UserMessage(self._run or "", where, self._run_id, steering=True)
        if self._open is not None:
            self._open.after.append(event)
        else:
            self._follow()
            self._ready.append(event)

    def _close(self) -> None:
        """Let go of the open message, and of the user messages that turned out to open runs of their own."""
        held, self._open = self._open, None
        if held is not None:
            self._ready += held.events(self._run or "", self._run_id)
        prompts, self._prompts = self._prompts, []
        for where, run_id in prompts:
            self._begin(where, run_id)

    def _follow(self) -> None:
        """The run goes on after the compactions of which that was open."""
        self._ready += (Compaction(self._run, where, True) for where in self._compactions)
        self._compactions.clear()

    def _begin(self, where: Where | None, run_id: str | None) -> None:
        """Open a run: with a user message, or without one for what comes before any."""
        self._end(None)
        self._runs += 1
        self._run = f"#{self._runs}"
        self._run_id = run_id
        self._final = False
        if where is not None:
            self._ready.append(UserMessage(self._run, where, run_id))

    def _end(self, ending: Ending | None) -> None:
        """End the run, if one goes on; ``None``: as its latest message tells."""
        self._ready += (Compaction(None, where, False) for where in self._compactions)
        self._compactions.clear()
        if self._run is None:
            return
        if ending is None:
            ending = Ending.COMPLETED if self._final else Ending.INTERRUPTED
        self._ready.append(RunEnded(self._run, self._where, ending))
        self._run = None


class Dialogues:
    """The sessions of one source, which may go on at the same time."""

    def __init__(self) -> None:
        self._going: dict[str, Dialogue] = {}
        self._touched: list[Dialogue] = []
        self._current: str | None = None
        """The session that was drained last, while it goes on."""

    def get(self, session: str) -> Dialogue | None:
        """Return a session that goes on, to be told something."""
        found = self._going.get(session)
        if found is not None:
            self._touched.append(found)
        return found

    def start(
        self,
        session: str,
        where: Where,
        *,
        agent: str | None = None,
        model: str | None = None,
        version: str | None = None,
    ) -> Dialogue:
        """Start a session; end the one of the same name, if it goes on."""
        self.end(session)
        made = self._going[session] = Dialogue(session, where, agent=agent, model=model, version=version)
        self._touched.append(made)
        return made

    def end(self, session: str) -> None:
        """End a session, if it goes on."""
        found = self._going.pop(session, None)
        if found is not None:
            found.finish()
            self._touched.append(found)

    def drain(self) -> Iterator[Event]:
        """Yield the events that are certain by now, session by session."""
        touched, self._touched = self._touched, []
        for dialogue in touched:
            events = dialogue.drain()
            if not events:
                continue
            if self._current != dialogue.session and not isinstance(events[0], SessionStarted):
                yield SessionResumed(dialogue.session)
            yield from events
            self._current = None if dialogue.ended else dialogue.session

    def finish(self) -> Iterator[Event]:
        """End all sessions, in the order in which they started, and yield the rest."""
        for session in list(self._going):
            self.end(session)
        yield from self.drain()


def text_result(text: str, details: Json = None, *, is_error: bool = False, lossy: bool = False) -> Outcome:
    """Return a result as OpenClaw would have it: one text, and ``details`` if there are any."""
    result: dict[str, Json] = {"content": [{"type": "text", "text": text}]}
    if details is not None:
        result["details"] = details
    return Outcome(result=result, is_error=is_error, lossy=lossy)


def command_result(output: str, exit_code: int | None, *, lossy: bool = False) -> Outcome:
    """Return the result of a finished command as OpenClaw's ``exec`` would have it.

    ``output`` is all that it printed, without what changes from call to call; an ``exit_code`` of ``None`` is
    unknown. A code other than 0 counts as an error, as in OpenClaw.
    """
    failed = exit_code is not None and exit_code != 0
    details: dict[str, Json] = {"status": "failed" if failed else "completed", "aggregated": output}
    if exit_code is not None:
        details["exitCode"] = exit_code
    return text_result(output, details, is_error=failed, lossy=lossy)


def _key(call_id: str | None, tool: str) -> str:
    return call_id if call_id is not None else "\0" + tool
