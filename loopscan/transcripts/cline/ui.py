"""The reader of ``ui_messages.json``: what the user was shown.

Each request to the model is a message, and what follows up to the next one shows its response: text, calls, and for
some tools what came back. What the others answered stands in the next request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from loopscan.events import NO_USAGE, Call, Event, Json, Problem, Usage, Where
from loopscan.transcripts.cline.answers import NORMALISERS, Answer, answer_of, answers_in, without_context
from loopscan.transcripts.cline.markup import COMMAND
from loopscan.transcripts.cline.places import family_of, task_of
from loopscan.transcripts.dialogue import Dialogue, Dialogues
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of
from loopscan.transcripts.jsonl import Line, parse
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.values import Object, array, dollars, mapping, number, seconds, string, tokens, written

#: Tools whose messages hold what they found where others hold what they were given.
_FINDERS = frozenset(
    {"listFilesTopLevel", "listFilesRecursive", "listCodeDefinitionNames", "searchFiles", "codebaseSearch"}
)
#: What the messages of tools say for the eyes of the user alone.
_SHOWN = frozenset(
    {"tool", "operationIsLocatedInWorkspace", "isOutsideWorkspace", "isProtected", "startLineNumbers", "reason"}
)
#: The ending that marks a command which the user has to approve.
_APPROVAL = "REQ_APP"
#: The model speaks to the user; the next request answers it like a call.
_SPEECH = frozenset(
    {"followup", "plan_mode_respond", "plan_mode_response", "act_mode_respond", "completion_result", "report_bug"}
)
#: What a call came back with, by the tool that it is for.
_OUTPUTS = {
    "command_output": COMMAND,
    "mcp_server_response": "use_mcp_server",
    "browser_action_result": "browser_action",
    "codebase_search_result": "codebaseSearch",
    "subtask_result": "newTask",
}
_COMPACTIONS = frozenset({"condense_context", "condense", "summarize_task", "sliding_window_truncation"})
#: How many calls of one response are held back at most, and how many bytes of what they came back with.
_MOST_CALLS = 16_384
_MOST_BYTES = 64 << 20


@dataclass(slots=True)
class _Shown:
    """Something in a response that the next request answers."""

    tool: str
    arguments: Json
    asked: bool
    """It was a question to the user whether to do it; a statement that it is done may follow."""
    speech: bool = False
    outputs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Response:
    """A response of the model while what the user was shown of it comes in."""

    where: Where
    usage: Usage = NO_USAGE
    model: str | None = None
    failed: bool = False
    shown: list[_Shown] = field(default_factory=list)
    latest: dict[str, _Shown] = field(default_factory=dict)
    """The latest call of each tool."""
    inputs: list[Where] = field(default_factory=list)
    """Where the user said something."""
    resumed: int | None = None
    """How many inputs there were when the task was stopped and taken up again."""
    size: int = 0

    @property
    def calls(self) -> list[_Shown]:
        return [each for each in self.shown if not each.speech]


class ClineUiReader:
    """Reads what Cline and its relatives showed to the user."""

    name = "cline-ui"
    traits = Traits(
        summary="what Cline, Roo Code and Kilo Code showed of a task (ui_messages.json)",
        recognised_by="messages that say or ask, with their time",
        tools={COMMAND: "exec"},
        normalisers=NORMALISERS,
        rank=1,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise a list of messages that say or ask."""
        messages = array(document_of(head))
        whole = [mapping(each) for each in messages if _is_shown(mapping(each))]
        return Confidence.SURE if whole and len(whole) >= len(messages) - 1 else Confidence.NO

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the task in ``source``.

        Nothing if another source gave the task already, such as the conversation with the model beside it. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        return drive(source, read_elements(source), _Ui(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the task, of which ``api_conversation_history.json`` is the better record, and how it began.

        Copies of a task under another name begin alike.
        """
        messages = array(document_of(head))
        began = _beginning(mapping(messages[0])) if messages else None
        return family_of(name) | (frozenset({began}) if began is not None else frozenset())


class _Ui:
    """One task while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._task = task_of(source.name)
        self._giver = source.given_by(self._task)
        self._first = True
        self._dialogues = Dialogues()
        self._response: _Response | None = None
        self._compacted = False
        """A compaction was shown since the latest request."""
        self._deleted: Json = None
        """The part of the conversation that the model is not sent any more."""

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a message."""
        if self._giver is None and self._first:
            began = _beginning(body)
            self._giver = self._source.given_by(began) if began is not None else None
        self._first = False
        if self._giver is not None:
            self._source.copies[self._giver] += 1
            return
        kind = string(body.get(string(body.get("type")) or "")) or "no kind"
        where = Where(line.number, None, seconds(body.get("ts")))
        dialogue = self._dialogues.get(self._task) or self._dialogues.start(self._task, where)
        told = self._take(dialogue, kind, body, where)
        self._source.count(kind, used=told)
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where its message would have been."""
        yield problem

    def finish(self) -> Iterator[Event]:
        """End the task."""
        dialogue = self._dialogues.get(self._task)
        if dialogue is not None and self._response is not None:
            self._close(dialogue, None, None)
        yield from self._dialogues.finish()

    def _take(self, dialogue: Dialogue, kind: str, body: Object, where: Where) -> bool:
        """Take in a message; return whether it told the replay something."""
        if body.get("partial") is True:
            return False
        text = string(body.get("text")) or ""
        self._truncated(body)
        response = self._response
        match kind:
            case "api_req_started":
                self._request(dialogue, text, body, where)
            case "api_req_finished" if response is not None and not response.usage.total:
                response.usage = _usage(_fields(text))
            case "text" | "task" if response is None:
                dialogue.user(where)
            case "user_feedback" | "user_feedback_diff" if response is not None:
                response.inputs.append(where)
            case "user_feedback" | "user_feedback_diff":
                dialogue.user(where)
            case "resume_task" | "resume_completed_task" if response is not None:
                response.resumed = len(response.inputs)
            case _ if kind in _COMPACTIONS:
                self._compacted = True
            case _ if response is None:
                return False
            case _ if kind in _OUTPUTS:
                return _add_output(response, _OUTPUTS[kind], text)
            case _:
                return self._show(response, kind, text, asked=body.get("type") == "ask")
        return True

    def _truncated(self, body: Object) -> None:
        """Notice that a part of the conversation was deleted: the messages of the request for that show it."""
        if "conversationHistoryDeletedRange" in body:
            deleted = body["conversationHistoryDeletedRange"]
            if deleted != self._deleted and deleted is not None and self._response is not None:
                self._compacted = True
            self._deleted = deleted

    def _show(self, response: _Response, kind: str, text: str, *, asked: bool) -> bool:
        """Take in what a response shows; return whether it is a call, or speech that is answered like one."""
        shown = _shown(kind, text, asked)
        if shown is None:
            return False
        if shown.tool == "summarizeTask":
            self._compacted = True
            return True
        last = response.shown[-1] if response.shown else None
        again = last is not None and last.tool == shown.tool and not last.outputs
        if again and last is not None and last.speech:
            return False
        if again and last is not None and last.asked and not asked and last.arguments == shown.arguments:
            last.asked = False  # the same call, done now
            return False
        if len(response.shown) >= _MOST_CALLS:
            return False
        response.shown.append(shown)
        response.latest[shown.tool] = shown
        return True

    def _request(self, dialogue: Dialogue, text: str, body: Object, where: Where) -> None:
        fields = _fields(text)
        if self._response is not None:
            self._close(dialogue, string(fields.get("request")), where)
        if self._compacted:
            self._compacted = False
            dialogue.compaction(where)
        failed = isinstance(fields.get("cancelReason"), str)
        model = string(mapping(body.get("modelInfo")).get("modelId"))
        self._response = _Response(where, _usage(fields), model, failed)

    def _close(self, dialogue: Dialogue, request: str | None, where: Where | None) -> None:
        """Tell the dialogue of the response that is complete; ``request`` at ``where`` is what follows it."""
        response, self._response = self._response, None
        if response is None:
            return
        calls = [Call(each.tool, each.arguments) for each in response.calls]
        dialogue.turn(
            response.where,
            calls,
            model=response.model,
            usage=response.usage,
            failed=response.failed,
            size=response.size,
        )
        resumed = len(response.inputs) if response.resumed is None else response.resumed
        for place in response.inputs[:resumed]:
            dialogue.user(place)
        end = where or max([response.where, *response.inputs], key=lambda place: place.line)
        answers = answers_in(without_context(request, self._source), len(response.shown)) if request else []
        lossy = response.size >= _MOST_BYTES
        for each, text in zip_longest(response.shown, answers):
            if not each.speech:
                answer = _answer(each, text, lossy=lossy)
                if answer is not None:
                    dialogue.result(end, answer.outcome, tool=each.tool, fate=answer.fate)
        if response.resumed is not None:
            if calls:
                dialogue.stopped(end)
            if where is not None:
                dialogue.user(end)
        elif response.failed and where is None:
            dialogue.stopped(end)


def _answer(shown: _Shown, answer: str | None, *, lossy: bool) -> Answer | None:
    """Return what became of a call: as the next request says, or else as the user was shown."""
    if answer is not None:
        return answer_of(shown.tool, answer)
    if not shown.outputs:
        return None
    return answer_of(shown.tool, "\n".join(shown.outputs), lossy=lossy)


def _shown(kind: str, text: str, asked: bool) -> _Shown | None:
    """Return the call or speech that a message shows, ``None`` if it shows neither."""
    if kind in _SPEECH:
        return _Shown(kind, None, asked, speech=True)
    if kind == "command":
        return _Shown(COMMAND, {"command": text.removesuffix(_APPROVAL)}, asked)
    if kind == "browser_action_launch":
        return _Shown("browser_action", {"action": "launch", "url": text}, asked)
    if kind in ("load_mcp_documentation", "new_task", "use_subagents"):
        return _Shown(kind, {"text": text} if text else {}, asked)
    if kind not in ("tool", "use_mcp_server", "browser_action"):
        return None
    fields = _fields(text)
    if kind != "tool":
        return _Shown(kind, fields, asked)
    tool = string(fields.get("tool"))
    if tool is None:
        return None
    if tool == "finishTask":
        return _Shown(tool, None, asked, speech=True)
    arguments = {name: value for name, value in fields.items() if name not in _SHOWN}
    shown = _Shown(tool, arguments, asked)
    if tool in _FINDERS:
        found = arguments.pop("content", None)
        if isinstance(found, str) and found:
            shown.outputs.append(found)
    elif tool == "readFile":
        arguments.pop("content", None)  # the path once more
    return shown


def _add_output(response: _Response, tool: str, text: str) -> bool:
    """Add what a call came back with to the latest call of ``tool``; return whether there is one."""
    shown = response.latest.get(tool)
    if shown is None:
        return False
    if text and response.size < _MOST_BYTES:
        shown.outputs.append(text)
        response.size += len(text)
    return True


def _usage(fields: Object) -> Usage:
    names = ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")
    asked, said, read, written = (tokens(fields.get(name)) for name in names)
    return Usage(asked, said, read, written, asked + said + read + written, dollars(fields.get("cost")))


def _fields(text: str) -> Object:
    """Return the object that the text of a message is, an empty one if it is none."""
    try:
        return mapping(parse(text))
    except (ValueError, RecursionError):
        return {}


def _beginning(body: Object) -> str | None:
    """Return what tells a task by its first message: when it was shown, and what it says."""
    time, text = number(body.get("ts")), string(body.get("text"))
    return None if time is None or text is None else f"cline began {time:.0f} {written(text)}"


def _is_shown(body: Object) -> bool:
    kind = body.get("type")
    return kind in ("say", "ask") and isinstance(body.get(str(kind)), str) and number(body.get("ts")) is not None
