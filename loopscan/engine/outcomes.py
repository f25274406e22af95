"""Outcome identities: which results count as the same, tool by tool.

Each rule is one function that says what of a result is compared; the first that fits wins. What
they leave out (durations, process ids, message ids, …) changes on every call without progress.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from loopscan.engine.canonical import JS_SPACE, TextRule, identity, number_text, trim
from loopscan.engine.nonces import without_nonces
from loopscan.events import Json, Outcome
from loopscan.rulesets import Ruleset


class Compared(NamedTuple):
    """What of an outcome is compared, before it becomes an identity."""

    value: list[Json] | None
    """``None``: there is no outcome identity."""
    failure: list[Json] | None = None
    """What is compared of a terminal exec failure, without what is volatile in its output."""
    no_progress: bool = False
    unknown_tool: str | None = None
    veto: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """What the engine keeps of an outcome."""

    identity: bytes | None
    """``None``: no outcome identity (a denial by the loop detection itself)."""
    no_progress: bool = False
    failure: bytes | None = None
    """Identity of a terminal exec failure without what is volatile in its output."""
    unknown_tool: str | None = None
    veto: bool = False


_JS_SPACE_CLASS: Final = "[" + re.escape(JS_SPACE) + "]"
# Where JavaScript ignores case by Unicode (flags i and u), the long s is an s; it and the Kelvin sign make words.
_JS_WORD_CLASS: Final = "[0-9A-Za-z_\u017f\u212a]"
_NAME: Final = r"[\"']?([a-z0-9_.-]+)[\"']?"
_FLAGS: Final = re.IGNORECASE | re.ASCII
_UNKNOWN_TOOL: Final = (
    re.compile(rf"unknown tool(?:{_JS_SPACE_CLASS}|:)+{_NAME}", _FLAGS),
    re.compile(
        rf"tool{_JS_SPACE_CLASS}+{_NAME}{_JS_SPACE_CLASS}+(?:not found|is not available)",
        _FLAGS,
    ),
)

#: What changes in the output of a failing command without making it another failure, in the order of removal.
_VOLATILE: Final = tuple(
    re.compile(pattern.replace(r"\s", _JS_SPACE_CLASS).replace(r"\w", _JS_WORD_CLASS), _FLAGS)
    for pattern in (
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?",
        r"\d{1,2}:\d\d:\d\d(\.\d{1,6})?",
        r"(?<!\w)(attempt|retry)(?:\s|[:=#])+\d+",
        r"(?<!\w)\d+(\.\d+)?\s?([num]?[sſ]|[sſ]econd[sſ]?|minute[sſ]?|hour[sſ]?)(?!\w)",
        r"(?<!\w)p?pid(?:\s|[:=#])+\d+",
    )
)

_SEND_ACTIONS: Final = frozenset(
    (
        "send",
        "broadcast",
        "reply",
        "thread-reply",
        "sendWithEffect",
        "sendAttachment",
        "upload-file",
        "sticker",
        "poll",
    )
)
_SEND_VOLATILE: Final = frozenset(
    (
        *("messageId", "message_id", "messageIds", "platformMessageId", "platformMessageIds"),
        *("fileId", "file_id", "fileKey", "pollId", "poll_id"),
        *("receipt", "runId", "idempotencyKey"),
        *("ts", "timestamp", "sentAt", "deliveredAt", "createdAt"),
    )
)
_MESSAGE_VOLATILE: Final = _SEND_VOLATILE | {"id"}
_ELEMENT_HANDLES: Final = frozenset(("elementRef",))
_POLL_FIELDS: Final = {
    "poll": ("exitCode", "exitSignal", "aggregated"),
    "log": ("totalLines", "totalChars", "truncated", "exitCode", "exitSignal"),
}


def judge(tool: str, arguments: Json, outcome: Outcome, ruleset: Ruleset) -> Judged:
    """Return what the engine keeps of the outcome of a call; ``tool`` is the engine's name of it."""
    value, failure, no_progress, unknown, veto = compared(tool, arguments, outcome, ruleset)
    text = text_rule(ruleset)
    return Judged(
        None if value is None else identity(value, text),
        no_progress,
        None if failure is None else identity(failure, text),
        unknown,
        veto,
    )


