"""Advice in the levers that users know, in the order of OpenClaw's documentation.

The levers: raise the warning or the critical threshold, then the breaker, then switch off the one detector that errs,
then shorten the history. Where a ruleset fixes them, ``enabled`` alone is left. Every line stands on what the record
shows; where that is too little, it says what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopscan.events import SessionEvent
from loopscan.rulesets import Ruleset
from loopscan.tuning.courses import STEPPED_IN, Fate, Judge, course_of
from loopscan.tuning.incidents import scan
from loopscan.tuning.labels import Label
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis, SessionProfile
from loopscan.tuning.rows import earliest
from loopscan.tuning.settings import Setting, answerable
from loopscan.tuning.simulate import Path, simulate
from loopscan.tuning.steps import play
from loopscan.tuning.watch import COUNTS, EXACT, SWITCHES
from loopscan.tuning.wording import counted

#: Sessions without a false block that it takes to promise no more than 5 % of them, at 95 % confidence: where one of
#: many settings is chosen (the first of several chains), and where only one is there to be judged.
PROMISE_NEEDS: Final = 72
ONE_NEEDS: Final = 59
_CRITICAL: Final = (15, 20, 25, 30, 40, 60)
_BREAKER: Final = (40, 60, 100)
_HISTORY: Final = (20, 15)
_MANY_WARNINGS: Final = 10
"""Warnings per 1,000 calls that are worth a word."""


@dataclass(slots=True, eq=False)
class _Tally:
    """What one setting comes to."""

    fates: Counter[Fate] = field(default_factory=Counter)
    warnings: int = 0

    def better_than(self, other: _Tally) -> bool:
        """Say whether it makes fewer false blocks and catches no less."""
        return (
            self.fates[Fate.FALSE_BLOCK] < other.fates[Fate.FALSE_BLOCK]
            and self.fates[Fate.CAUGHT] >= other.fates[Fate.CAUGHT]
        )


@dataclass(frozen=True, slots=True)
class Lever:
    """One thing to change."""

    words: str
    setting: Setting


def levers(setting: Setting) -> Iterator[Lever]:
    """Yield what can be changed of a setting to step in less, in the order in which it should be tried.

    A critical threshold that needs a higher breaker comes after the breaker alone, which may be all that it takes.
    """
    higher = [critical for critical in _CRITICAL if critical > setting.critical]
    for critical in higher:
        if critical < setting.breaker:
            yield Lever(f"criticalThreshold {critical}", replace(setting, critical=critical))
    for breaker in _BREAKER:
        if breaker > setting.breaker:
            yield Lever(f"globalCircuitBreakerThreshold {breaker}", replace(setting, breaker=breaker))
    for critical in higher:
        if critical >= setting.breaker:
            words = f"criticalThreshold {critical} (and globalCircuitBreakerThreshold {critical + 1})"
            yield Lever(words, replace(setting, critical=critical, breaker=critical + 1))
    for name, words in (
        ("generic_repeat", "genericRepeat"),
        ("known_poll", "knownPollNoProgress"),
        ("ping_pong", "pingPong"),
    ):
        if getattr(setting, name):
            yield Lever(f"detectors.{words} false", replace(setting, **{name: False}))
    for size in _HISTORY:
        if size < setting.history_size:
            yield Lever(f"historySize {size}", replace(setting, history_size=size))


class Adviser:
    """Takes profiles as they come, and says in a few lines what they advise. It keeps counts alone."""

    def __init__(self, rules: Ruleset, basis: Basis, in_force: Setting, judge: Judge | None = None) -> None:
        self._rules, self._basis, self._judge = rules, basis, judge or Judge()
        self._now = answerable(in_force)[0]
        self._levers = list(levers(self._now)) if rules.configurable and self._now.enabled is True else []
        if self._now.enabled is not True:
            self._levers.append(Lever("enabled true", replace(self._now, enabled=True)))
        self._tallies = [_Tally() for _ in range(1 + len(self._levers))]
        self._labels: Counter[Label] = Counter()
        self._judged = 0
        self._calls = 0

    def add(self, profile: SessionProfile) -> None:
        """Take in one session."""
        self._calls += profile.spent.calls
        judged = False
        for number, unit in enumerate(profile.units):
            steps = unit.read()
            incidents = scan(steps, self._rules, self._basis.scope, profile.followed)
            long = [each for each in incidents.incidents if each.evidence.length >= LOWEST_THRESHOLD]
            numbers = {each.number for each in long}
            judged |= any(self._judge.judged(profile, number, each) for each in long)
            for path, tallies in self._paths(list(play(steps))):
                stepped = course_of(path, incidents).stepped
                for incident, one in zip(incidents.incidents, stepped, strict=True):
                    if one.point is not None or incident.number in numbers:
                        fate = self._judge.fate(profile, number, incident, one)
                        for tally in tallies:
                            tally.fates[fate] += 1
                if self._tallies[0] in tallies:
                    for incident in long:
                        point = stepped[incident.number].point
                        point = earliest(incident) if point is None else point
                        label = self._judge.label_at(profile, number, incident, point).label
                        self._labels[label] += 1
        self._judged += judged

    def _paths(self, events: Sequence[SessionEvent]) -> Iterator[tuple[Path, list[_Tally]]]:
        """Yield the different courses of events of a unit, each with the tallies of the settings that lead to it."""
        settings = [self._now, *(lever.setting for lever in self._levers)]
        left = list(zip(settings, self._tallies, strict=True))
        while left:
            setting, first = left[0]
            path = simulate(events, setting, self._rules, self._basis)
            if first is self._tallies[0]:
                first.warnings += len(path.warnings(setting.policy(self._rules))[0])
            same = [other is setting or _fits(path, setting, other) for other, _ in left]
            yield path, [tally for (_, tally), fits in zip(left, same, strict=True) if fits]
            left = [each for each, fits in zip(left, same, strict=True) if not fits]

    @property
    def loops(self) -> int:
        """How many loops there were that some setting could step into."""
        return self._labels.total()

    def lines(self, *, pointing: bool = True) -> list[str]:
        """Return one to three lines; none where nothing repeats. ``pointing``: say what ``loopscan tune`` adds."""
        loops = self.loops
        if not loops:
            return []
        found = [self._evidence(loops)]
        found += self._lever()
        needed = PROMISE_NEEDS if self._rules.configurable else ONE_NEEDS
        if not pointing:
            return found
        if self._judged < needed:
            found.append(
                f"too little to promise anything: {counted(self._judged, 'session')} with such loops can be judged, "
                f"and {needed} are the fewest; loopscan tune tells what is known"
            )
        elif len(found) == 1:
            found.append("loopscan tune tells which thresholds the record supports, and what they would save")
        return found

    def _evidence(self, loops: int) -> str:
        now = self._tallies[0].fates
        labels = ", ".join(f"{self._labels[label]} {label.value}" for label in Label)
        stepped = [f"{now[fate]} {label.value}" for label, fate in STEPPED_IN.items() if now[fate]]
        words = " and ".join([", ".join(stepped[:-1]), stepped[-1]] if len(stepped) > 1 else stepped) or "none"
        return (
            f"{counted(loops, 'loop')} of {LOWEST_THRESHOLD} calls or more: {labels}. "
            f"These settings step into {words} of them"
        )

    def _lever(self) -> list[str]:
        now = self._tallies[0]
        false, caught = now.fates[Fate.FALSE_BLOCK], now.fates[Fate.CAUGHT]
        unknown = now.fates[Fate.UNKNOWN_BLOCKED]
        if self._now.enabled is not True:
            return self._if_enabled()
        if false and unknown > false + caught:
            return [
                "most of what they step into cannot be judged: label it (loopscan tune --export-incidents, --labels)"
            ]
        if false and not self._rules.configurable:
            if not caught and unknown:
                return ["what they step into besides cannot be judged: label it (loopscan tune --export-incidents)"]
            if not caught:
                return ["enabled: false would spare the productive ones, and nothing stuck would be missed"]
            return [
                "the ruleset fixes the thresholds: enabled: false would spare the productive ones, and miss the stuck"
            ]
        if false:
            better = [
                (lever, tally)
                for lever, tally in zip(self._levers, self._tallies[1:], strict=True)
                if tally.better_than(now)
            ]
            if not better:
                return ["no single threshold, detector or shorter history spares the productive ones without a loss"]
            fewest = min(tally.fates[Fate.FALSE_BLOCK] for _, tally in better)
            lever, _ = next(each for each in better if each[1].fates[Fate.FALSE_BLOCK] == fewest)
            spared = false - fewest
            return [f"{lever.words} would spare {spared} of the productive ones, and catch what is caught now"]
        noisy = self._calls and now.warnings * 1000 > _MANY_WARNINGS * self._calls
        if noisy and self._rules.configurable:
            rate = now.warnings * 1000 / self._calls
            return [f"{rate:.0f} warnings per 1,000 calls: a higher warningThreshold makes fewer"]
        return []

    def _if_enabled(self) -> list[str]:
        """Say what the detectors would do if they were on."""
        on = self._tallies[-1].fates
        stepped = ", ".join(f"{on[fate]} {label.value}" for label, fate in STEPPED_IN.items())
        return [f"the detectors are off: enabled: true would step into {stepped} of them"]


def _fits(path: Path, setting: Setting, other: Setting) -> bool:
    """Say whether another setting leads to the same path."""
    names = (*COUNTS, *SWITCHES, *EXACT)
    return setting.enabled is other.enabled and all(path.fits(name, int(getattr(other, name))) for name in names)


def advise(
    profiles: Iterable[SessionProfile],
    rules: Ruleset,
    basis: Basis,
    in_force: Setting,
    judge: Judge | None = None,
    *,
    pointing: bool = True,
) -> list[str]:
    """Return what the sessions advise, in one to three lines; see :meth:`Adviser.lines`."""
    adviser = Adviser(rules, basis, in_force, judge)
    for profile in profiles:
        adviser.add(profile)
    return adviser.lines(pointing=pointing)
