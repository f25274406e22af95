"""One course of events, incident by incident: where a setting steps in, what that is, and what it would save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopscan.marks import ENDS_RUN, Detector, Kind, Mark
from loopscan.tuning.incidents import LOOPS, At, Incident, Incidents, Loop
from loopscan.tuning.labels import Label, Labelled, label
from loopscan.tuning.profiles import LOWEST_THRESHOLD, SessionProfile
from loopscan.tuning.simulate import ALWAYS_ON, Path
from loopscan.tuning.spending import Pricing, Spending

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
    """The run had not ended before it was over."""


@dataclass(frozen=True, slots=True)
class Course:
    """One course of events of a unit: the same for all settings that lead to it."""

    stepped: tuple[Stepped, ...]
    """By incident."""
    interventions: int
    """Blocks and ends of runs."""


class Fate(StrEnum):
    """How an incident fares under a setting."""

    CAUGHT = "caught"
    MISSED = "missed"
    FALSE_BLOCK = "false_block"
    SPARED = "spared"
    UNKNOWN_BLOCKED = "unknown_blocked"
    UNKNOWN_SPARED = "unknown_spared"
    NOT_REACHED = "not_reached"


STEPPED_IN: Final = {
    Label.STUCK: Fate.CAUGHT,
    Label.PRODUCTIVE: Fate.FALSE_BLOCK,
    Label.UNKNOWN: Fate.UNKNOWN_BLOCKED,
}
_LET_BE: Final = {Label.STUCK: Fate.MISSED, Label.PRODUCTIVE: Fate.SPARED, Label.UNKNOWN: Fate.UNKNOWN_SPARED}
_COUNTED_AS: Final = {
    Fate.CAUGHT: "caught",
    Fate.MISSED: "missed",
    Fate.FALSE_BLOCK: "false_blocks",
    Fate.SPARED: "spared",
    Fate.UNKNOWN_BLOCKED: "unknown_blocked",
    Fate.NOT_REACHED: "not_reached",
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges incidents: by what people say, or else by the rules."""

    pricing: Pricing = as_recorded
    given: Given = nobody

    def label_at(self, profile: SessionProfile, unit: int, incident: Incident, point: int) -> Labelled:
        """Return what an incident was, seen from a point: what a person says goes before all rules."""
        given = self.given(profile, unit, incident)
        return label(incident.evidence, point) if given is None else Labelled(given, "given")

    def judged(self, profile: SessionProfile, unit: int, incident: Incident) -> bool:
        """Say whether an incident of five calls or more can be judged from anywhere.

        Seen from between its fifth call and its last it is productive only if it is from one of the two.
        """
        if incident.evidence.length < LOWEST_THRESHOLD:
            return False
        points = (incident.evidence.orders[LOWEST_THRESHOLD - 1], incident.evidence.last)
        return any(self.label_at(profile, unit, incident, point).label is not Label.UNKNOWN for point in points)

    def fate(self, profile: SessionProfile, unit: int, incident: Incident, stepped: Stepped) -> Fate:
        """Return how an incident fares."""
        if stepped.point is not None:
            return STEPPED_IN[self.label_at(profile, unit, incident, stepped.point).label]
        if not stepped.reached:
            return Fate.NOT_REACHED
        return _LET_BE[self.label_at(profile, unit, incident, incident.evidence.last).label]

    def figures(
        self, profile: SessionProfile, unit: int, incidents: Incidents, course: Course, spending: Spending
    ) -> list[float]:
        """Return the :data:`METRICS` of a course of events, warnings left out.

        Incidents too short for any setting count only if they are stepped into. What is saved of a stuck one goes to
        the end of its run, since nothing new came after it, or to where the user stepped in.
        """
        figures = [0.0] * len(METRICS)
        saved: dict[str, list[tuple[int, int]]] = {}
        for incident, stepped in zip(incidents.incidents, course.stepped, strict=True):
            fate = self.fate(profile, unit, incident, stepped)
            if stepped.point is None and incident.evidence.length < LOWEST_THRESHOLD:
                continue
            if fate in _COUNTED_AS:
                figures[METRIC[_COUNTED_AS[fate]]] += 1
            if fate is Fate.CAUGHT and stepped.point is not None:
                figures[METRIC["lead"]] += incident.evidence.remaining(stepped.point)
                saved.setdefault(incident.run, []).append((stepped.point, incident.evidence.until))
        figures[METRIC["interventions"]] = course.interventions
        for run, spans in saved.items():
            for first, until in _union(spans):
                spent = spending.since(run, first, until)
                start = METRIC["saved_calls"]
                values = (spent.calls, spent.responses, *spent.tokens, spent.usd, spent.seconds)
                for place, value in enumerate(values, start):
                    figures[place] += value
        return figures


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
        if at is not None and mark.kind in ENDS_RUN:
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
            stepped.append(
                Stepped(None, None, incident.evidence.last <= ended.get(incident.run, incident.evidence.last))
            )
    return Course(tuple(stepped), interventions)


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
