"""Consequences, guards, modes and scopes; the detectors themselves are proved by the conformance vectors."""

from __future__ import annotations

import pytest

from loopscan.events import Fate, Outcome
from loopscan.marks import Level
from loopscan.modes import Arm, Mode, ScopeRule

from .build import Play, error, policy, text

READ = ("read", {"path": "a"}, "x")
LS = ("ls", {"path": "a"}, "y")


# --- consequences


def test_2026_6_vetoes_one_call_and_the_run_goes_on() -> None:
    play = Play(policy("2026.6"))
    play.call(*READ, times=20)
    play.turn(LS, READ, LS)
    play.turn(READ)
    blocks = [mark for mark in play.marks if mark.kind == "block"]
    assert [(mark.count, mark.batch, mark.call, mark.blocked_calls) for mark in blocks] == [
        (20, 20, 21, 1),
        (20, 21, 23, 1),
    ]
    assert play.engine.run("r").ended is None


def test_2026_9_vetoes_the_batch_and_the_second_time_ends_the_run() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=20)
    play.turn(LS, READ, LS)
    play.turn(LS)
    play.turn(READ)
    play.turn(LS)
    marks = [mark for mark in play.marks if mark.kind != "warning"]
    assert [(mark.kind, mark.count, mark.batch, mark.call, mark.blocked_calls) for mark in marks] == [
        ("block", 20, 20, 21, 3),
        ("block", 21, 22, 24, 1),
        ("run_end", 21, 22, 24, 0),
    ]
    state = play.engine.run("r")
    assert (state.ended, state.batches, state.calls) == ("run_end", 23, 25)


def test_a_new_run_has_a_fresh_allowance() -> None:
    play = Play(policy("2026.9"), scope=ScopeRule.SESSION)
    play.call(*READ, times=21, run="a")
    play.call(*READ, times=2, run="b")
    assert [(mark.run, mark.kind) for mark in play.marks if mark.kind != "warning"] == [
        ("a", "block"),
        ("b", "block"),
        ("b", "block"),
        ("b", "run_end"),
    ]


def test_outcomes_of_vetoed_calls_are_ignored() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=20)
    play.turn(("read", {"path": "a"}, "something new"))
    play.turn(READ)
    assert [mark.count for mark in play.marks if mark.kind == "block"] == [20, 21]


def test_a_call_that_the_live_engine_vetoed_is_judged_again_and_has_no_outcome_if_let_through() -> None:
    play = Play(policy("2026.6", criticalThreshold=25))
    play.call(*READ, times=20)
    play.call("read", {"path": "a"}, Fate.VETOED, times=3)
    play.call(*READ, times=6)
    assert [mark.count for mark in play.marks if mark.kind == "block"] == [25]


def test_calls_that_did_not_run_leave_no_record() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=9)
    play.call("read", {"path": "a"}, Fate.NOT_RUN, times=5)
    play.call(*READ, times=2)
    assert [(mark.kind, mark.count, mark.batch) for mark in play.marks] == [("warning", 10, 15)]


def test_calls_without_outcome_are_records_all_the_same() -> None:
    play = Play(policy("2026.9"))
    play.call("read", {"path": "a"}, Fate.LOST, times=25)
    assert [(mark.kind, mark.count) for mark in play.marks] == [("warning", 10), ("warning", 20)]


def test_suppressed_warnings_are_counted_and_are_no_marks() -> None:
    play = Play(policy("2026.6", warningThreshold=5, criticalThreshold=12))
    play.call(*READ, times=12)
    assert play.seen() == [("warning", "generic_repeat", 10, 10)]
    assert play.engine.run("r").suppressed_warnings == 6


# --- modes and scopes


def test_observing_marks_every_verdict_and_changes_nothing() -> None:
    play = Play(policy("2026.9"), mode=Mode.OBSERVE)
    play.call(*READ, times=24)
    assert [(mark.kind, mark.count) for mark in play.marks] == [
        ("warning", 10),
        ("block", 20),
        ("block", 21),
        ("run_end", 21),
        ("block", 22),
        ("block", 23),
    ]
    state = play.engine.run("r")
    assert (state.ended, state.batches, sum(mark.blocked_calls for mark in play.marks)) == (None, 24, 0)


