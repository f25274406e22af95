"""Every setting of a grid on every session: which incidents it steps into, what it warns of, what that would save.

For each unit the engine replays one setting, learns for which others it would have done the same, and goes on with
one that is not covered yet (:mod:`loopscan.tuning.simulate`). So a unit costs as many replays as there are different
courses of events, however many settings there are, and every answer is that of a real replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from loopscan.events import SessionEvent
from loopscan.modes import ScopeRule
from loopscan.rulesets import Ruleset
from loopscan.tuning.courses import METRIC, METRICS, Course, Judge, Stepped, course_of
from loopscan.tuning.incidents import Incidents, scan
from loopscan.tuning.profiles import Basis, SessionProfile, UnitProfile
from loopscan.tuning.quiet import Limits, Quiet, quiet
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.simulate import Path, simulate
from loopscan.tuning.spending import Spending
from loopscan.tuning.steps import PlayedBack, Step, play
from loopscan.tuning.watch import Watch
from loopscan.tuning.window import Passed, window

Floats: TypeAlias = npt.NDArray[np.float64]

#: As many warnings of one unit are counted; room for the answers is what bounds memory.
_MOST_WARNINGS: Final = 65_535
#: How many sessions a process answers at a time.
_AT_ONCE: Final = 32


@dataclass(slots=True)
class UnitAnswers:
    """What the settings of a grid come to in one unit."""

    incidents: Incidents
    courses: list[Course]
    course: npt.NDArray[np.unsignedinteger[Any]]
    """For each setting the place of its course."""
    warnings: npt.NDArray[np.uint16]
    """For each setting how many warnings are emitted."""
    figures: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """For each course the :data:`METRICS`, warnings left out."""

    def share(self, known: dict[bytes, Any]) -> None:
        """Hold one array with other units where what it says of the settings is the same, as it mostly is."""
        self.course = known.setdefault(self.course.tobytes(), self.course)
        self.warnings = known.setdefault(self.warnings.tobytes(), self.warnings)


@dataclass(slots=True)
class SessionAnswers:
    """What the settings of a grid come to in one session."""

    profile: SessionProfile
    units: list[UnitAnswers]
    at_risk: bool = False
    """An incident of five calls or more can be judged, whatever settings are tried."""

    @property
    def tells(self) -> bool:
        """Whether there is an incident, a warning or an intervention in it: else all its figures are 0."""
        return any(
            unit.incidents.incidents or unit.warnings.any() or any(course.interventions for course in unit.courses)
            for unit in self.units
        )

    def add_to(self, total: Floats) -> None:
        """Add the :data:`METRICS` of every setting to ``total``; shape (settings, metrics)."""
        for unit in self.units:
            total += unit.figures[unit.course] if len(unit.courses) > 1 else unit.figures[0]
            total[:, METRIC["warnings"]] += unit.warnings

    def figures(self) -> Floats:
        """Return the :data:`METRICS` of every setting; shape (metrics, settings)."""
        total = np.zeros((len(self.units[0].course) if self.units else 0, len(METRICS)))
        self.add_to(total)
        return total.T

    def metric(self, name: str) -> Floats:
        """Return one of the :data:`METRICS` for every setting, warnings excepted."""
        place = METRIC[name]
        found: Floats = np.sum([unit.figures[:, place][unit.course] for unit in self.units], axis=0)
        return found

    def judge(self, judge: Judge) -> None:
        """Judge the incidents, and let go of what only that takes."""
        for number, unit in enumerate(self.units):
            found, spending = unit.incidents, Spending(unit.incidents, judge.pricing)
            figures = [judge.figures(self.profile, number, found, course, spending) for course in unit.courses]
            unit.figures = np.array(figures)
            self.at_risk |= any(judge.judged(self.profile, number, incident) for incident in found.incidents)
            unit.incidents = Incidents(unit.incidents.incidents, {}, {}, {}, {})


class Sweeper:
    """Answers all settings of a grid, session by session."""

    def __init__(self, grid: Grid, rules: Ruleset, basis: Basis) -> None:
        self.grid, self.rules, self.basis = grid, rules, basis
        places = np.array(grid.places)
        self._codes = dict(zip(grid.axes, np.unravel_index(places, grid.shape), strict=True))
        self._limits = Limits.of(grid.settings, rules)
        self._none = np.zeros(len(grid.settings), dtype=np.uint16)
        self._none.setflags(write=False)
        self._repeating = np.array([each.enabled is True and each.generic_repeat for each in grid.settings])
        self._warned: dict[bytes, npt.NDArray[np.uint16]] = {}

    def session(self, profile: SessionProfile) -> SessionAnswers:
        """Return the answers for one session, not judged yet."""
        return SessionAnswers(profile, [self._unit(unit, profile.followed) for unit in profile.units])

    def __call__(self, profiles: Sequence[SessionProfile]) -> list[SessionAnswers]:
        """Return the answers for several sessions: the work of a process."""
        return [self.session(profile) for profile in profiles]

    def courses(
        self, events: Sequence[SessionEvent | Passed], incidents: Incidents | None = None
    ) -> Iterator[tuple[Path, npt.NDArray[np.intp]]]:
        """Yield the different courses of events of a unit, each with the settings that lead to it.

        With the ``incidents`` of the unit there are fewer; see :func:`simulate`.
        """
        left = np.ones(len(self.grid.settings), dtype=bool)
        identifier = PlayedBack()
        while left.any():
            first = int(np.argmax(left))
            setting = self.grid.settings[first]
            path = simulate(events, setting, self.rules, self.basis, incidents, identifier)
            covered = left & self._fitting(path.fits, setting)
            left &= ~covered
            yield path, np.flatnonzero(covered)

    def _fitting(self, fits: Callable[[str, int], bool], setting: Setting) -> npt.NDArray[np.bool_]:
        """Return for each setting whether ``fits`` says so of all its values, and it is as ``enabled``."""
        found = np.ones(len(self.grid.settings), dtype=bool)
        for name, values in self.grid.axes.items():
            if name == "enabled":
                fitting = np.array([value is setting.enabled for value in values])
            else:
                fitting = np.array([fits(name, int(value or 0)) for value in values])
            if not fitting.all():
                found &= fitting[self._codes[name]]
        return found

    def _unit(self, unit: UnitProfile, followed: frozenset[str]) -> UnitAnswers:
        steps = unit.read()
        events: Sequence[SessionEvent | Passed] | None = None
        if self.basis.scope is ScopeRule.RUN and len(unit.runs) == 1:
            found = quiet(steps, self._limits)
            if found is not None:
                return self._quiet_unit(steps, found, followed)
            events = window(steps, self._limits)
        return self.replayed(steps, followed, events)

    def _quiet_unit(self, steps: Sequence[Step], found: Quiet, followed: frozenset[str]) -> UnitAnswers:
        """Return the answers for a unit in which no setting steps in."""
        incidents = Incidents([], {}, {}, {}, {})
        if found.incidents:
            incidents = scan(steps, self.rules, self.basis.scope, followed)
        course = Course(tuple(Stepped(None) for _ in incidents.incidents), 0)
        if not found.repeats:
            return UnitAnswers(incidents, [course], self._none, self._none)
        table = np.array(
            [
                [
                    min(found.warnings(int(size or 0), int(warning or 0)), _MOST_WARNINGS)
                    for warning in self.grid.axes["warning"]
                ]
                for size in self.grid.axes["history_size"]
            ],
            dtype=np.uint16,
        )
        warned = self._warned.get(table.tobytes())
        if warned is None:
            by_setting = table[self._codes["history_size"], self._codes["warning"]]
            warned = self._warned[table.tobytes()] = np.where(self._repeating, by_setting, np.uint16(0))
        return UnitAnswers(incidents, [course], self._none, warned)

    def replayed(
        self, steps: Sequence[Step], followed: frozenset[str], events: Sequence[SessionEvent | Passed] | None = None
    ) -> UnitAnswers:
        """Return the answers for a unit by replaying it, or those of its ``events`` that matter, once a course."""
        events = list(play(steps)) if events is None else events
        incidents = scan(steps, self.rules, self.basis.scope, followed)
        settings = len(self.grid.settings)
        which, warned = np.zeros(settings, dtype=np.uint32), np.zeros(settings, dtype=np.uint16)
        courses: dict[Course, int] = {}
        for path, covered in self.courses(events, incidents):
            course = course_of(path, incidents)
            which[covered] = courses.setdefault(course, len(courses))
            self._warn(path, covered, warned)
        smallest = np.min_scalar_type(len(courses))  # answers of all units are held at the same time
        return UnitAnswers(incidents, list(courses), which.astype(smallest), warned)

    def _warn(self, path: Path, covered: npt.NDArray[np.intp], warned: npt.NDArray[np.uint16]) -> None:
        """Count the warnings along a path for the settings that it covers."""
        if not path.seen:
            return
        left = np.zeros(len(self.grid.settings), dtype=bool)
        left[covered] = True
        while left.any():
            setting = self.grid.settings[int(np.argmax(left))]
            watch = Watch.of(setting.policy(self.rules))
            emitted, _ = path.warnings(watch.policy)
            same = left & self._fitting(watch.fits, setting)
            warned[same] = min(len(emitted), _MOST_WARNINGS)
            left &= ~same


def answer(
    profiles: Sequence[SessionProfile], sweeper: Sweeper, judge: Judge, *, jobs: int = 1
) -> list[SessionAnswers]:
    """Return the judged answers for those of the sessions that tell anything, in up to ``jobs`` processes."""
    from loopscan.pool import in_order

    repeating = [profile for profile in profiles if profile.units]
    tasks = [repeating[start : start + _AT_ONCE] for start in range(0, len(repeating), _AT_ONCE)]
    found: list[SessionAnswers] = []
    known: dict[bytes, Any] = {}
    for profiles_of_task, answers in zip(tasks, in_order(tasks, sweeper, sweeper, jobs), strict=True):
        for profile, each in zip(profiles_of_task, answers, strict=True):
            each.profile = profile  # one object a session, also if it came from another process
            if each.tells:
                each.judge(judge)
                for unit in each.units:
                    unit.share(known)
                found.append(each)
    return found
