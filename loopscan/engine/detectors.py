"""The verdict on a proposed call: one table, first match wins.

The order is observable: a ping-pong warning hides a generic block. Counts are of earlier calls,
so a count of 10 is met by the 11th attempt (ping-pong counts the proposed call: by the 10th).
"""

from __future__ import annotations

from dataclasses import dataclass

from loopscan.engine.history import Scope
from loopscan.engine.streaks import Projection
from loopscan.marks import Detector, Level
from loopscan.policy import Policy


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call that is about to run, by the engine's names."""

    tool: str
    signature: bytes
    known_poll: bool


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
    lossy: bool = False
    across: bool = False
    """The count is of failing ``exec`` calls whatever their arguments."""

    @property
    def critical(self) -> bool:
        """Whether the call would be vetoed."""
        return self.level is Level.CRITICAL


def verdict(proposal: Proposal, scope: Scope, ahead: Projection, policy: Policy) -> Verdict | None:
    """Return the first rule that ``proposal`` meets, or ``None``.

    ``ahead`` holds the earlier siblings of its batch where the ruleset admits batches as a whole,
    else it is empty.
    """
    ruleset = policy.ruleset
    tool, signature = proposal.tool, proposal.signature

    unknown, name = scope.unknown_tool(tool, ahead)
    if unknown >= policy.unknown_tool:
        return Verdict(Detector.UNKNOWN_TOOL_REPEAT, Level.CRITICAL, unknown, policy.unknown_tool, ("unknown", name))

    stuck = scope.no_progress(signature, ahead)
    failing = scope.exec_failures(tool, signature, ahead) if ruleset.failures_across_arguments else 0
    across, stuck = failing > stuck, max(failing, stuck)
    outcome = scope.newest_outcome(signature)

    def stuck_verdict(detector: Detector, level: Level, threshold: int) -> Verdict:
        lossy = scope.is_lossy(None if across else signature, stuck)
        key = (detector, signature, outcome)
        return Verdict(detector, level, stuck, threshold, key, None, outcome, lossy, across)

    if stuck >= policy.breaker:
        return stuck_verdict(Detector.GLOBAL_CIRCUIT_BREAKER, Level.CRITICAL, policy.breaker)

    if proposal.known_poll and policy.known_poll:
        block_at = dict(ruleset.poll_critical).get(tool, policy.critical)
        if stuck >= block_at:
            return stuck_verdict(Detector.KNOWN_POLL_NO_PROGRESS, Level.CRITICAL, block_at)
        if stuck >= policy.warning:
            return stuck_verdict(Detector.KNOWN_POLL_NO_PROGRESS, Level.WARNING, policy.warning)

    if policy.ping_pong:
        swings, paired, still, other = scope.ping_pong(signature, ahead)
        if swings >= policy.warning:
            blocked = still and swings >= policy.critical
            return Verdict(
                Detector.PING_PONG,
                Level.CRITICAL if blocked else Level.WARNING,
                swings,
                policy.critical if blocked else policy.warning,
                (Detector.PING_PONG, frozenset((signature, other))),
                paired,
                outcome,
                blocked and scope.is_lossy(None, swings - 1),
            )

    generic = not proposal.known_poll and policy.generic_repeat
    if generic and stuck >= policy.critical:
        return stuck_verdict(Detector.GENERIC_REPEAT, Level.CRITICAL, policy.critical)

    if ruleset.argument_churn:
        churn = scope.churn(tool, signature, ahead)
        if churn >= policy.warning:
            lossy = scope.is_lossy(None, churn)
            return Verdict(
                Detector.ARGUMENT_CHURN,
                Level.WARNING,
                churn,
                policy.warning,
                (Detector.ARGUMENT_CHURN, tool),
                outcome=outcome,
                lossy=lossy,
            )

    if generic:
        recent = scope.recent(signature, ahead)
        if recent >= policy.warning:
            key = (Detector.GENERIC_REPEAT, signature)
            return Verdict(Detector.GENERIC_REPEAT, Level.WARNING, recent, policy.warning, key, outcome=outcome)
    return None


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
