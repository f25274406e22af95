"""One session of the Gemini CLI: messages in the two forms that it keeps, told to a dialogue.

A chat is a list of contents, ``{role, parts}``, as the model saw it. A session file holds messages, ``{id, type,
content, toolCalls}``, each with the answers of its calls; a message is written again when more of it is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import NO_USAGE, Call, Json, Problem, Usage, Where
from loopscan.transcripts.dialogue import Dialogue
from loopscan.transcripts.gemini.answers import Answer, answer_of, response_in
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, identifier, mapping, seconds, string, tokens

#: Texts in the name of the user that the CLI itself writes.
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
_SNAPSHOT = "<state_snapshot>"
_OWN = ("System: ", "Please continue.")
_COMPRESSED = re.compile(r"compress(?:ed|ion)\b[^\n]{0,120}\bfrom:? [\d,.]+(?: tokens)? to [\d,.]+ tokens", re.I)
_STOPPED = re.compile(r"Request cancelled\.|User cancelled the request\.")
#: The types of messages of a session file that no model wrote.
NOTES = frozenset({"info", "error", "warning"})


@dataclass(slots=True)
class Message:
    """A message in either form."""

    role: str
    """``user``, ``model``, or one of :data:`NOTES`."""
    parts: list[Json]
    calls: list[Object]
    """The calls that a session file lists, with their results."""
    where: Where
    """Where it was written first."""
    written: Where
    """Where it was written last."""
    model: str | None = None
    usage: Usage = NO_USAGE
    size: int = 0


class Session:
    """Tells the messages of one session to its dialogue."""

    def __init__(self, dialogue: Dialogue, source: Source) -> None:
        self._dialogue = dialogue
        self._source = source
        self._tools: Recent[str, str] = Recent()
        """The tools of calls that the responses in later messages are for, by id."""
        self._called: Recent[str, bool] = Recent()
        """The ids of calls that a session file listed, and whether with a result."""
        self._opened = False
        """The latest message was context from the CLI, which a text of the model may acknowledge."""
        self._compacted = False
        """The latest compaction has not been followed by anything yet."""
        self._going = False
        """The model wants an answer to its calls."""
        self._nameless = False
        """Its calls have no ids, though their responses may have."""

    def take(self, message: Message, *, again: bool = False) -> bool:
        """Take in a message; return whether it told the replay something.

        ``again``: it was taken in before, and was written once more since; only what is new in it counts.
        """
        if message.role == "model":
            return self._model(message, again=again)
        if again:
            return False
        if message.role == "user":
            return self._user(message)
        return self._note(message)

    def compaction(self, where: Where) -> None:
        """Take in a compaction, unless it was told already."""
        if not self._compacted:
            self._dialogue.compaction(where)
        self._compacted = True

    def _user(self, message: Message) -> bool:
        responses = [mapping(mapping(part).get("functionResponse")) for part in message.parts]
        responses = [response for response in responses if response]
        if responses:
            told = [self._response(response, message) for response in responses]
            return any(told)
        text = _text(message.parts)
        if text.lstrip().startswith(_CONTEXT):
            self._opened = True
            return False
        if text.lstrip().startswith(_SNAPSHOT):
            self._opened = True
            self.compaction(message.where)
            return True
        if text.startswith(_OWN[0]) or text == _OWN[1]:
            return False
        self._opened = self._compacted = self._going = False
        self._dialogue.user(message.where)
        return True

    def _response(self, response: Object, message: Message) -> bool:
        call_id = identifier(response.get("id"))
        if call_id is not None and self._called.get(call_id):
            return False  # a copy of what the session file lists with its call
        if call_id is not None and self._nameless and call_id not in self._tools:
            call_id = None
        name = string(response.get("name"))
        tool = (self._tools.get(call_id) if call_id is not None else None) or name or ""
        answer = answer_of(tool, response.get("response"), self._source)
        self._answer(answer, message.written, call_id, name, message.size)
        return True

    def _model(self, message: Message, *, again: bool) -> bool:
        listed = [call for call in message.calls if string(call.get("name")) is not None]
        bare = [mapping(mapping(part).get("functionCall")) for part in message.parts]
        bare = [call for call in bare if string(call.get("name")) is not None]
        for call in message.calls:
            if string(call.get("name")) is None:
                self._dialogue.problem(Problem(message.where.line, "malformed-call", "a call without a tool name"))
        wanted = listed or bare
        if again:
            wanted = [call for call in listed if self._is_new(call, message)]
            if not wanted:
                return False
        if not wanted and self._opened and not message.usage.total:
            self._opened = False
            return False
        self._opened = self._compacted = False
        calls = [
            Call(string(call.get("name")) or "", call.get("args", {}), identifier(call.get("id"))) for call in wanted
        ]
        self._dialogue.turn(
            message.written if again else message.where,
            calls,
            model=message.model,
            usage=NO_USAGE if again else message.usage,
            size=message.size,
        )
        self._going = bool(calls)
        self._nameless = any(call.id is None for call in calls)
        for made, raw in zip(calls, wanted, strict=True):
            if made.id is not None:
                self._tools[made.id] = made.tool
            if listed:
                self._listed(made, raw, message)
        return True

    def _is_new(self, call: Object, message: Message) -> bool:
        """Whether a call was not there when its message was written before; its result may have come since."""
        call_id = identifier(call.get("id"))
        if call_id is None or call_id not in self._called:
            return call_id is not None
        if not self._called.get(call_id) and _has_answer(call):
            self._called[call_id] = True
            tool = string(call.get("name")) or ""
            answer = _listed_answer(tool, call, call_id, self._source)
            self._answer(answer, message.written, call_id, tool, 0)
        return False

    def _listed(self, call: Call, raw: Object, message: Message) -> None:
        answered = _has_answer(raw)
        if call.id is not None:
            self._called[call.id] = answered
        if answered:
            answer = _listed_answer(call.tool, raw, call.id, self._source)
            self._answer(answer, message.written, call.id, call.tool, 0)

    def _answer(self, answer: Answer, where: Where, call_id: str | None, tool: str | None, size: int) -> None:
        if answer.absent is not None:
            self._dialogue.absent(where, answer.absent, call_id=call_id, tool=tool, size=size)
        else:
            self._dialogue.result(where, answer.outcome, call_id=call_id, tool=tool, fate=answer.fate, size=size)

    def _note(self, message: Message) -> bool:
        text = _text(message.parts)
        if message.role != "error" and _COMPRESSED.search(text):
            self.compaction(message.where)
            return True
        if self._going and (message.role == "error" or _STOPPED.match(text)):
            self._going = False
            self._dialogue.stopped(message.where)
            return True
        return False


def usage_of(record: Json) -> Usage:
    """Return what a message says that the model's response cost; cached tokens are part of its input there."""
    counts = mapping(record)
    cached = tokens(counts.get("cached"))
    read = max(0, tokens(counts.get("input")) - cached)
    written = tokens(counts.get("output")) + tokens(counts.get("thoughts"))
    total = tokens(counts.get("total")) or read + written + cached
    return Usage(input=read, output=written, cache_read=cached, total=total)


