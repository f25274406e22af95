"""What each kind of stored result says the engine saw: the table of the engine rules, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from loopscan.events import (
    Ending,
    Event,
    Fate,
    Outcome,
    Problem,
    Recorded,
    Result,
    RunEnded,
    Turn,
    UnknownToolStopped,
)
from tests.transcripts.build import Transcript, call, fates, of

NOTE = "[System note: Tool-loop warning after 10 repeated calls. Change your approach or stop.]"
REASON = "CRITICAL: Called read with identical outcomes 20 times. Session execution blocked."
STOPPING = f"{REASON}\n\nCritical tool-loop recovery failed. This run is stopping now."


def one(text: str = "ok", **fields: Any) -> list[Event]:
    """Read a run of one call with the result given."""
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.result("c1", text, **fields)
    made.says()
    return made.read()


def outcome(text: str = "ok", **fields: Any) -> Outcome:
    (result,) = of(Result, one(text, **fields))
    return result.outcome


def test_a_plain_result_is_kept_as_recorded() -> None:
    content = [{"type": "text", "text": "ok"}]
    assert outcome() == Outcome(result={"content": content})
    details = {"status": "completed", "exitCode": 0}
    assert outcome(details=details) == Outcome(result={"content": content, "details": details})
    assert outcome(details=None) == Outcome(result={"content": content, "details": None})


def test_a_string_as_content_is_a_text() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.message("toolResult", "ok", toolCallId="c1")
    assert of(Result, made.read())[0].outcome == Outcome(result={"content": [{"type": "text", "text": "ok"}]})


@pytest.mark.parametrize("error", [True, False])
def test_a_thrown_error_is_unwrapped_whatever_the_flag_says(error: bool) -> None:
    details = {"status": "error", "tool": "read", "error": "ENOENT: no such file"}
    assert outcome("{...}", details=details, error=error) == Outcome(error="ENOENT: no such file", is_error=True)


@pytest.mark.parametrize(
    "details",
    [
        {"status": "error", "error": "x"},
        {"status": "error", "tool": "read", "error": "x", "runId": "r"},
        {"status": "failed", "tool": "read", "error": "x"},
        {"status": "error", "tool": "read", "error": 7},
    ],
)
def test_details_that_are_not_exactly_those_of_a_thrown_error_are_a_result(details: dict[str, Any]) -> None:
    assert outcome(details=details).result == {"content": [{"type": "text", "text": "ok"}], "details": details}


def test_an_error_without_details_is_a_thrown_error_with_the_text() -> None:
    assert outcome("Command exited with code 1", error=True) == Outcome(
        error="Command exited with code 1", is_error=True
    )
    assert outcome("boom", error=True, details={}) == Outcome(error="boom", is_error=True)


def test_an_error_with_details_of_its_own_is_a_result_with_the_flag() -> None:
    """As 2026.6 stores every exec with a non-zero exit code."""
    found = outcome("(no output)", error=True, details={"status": "failed", "exitCode": 1})
    assert found.is_error
    assert found.error is None


def test_a_rejection_by_argument_validation_keeps_its_text_as_error() -> None:
    text = 'Validation failed for tool "exec":\n  - command: must be string'
    events = one(text, error=True, details={})
    assert fates(events) == [Fate.REJECTED]
    assert of(Result, events)[0].outcome == Outcome(error=text, is_error=True)


@pytest.mark.parametrize("program", ["openclaw", "clawdbot", "moltbot"])
def test_a_result_made_up_for_a_missing_one_is_no_result(program: str) -> None:
    text = f"[{program}] missing tool result in session history; inserted synthetic error result."
    events = one(text, error=True)
    assert fates(events) == [Fate.LOST]
    assert not of(Result, events)


@pytest.mark.parametrize("text", ["Operation aborted", "This operation was aborted", "Aborted"])
def test_an_aborted_call_did_not_run(text: str) -> None:
    assert fates(one(text, error=True, details={})) == [Fate.NOT_RUN]


def test_the_word_aborted_in_the_output_of_a_tool_is_a_result() -> None:
    assert fates(one("Aborted", error=True, details={"status": "failed", "exitCode": 134})) == [Fate.RAN]
    assert fates(one("Aborted")) == [Fate.RAN]


def test_a_call_skipped_for_steering_did_not_run() -> None:
    details = {"status": "skipped", "deniedReason": "steering"}
    assert fates(one("Skipped to process an incoming message.", error=True, details=details)) == [Fate.NOT_RUN]


def test_other_denials_are_ordinary_results() -> None:
    details = {"status": "blocked", "deniedReason": "policy", "reason": "not allowed"}
    events = one("not allowed", error=True, details=details)
    assert fates(events) == [Fate.RAN]
    assert of(Result, events)[0].outcome.is_error
    assert not of(Recorded, events)


def test_truncated_details_are_lossy() -> None:
    assert outcome(details={"persistedDetailsTruncated": True, "status": "completed"}).lossy
    assert not outcome(details={"status": "completed"}).lossy


def test_a_warning_note_is_recorded_and_no_part_of_the_outcome() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    content = [{"type": "text", "text": "ok"}, {"type": "text", "text": NOTE}]
    made.message("toolResult", content, toolCallId="c1", toolName="read", isError=False)
    events = made.read()
    assert of(Result, events)[0].outcome == Outcome(result={"content": content[:1]})
    (warning,) = of(Recorded, events)
    assert (warning.kind, warning.count, warning.tool_call_id, warning.tool) == ("warning", 10, "c1", "read")
    assert warning.where == of(Result, events)[0].where


def test_the_words_of_the_note_in_the_middle_of_an_output_are_no_note() -> None:
    assert not of(Recorded, one(f"grep: {NOTE}"))


# --- vetoes


def vetoed(culprit: str, count: int, text: str) -> dict[str, Any]:
    intervention = {
        "kind": "critical-tool-loop",
        "toolCallId": culprit,
        "toolName": "read",
        "detector": "generic_repeat",
        "count": count,
        "reason": REASON,
    }
    details = {"status": "blocked", "deniedReason": "tool-loop", "intervention": intervention}
    return {"text": text, "error": True, "details": details}


def test_a_vetoed_batch_is_one_recorded_block_for_the_call_that_caused_it() -> None:
    """2026.9 vetoes the batch and stores the same intervention with every sibling."""
    made = Transcript(version=4)
    made.user()
    made.asks(call("c1"), call("c2"), run="r1")
    made.result("c1", **vetoed("c2", 20, "This tool was not executed because another call did."), run="r1")
    made.result("c2", **vetoed("c2", 20, REASON), run="r1")
    events = made.read()
    assert fates(events) == [Fate.VETOED, Fate.VETOED]
    assert not of(Result, events)
    (block,) = of(Recorded, events)
    found = (block.kind, block.tool_call_id, block.tool, block.detector, block.count)
    assert found == ("block", "c2", "read", "generic_repeat", 20)


def test_the_second_veto_is_a_block_and_the_end_of_the_run() -> None:
    made = Transcript(version=4)
    made.user()
    made.asks(call("c1"), run="r1")
    made.result("c1", **vetoed("c1", 21, STOPPING), run="r1")
    made.says("OpenClaw stopped this run", stop="error", run="r1")
    events = made.read()
    assert [(each.kind, each.count) for each in of(Recorded, events)] == [("block", 21), ("run_end", 21)]
    assert of(RunEnded, events)[0].ending is Ending.INTERRUPTED


@pytest.mark.parametrize(
    ("reason", "detector", "count"),
    [
        ("CRITICAL: Called exec with identical arguments and identical outcomes 20 times.", "generic_repeat", 20),
        (
            "CRITICAL: exec has repeated identical no-progress outcomes 30 times. Session execution blocked by "
            "global circuit breaker to prevent runaway loops.",
            "global_circuit_breaker",
            30,
        ),
        (
            "CRITICAL: Called process with identical arguments and no progress 20 times. This appears to be a stuck "
            "polling loop.",
            "known_poll_no_progress",
            20,
        ),
        (
            "CRITICAL: You are alternating between repeated tool-call patterns (20 consecutive calls) with no "
            "progress. This appears to be a stuck ping-pong loop.",
            "ping_pong",
            20,
        ),
        ("something new", None, None),
    ],
)
def test_2026_6_stores_a_sentence_which_tells_detector_and_count(
    reason: str, detector: str | None, count: int | None
) -> None:
    details = {"status": "blocked", "deniedReason": "tool-loop", "reason": reason}
    events = one(reason, error=True, details=details)
    assert fates(events) == [Fate.VETOED]
    (block,) = of(Recorded, events)
    assert (block.kind, block.detector, block.count) == ("block", detector, count)


# --- absent tools


def test_an_orphan_of_an_absent_tool_stands_for_a_message_that_was_not_stored() -> None:
    made = Transcript()
    made.user()
    made.absent("c1")
    made.says()
    turn = of(Turn, made.read())[0]
    assert (turn.stored, turn.calls, turn.where.line) == (False, (), 3)
    (absent,) = turn.absent
    assert (absent.tool, absent.error, absent.id) == ("frobnicate", "Tool frobnicate not found", "c1")
    assert absent.position is None


def test_orphans_a_second_apart_are_messages_of_their_own_and_alike_ones_are_one() -> None:
    made = Transcript()
    made.user()
    made.absent("c1")
    made.absent("c2", after=0.004)
    made.absent("c3", after=0.9)
    made.absent("c4", after=0.021)
    turns = of(Turn, made.read())
    assert [[absent.id for absent in turn.absent] for turn in turns] == [["c1", "c2"], ["c3"], ["c4"]]


def test_anything_between_two_orphans_makes_two_messages_of_them() -> None:
    """2026.9 writes an entry of its own after the results of each turn."""
    made = Transcript(version=4)
    made.user()
    made.absent("c1", run="r1")
    made.entry("custom", customType="openclaw.cache-ttl", data={}, after=0.001)
    made.absent("c2", after=0.001, run="r1")
    assert [len(turn.absent) for turn in of(Turn, made.read())] == [1, 1]


def test_an_orphan_while_results_are_due_belongs_to_the_stored_message() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c2"))
    made.absent("c1", after=2)
    made.result("c2", after=3)
    (turn,) = of(Turn, made.read())
    assert turn.stored
    assert [each.id for each in turn.calls] == ["c2"]
    assert [absent.id for absent in turn.absent] == ["c1"]
    assert turn.absent[0].position is None


def test_an_orphan_right_after_the_last_result_belongs_to_the_stored_message_and_a_later_one_does_not() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.result("c1", after=3)
    made.absent("c2", after=0.005)
    made.absent("c3", after=0.5)
    stored, unstored = of(Turn, made.read())
    assert [absent.id for absent in stored.absent] == ["c2"]
    assert [absent.id for absent in unstored.absent] == ["c3"]
    assert (stored.stored, unstored.stored) == (True, False)


def test_a_stored_call_to_an_absent_tool_moves_out_of_the_calls_with_its_place() -> None:
    """Older files store the message whole."""
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2", "frobnicate", size=3), call("c3"))
    made.result("c3", "three")
    made.result("c1", "one")
    made.absent("c2")
    events = made.read()
    (turn,) = of(Turn, events)
    assert [each.id for each in turn.calls] == ["c1", "c3"]
    (absent,) = turn.absent
    assert (absent.tool, absent.id, absent.position, absent.arguments) == ("frobnicate", "c2", 1, {"size": 3})
    texts = {result.index: result.outcome.result["content"][0]["text"] for result in of(Result, events)}
    assert texts == {0: "one", 1: "three"}


def test_orphans_are_no_absent_tools_without_the_error_flag_or_with_details() -> None:
    made = Transcript()
    made.user()
    made.result("c1", "Tool frobnicate not found")
    made.result("c2", "Tool frobnicate not found", error=True, details={"status": "failed"})
    events = made.read()
    assert not of(Turn, events)
    assert [problem.kind for problem in of(Problem, events)] == ["orphan-result", "orphan-result"]


def test_the_text_in_place_of_calls_is_the_live_guard() -> None:
    text = "I can't use the tool \"frobnicate\" here because it isn't available. I need to stop retrying it."
    made = Transcript()
    made.user()
    made.says(text, stop="toolUse", usage={"input": 5})
    events = made.read()
    (stopped,) = of(UnknownToolStopped, events)
    assert (stopped.tool, stopped.usage.input) == ("frobnicate", 5)
    (recorded,) = of(Recorded, events)
    assert (recorded.kind, recorded.tool, recorded.detector) == (
        "unknown_tool_stop",
        "frobnicate",
        "unknown_tool_guard",
    )
    assert not of(Turn, events)


def test_the_same_text_of_a_model_that_stopped_is_a_text() -> None:
    made = Transcript()
    made.user()
    made.says("I can't use the tool \"frobnicate\" here because it isn't available.", stop="stop")
    events = made.read()
    assert not of(UnknownToolStopped, events)
    assert len(of(Turn, events)) == 1


# --- the post-compaction guard


def test_the_error_of_the_post_compaction_guard_is_recorded() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.result("c1")
    made.says("", stop="aborted", errorMessage="This operation was aborted")
    error = (
        "CRITICAL: tool read repeated 3 times with identical arguments and identical results within 3 attempts "
        "after auto-compaction. The compaction did not break the loop."
    )
    made.entry("custom", customType="openclaw:prompt-error", data={"runId": "x", "error": error})
    (recorded,) = of(Recorded, made.read())
    assert (recorded.kind, recorded.tool, recorded.count) == ("compaction_abort", "read", 3)
    assert recorded.detector == "compaction_loop_persisted"
    assert recorded.run == "#1"


def test_other_prompt_errors_record_no_verdict() -> None:
    made = Transcript()
    made.user()
    made.entry("custom", customType="openclaw:prompt-error", data={"error": "rate limited"})
    made.entry("custom", customType="openclaw:prompt-error", data=[])
    assert not of(Recorded, made.read())
