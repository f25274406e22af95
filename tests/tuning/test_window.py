"""Where only what matters of a run is replayed, every setting comes to what a replay of the whole run comes to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Call, Outcome, Result, SessionEvent, Turn, UserMessage
from loopscan.modes import ScopeRule
from loopscan.rulesets import RULESETS, ruleset
from loopscan.tuning.profiles import Basis
from loopscan.tuning.quiet import Limits
from loopscan.tuning.settings import Grid
from loopscan.tuning.sweep import Sweeper
from loopscan.tuning.window import Passed, window
from tests.tuning.sessions import CALLS, OUTCOMES, Made, _absent, _aside, _turn, sessions
from tests.tuning.test_sweep import profile_of

GRID = Grid(
    {
        "enabled": (None, True),
        "history_size": (6, 10, 30),
        "warning": (5, 11),
        "critical": (6, 9, 14),
        "breaker": (7, 16),
        "unknown_tool": (5, 8),
        "generic_repeat": (True, False),
        "known_poll": (True,),
        "ping_pong": (True, False),
        "guard_window": (2, 3),
    }
)
#: Thresholds that let a bound go further before anything is loud.
WIDE = Grid(
    {
        "enabled": (True,),
        "history_size": (15, 40),
        "warning": (8, 12),
        "critical": (9, 16),
        "breaker": (10, 20),
        "unknown_tool": (8,),
        "generic_repeat": (True, False),
        "known_poll": (True, False),
        "ping_pong": (True, False),
        "guard_window": (3,),
    }
)


def _work(draw: st.DrawFn, made: Made, numbers: list[int]) -> None:
    """Make a stretch of calls that hardly repeat."""
    for _ in range(draw(st.integers(1, 12))):
        asked = []
        for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
            numbers[0] += 1
            tool, named = draw(st.sampled_from((("read", "path"), ("exec", "command"), ("wait", "id"))))
            asked.append((tool, {named: f"x{numbers[0]}"}))
        if draw(st.integers(0, 5)) == 0:
            asked.append(CALLS[draw(st.integers(0, len(CALLS) - 1))])
        calls = tuple(Call(tool, dict(arguments), f"w{made.line}-{at}") for at, (tool, arguments) in enumerate(asked))
        made.events.append(Turn("r", made.where(), calls))
        order = range(len(calls)) if draw(st.booleans()) else reversed(range(len(calls)))
        for at in order:
            outcome = Outcome({"content": [{"type": "text", "text": f"came {made.line}"}]})
            if draw(st.integers(0, 5)) == 0:
                outcome = draw(st.sampled_from(OUTCOMES))
            made.events.append(Result("r", made.where(), at, outcome))


@st.composite
def long_sessions(draw: st.DrawFn) -> list[SessionEvent]:
    """Draw a session of one run: loops, some of them of the same calls, and long work before, between and after."""
    made, numbers = Made(), [0]
    made.events.append(UserMessage("r", made.where()))
    for _ in range(draw(st.integers(1, 5))):
        _work(draw, made, numbers)
        shape = draw(st.sampled_from(("same", "same", "swing", "mixed", "woven", "absent")))
        pool = draw(st.lists(st.sampled_from(range(len(CALLS))), min_size=2, max_size=3))
        came = draw(st.lists(st.sampled_from(range(len(OUTCOMES))), min_size=3, max_size=3))
        for number in range(draw(st.integers(2, 16))):
            if shape == "absent":
                _absent(draw, made, "r", None)
                continue
            _turn(draw, made, "r", None, "same" if shape == "woven" else shape, number, pool, came)
            if shape == "woven":
                _work(draw, made, numbers)
        if draw(st.integers(0, 3)) == 0:
            _aside(draw, made, "r")
    return made.events


def compare(events: list[SessionEvent], sweeper: Sweeper) -> int:
    """Compare the answers for all units with those of replays of the whole, and return how much was passed over."""
    rules, scope = sweeper.rules, ScopeRule.RUN
    profile = profile_of(events, rules.name, scope)
    limits = Limits.of(sweeper.grid.settings, rules)
    passed = 0
    for unit in profile.units:
        steps = unit.read()
        events_left = window(steps, limits) if len(unit.runs) == 1 else None
        if events_left is None:
            continue
        mine, theirs = sweeper.replayed(steps, frozenset(), events_left), sweeper.replayed(steps, frozenset())
        assert [mine.courses[place] for place in mine.course] == [theirs.courses[place] for place in theirs.course]
        assert np.array_equal(mine.warnings, theirs.warnings)
        passed += sum(event.recorded for event in events_left if isinstance(event, Passed))
    return passed


@pytest.mark.parametrize("grid", [GRID, WIDE], ids=["low", "wide"])
@pytest.mark.parametrize("name", RULESETS)
@settings(max_examples=8)
@given(events=st.one_of(sessions(), long_sessions(), long_sessions()))
def test_what_is_passed_over_makes_no_difference(name: str, grid: Grid, events: list[SessionEvent]) -> None:
    compare(events, Sweeper(grid, ruleset(name), Basis(name)))


@pytest.mark.parametrize("name", RULESETS)
def test_most_of_a_long_run_with_one_loop_is_passed_over(name: str) -> None:
    made = Made()
    for number in range(120):
        path = "loop" if 50 <= number < 70 else f"file {number}"
        made.events.append(Turn("r", made.where(), (Call("read", {"path": path}, str(number)),)))
        text = "the same" if path == "loop" else path
        made.events.append(Result("r", made.where(), 0, Outcome({"content": [{"type": "text", "text": text}]})))
    events = made.events
    sweeper = Sweeper(GRID, ruleset(name), Basis(name))
    compare(events, sweeper)
    (unit,) = profile_of(events, name, ScopeRule.RUN).units
    found = window(unit.read(), Limits.of(GRID.settings, sweeper.rules))
    assert found is not None
    assert [(each.calls, each.recorded) for each in found if isinstance(each, Passed)] == [(50, 0)]
    assert sum(isinstance(each, Turn) for each in found) == 20