def test_runs_are_scopes_of_their_own_unless_the_session_is_one() -> None:
    for scope, marks in ((ScopeRule.RUN, 0), (ScopeRule.SESSION, 1)):
        play = Play(policy("2026.9"), scope=scope)
        for number in range(6):
            play.call(*READ, times=2, run=f"run {number}")
        assert len(play.marks) == marks


def test_the_history_is_shared_by_all_runs() -> None:
    play = Play(policy("2026.9"))
    for _ in range(15):
        play.call(*READ, run="a")
        play.call("ls", {"path": "b"}, "z", times=3, run=f"other {play.line}")
    assert play.seen() == []


@pytest.mark.parametrize("enabled", [None, False])
def test_detectors_are_off_unless_enabled(enabled: bool | None) -> None:
    play = Play(policy("2026.9", enabled=enabled))
    play.call(*READ, times=40)
    assert play.seen() == []


# --- the unknown-tool guard


@pytest.mark.parametrize("enabled", [True, None, False])
def test_the_eleventh_message_in_a_row_for_one_absent_tool_is_taken_out(enabled: bool | None) -> None:
    play = Play(policy("2026.9", enabled=enabled))
    for _ in range(12):
        play.absent("frobnicate", stored=True)
    assert play.seen() == [("unknown_tool_stop", "unknown_tool_guard", 11, 10)]
    mark = play.marks[0]
    assert (mark.threshold, mark.call, mark.blocked_calls, mark.level) == (10, 10, 1, Level.CRITICAL)
    assert play.engine.run("r").ended == "unknown_tool_stop"


def test_its_threshold_is_configurable_in_2026_6() -> None:
    play = Play(policy("2026.6", unknownToolThreshold=3))
    for _ in range(4):
        play.absent("frobnicate")
    assert play.seen() == [("unknown_tool_stop", "unknown_tool_guard", 4, 0)]


@pytest.mark.parametrize("between", ["existing tool", "no call", "other tool", "two tools", "mixed message"])
def test_anything_else_starts_afresh(between: str) -> None:
    play = Play(policy("2026.9"))
    for _ in range(10):
        play.absent("frobnicate", stored=True)
    match between:
        case "existing tool":
            play.turn(READ)
        case "no call":
            play.say()
        case "other tool":
            play.absent("wibble", stored=True)
        case "two tools":
            play.absent("frobnicate", "wibble", stored=True)
        case "mixed message":
            play.turn(READ)
    for _ in range(10):
        play.absent("frobnicate", stored=True)
    assert play.seen() == []
    play.absent("frobnicate", stored=True)
    assert [mark.count for mark in play.marks] == [11]


def test_several_calls_of_one_message_count_once() -> None:
    play = Play(policy("2026.9"))
    for _ in range(6):
        play.absent("frobnicate", "frobnicate", stored=True)
    assert play.seen() == []


def test_orphan_results_are_no_batches() -> None:
    play = Play(policy("2026.9"))
    play.turn(READ)
    for _ in range(10):
        play.absent("frobnicate")
    play.rewritten("frobnicate")
    assert play.seen() == [("unknown_tool_stop", "unknown_tool_guard", 11, 1)]
    assert play.engine.run("r").calls == 1


def test_a_recorded_stop_makes_the_mark_whatever_the_count() -> None:
    play = Play(policy("2026.9"))
    play.absent("frobnicate")
    play.rewritten("frobnicate")
    assert play.seen() == [("unknown_tool_stop", "unknown_tool_guard", 2, 0)]


def test_absent_tools_never_enter_the_history() -> None:
    play = Play(policy("2026.6", historySize=5, warningThreshold=3, criticalThreshold=4))
    for _ in range(4):
        play.turn(READ)
        play.absent("frobnicate", "wibble", stored=True)
        play.absent("frobnicate", "wibble")
    play.turn(READ)
    assert [(mark.kind, mark.count) for mark in play.marks] == [("block", 4)]


