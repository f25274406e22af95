"""The column `latest` of the table of releases, sentence by sentence: there is no package to ask yet."""

from __future__ import annotations

from typing import Any

import pytest

from loopscan.events import Fate, Json, Outcome

from .build import Play, error, policy, rejected, text

BLOCKED_AT_20 = [
    ("warning", "generic_repeat", 10, 10),
    ("block", "generic_repeat", 20, 20),
    ("block", "generic_repeat", 21, 21),
    ("run_end", "generic_repeat", 21, 21),
]
#: Two generic warnings and no block: arguments alike, outcomes not.
ONLY_WARNED = [("warning", "generic_repeat", 10, 10), ("warning", "generic_repeat", 20, 20)]


def played(name: str, tool: str, arguments: Any, outcomes: list[Any]) -> list[tuple[Any, ...]]:
    """Play one call 25 times over outcomes that alternate; return the marks."""
    play = Play(policy(name))
    for number in range(25):
        play.call(tool, arguments, outcomes[number % len(outcomes)])
    return play.seen()


def same(tool: str, arguments: Any, one: Any, other: Any) -> bool:
    """Whether `latest` takes two outcomes for the same; they must differ in 2026.9 to prove anything."""
    assert played("2026.9", tool, arguments, [one, one]) == BLOCKED_AT_20
    seen = played("latest", tool, arguments, [one, other])
    assert seen in (BLOCKED_AT_20, ONLY_WARNED)
    return seen == BLOCKED_AT_20


def result(details: Json, *content: Json) -> Outcome:
    return Outcome(result={"content": list(content), "details": details})


# --- exec title


def test_the_title_of_exec_is_no_part_of_its_arguments() -> None:
    for name, blocked in (("latest", True), ("2026.9", False)):
        play = Play(policy(name))
        for number in range(25):
            play.call("exec", {"command": "make", "title": f"try {number}"}, text("ok"))
        assert (play.seen() == BLOCKED_AT_20) is blocked


def test_the_title_of_other_tools_and_other_arguments_of_exec_count() -> None:
    play = Play(policy())
    for number in range(25):
        play.call("read", {"path": "a", "title": f"try {number}"}, "x")
        play.call("exec", {"command": "make", "Title": f"try {number}"}, text("ok"))
    assert play.seen() == []


# --- wait


def test_wait_is_a_known_poll_and_critical_at_10() -> None:
    play = Play(policy())
    play.call("wait", {"handle": "h"}, "still running", times=12)
    assert play.seen() == [
        ("block", "known_poll_no_progress", 10, 10),
        ("block", "known_poll_no_progress", 11, 11),
        ("run_end", "known_poll_no_progress", 11, 11),
    ]
    assert play.marks[0].threshold == 10


def test_wait_that_progresses_is_left_alone() -> None:
    play = Play(policy())
    for number in range(25):
        play.call("wait", {"handle": "h"}, f"{number} done")
    assert play.seen() == []


def test_other_known_polls_stay_critical_at_20() -> None:
    play = Play(policy())
    play.call("command_status", {"id": 1}, "running", times=21)
    assert play.seen() == [("warning", "known_poll_no_progress", 10, 10), ("block", "known_poll_no_progress", 20, 20)]


def test_wait_is_an_ordinary_tool_before_latest() -> None:
    assert played("2026.9", "wait", {"handle": "h"}, ["still running"]) == BLOCKED_AT_20


# --- Code Mode


def code(payload: dict[str, Json], ms: int = 1, run: str = "a") -> Outcome:
    details: dict[str, Json] = {**payload, "telemetry": {"ms": ms}, "runId": run}
    return result(details, {"type": "text", "text": str(details)})


@pytest.mark.parametrize("tool", ["exec", "wait"])
def test_code_mode_leaves_telemetry_and_run_id_out(tool: str) -> None:
    play = Play(policy())
    for number in range(25):
        play.call(tool, {"code": "f()"}, code({"value": 1}, number, f"run {number}"))
    assert [mark for mark in play.seen() if mark[0] == "block"]
    assert played("2026.9", tool, {"code": "f()"}, [code({"value": 1}, 1), code({"value": 1}, 2)]) == ONLY_WARNED


def test_code_mode_compares_the_rest_of_the_payload() -> None:
    assert not same("exec", {"code": "f()"}, code({"value": 1}), code({"value": 2}))