def compared(tool: str, arguments: Json, outcome: Outcome, ruleset: Ruleset) -> Compared:
    """Return what is compared of the outcome of a call; see also :func:`text_rule`.

    ``tool`` is the engine's name of it. Rules come in the order in which the releases try them.
    """
    if outcome.error is not None:
        return Compared(["error", outcome.error], None, True, unknown_tool(outcome.error))
    result = outcome.result
    if not isinstance(result, dict):
        return Compared(["value", result])
    details = result.get("details")
    if not isinstance(details, dict):
        details = {}
    if details.get("status") == "blocked" and details.get("deniedReason") == "tool-loop":
        return Compared(None, veto=ruleset.batch_admission)
    if ruleset.live_identities:
        for rule in _LIVE_RULES:
            live = rule(tool, arguments, result, details, outcome.is_error)
            if live is not None:
                return Compared(live)
    if tool == "exec" and isinstance(details.get("status"), str):
        ran, failure = _exec(result, details, ruleset)
        if ran is not None:
            return Compared(ran, failure)
    if tool == "write" and details.get("changed") is False and ruleset.unchanged_write_is_no_progress:
        return Compared(["unchanged write"], None, True)
    action = arguments.get("action") if isinstance(arguments, dict) else None
    if tool == "process" and isinstance(action, str) and action in _POLL_FIELDS:
        # A missing status is not a null one, unlike every other field.
        status: list[Json] = [details["status"]] if "status" in details else []
        fields = [details.get(name) for name in _POLL_FIELDS[action]]
        return Compared(["process", action, status, fields, result_text(result)])
    if tool in ruleset.send_tools or (tool == "message" and isinstance(action, str) and action in _SEND_ACTIONS):
        return Compared(["send", _pruned(details, _names_delivery)])
    return Compared(["result", details, result_text(result)])


def error_identity(error: str, ruleset: Ruleset) -> bytes:
    """Return the identity of an error by its text, apart from that of every result."""
    return identity(["error", error], text_rule(ruleset))


def text_rule(ruleset: Ruleset) -> TextRule | None:
    """Return what rewrites every text before it is compared; ``None``: nothing does."""
    return without_nonces if ruleset.ignore_nonces else None


def result_text(result: dict[str, Json]) -> str:
    """Return the text of a result: every content entry with a string type and text, joined by newlines, trimmed."""
    content = result.get("content")
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for entry in content:
        if isinstance(entry, dict) and isinstance(entry.get("type"), str):
            part = entry.get("text")
            if isinstance(part, str):
                parts.append(part)
    return trim("\n".join(parts))


def unknown_tool(error: str) -> str | None:
    """Return the name of the tool that an error text says does not exist, lower-cased, or ``None``."""
    for pattern in _UNKNOWN_TOOL:
        found = pattern.search(error)
        if found:
            return found[1].lower()
    return None


def without_volatile(output: str) -> str:
    """Return the output of a failed command with what changes from one attempt to the next made ``#``."""
    for pattern in _VOLATILE:
        output = pattern.sub("#", output)
    return output


def _exec(
    result: dict[str, Json], details: dict[str, Json], ruleset: Ruleset
) -> tuple[list[Json] | None, list[Json] | None]:
    """Return what is compared of an ``exec`` result, and of its terminal failure if it is one."""
    status = details.get("status")
    if status == "running":
        return ["exec", status, _text_or(details.get("tail"), "")], None
    if status in ("approval-pending", "approval-unavailable"):
        # Only texts count; a missing command or warning is an empty one.
        asked: list[Json] = [_text_or(details.get(name), None) for name in ("reason", "host")]
        asked += [_text_or(details.get(name), "") for name in ("command", "warningText")]
        return ["exec", status, asked], None
    if status not in ("completed", "failed"):
        return None, None
    code = details.get("exitCode")
    if isinstance(code, bool) or not isinstance(code, int | float):
        code = None
    timed_out = details.get("timedOut") is True
    aggregated = details.get("aggregated")
    output = trim(aggregated) if isinstance(aggregated, str) else ""
    output = output or result_text(result)
    ran: list[Json] = ["exec", status, code, timed_out, output]
    failed = (
        ruleset.failures_across_arguments
        and code is not None
        and code != 0
        and abs(code) != float("inf")
        and not timed_out
        and output != ""
        and output != f"(Command exited with code {number_text(code)})"
    )
    return ran, ["exec", status, code, timed_out, without_volatile(output)] if failed else None


def _text_or(value: Json, default: str | None) -> str | None:
    return value if isinstance(value, str) else default


