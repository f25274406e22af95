"""What Cline tells the model of its calls: one text after the other, each under the name of its tool."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import Fate, Outcome
from loopscan.transcripts.cline.markup import COMMAND
from loopscan.transcripts.dialogue import command_result, text_result
from loopscan.transcripts.jsonl import parse
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import Object, mapping, string

NORMALISERS = {
    "environment-details": "the state of the editor that each request gets: time, open files, running commands",
    "progress-reminder": "the reminder of the list of steps that is added to a request every now and then",
    "progress-list": "the list of steps that the model hands over with a call, for the eyes of the user",
}

_ENVIRONMENT = ("<environment_details>", "</environment_details>")
_REMINDERS = (
    "# TODO LIST UPDATE REQUIRED - You MUST include the task_progress parameter in your NEXT tool call.",
    "# task_progress RECOMMENDED",
    "# task_progress List (Optional - Plan Mode)",
    "# Todo List (Optional - Plan Mode)",
)
_HEADER = re.compile(
    r"(?:\A|\n\n)(?:\[(?P<tool>\w{1,60})(?= for '|\] Result:)|\[Tool(?P<error> \(Error\))?\]\n"
    r"|Tool \[(?P<skipped>\w{1,60})\] was not executed because a tool has already been used)"
)
_RESULT = "] Result:"
_SKIPPED = re.compile(
    r"Tool \[\w{1,60}\] was not executed because|Skipping tool \[[^\n]{0,400} due to user rejecting"
)
_DENIED = "The user denied this operation"
_ERROR = "The tool execution failed with the following error:\n<error>\n"
#: How Cline says that a server answered with an error.
_SERVER_ERROR = re.compile(r"Error:\s*\n")
_MISSING = "Missing value for required parameter"
_EXIT = re.compile(r"\b[Ee]xit code:? (?P<code>-?\d{1,9})\b")
_RUNNING = "Command is still running"
_OUTPUT = ("\nOutput:\n", "\nHere's the output so far:\n")
_UPDATES = "\n\nYou will be updated on the terminal status and new output in the future."
#: The first line of a command's answer is no longer, in characters.
_FIRST_LINES = 1000
#: What the user says comes to the model within these.
_SPOKEN = ("<feedback>\n", "<answer>\n", "<user_message>\n")
_FEEDBACK = (
    "The user denied this operation and provided the following feedback:\n<feedback>\n",
    "The user provided the following feedback:\n<feedback>\n",
    "The user approved this operation and provided the following context:\n<feedback>\n",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call."""

    fate: Fate
    outcome: Outcome | None = None


def without_context(text: str, source: Source) -> str:
    """Return a request without the state of the editor and the reminder at its end."""
    start = text.rfind(_ENVIRONMENT[0])
    if start >= 0:
        end = text.find(_ENVIRONMENT[1], start)
        text = text[:start].rstrip() + (text[end + len(_ENVIRONMENT[1]) :] if end >= 0 else "")
        source.normalised["environment-details"] += 1
    start = max(text.rfind(reminder) for reminder in _REMINDERS)
    if start >= 0 and not text[text.rfind("\n", 0, start) + 1 : start].strip():
        text = text[:start].rstrip()
        source.normalised["progress-reminder"] += 1
    return text


def answers_in(text: str, count: int) -> list[str]:
    """Return the answers to ``count`` calls in a request, in order; fewer if it does not hold as many.

    The answer of a tool may hold anything, so of further headers only as many count as there were calls.
    """
    starts: list[tuple[int, int]] = []
    for found in _HEADER.finditer(text):
        if found["tool"] is not None:
            end = text.find(_RESULT, found.end())
            if end < 0:
                break
            if starts and found.start() < starts[-1][1]:
                continue  # within the header before it
            starts.append((found.start(), end + len(_RESULT)))
        else:
            # The words that say it are the answer.
            starts.append((found.start(), found.end() if found["skipped"] is None else found.start()))
        if len(starts) > count:
            if found["skipped"] is None:
                starts.pop()
            break
    ends = [*(start for start, _ in starts[1:]), len(text)] if starts else []
    return [text[begin:end].strip() for (_, begin), end in zip(starts, ends, strict=True)][:count]


def answer_of(tool: str, text: str, *, failed: bool = False, lossy: bool = False) -> Answer:
    """Return what the answer ``text`` says of a call of ``tool``; ``failed`` where it is marked as an error."""
    state = _state(text)
    if text.startswith(_DENIED) or _SKIPPED.match(text) or state.get("status") == "denied":
        return Answer(Fate.NOT_RUN)
    error = None
    if text.startswith(_ERROR):
        error = text[len(_ERROR) :].rpartition("\n</error>")[0] or text
    elif state.get("status") == "error":
        error = string(state.get("error")) or string(state.get("message")) or text
    elif failed:
        error = text
    if error is not None:
        fate = Fate.REJECTED if error.startswith(_MISSING) else Fate.RAN
        return Answer(fate, Outcome(error=error, is_error=True, lossy=lossy))
    if tool == COMMAND:
        return Answer(Fate.RAN, _command(text, lossy=lossy))
    of_server = tool == "use_mcp_server" and _SERVER_ERROR.match(text) is not None
    return Answer(Fate.RAN, text_result(text, is_error=of_server, lossy=lossy))


def speaks(text: str) -> bool:
    """Whether an answer holds something that the user said."""
    return any(words in text for words in _FEEDBACK)


def answers_question(text: str) -> bool:
    """Whether the answer to a tool that speaks to the user holds what the user said."""
    return any(words in text for words in _SPOKEN)


def _command(text: str, *, lossy: bool) -> Outcome:
    first = text[:_FIRST_LINES]
    for mark in _OUTPUT:
        head, found, output = text.partition(mark)
        if found:
            first = head[:_FIRST_LINES]
            break
    else:
        output = text
    if _RUNNING in first:
        output = output.removesuffix(_UPDATES)
        return text_result(output, {"status": "running", "tail": output}, lossy=lossy)
    code = _EXIT.search(first)
    return command_result(output, int(code["code"]) if code else None, lossy=lossy)


def _state(text: str) -> Object:
    if not text.startswith('{"status"'):
        return {}
    try:
        return mapping(parse(text))
    except (ValueError, RecursionError):
        return {}