def test_pending_tool_calls_count_by_method_and_arguments() -> None:
    def waiting(*pending: dict[str, Json]) -> Outcome:
        return code({"status": "waiting", "pendingToolCalls": list(pending)})

    one = waiting({"id": "1", "method": "read", "arguments": {"path": "a"}})
    assert same("exec", {"code": "f()"}, one, waiting({"id": "2", "method": "read", "arguments": {"path": "a"}}))
    assert not same("exec", {"code": "f()"}, one, waiting({"id": "1", "method": "read", "arguments": {"path": "b"}}))
    assert not same("exec", {"code": "f()"}, one, waiting({"id": "1", "method": "list", "arguments": {"path": "a"}}))
    bare = waiting({"id": "1", "method": "read"})
    assert same("exec", {"code": "f()"}, bare, waiting({"id": "2", "method": "read"}))
    assert not same("exec", {"code": "f()"}, bare, waiting({"id": "1", "method": "list"}))


def test_without_telemetry_exec_falls_back_to_details_and_text() -> None:
    plain: dict[str, Json] = {"value": 1, "runId": "a"}
    assert not same("exec", {"code": "f()"}, result(plain), result({**plain, "runId": "b"}))


def test_telemetry_of_other_tools_counts() -> None:
    assert not same("read", {"path": "a"}, code({"value": 1}, 1), code({"value": 1}, 2))


# --- computer


def window(
    observation_id: str = "o1",
    ref: str = "e1",
    label: str = "OK",
    pixels: str = "AAAA",
    kind: str = "window",
    **more: Json,
) -> Outcome:
    observation: Json = {
        "kind": kind,
        "observationId": observation_id,
        "title": "Mail",
        "elements": [{"elementRef": ref, "label": label, "bounds": [0, 0, 10, 10]}],
    }
    details: Json = {"result": {"observation": observation, **more}}
    return result(details, {"type": "text", "text": str(details)}, {"type": "image", "data": pixels})


CLICK = {"action": "click", "x": 1, "y": 1}


def test_a_window_observation_is_the_same_under_other_handles() -> None:
    assert same("computer", CLICK, window(), window("o2", "e2"))
    assert played("2026.9", "computer", CLICK, [window(), window("o2", "e2")]) == ONLY_WARNED


def test_changed_pixels_labels_or_other_fields_are_another_outcome() -> None:
    assert not same("computer", CLICK, window(), window(pixels="BBBB"))
    assert not same("computer", CLICK, window(), window(label="Cancel"))
    assert not same("computer", CLICK, window(), window(clicked=True))


def test_a_follow_up_observation_counts_likewise() -> None:
    def follow_up(observation_id: str, ref: str, label: str = "OK") -> Outcome:
        details: Json = {
            "followUpObservation": {
                "observation": {
                    "kind": "window",
                    "observationId": observation_id,
                    "elements": [{"elementRef": ref, "label": label}],
                }
            }
        }
        return result(details, {"type": "text", "text": str(details)})

    assert same("computer", CLICK, follow_up("o1", "e1"), follow_up("o2", "e2"))
    assert not same("computer", CLICK, follow_up("o1", "e1"), follow_up("o1", "e1", "Cancel"))


def test_what_is_no_window_or_an_error_is_compared_in_full() -> None:
    assert not same("computer", CLICK, window(kind="screen"), window("o2", "e2", kind="screen"))
    failed = [Outcome(result=made.result, is_error=True) for made in (window(), window("o2", "e2"))]
    assert played("latest", "computer", CLICK, failed)[0] == ("warning", "generic_repeat", 10, 10)
    assert not [mark for mark in played("latest", "computer", CLICK, failed) if mark[0] == "block"]


# --- progress_card


def test_a_progress_card_is_its_arguments_and_steps() -> None:
    def saved(revision: int, completed: int = 1) -> Outcome:
        return text(f"saved revision {revision}", revision=revision, steps={"completed": completed, "total": 3})

    card = {"markdown": "# plan", "plan": ["a", "b", "c"]}
    assert same("progress_card", card, saved(1), saved(2))
    assert not same("progress_card", card, saved(1), saved(2, completed=2))
    failed = [Outcome(result=made.result, is_error=True) for made in (saved(1), saved(2))]
    assert not [mark for mark in played("latest", "progress_card", card, failed) if mark[0] == "block"]


def test_another_card_is_another_call() -> None:
    play = Play(policy())
    for number in range(25):
        came = text(f"revision {number}", revision=number, steps={"completed": 0, "total": 3})
        play.call("progress_card", {"markdown": f"# {number}"}, came)
    assert play.seen() == []


# --- memory_search


def hits(*order: str, score: float = 0.5, ms: int = 1, **more: Json) -> Outcome:
    results: Json = [{"path": path, "snippet": path.upper(), "score": score} for path in order]
    details: dict[str, Json] = {
        "results": results,
        "provider": "local",
        "debug": {"searchMs": ms, "toolMs": ms},
        **more,
    }
    return result(details, {"type": "text", "text": str(details)})


