"""The reader of ``api_conversation_history.json``: what the model was sent, and what it answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from loopscan.events import NO_USAGE, Call, Event, Fate, Json, Problem, Usage, Where
from loopscan.transcripts.cline.answers import (
    NORMALISERS,
    answer_of,
    answers_in,
    answers_question,
    speaks,
    without_context,
)
from loopscan.transcripts.cline.markup import COMMAND, SPEAKING, SUMMARY, calls_in
from loopscan.transcripts.cline.places import HISTORY, family_of, task_of
from loopscan.transcripts.dialogue import Dialogue, Dialogues
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of
from loopscan.transcripts.jsonl import BOM, Line
from loopscan.transcripts.openai_messages.blocks import blocks_of, calls_of, content_text, time_of
from loopscan.transcripts.openai_messages.shapes import is_message
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.values import Object, array, dollars, identifier, mapping, string, text_of, tokens

_OPENINGS = ("<task>", "<user_message>", "[TASK RESUMPTION]")
#: A beginning that is longer than a head: its first words are enough.
_LONG = re.compile(
    rb'\s*\[\s*\{\s*"role"\s*:\s*"user"\s*,\s*"content"\s*:\s*(?:\[\s*\{\s*"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*)?'
    rb'"<(?:task|user_message)>'
)
_NO_TOOL = "[ERROR] You did not use a tool"
_RESUMED = "[TASK RESUMPTION]"
_PROGRESS = "task_progress"


@dataclass(slots=True)
class _Asked:
    """A call that waits for its answer."""

    tool: str
    id: str | None

    @property
    def is_call(self) -> bool:
        """Whether it is a call to the loop detection, and not the model speaking."""
        return self.tool not in SPEAKING and self.tool not in SUMMARY


class ClineReader:
    """Reads the conversations of Cline and its relatives with the model."""

    name = "cline"
    traits = Traits(
        summary="conversations of Cline, Roo Code and Kilo Code with the model (api_conversation_history.json)",
        recognised_by="messages with roles, of which the first is a task in the words of Cline",
        tools={COMMAND: "exec"},
        normalisers=NORMALISERS,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise messages whose first is a task, or which have the name of such a file."""
        if _LONG.match(head.removeprefix(BOM)):
            return Confidence.SURE
        messages = array(document_of(head))
        if not messages or not is_message(messages[0]):
            return Confidence.NO
        if name.endswith(HISTORY):
            return Confidence.SURE
        text = text_of(mapping(messages[0]).get("content"))
        return Confidence.SURE if text.startswith(_OPENINGS) or "<environment_details>" in text else Confidence.NO

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the task in ``source``.

        Nothing if another source gave the task already. Raises :class:`~loopscan.errors.InputError` if the source
        cannot be opened.
        """
        return drive(source, read_elements(source), _History(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the task, of which ``ui_messages.json`` beside it is another record."""
        return family_of(name)


