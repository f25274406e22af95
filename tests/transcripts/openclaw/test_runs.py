"""Which run an entry belongs to: run ids, ancestors, steering, retries, compactions, and how runs end."""

from __future__ import annotations

import pytest

from loopscan.events import (
    Compaction,
    Ending,
    Event,
    Fate,
    Problem,
    Result,
    RunEnded,
    SessionEnded,
    SessionStarted,
    Turn,
    UserMessage,
)
from tests.transcripts.build import START, Transcript, call, fates, of, read


def users(events: list[Event]) -> list[tuple[str, bool, bool]]:
    return [(user.run, user.steering, user.retry) for user in of(UserMessage, events)]


def ends(events: list[Event]) -> list[tuple[str, Ending]]:
    return [(ended.run, ended.ending) for ended in of(RunEnded, events)]


def test_each_user_message_opens_a_run() -> None:
    made = Transcript()
    for text in ("one", "two"):
        made.user(text)
        made.asks(call("c1"))
        made.result("c1")
        made.says()
    events = made.read()
    assert users(events) == [("#1", False, False), ("#2", False, False)]
    assert [turn.run for turn in of(Turn, events)] == ["#1", "#1", "#2", "#2"]
    assert ends(events) == [("#1", Ending.COMPLETED), ("#2", Ending.COMPLETED)]


def test_a_finished_run_ends_where_the_next_user_message_comes() -> None:
    made = Transcript()
    made.user("one")
    made.says()
    made.user("two")
    made.says()
    kinds = [type(event) for event in made.read()]
    assert kinds == [SessionStarted, UserMessage, Turn, RunEnded, UserMessage, Turn, RunEnded, SessionEnded]


def test_a_run_that_goes_on_after_its_end_ends_once() -> None:
    made = Transcript()
    made.user("one")
    stopped = made.says()
    made.user("two")
    made.says()
    made.asks(call("c1"), below=stopped)
    made.result("c1")
    events = made.read()
    assert [turn.run for turn in of(Turn, events)] == ["#1", "#2", "#1"]
    assert [run for run, _ in ends(events)] == ["#1", "#2"]


@pytest.mark.parametrize(
    ("stop", "ending"),
    [
        ("stop", Ending.COMPLETED),
        ("endTurn", Ending.COMPLETED),
        ("length", Ending.INTERRUPTED),
        ("error", Ending.INTERRUPTED),
        ("aborted", Ending.INTERRUPTED),
        ("toolUse", Ending.INTERRUPTED),
    ],
)
def test_a_run_is_complete_if_the_model_stopped_by_itself(stop: str, ending: Ending) -> None:
    made = Transcript()
    made.user()
    made.says(stop=stop)
    assert ends(made.read()) == [("#1", ending)]


def test_what_comes_before_any_user_message_is_a_run_too() -> None:
    made = Transcript()
    made.entry("model_change", modelId="m")
    made.asks(call("c1"))
    made.result("c1")
    made.user()
    made.says()
    events = made.read()
    assert [turn.run for turn in of(Turn, events)] == ["#1", "#2"]
    assert users(events) == [("#2", False, False)]


# --- run ids


def test_recorded_run_ids_name_the_runs_from_the_user_message_on() -> None:
    """2026.9 stores the id on assistant messages and results, not on the user message."""
    made = Transcript(version=4)
    made.user("one")
    made.asks(call("c1"), run="r1")
    made.result("c1", run="r1")
    made.says(run="r1")
    made.user("two")
    made.says(run="r2")
    events = made.read()
    assert [(user.run, user.run_id) for user in of(UserMessage, events)] == [("r1", "r1"), ("r2", "r2")]
    assert [(turn.run, turn.run_id) for turn in of(Turn, events)] == [("r1", "r1")] * 2 + [("r2", "r2")]


