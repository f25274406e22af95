"""The guards: every field of their marks, their order of calls, and what observing and truncated records change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.engine.guards import CallOrder, PostCompactionGuard, UnknownToolGuard
from loopscan.events import AbsentCall, Call, Fate, Result, Turn, Where
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.modes import Mode

from .build import Play, error, policy, text

READ = ("read", {"path": "a"}, "x")
GONE = ("read", {"path": "gone"}, error("ENOENT"))


def plain(mark: Mark) -> Mark:
    """Return a mark without its sentence and digests."""
    return replace(mark, message="", signature=None, outcome=None)


def at(line: int) -> Where:
    return Where(line=line, entry=f"e{line}", time=float(line))


# --- marks, field by field


def test_every_field_of_a_guard_that_is_armed_and_of_its_abort() -> None:
    play = Play(policy("2026.9"))
    play.turn(READ)
    play.compact()
    play.turn(READ, READ)
    play.turn(READ)
    armed = Mark(
        run="r",
        kind=Kind.GUARD_ARMED,
        detector=Detector.COMPACTION_LOOP,
        level=Level.INFO,
        count=None,
        threshold=3,
        batch=1,
        where=at(3),
    )
    aborted = replace(
        armed,
        kind=Kind.COMPACTION_ABORT,
        level=Level.CRITICAL,
        count=3,
        batch=2,
        call=3,
        tool="read",
        tool_call_id="c6_0",
        where=at(8),
    )
    assert [plain(mark) for mark in play.marks] == [armed, aborted]
    assert (play.marks[0].signature, play.marks[0].outcome) == (None, None)
    assert "next 3 outcomes" in play.marks[0].message
    assert len(play.marks[1].signature or "") == len(play.marks[1].outcome or "") == 12
    for fact in ("read", "3 times", "same outcome", "aborted"):
        assert fact in play.marks[1].message
    state = play.engine.run("r")
    assert (state.ended, state.ended_at) == (Kind.COMPACTION_ABORT, at(8))


def test_every_field_of_an_abort_that_is_inferred() -> None:
    play = Play(policy("2026.9"))
    play.compact()
    play.turn(READ)
    play.turn(*[("read", {"path": "a"}, Fate.LOST)] * 3)
    play.end(unanswered=True)
    mark = play.marks[1]
    assert plain(mark) == Mark(
        run="r",
        kind=Kind.COMPACTION_ABORT,
        detector=Detector.COMPACTION_LOOP,
        level=Level.CRITICAL,
        count=3,
        threshold=3,
        batch=1,
        call=2,  # the call that would have completed the window, not the last of the batch
        tool="read",
        tool_call_id="c3_1",
        where=at(4),
        lossy=True,
    )
    assert (mark.outcome, len(mark.signature or "")) == (None, 12)


def test_every_field_of_the_end_by_identical_errors() -> None:
    play = Play(policy())
    play.turn(READ)
    play.turn(GONE, GONE, READ)
    play.turn(READ, GONE, GONE, GONE, READ)
    mark = play.marks[0]
    assert plain(mark) == Mark(
        run="r",
        kind=Kind.ERROR_STREAK_END,
        detector=Detector.IDENTICAL_ERROR,
        level=Level.CRITICAL,
        count=3,
        threshold=3,
        batch=2,
        call=7,
        tool="read",
        tool_call_id="c6_3",
        where=at(7),
    )
    assert len(mark.signature or "") == len(mark.outcome or "") == 12
    for fact in ("read", "3 times", "same arguments and the same error", "run ends"):
        assert fact in mark.message
    assert play.engine.run("r").ended_at == at(7)


def test_an_error_streak_of_a_tool_whose_calls_were_not_stored_does_not_speak_of_arguments() -> None:
    for stored in (True, False):
        play = Play(policy())
        for _ in range(3):
            play.absent("zap", stored=stored)
        assert ("same arguments" in play.marks[0].message) is stored
        assert ("not stored" in play.marks[0].message) is not stored


@pytest.mark.parametrize("stored", [True, False])
def test_every_field_of_a_stop_for_an_absent_tool(stored: bool) -> None:
    play = Play(policy("2026.9"))
    play.turn(READ)
    for number in range(11):
        absent = tuple(
            AbsentCall("Zap", "Tool Zap not found", id=f"a{number}_{place}", position=place if stored else None)
            for place in range(2)
        )
        play.marks += play.engine.feed(Turn("r", at(10 + number), absent=absent, stored=stored))
    (mark,) = play.marks
    assert plain(mark) == Mark(
        run="r",
        kind=Kind.UNKNOWN_TOOL_STOP,
        detector=Detector.UNKNOWN_TOOL_GUARD,
        level=Level.CRITICAL,
        count=11,
        threshold=10,
        batch=11 if stored else 1,
        call=21 if stored else None,
        tool="zap",
        tool_call_id="a10_0",
        where=at(20),
        blocked_calls=2,
    )
    assert (mark.signature is None, mark.outcome) == (not stored, None)
    for fact in ("zap", "11 messages", "does not exist", "taken out"):
        assert fact in mark.message
    state = play.engine.run("r")
    assert (state.ended, state.ended_at, state.calls) == (Kind.UNKNOWN_TOOL_STOP, at(20), 23 if stored else 1)


def test_every_field_of_a_stop_that_the_record_shows() -> None:
    play = Play(policy("2026.9"))
    play.turn(READ)
    play.rewritten(" ZAP ")
    (mark,) = play.marks
    assert plain(mark) == Mark(
        run="r",
        kind=Kind.UNKNOWN_TOOL_STOP,
        detector=Detector.UNKNOWN_TOOL_GUARD,
        level=Level.CRITICAL,
        count=1,
        threshold=10,
        batch=1,
        tool="zap",
        where=at(3),
    )
    assert (mark.signature, mark.outcome) == (None, None)
    assert "zap" in mark.message
    assert "messages" not in mark.message
    assert play.engine.run("r").ended is Kind.UNKNOWN_TOOL_STOP


# --- messages that are more than one call


def zap(position: int | None, *, tool: str = "zap", why: str = "Tool zap not found") -> AbsentCall:
    return AbsentCall(tool, why, id=f"at {position}", position=position)


def test_calls_to_absent_tools_have_a_place_and_a_number_where_they_are_stored() -> None:
    play = Play(policy())
    calls = (Call("read", {"path": "gone"}, "first"), Call("read", {"path": "gone"}, "second"))
    for number in range(3):
        absent = (zap(None), zap(3), zap(1)) if number == 0 else ()
        play.marks += play.engine.feed(Turn("r", at(number), calls, absent=absent))
        batch = play.engine.run("r").batch
        assert batch is not None
        expected = (
            [("first", 0), ("at 1", 1), ("second", 2), ("at 3", 3), ("at None", None)]
            if number == 0
            else [("first", 2 * number + 2), ("second", 2 * number + 3)]
        )
        assert [(slot.call.id, slot.number) for slot in batch.slots] == expected
    for index in (1, 0):
        play.marks += play.engine.feed(Result("r", at(9), index, error("ENOENT")))
    assert play.marks == []
    play.marks += play.engine.feed(Turn("r", at(10), calls[:1]))
    play.marks += play.engine.feed(Result("r", at(11), 0, error("ENOENT")))
    assert [(mark.kind, mark.batch, mark.call, mark.tool_call_id) for mark in play.marks] == [
        ("error_streak_end", 3, 8, "first")
    ]


def test_calls_beside_an_absent_tool_are_recorded_with_their_own_outcomes() -> None:
    play = Play(policy("2026.6", historySize=100))
    for number in range(21):
        calls = (Call("ls", {"n": number}), Call("read", {}))
        play.marks += play.engine.feed(Turn("r", at(number), calls, absent=(zap(1),)))
        for index, body in ((1, "x"), (0, f"{number}")):
            play.marks += play.engine.feed(Result("r", at(number), index, text(body)))
    assert [(mark.kind, mark.count, mark.tool, mark.call) for mark in play.marks] == [
        ("warning", 10, "read", 32),
        ("block", 20, "read", 62),
    ]


def test_absent_and_existing_tools_of_one_message_fail_in_the_order_of_the_calls() -> None:
    def ends(*absent: AbsentCall) -> list[Any]:
        play = Play(policy())
        for number in range(2):
            play.marks += play.engine.feed(Turn("r", at(number), absent=(zap(0),)))
        play.marks += play.engine.feed(Turn("r", at(5), (Call("read", {}),), absent=absent))
        play.marks += play.engine.feed(Result("r", at(6), 0, text("x")))
        return [(mark.kind, mark.batch, mark.call, mark.lossy) for mark in play.marks]

    assert ends(zap(0)) == [("error_streak_end", 2, 2, False)]
    assert ends(zap(1)) == []  # the success of the call before it came between
    assert ends(zap(0, why="Tool zap is away")) == []
    assert ends(zap(0, tool="zop")) == []


def test_a_model_call_that_failed_is_no_message_to_start_afresh_after() -> None:
    for failed, marks in ((True, 1), (False, 0)):
        play = Play(policy("2026.9"))
        for number in range(11):
            play.absent("zap", stored=True)
            if number == 4:
                play.marks += play.engine.feed(Turn("r", at(99), failed=failed))
        assert len(play.marks) == marks


@pytest.mark.parametrize("name", ["2026.6", "2026.9", "latest"])
def test_what_came_of_a_call_that_did_not_run_or_was_vetoed_live_is_not_looked_at(name: str) -> None:
    for fate in (Fate.NOT_RUN, Fate.VETOED, Fate.LOST):
        play = Play(policy(name))
        play.compact()
        for number in range(3):
            play.marks += play.engine.feed(Turn("r", at(number), (Call("read", {}, fate=fate),)))
            play.marks += play.engine.feed(Result("r", at(number), 0, error("x")))
        assert [mark.kind for mark in play.marks] == ["guard_armed"]


def test_a_call_vetoed_in_a_batch_of_one_by_one_admission_leaves_the_others_alone() -> None:
    play = Play(policy("2026.6"))
    play.call(*READ, times=20)
    play.compact()
    other = ("ls", {}, "y")
    play.turn(other, READ, other, READ, other)
    assert [(mark.kind, mark.call, mark.batch) for mark in play.marks[1:]] == [
        ("guard_armed", None, 20),
        ("block", 21, 20),
        ("block", 23, 20),
        ("compaction_abort", 24, 20),
    ]


def test_a_call_that_never_started_stands_in_nobodys_way() -> None:
    idle = ("read", {"path": "gone"}, Fate.NOT_RUN)
    play = Play(policy())
    play.turn(GONE, idle, GONE, order=[2, 0])
    play.turn(GONE)
    assert [(mark.kind, mark.batch) for mark in play.marks] == [("error_streak_end", 1)]
    play = Play(policy())
    for _ in range(11):
        play.turn(idle, READ, idle)
    assert [(mark.kind, mark.count, mark.batch, mark.call) for mark in play.marks] == [("warning", 10, 10, 31)]


def test_a_lost_call_ends_a_streak_in_its_place() -> None:
    lost = ("read", {"path": "gone"}, Fate.LOST)
    for batch, marks in (([GONE, GONE, lost, GONE], 0), ([lost, GONE, GONE, GONE], 1)):
        play = Play(policy())
        play.turn(*batch)
        assert len(play.marks) == marks


@pytest.mark.parametrize("name", ["2026.6", "2026.9"])
def test_where_detection_is_off_calls_run_and_their_outcomes_count(name: str) -> None:
    play = Play(policy(name, enabled=None))
    play.turn(("read", {"path": "a"}, Fate.LOST))
    play.compact()
    play.call(*READ, times=3)
    assert [mark.kind for mark in play.marks] == ["guard_armed", "compaction_abort"]


def test_what_a_vetoed_call_came_to_is_not_looked_at() -> None:
    for vetoed in (READ, ("read", {"path": "a"}, Fate.LOST)):
        play = Play(policy("2026.9"))
        play.call(*READ, times=20)
        play.compact()
        play.turn(*[vetoed] * 3)
        assert [mark.kind for mark in play.marks] == ["warning", "guard_armed", "block"]
        play.end(unanswered=vetoed is not READ)
        assert len(play.marks) == 3
        play.call("ls", {}, "y", times=3)
        assert play.marks[-1].kind == "compaction_abort"


def test_an_abort_is_inferred_from_calls_without_result_alone() -> None:
    lost = ("read", {"path": "a"}, Fate.LOST)
    play = Play(policy("2026.9"))
    play.end(unanswered=True)
    play.compact()
    play.turn(READ, lost)
    play.end(unanswered=True)
    assert [mark.kind for mark in play.marks] == ["guard_armed"]
    play.turn(lost, lost)
    play.rewritten("zap")
    play.end(unanswered=True)
    assert [mark.kind for mark in play.marks] == ["guard_armed", "unknown_tool_stop"]


def test_a_batch_with_absent_tools_and_lost_calls_is_inferred_from_the_lost_ones() -> None:
    lost = Call("read", {"path": "a"}, fate=Fate.LOST)
    play = Play(policy("2026.9"))
    play.compact()
    play.marks += play.engine.feed(Turn("r", at(5), (lost, lost, lost), absent=(zap(1),)))
    play.end(unanswered=True)
    assert [(mark.kind, mark.call) for mark in play.marks] == [("guard_armed", None), ("compaction_abort", 3)]


def test_an_end_is_marked_once_whatever_comes_back_after_it() -> None:
    other = ("read", {"path": "other"}, error("ENOENT"))
    for order in (None, [5, 4, 3, 2, 1, 0]):
        play = Play(policy())
        play.turn(*[GONE] * 3, *[other] * 3, order=order)
        assert [(mark.kind, mark.call) for mark in play.marks] == [("error_streak_end", 2)]
    play = Play(policy())
    absent = (*[zap(place) for place in range(3)], *[zap(place, tool="zop") for place in range(3, 6)])
    play.marks += play.engine.feed(Turn("r", at(1), absent=absent))
    assert [(mark.kind, mark.call) for mark in play.marks] == [("error_streak_end", 2)]
    play = Play(policy())
    play.call(*GONE, times=2)
    play.compact()
    play.turn(GONE, GONE, GONE)
    assert [mark.kind for mark in play.marks] == ["guard_armed", "error_streak_end"]


def test_an_absent_tool_of_a_vetoed_batch_leaves_the_streak_of_errors() -> None:
    play = Play(policy())
    play.call(*READ, times=20)
    for number in range(2):
        play.marks += play.engine.feed(Turn("r", at(number), absent=(zap(0),)))
    play.marks += play.engine.feed(Turn("r", at(2), (Call("read", {"path": "a"}),), absent=(zap(0),)))
    assert [mark.kind for mark in play.marks] == ["warning", "block"]
    play.marks += play.engine.feed(Turn("r", at(3), absent=(zap(0),)))
    assert play.marks[-1].kind == "error_streak_end"


def test_a_thrown_error_is_a_failure_whether_or_not_it_is_flagged() -> None:
    play = Play(policy())
    play.call("read", {}, replace(error("x"), is_error=False), times=3)
    assert [mark.kind for mark in play.marks] == ["error_streak_end"]


@pytest.mark.parametrize("from_hook", [True, False, None])
def test_later_rulesets_arm_on_every_compaction_in_a_run(from_hook: bool | None) -> None:
    for name in ("2026.9", "latest"):
        play = Play(policy(name))
        play.compact(from_hook=from_hook)
        play.compact(run=None, from_hook=from_hook)
        assert [(mark.kind, mark.run) for mark in play.marks] == [("guard_armed", "r")]


def test_blocks_of_a_run_are_counted_in_every_ruleset() -> None:
    for name in ("2026.6", "2026.9"):
        play = Play(policy(name))
        play.call(*READ, times=22)
        assert play.engine.run("r").blocks == 2


# --- what has ended stays ended


@pytest.mark.parametrize("name", ["2026.9", "latest"])
def test_nothing_more_is_marked_in_a_run_that_ended(name: str) -> None:
    play = Play(policy(name))
    play.turn(READ)
    play.rewritten("zap")
    before = list(play.marks)
    play.rewritten("zap")
    play.compact()
    play.absent("zap")
    play.call(*GONE, times=4)
    play.turn(("read", {"path": "a"}, Fate.LOST))
    play.end(unanswered=True)
    assert play.marks == before
    assert play.engine.run("r").batches == 1


def test_a_result_of_a_batch_that_was_taken_out_or_never_was_changes_nothing() -> None:
    play = Play(policy("2026.9"))
    assert play.engine.feed(Result("r", at(1), 0, text("x"))) == []
    play.turn(READ)
    assert play.engine.feed(Result("r", at(2), 1, text("x"))) == []
    assert play.engine.feed(Result("r", at(2), 7, text("x"))) == []


def test_observing_the_guards_ends_nothing() -> None:
    play = Play(policy("2026.9"), mode=Mode.OBSERVE)
    play.compact()
    play.call(*READ, times=4)
    for _ in range(12):
        play.absent("zap", stored=True)
    assert [(mark.kind, mark.count, mark.blocked_calls) for mark in play.marks[1:]] == [
        ("compaction_abort", 3, 0),
        ("unknown_tool_stop", 11, 0),
        ("unknown_tool_stop", 12, 0),
    ]
    assert play.engine.run("r").ended is None


# --- lossy


@pytest.mark.parametrize("is_lossy", [True, False])
def test_an_abort_and_an_error_streak_are_lossy_if_their_last_outcome_is(is_lossy: bool) -> None:
    play = Play(policy("2026.9"))
    play.compact()
    play.call(*READ, times=2)
    play.turn(("read", {"path": "a"}, replace(text("x"), lossy=is_lossy)))
    assert (play.marks[1].kind, play.marks[1].lossy) == ("compaction_abort", is_lossy)
    play = Play(policy())
    play.call(*GONE, times=2)
    play.turn(("read", {"path": "gone"}, replace(error("ENOENT"), lossy=is_lossy)))
    assert (play.marks[0].kind, play.marks[0].lossy) == ("error_streak_end", is_lossy)


# --- what the post-compaction guard looks at


def test_outcomes_without_identity_and_rejections_are_no_part_of_the_window() -> None:
    denied = text("no", status="blocked", deniedReason="tool-loop")
    for between, tool in ((denied, "read"), ((Fate.REJECTED, error("Validation failed for tool")), "edit")):
        play = Play(policy("2026.9"))
        play.compact()
        play.call(*READ, times=2)
        play.turn((tool, {"path": "a"}, between))
        assert len(play.marks) == 1
        play.turn(READ)
        assert [mark.kind for mark in play.marks] == ["guard_armed", "compaction_abort"]


def test_a_guard_that_looked_is_not_armed_until_the_next_compaction() -> None:
    guard = PostCompactionGuard(2)
    assert not guard.armed
    assert not guard.observe(b"a", b"x")
    assert not guard.would_complete([b"a", b"a"])
    guard.arm()
    assert guard.armed
    assert not guard.would_complete([b"a"])
    assert guard.would_complete([b"a", b"a", b"a"])
    assert [guard.observe(b"a", b"x"), guard.armed, guard.observe(b"a", b"x"), guard.armed] == [
        *(False, True, True, False)
    ]
    assert not guard.observe(b"a", b"x")
    for other in ((b"b", b"x"), (b"a", b"y")):
        guard.arm()
        assert [guard.observe(b"a", b"x"), guard.observe(*other)] == [False, False]
    guard.arm()
    assert [guard.observe(b"b", b"y"), guard.observe(b"b", b"y")] == [False, True]


def test_a_window_of_one_and_a_batch_of_one_are_enough_to_infer_an_abort() -> None:
    guard = PostCompactionGuard(1)
    guard.arm()
    assert guard.would_complete([b"a"])
    assert not guard.would_complete([])


@given(st.lists(st.sampled_from([None, frozenset("a"), frozenset("b"), frozenset("ab")]), max_size=12))
def test_attempts_count_messages_in_a_row_that_name_one_tool_alone(messages: list[frozenset[str] | None]) -> None:
    guard = UnknownToolGuard()
    for number, tools in enumerate(messages):
        if tools is None:
            guard.reset()
            continue
        row = 0
        while len(tools) == 1 and row <= number and messages[number - row] == tools:
            row += 1
        assert guard.attempt(set(tools)) == row


@given(st.lists(st.sampled_from(["found", error("ENOENT"), error("EACCES")]), max_size=12))
def test_a_run_ends_at_the_first_three_identical_failures_in_a_row(came: list[Any]) -> None:
    play = Play(policy())
    for outcome in came:
        play.call("read", {"path": "a"}, outcome)
    ends = [at for at in range(2, len(came)) if came[at] != "found" and came[at - 2] == came[at - 1] == came[at]]
    assert [(mark.count, mark.batch) for mark in play.marks if mark.kind == "error_streak_end"] == [
        (3, at) for at in ends[:1]
    ]


@given(st.permutations(range(5)), st.data())
def test_outcomes_come_out_once_each_in_the_order_of_the_calls(order: list[int], data: st.DataObject) -> None:
    calls = CallOrder(5)
    came: list[Any] = []
    for place, slot in enumerate(order):
        came += calls.put(slot, (b"s", bytes([slot])))
        again = data.draw(st.sampled_from(order[: place + 1]))
        assert calls.put(again, None) == []  # what is known stays
    assert came == [(slot, (b"s", bytes([slot]))) for slot in range(5)]


def test_an_order_without_calls_gives_nothing_back() -> None:
    assert CallOrder(0).put(0, None) == []
