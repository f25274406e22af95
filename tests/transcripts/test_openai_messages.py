"""Messages with roles: every conversation a session of its own, in whatever shape it was written down."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Event, Fate, Problem, Result, SessionStarted, Turn, Usage, UserMessage
from loopscan.replayer import replay
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.openai_messages import OpenAIMessagesReader, logs, reader
from loopscan.transcripts.reader import Confidence, Source
from tests.transcripts.checks import account, check, of

#: Detection as it is without any setting; no configuration of this machine.
ON = {"enabled": True}
FIXTURES = Path(__file__).parents[2] / "fixtures" / "openai-messages"
REAL = Path(__file__).parents[3] / "shared" / "real"
READER = OpenAIMessagesReader()

SYSTEM = {"role": "system", "content": "You help."}
GO = {"role": "user", "content": "go"}
DONE = {"role": "assistant", "content": "done"}


def read(
    data: bytes, name: str = "talk.jsonl", entries: int | None = None, **options: Any
) -> tuple[list[Event], Source]:
    source = Source(name, lambda: io.BytesIO(data), **options)
    events = list(READER.read(source))
    check(events)
    account(source, entries)
    return events, source


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def document(value: Any) -> list[Event]:
    return read(json.dumps(value, indent=1).encode(), "talk.json", len(value) if isinstance(value, list) else 1)[0]


def asks(*calls: tuple[str, str], **fields: Any) -> dict[str, Any]:
    made = [
        {"id": identity, "type": "function", "function": {"name": name, "arguments": '{"a": 1}'}}
        for identity, name in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made, **fields}


def tool(identity: str, text: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": text}


TALK = [SYSTEM, GO, asks(("a", "look"), ("b", "find")), tool("b", "two"), tool("a", "one"), DONE]


def told(events: list[Event]) -> list[Any]:
    """Return what the events say, apart from where they stand."""
    return [
        (each.calls if isinstance(each, Turn) else each.outcome) for each in events if isinstance(each, Turn | Result)
    ]


def sessions(events: list[Event]) -> list[str]:
    return [each.session for each in of(SessionStarted, events)]


@pytest.mark.parametrize(
    "data",
    [
        lines(*TALK),
        lines({"messages": TALK}),
        lines(TALK, TALK[:1]),
        lines({"request": {"messages": TALK[:-1], "model": "m"}, "response": {"choices": [{"message": DONE}]}}),
        json.dumps(TALK, indent=1).encode(),
        json.dumps({"conversation": TALK}, indent=1).encode(),
        json.dumps([{"traj": TALK, "task_id": 1}], indent=1).encode(),
    ],
)
def test_a_conversation_is_the_same_in_every_shape(data: bytes) -> None:
    events = list(READER.read(Source("talk", lambda: io.BytesIO(data))))
    check(events)
    expected = told(read(lines(*TALK))[0])
    assert told(events) == expected
    assert len(expected) == 4
    assert len(of(UserMessage, events)) == 1


def test_calls_and_results_go_by_id_and_arguments_are_parsed() -> None:
    events = document(TALK)
    (turn, _) = of(Turn, events)
    assert [(call.tool, call.arguments, call.fate) for call in turn.calls] == [
        ("look", {"a": 1}, Fate.RAN),
        ("find", {"a": 1}, Fate.RAN),
    ]
    assert [each.index for each in of(Result, events)] == [1, 0]


@pytest.mark.parametrize(("written", "meant"), [("", {}), ("{bad", "{bad"), ({"a": 2}, {"a": 2}), ("[1]", [1])])
def test_arguments_are_what_their_text_says_or_the_text(written: Any, meant: Any) -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": written}}
    (turn,) = of(Turn, document([GO, {"role": "assistant", "content": None, "tool_calls": [call]}]))
    assert turn.calls[0].arguments == meant


def test_the_older_function_call_is_answered_by_its_name() -> None:
    events = document(
        [
            GO,
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "seen"},
        ]
    )
    assert [call.fate for turn in of(Turn, events) for call in turn.calls] == [Fate.RAN]


def test_blocks_of_anthropic_are_calls_results_and_errors() -> None:
    use = [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "t", "name": "look", "input": {"a": 1}}]
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1}
    failed = {
        "type": "tool_result",
        "tool_use_id": "t",
        "is_error": True,
        "content": [{"type": "text", "text": "no"}],
    }
    events = document(
        [GO, {"role": "assistant", "content": use, "usage": usage}, {"role": "user", "content": [failed]}]
    )
    assert of(Turn, events)[0].usage == Usage(10, 2, 5, 1, 18)
    assert of(Result, events)[0].outcome.error == "no"
    assert len(of(UserMessage, events)) == 1


def test_each_item_of_a_benchmark_is_a_session_though_ids_repeat() -> None:
    talk = [SYSTEM, GO, asks(("call_1", "look")), tool("call_1")]
    items = [{"task_id": 7, "trial": trial, "traj": talk} for trial in (0, 1)]
    events = document([*items, {"task_id": 8, "traj": talk[:-1]}, {"traj": talk}])
    assert sessions(events) == [
        "talk#task_id=7,trial=0",
        "talk#task_id=7,trial=1",
        "talk#task_id=8",
        "talk#4",
    ]
    assert [call.fate for turn in of(Turn, events) for call in turn.calls] == [
        Fate.RAN,
        Fate.RAN,
        Fate.LOST,
        Fate.RAN,
    ]
    assert not of(Problem, events)


def test_messages_that_name_their_session_are_told_apart() -> None:
    mixed = [{**each, "session_id": name} for each in TALK for name in ("one", "two")]
    events, _ = read(lines(*mixed))
    assert sessions(events) == ["one", "two"]
    assert sum(len(turn.calls) for turn in of(Turn, events)) == 4
    assert not of(Problem, events)


def test_the_same_system_message_again_begins_another_conversation() -> None:
    events, _ = read(lines(*TALK, *TALK, {"role": "system", "content": "Mind the time."}, GO))
    assert sessions(events) == ["talk", "talk~2"]


def test_no_more_sessions_go_on_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_SESSIONS", 2)
    events, _ = read(lines(*({**GO, "session_id": name} for name in "abca")))
    assert sessions(events) == ["a", "b", "c", "a~2"]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("Tool look not found", 1),
        ("Error: look is not a valid tool, try one of [find].", 1),
        ("Tool find not found", 0),
        ("look is not here", 0),
    ],
)
def test_a_tool_is_absent_if_the_answer_says_so_of_the_tool_that_was_called(text: str, absent: int) -> None:
    (turn,) = of(Turn, document([GO, asks(("a", "look")), tool("a", text)]))
    assert len(turn.absent) == absent


def test_what_is_no_message_in_a_conversation_is_named() -> None:
    events = document({"messages": [GO, 5, {"role": "ghost"}, DONE]})
    assert [each.kind for each in of(Problem, events)] == ["not-a-message"] * 2
    nameless = document([GO, {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}])
    assert [each.kind for each in of(Problem, nameless)] == ["malformed-call"]


# --- logs of requests


def log(messages: list[Any], reply: Any, total: int = 10, **fields: Any) -> dict[str, Any]:
    choice = {"finish_reason": "stop", "message": reply}
    usage = {"prompt_tokens": total - 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    return {"messages": messages, "response": {"choices": [choice], "usage": usage, "model": "m"}, **fields}


STEPS = [log(TALK[:2], TALK[2], 10, timestamp=1_780_000_000), log(TALK[:5], DONE, 20, timestamp=1_780_000_009)]


def test_logs_that_go_on_from_one_another_are_one_conversation_with_all_usage() -> None:
    events, source = read(lines(*STEPS))
    assert told(events) == told(read(lines(*TALK))[0])
    assert [(turn.usage.total, turn.usage.cache_read, turn.where.time) for turn in of(Turn, events)] == [
        (10, 4, 1_780_000_000),
        (20, 4, 1_780_000_009),
    ]
    assert {turn.model for turn in of(Turn, events)} == {"m"}
    assert source.copies == {source.name: 1}


def test_logs_of_several_conversations_may_come_in_turn() -> None:
    other = [log([{**GO, "content": "other"}, *each["messages"][2:]], DONE) for each in STEPS]
    events, _ = read(lines(STEPS[0], other[0], STEPS[1], other[1]))
    assert sorted(len(turn.calls) for turn in of(Turn, events)) == [0, 0, 2, 2]
    assert len(sessions(events)) == 2


def test_logs_with_the_same_opening_that_part_ways_are_two_conversations() -> None:
    parted = log([*TALK[:2], asks(("z", "leave")), tool("z", "gone")], DONE)
    assert len(sessions(read(lines(STEPS[1], parted))[0])) == 2


def test_no_more_logs_are_held_back_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_HELD", 1)
    other = log([{**GO, "content": "other"}], DONE)
    assert len(sessions(read(lines(STEPS[0], other, STEPS[1]))[0])) == 3


def test_a_request_that_failed_is_no_text_turn() -> None:
    events, _ = read(lines({"messages": [GO], "response": {"error": {"message": "busy"}}}))
    assert [turn.failed for turn in of(Turn, events)] == [True]


def test_a_log_in_a_file_of_its_own_is_a_copy_if_a_longer_one_was_read() -> None:
    data = [json.dumps(each).encode() for each in STEPS]
    families = [READER.family(each, "x") for each in data]
    assert families[0] == families[1] != frozenset()
    ledger = Ledger()
    read(data[1], "2.json", 1, ledger=ledger)
    events, source = read(data[0], "1.json", 1, ledger=ledger)
    assert not events
    assert source.copies == {"2.json": 1}
    again = Ledger()
    assert sessions(read(data[0], "1.json", 1, ledger=again)[0]) == ["1"]
    assert sessions(read(data[1], "2.json", 1, ledger=again)[0]) == ["2"]


# --- recognition, robustness


@pytest.mark.parametrize(
    ("head", "likely"),
    [
        (lines(*TALK), True),
        (json.dumps(TALK, indent=1).encode(), True),
        (b'[{"role": "system", "content": "' + b"long" * 99, True),
        (b'{"model": "m", "messages": [{"role": "user", "content": "lo' + b'\\"ng' * 99, True),
        (b'[{"role": "admin", "content": "' + b"long" * 99, False),
        (b'{"name": {"role": "user", "content": "' + b"long" * 99, False),
        (b'{"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "' + b"long" * 99, True),
        (lines(STEPS[0]), True),
        (json.dumps([{"task_id": 1, "info": {}, "traj": TALK}]).encode()[:200], True),
        (lines({"type": "message", "message": GO}), False),
        (lines({"role": "user", "parts": []}), False),
        (lines({"role": "admin", "content": "x"}), False),
        (lines({"role": "user", "name": "x"}), False),
        (lines({"role": "user", "content": 5}), False),
        (lines(GO, {"level": "info"}), False),
        (lines({"messages": []}), False),
        (lines({"messages": ["hello"]}), False),
        (b"[]", False),
        (b"[1, 2]", False),
        (b"", False),
        (b"\xff{[", False),
    ],
)
def test_only_messages_are_recognised_and_never_for_sure(head: bytes, likely: bool) -> None:
    assert READER.recognise(head, "x") is (Confidence.LIKELY if likely else Confidence.NO)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
IDS = st.sampled_from(["a", "b", 1]) | ANY
CALLS = st.lists(
    st.fixed_dictionaries({"id": IDS, "function": st.fixed_dictionaries({"name": IDS, "arguments": ANY}) | ANY})
    | ANY,
    max_size=3,
)
BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["tool_use", "tool_result", "text"]) | ANY},
        optional={"id": IDS, "name": IDS, "input": ANY, "tool_use_id": IDS, "content": ANY, "text": ANY},
    )
    | ANY,
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "function", "system"]) | ANY,
        "content": st.just("x") | BLOCKS | ANY,
    },
    optional={
        "tool_calls": CALLS | ANY,
        "function_call": st.fixed_dictionaries({"name": IDS}) | ANY,
        "tool_call_id": IDS,
        "name": IDS,
        "usage": st.dictionaries(st.sampled_from(["prompt_tokens", "input_tokens", "cache_read_input_tokens"]), ANY)
        | ANY,
        "session_id": IDS,
        "timestamp": ANY,
    },
)
RECORDS = MESSAGES | st.fixed_dictionaries(
    {"messages": st.lists(MESSAGES | ANY, max_size=4)},
    optional={
        "response": st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({"message": MESSAGES}) | ANY)})
        | ANY,
        "task_id": IDS,
        "trial": IDS,
        "cost": ANY,
    },
)


@settings(max_examples=150, deadline=None)
@given(records=st.lists(RECORDS, max_size=6))
def test_whatever_is_in_the_records_every_promise_is_kept(records: list[Any]) -> None:
    data = lines(*records).replace(b"NaN", b"1e999").replace(b"-Infinity", b"-1e999").replace(b"Infinity", b"1e999")
    source = Source("x.jsonl", lambda: io.BytesIO(data), ledger=Ledger())
    READER.recognise(data, "x")
    READER.family(data, "x")
    check(list(READER.read(source)))
    account(source, len(records))


def test_deep_nesting_and_lone_surrogates_do_no_harm() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    asked = b'{"role": "assistant", "tool_calls": [{"id": "c", "name": "t", "args": %s}]}' % deep
    answered = b'{"role": "tool", "tool_call_id": "c", "content": [%s, "\\ud800"]}' % deep
    for data in (asked + b"\n" + answered, b'{"messages": [%s, %s], "response": {}}' % (asked, answered)):
        events = list(READER.read(Source("x", lambda data=data: io.BytesIO(data))))  # type: ignore[misc]
        check(events)
        assert len(of(Result, events)) == 1


# --- fixtures and recorded sessions


def test_the_loops_of_the_fixtures_are_found_and_only_those() -> None:
    expected = [("warning", 10), ("block", 20), ("block", 21), ("run_end", 21)]
    found = {}
    for name in ("tool-library.json", "stuck-drawer.jsonl", "weather-requests.jsonl"):
        for session in replay(FIXTURES / name, ruleset="2026.9", config=ON).sessions:
            found[session.session] = [(mark.kind, mark.count) for run in session.runs for mark in run.marks]
    assert found == {
        "tool-library#task_id=4,trial=0": [],
        "tool-library#task_id=4,trial=1": [],
        "tool-library#task_id=5,trial=0": expected,
        "stuck-drawer": expected,
        "weather-requests": [],
    }


@pytest.mark.skipif(not REAL.is_dir(), reason="no recorded sessions here")
def test_of_recorded_files_only_those_of_this_format_are_taken() -> None:
    taken = set()
    for path in sorted(REAL.glob("*/*")):
        with path.open("rb") as stream:
            if READER.recognise(stream.read(1 << 16), str(path)):
                taken.add(path.parent.name)
    assert taken == {"openai-messages"}


def test_messages_alone_that_go_on_from_those_before_count_once() -> None:
    """As a logger writes them that knows of no responses: all messages so far, again and again."""
    messages: list[dict[str, Any]] = [GO]
    logged = []
    for number in range(5):
        messages = [*messages, asks((f"c{number}", "look")), tool(f"c{number}", "same")]
        logged.append({"ts": number, "model": "m", "messages": messages})
    events, source = read(lines(*logged))
    assert sum(len(turn.calls) for turn in of(Turn, events)) == 5
    assert len(of(SessionStarted, events)) == 1
    assert source.copies == {source.name: 4}


def test_conversations_that_are_equal_or_have_other_names_are_told_apart() -> None:
    short = [GO, asks(("c1", "look"))]
    longer = [*short, tool("c1", "same")]
    events, _ = read(lines({"messages": short}, {"messages": short}))
    assert len(of(SessionStarted, events)) == 2
    events, _ = read(lines({"id": "a", "messages": short}, {"id": "b", "messages": longer}))
    assert len(of(SessionStarted, events)) == 2