class _History:
    """One conversation while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._task = task_of(source.name)
        self._giver = source.given_by(self._task)
        self._dialogues = Dialogues()
        self._asked: list[_Asked] = []
        """What the latest message of the model asked for, in order."""

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a message."""
        if self._giver is not None:
            self._source.copies[self._giver] += 1
            return
        where = Where(line.number, identifier(body.get("id")), time_of(body))
        role = string(body.get("role")) or "no role"
        self._source.count(role, used=self._message(role, body, where, line.size))
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where its message would have been."""
        yield problem

    def finish(self) -> Iterator[Event]:
        """End the task."""
        yield from self._dialogues.finish()

    def _message(self, role: str, body: Object, where: Where, size: int) -> bool:
        if role not in ("user", "assistant"):
            return False
        dialogue = self._dialogues.get(self._task) or self._dialogues.start(self._task, where)
        if body.get("isSummary") is True or body.get("isTruncationMarker") is True:
            dialogue.compaction(where)
            return True
        if role == "assistant":
            self._assistant(dialogue, body, where, size)
            return True
        return self._user(dialogue, body, where, size)

    def _assistant(self, dialogue: Dialogue, body: Object, where: Where, size: int) -> None:
        native, nameless = calls_of(body)
        if nameless:
            dialogue.problem(Problem(where.line, "malformed-call", "a call without a tool name"))
        written = [] if native else calls_in(text_of(body.get("content")))
        calls = native or [Call(each.tool, dict[str, Json](each.parameters)) for each in written]
        calls = [self._without_progress(call) for call in calls]
        self._asked = [_Asked(call.tool, call.id) for call in calls]
        model = string(mapping(body.get("modelInfo")).get("modelId"))
        dialogue.turn(
            where,
            [call for call, asked in zip(calls, self._asked, strict=True) if asked.is_call],
            model=model,
            usage=_usage(body),
            size=size,
        )

    def _without_progress(self, call: Call) -> Call:
        """Return a call without the list of steps, which is none of the tool's arguments."""
        arguments = call.arguments
        if not isinstance(arguments, dict) or _PROGRESS not in arguments:
            return call
        self._source.normalised["progress-list"] += 1
        return replace(call, arguments={name: value for name, value in arguments.items() if name != _PROGRESS})

    def _user(self, dialogue: Dialogue, body: Object, where: Where, size: int) -> bool:
        """Take in what the model was sent: answers to its calls, what the user said, or both."""
        asked, self._asked = self._asked, []
        texts = [block.get("text") for block in blocks_of(body) if block.get("type") == "text"]
        content = body.get("content")
        whole = content if isinstance(content, str) else "\n\n".join(text for text in texts if isinstance(text, str))
        text = without_context(whole, self._source)
        answers = _native(body, asked)
        beside = bool(answers) and answers_question(text)
        written = [each for each in asked if each.id is None]
        answers += list(zip(written, ((each, False) for each in answers_in(text, len(written))), strict=False))
        if text.startswith(_RESUMED) or (not answers and _RESUMED in text):
            if any(each.is_call for each in asked):
                dialogue.stopped(where)
            dialogue.user(where)
            return True
        if not answers:
            if text.startswith(_NO_TOOL):
                return False
            dialogue.user(where)
            return True
        said = [speaks(answer) if each.is_call else answers_question(answer) for each, (answer, _) in answers]
        if beside or any(said):
            dialogue.user(where)
        for each, (answer, failed) in answers:
            if each.tool in SUMMARY:
                dialogue.compaction(where)
            elif each.is_call:
                found = answer_of(each.tool, answer, failed=failed)
                fate = found.fate if found.outcome is not None else Fate.NOT_RUN
                dialogue.result(where, found.outcome, call_id=each.id, tool=each.tool, fate=fate, size=size)
        return True


def _native(body: Object, asked: list[_Asked]) -> list[tuple[_Asked, tuple[str, bool]]]:
    """Return the answers that are blocks of their own, with the calls that they are for."""
    waiting = {each.id: each for each in asked if each.id is not None}
    found: list[tuple[_Asked, tuple[str, bool]]] = []
    for block in blocks_of(body):
        call_id = identifier(block.get("tool_use_id"))
        if block.get("type") == "tool_result" and call_id is not None:
            answer = (content_text(block.get("content")), block.get("is_error") is True)
            found.append((waiting.get(call_id, _Asked("", call_id)), answer))
    return found


def _usage(body: Object) -> Usage:
    """Return what a response cost, as newer releases store it with the message."""
    metrics = mapping(body.get("metrics"))
    counts = mapping(metrics.get("tokens"))
    if not counts:
        return NO_USAGE
    asked, said, cached = (tokens(counts.get(name)) for name in ("prompt", "completion", "cached"))
    return Usage(asked, said, cached, 0, asked + said + cached, dollars(metrics.get("cost")))
