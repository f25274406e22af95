"""Streaks of each kind: what they take in, what ends them, what makes one incident of several."""

from __future__ import annotations

import pytest

from loopscan.events import AbsentCall, Call, Ending, Fate, Outcome, Result, RunEnded, Turn
from loopscan.modes import ScopeRule
from loopscan.tuning.incidents import Incidents, Loop
from tests.tuning.build import Told, error, failing

UNKNOWN = "Unknown tool: widget"


def seen(found: Incidents) -> list[tuple[tuple[str, ...], list[int]]]:
    """Return the loops and the orders of each incident."""
    return [(tuple(loop.value for loop in each.loops), [at.order for at in each.calls]) for each in found.incidents]


def test_the_same_call_with_the_same_outcome_is_a_streak() -> None:
    assert seen(Told().call(times=3).incidents()) == [(("same_call",), [0, 1, 2])]


def test_two_calls_alike_are_none() -> None:
    assert seen(Told().call(times=2).incidents()) == []


def test_other_calls_in_between_do_not_end_it() -> None:
    told = Told().call(times=2).call("write", "out", "ok").call(times=2)
    assert seen(told.incidents()) == [(("same_call",), [0, 1, 3, 4])]


def test_another_outcome_ends_it_and_is_noted_as_its_change() -> None:
    told = Told().call(times=3).call(came="another", times=4)
    assert seen(told.incidents()) == [(("same_call",), [0, 1, 2]), (("same_call",), [3, 4, 5, 6])]
    first, second = told.incidents().incidents
    assert (first.evidence.changed, second.evidence.changed) == (3, -1)


def test_the_call_whose_outcome_ends_a_streak_meets_it() -> None:
    found = Told().call(times=3).call(came="another", times=3).incidents()
    assert found.met[Loop.SAME_CALL, 3] == 0
    assert found.met[Loop.SAME_CALL, 4] == 1
    assert (Loop.SAME_CALL, 0) not in found.met


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.VETOED, Fate.NOT_RUN])
def test_calls_without_outcome_are_passed_over(fate: Fate) -> None:
    told = Told().call(times=2).call(came=fate).call(times=2)
    assert seen(told.incidents()) == [(("same_call",), [0, 1, 3, 4])]


def test_a_call_that_did_not_run_meets_nothing() -> None:
    found = Told().call(times=3).call(came=Fate.NOT_RUN).call(came=Fate.LOST).incidents()
    assert (Loop.SAME_CALL, 3) not in found.met
    assert found.met[Loop.SAME_CALL, 4] == 0


def test_commands_that_fail_alike_are_one_streak_whatever_their_arguments() -> None:
    told = Told()
    for number in range(4):
        told.turn(("exec", {"command": f"ssh host{number}"}, failing("ssh", "no such host")))
    assert seen(told.incidents()) == [(("same_failure",), [0, 1, 2, 3])]


@pytest.mark.parametrize("between", ["other tool", "success", "another failure"])
def test_what_ends_a_streak_of_failures(between: str) -> None:
    told = Told()
    for number in range(3):
        told.turn(("exec", {"command": f"ssh host{number}"}, failing("ssh", "no such host")))
    match between:
        case "other tool":
            told.call()
        case "success":
            told.turn(("exec", {"command": "true"}, "fine"))
        case _:
            told.turn(("exec", {"command": "make"}, failing("make", "out of memory")))
    told.turn(("exec", {"command": "ssh again"}, failing("ssh", "no such host")))
    assert seen(told.incidents()) == [(("same_failure",), [0, 1, 2])]


def test_failures_across_arguments_are_counted_by_rulesets_that_know_them_alone() -> None:
    told = Told(rules="2026.6")
    for number in range(4):
        told.turn(("exec", {"command": f"ssh host{number}"}, failing("ssh", "no such host")))
    assert seen(told.incidents()) == []