def test_a_message_that_steers_a_run_opens_none() -> None:
    made = Transcript(version=4)
    made.user("one")
    made.asks(call("c1"), run="r1")
    details = {"status": "skipped", "deniedReason": "steering"}
    made.result("c1", "Skipped to process an incoming message.", error=True, details=details, run="r1")
    made.user("look at this too", __openclaw={"steerTargetRunId": "r1"})
    made.says(run="r1")
    events = made.read()
    assert users(events) == [("r1", False, False), ("r1", True, False)]
    assert fates(events) == [Fate.NOT_RUN]
    assert ends(events) == [("r1", Ending.COMPLETED)]


def test_a_user_message_below_which_the_same_run_id_goes_on_is_steering() -> None:
    made = Transcript(version=4)
    made.user("one")
    made.asks(call("c1"), run="r1")
    made.result("c1", run="r1")
    made.user("and this")
    made.says(run="r1")
    assert users(made.read()) == [("r1", False, False), ("r1", True, False)]


def test_a_command_that_the_gateway_answers_is_a_run_without_a_turn() -> None:
    made = Transcript(version=4)
    made.user("one")
    made.says(run="r1")
    made.user("/compact")
    made.says("Compacted", model="gateway-injected")
    made.user("two")
    made.says(run="r2")
    events = made.read()
    assert [run for run, _, _ in users(events)] == ["r1", "#2", "r2"]
    assert ends(events) == [(run, Ending.COMPLETED) for run in ("r1", "#2", "r2")]


def test_run_keys_are_unique_though_a_recorded_id_looks_like_a_number() -> None:
    made = Transcript()
    made.user("one")
    made.says()
    made.user("two")
    made.says(run="#1")
    events = made.read()
    assert len({user.run for user in of(UserMessage, events)}) == 2
    assert of(UserMessage, events)[1].run_id == "#1"


# --- steering without a mark


def test_a_user_message_above_a_result_of_an_earlier_call_is_steering() -> None:
    made = Transcript()
    made.user("one")
    made.asks(call("c1"))
    made.user("hurry")
    made.user("really")
    made.result("c1")
    made.says()
    events = made.read()
    assert users(events) == [("#1", False, False), ("#1", True, False), ("#1", True, False)]
    assert [(result.run, result.index) for result in of(Result, events)] == [("#1", 0)]
    assert ends(events) == [("#1", Ending.COMPLETED)]


def test_a_user_message_beside_a_run_that_goes_on_opens_one_of_its_own() -> None:
    """Two runs at the same time in one file: the result hangs below its call, not below the user message."""
    made = Transcript()
    made.user("one")
    asked = made.asks(call("c1"))
    second = made.user("two")
    first = made.result("c1", below=asked)
    made.asks(call("c2"), below=second)
    made.asks(call("c3"), below=first)
    made.result("c2", below="e5")
    made.result("c3", below="e6")
    events = made.read()
    assert users(events) == [("#1", False, False), ("#2", False, False)]
    assert [(turn.run, turn.calls[0].id) for turn in of(Turn, events)] == [("#1", "c1"), ("#2", "c2"), ("#1", "c3")]
    assert [result.run for result in of(Result, events)] == ["#1", "#2", "#1"]


def test_a_lost_call_before_the_next_run_stays_lost() -> None:
    made = Transcript()
    made.user("one")
    made.asks(call("c1"))
    made.user("two")
    made.says()
    events = made.read()
    assert fates(events) == [Fate.LOST]
    assert users(events) == [("#1", False, False), ("#2", False, False)]
    assert [(ended.run, ended.unanswered) for ended in of(RunEnded, events)] == [("#1", True), ("#2", False)]


# --- compaction


def compactions(made: Transcript) -> list[tuple[str | None, bool, bool | None]]:
    return [(found.run, found.in_run, found.from_hook) for found in of(Compaction, made.read())]


def test_a_compaction_after_which_the_model_goes_on_is_in_the_run() -> None:
    made = Transcript()
    made.user()
    made.says("", stop="error", errorMessage="400 This model's maximum context length is 120000 tokens.")
    made.compaction(fromHook=False)
    made.asks(call("c1"))
    made.result("c1")
    assert compactions(made) == [("#1", True, False)]


