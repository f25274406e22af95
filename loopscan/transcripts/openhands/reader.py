"""The reader of OpenHands events."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopscan.events import Event, Json, Problem, Where
from loopscan.transcripts.dialogue import Dialogues
from loopscan.transcripts.either import read_values
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of, lines_of
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.openhands import classic, sdk, steps
from loopscan.transcripts.openhands.commands import COMMAND_FOOTER
from loopscan.transcripts.openhands.session import Entry, Session, entry_of
from loopscan.transcripts.pieces import read_pieces
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.values import Object, array, identifier, mapping, string

#: Fields of a document that holds the events of a conversation.
_HOLDERS = ("events", "history", "trajectory")
#: Files of a folder that hold one event each, and are no session: ``event-00012-<id>.json``, and ``events/12.json``.
_ONE_EVENT = re.compile(r"(?:^|[/\\])(?:event-\d{3,}-[^/\\]*|events[/\\]\d+)\.json$")
_SUFFIX = re.compile(r"\.jsonl?$")


class OpenHandsReader:
    """Reads events of OpenHands: a line each, in an array, or in the document of an evaluation or an export."""

    name = "openhands"
    traits = Traits(
        pieces=True,
        summary="events of OpenHands: its SDK, the classic application, and evaluations",
        recognised_by="events with a kind of the SDK, or actions and observations with a source",
        tools={"terminal": "exec", "execute_bash": "exec", "run": "exec"},
        normalisers={
            COMMAND_FOOTER: "what OpenHands adds below the output of a command is taken off: the exit code (kept as "
            "such), the Python interpreter, and the folder if the command failed",
            sdk.ACTION_NOTES: "summary and risk, which the model writes beside the arguments of a call, are left out",
        },
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise events. A file that holds one event of a folder of them is no session, and none of ours."""
        if _ONE_EVENT.search(name):
            return Confidence.NO
        values = (*lines_of(head), document_of(head))
        return max((_recognise(value) for value in values), default=Confidence.NO)

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the first event: no event names its conversation, and copies of one begin alike."""
        first = _first_event(head)
        return frozenset() if first is None else frozenset({first})

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the conversations in ``source``, in the order in which they were recorded.

        Lines or elements of an array are one conversation, named after the file; a document with its events in a
        list is one by itself. What an agent does that another one delegates to is a session of its own. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        values = read_values(source) if source.pieces is None else read_pieces(source, source.pieces)
        return drive(source, values, _Events(source))


class _Events:
    """The values of one source while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._dialogues = Dialogues()
        file = pieces_of(source.name)[-1]
        self._file = _SUFFIX.sub("", file) or file
        self._session: Session | None = None
        """The conversation whose events are the values themselves."""
        self._first: str | None = None
        """What other sources know the conversation by."""
        self._names: set[str] = set()

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in an event, or a document of them."""
        entry = entry_of(body, line.number, line.size)
        held = None if _is_event(body) else _held(body)
        if held is not None:
            self._source.count("conversation", used=True)
            yield from self._conversation(entry, held)
        else:
            self._event(entry)
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the value would have been."""
        if self._session is None:
            yield problem
        else:
            self._session.dialogue(Where(problem.line)).problem(problem)
            yield from self._dialogues.drain()

    def finish(self) -> Iterator[Event]:
        """End the conversations."""
        return self._dialogues.finish()

    def _event(self, entry: Entry) -> None:
        if not _is_event(entry.body):
            self._source.count("other", used=False)
            return
        session = self._session
        if session is None:
            session = self._session = Session(self._name(None), self._source, self._dialogues)
            self._first = entry.key
        if session.repeated(entry):
            self._source.copies[self._source.name] += 1
        elif self._first is None or entry.key is None or not self._source.is_copy(self._first, entry.key):
            self._source.count(_kind(entry.body), used=_take(session, entry))

    def _conversation(self, whole: Entry, held: list[Json]) -> Iterator[Event]:
        name = self._name(identifier(whole.body.get("instance_id")) or identifier(whole.body.get("id")))
        session = Session(name, self._source, self._dialogues)
        line = whole.where.line
        for value in _flat(held):
            body = mapping(value)
            if _is_event(body):
                entry = entry_of(body, line, 0)
                if not session.repeated(entry):
                    _take(session, entry)
                yield from self._dialogues.drain()
            elif not isinstance(value, dict):
                session.dialogue(Where(line)).problem(Problem(line, "bad-event", "an event that is no object"))
        session.end()

    def _name(self, given: str | None) -> str:
        name = given or self._file
        if name in self._names:
            name = f"{name}#{len(self._names) + 1}"
        self._names.add(name)
        return name


def _take(session: Session, entry: Entry) -> bool:
    """Take in an event of whatever kind; say whether it said something."""
    for take in (sdk.take, classic.take, steps.take):
        used = take(session, entry)
        if used is not None:
            return used
    return False


def _is_event(body: Object) -> bool:
    kind = body.get("kind")
    if isinstance(kind, str) and sdk.is_kind(kind):
        return True
    return classic.is_action(body) or classic.is_observation(body) or steps.is_step(body)


def _kind(body: Object) -> str:
    names = (string(body.get(name)) for name in ("kind", "action", "observation"))
    return next((name for name in names if name is not None), "step" if steps.is_step(body) else "other")


def _held(body: Object) -> list[Json] | None:
    """Return the events that a document holds, or ``None``."""
    return next((held for name in _HOLDERS if isinstance(held := body.get(name), list)), None)


def _flat(held: list[Json]) -> Iterator[Json]:
    """Yield events; old evaluations hold pairs of them, an action and its observation."""
    for value in held:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _recognise(value: Json) -> Confidence:
    """Say how sure it is that a value is an event, begins with one, or holds some."""
    if isinstance(value, list):
        return max((_event(each) for each in value[:4]), default=Confidence.NO)
    found = _event(value)
    held = _held(mapping(value)) if found is Confidence.NO else None
    return max((_event(each) for each in _flat(held[:4])), default=Confidence.NO) if held else found


def _event(value: Json) -> Confidence:
    body = mapping(value)
    if not body:
        return Confidence.NO
    kind = body.get("kind")
    if isinstance(kind, str) and sdk.is_kind(kind) and isinstance(body.get("source"), str):
        return Confidence.SURE if "timestamp" in body and "id" in body else Confidence.LIKELY
    if classic.is_action(body) or classic.is_observation(body):
        return Confidence.SURE if isinstance(body.get("source"), str) or "cause" in body else Confidence.LIKELY
    return Confidence.SURE if steps.is_step(body) else Confidence.NO


def _first_event(head: bytes) -> str | None:
    """Return the key of the first event, if it stands by itself and has one."""
    whole = document_of(head)
    for value in (*lines_of(head), *(array(whole) if isinstance(whole, list) else [whole])):
        body = mapping(value)
        if _is_event(body):
            return entry_of(body, 0, 0).key
    return None
