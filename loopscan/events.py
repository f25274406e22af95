"""The vocabulary between readers and the engine: what a record says, in the order it says it.

A reader turns one source into a stream of events; the engine knows nothing else. Within a session
the order of events is the order in which the live engine saw things: a :class:`Turn` stands where
its assistant message was recorded, each :class:`Result` where the outcome was.

A reader that has to look ahead (a call's fate is known only from its result) holds back what
follows; it never reorders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

#: A parsed JSON value. Objects are ``dict`` with ``str`` keys, arrays ``list``.
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Fate(StrEnum):
    """What became of one call, as far as the record tells (engine rules: from a transcript to the engine)."""

    RAN = "ran"
    """It ran; a :class:`Result` for it follows."""
    LOST = "lost"
    """It ran or may have run, but no outcome is known: a record without outcome."""
    VETOED = "vetoed"
    """The live engine vetoed it; judged again, and without outcome if it is let through."""
    REJECTED = "rejected"
    """Its arguments failed validation; the :class:`Result` that follows holds the message as ``error``."""
    NOT_RUN = "not_run"
    """Aborted or skipped before it started: it leaves no record."""


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the source, and when it was recorded."""

    line: int = 0
    """Counts from 1; 0 where a source has no lines."""
    entry: str | None = None
    """The transcript's own entry id."""
    time: float | None = None
    """Seconds since the epoch, UTC."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the model asked for."""

    tool: str
    """As the model wrote it; the engine normalises."""
    arguments: Json
    id: str | None = None
    fate: Fate = Fate.RAN


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came back with: exactly one of ``error`` (a thrown error's text) and ``result``."""

    result: Json = None
    """``{"content": [...], "details": {...}}`` as recorded, without the notes that a live engine appended."""
    error: str | None = None
    is_error: bool = False
    """Recorded as an error (always so for ``error``); only the identical-error guard looks at it."""
    lossy: bool = False
    """The record holds less than the live engine hashed (truncated details)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model response cost, as recorded; 0 where the record is silent."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0
    cost_usd: float = 0.0


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """The first event of a session. All up to :class:`SessionEnded` belong to it, but see :class:`SessionResumed`."""

    session: str
    where: Where
    agent: str | None = None
    model: str | None = None
    version: str | None = None
    """The format's own version, as text."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """New user input.

    The first message of a run opens it. ``steering`` came into a run that goes on; ``retry`` is the
    same prompt again after an in-run compaction, which is no new input.
    """

    run: str
    where: Where
    run_id: str | None = None
    """As recorded, else ``None``; ``run`` is the reader's own key, unique within the session."""
    steering: bool = False
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One assistant message. Without calls it is a text turn.

    ``absent`` names tools that this message asked for but that do not exist, in call order where
    known. A turn that was not stored (only its orphan results were) has ``stored=False`` and no calls;
    so does what stands for all responses of an attempt that are not on record, of which ``usage`` is known.
    """

    run: str
    where: Where
    calls: tuple[Call, ...] = ()
    absent: tuple[AbsentCall, ...] = ()
    stored: bool = True
    run_id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage = NO_USAGE
    failed: bool = False
    """The model call itself failed or was aborted: an empty attempt, which is no text turn."""

    @property
    def stored_calls(self) -> int:
        """How many calls the stored message holds, those of absent tools included."""
        return len(self.calls) + sum(absent.position is not None for absent in self.absent)


@dataclass(frozen=True, slots=True)
class AbsentCall:
    """A call to a tool that does not exist, known from its result."""

    tool: str
    error: str
    id: str | None = None
    where: Where = field(default_factory=Where)
    position: int | None = None
    """Its place among the calls of a message that stored it, counted from 0 over existing and absent tools alike;
    ``None`` where the message was stored without it. Its arguments are then unknown too."""
    arguments: Json = None


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of call number ``index`` (in ``Turn.calls``) of the run's latest :class:`Turn` with calls."""

    run: str
    where: Where
    index: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class UnknownToolStopped:
    """The live unknown-tool guard took the calls of a message out and left a text in their place.

    It stands for the attempt that it replaced: it makes the mark whatever the count.
    """

    run: str
    where: Where
    tool: str
    run_id: str | None = None
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Compaction:
    """The context was compacted.

    ``in_run``: the run went on after it without new user input. ``from_hook``: the runner's own
    recovery made it (2026.6 arms on those alone); ``None`` where the record does not say.
    """

    run: str | None
    where: Where
    in_run: bool
    from_hook: bool | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A verdict of the live engine that the record itself shows."""

    run: str
    """Empty where the source knows verdicts alone, and not of which run: see :mod:`loopscan.verdicts`."""
    where: Where
    kind: str
    """``warning``, ``block``, ``run_end``, ``unknown_tool_stop`` or ``compaction_abort``."""
    tool_call_id: str | None = None
    tool: str | None = None
    detector: str | None = None
    count: int | None = None


class Ending(StrEnum):
    """How a run ended, as recorded."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Nothing more of this run follows.

    ``unanswered``: the last batch lacks results and nothing tells why, as after a live
    post-compaction abort, which stores nothing.
    """

    run: str
    where: Where
    ending: Ending
    unanswered: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the source that could not be used. Never fatal; always counted and named."""

    line: int
    kind: str
    """A stable short name, such as ``malformed-json``."""
    detail: str
    """One sentence for people. Free of raw transcript text."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The last event of a session."""

    where: Where


@dataclass(frozen=True, slots=True)
class SessionResumed:
    """What follows belongs to a session that started earlier: a source may hold several at the same time.

    Up to it events belong to the session that started or was resumed last. A session that ended stays so.
    """

    session: str


@dataclass(frozen=True, slots=True)
class Pause:
    """There is nothing more now, but there may be later: the source is being followed."""


#: What happens within a session.
SessionEvent: TypeAlias = UserMessage | Turn | Result | UnknownToolStopped | Compaction | Recorded | RunEnded

#: What a reader says of a source.
Event: TypeAlias = SessionEvent | SessionStarted | SessionResumed | SessionEnded | Problem | Pause
