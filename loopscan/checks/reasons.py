"""Why a mark is there, or is not: the engine's own sentence, and what in the settings stands behind it."""

from __future__ import annotations

from typing import Final

from loopscan.checks.marks import FoundMark, Row
from loopscan.checks.schema import Pattern
from loopscan.marks import ENDS_RUN, Detector, Kind
from loopscan.policy import Origin, Policy
from loopscan.report import Report, RunReport
from loopscan.sanitize import clean
from loopscan.sanitize import name as shown

_SENTENCE: Final = 400
#: Kinds of marks that may name the batch after the last one.
_AFTER_BATCHES: Final = frozenset({Kind.UNKNOWN_TOOL_STOP, Kind.GUARD_ARMED, Kind.COMPACTION_ABORT})

_ROLLING: Final = {
    Detector.GENERIC_REPEAT: "detectors.genericRepeat",
    Detector.KNOWN_POLL_NO_PROGRESS: "detectors.knownPollNoProgress",
    Detector.PING_PONG: "detectors.pingPong",
}
#: The field that holds the threshold of a detector, whatever the kind of mark.
_OWN_FIELD: Final = {
    Detector.GLOBAL_CIRCUIT_BREAKER: "globalCircuitBreakerThreshold",
    Detector.UNKNOWN_TOOL_REPEAT: "unknownToolThreshold",
    Detector.UNKNOWN_TOOL_GUARD: "unknownToolThreshold",
    Detector.COMPACTION_LOOP: "postCompactionGuard.windowSize",
}


def why_found(found: FoundMark, report: Report) -> str:
    """Return why the engine steps in at a mark: its sentence, and where the threshold comes from if it was set."""
    policy = policy_of(report, found.session.agent)
    sentences = [shown(found.mark.message, _SENTENCE)] if found.mark.message else []
    field = _field(Kind(found.row["kind"]), Detector(found.row["detector"]))
    if field is not None and (words := _set_by(policy, field)):
        sentences.append(f"{field} {_value(policy, field)} is {words}")
    return "; ".join(sentences)


def why_missing(row: Row, report: Report) -> str:
    """Return the likeliest reason why the replay does not make a mark that was expected."""
    session = next((each for each in report.sessions if each.session == row["session"]), None)
    if session is None:
        return "the transcript has no such session"
    policy = policy_of(report, session.agent)
    kind, detector = Kind(row["kind"]), Detector(row["detector"])
    run = next((each for each in session.runs if each.run == row["run"]), None)
    return (
        _by_settings(policy, kind, detector)
        or _graver(run, row)
        or _other_threshold(policy, kind, detector, row)
        or _not_reached(run, row)
        or _observed(report, kind)
        or _out_of_reach(policy, kind, detector)
        or f"no count of {detector.value} reaches its threshold here: a setting, the calls, or what they came back"
        " with, are not as they were"
    )


def why_none_meets(pattern: Pattern, report: Report) -> str | None:
    """Return why no mark meets a pattern, as far as the settings alone tell."""
    kinds, detectors = pattern.kind or (None,), pattern.detector or (None,)
    reasons = {_by_settings(report.policy, kind, detector) for kind in kinds for detector in detectors}
    return reasons.pop() if len(reasons) == 1 else None


def _by_settings(policy: Policy, kind: Kind | None, detector: Detector | None) -> str | None:
    """Return why the settings keep such a mark from being made, whatever the calls are."""
    of_detector = None if detector is None else _lacks(policy, detector) or _switched_off(policy, detector)
    return _silenced(policy) or _never(policy, kind) or of_detector


def policy_of(report: Report, agent: str | None) -> Policy:
    """Return the policy that sessions of ``agent`` were judged by."""
    return report.agents.get(agent, report.policy) if agent is not None else report.policy


def _silenced(policy: Policy) -> str | None:
    return next((f"detectors are silenced: {note.message}" for note in policy.notes if note.kind == "silenced"), None)


def _never(policy: Policy, kind: Kind | None) -> str | None:
    rules = policy.ruleset
    if kind is Kind.RUN_END and not rules.batch_admission:
        return f"ruleset {rules.name} vetoes single calls and never ends a run"
    if kind is Kind.GUARD_ARMED and rules.arms_on_hook_only:
        return f"ruleset {rules.name} arms the guard only by a compaction that is on record as the runner's own"
    return None


