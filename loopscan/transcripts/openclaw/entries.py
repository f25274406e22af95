"""One line of an OpenClaw or pi session file, taken apart without trust in any field.

Nothing here raises: a field of the wrong type is as good as none. A field that a call or a result
cannot do without is named by :func:`faults`.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopscan.events import NO_USAGE, Json, Usage, Where
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.values import Object, dollars, identifier, mapping, seconds, string, tokens

#: Types of a content block that asks for a tool; ``functionCall`` and ``toolUse`` are older spellings.
CALL_TYPES = frozenset({"toolCall", "toolUse", "functionCall"})

_FOREIGN = ("tool_use", "tool_result", "toolCall")

#: The models that the gateway names as the author of texts that it wrote itself: no model responded.
GATEWAY_MODELS = frozenset({"delivery-mirror", "gateway-injected"})

#: Ends of a model response after which the model wants nothing more.
FINAL_STOPS = frozenset({"stop", "endTurn", "end_turn"})

#: Ends of a model response that failed: the calls in it never ran.
FAILED_STOPS = frozenset({"error", "aborted"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: where it is, what it hangs below, and its message if it has one."""

    kind: str
    """The entry's ``type``; empty if it is no string."""
    where: Where
    size: int
    """Bytes of the line."""
    id: str | None
    parent: str | None
    linked: bool
    """Whether it has a ``parentId`` at all (version 1 has none)."""
    body: Object
    message: Object
    """The entry's ``message``; empty if there is none."""
    role: str
    """The message's role, ``hookMessage`` being ``custom``; empty if there is none."""

    @property
    def run_id(self) -> str | None:
        """The run id that the entry or its message carries (2026.9)."""
        if self.role in ("assistant", "toolResult"):
            return string(openclaw(self.message).get("runId"))
        return string(openclaw(self.body).get("runId"))

    @property
    def sent_at(self) -> float | None:
        """When the message was made, in seconds (the message's own milliseconds, which are the finer clock)."""
        made = seconds(self.message.get("timestamp"))
        return self.where.time if made is None else made


@dataclass(frozen=True, slots=True)
class RawCall:
    """One call as the model wrote it."""

    tool: str
    arguments: Json
    id: str | None


def entry_of(line: Line, body: Object) -> Entry:
    """Take one line apart; ``body`` is its value."""
    identity = identifier(body.get("id"))
    kind = string(body.get("type")) or ""
    message = mapping(body.get("message")) if kind == "message" else {}
    role = string(message.get("role")) or ""
    time = seconds(body.get("timestamp"))
    if time is None:
        time = seconds(message.get("timestamp"))
    return Entry(
        kind=kind,
        where=Where(line.number, identity, time),
        size=line.size,
        id=identity,
        parent=identifier(body.get("parentId")),
        linked="parentId" in body,
        body=body,
        message=message,
        role="custom" if role == "hookMessage" else role,
    )


def faults(entry: Entry) -> str | None:
    """Say in a sentence what a message lacks to be understood, ``None`` if it is whole."""
    if entry.kind != "message":
        foreign = mapping(entry.body.get("message")).get("content")
        return "calls or results in an entry of another format" if _has_foreign_calls(foreign) else None
    if not entry.role:
        return "a message without a role"
    content = entry.message.get("content")
    if entry.role == "assistant":
        if not isinstance(content, list | str):
            return "an assistant message without content"
        if any(not isinstance(block, dict) for block in content if not isinstance(content, str)):
            return "an assistant message with content that is no block"
        if any(not isinstance(block.get("name"), str) for block in _call_blocks(content)):
            return "a call without a tool name"
    if entry.role == "toolResult":
        if identifier(entry.message.get("toolCallId")) is None:
            return "a result that names no call"
        if not isinstance(content, list | str):
            return "a result without content"
    return None


def calls_of(message: Object) -> list[RawCall]:
    """Return the calls of an assistant message, in order; a name that is no string is empty."""
    return [
        RawCall(
            tool=string(block.get("name")) or "",
            arguments=block["arguments"] if "arguments" in block else block.get("input"),
            id=identifier(block.get("id")),
        )
        for block in _call_blocks(message.get("content"))
    ]


def usage_of(message: Object) -> Usage:
    """Return what the message says it cost; 0 for what is missing or no sensible number.

    The total is the recorded one, whatever its parts come to; their sum where none is recorded.
    """
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return NO_USAGE
    cost = usage.get("cost")
    given, made, read, written = (tokens(usage.get(part)) for part in ("input", "output", "cacheRead", "cacheWrite"))
    return Usage(
        input=given,
        output=made,
        cache_read=read,
        cache_write=written,
        total=tokens(usage.get("totalTokens")) or given + made + read + written,
        cost_usd=dollars(cost.get("total") if isinstance(cost, dict) else cost),
    )


def openclaw(body: Object) -> Object:
    """Return OpenClaw's own fields of an entry or message (2026.9), empty if there are none."""
    own = body.get("__openclaw")
    return own if isinstance(own, dict) else {}


def _has_foreign_calls(content: Json) -> bool:
    """Say whether a content holds what other formats have for calls and results."""
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") in _FOREIGN for block in blocks)


def _call_blocks(content: Json) -> list[Object]:
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and is_call(block.get("type"))]


def is_call(kind: Json) -> bool:
    """Say whether a content block of this type asks for a tool."""
    return isinstance(kind, str) and kind in CALL_TYPES
