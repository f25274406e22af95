"""One unit under one setting: what the engine does, and for which other settings it does the same.

The steps go through the engine itself, in enforce mode. What it blocks depends on little of a setting; what it warns
of changes nothing that follows, so that warnings are answered afterwards, from the counts that were met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from loopscan.engine.detectors import Counts, Verdict, Warnings, block, warning
from loopscan.engine.session import RunState, SessionEngine, Slot
from loopscan.events import SessionEvent
from loopscan.marks import Detector, Kind, Mark
from loopscan.modes import Mode
from loopscan.policy import Policy
from loopscan.report import RunReport
from loopscan.rulesets import Ruleset
from loopscan.sessions import add_not_reached
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis
from loopscan.tuning.settings import Setting
from loopscan.tuning.steps import PlayedBack
from loopscan.tuning.watch import Watch


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


def simulate(events: Sequence[SessionEvent], setting: Setting, rules: Ruleset, basis: Basis) -> Path:
    """Return the path of a unit, given by its events, under a setting."""
    watch = Watch.of(setting.policy(rules))
    path = Path(watch, False, [], set(), [])
    across: list[bool] = []

    def judging(run: RunState, slot: Slot, counts: Counts) -> Verdict | None:
        found = block(counts, watch.policy)
        if found is not None:
            across.append(found.across)
            return found
        if max(counts.stuck, counts.swings, counts.churn, counts.recent) >= LOWEST_THRESHOLD:
            path.seen.append(Seen(engine.scope_id(run), run.key, counts))
        return None

    engine = SessionEngine(
        watch.policy, mode=Mode.ENFORCE, scope=basis.scope, arm=basis.arm, identifier=PlayedBack(), judging=judging
    )
    blocks = 0
    for event in events:
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


def critical(marks: Iterable[Mark]) -> list[Mark]:
    """Return the marks that step in."""
    return [mark for mark in marks if mark.kind is not Kind.GUARD_ARMED and mark.kind is not Kind.WARNING]


#: The guard that no setting changes.
ALWAYS_ON = frozenset({Detector.IDENTICAL_ERROR})
