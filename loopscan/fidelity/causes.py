"""The likely cause of a disagreement between the record and its replay: small rules, the first that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopscan.events import Recorded
from loopscan.marks import Kind, Mark
from loopscan.policy import Policy
from loopscan.report import LiveVerdict


class Cause(StrEnum):
    """Why the record and its replay differ."""

    RULESET = "ruleset"
    CONFIGURATION = "configuration"
    THRESHOLDS = "thresholds"
    COMPACTION = "compaction"
    LOSSY = "lossy"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Case:
    """One disagreement, with what may explain it."""

    policy: Policy
    recorded: Recorded | None
    mark: Mark | None
    agreeing: Sequence[str]
    """The other rulesets under which nothing in the session disagrees."""
    near: Sequence[int]
    """The counts of what the other side alone has of the same detector in the same run."""
    calls: int
    """How many calls the run has; 0 where the verdict names none."""


def cause_of(case: Case) -> tuple[Cause, str]:
    """Return the likely cause and a sentence, the first rule that fits."""
    for cause, rule in _RULES.items():
        found = rule(case)
        if found is not None:
            return cause, found
    return Cause.UNKNOWN, "no rule explains it: loopscan explain shows what the replay knew there"


def _ruleset(case: Case) -> str | None:
    """Another ruleset agrees: another release ran."""
    if not case.agreeing:
        return None
    verb = "agrees" if len(case.agreeing) == 1 else "agree"
    return f"{' and '.join(case.agreeing)} {verb} in all of the session: another release may have run"


def _configuration(case: Case) -> str | None:
    """The live engine stepped in, and the detectors are off in the replay."""
    recorded, policy = case.recorded, case.policy
    if recorded is None or recorded.kind == Kind.UNKNOWN_TOOL_STOP or policy.enabled is True:
        return None
    if policy.enabled is None and recorded.kind == Kind.COMPACTION_ABORT:
        return None
    return "the detectors are off in the replay: another configuration was in force (--config, --set enabled=true)"


def _thresholds(case: Case) -> str | None:
    """The live verdict came at a count that the thresholds of the replay do not allow, or not at theirs."""
    recorded, mark, policy = case.recorded, case.mark, case.policy
    if recorded is not None and mark is not None and recorded.count != mark.count:
        return f"it was made at count {recorded.count}, the replay's at {mark.count}: other thresholds were in force"
    if case.near:
        other = "replay" if recorded is not None else "live engine"
        return f"the {other} steps into the same loop at count {case.near[0]}: other thresholds were in force"
    if recorded is None or recorded.count is None:
        return None
    least = {Kind.WARNING.value: policy.warning, Kind.BLOCK.value: policy.critical}.get(recorded.kind)
    if least is not None and recorded.count < least:
        return f"it was made at count {recorded.count}, below the threshold of {least} here: another one was in force"
    return None


def _compaction(case: Case) -> str | None:
    """The record does not show whether a compaction armed the guard."""
    kinds = {case.recorded.kind if case.recorded is not None else None, case.mark.kind if case.mark else None}
    if Kind.COMPACTION_ABORT not in kinds:
        return None
    return "whether a compaction armed the guard is not on record: --arm always and --arm never tell both ways"


def _lossy(case: Case) -> str | None:
    """The verdict rests on an outcome that is recorded only in part."""
    return (
        "it rests on an outcome that is recorded only in part" if case.mark is not None and case.mark.lossy else None
    )


def _incomplete(case: Case) -> str | None:
    """The live engine had counted more calls than the record has."""
    recorded = case.recorded
    if recorded is None or recorded.count is None or not case.calls or recorded.count < case.calls:
        return None
    return f"it counted {recorded.count} calls, and the run has {case.calls} on record: the record is not complete"


_RULES: Final[Mapping[Cause, Callable[[Case], str | None]]] = {
    Cause.CONFIGURATION: _configuration,
    Cause.RULESET: _ruleset,
    Cause.INCOMPLETE: _incomplete,
    Cause.THRESHOLDS: _thresholds,
    Cause.COMPACTION: _compaction,
    Cause.LOSSY: _lossy,
}


def disagrees(verdict: LiveVerdict) -> bool:
    """Say whether a recorded verdict counts against the replay."""
    return not verdict.agrees and verdict.reached