def swinging(told: Told, times: int, *, second: str = "b's") -> Told:
    for number in range(times):
        told.call("read", "ab"[number % 2], ("a's", second)[number % 2])
    return told


def test_two_calls_that_alternate_are_a_streak() -> None:
    assert seen(swinging(Told(), 6).incidents()) == [(("same_call", "alternation"), [0, 1, 2, 3, 4, 5])]


def test_an_alternation_alone_is_an_incident_from_four_calls_on() -> None:
    assert seen(swinging(Told(), 4).incidents()) == [(("alternation",), [0, 1, 2, 3])]
    assert seen(swinging(Told(), 3).incidents()) == []


def test_a_third_call_ends_an_alternation() -> None:
    told = swinging(Told(), 5).call("read", "c", "c's").call("read", "d", "d's").call("read", "c", "c's")
    assert seen(told.incidents()) == [(("same_call", "alternation"), [0, 1, 2, 3, 4])]


def test_an_alternation_that_progresses_is_not_still() -> None:
    told = Told()
    for number in range(8):
        told.call("read", "ab"[number % 2], f"line {number}")
    assert seen(told.incidents()) == []


def test_an_alternation_that_comes_back_otherwise_is_noted_as_its_change() -> None:
    told = swinging(Told(), 6).call("read", "a", "another").call("read", "b", "b's")
    found = told.incidents()
    assert seen(found) == [(("same_call", "alternation"), list(range(8)))]
    assert found.incidents[0].evidence.changed == 6


def test_a_tool_that_is_unknown_is_a_streak_whatever_it_is_called_with() -> None:
    told = Told()
    for number in range(4):
        told.call("widget", number, error(UNKNOWN))
    assert seen(told.incidents()) == [(("unknown_tool",), [0, 1, 2, 3])]


def test_another_tool_ends_a_streak_of_an_unknown_one() -> None:
    told = Told()
    for number in range(3):
        told.call("widget", number, error(UNKNOWN))
    told.call("read")
    told.call("widget", 9, error(UNKNOWN))
    assert seen(told.incidents()) == [(("unknown_tool",), [0, 1, 2])]


@pytest.mark.parametrize("stored", [False, True])
def test_messages_that_name_an_absent_tool_alone_are_a_streak(stored: bool) -> None:
    told = Told()
    for _ in range(4):
        told.absent("gone", stored=stored)
    found = told.incidents()
    assert seen(found) == [(("absent_tool",), [0, 1, 2, 3])]
    assert found.incidents[0].tools == ("gone",)
    assert [at.call for at in found.incidents[0].calls] == [-1] * 4
    assert sorted(found.calls) == ([("r", number) for number in range(4)] if stored else [])


@pytest.mark.parametrize("between", ["text", "call", "another tool", "two tools"])
def test_what_ends_a_streak_of_an_absent_tool(between: str) -> None:
    told = Told().absent("gone").absent("gone").absent("gone")
    match between:
        case "text":
            told.say()
        case "call":
            told.call()
        case "another tool":
            told.absent("lost")
        case _:
            told.absent("gone", "lost")
    told.absent("gone").absent("gone")
    assert seen(told.incidents()) == [(("absent_tool",), [0, 1, 2])]


def test_a_failed_attempt_of_the_model_does_not_end_a_streak_of_an_absent_tool() -> None:
    told = Told().absent("gone").absent("gone").say(failed=True, stop="error").absent("gone")
    assert seen(told.incidents()) == [(("absent_tool",), [0, 1, 2])]


def test_what_the_live_guard_took_out_stands_for_an_attempt() -> None:
    told = Told().absent("gone").absent("gone").stopped("gone")
    found = told.incidents()
    assert seen(found) == [(("absent_tool",), [0, 1, 2])]
    assert found.incidents[0].evidence.live == 3


