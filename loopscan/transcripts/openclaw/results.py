"""What a stored tool result says the engine saw: the table of the engine rules, from a transcript to the engine.

The texts that are matched here are OpenClaw's own (2026.6 to 2026.9); some tools that rewrite transcripts
change the words around them, so each pattern is no longer than it must be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import Fate, Json, Outcome, Recorded, Where
from loopscan.transcripts.values import Object, string, text_of, whole

_ABSENT = re.compile(r"Tool (?P<tool>\S(?:.*\S)?) not found", re.DOTALL)
_REJECTED = "Validation failed for tool"
# The name in brackets is that of the program, which has changed.
_MISSING = re.compile(r"\[[\w.-]+\] missing tool result in session")
_NOT_RUN = frozenset({"Operation aborted", "This operation was aborted", "Aborted"})
_WARNED = re.compile(r"\[System note: Tool-loop warning after (?P<count>\d{1,9}) repeated calls")
_STOPPING = "This run is stopping now."
_UNAVAILABLE = re.compile(r"I can't use the tool \"(?P<tool>[^\"]+)\" here because it")
_COMPACTION_LOOP = re.compile(
    r"CRITICAL: tool (?P<tool>.+?) repeated (?P<count>\d{1,9}) times\b.*\bcompaction\b", re.DOTALL
)
#: No sentence of the live engine is longer, in characters.
_SENTENCE = 1000
# What providers and OpenClaw itself say when a prompt does not fit the model.
_OVERFLOW = re.compile(
    r"context.?(?:overflow|length|size|window)|prompt is too (?:long|large)|input is too long|too many tokens"
    r"|request.?too.?large|exceeds? the (?:model's )?(?:maximum )?(?:context|token)",
    re.IGNORECASE,
)
# 2026.6 stores no detector: its sentence tells. First match wins.
_DETECTORS = (
    ("global_circuit_breaker", re.compile(r"global circuit breaker")),
    ("ping_pong", re.compile(r"\balternating\b|ping-pong")),
    ("known_poll_no_progress", re.compile(r"\bpolling loop\b|\band no progress\b")),
    ("unknown_tool_repeat", re.compile(r"\b(?:unavailable|unknown tool|not available|not found|does not exist)\b")),
    ("generic_repeat", re.compile(r"\bidentical\b")),
)
_COUNT = re.compile(r"\b(?P<count>\d{1,9}) (?:consecutive|times|calls|attempts)\b")


@dataclass(frozen=True, slots=True)
class Veto:
    """The live engine's veto, as the result of a vetoed call records it."""

    trigger: bool
    """This call is the one that it was about; else it is a sibling in the batch."""
    detector: str | None
    count: int | None
    ends_run: bool
    """It was the second of its run, which ended here."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one result says."""

    fate: Fate
    outcome: Outcome | None = None
    """Of a call that ran or was rejected."""
    absent: str | None = None
    """The tool does not exist: its name. Nothing of the rest holds then."""
    text: str = ""
    """The text of the content, without the live engine's notes."""
    warned: int | None = None
    """The count of the warning that the live engine appended."""
    veto: Veto | None = None


def read_result(message: Object, call_id: str | None) -> Reading:
    """Say what the result ``message`` of the call ``call_id`` means to the engine."""
    content, warned = _content(message.get("content"))
    details = message.get("details")
    is_error = message.get("isError") is True
    text = text_of(content)
    fields: Object = details if isinstance(details, dict) else {}

    if fields.get("status") == "blocked" and fields.get("deniedReason") == "tool-loop":
        return Reading(Fate.VETOED, text=text, warned=warned, veto=_veto(fields, text, call_id))
    if fields.get("deniedReason") == "steering":
        return Reading(Fate.NOT_RUN, text=text, warned=warned)
    if is_error and not fields:
        reading = _bare_error(message, text, warned)
        if reading is not None:
            return reading
    elif is_error and text.startswith(_REJECTED):
        return Reading(Fate.REJECTED, Outcome(error=text, is_error=True), text=text, warned=warned)
    if fields.keys() == {"status", "tool", "error"} and fields["status"] == "error":
        error = fields["error"]
        if isinstance(error, str):
            return Reading(Fate.RAN, Outcome(error=error, is_error=True), text=text, warned=warned)
    if is_error and not fields:
        return Reading(Fate.RAN, Outcome(error=text, is_error=True), text=text, warned=warned)
    result: Object = {"content": content}
    if "details" in message:
        result["details"] = details
    lossy = fields.get("persistedDetailsTruncated") is True
    return Reading(Fate.RAN, Outcome(result=result, is_error=is_error, lossy=lossy), text=text, warned=warned)