def test_a_compaction_after_which_the_prompt_comes_again_is_in_the_run_and_the_prompt_a_retry() -> None:
    made = Transcript()
    made.user("again")
    made.asks(call("c1"))
    made.result("c1")
    made.says("", stop="error", errorMessage="context overflow")
    made.compaction(fromHook=True)
    made.user("again")
    made.says()
    events = made.read()
    assert users(events) == [("#1", False, False), ("#1", False, True)]
    assert [(found.run, found.in_run, found.from_hook) for found in of(Compaction, events)] == [("#1", True, True)]
    assert ends(events) == [("#1", Ending.COMPLETED)]


def test_the_prompt_again_after_an_overflow_is_a_retry_without_a_compaction_too() -> None:
    """2026.6.11 tries the prompt once more, and only then compacts."""
    made = Transcript()
    made.user("again")
    made.says("", stop="error", errorMessage="Context overflow: estimated context size exceeds safe threshold")
    made.user("again")
    made.says()
    assert users(made.read()) == [("#1", False, False), ("#1", False, True)]


def test_the_same_prompt_after_another_error_is_a_new_run() -> None:
    made = Transcript()
    made.user("[heartbeat poll]")
    made.says("", stop="error", errorMessage="You exceeded your current quota")
    made.user("[heartbeat poll]")
    made.says()
    assert users(made.read()) == [("#1", False, False), ("#2", False, False)]


def test_a_compaction_after_a_stop_is_between_runs_though_the_same_prompt_follows() -> None:
    made = Transcript()
    for _ in range(2):
        made.user("[heartbeat poll]")
        made.says()
        made.compaction()
    events = made.read()
    assert [found.in_run for found in of(Compaction, events)] == [False, False]
    assert [run for run, _, _ in users(events)] == ["#1", "#2"]


def test_two_compactions_in_a_row_are_decided_by_the_same_message() -> None:
    made = Transcript()
    made.user()
    made.says("", stop="error", errorMessage="context overflow")
    made.compaction("one")
    made.compaction("two")
    made.says()
    made.user()
    made.says("", stop="error", errorMessage="context overflow")
    made.compaction("three")
    made.compaction("four")
    assert compactions(made) == [("#1", True, None)] * 2 + [(None, False, None)] * 2


@pytest.mark.parametrize("then", ["other prompt", None])
def test_a_compaction_after_which_the_run_does_not_go_on_is_between_runs(then: str | None) -> None:
    made = Transcript()
    made.user("one")
    made.says("", stop="error", errorMessage="context overflow")
    made.compaction()
    if then is not None:
        made.user(then)
        made.says()
    assert compactions(made) == [(None, False, None)]


def test_2026_9_says_itself_whether_a_compaction_is_in_a_run() -> None:
    made = Transcript(version=4)
    made.user("one")
    made.asks(call("c1"), run="r1")
    made.result("c1", run="r1")
    made.compaction(fromHook=True, __openclaw={"runId": "r1", "itemId": "i1"})
    made.says(run="r1")
    made.compaction(fromHook=True, __openclaw={"itemId": "i2"})
    made.user("/compact")
    made.says("Compacted", model="gateway-injected")
    assert compactions(made) == [("r1", True, True), (None, False, True)]


# --- lines that hang together badly


def test_a_parent_that_is_not_in_the_record_means_the_run_of_the_line_before() -> None:
    made = Transcript()
    made.user("one")
    made.asks(call("c1"), below="gone")
    made.result("c1", below="gone too")
    events = made.read()
    assert {turn.run for turn in of(Turn, events)} == {"#1"}
    assert not of(Problem, events)


