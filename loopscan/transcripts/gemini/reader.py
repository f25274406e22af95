"""The reader of what the Gemini CLI keeps of its sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopscan.events import Event, Json, Problem, Where
from loopscan.transcripts.dialogue import Dialogues
from loopscan.transcripts.either import read_values
from loopscan.transcripts.feed import drive
from loopscan.transcripts.gemini.answers import NORMALISERS, SHELL
from loopscan.transcripts.gemini.session import (
    NOTES,
    Message,
    Session,
    content_of,
    is_snapshot,
    message_of,
    time_of,
)
from loopscan.transcripts.heads import document_of, lines_of
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, identifier, mapping, string

#: Where an object keeps the contents of a chat.
_CHATS = ("history", "clientHistory", "contents")
_SUFFIX = re.compile(r"(?:\.jsonl?)?(?:\.(?:gz|zst))?\Z")


class GeminiReader:
    """Reads saved chats and session files of the Gemini CLI."""

    name = "gemini"
    traits = Traits(
        summary="saved chats and session files of the Gemini CLI (JSON and JSON lines)",
        recognised_by="contents with role and parts, or a header with sessionId and projectHash",
        tools={SHELL: "exec"},
        normalisers=NORMALISERS,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise the header of a session file, its messages, or the contents of a chat."""
        best = _recognise_document(document_of(head))
        for value in lines_of(head):
            best = max(best, _recognise_record(value))
        return best

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the sessions in ``source``.

        A message that is written again counts in its last state if nothing else began in between; after that,
        only the calls and results that are new in it do. Bounded memory. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        return drive(source, read_values(source), _File(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the id of the session: a session file may lie beside the lines that it was turned into."""
        for value in (document_of(head), *lines_of(head)):
            session = string(mapping(value).get("sessionId"))
            if session is not None:
                return frozenset({session})
        return frozenset()


class _File:
    """One source while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._dialogues = Dialogues()
        self._name: str | None = None
        self._session: Session | None = None
        self._held: tuple[str | None, str, Message] | None = None
        """The latest message, with id and kind: it may be written again."""
        self._seen: Recent[str, bool] = Recent()
        """The ids of messages of the session that were taken in."""
        self._written = False
        """The session has a message already."""

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a record."""
        where = Where(line.number, identifier(body.get("id")), time_of(body))
        if "$set" in body or "$rewindTo" in body:
            self._patch(body, where)
        elif "sessionId" in body and "type" not in body:
            self._header(body, where)
            self._count("session", True, self._messages(body.get("messages"), where))
        elif "parts" in body:
            self._let_go()
            self._count(string(body.get("role")) or "no role", self._content(body, where, line.size))
        elif any(isinstance(body.get(name), list) for name in _CHATS):
            self._count("chat", self._chat(body, where))
        else:
            self._record(body, where, line.size)
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where its line would have been."""
        yield problem

    def finish(self) -> Iterator[Event]:
        """End the session."""
        self._let_go()
        yield from self._dialogues.finish()

    def _header(self, body: Object, where: Where) -> None:
        name = string(body.get("sessionId")) or session_of(self._source.name)
        if name == self._name:
            return
        self._let_go()
        self._start(name, where)

    def _start(self, name: str, where: Where) -> Session:
        if self._name is not None:
            self._dialogues.end(self._name)
        self._name = name
        self._seen = Recent()
        self._written = False
        self._session = Session(self._dialogues.start(name, where), self._source)
        return self._session

    def _going(self, where: Where) -> Session:
        """Return the session that goes on: one without a header is named after its source."""
        if self._session is None or self._name is None:
            return self._start(session_of(self._source.name), where)
        self._dialogues.get(self._name)
        return self._session

    def _messages(self, messages: Json, where: Where) -> str | None:
        """Take in the messages that one value holds; its line is all that is known of their places.

        Return the source that gave all of them before, if one did.
        """
        givers: set[str | None] = set()
        for body in map(mapping, array(messages)):
            entry = identifier(body.get("id"))
            message = message_of(body, Where(where.line, entry, time_of(body)), 0)
            if message is None:
                continue
            again = entry is not None and entry in self._seen
            giver = self._giver(entry)
            givers.add(giver)
            if giver is None:
                self._going(where).take(message, again=again)
            if entry is not None:
                self._seen[entry] = True
        return None if None in givers else next(iter(givers), None)

    def _giver(self, entry: str | None) -> str | None:
        """Return the source that gave a message of the session before, if one did; nothing is counted."""
        ledger = self._source.ledger
        if ledger is None or entry is None or self._name is None:
            return None
        return ledger.entry(self._source.name, self._name, entry)

    def _count(self, kind: str, told: bool, giver: str | None = None) -> None:
        if giver is not None:
            self._source.copies[giver] += 1
        else:
            self._source.count(kind, used=told)

    def _record(self, body: Object, where: Where, size: int) -> None:
        """Take in a message of a session file."""
        kind = string(body.get("type")) or "no type"
        message = message_of(body, where, size)
        if message is None:
            self._source.count(kind, used=False)
            return
        session = self._going(where)
        if self._held is not None and where.entry is not None and self._held[0] == where.entry:
            message.where = self._held[2].where
            self._held = (where.entry, kind, message)
            self._source.copies[self._source.name] += 1
            return
        self._let_go()
        if where.entry is not None and where.entry in self._seen:
            giver = self._giver(where.entry)
            told = giver is None and session.take(message, again=True)
            self._count(kind, told, giver if told or giver is not None else self._source.name)
            return
        self._held = (where.entry, kind, message)

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is None or self._name is None:
            return
        entry, kind, message = held
        self._written = True
        if entry is not None:
            self._seen[entry] = True
        giver = self._giver(entry)
        self._count(kind, giver is None and self._going(message.where).take(message), giver)

    def _patch(self, body: Object, where: Where) -> None:
        """Take in a line that changes the session as a whole.

        It may hold all messages anew, after masking or compression: they were written before, except for the
        summary that stands for what was compressed.
        """
        changes = mapping(body.get("$set"))
        told, giver = False, None
        if self._held is None and not self._written and array(changes.get("messages")):
            giver = self._messages(changes.get("messages"), where)
            self._written = told = True
        else:
            for each in map(mapping, array(changes.get("messages"))):
                entry = identifier(each.get("id"))
                if entry is not None and entry not in self._seen and is_snapshot(each):
                    self._let_go()
                    self._seen[entry] = True
                    self._going(where).compaction(where)
                    told = True
        self._count("$rewindTo" if "$rewindTo" in body else "$set", told, giver)

    def _content(self, body: Object, where: Where, size: int) -> bool:
        """Take in one content of a chat; return whether it told the replay something."""
        message = content_of(body, where, size)
        return message is not None and self._going(where).take(message)

    def _chat(self, body: Object, where: Where) -> bool:
        """Take in a chat that is one object; a further one is a session of its own."""
        self._let_go()
        own = string(body.get("sessionId"))
        stem = session_of(self._source.name)
        number = 1
        if self._name is not None and own is None:
            found = re.search(r"#(\d{1,9})\Z", self._name)
            number = (int(found[1]) if found else 1) + 1
        self._start(own or (stem if number == 1 else f"{stem}#{number}"), where)
        told = [self._content(mapping(content), where, 0) for content in _chat_in(body)]
        return any(told)


def _chat_in(body: Object) -> list[Json]:
    """Return the contents that an object holds; of several lists, the one that the model saw."""
    for name in ("clientHistory", "history", "contents"):
        chat = array(body.get(name))
        if any("parts" in mapping(content) for content in chat):
            return chat
    return []


def session_of(path: str) -> str:
    """Return the session that a source is named after: ``checkpoint-TAG.json`` is ``TAG``."""
    name = pieces_of(path)[-1]
    return _SUFFIX.sub("", name).removeprefix("checkpoint-") or name


def _recognise_record(value: Json) -> Confidence:
    if not isinstance(value, dict):
        return Confidence.NO
    if isinstance(value.get("sessionId"), str) and isinstance(value.get("projectHash"), str):
        return Confidence.SURE
    kind = value.get("type")
    if isinstance(value.get("id"), str) and isinstance(value.get("timestamp"), str) and "content" in value:
        if kind == "gemini":
            return Confidence.SURE
        if kind == "user" or (isinstance(kind, str) and kind in NOTES):
            return Confidence.LIKELY
    if isinstance(value.get("$set"), dict) and set(value) == {"$set"}:
        return Confidence.LIKELY
    chats = [value[name] for name in _CHATS if isinstance(value.get(name), list)]
    return max((_recognise_contents(chat) for chat in chats), default=Confidence.NO)


def _recognise_document(value: Json) -> Confidence:
    if isinstance(value, list):
        return _recognise_contents(value)
    found = _recognise_record(value)
    messages = array(mapping(value).get("messages"))
    if found is Confidence.NO and messages:
        found = max(_recognise_record(each) for each in messages)
    return found


def _recognise_contents(value: Json) -> Confidence:
    """Recognise the contents of a chat; the last one may be cut."""
    contents = array(value)
    if not contents or not all(
        isinstance(each, dict) and isinstance(each.get("parts"), list) for each in contents[:-1]
    ):
        return Confidence.NO
    whole = [each for each in contents if isinstance(each, dict) and isinstance(each.get("parts"), list)]
    if not whole or any(each.get("role") not in ("user", "model", "function", None) for each in whole):
        return Confidence.NO
    return Confidence.SURE if any("role" in each for each in whole) else Confidence.LIKELY