def _lacks(policy: Policy, detector: Detector) -> str | None:
    rules = policy.ruleset
    lacking = {
        Detector.ARGUMENT_CHURN: not rules.argument_churn,
        Detector.IDENTICAL_ERROR: rules.identical_errors is None,
    }
    return f"ruleset {rules.name} has no {detector.value}" if lacking.get(detector) else None


def _switched_off(policy: Policy, detector: Detector) -> str | None:
    on = {
        Detector.GENERIC_REPEAT: policy.generic_repeat,
        Detector.KNOWN_POLL_NO_PROGRESS: policy.known_poll,
        Detector.PING_PONG: policy.ping_pong,
    }
    if on.get(detector, True):
        return None
    return f"{_ROLLING[detector]} is false, {_set_by(policy, _ROLLING[detector]) or 'by default'}"


def _other_threshold(policy: Policy, kind: Kind, detector: Detector, row: Row) -> str | None:
    field = _field(kind, detector)
    expected = row.get("threshold")
    own = detector is Detector.KNOWN_POLL_NO_PROGRESS and kind is not Kind.WARNING  # a poll may have one of its own
    if field is None or expected is None or own:
        return None
    value = _value(policy, field)
    if value == expected:
        return None
    return f"{field} is {value} here, {_set_by(policy, field) or f'by ruleset {policy.ruleset.name}'}, not {expected}"


def _not_reached(run: RunReport | None, row: Row) -> str | None:
    if run is None:
        return f"the session has no run {row['run']}"
    end = next((mark for mark in run.marks if mark.kind in ENDS_RUN and mark.kind == run.outcome), None)
    if end is not None and end.batch < row["batch"]:
        return f"the run ends before, at batch {end.batch}, by {end.kind.value} {end.detector.value}"
    if run.batches <= row["batch"] and Kind(row["kind"]) not in _AFTER_BATCHES:
        return f"the run has {run.batches} batches only"
    return None


def _graver(run: RunReport | None, row: Row) -> str | None:
    """Return what stands in the place of a warning: a block of the same loop at that call or before."""
    if run is None or row["kind"] != Kind.WARNING or run.outcome in ENDS_RUN:
        return None
    for mark in run.marks:
        same = mark.signature == row.get("signature") and mark.detector == row["detector"]
        if mark.kind is Kind.BLOCK and same and mark.batch <= row["batch"]:
            return f"a block of {mark.detector.value} at batch {mark.batch}, count {mark.count}, takes its place"
    return None


def _out_of_reach(policy: Policy, kind: Kind, detector: Detector) -> str | None:
    field = _field(kind, detector)
    return next((note.message for note in policy.notes if note.kind == "unreachable" and note.field == field), None)


def _observed(report: Report, kind: Kind) -> str | None:
    if report.mode == "observe" and kind is Kind.RUN_END:
        return "in mode observe nothing is vetoed, so that the counts go another way"
    return None


def _field(kind: Kind, detector: Detector) -> str | None:
    """Return the field of the configuration that holds the threshold of a mark."""
    if detector in _OWN_FIELD:
        return _OWN_FIELD[detector]
    if detector is Detector.IDENTICAL_ERROR or kind is Kind.RUN_END:
        return None
    return "warningThreshold" if kind is Kind.WARNING else "criticalThreshold"


def _value(policy: Policy, field: str) -> int:
    return {
        "warningThreshold": policy.warning,
        "criticalThreshold": policy.critical,
        "globalCircuitBreakerThreshold": policy.breaker,
        "unknownToolThreshold": policy.unknown_tool,
        "postCompactionGuard.windowSize": policy.guard_window,
    }[field]


def _set_by(policy: Policy, field: str) -> str | None:
    """Return in words who set a field, nothing where nobody did."""
    origin = policy.origins.get(field)
    if origin is None or origin.kind in {"default", "fixed"}:
        return None
    return f"set by {_origin(origin)}"


def _origin(origin: Origin) -> str:
    if origin.kind == "argument" and origin.source is None:
        return "the settings of this check"
    place = ": ".join(part for part in (origin.source, origin.path) if part)
    words = clean(place or origin.kind)
    return f"{words} ({origin.detail})" if origin.detail else words
