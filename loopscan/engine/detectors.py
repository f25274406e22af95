"""The verdict on a proposed call: one table, first match wins.

The order is observable: a ping-pong warning hides a generic block. Counts are of earlier calls,
so a count of 10 is met by the 11th attempt (ping-pong counts the proposed call: by the 10th).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loopscan.engine.history import Scope
from loopscan.engine.streaks import Projection
from loopscan.marks import Detector, Level
from loopscan.policy import Policy
from loopscan.rulesets import Ruleset


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call that is about to run, by the engine's names."""

    tool: str
    signature: bytes
    known_poll: bool


class Counts(NamedTuple):
    """All that the detectors count for one proposed call; no threshold plays a part in it."""

    proposal: Proposal
    unknown: int
    """The unknown-tool streak."""
    unknown_name: str | None
    own: int
    """No progress of the call's own signature."""
    failing: int
    """``exec`` calls that failed alike, whatever their arguments."""
    swings: int
    """Ping-pong, the proposed call included."""
    paired_tool: str | None
    still: bool
    """Nothing progresses on either side of the ping-pong."""
    other: bytes
    """The signature of its other side."""
    churn: int
    recent: int
    """Records with the call's signature."""
    outcome: bytes | None
    """The newest outcome of the call's signature."""

    @property
    def stuck(self) -> int:
        """The no-progress count that is compared: the larger of the two."""
        return max(self.own, self.failing)

    @property
    def across(self) -> bool:
        """The no-progress count is of failing ``exec`` calls whatever their arguments."""
        return self.failing > self.own


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the detectors say of a proposal."""

    detector: Detector
    level: Level
    count: int
    threshold: int
    key: tuple[object, ...] = ()
    """What the rate limit of warnings goes by, within the run; see :class:`Warnings`."""
    paired_tool: str | None = None
    outcome: bytes | None = None
    across: bool = False
    """The count is of failing ``exec`` calls whatever their arguments."""
    rests_on: tuple[bytes | None, int] | None = None
    """The streak that outcomes decided, as :meth:`Scope.is_lossy` takes it; ``None``: outcomes played no part."""
    lossy: bool = False
    """One of those outcomes is recorded only in part."""

    @property
    def critical(self) -> bool:
        """Whether the call would be vetoed."""
        return self.level is Level.CRITICAL


def measure(proposal: Proposal, scope: Scope, ahead: Projection, ruleset: Ruleset) -> Counts:
    """Return what the detectors count for ``proposal``.

    ``ahead`` holds the earlier siblings of its batch where the ruleset admits batches as a whole,
    else it is empty.
    """
    tool, signature = proposal.tool, proposal.signature
    unknown, name = scope.unknown_tool(tool, ahead)
    swings, paired, still, other = scope.ping_pong(signature, ahead)
    return Counts(
        proposal,
        unknown,
        name,
        scope.no_progress(signature, ahead),
        scope.exec_failures(tool, signature, ahead) if ruleset.failures_across_arguments else 0,
        swings,
        paired,
        still,
        other,
        scope.churn(tool, signature, ahead) if ruleset.argument_churn else 0,
        scope.recent(signature, ahead),
        scope.newest_outcome(signature),
    )


def decide(counts: Counts, policy: Policy) -> Verdict | None:
    """Return the first rule that is met, or ``None``."""
    return block(counts, policy) or warning(counts, policy)


def block(counts: Counts, policy: Policy) -> Verdict | None:
    """Return the critical rule that comes first, if no warning that goes before it is met.

    It looks at no more of ``policy`` than it has to: what was not looked at could be anything.
    """
    poll, stuck = counts.proposal.known_poll, counts.stuck
    if counts.unknown >= policy.unknown_tool:
        key = ("unknown", counts.unknown_name)
        return Verdict(Detector.UNKNOWN_TOOL_REPEAT, Level.CRITICAL, counts.unknown, int(policy.unknown_tool), key)
    if stuck >= policy.breaker:
        return _stuck(counts, Detector.GLOBAL_CIRCUIT_BREAKER, Level.CRITICAL, policy.breaker)
    if poll:
        at = dict(policy.ruleset.poll_critical).get(counts.proposal.tool, policy.critical)
        if stuck >= at and policy.known_poll:
            return _stuck(counts, Detector.KNOWN_POLL_NO_PROGRESS, Level.CRITICAL, at)
    if (
        counts.still
        and counts.swings >= policy.critical
        and counts.swings >= policy.warning
        and policy.ping_pong
        and not (poll and stuck >= policy.warning and policy.known_poll)
    ):
        return _ping_pong(counts, Level.CRITICAL, policy.critical)
    if (
        not poll
        and stuck >= policy.critical
        and policy.generic_repeat
        and not (counts.swings >= policy.warning and policy.ping_pong)
    ):
        return _stuck(counts, Detector.GENERIC_REPEAT, Level.CRITICAL, policy.critical)
    return None


def warning(counts: Counts, policy: Policy) -> Verdict | None:
    """Return the warning that comes first where no call is blocked."""
    poll, limit = counts.proposal.known_poll, policy.warning
    if poll and counts.stuck >= limit and policy.known_poll:
        return _stuck(counts, Detector.KNOWN_POLL_NO_PROGRESS, Level.WARNING, limit)
    if counts.swings >= limit and policy.ping_pong:
        return _ping_pong(counts, Level.WARNING, limit)
    if counts.churn >= limit:
        key: tuple[object, ...] = (Detector.ARGUMENT_CHURN, counts.proposal.tool)
        return Verdict(
            Detector.ARGUMENT_CHURN,
            Level.WARNING,
            counts.churn,
            int(limit),
            key,
            outcome=counts.outcome,
            rests_on=(None, counts.churn),
        )
    if not poll and counts.recent >= limit and policy.generic_repeat:
        key = (Detector.GENERIC_REPEAT, counts.proposal.signature)
        return Verdict(Detector.GENERIC_REPEAT, Level.WARNING, counts.recent, int(limit), key, outcome=counts.outcome)
    return None


def _stuck(counts: Counts, detector: Detector, level: Level, threshold: int) -> Verdict:
    signature, stuck, across = counts.proposal.signature, counts.stuck, counts.across
    return Verdict(
        detector,
        level,
        stuck,
        int(threshold),
        (detector, signature, counts.outcome),
        outcome=counts.outcome,
        across=across,
        rests_on=(None if across else signature, stuck),
    )


def _ping_pong(counts: Counts, level: Level, threshold: int) -> Verdict:
    return Verdict(
        Detector.PING_PONG,
        level,
        counts.swings,
        int(threshold),
        (Detector.PING_PONG, frozenset((counts.proposal.signature, counts.other))),
        counts.paired_tool,
        counts.outcome,
        rests_on=(None, counts.swings - 1) if level is Level.CRITICAL else None,
    )


class Warnings:
    """The rate limit of warnings: one per bucket of ten counts for each run and key.

    A session remembers 256 keys; the oldest by first insertion goes first, and a higher bucket does
    not refresh a key. The first bucket is 0, which is where every key starts: so no warning is
    emitted before count 10.
    """

    BUCKET = 10
    KEYS = 256

    def __init__(self) -> None:
        self._highest: dict[tuple[object, ...], int] = {}

    def highest(self, run_id: str | None, key: tuple[object, ...]) -> int:
        """Return the highest bucket of which a warning was emitted, 0 for none."""
        return self._highest.get((run_id, *key), 0)

    def emit(self, run_id: str | None, key: tuple[object, ...], count: int) -> bool:
        """Return whether a warning at ``count`` is emitted, and remember it."""
        bucket = count // self.BUCKET
        full = (run_id, *key)
        if bucket <= self._highest.get(full, 0):
            return False
        self._highest[full] = bucket
        if len(self._highest) > self.KEYS:
            del self._highest[next(iter(self._highest))]
        return True
