"""The reader of OpenClaw's trajectories: exported ones, and those that the runtime writes beside a session.

An export holds the entries of the session, so it is read as a transcript is. Without them the session is rebuilt
from what the runtime tells (see :mod:`~loopscan.transcripts.openclaw.rebuilt`), unless another source gave it: then
nothing is left but the verdicts that the trajectory alone records.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from loopscan.events import Event, Problem, Recorded, SessionEnded, SessionResumed, SessionStarted, Where
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import lines_of
from loopscan.transcripts.jsonl import BOM, Line, read_lines
from loopscan.transcripts.openclaw.entries import Entry, openclaw
from loopscan.transcripts.openclaw.rebuilt import KINDS, Rebuilt
from loopscan.transcripts.openclaw.results import compaction_loop
from loopscan.transcripts.openclaw.session import USED, Said, Session
from loopscan.transcripts.openclaw.trace import SCHEMA, TraceEvent, abort_of, cut_short, trace_event
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, identifier, mapping, string, text_of

#: A first line that is longer than the head: its beginning is enough.
_BEGINNING = re.compile(rb'\{"traceSchema":\s*"openclaw-trajectory",')
_SESSION = re.compile(rb'.{0,1000}?"sessionId":\s*"([^"\\]{1,300})"', re.DOTALL)
#: The types of entries that an export names differently.
_ENTRY_TYPES = {"info": "session_info"}
#: What runtime events are counted as; those of the transcript go by their own names.
_RUNTIME = "runtime "
#: Runtime events that hold what the transcript holds.
_CONTENT = frozenset({"model.completed", "tool.call", "tool.result"})


class TrajectoryReader:
    """Reads trajectories of OpenClaw: ``events.jsonl`` of an export, and ``ID.trajectory.jsonl``."""

    name = "openclaw-trajectory"
    traits = Traits(
        summary="trajectories of OpenClaw: exported ones, and those beside a session",
        recognised_by="events that name the trajectory schema",
        rank=10,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise an event of a trajectory."""
        if any(mapping(value).get("traceSchema") == SCHEMA for value in lines_of(head)):
            return Confidence.SURE
        return Confidence.SURE if _BEGINNING.match(head.removeprefix(BOM)) else Confidence.NO

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the ids of the sessions that the first events are of."""
        found = {identifier(mapping(value).get("sessionId")) for value in lines_of(head)}
        if first := _SESSION.match(head):
            found.add(first[1].decode("utf-8", "replace"))
        return frozenset(name for name in found if name is not None)

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all sessions in ``source``, in the order of its lines.

        Memory is bounded but for a few objects a session. Raises :class:`~loopscan.errors.InputError` if the source
        cannot be opened.
        """
        return drive(source, read_lines(source), _File(source))


