"""Why a run was not stepped into: one named reason, the smallest change that would have made a difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from loopscan.explaining.differences import Difference, difference
from loopscan.explaining.identities import masked
from loopscan.explaining.repetitions import Change, Repeating, Repetition
from loopscan.explaining.shadows import Met, Reason, Shadow
from loopscan.marks import Detector, Kind
from loopscan.policy import Origin, Policy
from loopscan.sanitize import name, preview

#: Fewer calls are no repetition; of calls that differ more are asked for.
FEWEST: Final = 3
FEWEST_LOOSE: Final = 5
_TOOL: Final = 60
_ARGUMENTS: Final = 120
_AGENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Silence:
    """One repetition that nothing stepped into, and why."""

    run: str
    """The reader's key."""
    reason: Reason
    first_line: str
    """The answer in one sentence, ready to print."""
    details: tuple[tuple[str, str], ...]
    """What there is to know beside, each with what it is called, ready to print."""
    tool: str | None = None
    calls: int = 0
    """How long the repetition is."""
    line: int = 0
    difference: Difference | None = None
    loop: str = ""
    """The digest of the call that repeats."""
    steps_in: bool = True
    """What is otherwise would step in, not merely warn."""
    over_runs: bool = False
    """It is the repetition of several runs, of each of which the same is to be said."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without the run."""
        return {
            "reason": self.reason.value,
            "answer": self.first_line,
            "details": [{"name": label, "text": text} for label, text in self.details],
            "tool": self.tool,
            "calls": self.calls,
            "line": self.line,
            "difference": self.difference.to_dict() if self.difference else None,
        }


@dataclass(frozen=True, slots=True)
class _Case:
    """A run, and the first shadow that makes a mark in it."""

    run: Repeating
    policy: Policy
    met: Met
    calls: int
    """How long the loop is that the shadow sees."""
    found: Repetition | None
    runs: int
    """In how many of the session's runs the repetition goes on."""
    on_for: Sequence[str] = ()
    """The agents that detection is on for."""

    @property
    def tool(self) -> str:
        return name(self.met.mark.tool or "", _TOOL)

    @property
    def would(self) -> str:
        """What the shadow does, as in "exec would have been ..."."""
        return f"{self.tool} would have been {self.done}"

    @property
    def done(self) -> str:
        return _done(self.met)


def _done(met: Met) -> str:
    """Return what a shadow does, and where."""
    mark = met.mark
    how = _DONE.get(mark.kind, "stopped")
    return f"{how} at call {mark.call}" if mark.call is not None else how


_DONE: Final = {
    Kind.WARNING: "warned of",
    Kind.BLOCK: "blocked",
    Kind.COMPACTION_ABORT: "aborted by the post-compaction guard",
}


def silence_of(
    key: str,
    run: Repeating,
    policy: Policy,
    shadows: Sequence[Shadow],
    runs: Mapping[str, int],
    *,
    warned: bool,
    armed: bool,
    on_for: Sequence[str] = (),
) -> Silence:
    """Return why nothing stepped into a run; ``runs`` says of each loop in how many runs of the session it is.

    ``warned``: there was a warning, so that only what steps in is of interest. ``armed``: the post-compaction guard
    looked on. ``on_for`` are the agents that the configuration has detection on for.
    """
    for shadow in shadows:
        if key in shadow.met:
            found = _told(key, run, policy, shadow, shadow.met[key], shadow.longest[key], runs, on_for)
            off = shadows[0] if shadows[0].reason is Reason.DETECTION_OFF else None
            if off is None or off is shadow or not _is_silenced(shadow.met[key], policy):
                return found
            return _off_besides(found, policy, off.warned.get(key), on_for)
    if armed:
        answer = (
            f"the post-compaction guard was armed and did not abort: the next {policy.guard_window} outcomes were "
            "not those of one and the same call"
        )
        return Silence(key, Reason.GUARD_NOT_MET, answer, (), calls=run.calls)
    for shadow in shadows if not warned else ():
        if key in shadow.warned:
            met = shadow.warned[key]
            return _told(key, run, policy, shadow, met, met.mark.count or 0, runs, on_for)
    return _too_short(key, run, policy, shadows)


def _is_silenced(met: Met, policy: Policy) -> bool:
    """Say whether what a shadow does is switched off as long as detection is."""
    if met.mark.kind is Kind.COMPACTION_ABORT:
        return policy.enabled is False
    return met.mark.kind is not Kind.ERROR_STREAK_END