# --- the post-compaction guard

ARMED = ("guard_armed", "compaction_loop_persisted", None)
ABORTED = ("compaction_abort", "compaction_loop_persisted", 3)


def test_three_alike_after_a_compaction_abort_the_run() -> None:
    play = Play(policy("2026.9"))
    play.turn(LS)
    play.compact()
    play.call(*READ, times=5)
    assert play.seen() == [(*ARMED, 1), (*ABORTED, 3)]
    armed, aborted = play.marks
    assert (armed.level, armed.threshold, armed.call) == (Level.INFO, 3, None)
    assert (aborted.level, aborted.threshold, aborted.call, aborted.tool, aborted.lossy) == (
        "critical",
        3,
        3,
        "read",
        False,
    )


def test_the_guard_looks_at_the_first_three_outcomes_alone() -> None:
    play = Play(policy("2026.9"))
    play.compact()
    play.turn(LS)
    play.call(*READ, times=4)
    assert play.seen() == [(*ARMED, 0)]


def test_each_compaction_arms_afresh() -> None:
    play = Play(policy("2026.9"))
    play.compact()
    play.call(*READ, times=2)
    play.compact()
    play.call(*READ, times=2)
    assert play.seen() == [(*ARMED, 0), (*ARMED, 2)]
    play.turn(READ)
    assert play.seen()[-1] == (*ABORTED, 4)


def test_the_guard_belongs_to_its_run() -> None:
    play = Play(policy("2026.9"))
    play.compact(run="a")
    play.call(*READ, times=3, run="b")
    assert play.seen() == [(*ARMED, 0)]


@pytest.mark.parametrize(("enabled", "marks"), [(True, 2), (None, 2), (False, 0)])
def test_enabled_false_alone_disarms_it(enabled: bool | None, marks: int) -> None:
    play = Play(policy("2026.9", enabled=enabled))
    play.compact()
    play.call(*READ, times=3)
    assert len(play.marks) == marks


def test_a_compaction_between_runs_does_not_arm() -> None:
    play = Play(policy("2026.9"))
    play.compact(in_run=False)
    play.call(*READ, times=3)
    assert play.seen() == []


def test_2026_6_arms_on_its_own_recovery_alone() -> None:
    for arm, from_hook, armed in (
        (Arm.AUTO, True, True),
        (Arm.AUTO, False, False),
        (Arm.AUTO, None, False),
        (Arm.ALWAYS, False, True),
        (Arm.NEVER, True, False),
    ):
        play = Play(policy("2026.6"), arm=arm)
        play.compact(from_hook=from_hook)
        assert bool(play.marks) is armed, (arm, from_hook)


def test_the_window_is_configurable_in_2026_6() -> None:
    play = Play(policy("2026.6", postCompactionGuard={"windowSize": 2}))
    play.compact()
    play.call(*READ, times=2)
    assert play.marks[-1].count == 2
    assert play.seen()[-1] == ("compaction_abort", "compaction_loop_persisted", 2, 1)


@pytest.mark.parametrize(
    ("before", "batch", "inferred"),
    [
        (2, [READ[:2]], True),
        (0, [READ[:2]] * 3, True),
        (1, [READ[:2]] * 2, True),
        (1, [READ[:2]], False),
        (2, [LS[:2]], False),
        (0, [READ[:2], READ[:2], LS[:2]], False),
    ],
)
def test_an_abort_that_stored_nothing_is_inferred_from_the_unanswered_batch(
    before: int, batch: list[tuple[str, object]], inferred: bool
) -> None:
    play = Play(policy("2026.9"))
    play.compact()
    play.call(*READ, times=before)
    play.turn(*((*call, Fate.LOST) for call in batch))
    play.end(unanswered=True)
    assert play.seen()[1:] == ([(*ABORTED, before)] if inferred else [])
    if inferred:
        assert (play.marks[1].lossy, play.marks[1].call) == (True, 2)


