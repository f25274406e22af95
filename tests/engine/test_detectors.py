"""What a verdict carries besides its place and count, which the vectors prove: threshold, facts, lossy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.engine.detectors import Warnings
from loopscan.engine.history import History
from loopscan.engine.outcomes import Judged
from loopscan.engine.records import Record
from loopscan.engine.streaks import Agreement, Churn, ExecTail, UnknownTool
from loopscan.events import Call, Fate, Outcome, Result, Turn, UnknownToolStopped, UserMessage, Where
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.modes import Arm, Mode, ScopeRule

from .build import Play, error, policy, text

READ = ("read", {"path": "a"}, "x")
LS = ("ls", {"path": "a"}, "y")
POLL = ("process", {"action": "poll"}, "running")
ZAP = error("unknown tool: zap")
#: Thresholds that are all different, so that none can stand for another.
APART = {
    "warningThreshold": 12,
    "criticalThreshold": 15,
    "globalCircuitBreakerThreshold": 17,
    "unknownToolThreshold": 4,
}
GENERIC_OFF = {"detectors": {"genericRepeat": False}}


def lossy(body: str = "part", **details: Any) -> Outcome:
    return replace(text(body, **details), lossy=True)


def died(pid: int, *, is_lossy: bool = False) -> Outcome:
    return replace(text("", status="failed", exitCode=1, aggregated=f"pid {pid} died"), lossy=is_lossy)


def plain(mark: Mark) -> Mark:
    """Return a mark without what other tests look at: its sentence and digests."""
    return replace(mark, message="", signature=None, outcome=None)


# --- thresholds and sentences


@pytest.mark.parametrize(
    ("name", "fields", "calls", "kind", "detector", "count", "threshold", "facts"),
    [
        ("2026.6", APART, [READ] * 13, "warning", "generic_repeat", 12, 12, ("read", "same arguments", "warns")),
        ("2026.6", APART, [READ] * 16, "block", "generic_repeat", 15, 15, ("read", "same outcome", "blocks")),
        ("2026.6", APART, [POLL] * 13, "warning", "known_poll_no_progress", 12, 12, ("process", "polled", "warns")),
        ("2026.6", APART, [POLL] * 16, "block", "known_poll_no_progress", 15, 15, ("process", "polled", "blocks")),
        ("2026.6", APART, [READ, LS] * 6, "warning", "ping_pong", 12, 12, ("ls and read alternated", "warns")),
        ("2026.6", APART, [READ, LS] * 8, "block", "ping_pong", 15, 15, ("read and ls alternated", "blocks")),
        (
            "2026.6",
            APART | GENERIC_OFF,
            [READ] * 18,
            "block",
            "global_circuit_breaker",
            17,
            17,
            ("read", "no progress", "blocks"),
        ),
        (
            "2026.6",
            APART,
            [("call", {"n": n}, ZAP) for n in range(5)],
            "block",
            "unknown_tool_repeat",
            4,
            4,
            ("call", "does not exist", "blocks"),
        ),
        (
            "2026.9",
            {},
            [("find", {"q": n % 3}, error("none")) for n in range(11)],
            "warning",
            "argument_churn",
            10,
            10,
            ("find", "no progress", "same few arguments", "warns"),
        ),
    ],
)
def test_a_mark_names_its_threshold_and_says_in_a_sentence_what_happened(
    name: str, fields: Any, calls: Any, kind: str, detector: str, count: int, threshold: int, facts: tuple[str, ...]
) -> None:
    play = Play(policy(name, **fields))
    for call in calls:
        play.turn(call)
    mark = next(mark for mark in play.marks if (mark.kind, mark.detector) == (kind, detector))
    assert (mark.count, mark.threshold) == (count, threshold)
    assert mark.level == ("critical" if kind == "block" else "warning")
    for fact in (*facts, str(count), f"from {threshold} on"):
        assert fact in mark.message


def test_the_first_call_of_all_has_no_count() -> None:
    for times in (1, 2, 3):
        play = Play(policy("2026.6", warningThreshold=1))
        play.call(*POLL, times=times)
        assert (play.marks, play.engine.run("r").suppressed_warnings) == ([], times - 1)
    play = Play(policy("2026.9"))
    for number in range(10):
        play.turn(("find", {"q": number % 3}, error("none")))
    assert (play.marks, play.engine.run("r").suppressed_warnings) == ([], 0)


def test_a_ping_pong_on_changing_outcomes_goes_on_to_warn_by_the_warning_threshold() -> None:
    play = Play(policy("2026.6", warningThreshold=10, criticalThreshold=12))
    for number in range(30):
        play.turn((*(READ, LS)[number % 2][:2], f"{number}"))
    assert [(mark.kind, mark.count, mark.threshold, mark.level) for mark in play.marks] == [
        ("warning", 10, 10, "warning"),
        ("warning", 20, 10, "warning"),
        ("warning", 30, 10, "warning"),
    ]
    assert {mark.paired_tool for mark in play.marks} == {"read"}


def test_sentences_say_what_is_special_of_a_loop() -> None:
    play = Play(policy("2026.9"))
    for number in range(10):
        play.turn(("read", {"path": number % 2}, "x"))
    assert "two calls of read alternated" in play.marks[0].message
    play = Play(policy("2026.9"))
    for number in range(21):
        play.turn(("exec", {"c": number}, died(number)))
    for fact in ("20 exec commands in a row", "failed alike", "whatever their arguments", "blocks"):
        assert fact in play.marks[0].message
    play = Play(policy("2026.9"))
    for number in range(21):
        play.turn(("exec", {"c": 1}, died(3 if number == 0 else 4)))
    assert [mark.count for mark in play.marks] == [10, 20]
    assert "outcome" not in play.marks[0].message
    assert "whatever their arguments" in play.marks[1].message  # the run of one outcome alone is shorter
    play = Play(policy("2026.9"))
    play.call("exec", {"c": 1}, died(1), times=21)
    assert "same arguments and the same outcome" in play.marks[1].message


@pytest.mark.parametrize("length", [60, 61])
def test_a_long_name_is_cut_in_a_sentence_and_nowhere_else(length: int) -> None:
    name = "n" * length
    cut = name if length == 60 else f"{'n' * 59}…"
    play = Play(policy(postCompactionGuard={"windowSize": 3}))
    play.compact()
    play.call(name, {}, "x", times=3)
    play.call(name, {}, error("x"), times=3, run="a")
    for _ in range(11):
        play.absent(name, run="b" if length == 60 else "c", stored=True)
    play.call("read", {"path": 1}, "x", times=11, run="d")
    for number in range(10):
        play.turn((("read", name)[number % 2], {}, "x"), run="e")
        play.turn((("read", name)[number % 2], {}, "y"), run="f")
    said = [mark for mark in play.marks if mark.tool == name or mark.paired_tool == name]
    assert {mark.kind for mark in said} >= {"compaction_abort", "error_streak_end", "warning"}
    for mark in said:
        assert cut in mark.message.split()


def test_a_run_end_says_so_and_neither_warns_nor_blocks() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=22)
    block, end = play.marks[-2:]
    assert (block.kind, end.kind) == ("block", "run_end")
    assert "run ends" in end.message
    assert "run ends" not in block.message
    assert "from" not in end.message


# --- every other field


def test_every_field_of_a_warning_a_block_and_a_run_end() -> None:
    play = Play(policy("2026.9"))
    play.call(*READ, times=20)
    play.turn(LS, READ)
    play.turn(READ, LS, LS)
    base = Mark(
        run="r",
        kind=Kind.WARNING,
        detector=Detector.GENERIC_REPEAT,
        level=Level.WARNING,
        count=10,
        threshold=10,
        batch=10,
        call=10,
        tool="read",
        tool_call_id="c20_0",
        where=Where(line=21, entry="e21", time=21.0),
    )
    block = replace(
        base,
        kind=Kind.BLOCK,
        level=Level.CRITICAL,
        count=20,
        threshold=20,
        batch=20,
        call=21,
        tool_call_id="c40_1",
        where=Where(line=41, entry="e41", time=41.0),
        blocked_calls=2,
    )
    second = replace(
        block,
        count=21,
        batch=21,
        call=22,
        tool_call_id="c43_0",
        where=Where(line=44, entry="e44", time=44.0),
        blocked_calls=3,
    )
    assert [plain(mark) for mark in play.marks] == [
        base,
        block,
        second,
        replace(second, kind=Kind.RUN_END, blocked_calls=0),
    ]
    state = play.engine.run("r")
    assert (state.ended, state.ended_at, state.blocks) == (Kind.RUN_END, second.where, 2)


def test_observing_blocks_no_call() -> None:
    for name in ("2026.6", "2026.9"):
        play = Play(policy(name), mode=Mode.OBSERVE)
        play.call(*READ, times=22)
        assert {(mark.kind, mark.blocked_calls) for mark in play.marks} >= {("block", 0)}
        assert sum(mark.blocked_calls for mark in play.marks) == 0


def test_observing_vetoes_no_call() -> None:
    for name in ("2026.6", "2026.9"):
        play = Play(policy(name), mode=Mode.OBSERVE)
        play.call(*READ, times=20)
        play.turn(("read", {"path": "a"}, "at last"), LS)
        play.call(*READ, times=8)
        assert [(mark.kind, mark.count) for mark in play.marks if mark.batch > 15] == [
            ("block", 20),
            ("warning", 21),
        ]


def test_the_words_for_modes_scopes_and_arming() -> None:
    assert [*Mode, *ScopeRule, *Arm] == ["enforce", "observe", "run", "session", "auto", "always", "never"]


def test_a_slot_keeps_what_is_compared_of_the_arguments() -> None:
    play = Play(policy())
    play.turn(("exec", {"command": "make", "title": "try 1"}, "x"), ("bash", ["odd"], "x"))
    batch = play.engine.run("r").batch
    assert batch is not None
    assert [slot.arguments for slot in batch.slots] == [{"command": "make"}, ["odd"]]


def test_digests_of_a_mark_are_those_of_its_signature_and_newest_outcome() -> None:
    def marks(name: str, *calls: Any) -> list[Mark]:
        play = Play(policy(name))
        for call in calls:
            play.turn(call)
        return play.marks

    warning, block, *_ = marks("2026.9", *[READ] * 21)
    assert (warning.signature, warning.outcome) == (block.signature, block.outcome)
    swing, stop, *_ = marks("2026.9", *[READ, LS] * 10)
    assert (swing.signature, swing.outcome) == (stop.signature, stop.outcome)
    assert None not in (warning.outcome, swing.outcome)
    assert swing.signature != warning.signature
    (churn,) = marks("2026.9", *(("find", {"q": n % 3}, error("none")) for n in range(11)))
    assert churn.outcome is not None
    assert len(churn.outcome) == len(churn.signature or "") == 12
    assert churn.outcome not in (warning.outcome, swing.outcome)
    unknown, *_ = marks("2026.9", *(("call", {"n": n}, ZAP) for n in range(11)))
    assert (unknown.detector, unknown.outcome, unknown.paired_tool) == ("unknown_tool_repeat", None, None)
    # exec failures over changing arguments: the proposed arguments have no outcome yet
    across, *_ = marks("2026.9", *(("exec", {"c": n}, died(n)) for n in range(21)))
    assert (across.kind, across.outcome) == ("block", None)


# --- lossy


@pytest.mark.parametrize("place", [None, 0, 7, 19])
def test_a_poll_is_lossy_if_any_outcome_of_its_streak_is(place: int | None) -> None:
    play = Play(policy("2026.9"))
    for number in range(21):
        play.turn((*POLL[:2], replace(text("running"), lossy=number == place)))
    warning, block = play.marks
    assert (warning.lossy, block.lossy) == (place in (0, 7), place is not None)


def test_a_call_without_outcome_makes_nothing_lossy() -> None:
    play = Play(policy("2026.9"))
    for number in range(24):
        play.turn((*READ[:2], Fate.LOST if number % 8 == 3 else "x"))
    assert [(mark.kind, mark.count, mark.lossy) for mark in play.marks] == [
        ("warning", 10, False),
        ("warning", 20, False),
        ("block", 20, False),
    ]


def test_what_is_lossy_before_the_streak_or_beside_it_does_not_matter() -> None:
    play = Play(policy("2026.9"))
    play.turn(("read", {"path": "a"}, lossy("old")))
    for _ in range(20):
        play.turn(("ls", {}, lossy("y")))
        play.turn(("read", {"path": "a"}, "x"))
        play.turn(("grep", {}, "changing"))
    assert [(mark.kind, mark.tool, mark.lossy) for mark in play.marks if mark.kind == "block"] == []
    play = Play(policy("2026.6", historySize=100))
    play.turn(("read", {"path": "a"}, lossy("old")))
    for number in range(21):
        play.turn(("ls", {"n": number}, lossy("y")))
        play.turn(READ)
    (block,) = [mark for mark in play.marks if mark.kind == "block"]
    assert (block.tool, block.count, block.lossy) == ("read", 20, False)


@pytest.mark.parametrize(("place", "is_lossy"), [(None, False), (0, False), (1, True), (12, True), (20, True)])
def test_failures_across_arguments_are_lossy_if_any_of_them_is(place: int | None, is_lossy: bool) -> None:
    play = Play(policy("2026.9"))
    play.turn(("exec", {"c": "ls"}, replace(text("", status="completed", exitCode=0), lossy=place == 0)))
    for number in range(1, 22):
        play.turn(("exec", {"c": number}, died(number, is_lossy=place == number)))
    (block,) = play.marks
    assert (block.kind, block.count, block.lossy) == ("block", 20, is_lossy)


def test_a_streak_that_is_all_there_is_is_lossy_from_its_first_record_on() -> None:
    play = Play(policy("2026.9"))
    for number in range(21):
        play.turn(("exec", {"c": number}, died(number, is_lossy=number == 0)))
    assert [(mark.kind, mark.count, mark.lossy) for mark in play.marks] == [("block", 20, True)]


@pytest.mark.parametrize(("place", "is_lossy"), [(None, False), (0, False), (1, True), (19, True)])
def test_a_ping_pong_block_is_lossy_if_its_tail_is(place: int | None, is_lossy: bool) -> None:
    play = Play(policy("2026.9"))
    play.turn(("grep", {}, replace(text("z"), lossy=place == 0)))
    for number in range(1, 21):
        tool, arguments, body = (LS, READ)[number % 2]
        play.turn((tool, arguments, replace(text(body), lossy=place == number)))
    warning, block = play.marks
    assert (warning.kind, warning.detector, warning.lossy) == ("warning", "ping_pong", False)
    assert (block.kind, block.detector, block.count, block.lossy) == ("block", "ping_pong", 20, is_lossy)


@pytest.mark.parametrize(("place", "is_lossy"), [(None, False), (0, False), (1, True), (10, True)])
def test_a_churn_is_lossy_if_its_tail_is(place: int | None, is_lossy: bool) -> None:
    play = Play(policy("2026.9"))
    play.turn(("find", {"q": 0}, replace(text("found"), lossy=place == 0)))
    for number in range(1, 12):
        play.turn(("find", {"q": number % 3}, replace(error("none"), lossy=place == number)))
    (warning,) = play.marks
    assert (warning.detector, warning.count, warning.lossy) == ("argument_churn", 10, is_lossy)


def test_a_churn_of_two_outcomes_is_none_also_after_one_of_them_left_the_history() -> None:
    history = History(7)
    for signature, outcome in [(b"1", b"x")] * 4 + [(b"2", b"y")] * 4:
        history.settle(history.append("find", signature, "r"), Judged(outcome, no_progress=True))
    scope = history.scope("r")
    assert len(history) == 7
    assert scope.churn("find", b"1", scope.projection()) == scope.churn("find", b"2", scope.projection()) == 0


# --- scopes by recorded run ids


@pytest.mark.parametrize("named_by", ["user", "turn", "second turn", "stop"])
def test_runs_with_one_recorded_id_are_one_scope_whatever_event_names_it(named_by: str) -> None:
    """The id counts from the event on that first has it; another one later does not count."""
    play = Play(policy("2026.9"), mode=Mode.OBSERVE)
    feed = play.engine.feed

    def read(run: str, run_id: str | None) -> None:
        play.marks += feed(Turn(run, Where(), (Call("read", {}),), run_id=run_id))
        play.marks += feed(Result(run, Where(), 0, text("x")))

    for number in range(12):
        run = f"run {number}"
        if named_by == "user":
            feed(UserMessage(run, Where(), run_id="live"))
        elif named_by == "second turn":
            feed(Turn(run, Where()))
        elif named_by == "stop":
            feed(UnknownToolStopped(run, Where(), "zap", run_id="live"))
        read(run, f"other {number}" if named_by in ("user", "stop") else "live")
    assert [(mark.kind, mark.run, mark.count) for mark in play.marks] == [("warning", "run 10", 10)]


def test_runs_without_recorded_id_and_runs_of_other_ids_are_scopes_apart() -> None:
    play = Play(policy("2026.9"))
    for number in range(24):
        run_id = (None, f"live {number}")[number % 2]
        play.marks += play.engine.feed(Turn(f"run {number}", Where(), (Call("read", {}),), run_id=run_id))
    assert play.marks == []


def test_a_call_costs_no_more_in_a_long_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind a call that never came back: each record is taken in once or twice, and none is walked over."""
    pushed = 0

    def counting(push: Callable[[Any, Record], None]) -> Callable[[Any, Record], None]:
        def count(self: Any, record: Record) -> None:
            nonlocal pushed
            pushed += 1
            push(self, record)

        return count

    for streak in (Agreement, UnknownTool, ExecTail, Churn):
        monkeypatch.setattr(streak, "push", counting(streak.push))
    play = Play(policy("2026.6", historySize=9000, warningThreshold=9500))
    play.turn(("read", {}, Fate.LOST))
    play.turn(*[("read", {"path": number % 5}, Fate.LOST if number else "x") for number in range(2000)])
    for number in range(2000):
        play.turn(*[("read", {"path": each}, "x") for each in (number % 5, number % 3)], order=[1, 0])
    assert play.marks == []
    assert pushed <= 8 * 6000


# --- the rate limit of warnings


def test_a_session_remembers_256_keys_and_forgets_the_first_of_them_first() -> None:
    warnings = Warnings()
    assert all(warnings.emit("r", (number,), 10) for number in range(256))
    assert not any(warnings.emit("r", (number,), 19) for number in range(256))
    assert warnings.emit("r", (0,), 20)  # a higher bucket is emitted, and refreshes nothing
    assert warnings.emit("r", (256,), 10)
    assert not any(warnings.emit("r", (number,), 10) for number in range(1, 257))
    assert warnings.emit("r", (0,), 10)
    assert warnings.emit("r", (1,), 10)
    assert not warnings.emit("r", (256,), 10)


@given(st.lists(st.tuples(st.sampled_from([None, "r", "s"]), st.sampled_from("ab"), st.integers(0, 45)), max_size=60))
def test_one_warning_a_bucket_for_each_run_and_key(asked: list[tuple[str | None, str, int]]) -> None:
    warnings = Warnings()
    highest: dict[tuple[str | None, str], int] = {}
    for run, key, count in asked:
        before = highest.get((run, key), 0)
        assert warnings.emit(run, (key,), count) is (count // 10 > before)
        highest[run, key] = max(before, count // 10)