def parts_of(content: Json) -> list[Json]:
    """Return the parts of a content: a text by itself is one, and so is a part without a list around it."""
    if isinstance(content, str):
        return [{"text": content}]
    return [content] if isinstance(content, dict) else array(content)


def message_of(body: Object, where: Where, size: int) -> Message | None:
    """Return the message of a session file, ``None`` if it has no known type."""
    kind = string(body.get("type"))
    if kind not in ("user", "gemini") and kind not in NOTES:
        return None
    calls = [call for call in array(body.get("toolCalls")) if isinstance(call, dict)]
    role = "model" if kind == "gemini" else str(kind)
    model = string(body.get("model"))
    return Message(
        role, parts_of(body.get("content")), calls, where, where, model, usage_of(body.get("tokens")), size
    )


def content_of(body: Object, where: Where, size: int) -> Message | None:
    """Return the message that one content of a chat is, ``None`` if it is none."""
    role = string(body.get("role"))
    parts = body.get("parts")
    if role not in ("user", "model", "function") or not isinstance(parts, list):
        return None
    usage = _metadata(body.get("usageMetadata"))
    role = "model" if role == "model" else "user"
    return Message(role, parts, [], where, where, usage=usage, size=size)


def is_snapshot(body: Object) -> bool:
    """Whether a message of a session file is the summary that the CLI puts in the place of what it compressed."""
    return body.get("type") == "user" and _text(parts_of(body.get("content"))).lstrip().startswith(_SNAPSHOT)


def time_of(body: Object) -> float | None:
    """Return when a record was made."""
    for name in ("timestamp", "startTime", "lastUpdated"):
        found = seconds(body.get(name))
        if found is not None:
            return found
    return None


def _metadata(value: Json) -> Usage:
    counts = mapping(value)
    names = {
        "input": "promptTokenCount",
        "output": "candidatesTokenCount",
        "cached": "cachedContentTokenCount",
        "thoughts": "thoughtsTokenCount",
        "total": "totalTokenCount",
    }
    return usage_of({ours: counts.get(theirs) for ours, theirs in names.items()})


def _has_answer(call: Object) -> bool:
    return call.get("status") in ("success", "error", "cancelled") or call.get("result") is not None


def _listed_answer(tool: str, call: Object, call_id: str | None, source: Source) -> Answer:
    response = response_in(call.get("result"), call_id)
    return answer_of(tool, response, source, status=string(call.get("status")))


def _text(parts: list[Json]) -> str:
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))
