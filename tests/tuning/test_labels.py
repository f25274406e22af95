"""Every rule of labelling by its name, each with a session that shows it, seen from early and from late."""

from __future__ import annotations

import pytest

from loopscan.events import Ending, Outcome
from loopscan.tuning.evidence import NEVER, End, Evidence
from loopscan.tuning.labels import FEW, RULES, STUCK, explained, label
from tests.tuning.build import Told, error, text

WRITTEN = text("wrote out.txt")


def seen(told: Told, *points: int, followed: bool = False) -> list[tuple[str, str]]:
    """Return label and rule of the first incident from each point."""
    first = told.incidents(*(["r"] if followed else [])).incidents[0]
    return [(found.label.value, found.rule) for found in (label(first.evidence, point) for point in points)]


def test_a_call_that_comes_back_otherwise_is_productive_up_to_that_call() -> None:
    told = Told().call(times=8).call(came="at last").broke_off()
    assert seen(told, 0, 5, 8) == [("productive", "outcome_changed")] * 3


def test_from_beyond_the_change_a_loop_is_not_productive_by_it() -> None:
    told = Told().call("read", "a", "1", times=4).call("read", "b", "x")
    for number in range(10):
        told.call("read", "ab"[number % 2], "same")
    told.broke_off()
    found = told.incidents().incidents[-1].evidence
    change = found.changed
    assert change > 0
    assert label(found, change).rule == "outcome_changed"
    assert label(found, change + 1) == label(found, found.last)
    assert label(found, change + 1).rule == "run_aborted"


def test_another_call_that_succeeds_with_something_new_makes_it_productive() -> None:
    told = Told().call(times=8).call("list", "dir", "files").end()
    assert seen(told, 0, 7) == [("productive", "another_call_succeeded")] * 2


def test_success_is_of_no_account_where_it_came_before() -> None:
    told = Told().call(times=4).call("list", "dir", "files").call(times=8).broke_off()
    assert seen(told, 3, 4) == [("unknown", "contradiction")] * 2
    assert seen(told, 5, 12) == [("stuck", "run_aborted")] * 2


@pytest.mark.parametrize(
    "came",
    [
        error("boom"),
        text("no", status="failed"),
        text("no", status="Blocked"),
        text("no", exitCode=1),
        text("no", timedOut=True),
        text("no", ok=False),
        text("no", success=False),
        Outcome(result="no", is_error=True),
    ],
)
def test_a_failure_is_no_success(came: Outcome) -> None:
    assert seen(Told().call(times=8).call("list", "dir", came).broke_off(), 5) == [("stuck", "run_aborted")]


def test_a_success_that_the_run_has_seen_is_nothing_new() -> None:
    told = Told().call("list", "dir", "files").call(times=8).call("list", "dir", "files").broke_off()
    assert seen(told, 5) == [("stuck", "run_aborted")]


def test_the_loops_own_success_is_nothing_new() -> None:
    assert seen(Told().call(times=8).broke_off(), 0, 5) == [("stuck", "run_aborted")] * 2


def test_a_file_that_is_written_goes_before_another_success() -> None:
    told = Told().call(times=8).call("write", "out.txt", WRITTEN).end()
    assert seen(told, 5) == [("productive", "file_written")]


def test_a_file_that_stays_as_it_was_is_not_written() -> None:
    told = Told().call(times=8).call("write", "out.txt", text("unchanged", changed=False)).end()
    assert seen(told, 5) == [("productive", "another_call_succeeded")]


@pytest.mark.parametrize(
    ("action", "rule"),
    [("send", "message_delivered"), ("Reply", "message_delivered"), ("read", "another_call_succeeded")],
)
def test_a_message_that_is_sent_is_delivered(action: str, rule: str) -> None:
    told = Told().call(times=8)
    told.turn(("message", {"action": action, "text": "hello"}, text("ok"))).end()
    assert seen(told, 5) == [("productive", rule)]


def test_a_message_to_a_session_is_delivered_whatever_it_says() -> None:
    told = Told().call(times=8).call("sessions_send", "hello", text("ok")).end()
    assert seen(told, 5) == [("productive", "message_delivered")]


def test_a_loop_that_ends_within_a_few_calls_ended_by_itself() -> None:
    told = Told().call(times=12).done()
    late = 12 - FEW
    assert seen(told, late, 11) == [("productive", "ended_by_itself")] * 2
    assert seen(told, 0, late - 1) == [("unknown", "gave_up")] * 2