def _off_besides(found: Silence, policy: Policy, warned: Met | None, on_for: Sequence[str]) -> Silence:
    """Return the answer for a run that would not have been stepped into with detection on either."""
    then = "nothing would have stepped in either"
    if warned is not None:
        tool = name(warned.mark.tool or "", _TOOL)
        then = f"{tool} would have been {_done(warned)}, and no more than that"
    answer = f"detection is {_state(policy, on_for)}; with it on, {then}, since {found.first_line}"
    return replace(found, reason=Reason.DETECTION_OFF, first_line=answer)


def _told(
    key: str,
    run: Repeating,
    policy: Policy,
    shadow: Shadow,
    met: Met,
    calls: int,
    runs: Mapping[str, int],
    on_for: Sequence[str],
) -> Silence:
    """Return what a shadow says of a run."""
    loop = met.mark.signature or ""
    found = run.known_as(loop)
    case = _Case(run, policy, met, calls, found, runs.get(loop, 0), on_for)
    answer, details, differs = _WORDS[shadow.reason](case)
    lines = [*_arguments(found), *details]
    if found is not None and found.lossy and shadow.reason is not Reason.DETECTION_OFF:
        lines.append(
            ("lossy", f"{found.lossy} results are recorded only in part: the live engine may have seen more")
        )
    line = found.line if found is not None else met.mark.where.line
    calls = found.calls if found is not None else calls
    return Silence(
        key,
        shadow.reason,
        answer,
        tuple(lines),
        met.mark.tool,
        calls,
        line,
        differs,
        loop,
        key in shadow.met,
        shadow.reason is Reason.SPLIT_BY_RUNS,
    )


def _too_short(key: str, run: Repeating, policy: Policy, shadows: Sequence[Shadow]) -> Silence:
    """Return what there is to say where no shadow steps in either."""
    found = run.longest()
    absent = run.absent.most_common(1)
    if absent and absent[0][1] >= FEWEST and (found is None or absent[0][1] >= found.calls):
        tool, times = absent[0]
        if times > policy.unknown_tool:
            return Silence(key, Reason.GUARD_RESET, _absent_reset(tool, times, policy), (), tool, times)
        answer = (
            f"below the threshold: {name(tool, _TOOL)}, which does not exist, was asked for {times} times; more than "
            f"{policy.unknown_tool} messages in a row that ask for it alone are stopped, "
            f"{policy.unknown_tool + 1 - times} more"
        )
        return Silence(key, Reason.BELOW_THRESHOLD, answer, (), tool, times)
    loose = [
        each.stuck.get(key, (0, ""))
        for each in shadows
        if each.reason in (Reason.ARGUMENTS_CHANGED, Reason.BOTH_CHANGED)
    ]
    stuck, tool = max(loose, default=(0, ""))
    if found is None or (found.calls < FEWEST and stuck < FEWEST_LOOSE):
        return Silence(key, Reason.NOTHING_REPEATS, "nothing repeats: no call was made three times", ())
    if stuck >= FEWEST_LOOSE and stuck > found.calls:
        change = run.tools[tool].change if tool in run.tools else None
        differs = _difference(change)
        answer = (
            f"below the threshold, and its arguments changed: {stuck + 1} calls of {name(tool, _TOOL)} came to the "
            f"same, but their arguments differed{_at(differs)}"
        )
        lines = _sides(differs, change)
        return Silence(key, Reason.BELOW_THRESHOLD, answer, tuple(lines), tool, stuck + 1, 0, differs)
    tool = name(found.tool, _TOOL)
    arguments = _arguments(found)
    if found.changes and found.longest < found.calls / 2:
        differs = _difference(found.change)
        answer = (
            f"below the threshold, and its result changed: {tool} was called {found.calls} times with the same "
            f"arguments, and came back otherwise {found.changes} times{_at(differs)}"
        )
        lines = [*arguments, *_sides(differs, found.change)]
        return Silence(
            key, Reason.BELOW_THRESHOLD, answer, tuple(lines), found.tool, found.calls, found.line, differs
        )
    if 0 < found.held < found.longest - 1:
        answer = (
            f"below the threshold, and diluted by other calls: {tool} came back alike {found.longest} times in a "
            f"row, but the history of {policy.history_size} records never held more than {found.held} of them; from "
            f"{policy.critical} on it is blocked"
        )
        return Silence(key, Reason.BELOW_THRESHOLD, answer, tuple(arguments), found.tool, found.calls, found.line)
    short = max(policy.critical - found.longest, 1)
    answer = (
        f"below the threshold: {tool} came back alike {found.longest} times in a row (of {found.calls} calls with "
        f"the same arguments); from {policy.critical} on it is blocked, {short} more"
    )
    return Silence(key, Reason.BELOW_THRESHOLD, answer, tuple(arguments), found.tool, found.calls, found.line)


