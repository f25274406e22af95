"""Marks: the places where the engine would have stepped in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from loopscan.events import Where


class Kind(StrEnum):
    """What would have happened at a mark."""

    WARNING = "warning"
    BLOCK = "block"
    RUN_END = "run_end"
    ERROR_STREAK_END = "error_streak_end"
    UNKNOWN_TOOL_STOP = "unknown_tool_stop"
    GUARD_ARMED = "guard_armed"
    COMPACTION_ABORT = "compaction_abort"


#: The kinds after which nothing more of the run is reached.
ENDS_RUN = frozenset({Kind.RUN_END, Kind.ERROR_STREAK_END, Kind.UNKNOWN_TOOL_STOP, Kind.COMPACTION_ABORT})


class Level(StrEnum):
    """How grave a mark is; arming a guard is ``info``."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Detector(StrEnum):
    """The rule that a mark comes from."""

    GENERIC_REPEAT = "generic_repeat"
    UNKNOWN_TOOL_REPEAT = "unknown_tool_repeat"
    KNOWN_POLL_NO_PROGRESS = "known_poll_no_progress"
    GLOBAL_CIRCUIT_BREAKER = "global_circuit_breaker"
    PING_PONG = "ping_pong"
    ARGUMENT_CHURN = "argument_churn"
    IDENTICAL_ERROR = "identical_error"
    UNKNOWN_TOOL_GUARD = "unknown_tool_guard"
    COMPACTION_LOOP = "compaction_loop_persisted"


@dataclass(frozen=True, slots=True)
class Mark:
    """One place where the engine would have stepped in.

    ``batch`` and ``call`` count from 0 within the run; batches are assistant messages with calls.
    ``signature`` and ``outcome`` are digests in hex that say which marks belong to the same loop.
    """

    run: str
    kind: Kind
    detector: Detector
    level: Level
    count: int | None
    threshold: int | None
    batch: int
    call: int | None = None
    tool: str | None = None
    paired_tool: str | None = None
    tool_call_id: str | None = None
    where: Where = field(default_factory=Where)
    signature: str | None = None
    outcome: str | None = None
    lossy: bool = False
    message: str = ""
    blocked_calls: int = 0
    """How many calls of the batch did not run because of this mark."""
