"""Messages in, events out: which results belong to which calls, where runs begin and end, what was in a run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import (
    Call,
    Compaction,
    Ending,
    Event,
    Fate,
    Problem,
    Result,
    RunEnded,
    SessionResumed,
    Turn,
    Usage,
    UserMessage,
    Where,
)
from loopscan.transcripts import dialogue as module
from loopscan.transcripts.dialogue import Dialogue, Dialogues, command_result, text_result
from tests.transcripts.checks import check, of

OK = text_result("ok")


class Talk:
    """A dialogue in which every message stands in a line of its own."""

    def __init__(self) -> None:
        self.dialogue = Dialogue("s", Where(1))
        self.line = 1

    def __getattr__(self, name: str) -> Any:
        def tell(*given: Any, **named: Any) -> Any:
            self.line += 1
            return getattr(self.dialogue, name)(Where(self.line), *given, **named)

        return tell

    def events(self) -> list[Event]:
        self.dialogue.finish()
        events = self.dialogue.drain()
        check(events)
        return events


def calls(*ids: str | None, tool: str = "read") -> list[Call]:
    return [Call(tool, {"path": "a"}, each) for each in ids]


def fates(events: list[Event]) -> list[list[Fate]]:
    return [[call.fate for call in turn.calls] for turn in of(Turn, events)]


def test_results_find_their_calls_in_any_order_and_what_has_none_is_lost() -> None:
    talk = Talk()
    talk.user()
    talk.turn(calls("a", "b", "c"))
    talk.result(text_result("two"), call_id="b")
    talk.result(text_result("one"), call_id="a")
    talk.turn()
    events = talk.events()
    assert fates(events) == [[Fate.RAN, Fate.RAN, Fate.LOST], []]
    assert [(each.index, each.where.line) for each in of(Result, events)] == [(1, 4), (0, 5)]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.COMPLETED]


def test_parts_of_one_message_are_one_turn_whose_usage_counts_once() -> None:
    talk = Talk()
    talk.user()
    talk.turn(message="m", usage=Usage(total=10))
    talk.turn(calls("a"), message="m", usage=Usage(total=10))
    talk.result(OK, call_id="a")
    talk.turn(calls("b"), message="m", usage=Usage(total=12))
    talk.result(OK, call_id="b")
    talk.turn(calls("c"), message="n", usage=Usage(total=1))
    events = talk.events()
    assert fates(events) == [[Fate.RAN, Fate.RAN], [Fate.LOST]]
    assert [turn.usage.total for turn in of(Turn, events)] == [12, 1]
    assert [turn.where.line for turn in of(Turn, events)] == [3, 8]


def test_without_ids_a_result_is_for_the_first_open_call_it_can_be_for() -> None:
    talk = Talk()
    talk.turn([Call("read", {}), Call("write", {}), Call("read", {})])
    talk.result(OK, tool="read")
    talk.result(OK, tool="write")
    talk.result(OK)
    events = talk.events()
    assert [each.index for each in of(Result, events)] == [0, 1, 2]
    assert not of(UserMessage, events)


def test_results_that_nobody_waits_for_are_named() -> None:
    talk = Talk()
    talk.result(OK, call_id="x")
    talk.turn(calls("a", "b"))
    talk.result(OK, call_id="a")
    talk.result(OK, call_id="a")
    talk.turn()
    talk.result(OK, call_id="b")
    assert [each.kind for each in of(Problem, talk.events())] == ["orphan-result", "duplicate-result", "late-result"]


def test_user_input_is_steering_if_a_result_of_the_open_calls_still_comes() -> None:
    talk = Talk()
    talk.user()
    talk.turn(calls("a"))
    talk.user()
    talk.result(OK, call_id="a")
    talk.turn(calls("b"))
    talk.user()
    talk.turn()
    events = talk.events()
    assert [each.steering for each in of(UserMessage, events)] == [False, True, False]
    assert fates(events) == [[Fate.RAN], [Fate.LOST], []]
    assert [turn.run for turn in of(Turn, events)] == ["#1", "#1", "#2"]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.INTERRUPTED, Ending.COMPLETED]


@pytest.mark.parametrize(("then", "in_run"), [("turn", True), ("user", False), ("stopped", False)])
def test_a_compaction_is_within_the_run_if_the_run_goes_on(then: str, in_run: bool) -> None:
    talk = Talk()
    talk.user()
    talk.turn(calls("a"))
    talk.result(OK, call_id="a")
    talk.compaction()
    getattr(talk, then)()
    (found,) = of(Compaction, talk.events())
    assert found.in_run is in_run
    assert found.run == ("#1" if in_run else None)


def test_a_compaction_after_the_model_was_done_is_between_runs() -> None:
    talk = Talk()
    talk.user()
    talk.turn()
    talk.compaction()
    talk.turn()
    assert [each.in_run for each in of(Compaction, talk.events())] == [False]


def test_a_run_that_is_steered_after_a_compaction_goes_on() -> None:
    talk = Talk()
    talk.user()
    talk.turn(calls("a"))
    talk.result(OK, call_id="a")
    talk.compaction()
    talk.user(steering=True)
    events = talk.events()
    assert [type(each) for each in events[-4:-2]] == [Compaction, UserMessage]
    assert [each.in_run for each in of(Compaction, events)] == [True]


def test_user_input_before_input_that_steers_steers_too() -> None:
    talk = Talk()
    talk.user()
    talk.turn(calls("a"))
    talk.user()
    talk.user(steering=True)
    events = talk.events()
    assert [(each.where.line, each.steering) for each in of(UserMessage, events)] == [
        (2, False),
        (4, True),
        (5, True),
    ]
    assert len(of(RunEnded, events)) == 1


def test_calls_of_a_failed_message_did_not_run_and_absent_tools_are_no_calls() -> None:
    talk = Talk()
    talk.turn(calls("a"), failed=True)
    talk.turn([Call("read", {}, "b"), Call("frobnicate", {"x": 1}, "c"), Call("read", {}, "d")])
    talk.absent("no such tool", call_id="c")
    talk.result(OK, call_id="d")
    talk.result(None, call_id="b", fate=Fate.NOT_RUN)
    events = talk.events()
    assert fates(events) == [[Fate.NOT_RUN], [Fate.NOT_RUN, Fate.RAN]]
    (turn,) = [turn for turn in of(Turn, events) if turn.absent]
    assert [(each.tool, each.position, each.arguments) for each in turn.absent] == [("frobnicate", 1, {"x": 1})]
    assert turn.stored_calls == 3


def test_no_more_is_held_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 3)
    talk = Talk()
    talk.turn(calls(*"abcdef"))
    for each in "abcd":
        talk.result(OK, call_id=each)
    events = talk.events()
    assert [call.fate for call in of(Turn, events)[0].calls] == [Fate.RAN] * 3 + [Fate.LOST] * 3
    assert [each.kind for each in of(Problem, events)] == ["late-result"]


def test_a_command_is_an_exec_result() -> None:
    assert command_result("out", 0).is_error is False
    failed = command_result("out", 2)
    assert failed.is_error
    assert isinstance(failed.result, dict)
    assert failed.result["details"] == {"status": "failed", "aggregated": "out", "exitCode": 2}


def test_sessions_may_go_on_at_the_same_time() -> None:
    talks = Dialogues()
    events: list[Event] = []
    for line, name in enumerate("aabbabb", 1):
        (talks.get(name) or talks.start(name, Where(line))).user(Where(line))
        events += talks.drain()
    talks.end("a")
    events += talks.drain()
    events += talks.finish()
    check(events)
    assert [each.session for each in of(SessionResumed, events)] == ["a", "b", "a", "b"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["user", "turn", "part", "result", "absent", "compaction", "stopped", "completed"]),
        st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=3),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_whatever_the_record_says_the_events_hold_what_readers_promise(steps: list[tuple[str, list[Any]]]) -> None:
    talk = Talk()
    asked = 0
    for kind, ids in steps:
        if kind in ("turn", "part"):
            talk.turn(calls(*ids), message="m" if kind == "part" else None)
            asked += len(ids)
        elif kind == "result":
            talk.result(OK, call_id=ids[0] if ids else None)
        elif kind == "absent":
            talk.absent("none", call_id=ids[0] if ids else None)
        else:
            getattr(talk, kind)()
    events = talk.events()
    assert sum(turn.stored_calls for turn in of(Turn, events)) == asked
