"""One conversation: its messages, in order, told to a dialogue."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import NO_USAGE, Problem, Usage, Where
from loopscan.transcripts.dialogue import Dialogue, text_result
from loopscan.transcripts.openai_messages.blocks import calls_of, content_text, results_of, usage_of
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, identifier, mapping, string

#: What runtimes answer to a call of a tool that does not exist; the name must be the one that was called.
_ABSENT = re.compile(
    r"(?:Error: )?(?:Tool ['\"`]?(?P<first>[\w.:-]{1,100})['\"`]? not found\b"
    r"|(?P<second>[\w.:-]{1,100}) is not a valid tool, try one of \[)"
)


@dataclass(frozen=True, slots=True)
class Response:
    """What is known of a model response beside its message."""

    usage: Usage = NO_USAGE
    model: str | None = None
    stop_reason: str | None = None
    time: float | None = None


NOTHING = Response()


class Conversation:
    """Tells the messages of one conversation to its dialogue."""

    def __init__(self, dialogue: Dialogue) -> None:
        self.dialogue = dialogue
        self._tools: Recent[str, str] = Recent()
        """The tools of calls, by id."""
        self._nameless = False
        """The latest calls have no ids."""

    def take(self, message: Object, where: Where, size: int = 0, response: Response = NOTHING) -> bool:
        """Take in the next message; return whether it told the replay something."""
        match message.get("role"):
            case "assistant":
                return self._assistant(message, where, size, response)
            case "user":
                results = results_of(message)
                for result in results:
                    self.dialogue.result(where, result.outcome, call_id=result.call_id, size=size)
                if not results:
                    self.dialogue.user(where)
                return True
            case "tool" | "function":
                self._result(message, where, size)
                return True
        return False

    def failed(self, where: Where, response: Response = NOTHING) -> None:
        """Take in that a request brought no message."""
        self.dialogue.turn(where, model=response.model, usage=response.usage, failed=True)

    def _assistant(self, message: Object, where: Where, size: int, response: Response) -> bool:
        calls, nameless = calls_of(message)
        if nameless:
            self.dialogue.problem(Problem(where.line, "malformed-call", "a call without a tool name"))
        own = usage_of(message.get("usage"), message.get("cost"))
        self.dialogue.turn(
            where,
            calls,
            model=string(message.get("model")) or response.model,
            stop_reason=string(message.get("finish_reason"))
            or string(message.get("stop_reason"))
            or response.stop_reason,
            usage=own if own.total else response.usage,
            size=size,
        )
        self._nameless = any(call.id is None for call in calls)
        for call in calls:
            if call.id is not None:
                self._tools[call.id] = call.tool
        return True

    def _result(self, message: Object, where: Where, size: int) -> None:
        call_id = identifier(message.get("tool_call_id"))
        if call_id is None or (self._nameless and call_id not in self._tools):
            call_id = None
        name = string(message.get("name"))
        text = content_text(message.get("content"))
        called = (self._tools.get(call_id) if call_id is not None else None) or name
        found = _ABSENT.match(text)
        if found is not None and called is not None and called in (found["first"], found["second"]):
            self.dialogue.absent(where, text, call_id=call_id, tool=name, size=size)
            return
        failed = message.get("is_error") is True or mapping(message.get("additional_kwargs")).get("is_error") is True
        outcome = text_result(text, is_error=failed)
        self.dialogue.result(where, outcome, call_id=call_id, tool=name if call_id is None else None, size=size)
