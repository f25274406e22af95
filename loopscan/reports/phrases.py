"""Numbers and names in words, alike in every format for people."""

from __future__ import annotations

from datetime import UTC, datetime

from loopscan.marks import Kind
from loopscan.report import Saved

#: What each kind of mark is called, and what a column of such marks is headed.
KINDS: dict[Kind, str] = {
    Kind.WARNING: "warning",
    Kind.BLOCK: "block",
    Kind.RUN_END: "run end",
    Kind.ERROR_STREAK_END: "error streak end",
    Kind.UNKNOWN_TOOL_STOP: "unknown tool stop",
    Kind.GUARD_ARMED: "guard armed",
    Kind.COMPACTION_ABORT: "compaction abort",
}
#: How a run came to its end, in the replay.
OUTCOMES = {
    "completed": "completed",
    "interrupted": "interrupted as recorded",
    "run_end": "ended by its second critical loop",
    "error_streak_end": "ended by identical errors",
    "unknown_tool_stop": "ended by the unknown-tool guard",
    "compaction_abort": "aborted by the post-compaction guard",
}
#: Said wherever savings are shown.
UPPER_BOUND = "an upper bound: the model might have recovered"


def kind_words(kind: str) -> str:
    """Return the name of a kind of mark or recorded verdict in words."""
    return kind.replace("_", " ")


def number(value: int) -> str:
    """Return ``value`` with its thousands set apart."""
    return f"{value:,}"


def counted(value: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as ``1 call`` or ``1,204 calls``."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def money(dollars: float) -> str:
    """Return US dollars with the digits that matter."""
    if 0 < dollars < 0.01:
        return "under $0.01"
    return f"${dollars:,.2f}"


def duration(seconds: float) -> str:
    """Return a length of time in seconds, minutes, hours or days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.0f} days"


def saved(value: Saved) -> str:
    """Return what would not have been reached: calls, tokens, money, time; what is unknown is left out or said."""
    parts = [counted(value.calls, "call")] if value.calls or not value.tokens else []
    if value.tokens:
        parts.append(counted(value.tokens, "token"))
    if value.cost_usd > 0:
        parts.append(money(value.cost_usd))
    if value.seconds >= 1:
        parts.append(duration(value.seconds))
    words = ", ".join(parts)
    if value.responses_without_usage:
        words += f" (usage of {counted(value.responses_without_usage, 'response')} is not on record)"
    return words


def moment(seconds: float) -> str:
    """Return a time in seconds since the epoch as ``2026-09-01 10:00:00 UTC``, if it is one of a calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "at an impossible time"


def clock(seconds: float) -> str:
    """Return the time of day in UTC, as ``10:00:00``, of a time in seconds since the epoch."""
    return moment(seconds).removesuffix(" UTC")[-8:]


def span(started: float | None, ended: float | None) -> str | None:
    """Return when something began and how long it took, as far as is known."""
    if started is None:
        return None
    if ended is None or ended <= started:
        return moment(started)
    return f"{moment(started)}, {duration(ended - started)}"