def test_attempts_are_found_by_count_and_line() -> None:
    told = Told().absent("gone").absent("gone").absent("gone").say().absent("gone").absent("gone")
    found = told.incidents()
    assert found.attempt("r", 2, 2) == found.incidents[0].calls[1]
    later = found.attempt("r", 2, 6)
    assert later is not None
    assert later.order == 4
    assert found.attempt("r", 9, 2) is None
    assert found.attempt("r", 0, 2) is None
    assert found.attempt("another", 1, 1) is None


def test_streaks_that_share_a_call_are_one_incident() -> None:
    told = Told()
    for _ in range(5):
        told.turn(("exec", {"command": "make"}, failing("make", "broken")))
    (found,) = told.incidents().incidents
    assert found.loops == (Loop.SAME_CALL, Loop.SAME_FAILURE)
    assert len(found.calls) == 5


def test_calls_of_one_message_are_calls_of_one_streak() -> None:
    same = ("read", {"path": "a"}, "same")
    told = Told().turn(same, same, ("write", {"path": "o"}, "ok"), same)
    found = told.incidents()
    assert seen(found) == [(("same_call",), [0, 1, 3])]
    assert {at.batch for at in found.incidents[0].calls} == {0}
    assert [at.call for at in found.incidents[0].calls] == [0, 1, 3]


def test_results_in_another_order_are_results_all_the_same() -> None:
    same = ("read", {"path": "a"}, "same")
    told = Told().turn(same, same, same, order=[2, 0, 1])
    assert seen(told.incidents()) == [(("same_call",), [0, 1, 2])]


def test_interleaved_runs_have_incidents_of_their_own() -> None:
    told = Told()
    for _ in range(3):
        told.call(run="a").call(run="b")
    found = told.incidents()
    assert seen(found) == [(("same_call",), [0, 2, 4]), (("same_call",), [1, 3, 5])]
    assert [each.run for each in found.incidents] == ["a", "b"]


def test_a_session_without_run_ids_is_looked_back_over_as_a_whole() -> None:
    told = Told(scope=ScopeRule.SESSION)
    told.call(times=2, run="a").end("a").call(times=2, run="b")
    found = told.incidents()
    assert seen(found) == [(("same_call",), [0, 1, 2, 3])]
    assert found.incidents[0].run == "b"


@pytest.mark.parametrize(("rules", "found"), [("latest", True), ("2026.6", False)])
def test_rejected_calls_count_where_the_ruleset_records_them(rules: str, found: bool) -> None:
    rejected = (Fate.REJECTED, error("Validation failed for tool read"))
    told = Told(rules=rules).call(came=rejected, times=4)
    assert bool(told.incidents().incidents) is found


def test_results_without_a_call_are_passed_over() -> None:
    told = Told()
    told.add(Result("r", told.where(), 0, Outcome(result="lost")))
    told.call(times=3)
    told.add(Result("r", told.where(), 7, Outcome(result="lost")))
    assert seen(told.incidents()) == [(("same_call",), [0, 1, 2])]


def test_what_remains_of_an_incident_is_counted_from_any_place() -> None:
    told = Told().call(times=2).call("write", "o", "ok").call(times=3)
    found = told.incident()
    assert [found.evidence.remaining(order) for order in (0, 1, 2, 3, 5, 6)] == [5, 4, 3, 3, 1, 0]


@pytest.mark.parametrize("positions", [(1, 1), (5,), (0, 7)])
def test_absent_calls_at_odd_positions_are_placed_as_the_engine_places_them(positions: tuple[int, ...]) -> None:
    told = Told()
    for _ in range(3):
        absent = tuple(AbsentCall("gone", "Tool gone not found", position=place) for place in positions)
        told.add(Turn("r", told.where(), (Call("read", {"path": "a"}, None),), absent))
        told.add(Result("r", told.where(), 0, Outcome(result="same")))
    told.add(RunEnded("r", told.where(), Ending.COMPLETED))
    (found,) = told.incidents().incidents
    assert found.loops == (Loop.SAME_CALL,)
    assert len(found.calls) == 3
