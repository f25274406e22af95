"""Calls and their results: shapes of blocks, ids, order, and what becomes of calls without a result."""

from __future__ import annotations

from typing import Any

import pytest

from loopscan.events import Ending, Fate, Problem, Result, RunEnded, Turn, UserMessage
from loopscan.transcripts.openclaw.held import MAX_HELD
from tests.transcripts.build import Transcript, call, fates, of


def problems(events: list[Any]) -> list[str]:
    return [problem.kind for problem in of(Problem, events)]


@pytest.mark.parametrize("kind", ["toolCall", "toolUse", "functionCall"])
@pytest.mark.parametrize("field", ["arguments", "input"])
def test_every_spelling_of_a_call_is_read(kind: str, field: str) -> None:
    made = Transcript()
    made.user()
    made.asks({"type": kind, "id": "c1", "name": "exec", field: {"command": "ls"}})
    made.result("c1")
    (turn,) = of(Turn, made.read())
    assert [(each.tool, each.arguments, each.id) for each in turn.calls] == [("exec", {"command": "ls"}, "c1")]


@pytest.mark.parametrize("arguments", ['{"command": "ls"}', ["ls"], None, 7])
def test_arguments_that_are_no_object_are_kept_as_they_are(arguments: Any) -> None:
    made = Transcript()
    made.user()
    made.asks({"type": "toolCall", "id": "c1", "name": "exec", "arguments": arguments})
    made.result("c1")
    assert of(Turn, made.read())[0].calls[0].arguments == arguments


def test_a_name_that_is_no_string_is_empty_and_named_as_a_problem() -> None:
    made = Transcript()
    made.user()
    made.asks({"type": "toolCall", "id": "c1", "name": 7, "arguments": {}})
    made.result("c1")
    events = made.read()
    assert of(Turn, events)[0].calls[0].tool == ""
    assert problems(events) == ["malformed-entry"]


def test_results_out_of_order_find_their_calls() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2"), call("c3"))
    for identity in ("c3", "c1", "c2"):
        made.result(identity)
    assert [result.index for result in of(Result, made.read())] == [2, 0, 1]


def test_duplicate_ids_in_one_message_are_answered_in_order() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c1"), call("c2"))
    for identity in ("c1", "c2", "c1"):
        made.result(identity)
    events = made.read()
    assert [result.index for result in of(Result, events)] == [0, 2, 1]
    assert not problems(events)


def test_calls_without_an_id_are_answered_by_results_of_the_same_tool() -> None:
    made = Transcript()
    made.user()
    made.asks(call(None, "exec"), call(None, "read"))
    made.result(None, tool="read")
    made.result(None, tool="exec")
    events = made.read()
    assert [result.index for result in of(Result, events)] == [1, 0]
    assert problems(events) == ["malformed-entry"] * 2


def test_an_id_that_is_used_again_later_is_a_new_call() -> None:
    """Some providers number the calls of each message from 0."""
    made = Transcript()
    made.user()
    for _ in range(3):
        made.asks(call("read:0"))
        made.result("read:0")
    events = made.read()
    assert fates(events) == [Fate.RAN] * 3
    assert len(of(Result, events)) == 3
    assert not problems(events)


def test_a_second_result_of_a_call_is_a_problem_and_skipped() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2"))
    made.result("c1")
    made.result("c1")
    made.result("c2")
    made.says()
    made.result("c2")
    events = made.read()
    assert len(of(Result, events)) == 2
    assert problems(events) == ["duplicate-result", "duplicate-result"]


def test_a_result_that_nobody_asked_for_is_a_problem() -> None:
    made = Transcript()
    made.user()
    made.result("c9")
    made.asks(call("c9"))
    events = made.read()
    assert problems(events) == ["orphan-result"]
    assert fates(events) == [Fate.LOST]


def test_calls_without_results_are_lost_when_the_model_asks_again() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2"))
    made.result("c2")
    made.asks(call("c3"))
    made.result("c3")
    made.result("c1")
    made.says()
    events = made.read()
    assert fates(events) == [Fate.LOST, Fate.RAN, Fate.RAN]
    assert problems(events) == ["late-result"]


def test_a_text_does_not_end_the_waiting_as_the_model_cannot_go_on_without_results() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.says("sent from elsewhere")
    made.result("c1")
    assert fates(made.read()) == [Fate.RAN]


