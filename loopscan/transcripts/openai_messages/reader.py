"""The reader of conversations as messages with roles."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from loopscan.events import Event, Json, Pause, Problem, Where
from loopscan.transcripts.dialogue import Dialogues
from loopscan.transcripts.either import read_values
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of, lines_of
from loopscan.transcripts.jsonl import BOM, Line
from loopscan.transcripts.openai_messages.blocks import content_text, time_of
from loopscan.transcripts.openai_messages.conversation import NOTHING, Conversation, Response
from loopscan.transcripts.openai_messages.logs import Log, Logs, digests_of, opening_of
from loopscan.transcripts.openai_messages.shapes import (
    is_message,
    messages_in,
    name_of,
    reply_in,
    session_in,
    stem_of,
)
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, identifier, mapping, string

#: How many sessions may go on at the same time; the one that was quiet for longest ends.
MOST_SESSIONS = 256

#: A beginning whose first message is longer than the head: role and content are enough.
_LONG = re.compile(
    rb'\s*(?:\[\s*)?(?:\{[^][{}]{0,2000}"(?:messages|traj|conversation)"\s*:\s*\[\s*)?'
    rb'\{\s*"role"\s*:\s*"(?:system|developer|user)"\s*,\s*"content"\s*:\s*'
    rb'(?:\[\s*\{\s*"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*)?"[^"\\]*+(?:\\.[^"\\]*+)*+\\?\Z',
    re.DOTALL,
)


class OpenAIMessagesReader:
    """Reads messages with roles, as OpenAI's and Anthropic's interfaces take them and many programs log them."""

    name = "openai-messages"
    traits = Traits(
        summary="messages with roles in the form of OpenAI or Anthropic: conversations, logs of requests, benchmarks",
        recognised_by="objects with a role of those interfaces and a content or calls, or lists of them",
        rank=10,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise messages or conversations where nothing else is; never sure, since others write them too."""
        if _LONG.match(head.removeprefix(BOM)):
            return Confidence.LIKELY
        document = document_of(head)
        if isinstance(document, list):
            return _likely(document[:-1] or document) if document else Confidence.NO
        if isinstance(document, dict):
            return _likely([document])
        lines = list(lines_of(head))
        return _likely(lines) if lines else Confidence.NO

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the conversations in ``source``, each a session of its own.

        Single messages belong to the session that they name, or to the one of the source. Bounded memory. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        return drive(source, _objects(read_values(source)), _File(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return what the logs of the requests of one conversation have in common."""
        values = [document_of(head), *lines_of(head)]
        openings: set[str] = set()
        for value in values:
            messages = messages_in(value) if isinstance(value, dict) else None
            if messages and "messages" in mapping(value):
                openings.add(_family(opening_of(messages, digests_of(messages))))
        return frozenset(openings)


class _File:
    """One source while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stem = stem_of(source.name)
        self._dialogues = Dialogues()
        self._going: OrderedDict[str, Conversation] = OrderedDict()
        self._names: Recent[str, int] = Recent()
        """How often a name was taken."""
        self._conversations = 0
        self._logs = Logs()
        self._system: str | None = None
        """The text of the system message that began the session of the source."""
        self._spoken = False
        """Something followed it."""

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a message, a conversation or a log of a request."""
        where = Where(line.number, identifier(body.get("id")), time_of(body))
        if is_message(body):
            role = str(body["role"])
            self._source.count(role, used=self._message(body, where, line.size))
        else:
            messages = messages_in(body)
            reply = reply_in(body) if messages is not None else None
            if messages is None:
                self._source.count(string(body.get("role")) or string(body.get("type")) or "other", used=False)
            else:
                for log, replaced in self._logs.add(Log(body, messages, reply, where, line.size)):
                    self._log(log, replaced=replaced)
                    yield from self._dialogues.drain()
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where its line would have been."""
        yield problem

    def finish(self) -> Iterator[Event]:
        """End all sessions."""
        for log in self._logs.finish():
            self._log(log, replaced=False)
            yield from self._dialogues.drain()
        yield from self._dialogues.finish()

    def _message(self, body: Object, where: Where, size: int) -> bool:
        own = session_in(body)
        if own is None and body["role"] in ("system", "developer"):
            self._begins_anew(body)
        elif own is None:
            self._spoken = True
        return self._session(own or self._stem, where).take(body, where, size)

    def _begins_anew(self, body: Object) -> None:
        """Where the same system message comes again after others, another conversation begins."""
        text = content_text(body.get("content"))
        if self._spoken and text == self._system and self._stem in self._going:
            del self._going[self._stem]
            self._dialogues.end(self._stem)
            self._spoken = False
        if not self._spoken:
            self._system = text

    def _session(self, name: str, where: Where) -> Conversation:
        """Return the session that single messages belong to; it begins if it does not go on."""
        found = self._going.get(name)
        if found is not None:
            self._dialogues.get(found.dialogue.session)
            self._going.move_to_end(name)
            return found
        if len(self._going) >= MOST_SESSIONS:
            _, oldest = self._going.popitem(last=False)
            self._dialogues.end(oldest.dialogue.session)
        made = self._going[name] = Conversation(self._dialogues.start(self._unique(name), where))
        return made

    def _unique(self, name: str) -> str:
        """Return a name that no session of the source has."""
        taken = (self._names.get(name) or 0) + 1
        self._names[name] = taken
        return name if taken == 1 else f"{name}~{taken}"

    def _begin(self, body: Object, where: Where, model: str | None = None) -> Conversation:
        self._conversations += 1
        name = self._unique(name_of(body, self._stem, self._conversations))
        return Conversation(self._dialogues.start(name, where, model=string(body.get("model")) or model))

    def _log(self, log: Log, *, replaced: bool) -> None:
        """Tell a log of a request, unless another one stands for it."""
        giver = self._source.name if replaced else self._giver(log)
        if giver is not None:
            self._source.copies[giver] += 1
            return
        reply = log.reply
        self._source.count("conversation" if reply is None else "request", used=True)
        talk = self._begin(log.body, log.where, reply.known.model if reply is not None else None)
        for place, message in enumerate(log.messages):
            known = log.known.get(place, NOTHING)
            self._tell(talk, message, Where(log.where.line, None, known.time), known)
        if reply is not None:
            where = Where(log.where.line, log.where.entry, reply.known.time)
            if reply.message is None:
                talk.failed(where, reply.known)
            else:
                talk.take({"content": None, **reply.message, "role": "assistant"}, where, 0, reply.known)
        self._dialogues.end(talk.dialogue.session)

    def _giver(self, log: Log) -> str | None:
        """Return the other source that holds all messages of a log, that of the response too."""
        ledger = self._source.ledger
        if ledger is None or (log.reply is None and not log.answered):
            return None
        session = _family(log.opening)
        *earlier, last = log.steps
        giver = ledger.entry(self._source.name, session, str(last))
        if giver is None:
            for step in earlier:
                ledger.entry(self._source.name, session, str(step))
        return giver

    def _tell(self, talk: Conversation, message: Json, where: Where, known: Response = NOTHING) -> None:
        """Tell a message that a conversation holds; what is none is a problem."""
        if not is_message(message):
            detail = "something among the messages of a conversation that is no message"
            talk.dialogue.problem(Problem(where.line, "not-a-message", detail))
            return
        body = mapping(message)
        time = time_of(body)
        talk.take(body, where if time is None else Where(where.line, where.entry, time), 0, known)


def _objects(items: Iterable[Line | Problem | Pause]) -> Iterator[Line | Problem | Pause]:
    """Give lists of messages the form of an object."""
    for item in items:
        if isinstance(item, Line) and isinstance(item.value, list):
            yield Line(item.number, {"messages": item.value}, item.size)
        else:
            yield item


def _likely(values: list[Json]) -> Confidence:
    """Whether all of the first values of a source are messages or conversations."""
    known = all(_is_known(value) for value in values)
    return Confidence.LIKELY if known else Confidence.NO


def _is_known(value: Json) -> bool:
    if isinstance(value, list):
        return bool(value) and is_message(value[0])
    return is_message(value) or (isinstance(value, dict) and messages_in(value) is not None)


def _family(opening: int) -> str:
    return f"openai-messages:{opening:016x}"