@pytest.mark.parametrize(
    ("stop", "rule"),
    [
        ("aborted", "run_aborted"),
        ("cancelled", "run_aborted"),
        ("user_interrupt", "run_aborted"),
        ("timeout", "run_timed_out"),
        ("error: timed_out", "run_timed_out"),
        ("error", "run_failed"),
        ("FAILED", "run_failed"),
        ("length", "run_ran_out"),
        ("max_tokens", "run_ran_out"),
        ("whatever", "run_failed"),
    ],
)
def test_how_the_run_broke_off_says_that_it_was_stuck(stop: str, rule: str) -> None:
    assert seen(Told().call(times=8).broke_off(stop), 0, 5, 7) == [("stuck", rule)] * 3


def test_a_run_that_went_on_after_it_failed_did_not_fail() -> None:
    told = Told().call(times=8).say(stop="error", failed=True).done()
    assert seen(told, 0) == [("unknown", "gave_up")]


def test_something_new_after_the_loop_speaks_against_being_stuck_in_it() -> None:
    told = Told().call(times=8).call("list", "dir", "files").broke_off()
    assert seen(told, 0, 7) == [("productive", "another_call_succeeded")] * 2


def test_the_next_message_of_the_user_while_the_run_was_not_done_steps_in() -> None:
    told = Told().call(times=8).end()
    assert seen(told, 0, 7, followed=True) == [("stuck", "user_stepped_in")] * 2
    assert seen(told, 0, 7) == [("unknown", "record_ends")] * 2


def test_the_next_message_after_the_work_is_done_steps_into_nothing() -> None:
    assert seen(Told().call(times=12).done(), 0, followed=True) == [("unknown", "gave_up")]


def test_a_message_of_the_user_into_the_run_steps_in() -> None:
    told = Told().call(times=8).user(steering=True).done()
    assert seen(told, 0, 7) == [("stuck", "user_stepped_in")] * 2


@pytest.mark.parametrize("came", ["the same", "at last"])
def test_what_comes_after_the_user_stepped_in_is_the_users_doing(came: str) -> None:
    told = Told().call(times=8).user(steering=True).call("write", "out.txt", WRITTEN).call(came=came).done()
    found = told.incidents().incidents[0].evidence
    if came == "at last":
        assert label(found, 0) == label(found, 7)
        assert label(found, 0).rule == "user_stepped_in"
    else:  # the loop itself went on: the user did not end it
        assert found.length == 9
        assert label(found, 0).rule == "file_written"


def test_a_message_of_the_user_after_something_new_does_not_step_into_the_loop() -> None:
    told = Told().call(times=8).call("list", "dir", "files").user(steering=True).done()
    assert seen(told, 0) == [("productive", "another_call_succeeded")]


def test_a_message_that_opens_the_run_does_not_step_in() -> None:
    told = Told().user().call(times=8).user().done()
    assert seen(told, 0) == [("unknown", "gave_up")]


@pytest.mark.parametrize("kind", ["block", "run_end", "unknown_tool_stop", "compaction_abort"])
def test_what_follows_a_verdict_of_the_live_engine_is_not_on_record(kind: str) -> None:
    assert seen(Told().call(times=8).verdict(kind).broke_off(), 0, 7) == [("unknown", "live_engine_stepped_in")] * 2


def test_a_loop_that_came_to_something_is_judged_whatever_the_live_engine_did_later() -> None:
    told = Told().call(times=8).call("read", "another", text("news"))
    told.call("list", "dir", "files").verdict().broke_off()
    assert seen(told, 5) == [("productive", "another_call_succeeded")]


def test_a_warning_of_the_live_engine_changes_nothing() -> None:
    assert seen(Told().call(times=8).verdict("warning").broke_off(), 0) == [("stuck", "run_aborted")]


def test_a_verdict_before_the_loop_changes_nothing() -> None:
    told = Told().call("list", "dir", "files").verdict().call("list", "other", "files").call(times=8).broke_off()
    assert seen(told, 5) == [("stuck", "run_aborted")]


def test_a_record_that_ends_in_the_loop_tells_nothing() -> None:
    assert seen(Told().call(times=8), 0, 7) == [("unknown", "record_ends")] * 2


