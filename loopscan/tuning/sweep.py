"""Every setting of a grid on every session: which incidents it steps into, what it warns of, what that would save.

For each unit the engine replays one setting, learns for which others it would have done the same, and goes on with
one that is not covered yet (:mod:`loopscan.tuning.simulate`). So a unit costs as many replays as there are different
courses of events, however many settings there are, and every answer is that of a real replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from loopscan.events import SessionEvent
from loopscan.marks import Detector, Kind, Mark
from loopscan.rulesets import Ruleset
from loopscan.tuning.incidents import LOOPS, At, Incident, Incidents, Loop, scan
from loopscan.tuning.labels import Label, Labelled, label
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis, SessionProfile, UnitProfile
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.simulate import ALWAYS_ON, Path, simulate
from loopscan.tuning.steps import play
from loopscan.tuning.watch import Watch

Floats: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = npt.NDArray[np.uint32]

#: What is counted for a setting, in this order; the saved ones are upper bounds, of stuck incidents alone.
METRICS: Final = (
    "caught",
    "missed",
    "false_blocks",
    "spared",
    "unknown_blocked",
    "not_reached",
    "interventions",
    "warnings",
    "lead",
    "saved_calls",
    "saved_responses",
    "saved_input",
    "saved_output",
    "saved_cache_read",
    "saved_cache_write",
    "saved_tokens",
    "saved_usd",
    "saved_seconds",
)
METRIC: Final = {name: place for place, name in enumerate(METRICS)}

#: Returns the dollars that a response cost, from its model and its usage as recorded.
Pricing = Callable[[str | None, Sequence[float]], float]
#: Returns the label that a person gave an incident of a session, ``None`` for none.
Given = Callable[[SessionProfile, int, Incident], Label | None]


def as_recorded(model: str | None, usage: Sequence[float]) -> float:
    """Return the recorded dollars."""
    return float(usage[5])


def nobody(session: SessionProfile, unit: int, incident: Incident) -> Label | None:
    """Return no label: nobody gave one."""
    return None


@dataclass(frozen=True, slots=True)
class Stepped:
    """One incident under one course of events."""

    point: int | None
    """The order of the call that was stepped in at; ``None``: it was not."""
    by: Detector | None = None
    reached: bool = True
    """The run had not ended before it."""


@dataclass(frozen=True, slots=True)
class Course:
    """One course of events of a unit: the same for all settings that lead to it."""

    stepped: tuple[Stepped, ...]
    """By incident."""
    interventions: int
    """Blocks and ends of runs."""


@dataclass(slots=True)
class UnitAnswers:
    """What the settings of a grid come to in one unit."""

    incidents: Incidents
    courses: list[Course]
    course: npt.NDArray[np.uint16]
    """For each setting the place of its course."""
    warnings: npt.NDArray[np.uint32]
    """For each setting how many warnings are emitted."""
    figures: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """For each course the :data:`METRICS`, warnings left out."""


@dataclass(slots=True)
class SessionAnswers:
    """What the settings of a grid come to in one session."""

    profile: SessionProfile
    units: list[UnitAnswers]
    at_risk: bool = False
    """Some setting steps into an incident that can be judged."""

    def figures(self) -> Floats:
        """Return the :data:`METRICS` of every setting; shape (metrics, settings)."""
        total = np.zeros((len(METRICS), 0))
        for unit in self.units:
            mine = unit.figures[unit.course].T.copy()
            mine[METRIC["warnings"]] = unit.warnings
            total = mine if not total.size else total + mine
        return total


class Sweeper:
    """Answers all settings of a grid, session by session."""

    def __init__(
        self,
        grid: Grid,
        rules: Ruleset,
        basis: Basis,
        *,
        pricing: Pricing = as_recorded,
        given: Given = nobody,
    ) -> None:
        self.grid, self.rules, self.basis = grid, rules, basis
        self._pricing, self._given = pricing, given
        places = np.array(grid.places)
        self._codes = dict(zip(grid.axes, np.unravel_index(places, grid.shape), strict=True))

    def session(self, profile: SessionProfile) -> SessionAnswers:
        """Return the answers for one session."""
        answers = SessionAnswers(profile, [])
        latest = profile.runs - 1
        followed = frozenset(run for run, number in profile.run_numbers.items() if number < latest)
        for number, unit in enumerate(profile.units):
            answered = self._unit(unit, followed)
            answered.figures = np.array(
                [self._figures(profile, number, answered.incidents, course) for course in answered.courses]
            )
            judged = answered.figures[:, [METRIC["caught"], METRIC["false_blocks"]]]
            used = np.unique(answered.course)
            answers.at_risk |= bool(judged[used].any())
            answers.units.append(answered)
        return answers

    def label_at(self, profile: SessionProfile, unit: int, incident: Incident, point: int) -> Labelled:
        """Return what an incident was, seen from a point: what a person says goes before all rules."""
        given = self._given(profile, unit, incident)
        return label(incident.evidence, point) if given is None else Labelled(given, "given")

    def courses(self, events: Sequence[SessionEvent]) -> Iterator[tuple[Path, npt.NDArray[np.intp]]]:
        """Yield the different courses of events of a unit, each with the settings that lead to it."""
        left = np.ones(len(self.grid.settings), dtype=bool)
        while left.any():
            first = int(np.argmax(left))
            path = simulate(events, self.grid.settings[first], self.rules, self.basis)
            covered = left & self._fitting(path.fits, self.grid.settings[first])
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
        events = list(play(steps))
        incidents = scan(steps, self.rules, self.basis.scope, followed)
        settings = len(self.grid.settings)
        which, warned = np.zeros(settings, dtype=np.uint16), np.zeros(settings, dtype=np.uint32)
        courses: dict[Course, int] = {}
        for path, covered in self.courses(events):
            course = course_of(path, incidents)
            which[covered] = courses.setdefault(course, len(courses))
            self._warn(path, covered, warned)
        return UnitAnswers(incidents, list(courses), which, warned)

    def _warn(self, path: Path, covered: npt.NDArray[np.intp], warned: npt.NDArray[np.uint32]) -> None:
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
            warned[same] = len(emitted)
            left &= ~same

    def _figures(self, profile: SessionProfile, unit: int, incidents: Incidents, course: Course) -> Floats:
        figures = np.zeros(len(METRICS))
        saved: dict[str, list[tuple[int, int]]] = {}
        for incident, stepped in zip(incidents.incidents, course.stepped, strict=True):
            if stepped.point is None:
                if not stepped.reached:
                    figures[METRIC["not_reached"]] += 1
                elif incident.evidence.length >= LOWEST_THRESHOLD:
                    found = self.label_at(profile, unit, incident, incident.evidence.last).label
                    figures[METRIC["missed"]] += found is Label.STUCK
                    figures[METRIC["spared"]] += found is Label.PRODUCTIVE
                continue
            found = self.label_at(profile, unit, incident, stepped.point).label
            if found is Label.STUCK:
                figures[METRIC["caught"]] += 1
                figures[METRIC["lead"]] += incident.remaining(stepped.point)
                saved.setdefault(incident.run, []).append((stepped.point, incident.evidence.last))
            else:
                figures[METRIC["false_blocks" if found is Label.PRODUCTIVE else "unknown_blocked"]] += 1
        figures[METRIC["interventions"]] = course.interventions
        for run, spans in saved.items():
            for first, last in _union(spans):
                self._save(figures, incidents, run, first, last)
        return figures

    def _save(self, figures: Floats, incidents: Incidents, run: str, first: int, last: int) -> None:
        responses, seconds = incidents.activity[run].between(first, last)
        figures[METRIC["saved_calls"]] += sum(
            first <= at.order <= last for (owner, _), at in incidents.calls.items() if owner == run
        )
        figures[METRIC["saved_responses"]] += len(responses)
        figures[METRIC["saved_seconds"]] += seconds
        start = METRIC["saved_input"]
        for response in responses:
            if response.usage is not None:
                figures[start : start + 5] += response.usage[:5]
                figures[METRIC["saved_usd"]] += self._pricing(response.model, response.usage)


def course_of(path: Path, incidents: Incidents) -> Course:
    """Return what a path comes to: where it steps into which incident."""
    points: dict[int, tuple[int, Detector]] = {}
    ended: dict[str, int] = {}
    blocked: dict[tuple[str, str | None], int] = {}
    interventions = 0
    for place, mark in enumerate(path.marks):
        if mark.kind is Kind.GUARD_ARMED:
            continue
        at = _place_of(mark, incidents)
        if at is not None and mark.kind in _ENDS:
            ended[mark.run] = at.order
        if mark.detector in ALWAYS_ON:
            continue
        interventions += mark.kind is not Kind.RUN_END
        if at is None:
            continue
        loop = Loop.SAME_FAILURE if place in path.across else LOOPS[mark.detector]
        same = (mark.run, mark.signature)
        number = incidents.met.get((loop, at.order), blocked.get(same))
        if number is None and loop is Loop.SAME_FAILURE:
            number = incidents.met.get((Loop.SAME_CALL, at.order))
        if number is not None:
            points.setdefault(number, (at.order, mark.detector))
            blocked.setdefault(same, number)
    stepped = []
    for incident in incidents.incidents:
        point = points.get(incident.number)
        if point is not None:
            stepped.append(Stepped(*point))
        else:
            stepped.append(Stepped(None, None, incident.calls[0].order <= ended.get(incident.run, 1 << 62)))
    return Course(tuple(stepped), interventions)


_ENDS: Final = frozenset({Kind.RUN_END, Kind.ERROR_STREAK_END, Kind.UNKNOWN_TOOL_STOP, Kind.COMPACTION_ABORT})


def _place_of(mark: Mark, incidents: Incidents) -> At | None:
    if mark.kind is Kind.UNKNOWN_TOOL_STOP:
        return incidents.attempt(mark.run, mark.count or 0, mark.where.line)
    return incidents.calls.get((mark.run, mark.call)) if mark.call is not None else None


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans without overlap that cover the same."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found
