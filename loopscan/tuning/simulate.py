"""One unit under one setting: what the engine does, and for which other settings it does the same.

The steps go through the engine itself, in enforce mode. What it blocks depends on little of a setting; what it warns
of changes nothing that follows, so that warnings are answered afterwards, from the counts that were met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loopscan.engine.detectors import Counts, Verdict, Warnings, block, warning
from loopscan.engine.identify import Identifier
from loopscan.engine.session import RunState, SessionEngine, Slot
from loopscan.events import SessionEvent
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.modes import Mode
from loopscan.policy import Policy
from loopscan.report import RunReport
from loopscan.rulesets import Ruleset
from loopscan.sessions import add_not_reached
from loopscan.tuning.incidents import LOOPS, Incidents, Loop
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis
from loopscan.tuning.settings import Setting
from loopscan.tuning.steps import PlayedBack
from loopscan.tuning.watch import Watch
from loopscan.tuning.window import Passed


@dataclass(frozen=True, slots=True)
class Seen:
    """A call that no rule blocked, with counts of which one may make a warning."""

    scope: str | None
    run: str
    counts: Counts


@dataclass(slots=True)
class Path:
    """What a unit comes to under a setting, and all that would do the same but for warnings."""

    watch: Watch
    exact: bool
    """The window of the post-compaction guard mattered: another value is another path."""
    marks: list[Mark]
    """All but warnings, in order."""
    across: set[int]
    """The places in ``marks`` of verdicts on failing ``exec`` calls whatever their arguments."""
    seen: list[Seen]
    runs: dict[str, RunReport] = field(default_factory=dict)
    """What was not reached, by run."""

    def fits(self, name: str, value: int) -> bool:
        """Say whether another value of one attribute of the setting leads to the same path."""
        if name == "guard_window":
            return not self.exact or value == self.watch.policy.guard_window
        return self.watch.fits(name, value)

    def warnings(self, policy: Policy) -> tuple[list[tuple[Seen, Verdict]], int]:
        """Return the warnings that are emitted along this path under a policy that fits, and how many are not."""
        rate = Warnings()
        emitted: list[tuple[Seen, Verdict]] = []
        suppressed = 0
        for seen in self.seen:
            found = warning(seen.counts, policy)
            if found is None:
                continue
            if rate.emit(seen.scope, found.key, found.count):
                emitted.append((seen, found))
            else:
                suppressed += 1
        return emitted, suppressed


def simulate(
    events: Sequence[SessionEvent | Passed],
    setting: Setting,
    rules: Ruleset,
    basis: Basis,
    incidents: Incidents | None = None,
    identifier: Identifier | None = None,
) -> Path:
    """Return the path of a unit, given by its events, under a setting.

    With the ``incidents`` of the unit, calls that meet one which was stepped into before are still blocked exactly
    where they would be, but which detector the mark names is left open: the path then stands for more settings, and
    :func:`~loopscan.tuning.courses.course_of` makes the same of it. Counts too low for any warning to be emitted are
    not kept then. ``identifier`` may be shared among simulations. Among the events may be what is passed
    over of a run.
    """
    watch = Watch.of(setting.policy(rules))
    path = Path(watch, False, [], set(), [])
    loose = replace(watch.policy, critical=setting.critical)
    across: list[bool] = []
    stepped: set[int] = set()
    least = LOWEST_THRESHOLD if incidents is None else Warnings.BUCKET

    def judging(run: RunState, slot: Slot, counts: Counts) -> Verdict | None:
        number = incidents.meeting(Loop.SAME_CALL, run.key, slot.number) if incidents is not None else None
        switch = watch.switches["known_poll" if counts.proposal.known_poll else "generic_repeat"]
        # Where a detector is off, and known to be, its threshold could be anything.
        off = not switch.value and (switch.looked_at or counts.stuck >= setting.critical)
        swinging = counts.still and counts.swings >= watch.policy.critical
        policy = loose if off and not swinging else watch.policy
        found = block_again(counts, policy) if number in stepped else None
        found = found or block(counts, policy)
        if found is not None and number is not None and LOOPS[found.detector] is Loop.SAME_CALL and not found.across:
            stepped.add(number)
        if found is not None:
            across.append(found.across)
            return found
        if max(counts.stuck, counts.swings, counts.churn, counts.recent) >= least:
            path.seen.append(Seen(engine.scope_id(run), run.key, counts))
        return None

    engine = SessionEngine(
        watch.policy,
        mode=Mode.ENFORCE,
        scope=basis.scope,
        arm=basis.arm,
        identifier=identifier or PlayedBack(),
        judging=judging,
    )
    blocks = 0
    for event in events:
        if isinstance(event, Passed):
            engine.pass_over(event.run, event.messages, event.calls, event.recorded)
            continue
        if not event.run:
            continue
        state = engine.run(event.run)
        over = state.ended is not None
        for mark in engine.feed(event):
            if mark.kind is Kind.BLOCK:
                if across[blocks]:
                    path.across.add(len(path.marks))
                blocks += 1
            path.exact |= mark.kind is Kind.GUARD_ARMED
            path.marks.append(mark)
        if over:
            report = path.runs.setdefault(event.run, RunReport(0, None))
            add_not_reached(event, report, state)
    return path


def block_again(counts: Counts, policy: Policy) -> Verdict | None:
    """Return a verdict where :func:`block` is sure to have one of the same loop, whatever the breaker is.

    ``None`` says nothing. The breaker goes before the other rules, but it blocks the same calls as they do.
    """
    if counts.across or counts.unknown >= policy.unknown_tool:
        return None
    if counts.still and counts.swings >= policy.critical:
        return None
    poll, signature = counts.proposal.known_poll, counts.proposal.signature
    if poll:
        at = dict(policy.ruleset.poll_critical).get(counts.proposal.tool, policy.critical)
        if not (counts.stuck >= at and policy.known_poll):
            return None
    elif not (
        counts.stuck >= policy.critical
        and policy.generic_repeat
        and not (counts.swings >= policy.warning and policy.ping_pong)
    ):
        return None
    detector = Detector.KNOWN_POLL_NO_PROGRESS if poll else Detector.GENERIC_REPEAT
    return Verdict(detector, Level.CRITICAL, counts.stuck, 0, (detector, signature, counts.outcome))


#: The guard that no setting changes.
ALWAYS_ON = frozenset({Detector.IDENTICAL_ERROR})