class _File:
    """One trajectory while it is read; it may tell of several sessions."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._sessions: dict[str, _Traced] = {}
        self._current: str | None = None

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in an event."""
        event = trace_event(line, body)
        if event is None or event.session is None:
            self._source.count("other", used=False)
            if event is not None:
                yield Problem(line.number, "malformed-entry", "an event of a trajectory that names no session")
            return
        session = self._sessions.get(event.session)
        if session is None:
            session = self._sessions[event.session] = _Traced(event.session, event, self._source)
        yield from self._within(event.session, session.take(event))

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        session = self._sessions.get(self._current) if self._current is not None else None
        if session is None or self._current is None:
            yield problem
        else:
            yield from self._within(self._current, session.note(problem))

    def finish(self) -> Iterator[Event]:
        """End all sessions."""
        for name, session in self._sessions.items():
            yield from self._within(name, session.finish())
            self._current = None

    def _within(self, name: str, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events of a session, and say so where others came before."""
        for event in events:
            if not isinstance(event, Problem):
                if self._current != name and not isinstance(event, SessionStarted):
                    yield SessionResumed(name)
                self._current = name
            yield event


@dataclass(frozen=True, slots=True)
class _Abort:
    """An end by the post-compaction guard, which the runtime told of."""

    where: Where
    run_id: str | None
    loop: tuple[str, int]


class _Traced:
    """One session while its trajectory is read."""

    def __init__(self, name: str, event: TraceEvent, source: Source) -> None:
        self._name = name
        self._source = source
        self._giver = source.given_by(name)
        self._first = event
        self._line = event.line.number
        self._own = Source(source.name, io.BytesIO)
        """What the session counts: entries, while the lines of the source are events."""
        self._session: Session | None = None
        self._exported = False
        self._rebuilt = Rebuilt()
        self._aborts: list[_Abort] = []
        """Those that no entry told of so far."""
        self._told: Recent[str, bool] = Recent()
        """Runs of which it is told that the guard ended them."""
        self._active: str | None = None
        """The run that goes on, as far as the runtime tells, and what its user messages were."""
        self._prompts: set[int] = set()

    def take(self, event: TraceEvent) -> Iterator[Event]:
        """Take in an event of this session."""
        self._line = event.line.number
        if self._session is None and self._giver is None:
            self._begin()
        return self._entry(event) if event.transcript else self._runtime(event)

    def note(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        return iter((problem,)) if self._session is None else self._session.note(problem)

    def finish(self) -> Iterator[Event]:
        """Yield the rest: nothing follows."""
        if self._session is None:
            if self._aborts:
                yield self._started()
                for abort in self._aborts:
                    tool, count = abort.loop
                    detector = "compaction_loop_persisted"
                    yield Recorded("", abort.where, "compaction_abort", None, tool, detector, count)
                yield SessionEnded(Where(self._line))
            return
        yield from self._tell_aborts(self._session)
        lacks = self._rebuilt.lacks()
        if lacks is not None and (self._rebuilt.until or not self._exported):
            yield from self._session.note(Problem(self._first.line.number, "partial-record", lacks))
        yield from self._session.finish()

    # --- what the transcript says

    def _entry(self, event: TraceEvent) -> Iterator[Event]:
        self._exported = True
        body = _entry_body(event)
        if body is None:
            self._source.count(event.kind, used=False)
            return
        entry = event.entry(body)
        if self._is_copy(entry):
            return
        session = self._session or self._begin()
        if entry.role == "user":
            yield from self._tell_aborts(session)
        data = mapping(entry.body.get("data"))
        if entry.kind == "custom" and compaction_loop(data.get("error")) is not None:
            run_id = string(data.get("runId")) or ""
            self._told[run_id] = True
            self._aborts = [abort for abort in self._aborts if abort.run_id not in (None, run_id)]
        events = session.feed(self._of_run(entry))
        if self._own.copies:
            self._own.copies.clear()
            self._source.copies[self._source.name] += 1
        else:
            self._source.count(event.kind, used=entry.kind in USED)
        yield from events

    def _is_copy(self, entry: Entry) -> bool:
        """Say whether another source gave this entry, or this one did in another form; it is counted then."""
        source = self._source
        if entry.id is not None and source.is_copy(self._name, entry.id):
            return True
        if self._giver is not None:
            # Entries of version 1 have no ids but those that the export gives them.
            nameless = entry.id is None or entry.id.startswith("legacy-")
            if nameless or self._shown(entry.message):
                source.copies[self._giver] += 1
                return True
        if self._rebuilt.until and entry.sent_at is not None and entry.sent_at <= self._rebuilt.until:
            source.copies[source.name] += 1
            return True
        return False

    def _shown(self, message: Object) -> bool:
        """Say whether another trajectory showed this message of the session already; take down that this one does."""
        ledger, made = self._source.ledger, message.get("timestamp")
        if ledger is None or not isinstance(made, int | float):
            return False
        tool = string(message.get("toolName")) or ""
        key = f"message {string(message.get('role'))} {made} {tool}"
        return ledger.entry(self._source.name, self._name, key) is not None

    def _of_run(self, entry: Entry) -> Entry:
        """Return the entry with the id of the run that goes on, if it has none and there can be no other run.

        Transcripts before 2026.9 hold no run ids, the runtime's events do.
        """
        if entry.role == "user":
            self._prompts.add(hash(text_of(entry.message.get("content"))))
            if len(self._prompts) > 1:
                self._active = None
        elif entry.role in ("assistant", "toolResult") and self._active is not None and entry.run_id is None:
            own = {**openclaw(entry.message), "runId": self._active}
            return replace(entry, message={**entry.message, "__openclaw": own})
        return entry

    # --- what the runtime says

    def _runtime(self, event: TraceEvent) -> Iterator[Event]:
        if event.kind == "session.started" and event.run_id != self._active:
            self._active = event.run_id
            self._prompts.clear()
            if self._session is not None:
                yield from self._tell_aborts(self._session)
        elif event.kind == "session.ended" and event.run_id == self._active:
            self._active = None
        if self._giver is None and not self._exported:
            self._source.count(_RUNTIME + event.kind, used=event.kind in KINDS)
            yield from self._rebuild(event)
        else:
            yield from self._beside(event)

    def _beside(self, event: TraceEvent) -> Iterator[Event]:
        """Take in what the runtime tells of a session whose entries are here, or were elsewhere."""
        abort, run_id = abort_of(event.data), event.run_id or ""
        new = abort is not None and run_id not in self._told
        if self._giver is not None and event.kind in _CONTENT and not self._exported:
            self._source.copies[self._giver] += 1
        else:
            tells = event.kind in ("session.started", "session.ended") or new or cut_short(event.data)
            self._source.count(_RUNTIME + event.kind, used=tells)
        if abort is not None and new:
            self._told[run_id] = True
            self._aborts.append(_Abort(event.where, event.run_id, abort))
        if self._session is not None and abort is None and cut_short(event.data):
            yield from self._session.told(Said(event.where, event.run_id, explains=True))

    def _rebuild(self, event: TraceEvent) -> Iterator[Event]:
        session = self._session or self._begin()
        for said in self._rebuilt.take(event):
            if isinstance(said, Entry):
                self._shown(said.message)
                yield from session.feed(said)
                continue
            if said.abort is not None:
                if (said.run_id or "") in self._told:
                    said = replace(said, abort=None)
                self._told[said.run_id or ""] = True
            yield from session.told(said)
        self._own.copies.clear()

    # --- sessions

    def _begin(self) -> Session:
        first = self._started()
        self._session = Session(
            self._name, first.where, self._own, agent=first.agent, model=first.model, version=first.version
        )
        return self._session

    def _started(self) -> SessionStarted:
        body, where = self._first.body, self._first.where
        version = identifier(body.get("schemaVersion"))
        return SessionStarted(
            self._name, replace(where, entry=None), self._first.agent, string(body.get("modelId")), version
        )

    def _tell_aborts(self, session: Session) -> Iterator[Event]:
        for abort in self._aborts:
            where = Where(self._line, None, abort.where.time)
            yield from session.told(Said(where, abort.run_id, abort=abort.loop))
        self._aborts.clear()


def _entry_body(event: TraceEvent) -> Object | None:
    """Return the entry that an event of the transcript was made of; ``None`` if it repeats a part of one."""
    kind, data = event.kind, event.data
    if isinstance(data.get("message"), dict):
        body: Object = {"type": "message", "message": data["message"]}
    elif kind.startswith("session."):
        kind = kind.removeprefix("session.")
        body = {**data, "type": _ENTRY_TYPES.get(kind, kind)}
    else:
        return None
    body |= {"id": event.body.get("entryId"), "timestamp": event.body.get("ts")}
    if "parentEntryId" in event.body:
        body["parentId"] = event.body["parentEntryId"]
    return body