def test_a_loop_that_changed_before_the_point_and_then_ran_on_was_stuck_from_there() -> None:
    told = Told().call(times=6).call(came="other", times=8).broke_off()
    first, second = told.incidents().incidents
    assert label(first.evidence, 5).rule == "outcome_changed"
    assert label(second.evidence, 10).rule == "run_aborted"


def evidence(**fields: object) -> Evidence:
    known: dict[str, object] = {
        **dict.fromkeys(("changed", "succeeded", "wrote", "delivered", "live"), -1),
        "length": 8,
        "first": 0,
        "last": 7,
        "end": End.OPEN,
        "until": NEVER,
        "orders": tuple(range(8)),
        **fields,
    }
    return Evidence(**known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("live_engine_stepped_in", {"live": 3}),
        ("contradiction", {"wrote": 6, "succeeded": 6, "end": End.TIMED_OUT}),
        ("outcome_changed", {"changed": 5}),
        ("file_written", {"wrote": 9}),
        ("message_delivered", {"delivered": 9}),
        ("another_call_succeeded", {"succeeded": 9}),
        ("ended_by_itself", {"end": End.COMPLETED}),
        ("run_aborted", {"end": End.ABORTED}),
        ("run_timed_out", {"end": End.TIMED_OUT}),
        ("run_failed", {"end": End.FAILED}),
        ("run_ran_out", {"end": End.LENGTH}),
        ("user_stepped_in", {"end": End.USER}),
        ("record_ends", {}),
        ("gave_up", {"end": End.COMPLETED, "length": 20, "last": 19, "orders": tuple(range(20))}),
    ],
)
def test_every_rule_names_the_label_that_it_gives(rule: str, fields: dict[str, object]) -> None:
    found = label(evidence(**fields), 5)
    assert found.rule == rule
    assert found.label is {each.__name__: kind for kind, each in RULES}[rule]


def test_the_rules_above_are_all_that_there_are() -> None:
    assert [(kind.value, name) for kind, name, _ in explained()] == [
        ("unknown", "live_engine_stepped_in"),
        ("unknown", "contradiction"),
        ("productive", "outcome_changed"),
        ("productive", "file_written"),
        ("productive", "message_delivered"),
        ("productive", "another_call_succeeded"),
        ("productive", "ended_by_itself"),
        ("stuck", "run_aborted"),
        ("stuck", "run_timed_out"),
        ("stuck", "run_failed"),
        ("stuck", "run_ran_out"),
        ("stuck", "user_stepped_in"),
        ("unknown", "record_ends"),
        ("unknown", "gave_up"),
    ]


def test_every_rule_is_explained_in_one_sentence() -> None:
    for _, _, sentence in explained():
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert sentence.count(". ") == 0


@pytest.mark.parametrize("rule", STUCK)
def test_what_says_stuck_says_so_only_if_nothing_changed_and_nothing_new_came(rule: object) -> None:
    sentence = str(rule.__doc__)
    assert sentence.startswith("Nothing changed to the end of the loop, nothing new came after it, and ")
    for end in End:
        for more in ({"changed": 6}, {"succeeded": 9}):
            assert not rule(evidence(end=end, **more), 5)  # type: ignore[operator]
    assert [rule(evidence(end=end), 5) for end in End].count(True) == 1  # type: ignore[operator]


def test_a_few_calls_are_as_many_as_the_sentence_says() -> None:
    sentences = {name: sentence for _, name, sentence in explained()}
    assert FEW == 5
    assert "within five calls" in sentences["ended_by_itself"]
    assert "more than five further calls" in sentences["gave_up"]


def test_a_completed_ending_goes_before_what_the_last_message_says() -> None:
    told = Told().call(times=12).say(stop="error").end(ending=Ending.COMPLETED)
    assert told.incident().evidence.end is End.COMPLETED


def test_a_loop_of_failing_calls_that_ends_is_no_poll_that_finished() -> None:
    told = Told().call("edit", "a", error("old text not found"), times=7)
    assert seen(told.done(), 5) == [("unknown", "gave_up")]


def test_what_succeeds_while_calls_go_on_failing_is_no_evidence() -> None:
    told = Told()
    for number in range(8):
        told.call("edit", "a", error("old text not found")).call("read", number, text(f"page {number}"))
    told.call("edit", "a", error("old text not found"))
    assert seen(told.broke_off(), 8)[0] == ("stuck", "run_aborted")
