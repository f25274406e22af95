"""The messages of a mini-swe-agent trajectory: one tool, the shell, and what its commands came back with.

Version 2 has tool calls (of the chat or the responses API), or commands that were taken out of a text; version 1
has texts alone, with one command in a fence. Exit codes, outputs and costs stand in each message's ``extra``.
"""

from __future__ import annotations

import re
from collections import Counter

from loopscan.events import Call, Fate, Json, Outcome, Problem, Usage, Where
from loopscan.transcripts.completions import completion_usage
from loopscan.transcripts.dialogue import Dialogue, command_result
from loopscan.transcripts.jsonl import parsed
from loopscan.transcripts.swe_agent.trajectory import SHELL, completed, stats_usage, tool_call
from loopscan.transcripts.values import Object, array, identifier, mapping, number, seconds, string, text_of, whole

#: What is taken out of the texts of observations where the exit code does not stand beside them.
RETURN_CODE = "return-code"

_FENCE = re.compile(r"```(?:bash|mswea_bash_command)[ \t\r]*\n")
_FENCE_END = "\n```"
_CODE = re.compile(r"\s*<returncode>(-?\d{1,9})</returncode>\n?")
_NOT_RUN = "action was not executed"
#: Messages of the user that interrupt; anything else that interrupts is mini-swe-agent's own.
_USER = frozenset({"UserInterruption", "UserRejection"})
_NEW_TASK = "UserNewTask"


class Messages:
    """Tells a :class:`Dialogue` the messages of one trajectory."""

    def __init__(self, dialogue: Dialogue, line: int, normalised: dict[str, int]) -> None:
        self._dialogue = dialogue
        self._line = line
        self._normalised = normalised
        self._open: Counter[str | None] = Counter()
        """How many calls of the latest response have no result yet, by their id."""
        self._responses = 0

    def tell(self, document: Object) -> None:
        """Take in all messages, and how the run ended."""
        info = mapping(document.get("info"))
        messages = document.get("messages")
        if not isinstance(messages, list):
            self._dialogue.problem(Problem(self._line, "no-messages", "a trajectory without a list of messages"))
        spent = stats_usage(info.get("model_stats"))
        if any(_cost(message) != Usage() for message in array(messages)):
            spent = Usage()
        for place, message in enumerate(array(messages)):
            if isinstance(message, dict):
                spent = self._message(place, message, spent)
            else:
                self._dialogue.problem(Problem(self._line, "bad-message", "a message that is no object"))
        where = Where(self._line)
        if completed(info.get("exit_status"), ""):
            self._dialogue.completed(where)
        else:
            self._dialogue.stopped(where)

    def _message(self, place: int, message: Object, spent: Usage) -> Usage:
        """Take in one message; ``spent`` is what all responses cost, for the first one. Return what is left of it."""
        extra = mapping(message.get("extra"))
        made = number(extra.get("timestamp"))
        where = Where(self._line, f"messages[{place}]", None if made is None else seconds(made * 1000))
        role = message.get("role")
        if role == "assistant" or message.get("object") == "response":
            calls = _calls(message, extra)
            self._responses += 1
            self._open = Counter(call.id for call in calls)
            own = _cost(message)
            model = string(mapping(extra.get("response")).get("model")) or string(message.get("model"))
            self._dialogue.turn(where, calls, model=model, usage=own if own != Usage() else spent)
            return Usage()
        if role == "tool" or message.get("type") == "function_call_output":
            call_id = identifier(message.get("tool_call_id")) or identifier(message.get("call_id"))
            self._result(where, message, extra, call_id)
        elif role == "user":
            self._user(where, message, extra)
        return spent

    def _user(self, where: Where, message: Object, extra: Object) -> None:
        kind = extra.get("interrupt_type")
        if isinstance(extra.get("actions"), list):
            # A command that the user typed: its output follows, and is no result of the model's.
            self._dialogue.user(where, steering=self._responses > 0)
        elif isinstance(kind, str):
            if kind == "FormatError":
                for call_id in self._open.elements():
                    self._dialogue.result(where, None, call_id=call_id, fate=Fate.NOT_RUN)
                self._open.clear()
            elif kind == _NEW_TASK:
                self._dialogue.user(where, steering=False)
            elif kind in _USER:
                self._dialogue.user(where, steering=True)
        elif self._open[None] > 0:
            self._result(where, message, extra, None)
        elif not self._responses:
            self._dialogue.user(where)
        # What is left came from mini-swe-agent: a complaint about a response, or the output of the user's command.

    def _result(self, where: Where, message: Object, extra: Object, call_id: str | None) -> None:
        self._open[call_id] -= 1
        failure = string(extra.get("exception_info"))
        if failure == _NOT_RUN:
            self._dialogue.result(where, None, call_id=call_id, fate=Fate.NOT_RUN)
        else:
            self._dialogue.result(where, self._outcome(message, extra, failure), call_id=call_id)

    def _outcome(self, message: Object, extra: Object, failure: str | None) -> Outcome:
        output, code = extra.get("raw_output"), whole(extra.get("returncode"))
        if isinstance(output, str):
            return command_result(f"{output}\n{failure}" if failure else output, code)
        content = message.get("content")
        text = text_of(message.get("output") if content is None else content)
        found = _CODE.match(text)
        if found is None:
            return command_result(text, code)
        self._normalised[RETURN_CODE] += 1
        return command_result(text[found.end() :], int(found[1]))


def _calls(message: Object, extra: Object) -> list[Call]:
    """Return what a response asks for, by the first of the ways to ask that it uses."""
    calls = [call for each in array(message.get("tool_calls")) if (call := tool_call(each)) is not None]
    calls += [call for each in array(message.get("output")) if (call := _response_call(each)) is not None]
    if calls:
        return calls
    commands = [mapping(each).get("command") for each in array(extra.get("actions"))]
    if not commands and not isinstance(extra.get("actions"), list):
        command = fenced(text_of(message.get("content")))
        commands = [] if command is None else [command]
    return [Call(SHELL, {"command": each.strip()}) for each in commands if isinstance(each, str)]


def fenced(text: str) -> str | None:
    """Return what stands in the only fence of a text, ``None`` if there is none, or more than one."""
    found: str | None = None
    at = 0
    while (begins := _FENCE.search(text, at)) is not None:
        end = text.find(_FENCE_END, begins.end() - 1)
        if end < 0:
            break
        if found is not None:
            return None
        found, at = text[begins.end() : end], end + len(_FENCE_END)
    return found


def _response_call(value: Json) -> Call | None:
    item = mapping(value)
    name = string(item.get("name"))
    if item.get("type") != "function_call" or name is None:
        return None
    return Call(name, parsed(item.get("arguments")), identifier(item.get("call_id")))


def _cost(message: Json) -> Usage:
    """Return what the response ``message`` says that it cost."""
    fields = mapping(message)
    extra = mapping(fields.get("extra"))
    usage = mapping(extra.get("response")).get("usage") or fields.get("usage")
    return completion_usage(usage, extra.get("cost"))
