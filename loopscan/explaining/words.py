"""What there is to say of an answer, in sentences ready to print."""

from __future__ import annotations

from typing import Final

from loopscan.explaining.looks import Cell, Look
from loopscan.explaining.rules import Rule
from loopscan.explaining.watcher import Explained
from loopscan.marks import Level
from loopscan.policy import Policy
from loopscan.sanitize import name

#: What stands for each kind of record in a strip of the history.
SYMBOLS: Final = {
    Cell.SAME: "=",
    Cell.OTHER_OUTCOME: "~",
    Cell.NO_OUTCOME: "?",
    Cell.VETO: "!",
    Cell.PARTNER: "b",
    Cell.OTHER: ".",
    Cell.OTHER_RUN: "-",
}
#: What each means.
LEGEND: Final = {
    Cell.SAME: "this call, came back alike",
    Cell.OTHER_OUTCOME: "this call, came back otherwise",
    Cell.NO_OUTCOME: "this call, no outcome",
    Cell.VETO: "this call, vetoed",
    Cell.PARTNER: "the other side of the alternation",
    Cell.OTHER: "another call",
    Cell.OTHER_RUN: "a call of another run: takes room, is not looked at",
}
_SENTENCE: Final = 400


def answer_of(answer: Explained, policy: Policy) -> str:
    """Return the answer in one sentence."""
    mark, found, silence = answer.mark, answer.look, answer.silence
    if mark is not None:
        said = f"{mark.kind.value}: {mark.message}"
        if mark.lossy:
            said += "; on a lossy record, which holds less than the live engine saw"
        if silence is not None and mark.level is not Level.CRITICAL and silence.calls:
            said += f"; no more than that, since {silence.first_line}"
        return name(said, _SENTENCE, keep="start")
    if silence is not None:
        return silence.first_line
    if found is None:
        return "nothing was judged"
    return name(_unmarked(found, policy), _SENTENCE, keep="start")


def _unmarked(found: Look, policy: Policy) -> str:
    """Return what there is to say of a call that no mark was made of."""
    if found.counts is None:
        return f"no verdict: the detectors are off (enabled is {str(policy.enabled).lower()}), and nothing is counted"
    if found.suppressed and found.verdict is not None:
        return (
            f"warning kept back: {found.verdict.detector.value} counts {found.verdict.count}, and one warning is let "
            f"out per ten counts (bucket {found.bucket}, {found.highest_bucket} was let out)"
        )
    near = nearest(found.rules)
    if near is None:
        return "no verdict: no rule counts anything for this call"
    return (
        f"no verdict: {near.detector.value} is nearest ({near.level.value}), {near.count} of {near.threshold}; "
        f"{near.threshold - near.count} more would meet it"
    )


def nearest(rules: list[Rule]) -> Rule | None:
    """Return the rule that lacks least of its threshold, of those that nothing else keeps back."""
    able = [rule for rule in rules if rule.why_not is None and rule.count and not rule.met]
    return min(able, key=lambda rule: rule.threshold - rule.count, default=None)


def strip(cells: list[Cell], room: int) -> str:
    """Return the history as a strip, oldest first, free room as spaces."""
    return "".join(SYMBOLS[cell] for cell in cells[-room:])


def rule_state(rule: Rule) -> str:
    """Return how a rule stands."""
    if rule.first:
        return "the verdict"
    if rule.met:
        return "met, hidden by the verdict"
    if rule.why_not is not None:
        return rule.why_not
    return f"{max(rule.threshold - rule.count, 0)} more"


def guard_lines(found: Look) -> list[str]:
    """Return how the guards beside the detectors stand."""
    guards = found.guards
    made = []
    if guards.armed:
        kept = "all alike so far" if guards.same else "not alike: it will not abort"
        seen = guards.window - guards.remaining
        made.append(f"post-compaction: armed, {seen} of {guards.window} outcomes seen, {kept}")
    else:
        made.append("post-compaction: not armed")
    if guards.identical_limit is not None:
        made.append(f"identical errors: {guards.identical_errors} of {guards.identical_limit} in a row")
    if guards.absent:
        made.append(f"unknown tool: {guards.absent} messages in a row asked for a tool that does not exist")
    return made


def allowance(found: Look, policy: Policy) -> str:
    """Return how many critical verdicts the run may still have."""
    if not policy.ruleset.batch_admission:
        return f"{found.criticals} blocks before; each vetoes one call, and none ends the run"
    if not found.criticals:
        return "none used: the first critical verdict vetoes its message, the second ends the run"
    return "used: the next critical verdict ends the run" if found.criticals == 1 else "used, and the run had ended"