def test_version_1_has_no_ids_and_hangs_together_by_order() -> None:
    made = Transcript(version=None, modelId="claude", provider="anthropic")
    made.user("one")
    made.asks(call("c1"))
    made.user("hurry")
    made.result("c1")
    made.says()
    made.user("two")
    made.says()
    events = made.read()
    started = of(SessionStarted, events)[0]
    assert (started.version, started.model) == ("1", "claude")
    assert users(events) == [("#1", False, False), ("#1", True, False), ("#2", False, False)]


def test_other_roles_and_entries_open_no_run() -> None:
    made = Transcript()
    made.message("bashExecution", None, command="ls", output="", exitCode=0)
    made.message("hookMessage", "text")
    made.entry("custom_message", customType="openclaw.runtime-context", content="text")
    made.entry("something_new", anything=[1])
    made.entry("message", message=None)
    events = made.read()
    assert [type(event) for event in events] == [SessionStarted, Problem, SessionEnded]


# --- the session


def test_the_session_has_the_name_version_and_model_of_its_record_and_the_agent_of_its_path() -> None:
    made = Transcript(session="abc", version=3)
    made.entry("model_change", provider="p", modelId="m1")
    made.user()
    made.says(model="m2")
    started, *_ = made.read("/home/u/.openclaw/agents/coder/sessions/abc.jsonl")
    assert isinstance(started, SessionStarted)
    assert (started.session, started.version, started.model, started.agent) == ("abc", "3", "m1", "coder")
    assert started.where.time == START.timestamp()


def test_without_a_model_change_the_first_response_names_the_model() -> None:
    made = Transcript()
    made.says("hello", model="gateway-injected")
    made.user()
    made.says(model="m2")
    started = made.read()[0]
    assert isinstance(started, SessionStarted)
    assert started.model == "m2"
    assert started.agent is None


@pytest.mark.parametrize(
    "name",
    [
        "/x/abc.jsonl",
        "/x/abc.jsonl.reset.2026-03-22T18-18-14.056Z",
        "abc.jsonl.bak-1-2",
        "C:\\x\\abc.checkpoint.9.jsonl",
    ],
)
def test_without_a_header_the_session_is_named_after_its_file(name: str) -> None:
    made = Transcript(session=None)
    made.user()
    made.says()
    events = made.read(name)
    assert of(SessionStarted, events)[0].session == "abc"
    assert of(SessionStarted, events)[0].version is None
    assert [(problem.line, problem.kind) for problem in of(Problem, events)] == [(1, "no-header")]
    assert len(of(Turn, events)) == 1


def test_a_second_header_begins_another_session_and_a_repeated_one_does_not() -> None:
    one, two = Transcript(session="a"), Transcript(session="b")
    for made in (one, two):
        made.user()
        made.asks(call("c1"))
    events = read(one.bytes() + one.lines[0] + two.bytes(), "x.jsonl")
    assert [started.session for started in of(SessionStarted, events)] == ["a", "b"]
    assert [ended.run for ended in of(RunEnded, events)] == ["#1", "#1"]


def test_lines_that_are_no_objects_are_problems() -> None:
    made = Transcript()
    made.raw(b"[1]\n")
    made.raw(b"7\n")
    made.user()
    assert [(p.line, p.kind) for p in of(Problem, made.read())] == [(2, "not-an-object"), (3, "not-an-object")]


def test_an_empty_file_has_no_session() -> None:
    assert read(b"") == []
    assert [type(event) for event in read(b"{\n")] == [Problem]


@pytest.mark.parametrize("time", ["yesterday", "", None, [], 1e400, -5, "9999-99-99", 1e300, True])
def test_a_time_that_is_none_is_taken_from_the_message_or_left_out(time: object) -> None:
    made = Transcript()
    made.json({"type": "message", "id": "a", "parentId": None, "timestamp": time, "message": {"role": "user"}})
    message = {"role": "user", "timestamp": 1_780_000_000_500}
    made.json({"type": "message", "id": "b", "parentId": "a", "timestamp": time, "message": message})
    assert [user.where.time for user in of(UserMessage, made.read())] == [None, 1_780_000_000.5]
