"""Near a setting: which incidents fare otherwise if one threshold moves by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from loopscan.rulesets import Ruleset
from loopscan.tuning.courses import Judge
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis, SessionProfile
from loopscan.tuning.report import Flip
from loopscan.tuning.rows import row_of
from loopscan.tuning.settings import FIELD_OF, Grid, Setting, answerable
from loopscan.tuning.sweep import SessionAnswers, Sweeper, answer

#: The thresholds that are moved.
MOVED = ("warning", "critical", "breaker", "unknown_tool", "history_size")


def neighbours(setting: Setting) -> Iterator[tuple[str, Setting]]:
    """Yield each setting that differs in one threshold by one, with the name of the attribute."""
    for name in MOVED:
        for step in (-1, 1):
            moved = replace(setting, **{name: getattr(setting, name) + step})
            if answerable(moved)[0] == moved and moved.warning < moved.critical < moved.breaker:
                yield name, moved


def flips(
    setting: Setting,
    profiles: Sequence[SessionProfile],
    rules: Ruleset,
    basis: Basis,
    judge: Judge,
    *,
    jobs: int = 1,
) -> tuple[Flip, ...]:
    """Return the incidents that fare otherwise, by threshold in the order of :data:`MOVED`, lower values first."""
    if setting.enabled is not True:
        return ()
    moved = list(neighbours(setting))
    grid = Grid.of([setting, *(each for _, each in moved)])
    answers = answer(profiles, Sweeper(grid, rules, basis), judge, jobs=jobs)
    found: list[Flip] = []
    for number, (name, other) in enumerate(moved, 1):
        for each in answers:
            found += _flips_of(each, number, FIELD_OF[name], int(getattr(other, name)), judge)
    return tuple(found)


def _flips_of(each: SessionAnswers, number: int, field: str, value: int, judge: Judge) -> Iterator[Flip]:
    """Yield the incidents of a session that fare otherwise under the setting ``number`` than under the first one."""
    for place, unit in enumerate(each.units):
        here, there = int(unit.course[0]), int(unit.course[number])
        if here == there:
            continue
        for incident in unit.incidents.incidents:
            stepped = [unit.courses[course].stepped[incident.number] for course in (here, there)]
            if incident.evidence.length < LOWEST_THRESHOLD and all(one.point is None for one in stepped):
                continue
            before, after = (judge.fate(each.profile, place, incident, one) for one in stepped)
            if before is not after:
                yield Flip(field, value, row_of(each.profile, place, incident, judge), before.value, after.value)