_Words = tuple[str, Sequence[tuple[str, str]], Difference | None]


def _detection_off(case: _Case) -> _Words:
    answer = f"detection is {_state(case.policy, case.on_for)}: with it on, {case.would}"
    return answer, (("would have", _verdict(case.met)),), None


def _state(policy: Policy, on_for: Sequence[str]) -> str:
    """Return that detection is off, where that came from, and whom it is on for."""
    state = "off" if policy.enabled is False else "not on"
    agents = ", ".join(name(agent, _TOOL) for agent in on_for[:_AGENTS])
    more = f" and {len(on_for) - _AGENTS} more" if len(on_for) > _AGENTS else ""
    others = f", though it is on for {'agents' if len(on_for) > 1 else 'agent'} {agents}{more}" if on_for else ""
    return f"{state}{_from(policy, 'enabled')}{others}"


def _detector_off(case: _Case) -> _Words:
    field = {
        Detector.GENERIC_REPEAT: "detectors.genericRepeat",
        Detector.KNOWN_POLL_NO_PROGRESS: "detectors.knownPollNoProgress",
        Detector.PING_PONG: "detectors.pingPong",
    }.get(case.met.mark.detector, "the detector")
    answer = f"{field} is off{_from(case.policy, field)}: with it on, {case.would}"
    return answer, (("would have", _verdict(case.met)),), None


def _guard_not_armed(case: _Case) -> _Words:
    answer = (
        f"the compaction did not arm the guard: ruleset {case.policy.ruleset.name} arms it on the runner's own "
        f"recovery alone, and the record does not show that it was one; else {case.would}"
    )
    return answer, (("to see it", "--arm always arms it on every compaction within a run"),), None


def _hidden(case: _Case) -> _Words:
    answer = (
        f"hidden by a higher rule: calls that alternate are a ping-pong first, whose warning goes before the block "
        f"of {case.met.mark.detector.value}; without it {case.would}"
    )
    return answer, (), None


def _split(case: _Case) -> _Words:
    answer = (
        f"split by runs: each run is looked at by itself, and {case.tool} repeats over {case.runs} of them; as one "
        f"scope it would have been {case.done} of run {case.run.number}"
    )
    return answer, (("to see it", "--scope session looks back over the whole session"),), None


def _diluted(case: _Case) -> _Words:
    answer = (
        f"diluted by other calls: {case.met.mark.count} calls that count reach back over {case.met.reaches_back} "
        f"records, and the history holds {case.policy.history_size}"
    )
    return answer, (("tool", case.tool), ("historySize", f"{case.met.reaches_back} would have held them")), None


def _rejected(case: _Case) -> _Words:
    times = case.found.rejected if case.found else case.calls
    answer = (
        f"rejected before recording: {times} calls of {case.tool} failed the validation of their arguments, and "
        f"ruleset {case.policy.ruleset.name} does not record those"
    )
    return answer, (), None


def _result_changed(case: _Case) -> _Words:
    if case.found is None or not case.found.changes:
        answer = f"result changed: {case.would} had all of its calls come back alike"
        return answer, (), None
    differs = _difference(case.found.change)
    answer = (
        f"result changed: {case.tool} was called {case.found.calls} times with the same arguments, and came back "
        f"otherwise than before {case.found.changes} times{_at(differs)}"
    )
    lines = _sides(differs, case.found.change)
    if case.found.known_poll:
        lines.append(("known poll", "only what comes back counts for it: calls alone make no warning"))
    return answer, lines, differs


def _no_outcome(case: _Case) -> _Words:
    lost, calls = (case.found.lost, case.found.calls) if case.found else (case.calls, case.calls)
    if case.found is not None and case.found.not_run > lost:
        answer = (
            f"no outcome recorded: {case.found.not_run} calls of {case.tool} with the same arguments were aborted or "
            "skipped before they ran, and leave nothing to be counted"
        )
        return answer, (), None
    answer = (
        f"no outcome recorded: of {calls} calls of {case.tool} with the same arguments the record has no outcome for "
        f"{lost}; calls without one are no proof of no progress"
    )
    return answer, (), None


