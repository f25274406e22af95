"""What a recorded result says: which outcome OpenClaw would have seen.

Texts that are matched here are Claude Code's own (1.0 to 2.1); each pattern is no longer than it must be. A result
stands twice in a session file: as the model saw it (``tool_result``), and in parts (``toolUseResult``), which are
more exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import Fate, Json, Outcome
from loopscan.transcripts.dialogue import command_result, text_result
from loopscan.transcripts.values import Object, array, mapping, string

#: Tools by the names that OpenClaw's rules know. The polls ask how far a task in the background is, and nothing else.
TOOLS = {
    "Bash": "exec",
    "bash": "exec",
    "PowerShell": "exec",
    "BashOutput": "command_status",
    "TaskOutput": "command_status",
    "AgentOutputTool": "command_status",
    "Read": "read",
    "Write": "write",
    "Edit": "edit",
}
COMMANDS = frozenset(name for name, rule in TOOLS.items() if rule == "exec")
_AGENTS = frozenset({"Task", "Agent"})

#: What :func:`read_result` takes out of outcomes.
NORMALISERS = {
    "agent-handle": "the id and the usage that Claude Code adds to the answer of a sub-agent are taken out",
    "output-path": "the path under which Claude Code kept an output that was too long is taken out",
    "poll-time": "the time of day that a look at a background command carries is taken out",
    "system-reminder": "reminders that Claude Code appends to the text of a result are taken out",
}

_ERROR, _ERROR_END = "<tool_use_error>", "</tool_use_error>"
_ABSENT = re.compile(r"(?:Error: )?No such tool available: ")
_REJECTED = re.compile(r"(?:Error: )?InputValidationError\b")
_MISSING = "[Tool result missing due to internal error]"
#: The user or a failing sibling kept the call from running.
_NOT_RUN = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "[Request interrupted by user",
    "User rejected tool use",
    "Cancelled: parallel tool call",
    "Sibling tool call errored",
    "Error: Streaming fallback - tool execution discarded",
)
_EXIT = re.compile(r"(?:Error: )?Exit code (?P<code>\d{1,9})(?:\n|\Z)")
_TIMED_OUT = "Command timed out after "
_BACKGROUND = re.compile(
    r"Command running in background with ID: |Command [^\n]{1,80} was moved to the background|"
    r"Command was manually backgrounded by user with ID: "
)
_PERSISTED = "<persisted-output>"
_SAVED = re.compile(r"((?:Full output|Output has been) saved to:? )[^\n]+")
_POLL_TIME = re.compile(r"<timestamp>[^<]{1,60}</timestamp>")
_AGENT_ID = re.compile(r"^agentId: (?P<id>\w{4,80}) \(", re.MULTILINE)
_AGENT_USAGE = re.compile(r"\s*<usage>[^<]{0,400}</usage>\s*\Z")
_REMINDER, _REMINDED = "\n<system-reminder>", "</system-reminder>"


@dataclass(frozen=True, slots=True)
class Reading:
    """What one result says."""

    fate: Fate
    outcome: Outcome | None = None
    """Of a call that ran or was rejected."""
    absent: str | None = None
    """The tool does not exist: the text that says so. Nothing of the rest holds then."""
    normalised: tuple[str, ...] = ()
    """Which of :data:`NORMALISERS` changed it."""


def read_result(tool: str | None, block: Object, parts: Json, denied: Json = None) -> Reading:
    """Say what the ``tool_result`` in ``block`` means.

    ``tool`` is that of the call (``None`` if that is not known), ``parts`` the line's ``toolUseResult`` (``None`` if
    it has none or is not about this result alone), ``denied`` its ``toolDenialKind``.
    """
    text, used, lossy = _normalised(tool, result_text(block.get("content")), parts)
    if block.get("is_error") is True or text.startswith(_ERROR):
        return _error(tool, text.removeprefix(_ERROR).removesuffix(_ERROR_END), parts, denied, used)
    if tool in COMMANDS or (tool is None and "stdout" in mapping(parts)):
        outcome = _command(text, parts, lossy=lossy)
    else:
        outcome = text_result(text, _write_details(parts) if tool == "Write" else None, lossy=lossy)
    return Reading(Fate.RAN, outcome, normalised=used)


def result_text(content: Json) -> str:
    """Return the text of a result: that of its blocks, joined by newlines, or the string itself."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for block in array(content):
        given = mapping(block)
        # Other programs put the text of a block under "content"; "tool_name" is all that a reference to a tool has.
        found = (given.get(key) for key in ("text", "content", "tool_name"))
        texts += [text for text in found if isinstance(text, str)][:1]
    return "\n".join(texts)