QUERY = {"query": "loops"}


def test_memory_search_leaves_scores_and_debug_out() -> None:
    assert same("memory_search", QUERY, hits("a", "b"), hits("a", "b", score=0.7, ms=9))
    assert played("2026.9", "memory_search", QUERY, [hits("a"), hits("a", ms=9)]) == ONLY_WARNED


def test_memory_search_keeps_the_order_of_hits_and_every_other_field() -> None:
    assert not same("memory_search", QUERY, hits("a", "b"), hits("b", "a"))
    assert not same("memory_search", QUERY, hits("a"), hits("a", partial=True))


def test_memory_search_errors_and_unavailable_results_are_compared_in_full() -> None:
    assert not same("memory_search", QUERY, text("off", disabled=True, debug=1), text("off", disabled=True, debug=2))
    failed = [Outcome(result=made.result, is_error=True) for made in (hits("a", ms=1), hits("a", ms=2))]
    assert not [mark for mark in played("latest", "memory_search", QUERY, failed) if mark[0] == "block"]


# --- rejections by argument validation


def test_a_rejected_call_is_recorded() -> None:
    play = Play(policy())
    for number in range(21):
        # a user message between keeps the identical-error guard out of it
        play.user(steering=number > 0)
        play.call("edit", {"path": 1}, rejected('Validation failed for tool "edit": path: must be string'))
    assert play.seen() == [("warning", "generic_repeat", 10, 10), ("block", "generic_repeat", 20, 20)]


@pytest.mark.parametrize("name", ["2026.6", "2026.9"])
def test_a_rejected_call_leaves_no_record_before_latest(name: str) -> None:
    play = Play(policy(name))
    play.call("edit", {"path": 1}, rejected("Validation failed for tool"), times=40)
    assert play.seen() == []


def failed_exec(pid: int) -> Outcome:
    return text(f"pid {pid} died", status="failed", exitCode=1, aggregated=f"pid {pid} died")


def test_the_exec_failure_tail_steps_over_rejections() -> None:
    play = Play(policy())
    for number in range(12):
        play.turn(("exec", {"command": f"run {number}"}, failed_exec(number)))
        if number == 5:
            play.call("exec", {}, rejected("Validation failed for tool"))
    # 12 failures are no warning by themselves: exec failures block at 20 and warn by arguments alone
    for number in range(12, 21):
        play.turn(("exec", {"command": f"run {number}"}, failed_exec(number)))
    assert play.seen() == [("block", "generic_repeat", 20, 21)]


def test_another_outcome_of_exec_still_ends_the_failure_tail() -> None:
    play = Play(policy())
    for number in range(12):
        play.turn(("exec", {"command": f"run {number}"}, failed_exec(number)))
        if number == 5:
            play.call("exec", {"command": "ls"}, text("fine", status="completed", exitCode=0, aggregated="fine"))
    for number in range(12, 21):
        play.turn(("exec", {"command": f"run {number}"}, failed_exec(number)))
    assert play.seen() == []


# --- identical errors

ENDED = ("error_streak_end", "identical_error", 3)


def test_three_identical_failures_in_a_row_end_the_run() -> None:
    play = Play(policy())
    play.call("read", {"path": "gone"}, error("ENOENT"), times=5)
    assert play.seen() == [(*ENDED, 2)]
    assert (play.marks[0].tool, play.marks[0].threshold, play.marks[0].level) == ("read", 3, "critical")


@pytest.mark.parametrize("name", ["2026.6", "2026.9"])
def test_there_is_no_such_guard_before_latest(name: str) -> None:
    play = Play(policy(name))
    play.call("read", {"path": "gone"}, error("ENOENT"), times=5)
    assert play.seen() == []


@pytest.mark.parametrize("enabled", [False, None, True])
def test_the_guard_is_always_on(enabled: bool | None) -> None:
    play = Play(policy(enabled=enabled))
    play.call("read", {"path": "gone"}, error("ENOENT"), times=3)
    assert play.seen() == [(*ENDED, 2)]


def test_what_is_recorded_as_an_error_is_a_failure() -> None:
    flagged = Outcome(result={"content": [{"type": "text", "text": "exit 1"}], "details": {"code": 1}}, is_error=True)
    for came in (flagged, rejected("Validation failed for tool"), error("thrown")):
        play = Play(policy())
        play.call("deploy", {"to": "x"}, came, times=3)
        assert play.seen() == [(*ENDED, 2)], came