def _arguments_changed(case: _Case) -> _Words:
    tool = case.run.tools.get(case.met.mark.tool or "")
    change = tool.change if tool is not None else None
    differs = _difference(change)
    answer = (
        f"arguments changed: {case.calls} calls of {case.tool} came to the same, but their arguments differed"
        f"{_at(differs)}"
    )
    return answer, _sides(differs, change), differs


def _both_changed(case: _Case) -> _Words:
    tool = case.run.tools.get(case.met.mark.tool or "")
    asked, came = (
        _passing(each) for each in ((tool.change, tool.result_change) if tool is not None else (None, None))
    )
    differs, result = _difference(asked), _difference(came)
    answer = (
        f"arguments changed, and so did results: {case.calls} calls of {case.tool} differ in numbers and random ids "
        f"alone{_at(differs)}{f'; what came back likewise{_at(result)}' if result is not None else ''}"
    )
    return answer, [*_sides(differs, asked), *_sides(result, came, " came back")], differs


def _passing(change: Change | None) -> Change | None:
    """Return a change if it is of numbers and random ids alone."""
    return change if change is not None and masked(change.before) == masked(change.after) else None


def _guard_reset(case: _Case) -> _Words:
    mark, found = case.met.mark, case.found
    absent = case.run.absent[mark.tool or ""]
    if absent > case.policy.unknown_tool:
        return _absent_reset(mark.tool or "", absent, case.policy), (), None
    between = "other calls or user messages"
    if found is not None:
        causes = {"user messages": found.after_user, "other calls": found.after_calls}
        between = " and ".join(cause for cause, times in causes.items() if times) or between
    answer = (
        f"a guard was reset: {case.tool} failed alike {case.calls} times, but never {mark.threshold} times in a row; "
        f"after {between} the guard against identical errors counts afresh"
    )
    return answer, (), None


def _absent_reset(tool: str, times: int, policy: Policy) -> str:
    return (
        f"a guard was reset: {name(tool, _TOOL)}, which does not exist, was asked for {times} times, but never by "
        f"more than {policy.unknown_tool} messages in a row that ask for it alone; after any other message the "
        "unknown-tool guard counts afresh"
    )


_WORDS: Final[Mapping[Reason, Callable[[_Case], _Words]]] = {
    Reason.DETECTION_OFF: _detection_off,
    Reason.DETECTOR_OFF: _detector_off,
    Reason.GUARD_NOT_ARMED: _guard_not_armed,
    Reason.HIDDEN: _hidden,
    Reason.SPLIT_BY_RUNS: _split,
    Reason.DILUTED: _diluted,
    Reason.REJECTED: _rejected,
    Reason.RESULT_CHANGED: _result_changed,
    Reason.NO_OUTCOME: _no_outcome,
    Reason.ARGUMENTS_CHANGED: _arguments_changed,
    Reason.BOTH_CHANGED: _both_changed,
    Reason.GUARD_RESET: _guard_reset,
}


def _verdict(met: Met) -> str:
    mark = met.mark
    return f"{mark.detector.value}, count {mark.count}, threshold {mark.threshold} (line {mark.where.line})"


def _from(policy: Policy, field: str) -> str:
    """Return where a value came from, in brackets."""
    return f" ({origin_words(policy.origins[field])})" if field in policy.origins else ""


def origin_words(origin: Origin) -> str:
    """Return where a value came from, in words ready to print."""
    place = ": ".join(part for part in (origin.source, origin.path) if part)
    if not place:
        return "not set" if origin.kind == "default" else origin.kind
    return f"{origin.kind}, {name(place, 200)}"


def _difference(change: Change | None) -> Difference | None:
    return difference(change.before, change.after) if change is not None else None


def _at(differs: Difference | None) -> str:
    return f", in {differs.path}" if differs is not None and differs.path else ""


def _sides(differs: Difference | None, change: Change | None, what: str = "") -> list[tuple[str, str]]:
    """Return both sides of a difference, each with the call that it is of, and ``what`` of it."""
    if differs is None or change is None:
        return []
    others = differs.places - 1
    more = f" (and {others} other place{'s' if others > 1 else ''})" if others else ""
    before, after = change.calls
    return [(f"call {before}{what}", differs.before), (f"call {after}{what}", f"{differs.after}{more}")]


def _arguments(found: Repetition | None) -> list[tuple[str, str]]:
    return [("arguments", preview(found.arguments, _ARGUMENTS))] if found is not None else []