def _error(tool: str | None, text: str, parts: Json, denied: Json, used: tuple[str, ...]) -> Reading:
    plain = text.strip()
    if (isinstance(denied, str) and denied.startswith("user")) or plain.startswith(_NOT_RUN):
        return Reading(Fate.NOT_RUN, normalised=used)
    if isinstance(parts, str) and parts == "User rejected tool use":
        return Reading(Fate.NOT_RUN, normalised=used)
    if plain.startswith(_MISSING):
        return Reading(Fate.LOST, normalised=used)
    if _ABSENT.match(plain):
        return Reading(Fate.NOT_RUN, absent=text, normalised=used)
    if _REJECTED.match(plain):
        return Reading(Fate.REJECTED, Outcome(error=text, is_error=True), normalised=used)
    failed = _EXIT.match(text) if tool is None or tool in COMMANDS else None
    if failed:
        return Reading(Fate.RAN, _failed(text[failed.end() :], int(failed["code"])), normalised=used)
    return Reading(Fate.RAN, Outcome(error=text, is_error=True), normalised=used)


def _command(text: str, parts: Json, *, lossy: bool) -> Outcome:
    """Return the outcome of a command that is not recorded as an error."""
    known = mapping(parts)
    stdout, stderr = known.get("stdout"), known.get("stderr")
    if not isinstance(stdout, str):
        if _BACKGROUND.match(text):
            return text_result(text, {"status": "running", "tail": ""})
        return command_result(text, 0, lossy=lossy)
    output = "\n".join(part for part in (stdout, stderr) if isinstance(part, str) and part)
    if string(known.get("backgroundTaskId")):
        return text_result(text, {"status": "running", "tail": output})
    lossy = string(known.get("persistedOutputPath")) is not None
    if known.get("interrupted") is True:
        return text_result(output, {"status": "failed", "aggregated": output}, is_error=True, lossy=lossy)
    # A code that is not 0 and no error (grep found nothing) is recorded as a sentence instead.
    return command_result(output, None if string(known.get("returnCodeInterpretation")) else 0, lossy=lossy)


def _failed(output: str, code: int) -> Outcome:
    if not output.startswith(_TIMED_OUT):
        return command_result(output, code)
    details: Object = {"status": "failed", "exitCode": code, "timedOut": True, "aggregated": output}
    return text_result(output, details, is_error=True)


def _write_details(parts: Json) -> Json:
    """Return the details of a file that was written, as far as is known whether that changed it."""
    known = mapping(parts)
    before, after = known.get("originalFile"), known.get("content")
    if known.get("type") == "create":
        return {"changed": True}
    if isinstance(before, str) and isinstance(after, str):
        return {"changed": before != after}
    return None


def _normalised(tool: str | None, text: str, parts: Json) -> tuple[str, tuple[str, ...], bool]:
    """Return a text without what Claude Code put around it, what was taken out, and whether a part of it is lost."""
    used: list[str] = []
    lossy = text.startswith(_PERSISTED)
    if lossy:
        text, changes = _SAVED.subn(r"\1#", text, count=1)
        used += ["output-path"] * changes
    reminded = _reminded_from(text)
    if reminded is not None:
        text = text[:reminded]
        used.append("system-reminder")
    if tool == "BashOutput":
        text, changes = _POLL_TIME.subn("", text)
        used += ["poll-time"] * bool(changes)
    elif tool in _AGENTS:
        plain = _without_handle(text, parts)
        used += ["agent-handle"] * (plain != text)
        text = plain
    return text, tuple(used), lossy


def _reminded_from(text: str) -> int | None:
    """Return where the reminders at the end of a text begin, ``None`` without any or where there is nothing else."""
    end = found = len(text.rstrip())
    while text.endswith(_REMINDED, 0, end):
        start = text.rfind(_REMINDER, 0, end)
        if start < 0:
            break
        end = start
        while end and text[end - 1].isspace():
            end -= 1
        found = end
    return found if 0 < found < len(text.rstrip()) else None


def _without_handle(text: str, parts: Json) -> str:
    named = string(mapping(parts).get("agentId"))
    if named is None:
        found = _AGENT_ID.search(text)
        named = found["id"] if found else None
    if named is not None and len(named) >= 4:
        text = text.replace(named, "#")
    usage = _AGENT_USAGE.search(text, max(0, len(text) - 600))
    return text[: usage.start()] if usage else text
