"""Each rule of the detectors against its threshold, and which of those that are met goes first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from loopscan.engine.detectors import Counts, Verdict, block, warning
from loopscan.marks import Detector, Level
from loopscan.policy import Policy

#: A threshold that no count reaches.
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule for one call."""

    detector: Detector
    level: Level
    count: int
    """What it counts; for ping-pong the proposed call is included."""
    threshold: int
    met: bool
    """By itself, were there no other rule."""
    first: bool
    """It is the verdict."""
    why_not: str | None
    """What keeps it from being met though its count is enough, or from counting at all."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "detector": self.detector.value,
            "level": self.level.value,
            "count": self.count,
            "threshold": self.threshold,
            "met": self.met,
            "first": self.first,
            "why_not": self.why_not,
        }


def rules_of(counts: Counts, policy: Policy, found: Verdict | None) -> list[Rule]:
    """Return every rule in the order in which they are tried; ``found`` is the verdict of all together."""
    made = []
    for detector, level in _ORDER:
        if detector is Detector.ARGUMENT_CHURN and not policy.ruleset.argument_churn:
            continue
        alone = _alone(detector, counts), replace(policy, breaker=_breaker(detector, policy))
        verdict = (block if level is Level.CRITICAL else warning)(*alone)
        met = verdict is not None and verdict.detector is detector
        first = found is not None and (found.detector, found.level) == (detector, level)
        count, threshold = _count(detector, level, counts, policy)
        made.append(Rule(detector, level, count, threshold, met, first, _why_not(detector, level, counts, policy)))
    return made


_ORDER: Final = (
    (Detector.UNKNOWN_TOOL_REPEAT, Level.CRITICAL),
    (Detector.GLOBAL_CIRCUIT_BREAKER, Level.CRITICAL),
    (Detector.KNOWN_POLL_NO_PROGRESS, Level.CRITICAL),
    (Detector.PING_PONG, Level.CRITICAL),
    (Detector.GENERIC_REPEAT, Level.CRITICAL),
    (Detector.KNOWN_POLL_NO_PROGRESS, Level.WARNING),
    (Detector.PING_PONG, Level.WARNING),
    (Detector.ARGUMENT_CHURN, Level.WARNING),
    (Detector.GENERIC_REPEAT, Level.WARNING),
)


def _alone(detector: Detector, counts: Counts) -> Counts:
    """Return counts of which nothing is left but what one detector looks at."""
    if detector is Detector.PING_PONG:
        return counts._replace(unknown=0, own=0, failing=0, churn=0, recent=0)
    if detector is Detector.ARGUMENT_CHURN:
        return counts._replace(unknown=0, own=0, failing=0, swings=0, recent=0)
    kept = counts._replace(swings=0, churn=0)
    return kept if detector is Detector.UNKNOWN_TOOL_REPEAT else kept._replace(unknown=0)


def _breaker(detector: Detector, policy: Policy) -> int:
    return policy.breaker if detector is Detector.GLOBAL_CIRCUIT_BREAKER else _NEVER


def _count(detector: Detector, level: Level, counts: Counts, policy: Policy) -> tuple[int, int]:
    critical = level is Level.CRITICAL
    threshold = policy.critical if critical else policy.warning
    match detector:
        case Detector.UNKNOWN_TOOL_REPEAT:
            return counts.unknown, policy.unknown_tool
        case Detector.GLOBAL_CIRCUIT_BREAKER:
            return counts.stuck, policy.breaker
        case Detector.KNOWN_POLL_NO_PROGRESS:
            at = dict(policy.ruleset.poll_critical).get(counts.proposal.tool, threshold) if critical else threshold
            return counts.stuck, at
        case Detector.PING_PONG:
            return counts.swings, threshold
        case Detector.ARGUMENT_CHURN:
            return counts.churn, threshold
        case _:
            return (counts.stuck if critical else counts.recent), threshold


def _why_not(detector: Detector, level: Level, counts: Counts, policy: Policy) -> str | None:
    """Return what keeps a rule from stepping in, besides its count."""
    poll = counts.proposal.known_poll
    match detector:
        case Detector.KNOWN_POLL_NO_PROGRESS if not poll:
            return "the call is no known poll"
        case Detector.GENERIC_REPEAT if poll:
            return "the call is a known poll, which has a rule of its own"
        case Detector.KNOWN_POLL_NO_PROGRESS if not policy.known_poll:
            return "detectors.knownPollNoProgress is off"
        case Detector.GENERIC_REPEAT if not policy.generic_repeat:
            return "detectors.genericRepeat is off"
        case Detector.PING_PONG if not policy.ping_pong:
            return "detectors.pingPong is off"
        case Detector.PING_PONG if level is Level.CRITICAL and counts.swings and not counts.still:
            return "an outcome changed on one side, or is not recorded"
        case _:
            return None
