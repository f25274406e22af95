"""The stream of events that ``codex exec --json`` prints, while it is read.

It is made for watching: prompts, times, patches and the borders of model responses are not in it. Calls that are
open at the same time are taken for one response; what a turn cost as a whole is not the cost of any response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopscan.events import Call, Event, Fate, Json, Outcome, Problem, Where
from loopscan.transcripts.codex.outputs import meaning_of
from loopscan.transcripts.dialogue import Dialogue, Dialogues, command_result, text_result
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, identifier, mapping, string, text_of, whole

STARTED, UPDATED, COMPLETED = "item.started", "item.updated", "item.completed"
ITEM_EVENTS: Final = frozenset({STARTED, UPDATED, COMPLETED})
TURN_EVENTS: Final = frozenset({"turn.started", "turn.completed", "turn.failed"})
#: Items that the model wrote or that ran within its response; older streams name a message ``assistant_message``.
_SAID = frozenset({"agent_message", "assistant_message", "reasoning", "plan", "web_search"})
_CALLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "todo_list"})


class Streams:
    """The threads of one stream: one, unless streams were joined."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._dialogues = Dialogues()
        self._thread: str | None = None
        self._given_by: str | None = None
        """Another source that gave the thread: its rollout says all that the stream says, and more."""
        self._items = _Items(source)

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in an event."""
        kind = string(body.get("type")) or "unknown"
        item = mapping(body.get("item"))
        where = Where(line.number, identifier(item.get("id")))
        if kind == "thread.started":
            self._begin(where, identifier(body.get("thread_id")))
        elif self._thread is None:
            self._begin(where, None)
        if self._given_by is not None:
            self._source.copies[self._given_by] += 1
        else:
            dialogue = self._dialogues.get(self._thread or "")
            name, used = kind, kind == "thread.started"
            if dialogue is not None and kind in TURN_EVENTS:
                used = self._items.turn(kind, where, dialogue)
            elif dialogue is not None and kind in ITEM_EVENTS:
                of = string(item.get("type")) or string(item.get("item_type")) or "unknown"
                name, used = f"{kind} {of}", self._items.take(kind, of, item, where, line.size, dialogue)
            self._source.count(name, used=used)
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        dialogue = self._dialogues.get(self._thread) if self._thread is not None else None
        if dialogue is None:
            yield problem
            return
        dialogue.problem(problem)
        yield from self._dialogues.drain()

    def finish(self) -> Iterator[Event]:
        """End the threads."""
        yield from self._dialogues.finish()

    def _begin(self, where: Where, thread: str | None) -> None:
        """Begin a thread, or go on with it if the stream was resumed in the same file."""
        named = thread or self._source.name
        if named == self._thread:
            return
        if self._thread is not None:
            self._dialogues.end(self._thread)
        self._thread = named
        self._items = _Items(self._source)
        self._given_by = self._source.given_by(named)
        dialogue = self._dialogues.start(named, where)
        if thread is None:
            detail = "the stream does not begin with thread.started: the session is named after the source"
            dialogue.problem(Problem(where.line, "no-header", detail))


class _Items:
    """The items of one thread: which are calls, and which of them are one response."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._responses = 0
        self._response: str | None = None
        self._answered = False
        """A call of the response has its result."""
        self._open: set[str] = set()
        """The ids of calls of the response that run."""
        self._lists: Recent[str, bool] = Recent()
        """To-do lists that were shown already."""

    def turn(self, kind: str, where: Where, dialogue: Dialogue) -> bool:
        """Take in the start or end of a turn, which is a run: the prompt itself is not in the stream."""
        self._response = None
        self._open.clear()
        if kind == "turn.started":
            dialogue.user(where, steering=False)
        elif kind == "turn.completed":
            dialogue.completed(where)
        else:
            dialogue.stopped(where)
        return True

    def take(self, kind: str, of: str, item: Object, where: Where, size: int, dialogue: Dialogue) -> bool:
        """Take in an item; return whether it told anything."""
        if of in _SAID:
            if kind != COMPLETED:
                return False
            self._respond(where, (), size, dialogue)
            return True
        if of not in _CALLS:
            return False
        identity = identifier(item.get("id"))
        if of == "todo_list":
            # The list is shown each time the model writes it; that it completed comes with the end of the turn.
            if kind == COMPLETED and identity is not None and identity in self._lists:
                return False
            if identity is not None:
                self._lists[identity] = True
            self._ask(of, {"items": item.get("items")}, identity, where, size, dialogue)
            self._answer(identity, of, text_result("Plan updated"), where, 0, dialogue)
            return True
        running = identity is not None and identity in self._open
        # Without an id, the start and the end of a call cannot be told to be of one call: the end says it all.
        if kind == UPDATED or (kind == STARTED and (running or identity is None)):
            return False
        tool = _tool(of, item)
        if not running:
            self._ask(tool, _arguments(of, item, identity), identity, where, size, dialogue)
        if kind == COMPLETED:
            self._answer(identity, tool, self._outcome(of, item), where, size if running else 0, dialogue)
        return True

    def _respond(self, where: Where, calls: tuple[Call, ...], size: int, dialogue: Dialogue) -> None:
        if self._response is None or (self._answered and not self._open):
            self._responses += 1
            self._response = str(self._responses)
            self._answered = False
        dialogue.turn(where, calls, message=self._response, size=size)

    def _ask(
        self, tool: str, arguments: Json, identity: str | None, where: Where, size: int, dialogue: Dialogue
    ) -> None:
        self._respond(where, (Call(tool, arguments, identity),), size, dialogue)
        if identity is not None:
            self._open.add(identity)

    def _answer(
        self, identity: str | None, tool: str, outcome: Outcome | None, where: Where, size: int, dialogue: Dialogue
    ) -> None:
        self._answered = True
        if identity is not None:
            self._open.discard(identity)
        fate = Fate.RAN if outcome is not None else Fate.LOST
        dialogue.result(where, outcome, call_id=identity, tool=tool, fate=fate, size=size)

    def _outcome(self, of: str, item: Object) -> Outcome | None:
        """Return the outcome of an item that completed; ``None`` where it is not known."""
        status = string(item.get("status"))
        if of == "command_execution":
            return self._command(item, status)
        if of == "file_change":
            return text_result(status or "completed", is_error=status == "failed")
        if of == "collab_tool_call":
            states: Object = {"agents": item.get("agents_states"), "receivers": item.get("receiver_thread_ids")}
            return text_result(status or "completed", states, is_error=status == "failed")
        error = string(mapping(item.get("error")).get("message"))
        if error is not None:
            return Outcome(error=error, is_error=True)
        result = mapping(item.get("result"))
        structured = result.get("structured_content")
        details: Json = structured if isinstance(structured, dict | None) else {"structured": structured}
        return text_result(text_of(result.get("content")), details, is_error=status == "failed")

    def _command(self, item: Object, status: str | None) -> Outcome | None:
        text = item.get("aggregated_output")
        output = text if isinstance(text, str) else ""
        code = whole(item.get("exit_code"))
        if status == "declined":
            return Outcome(error=output or "declined", is_error=True)
        if status == "in_progress":
            return text_result(output, {"status": "running", "tail": output})
        if code is not None:
            return command_result(output, code)
        meaning = meaning_of(output, "command_execution")
        for normaliser in meaning.normalised:
            self._source.normalised[normaliser] += 1
        return meaning.outcome


def _tool(of: str, item: Object) -> str:
    if of == "mcp_tool_call":
        return f"mcp__{string(item.get('server')) or ''}__{string(item.get('tool')) or ''}"
    if of == "collab_tool_call":
        return string(item.get("tool")) or of
    return of


def _arguments(of: str, item: Object, identity: str | None) -> Json:
    if of == "command_execution":
        return {"command": item.get("command")}
    if of == "file_change":
        # The patch is not in the stream: no two changes can be told to be the same, so none are.
        return {"changes": array(item.get("changes")), "item": identity}
    if of == "collab_tool_call":
        # The receivers of a new agent are known only from its start.
        named = [] if item.get("tool") == "spawn_agent" else array(item.get("receiver_thread_ids"))
        return {"prompt": item.get("prompt"), "receiver_thread_ids": named}
    return item.get("arguments")
