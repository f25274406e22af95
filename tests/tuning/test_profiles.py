"""What is kept of a session: enough to answer every setting, and what is let go could not have mattered."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Ending, SessionEnded, SessionEvent, SessionStarted, Usage, Where
from loopscan.marks import Kind
from loopscan.modes import Mode, ScopeRule
from loopscan.rulesets import RULESETS, ruleset
from loopscan.sessions import Options, SessionReplay
from loopscan.tuning import profiles
from loopscan.tuning.profiles import LOWEST_THRESHOLD
from loopscan.tuning.settings import Setting
from tests.tuning.build import Told
from tests.tuning.sessions import sessions

LOWEST = Setting(
    warning=LOWEST_THRESHOLD,
    critical=LOWEST_THRESHOLD,
    breaker=LOWEST_THRESHOLD,
    unknown_tool=LOWEST_THRESHOLD,
    history_size=1000,
)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", RULESETS)
@settings(max_examples=5)
@given(events=sessions(), scope=st.sampled_from(ScopeRule))
def test_what_is_let_go_meets_no_threshold(
    name: str, mode: Mode, events: list[SessionEvent], scope: ScopeRule
) -> None:
    profile = Told(rules=name, scope=scope, events=events).profile()
    kept = {run for unit in profile.units for run in unit.runs}
    replay = SessionReplay(
        "s", SessionStarted("s", Where()), Options(LOWEST.policy(ruleset(name)), mode=mode, scope=scope)
    )
    marks = [mark for event in events for mark in replay.feed(event)]
    suppressed = {run.run: run.suppressed_warnings for run in replay.finish(SessionEnded(Where())).runs}
    order = list(dict.fromkeys(event.run for event in events if event.run))
    for number, run in enumerate(order):
        if run not in kept:
            assert [mark for mark in marks if mark.run == run and mark.kind is not Kind.GUARD_ARMED] == []
            assert suppressed[number] == 0


def test_a_session_in_which_nothing_repeats_is_counted_and_let_go() -> None:
    told = Told(usage=Usage(1, 2, 3, 4, 10, 0.5)).user()
    for number in range(5):
        told.call("read", number)
    profile = told.done().profile()
    assert profile.units == ()
    assert (profile.runs, profile.spent.calls, profile.spent.responses) == (1, 5, 6)
    spent = profile.spent
    assert (spent.input, spent.output, spent.cache_read, spent.cache_write, spent.tokens) == (6, 12, 18, 24, 60)
    assert spent.cost_usd == 3.0
    assert (profile.started, profile.ended) == (1000.0, 1000.0 + 2 * told.line)


def test_runs_one_after_the_other_are_units_of_their_own() -> None:
    told = Told().call(times=5, run="a").done("a").call(run="b").done("b").call(times=5, run="c").done("c")
    profile = told.profile()
    assert [unit.runs for unit in profile.units] == [("a",), ("c",)]
    assert profile.run_numbers == {"a": 0, "c": 2}
    assert profile.runs == 3


def test_runs_at_the_same_time_are_one_unit() -> None:
    told = Told().call(run="a").call(times=5, run="b").done("b").call(run="a").done("a").call(run="c").done("c")
    assert [unit.runs for unit in told.profile().units] == [("a", "b")]


def test_a_whole_session_is_one_unit_where_it_is_looked_back_over_as_one() -> None:
    told = Told(scope=ScopeRule.SESSION)
    told.call(times=2, run="a").done("a").call(times=2, run="b").done("b")
    assert [unit.runs for unit in told.profile().units] == [("a", "b")]


def test_a_run_that_goes_on_after_its_end_brings_all_in_between_together() -> None:
    told = Told().call(times=2, run="a").end("a").call("list", run="b").done("b").call(times=2, run="a")
    told.done("a").call("x", run="c").done("c")
    (unit,) = told.profile().units
    assert unit.runs == ("a", "b")
    assert told.profile().torn == 0


def test_a_run_that_goes_on_after_it_was_let_go_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "_MOST_HELD", 100)
    told = Told().call(run="a").end("a").call(run="b").end("b").call(run="c").end("c")
    told.call(times=5, run="a").end("a").call(run="d").end("d")
    profile = told.profile()
    assert profile.torn == 1
    assert [unit.runs for unit in profile.units] == [("a",)]
    assert profile.runs == 4


def test_what_repeats_is_held_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "_MOST_HELD", 100)
    told = Told().call(times=9, run="a").end("a")
    for number in range(9):
        told.call(run=f"b{number}").end(f"b{number}")
    told.call(times=2, run="a").end("a")
    (unit,) = told.profile().units
    assert unit.runs[0] == "a"
    assert told.profile().torn == 0


def test_what_comes_back_again_and_again_is_found_among_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "_MOST_COUNTED", 8)
    told = Told()
    for number in range(5):  # a streak of five calls, with as many others in between as are still remembered
        told.call()
        for other in range(7):
            told.call("list", f"{number} {other}", "files")
    assert len(told.profile().units) == 1


def test_an_absent_tool_and_a_stop_of_the_live_guard_are_kept() -> None:
    assert len(Told().absent("gone").absent("gone").absent("gone").end().profile().units) == 1
    assert len(Told().stopped("gone").end().profile().units) == 1
    assert len(Told().absent("gone").absent("gone").end().profile().units) == 0


def test_a_run_that_was_compacted_is_kept() -> None:
    assert len(Told().call().compact().end().profile().units) == 1


def test_the_model_is_the_first_that_is_named() -> None:
    told = Told(model=None).call()
    told.model = "late"
    assert told.call().end().profile().model == "late"


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_times_that_are_no_numbers_are_no_times(odd: float) -> None:
    told = Told().call(times=5)
    told.start = odd
    told.call(times=2)
    told.start = 1000.0
    profile = told.end().profile()
    assert (profile.started, profile.ended) == (1000.0, 1000.0 + 2 * told.line)
    (unit,) = profile.units
    assert {step[3] for step in unit.read() if step[2] in (11, 12, 13, 14)} == {None}


def test_usage_that_no_model_can_have_is_cut_off() -> None:
    told = Told(usage=Usage(10**30, -5, 0, 0, 10**30, math.inf)).call(times=5).end()
    profile = told.profile()
    assert profile.spent.input == profile.spent.tokens == 5 << 40
    assert profile.spent.output == 0
    assert profile.spent.cost_usd == 0.0
    turn = next(step for step in profile.units[0].read() if step[0] == "t")
    assert turn[7] == [1 << 40, 0, 0, 0, 1 << 40, 0.0]


def test_halves_of_characters_are_spelt_out() -> None:
    told = Told("s\ud800", agent="a\ud800", model="m\udfff", source="f\ud800.jsonl")
    for _ in range(5):
        told.call("re\ud800ad", "no\ud800tes", "the \ud800same", run="r\ud800")
    profile = told.verdict("wa\ud800", run="r\ud800").end("r\ud800").profile()
    assert (profile.session, profile.agent, profile.model) == ("s\\ud800", "a\\ud800", "m\\udfff")
    assert profile.source == "f\\ud800.jsonl"
    assert profile.run_numbers == {"r\\ud800": 0}
    (unit,) = profile.units
    assert unit.runs == ("r\\ud800",)
    assert unit.read()[0][8][0][0] == "re\\ud800ad"


def test_events_of_no_run_are_passed_over() -> None:
    told = Told().verdict("block", run="").call().end(ending=Ending.COMPLETED)
    assert told.profile().runs == 1
