"""Units that need no engine get the answers that the engine would give, and repeated blocks may be looked at less."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Call, Fate, Outcome, Result, SessionEvent, Turn, Where
from loopscan.modes import ScopeRule
from loopscan.rulesets import RULESETS, ruleset
from loopscan.tuning.courses import Course, Stepped, course_of
from loopscan.tuning.incidents import scan
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.quiet import Limits, quiet
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.steps import Step, play
from loopscan.tuning.sweep import Sweeper, UnitAnswers
from tests.statistics.made import Kind, Loop, Turnout, corpus, make
from tests.tuning.sessions import sessions
from tests.tuning.test_sweep import AXES, profile_of

#: Thresholds that short loops do not reach, so that many units are quiet; histories that are shorter than the units.
HIGH: dict[str, tuple[Any, ...]] = {
    "enabled": (False, None, True),
    "history_size": (12, 20, 60),
    "warning": (11, 12, 14),
    "critical": (13, 15),
    "breaker": (16, 20),
    "unknown_tool": (11, 14),
    "generic_repeat": (True, False),
    "known_poll": (True, False),
    "ping_pong": (True, False),
    "guard_window": (2, 3),
}
HIGHEST = {**HIGH, "history_size": (40, 100), "warning": (10, 30, 40), "critical": (41,), "breaker": (42,)}


def courses_of(answers: UnitAnswers) -> list[tuple[int, list[Stepped]]]:
    """Return for each setting how often it steps in, and the fate of each incident of five calls or more."""
    long = [each.evidence.length >= 5 for each in answers.incidents.incidents]
    told = [(each.interventions, list(compress(each.stepped, long))) for each in answers.courses]
    return [told[place] for place in answers.course]


def same(mine: UnitAnswers, theirs: UnitAnswers) -> None:
    """Compare the answers for each setting, and the incidents that are long enough for any."""
    assert courses_of(mine) == courses_of(theirs)
    assert np.array_equal(mine.warnings, theirs.warnings)
    ours, whole = (
        [(each.calls, each.loops, each.evidence) for each in answers.incidents.incidents if len(each.calls) >= 5]
        for answers in (mine, theirs)
    )
    assert ours == whole


def reference(sweeper: Sweeper, steps: list[Step], followed: frozenset[str]) -> UnitAnswers:
    """Return the answers of the engine: every mark of every setting exactly as a replay makes it."""
    grid = sweeper.grid
    incidents = scan(steps, sweeper.rules, sweeper.basis.scope, followed)
    courses: list[Course] = []
    which, warned = np.zeros(len(grid.settings), dtype=np.uint16), np.zeros(len(grid.settings), dtype=np.uint16)
    for path, covered in sweeper.courses(list(play(steps))):
        known: dict[tuple[object, ...], int] = {}
        for place in covered.tolist() if path.seen else ():
            each = grid.settings[place]
            key = (each.warning, each.generic_repeat, each.known_poll, each.ping_pong)
            if key not in known:
                known[key] = len(path.warnings(each.policy(sweeper.rules))[0])
            warned[place] = known[key]
        which[covered] = len(courses)
        courses.append(course_of(path, incidents))
    return UnitAnswers(incidents, courses, which, warned)


def compare(profile: SessionProfile, sweeper: Sweeper) -> int:
    """Compare all units with a plain replay of each, and return how many were quiet."""
    limits = Limits.of(sweeper.grid.settings, sweeper.rules)
    found = 0
    for unit, mine in zip(profile.units, sweeper.session(profile).units, strict=True):
        followed = frozenset(run for run, number in profile.run_numbers.items() if number < profile.runs - 1)
        same(mine, reference(sweeper, unit.read(), followed))
        found += len(unit.runs) == 1 and quiet(unit.read(), limits) is not None
    return found


@pytest.mark.parametrize("axes", [AXES, HIGH, HIGHEST], ids=["low", "high", "highest"])
@pytest.mark.parametrize("name", RULESETS)
@settings(max_examples=5)
@given(events=sessions())
def test_units_are_answered_as_by_plain_replays(name: str, axes: dict[str, Any], events: list[SessionEvent]) -> None:
    compare(profile_of(events, name, ScopeRule.RUN), Sweeper(Grid(axes), ruleset(name), Basis(name)))


@pytest.mark.parametrize("name", RULESETS)
def test_made_sessions_are_answered_as_by_plain_replays_and_most_of_them_are_quiet(name: str) -> None:
    sweeper = Sweeper(Grid(HIGH), ruleset(name), Basis(name))
    units = found = 0
    for made in corpus(800, 0.1, seed=7):
        profile = profile_of(made.events, name, ScopeRule.RUN)
        units += len(profile.units)
        found += compare(profile, sweeper)
    assert units / 3 < found < units


def test_calls_that_merely_repeat_are_warned_of_in_a_quiet_unit() -> None:
    profile = profile_of(make("s", 3, 400, []).events, "2026.6", ScopeRule.RUN)
    grid = Grid.of([Setting(history_size=size, warning=warning) for size in (30, 120) for warning in (10, 14)])
    assert quiet(profile.units[0].read(), Limits.of(grid.settings, ruleset("2026.6"))) is not None
    sweeper = Sweeper(grid, ruleset("2026.6"), Basis("2026.6"))
    warned = sweeper.session(profile).units[0].warnings
    assert warned[0] == 0 < warned[3] <= warned[2]
    assert compare(profile, sweeper) == 1


@pytest.mark.parametrize("name", RULESETS)
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_what_just_leaves_the_history_is_not_counted(name: str, batch: int) -> None:
    events: list[SessionEvent] = []
    for turn in range(240 // batch):
        places = range(turn * batch, (turn + 1) * batch)
        events.append(
            Turn("r", Where(), tuple(Call("read", {"path": at if at % 3 else 0}, str(at)) for at in places))
        )
        for at, place in enumerate(places):
            events.append(Result("r", Where(), at, Outcome({"content": [{"type": "text", "text": str(place)}]})))
    profile = profile_of(events, name, ScopeRule.RUN)
    grid = Grid.of([Setting(history_size=size, warning=10, critical=99, breaker=100) for size in range(25, 65, 4)])
    assert compare(profile, Sweeper(grid, ruleset(name), Basis(name))) == 1
    assert {0, 1} < set(Sweeper(grid, ruleset(name), Basis(name)).session(profile).units[0].warnings.tolist())


def test_a_loop_that_reaches_the_lowest_threshold_is_not_quiet() -> None:
    limits = Limits.of([Setting()], ruleset("2026.6"))
    for length, silent in ((9, True), (12, False)):
        made = make("s", 1, 10, [Loop(Kind.POLL, length, Turnout.ABORTED)])
        (unit, *_) = profile_of(made.events, "2026.6", ScopeRule.RUN).units
        assert (quiet(unit.read(), limits) is not None) is silent


@settings(max_examples=7)
@given(seed=st.integers(0, 1 << 30), name=st.sampled_from(list(RULESETS)))
def test_made_loops_of_all_kinds_are_answered_as_by_plain_replays(seed: int, name: str) -> None:
    sweeper = Sweeper(Grid(AXES), ruleset(name), Basis(name))
    for made in corpus(60, 0.6, seed=seed):
        compare(profile_of(made.events, name, ScopeRule.RUN), sweeper)


def test_outcomes_of_one_message_that_come_in_reverse_are_taken_in_the_order_of_its_calls() -> None:
    events: list[SessionEvent] = []

    def ask(number: int, texts: list[str]) -> None:
        calls = tuple(Call("read", {"path": "notes.md"}, f"{number}-{at}") for at in range(len(texts)))
        events.append(Turn("r", Where(), calls))
        events.extend(
            Result("r", Where(), at, Outcome({"content": [{"type": "text", "text": texts[at]}]}))
            for at in reversed(range(len(texts)))
        )

    ask(0, ["old", "new", "new", "new"])
    for number in range(1, 4):
        ask(number, ["new"])
    profile = profile_of(events, "2026.6", ScopeRule.RUN)
    grid = Grid.of([Setting(warning=5, critical=critical, breaker=30) for critical in (5, 6, 20)])
    compare(profile, Sweeper(grid, ruleset("2026.6"), Basis("2026.6")))


def test_a_rejected_call_does_not_end_a_streak_of_failures() -> None:
    events: list[SessionEvent] = []
    details: dict[str, Any] = {"status": "failed", "exitCode": 2, "aggregated": "no such host"}
    failed = Outcome({"content": [{"type": "text", "text": "broke"}], "details": details})
    rejected = Outcome(error="Validation failed for tool", is_error=True)
    for number in range(11):
        fate = Fate.REJECTED if number in (3, 7) else Fate.RAN
        events.append(Turn("r", Where(), (Call("exec", {"command": f"ssh host{number % 4}"}, str(number), fate),)))
        events.append(Result("r", Where(), 0, rejected if fate is Fate.REJECTED else failed))
    profile = profile_of(events, "latest", ScopeRule.RUN)
    grid = Grid.of([Setting(warning=5, critical=critical, breaker=30) for critical in (5, 6, 20)])
    compare(profile, Sweeper(grid, ruleset("latest"), Basis("latest")))
