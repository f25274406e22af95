"""One event of a trajectory, taken apart without trust in any field.

OpenClaw writes a trajectory beside a session (2026.4 to 2026.6: ``ID.trajectory.jsonl``; 2026.9: a table of its
database) and exports it on request (``events.jsonl``). In an export, events of the *transcript* hold the entries of
the session, and those of the *runtime* stand between them, in the order of time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import NO_USAGE, Json, Usage, Where
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.openclaw.entries import Entry, entry_of
from loopscan.transcripts.openclaw.results import compaction_loop
from loopscan.transcripts.values import Object, array, identifier, mapping, seconds, string, tokens, whole

SCHEMA = "openclaw-trajectory"
_AGENT = re.compile(r"agent:([^:]+):")
#: What the recorder leaves in place of what was too long.
_TRUNCATED = "truncated"
#: Nobody looks further down for what was cut; arguments and details lie above it.
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One line of a trajectory."""

    kind: str
    """Its ``type``; empty if it is no string."""
    line: Line
    body: Object
    data: Object
    session: str | None
    run_id: str | None
    transcript: bool
    """It holds an entry of the session. What says so differently is of the runtime."""

    @property
    def where(self) -> Where:
        """Where it stands, and when it was recorded."""
        return Where(self.line.number, identifier(self.body.get("entryId")), seconds(self.body.get("ts")))

    @property
    def agent(self) -> str | None:
        """The agent whose session it is, by the event itself or its session key."""
        found = _AGENT.match(string(self.body.get("sessionKey")) or "")
        return string(self.data.get("agentId")) or (found[1] if found else None)

    def entry(self, body: Object) -> Entry:
        """Return an entry of the session that this event tells of."""
        return entry_of(self.line, body)


def trace_event(line: Line, body: Object) -> TraceEvent | None:
    """Take one line apart; ``None`` if it is no event of a trajectory."""
    if body.get("traceSchema") != SCHEMA:
        return None
    return TraceEvent(
        kind=string(body.get("type")) or "",
        line=line,
        body=body,
        data=mapping(body.get("data")),
        session=identifier(body.get("sessionId")),
        run_id=string(body.get("runId")),
        transcript=body.get("source") == "transcript",
    )


def usage_of_run(data: Object) -> Usage:
    """Return what an attempt cost, by the event of its end."""
    usage = mapping(data.get("usage"))
    return Usage(
        input=tokens(usage.get("input")),
        output=tokens(usage.get("output")),
        cache_read=tokens(usage.get("cacheRead")),
        cache_write=tokens(usage.get("cacheWrite")),
        total=tokens(usage.get("total")),
    )


def beyond(usage: Usage, known: Usage) -> Usage:
    """Return what of ``usage`` is more than is ``known`` of it."""
    if usage == NO_USAGE:
        return NO_USAGE
    return Usage(
        input=max(0, usage.input - known.input),
        output=max(0, usage.output - known.output),
        cache_read=max(0, usage.cache_read - known.cache_read),
        cache_write=max(0, usage.cache_write - known.cache_write),
        total=max(0, usage.total - known.total),
    )


def added(one: Usage, other: Usage) -> Usage:
    """Return the sum of the tokens."""
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        total=one.total + other.total,
    )


def abort_of(data: Object) -> tuple[str, int] | None:
    """Return tool and count if the attempt was ended by the post-compaction guard."""
    return compaction_loop(data.get("promptError"))


def cut_short(data: Object) -> bool:
    """Say whether an attempt was aborted, timed out or failed: that explains what its record lacks."""
    flags = ("aborted", "externalAbort", "timedOut", "idleTimedOut", "timedOutDuringToolExecution")
    return any(data.get(flag) is True for flag in flags) or string(data.get("promptError")) is not None


def truncated(value: Json) -> bool:
    """Say whether the recorder cut something out of ``value``."""
    waiting: list[tuple[Json, int]] = [(value, 0)]
    while waiting:
        found, depth = waiting.pop()
        if depth > _DEEPEST:
            continue
        if isinstance(found, dict):
            if is_truncation(found) or is_truncation(found.get("_truncated")):
                return True
            waiting += [(each, depth + 1) for each in found.values()]
        elif isinstance(found, list):
            waiting += [(each, depth + 1) for each in found]
    return False


def is_truncation(value: Json) -> bool:
    """Say whether ``value`` stands in place of something that the recorder cut out."""
    if not isinstance(value, dict) or value.get(_TRUNCATED) is not True:
        return False
    return (string(value.get("reason")) or "").startswith("trajectory-")


def cut_off(messages: Json) -> int:
    """Return how many items the recorder cut off the end of a list."""
    last = array(messages)[-1:]
    if not last or not is_truncation(last[0]):
        return 0
    marker = mapping(last[0])
    full, kept = whole(marker.get("originalLength")), whole(marker.get("limitItems"))
    return max(1, min((full or 0) - (kept or 0), 1 << 31))