def _pruned(value: Json, gone: Callable[[dict[str, Json]], frozenset[str]]) -> Json:
    """Return ``value`` without the keys that ``gone`` names of each object in it, at every depth, however deep."""
    holder: list[Json] = [value]
    waiting: list[tuple[dict[str, Json] | list[Json], Any]] = [(holder, 0)]
    while waiting:
        inside, place = waiting.pop()
        item = inside[place]
        if isinstance(item, dict):
            dropped = gone(item)
            kept = {key: child for key, child in item.items() if key not in dropped}
            inside[place] = kept
            waiting += ((kept, key) for key, child in kept.items() if isinstance(child, dict | list))
        elif isinstance(item, list):
            copy = list(item)
            inside[place] = copy
            waiting += ((copy, index) for index, child in enumerate(copy) if isinstance(child, dict | list))
    return holder[0]


def _names_delivery(value: dict[str, Json]) -> frozenset[str]:
    """Return the keys of an object in the details of a send that name this one delivery."""
    return _MESSAGE_VOLATILE if _is_message(value) else _SEND_VOLATILE


def _is_message(value: dict[str, Json]) -> bool:
    """Whether an object is a delivered message, whose ``id`` is then one of the delivery."""
    if not (isinstance(value.get("id"), str) and isinstance(value.get("text"), str)):
        return False
    if any(isinstance(value.get(name), str) for name in ("direction", "senderId", "accountId")):
        return True
    return isinstance(value.get("conversation"), dict)


# Identities that the live engine of `latest` keeps in memory, rebuilt from what is recorded. Each
# returns what is compared, or None where the shape is not there.


def _code_mode(
    tool: str, arguments: Json, result: dict[str, Json], details: dict[str, Json], is_error: bool
) -> list[Json] | None:
    """Code Mode: the payload without telemetry and run id; pending calls by method and arguments."""
    if tool not in ("exec", "wait") or "telemetry" not in details:
        return None
    payload = {key: value for key, value in details.items() if key not in ("telemetry", "runId")}
    pending = payload.get("pendingToolCalls")
    if isinstance(pending, list):
        payload["pendingToolCalls"] = [
            {key: value for key, value in call.items() if key != "id"} if isinstance(call, dict) else call
            for call in pending
        ]
    return ["code mode", payload]


def _computer(
    tool: str, arguments: Json, result: dict[str, Json], details: dict[str, Json], is_error: bool
) -> list[Json] | None:
    """``computer`` with a window observation: all of it but the ids of this one observation."""
    if tool != "computer" or is_error:
        return None
    stripped = dict(details)
    found = False
    for holder in ("result", "followUpObservation"):
        outer = details.get(holder)
        observation = outer.get("observation") if isinstance(outer, dict) else None
        if isinstance(outer, dict) and isinstance(observation, dict) and observation.get("kind") == "window":
            stripped[holder] = {**outer, "observation": _without_handles(observation)}
            found = True
    if not found:
        return None
    content = result.get("content")
    # The text entry is the same JSON again; the image entry holds the pixels.
    seen: list[Json] = [
        entry
        for entry in (content if isinstance(content, list) else [])
        if not (isinstance(entry, dict) and entry.get("type") == "text")
    ]
    return ["computer", stripped, seen]


def _without_handles(observation: dict[str, Json]) -> dict[str, Json]:
    """Return a window observation without ``observationId`` and without each element's ``elementRef``."""
    kept = {key: value for key, value in observation.items() if key != "observationId"}
    if "elements" in kept:
        kept["elements"] = _pruned(kept["elements"], lambda _: _ELEMENT_HANDLES)
    return kept


def _progress_card(
    tool: str, arguments: Json, result: dict[str, Json], details: dict[str, Json], is_error: bool
) -> list[Json] | None:
    """``progress_card``: the saved card is in the arguments; revision and receipt are left out."""
    if tool != "progress_card" or is_error or "steps" not in details or not isinstance(arguments, dict):
        return None
    return ["progress card", arguments.get("markdown"), arguments.get("plan"), details["steps"]]


def _memory_search(
    tool: str, arguments: Json, result: dict[str, Json], details: dict[str, Json], is_error: bool
) -> list[Json] | None:
    """``memory_search``: hits in order without their score, the rest without timings."""
    hits = details.get("results")
    if tool != "memory_search" or is_error or not isinstance(hits, list):
        return None
    kept = {key: value for key, value in details.items() if key not in ("debug", "results")}
    plain = [
        {key: value for key, value in hit.items() if key != "score"} if isinstance(hit, dict) else hit for hit in hits
    ]
    return ["memory search", kept, plain]


_LiveRule = Callable[[str, Json, dict[str, Json], dict[str, Json], bool], list[Json] | None]
_LIVE_RULES: Final[tuple[_LiveRule, ...]] = (_code_mode, _computer, _progress_card, _memory_search)