def test_a_call_to_an_absent_tool_is_a_failure_of_the_requested_name() -> None:
    play = Play(policy())
    for _ in range(3):
        play.absent("frobnicate")
    assert play.seen() == [(*ENDED, 0)]
    assert (play.marks[0].tool, play.marks[0].call, play.marks[0].lossy) == ("frobnicate", None, True)
    stored = Play(policy())
    for _ in range(3):
        stored.absent("frobnicate", stored=True)
    assert (stored.seen(), stored.marks[0].call, stored.marks[0].lossy) == ([(*ENDED, 2)], 2, False)


@pytest.mark.parametrize(
    "between",
    [
        ("read", {"path": "gone"}, "found it"),
        ("read", {"path": "other"}, error("ENOENT")),
        ("list", {"path": "gone"}, error("ENOENT")),
        ("read", {"path": "gone"}, error("EACCES")),
        ("read", {"path": "gone"}, Fate.LOST),
    ],
    ids=["success", "other arguments", "other tool", "other error", "no outcome known"],
)
def test_something_else_starts_afresh(between: tuple[Any, ...]) -> None:
    play = Play(policy())
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    play.turn(between)
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    assert play.seen() == []
    play.call("read", {"path": "gone"}, error("ENOENT"))
    assert [mark[:3] for mark in play.seen()] == [ENDED]


def test_a_message_without_calls_leaves_the_streak() -> None:
    play = Play(policy())
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    play.say()
    play.call("read", {"path": "gone"}, error("ENOENT"))
    assert play.seen() == [(*ENDED, 2)]


def test_a_call_that_never_started_leaves_the_streak() -> None:
    play = Play(policy())
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    play.call("read", {"path": "gone"}, Fate.NOT_RUN)
    play.call("read", {"path": "gone"}, error("ENOENT"))
    assert play.seen() == [(*ENDED, 3)]


@pytest.mark.parametrize("steering", [True, False])
def test_a_user_message_between_errors_resets(steering: bool) -> None:
    play = Play(policy())
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    play.user(steering=steering)
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    assert play.seen() == []


def test_a_retry_after_compaction_between_errors_does_not_reset() -> None:
    play = Play(policy())
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    play.compact()
    play.user(retry=True)
    play.call("read", {"path": "gone"}, error("ENOENT"))
    assert play.seen()[-1] == (*ENDED, 2)


def test_a_veto_between_errors_leaves_the_streak() -> None:
    play = Play(policy())
    play.call("read", {"path": "loop"}, "x", times=20)
    play.call("read", {"path": "gone"}, error("ENOENT"), times=2)
    play.turn(("read", {"path": "loop"}, "x"), ("read", {"path": "gone"}, error("ENOENT")))
    play.call("read", {"path": "gone"}, error("ENOENT"))
    assert play.seen()[-2:] == [("block", "generic_repeat", 20, 22), (*ENDED, 23)]


def test_errors_count_in_the_models_call_order_whatever_came_back_first() -> None:
    gone = ("read", {"path": "gone"}, error("ENOENT"))
    found = ("read", {"path": "here"}, "x")
    play = Play(policy())
    play.turn(gone, found, gone, gone, order=[3, 2, 0, 1])
    assert play.seen() == []
    play.turn(gone)
    assert play.seen() == [(*ENDED, 1)]
    play = Play(policy())
    play.turn(found, gone, gone, gone, found, order=[4, 3, 2, 1, 0])
    assert (play.seen(), play.marks[0].call) == ([(*ENDED, 0)], 3)


def test_what_had_started_of_the_batch_still_finishes_and_nothing_after_it_is_reached() -> None:
    gone = ("read", {"path": "gone"}, error("ENOENT"))
    play = Play(policy())
    play.turn(gone, gone, gone, ("read", {"path": "here"}, "x"))
    state = play.engine.run("r")
    assert state.ended == "error_streak_end"
    assert all(slot.record and slot.record.settled for slot in (state.batch.slots if state.batch else []))
    play.call("read", {"path": "here"}, "x", times=40)
    assert play.seen() == [(*ENDED, 0)]


def test_runs_do_not_share_the_streak() -> None:
    play = Play(policy())
    for run in ("a", "b", "a", "b"):
        play.call("read", {"path": "gone"}, error("ENOENT"), run=run)
    assert play.seen() == []


def test_the_same_in_both_modes_but_observing_goes_on() -> None:
    from loopscan.modes import Mode

    play = Play(policy(), mode=Mode.OBSERVE)
    play.call("read", {"path": "gone"}, error("ENOENT"), times=5)
    assert play.seen() == [(*ENDED, 2)]
    assert play.engine.run("r").ended is None