@pytest.mark.parametrize("model", ["delivery-mirror", "gateway-injected"])
def test_texts_that_the_gateway_wrote_are_no_turns(model: str) -> None:
    made = Transcript()
    made.says("New session started", model=model)
    made.user()
    made.asks(call("c1"))
    made.says("sent", model=model)
    made.result("c1")
    made.says("done", model="m")
    made.says("done", model=model)
    events = made.read()
    assert [len(turn.calls) for turn in of(Turn, events)] == [1, 0]
    assert [(ended.run, ended.ending) for ended in of(RunEnded, events)] == [("#1", Ending.COMPLETED)]


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_calls_of_a_failed_message_never_ran(stop: str) -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2"), stop=stop)
    made.result("c1", "[openclaw] missing tool result in session history", error=True)
    made.result("c2", "Operation aborted", error=True)
    events = made.read()
    (turn,) = of(Turn, events)
    assert turn.failed
    assert fates(events) == [Fate.NOT_RUN, Fate.NOT_RUN]
    assert not of(Result, events)
    assert not problems(events)
    assert [(ended.ending, ended.unanswered) for ended in of(RunEnded, events)] == [(Ending.INTERRUPTED, False)]


def test_a_real_result_of_a_failed_message_is_a_problem() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), stop="error")
    made.result("c1")
    assert problems(made.read()) == ["result-of-failed-turn"]


def test_a_record_that_stops_after_the_calls_leaves_them_unanswered() -> None:
    """2026.9 stores nothing after a post-compaction abort."""
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2"))
    made.result("c1")
    events = made.read()
    assert fates(events) == [Fate.RAN, Fate.LOST]
    (ended,) = of(RunEnded, events)
    assert (ended.ending, ended.unanswered, ended.where.line) == (Ending.INTERRUPTED, True, 4)


def test_a_prompt_error_tells_why_results_are_lacking() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.entry("custom", customType="openclaw:prompt-error", data={"error": "rate limited"})
    assert [ended.unanswered for ended in of(RunEnded, made.read())] == [False]


def test_events_come_in_the_order_of_the_file_though_a_turn_waits_for_its_results() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), call("c2"))
    made.result("c2")
    made.raw(b"{\n")
    made.result("c1")
    kinds = [type(event) for event in made.read()]
    assert kinds[1:6] == [UserMessage, Turn, Result, Problem, Result]


def test_too_much_behind_a_call_without_result_gives_the_call_up() -> None:
    """Memory is bounded: the call is lost, and a result that comes after that is named."""
    made = Transcript()
    made.user("one")
    made.asks(call("c1"))
    base = made.user("two")
    for number in range(MAX_HELD // 2):
        made.asks(call(f"d{number}"))
        made.result(f"d{number}")
    made.result("c1", below="e2")
    events = made.read()
    assert base
    assert fates(events)[0] is Fate.LOST
    assert set(fates(events)[1:]) == {Fate.RAN}
    assert problems(events) == ["late-result"]


def test_a_total_of_tokens_is_the_recorded_one_or_else_the_sum_of_its_parts() -> None:
    made = Transcript()
    made.user()
    parts = {"input": 1, "output": 2, "cacheRead": 30, "cacheWrite": 4}
    made.says(usage={**parts, "totalTokens": 12})
    made.says(usage=parts)
    assert [turn.usage.total for turn in of(Turn, made.read())] == [12, 37]


def test_usage_is_read_and_garbage_in_it_is_none() -> None:
    made = Transcript()
    made.user()
    usage = {"input": 1, "output": 2.0, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10, "cost": {"total": 0.5}}
    made.says(usage=usage, model="m1")
    made.says(usage={"input": "x", "output": True, "cacheRead": -1, "cacheWrite": None, "cost": "much"})
    made.says(usage=[], cost=7)
    first, *rest = of(Turn, made.read())
    assert (first.usage.input, first.usage.output, first.usage.cache_read, first.usage.cache_write) == (1, 2, 3, 4)
    assert (first.usage.total, first.usage.cost_usd, first.model, first.stop_reason) == (10, 0.5, "m1", "stop")
    assert all(turn.usage.total == turn.usage.input == turn.usage.cost_usd == 0 for turn in rest)
