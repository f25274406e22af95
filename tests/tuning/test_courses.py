"""Where a setting steps into which incident, how that incident fares, and what it would save, against hand counts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import SessionEvent, Usage
from loopscan.marks import Detector
from loopscan.modes import ScopeRule
from loopscan.rulesets import RULESETS, ruleset
from loopscan.tuning.courses import METRIC, METRICS, Fate, Judge, course_of
from loopscan.tuning.incidents import Incident, Loop
from loopscan.tuning.labels import Label
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis, SessionProfile
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.simulate import simulate
from loopscan.tuning.steps import play
from loopscan.tuning.sweep import Sweeper
from tests.tuning.build import Told, error, failing, text
from tests.tuning.sessions import sessions

#: Blocks the seventh call of a loop, and ends the run at the eighth where the ruleset does.
STRICT = Setting(warning=5, critical=6, breaker=7, unknown_tool=6)
LENIENT = Setting(warning=50, critical=60, breaker=70, unknown_tool=60)


def figures(told: Told, setting: Setting = STRICT, judge: Judge | None = None) -> dict[str, float]:
    """Return the metrics of one setting on one session, zeros left out."""
    sweeper = Sweeper(Grid.of([setting]), ruleset(told.rules), told.basis())
    answers = sweeper.session(told.profile())
    answers.judge(judge or Judge())
    values = answers.figures()[:, 0].tolist()
    return {name: value for name, value in zip(METRICS, values, strict=True) if value}


def fates(told: Told, setting: Setting = STRICT, *, judge: Judge | None = None) -> list[str]:
    """Return how each incident fares under a setting."""
    rules, profile = ruleset(told.rules), told.profile()
    sweeper = Sweeper(Grid.of([setting]), rules, told.basis())
    found = []
    for number, unit in enumerate(sweeper.session(profile).units):
        course = unit.courses[int(unit.course[0])]
        for incident, stepped in zip(unit.incidents.incidents, course.stepped, strict=True):
            found.append((judge or Judge()).fate(profile, number, incident, stepped).value)
    return found


def test_a_stuck_loop_that_is_stepped_into_is_caught() -> None:
    assert fates(Told().call(times=12).broke_off()) == ["caught"]


def test_a_stuck_loop_that_is_let_be_is_missed() -> None:
    assert fates(Told().call(times=12).broke_off(), LENIENT) == ["missed"]


def test_a_productive_loop_that_is_stepped_into_is_a_false_block() -> None:
    assert fates(Told().call(times=12).call(came="at last").done()) == ["false_block"]


def test_a_productive_loop_that_is_let_be_is_spared() -> None:
    assert fates(Told().call(times=12).call(came="at last").done(), LENIENT) == ["spared"]


def test_a_loop_that_nobody_can_judge_is_blocked_or_spared_without_a_judgement() -> None:
    told = Told().call(times=12)
    assert fates(told) == ["unknown_blocked"]
    assert fates(told, LENIENT) == ["unknown_spared"]


def test_the_very_call_whose_outcome_would_have_changed_is_blocked_falsely() -> None:
    told = Told().call(times=6).call(came="at last").done()
    assert fates(told) == ["false_block"]


def test_the_loop_that_comes_after_the_end_of_the_run_is_not_reached() -> None:
    told = Told().call(times=9).call("list", "dir", "files", times=9).broke_off()
    assert fates(told) == ["false_block", "not_reached"]
    assert figures(told)["not_reached"] == 1


def test_blocks_after_the_first_of_an_incident_are_interventions_and_no_incidents() -> None:
    told = Told(rules="2026.6").call(times=12).broke_off()
    found = figures(told)
    assert (found["caught"], found["interventions"]) == (1, 6)


def test_a_run_that_is_ended_is_one_intervention_with_its_last_block() -> None:
    found = figures(Told().call(times=12).broke_off())
    assert (found["caught"], found["interventions"]) == (1, 2)


def test_what_is_saved_of_a_stuck_loop_agrees_with_a_count_by_hand() -> None:
    told = Told(usage=Usage(100, 10, 50, 5, 165, 0.25)).call(times=10).broke_off()
    # Calls 6 to 9 are not made, nor the message that was aborted; the one that asks for call 6 is paid all the same.
    assert figures(told) == {
        "caught": 1,
        "interventions": 2,
        "lead": 4,
        "saved_calls": 4,
        "saved_responses": 4,
        "saved_input": 400,
        "saved_output": 40,
        "saved_cache_read": 200,
        "saved_cache_write": 20,
        "saved_tokens": 660,
        "saved_usd": 1.0,
        # From the message that asks for call 6 (line 13) to the end of the run (line 22), two seconds a line.
        "saved_seconds": 18,
    }


def test_nothing_is_saved_by_false_blocks_or_in_what_nobody_can_judge() -> None:
    for told in (Told().call(times=10).call(came="at last").done(), Told().call(times=10)):
        assert not {name for name in figures(told) if name.startswith("saved")}


def test_prices_go_by_model_and_usage() -> None:
    told = Told(model="big", usage=Usage(100, 10, 50, 5, 165, 0.0)).call(times=10).broke_off()
    asked: list[tuple[str | None, list[float]]] = []

    def pricing(model: str | None, usage: Any) -> float:
        asked.append((model, list(usage)))
        return 2.0

    assert figures(told, judge=Judge(pricing))["saved_usd"] == 8
    assert asked == [("big", [100, 10, 50, 5, 165, 0.0])] * 11


def test_calls_in_between_are_saved_with_the_loop() -> None:
    told = Told()
    for number in range(10):
        told.call()
        told.turn(("list", {"of": number}, failing("list", f"failed {number}")))
    told.broke_off()
    found = figures(told, Setting(warning=5, critical=6, breaker=7, ping_pong=False))
    # The loop goes on from order 12 to 18; the calls at 13, 15 and 17 are in between, that at 19 comes after it.
    assert (found["lead"], found["saved_calls"], found["saved_responses"]) == (4, 8, 8)


def test_two_loops_at_the_same_time_are_not_saved_twice() -> None:
    told = Told(rules="2026.6")
    for _ in range(10):
        told.turn(("read", {"path": "a"}, "a's"), ("read", {"path": "b"}, "b's"), ("read", {"path": "c"}, "c's"))
    told.broke_off()
    found = figures(told)
    assert (found["caught"], found["lead"]) == (3, 12)
    assert (found["saved_calls"], found["saved_responses"]) == (12, 4)


def test_what_other_runs_do_meanwhile_is_not_saved() -> None:
    told = Told(rules="2026.6")
    for number in range(10):
        told.call(run="a").call("list", number, f"{number}", run="b")
    told.broke_off(run="a").done(run="b")
    found = figures(told)
    assert (found["saved_calls"], found["saved_responses"]) == (4, 4)


def test_what_a_person_says_goes_before_all_rules() -> None:
    def given(session: SessionProfile, unit: int, incident: Incident) -> Label | None:
        return Label.PRODUCTIVE

    judge = Judge(given=given)
    told = Told().call(times=12).broke_off()
    assert fates(told, judge=judge) == ["false_block"]
    assert fates(told, LENIENT, judge=judge) == ["spared"]
    assert judge.label_at(told.profile(), 0, told.incident(), 0).rule == "given"


def test_loops_that_are_too_short_for_any_setting_do_not_count() -> None:
    assert figures(Told().call(times=4).broke_off()) == {}


def test_failures_across_arguments_are_stepped_into_as_one_loop() -> None:
    told = Told()
    for number in range(10):
        told.turn(("exec", {"command": f"ssh host{number}"}, failing("ssh", "no such host")))
    told.broke_off()
    assert fates(told) == ["caught"]


def test_an_absent_tool_is_stopped_at_the_attempt_beyond_the_threshold() -> None:
    told = Told(rules="2026.9")
    for _ in range(10):
        told.absent("gone")
    told.broke_off()
    found = figures(told)
    assert (found["caught"], found["lead"]) == (1, 4)
    assert "saved_calls" not in found
    assert found["saved_responses"] == 4


def test_an_absent_tool_is_stopped_even_with_the_detectors_off() -> None:
    told = Told(rules="2026.9")
    for _ in range(10):
        told.absent("gone")
    told.broke_off()
    assert fates(told, Setting(enabled=False, unknown_tool=6)) == ["caught"]


def test_a_loop_after_a_compaction_is_aborted() -> None:
    told = Told().call("list", "dir", "files").compact().call(times=8).broke_off()
    rules = ruleset("latest")
    (unit,) = told.profile().units
    path = simulate(list(play(unit.read())), Setting(), rules, told.basis())
    incidents = told.incidents()
    course = course_of(path, incidents)
    assert [stepped.by for stepped in course.stepped] == [Detector.COMPACTION_LOOP]
    assert course.stepped[0].point == 3


def test_what_the_guard_against_equal_errors_ends_is_neither_caught_nor_missed_by_any_setting() -> None:
    told = Told().call(came=error("no such file"), times=12).broke_off()
    for tried in (STRICT, LENIENT, Setting(enabled=False)):
        assert figures(told, tried) == {"not_reached": 1}


def test_a_loop_that_another_one_cuts_short_is_neither_missed_nor_spared() -> None:
    told = Told().call(times=3)
    for number in range(10):
        told.call("list", "dir", "files").call("look", number, text("no", status="failed")).call()
    assert fates(told.broke_off()) == ["caught", "not_reached"]


def test_an_alternation_is_stepped_into() -> None:
    told = Told()
    for number in range(14):
        told.call("read", "ab"[number % 2], "ab"[number % 2])
    told.broke_off()
    rules = ruleset("latest")
    (unit,) = told.profile().units
    path = simulate(list(play(unit.read())), STRICT, rules, told.basis())
    course = course_of(path, told.incidents())
    assert [(stepped.point, stepped.by) for stepped in course.stepped] == [(5, Detector.PING_PONG)]
    assert told.incident().loops == (Loop.SAME_CALL, Loop.ALTERNATION)


AXES: dict[str, tuple[Any, ...]] = {
    "enabled": (False, True),
    "history_size": (6, 30),
    "warning": (5,),
    "critical": (6, 9),
    "breaker": (7, 12),
    "unknown_tool": (5, 8),
    "generic_repeat": (True, False),
    "known_poll": (True,),
    "ping_pong": (True, False),
    "guard_window": (2,),
}


@pytest.mark.parametrize("name", RULESETS)
@settings(max_examples=6)
@given(events=sessions(), scope=st.sampled_from(ScopeRule))
def test_every_long_incident_counts_exactly_once_whatever_the_setting(
    name: str, events: list[SessionEvent], scope: ScopeRule
) -> None:
    told = Told(rules=name, scope=scope, events=events)
    profile, grid = told.profile(), Grid(AXES)
    answers = Sweeper(grid, ruleset(name), Basis(name, scope)).session(profile)
    judge = Judge()
    counted = Counter(dict.fromkeys(range(len(grid.settings)), 0))
    expected = Counter(counted)
    for number, unit in enumerate(answers.units):
        for place in counted:
            course = unit.courses[int(unit.course[place])]
            for incident, stepped in zip(unit.incidents.incidents, course.stepped, strict=True):
                long = incident.evidence.length >= LOWEST_THRESHOLD
                if long or stepped.point is not None:
                    fate = judge.fate(profile, number, incident, stepped)
                    expected[place] += fate is not Fate.UNKNOWN_SPARED
                if stepped.point is not None:
                    # The live guard against absent tools may have stepped in at the first attempt that is on record.
                    first = stepped.by is Detector.UNKNOWN_TOOL_GUARD
                    assert stepped.point >= incident.evidence.orders[0] + (not first)
    answers.judge(judge)
    values = answers.figures()
    kinds = ("caught", "missed", "false_blocks", "spared", "unknown_blocked", "not_reached")
    for place in counted:
        if answers.units:
            counted[place] = int(sum(values[METRIC[kind], place] for kind in kinds))
    assert counted == expected
    if answers.units:
        saved = values[METRIC["saved_calls"]]
        assert (saved <= profile.spent.calls).all()
        assert (values[METRIC["saved_tokens"]] <= profile.spent.tokens).all()
        assert (values[METRIC["saved_usd"]] <= profile.spent.cost_usd + 1e-9).all()
        assert (values[METRIC["saved_calls"]][values[METRIC["caught"]] == 0] == 0).all()