def test_nothing_is_inferred_from_a_differing_window_or_an_explained_end() -> None:
    play = Play(policy("2026.9"))
    play.compact()
    play.turn(READ)
    play.turn(("read", {"path": "a"}, "changed"))
    play.turn(("read", {"path": "a"}, Fate.LOST))
    play.end(unanswered=True)
    assert play.seen() == [(*ARMED, 0)]
    play = Play(policy("2026.9"))
    play.compact()
    play.call(*READ, times=2)
    play.turn(("read", {"path": "a"}, Fate.LOST))
    play.end()
    assert play.seen() == [(*ARMED, 0)]


# --- what a mark says


def test_marks_of_one_loop_share_their_digests() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=21)
    play.call("read", {"path": "b"}, "x", times=11)
    first, second, third = (mark for mark in play.marks if mark.kind != "run_end")
    assert (first.signature, first.outcome) == (second.signature, second.outcome)
    assert first.signature != third.signature
    assert first.outcome == third.outcome
    assert first.signature is not None
    assert len(first.signature) == 12


def test_a_mark_points_at_the_message_that_asked() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=11)
    (mark,) = play.marks
    assert mark.where.entry is not None
    assert mark.tool_call_id == f"c{mark.where.line - 1}_0"
    assert "11" not in mark.message
    assert "10 times" in mark.message


def test_a_ping_pong_mark_names_both_tools() -> None:
    play = Play(policy("2026.9"))
    for _ in range(12):
        play.turn(READ)
        play.turn(LS)
    mark = play.marks[0]
    assert (mark.detector, mark.count, mark.batch, mark.tool, mark.paired_tool) == ("ping_pong", 10, 9, "ls", "read")


@pytest.mark.parametrize("lossy", [True, False])
def test_verdicts_on_truncated_details_are_lossy(lossy: bool) -> None:
    came = Outcome(result={"content": [], "details": {"persistedDetailsTruncated": True}}, lossy=lossy)
    play = Play(policy("2026.9"))
    play.call("fetch", {}, came, times=21)
    warning, block = play.marks[:2]
    assert (warning.kind, block.kind) == ("warning", "block")
    assert block.lossy is lossy
    assert warning.lossy is False  # it counts arguments, not outcomes
    play.call("fetch", {"other": 1}, "y", run="s", times=21)
    assert [mark.lossy for mark in play.marks if mark.run == "s"] == [False, False]


def test_a_ping_pong_on_truncated_details_is_lossy() -> None:
    came = Outcome(result={"content": [], "details": {"persistedDetailsTruncated": True}}, lossy=True)
    play = Play(policy("2026.9"))
    for _ in range(10):
        play.turn(READ)
        play.turn(("ls", {}, came))
    assert [(mark.kind, mark.count, mark.lossy) for mark in play.marks] == [
        ("warning", 10, False),
        ("block", 20, True),
    ]


def test_errors_of_the_history_are_results_like_any_other() -> None:
    play = Play(policy("2026.9"))
    play.call("read", {"path": "gone"}, error("ENOENT"), times=21)
    assert [(mark.kind, mark.count) for mark in play.marks[:2]] == [("warning", 10), ("block", 20)]


def test_a_late_answer_after_the_end_changes_nothing() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=25)
    before = list(play.marks)
    play.turn(("read", {"path": "a"}, text("new")))
    play.end()
    assert play.marks == before


def test_calls_before_the_arming_are_no_part_of_its_window() -> None:
    play = Play(policy("2026.9"))
    play.turn(*(("read", {"path": "a"}, Fate.LOST) for _ in range(3)))
    play.compact()
    play.end(unanswered=True)
    assert play.seen() == [(*ARMED, 1)]


def test_a_recorded_run_id_is_never_a_key_of_the_readers_own() -> None:
    from loopscan.events import UserMessage, Where

    play = Play(policy("2026.9"))
    play.call(*READ, times=10, run="#1")
    play.engine.feed(UserMessage("other", Where(), run_id="#1"))
    play.call(*READ, run="other")
    assert play.marks == []


def test_a_run_that_is_over_keeps_no_arguments() -> None:
    play = Play(policy("2026.9"))
    play.turn(READ)
    play.end()
    assert play.engine.run("r").batch is None
