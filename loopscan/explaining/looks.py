"""A look at one call: all that the engine knew when it judged it, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loopscan.engine.detectors import Counts, Verdict, Warnings
from loopscan.engine.outcomes import Compared
from loopscan.engine.records import Record
from loopscan.engine.session import RunState, SessionEngine, Slot
from loopscan.events import Json
from loopscan.explaining.rules import Rule, rules_of
from loopscan.marks import Mark
from loopscan.policy import Policy


class Cell(StrEnum):
    """What one record of the history is to the call that is looked at."""

    SAME = "same"
    """The same call, with the newest outcome of it."""
    OTHER_OUTCOME = "other_outcome"
    NO_OUTCOME = "no_outcome"
    VETO = "veto"
    """The same call, vetoed."""
    PARTNER = "partner"
    """The other side of a ping-pong."""
    OTHER = "other"
    """Another call of the same scope."""
    OTHER_RUN = "other_run"
    """A call of another scope: it takes room and is not looked at."""


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards that stand beside the detectors, before the call."""

    armed: bool
    """The post-compaction guard looks at what comes back."""
    remaining: int
    """How many outcomes it still looks at."""
    window: int
    same: bool
    """All that it has seen since was one call with one outcome."""
    identical_errors: int | None
    """How many identical failures came in a row; ``None``: the ruleset has no such guard."""
    identical_limit: int | None
    absent: int
    """How many messages in a row asked for one and the same tool that does not exist."""

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data."""
        return {
            "post_compaction": {
                "armed": self.armed,
                "remaining": self.remaining,
                "window": self.window,
                "same": self.same,
            },
            "identical_error": {"count": self.identical_errors, "limit": self.identical_limit},
            "unknown_tool_guard": {"count": self.absent},
        }


@dataclass(slots=True)
class Look:
    """One judged call."""

    run: str
    """The reader's key."""
    batch: int
    call: int
    tool: str
    """The name that the engine goes by."""
    asked: Json
    """The arguments as recorded."""
    compared_arguments: Json
    """What of them makes calls the same."""
    signature: bytes
    tool_call_id: str | None
    line: int
    entry: str | None
    time: float | None
    counts: Counts | None
    """``None`` where the detectors are off: nothing is counted."""
    verdict: Verdict | None
    rules: list[Rule]
    cells: list[Cell]
    """The history before the call, oldest first."""
    room: int
    """How many records it may hold."""
    guards: Guards
    criticals: int
    """How many critical verdicts the run had before."""
    highest_bucket: int
    """Of the warnings with this key that were emitted before."""
    marks: list[Mark] = field(default_factory=list)
    """What was made of it."""
    suppressed: bool = False
    """It is a warning that the rate limit kept back."""
    outcome: Compared | None = None
    """What is compared of what came back, if that is on record."""
    outcome_identity: bytes | None = None
    lossy: bool = False

    @property
    def bucket(self) -> int | None:
        """The bucket of a warning."""
        found = self.verdict
        return found.count // Warnings.BUCKET if found is not None and not found.critical else None


def look(
    engine: SessionEngine, policy: Policy, run: RunState, slot: Slot, judged: tuple[Counts, Verdict | None] | None
) -> Look:
    """Return what the engine knows of a call that it is just judging."""
    counts, found = judged or (None, None)
    scope = engine.scope_id(run)
    return Look(
        run=run.key,
        batch=run.batch.index if run.batch is not None else run.batches,
        call=slot.number if slot.number is not None else -1,
        tool=slot.tool,
        asked=slot.call.arguments,
        compared_arguments=slot.arguments,
        signature=slot.signature,
        tool_call_id=slot.call.id,
        line=0,
        entry=None,
        time=None,
        counts=counts,
        verdict=found,
        rules=rules_of(counts, policy, found) if counts is not None else [],
        cells=list(_cells(engine.history.records, scope, slot, counts)),
        room=int(policy.history_size),
        guards=_guards(run),
        criticals=run.blocks,
        highest_bucket=engine.warnings.highest(scope, found.key) if found is not None else 0,
    )


def _cells(records: Sequence[Record], scope: str | None, slot: Slot, counts: Counts | None) -> Iterator[Cell]:
    for record in records:
        if record.run_id != scope:
            yield Cell.OTHER_RUN
        elif record.signature != slot.signature:
            partner = counts is not None and counts.swings >= 2 and record.signature == counts.other
            yield Cell.PARTNER if partner else Cell.OTHER
        elif record.veto:
            yield Cell.VETO
        elif record.outcome is None:
            yield Cell.NO_OUTCOME
        else:
            yield Cell.SAME if counts is not None and record.outcome == counts.outcome else Cell.OTHER_OUTCOME


def _guards(run: RunState) -> Guards:
    errors = run.errors
    return Guards(
        run.guard.armed,
        run.guard.remaining,
        run.guard.window,
        run.guard.same,
        errors.count if errors else None,
        errors.limit if errors else None,
        run.unknown.count,
    )