def recorded_in(reading: Reading, run: str, where: Where, call_id: str | None, tool: str) -> list[Recorded]:
    """Return the verdicts of the live engine that a result records; siblings of a vetoed call have none."""
    found: list[Recorded] = []
    if reading.warned is not None:
        found.append(Recorded(run, where, "warning", call_id, tool, count=reading.warned))
    veto = reading.veto
    if veto is not None and veto.trigger:
        kinds = ("block", "run_end") if veto.ends_run else ("block",)
        found += [Recorded(run, where, kind, call_id, tool, veto.detector, veto.count) for kind in kinds]
    return found


def unavailable_tool(message: Object) -> str | None:
    """Return the tool that the live unknown-tool guard took out of this assistant message, if it did.

    It left a text in place of the calls, and ``stopReason`` says ``toolUse`` all the same.
    """
    if message.get("stopReason") != "toolUse":
        return None
    found = _UNAVAILABLE.match(text_of(message.get("content")).lstrip())
    return found["tool"] if found else None


def context_overflow(message: Object) -> bool:
    """Say whether this assistant message is a failure because the context was too long for the model."""
    error = message.get("errorMessage")
    return message.get("stopReason") == "error" and isinstance(error, str) and bool(_OVERFLOW.search(error[:10_000]))


def compaction_loop(error: Json) -> tuple[str, int] | None:
    """Return tool and count if the text of a prompt error is that of the post-compaction guard."""
    found = _COMPACTION_LOOP.match(error[:_SENTENCE]) if isinstance(error, str) else None
    return (found["tool"], int(found["count"])) if found else None


def _bare_error(message: Object, text: str, warned: int | None) -> Reading | None:
    """Read an error without details that says that its call did not get as far as the tool."""
    stripped = text.strip()
    found = _ABSENT.fullmatch(stripped)
    if found:
        tool = string(message.get("toolName")) or found["tool"]
        return Reading(Fate.NOT_RUN, absent=tool, text=text, warned=warned)
    if text.startswith(_REJECTED):
        return Reading(Fate.REJECTED, Outcome(error=text, is_error=True), text=text, warned=warned)
    if _MISSING.match(text):
        return Reading(Fate.LOST, text=text, warned=warned)
    if stripped in _NOT_RUN:
        return Reading(Fate.NOT_RUN, text=text, warned=warned)
    return None


def _veto(details: Object, text: str, call_id: str | None) -> Veto:
    intervention = details.get("intervention")
    if isinstance(intervention, dict):
        culprit = intervention.get("toolCallId")
        trigger = not isinstance(culprit, str) or culprit == call_id
        detector = string(intervention.get("detector"))
        count = whole(intervention.get("count"))
        return Veto(trigger, detector, count, ends_run=trigger and _STOPPING in text)
    sentence = (string(details.get("reason")) or text)[:_SENTENCE]
    detector = next((name for name, pattern in _DETECTORS if pattern.search(sentence)), None)
    found = _COUNT.search(sentence)
    return Veto(True, detector, int(found["count"]) if found else None, ends_run=_STOPPING in text)


def _content(content: Json) -> tuple[list[Json], int | None]:
    """Return the content as a list, without the live engine's warning, and the warning's count."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}], None
    if not isinstance(content, list):
        return [], None
    warned: int | None = None
    kept: list[Json] = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else None
        found = _WARNED.match(text) if isinstance(text, str) else None
        if found:
            warned = int(found["count"])
        else:
            kept.append(block)
    return kept, warned
