"""Sessions of the Gemini CLI: chats and session files, each message once, in its last state."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import (
    Compaction,
    Ending,
    Event,
    Fate,
    Problem,
    Result,
    RunEnded,
    SessionStarted,
    Turn,
    UserMessage,
)
from loopscan.replayer import replay
from loopscan.transcripts.gemini import GeminiReader
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.reader import Confidence, Source
from tests.transcripts.checks import account, check, of

#: Detection as it is without any setting; no configuration of this machine.
ON = {"enabled": True}
FIXTURES = Path(__file__).parents[2] / "fixtures" / "gemini"
REAL = Path(__file__).parents[3] / "shared" / "real" / "gemini"
READER = GeminiReader()
HEADER = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-09-01T10:00:00.000Z"}


def read(
    data: bytes, name: str = "chat.jsonl", entries: int | None = None, **options: Any
) -> tuple[list[Event], Source]:
    source = Source(name, lambda: io.BytesIO(data), **options)
    events = list(READER.read(source))
    check(events)
    account(source, entries)
    assert set(source.normalised) <= set(READER.traits.normalisers)
    return events, source


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def chat(*contents: tuple[str, list[Any]]) -> list[Event]:
    document = [{"role": role, "parts": parts} for role, parts in contents]
    return read(json.dumps(document, indent=1).encode(), "chat.json", len(document))[0]


def calls(*calls: tuple[str, str]) -> list[Any]:
    return [{"functionCall": {"id": identity, "name": name, "args": {"a": 1}}} for identity, name in calls]


def answer(identity: str | None, name: str, **response: Any) -> dict[str, Any]:
    named = {} if identity is None else {"id": identity}
    return {"functionResponse": {**named, "name": name, "response": response}}


def message(identity: str, kind: str = "gemini", content: Any = "", **fields: Any) -> dict[str, Any]:
    return {"id": identity, "timestamp": "2026-09-01T10:00:01.000Z", "type": kind, "content": content, **fields}


def tool_call(
    identity: str, output: str | None, *, name: str = "read_file", status: str = "success"
) -> dict[str, Any]:
    result = None if output is None else [answer(identity, name, output=output)]
    return {"id": identity, "name": name, "args": {"path": "a"}, "status": status, "result": result}


def shell(output: str) -> Any:
    """Return the outcome of a shell command."""
    events = chat(
        ("model", calls(("c", "run_shell_command"))), ("user", [answer("c", "run_shell_command", output=output)])
    )
    (result,) = of(Result, events)
    return result.outcome


def test_a_chat_is_read_content_by_content() -> None:
    events = chat(
        ("user", [{"text": "go"}]),
        ("model", [{"text": "hm", "thought": True}, *calls(("a", "read_file"), ("b", "glob"))]),
        ("user", [answer("b", "glob", output="x"), answer("a", "read_file", error="no such file")]),
        ("model", [{"text": "done"}]),
        ("user", [{"text": "again"}]),
    )
    (turn, last) = of(Turn, events)
    assert [(call.tool, call.arguments, call.fate) for call in turn.calls] == [
        ("read_file", {"a": 1}, Fate.RAN),
        ("glob", {"a": 1}, Fate.RAN),
    ]
    assert not last.calls
    results = {each.index: each.outcome for each in of(Result, events)}
    assert results[0].error == "no such file"
    assert results[1].result == {"content": [{"type": "text", "text": "x"}]}
    assert len(of(UserMessage, events)) == 2
    assert [each.session for each in of(SessionStarted, events)] == ["chat"]


@pytest.mark.parametrize("text", ["<session_context>\nx", "System: Please continue.", "Please continue."])
def test_what_the_cli_says_in_the_name_of_the_user_opens_no_run(text: str) -> None:
    events = chat(("user", [{"text": "go"}]), ("model", calls(("a", "glob"))), ("user", [{"text": text}]))
    assert len(of(UserMessage, events)) == 1


def test_context_is_acknowledged_without_a_turn() -> None:
    events = chat(
        ("user", [{"text": "<session_context>\nx"}]),
        ("model", [{"text": "Got it."}]),
        ("user", [{"text": "go"}]),
        ("model", [{"text": "done"}]),
    )
    assert len(of(Turn, events)) == len(of(UserMessage, events)) == len(of(RunEnded, events)) == 1


def test_a_snapshot_is_a_compaction_and_within_the_run_if_that_goes_on() -> None:
    before = [
        ("user", [{"text": "go"}]),
        ("model", calls(("a", "glob"))),
        ("user", [answer("a", "glob", output="x")]),
    ]
    snapshot = ("user", [{"text": "<state_snapshot>so far</state_snapshot>"}])
    ended = chat(*before, snapshot, ("model", [{"text": "Got it."}]), ("user", [{"text": "next"}]))
    went_on = chat(*before, snapshot, ("model", [{"text": "Got it."}]), ("model", calls(("b", "glob"))))
    assert [each.in_run for each in of(Compaction, ended)] == [False]
    assert [each.in_run for each in of(Compaction, went_on)] == [True]


def test_responses_without_a_matching_id_are_for_the_first_open_call_of_the_tool() -> None:
    document: list[tuple[str, list[Any]]] = [
        ("model", [{"functionCall": {"name": "glob", "args": {}}}, {"functionCall": {"name": "grep", "args": {}}}]),
        ("user", [answer("grep-17", "grep", output="g"), answer(None, "glob", output="l")]),
    ]
    assert [each.index for each in of(Result, chat(*document))] == [1, 0]


@pytest.mark.parametrize(
    ("response", "fate", "absent"),
    [
        ({"error": "[Operation Cancelled] Reason: User denied execution."}, Fate.NOT_RUN, 0),
        ({"error": 'Tool "glob" not found in registry. Tools must use the exact names.'}, None, 1),
        ({"error": 'Tool "other" not found in registry.'}, Fate.RAN, 0),
        ({"output": 'Tool "glob" not found in registry.'}, Fate.RAN, 0),
        ({"count": 3, "names": ["a"]}, Fate.RAN, 0),
    ],
)
def test_what_became_of_a_call_is_told_by_its_response(response: Any, fate: Fate | None, absent: int) -> None:
    events = chat(("model", calls(("a", "glob"))), ("user", [answer("a", "glob", **response)]))
    (turn,) = of(Turn, events)
    assert [call.fate for call in turn.calls] == ([] if fate is None else [fate])
    assert len(turn.absent) == absent


def test_the_report_of_the_shell_is_a_command_without_its_process_ids() -> None:
    one = shell("Output: 1 failed\nExit Code: 2\nBackground PIDs: 7, 8\nProcess Group PGID: 4711")
    assert one == shell("Output: 1 failed\nExit Code: 2\nBackground PIDs: 9\nProcess Group PGID: 99")
    assert one == shell("Command: make\n  test\nDirectory: (root)\nOutput: 1 failed\nError: (none)\nExit Code: 2")
    assert one.is_error
    assert one.result["details"] == {"status": "failed", "aggregated": "1 failed", "exitCode": 2}
    assert one != shell("Output: 1 failed\nExit Code: 3\nProcess Group PGID: 4711")
    assert one != shell("Output: 2 failed\nExit Code: 2\nProcess Group PGID: 4711")


def test_what_the_command_itself_printed_stays() -> None:
    printed = shell("Output: Process Group PGID: 1\nok\nProcess Group PGID: 2")
    assert printed.result["details"]["aggregated"] == "Process Group PGID: 1\nok"
    assert shell("Command was automatically cancelled").result["content"][0]["text"] == (
        "Command was automatically cancelled"
    )


MASKED = (
    "<tool_output_masked>\n{}\n\nOutput too large. Full output available at: /t/read_{}.txt\n</tool_output_masked>"
)
CUT = "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /t/{}.txt\n{}"


def test_paths_of_saved_outputs_are_taken_out_and_masked_outputs_are_lossy() -> None:
    def outcome(text: str) -> Any:
        events = chat(("model", calls(("a", "glob"))), ("user", [answer("a", "glob", output=text)]))
        return of(Result, events)[0].outcome

    assert outcome(MASKED.format("x", 1)) == outcome(MASKED.format("x", 2))
    assert outcome(MASKED.format("x", 1)) != outcome(MASKED.format("y", 1))
    assert outcome(MASKED.format("x", 1)).lossy
    assert outcome(CUT.format(1, "x")) == outcome(CUT.format(2, "x"))
    assert outcome(CUT.format(1, "x")) != outcome(CUT.format(1, "y"))
    assert not outcome(CUT.format(1, "x")).lossy
    assert outcome("see /t/read_1.txt") != outcome("see /t/read_2.txt")


def test_a_message_that_is_written_again_counts_once_in_its_last_state() -> None:
    tokens = {"input": 100, "output": 5, "cached": 40, "thoughts": 2, "total": 107}
    events, source = read(
        lines(
            HEADER,
            message("u", "user", "go"),
            message("m", model="g"),
            {"$set": {"lastUpdated": "x"}},
            message("m", model="g", toolCalls=[tool_call("c", None, status="executing")]),
            message("m", model="g", tokens=tokens, toolCalls=[tool_call("c", "out")]),
            message("n", content="done", tokens=tokens),
        )
    )
    (turn, _) = of(Turn, events)
    assert [call.fate for call in turn.calls] == [Fate.RAN]
    assert (turn.usage.input, turn.usage.output, turn.usage.cache_read, turn.usage.total) == (60, 7, 40, 107)
    assert (turn.where.line, of(Result, events)[0].where.line) == (3, 6)
    assert source.copies == {source.name: 2}
    assert source.used == {"session": 1, "user": 1, "gemini": 2}
    assert [each.session for each in of(SessionStarted, events)] == ["s1"]


def test_what_comes_late_to_a_message_that_others_followed_is_not_lost_and_not_double() -> None:
    events, source = read(
        lines(
            HEADER,
            message("m", toolCalls=[tool_call("a", "1")]),
            message("i", "info", "note"),
            message("m", toolCalls=[tool_call("a", "1"), tool_call("b", "2")]),
            message("m", toolCalls=[tool_call("a", "1"), tool_call("b", "2")]),
        )
    )
    assert [[call.id for call in turn.calls] for turn in of(Turn, events)] == [["a"], ["b"]]
    assert len(of(Result, events)) == 2
    assert source.copies == {source.name: 1}


def test_a_document_and_its_lines_give_the_same() -> None:
    messages = [
        message("u", "user", "go"),
        message("m", toolCalls=[tool_call("c", "out")]),
        message("n", content="ok"),
    ]
    document, _ = read(json.dumps({**HEADER, "messages": messages}, indent=1).encode(), "s.json", 1)
    streamed, _ = read(lines(HEADER, *messages))
    assert [type(event) for event in document] == [type(event) for event in streamed]
    assert of(Turn, document)[0].calls == of(Turn, streamed)[0].calls


def test_a_session_in_two_files_counts_once() -> None:
    messages = [message("u", "user", "go"), message("m", toolCalls=[tool_call("c", "out")])]
    ledger = Ledger()
    newer, _ = read(lines(HEADER, *messages, message("n", content="ok")), "s.jsonl", ledger=ledger)
    older, source = read(json.dumps({**HEADER, "messages": messages}).encode(), "s.json", 1, ledger=ledger)
    assert (len(of(Turn, newer)), len(of(Turn, older))) == (2, 0)
    assert source.copies == {"s.jsonl": 1}
    families = [READER.family(data, "x") for data in (lines(HEADER), json.dumps({**HEADER, "messages": []}).encode())]
    assert families == [frozenset({"s1"})] * 2


def test_a_patch_with_all_messages_repeats_them_and_may_tell_of_a_compression() -> None:
    messages = [message("u", "user", "go"), message("m", toolCalls=[tool_call("c", "out")])]
    snapshot = message("z", "user", [{"text": "<state_snapshot>so far</state_snapshot>"}])
    events, _ = read(
        lines(HEADER, *messages, {"$set": {"messages": [snapshot, *messages]}}, message("n", content="ok"))
    )
    assert [each.in_run for each in of(Compaction, events)] == [True]
    assert sum(len(turn.calls) for turn in of(Turn, events)) == 1
    resumed, _ = read(lines(HEADER, {"$set": {"messages": messages}}, message("n", content="ok")))
    assert sum(len(turn.calls) for turn in of(Turn, resumed)) == 1


@pytest.mark.parametrize(("kind", "text"), [("error", "[API Error: quota]"), ("info", "Request cancelled.")])
def test_a_run_that_waits_for_an_answer_is_stopped_by_an_error_or_the_user(kind: str, text: str) -> None:
    going = message("m", toolCalls=[tool_call("c", "x")])
    stopped, _ = read(lines(HEADER, message("u", "user", "go"), going, message("e", kind, text)))
    finished, _ = read(
        lines(HEADER, message("u", "user", "go"), message("m", content="ok"), message("e", kind, text))
    )
    assert [each.ending for each in of(RunEnded, stopped)] == [Ending.INTERRUPTED]
    assert [each.ending for each in of(RunEnded, finished)] == [Ending.COMPLETED]


def test_statuses_and_notes_of_a_session_file() -> None:
    events, source = read(
        lines(
            HEADER,
            message("m", toolCalls=[tool_call("a", "x", status="error"), tool_call("b", "x", status="cancelled")]),
            message(
                "i", "info", "IMPORTANT: a compressed context will be sent (compressed from: 900 to 300 tokens)."
            ),
            message("k", toolCalls=[{"id": "c"}]),
            message("w", "warning", "x"),
            {"$rewindTo": "m"},
            {"type": "new-thing", "id": "q"},
        )
    )
    assert [call.fate for call in of(Turn, events)[0].calls] == [Fate.RAN, Fate.NOT_RUN]
    assert of(Result, events)[0].outcome.error == "x"
    assert len(of(Compaction, events)) == 1
    assert [each.kind for each in of(Problem, events)] == ["malformed-call"]
    assert source.unused == {"warning": 1, "$rewindTo": 1, "new-thing": 1}


@pytest.mark.parametrize(
    ("head", "sure"),
    [
        (lines(HEADER, message("u", "user", "go")), Confidence.SURE),
        (lines(message("u", "user", "go")), Confidence.LIKELY),
        (lines({"$set": {"messages": []}}, message("m")), Confidence.SURE),
        (json.dumps({**HEADER, "messages": [message("u", "user")]}, indent=2).encode(), Confidence.SURE),
        (b'[{"role": "user", "parts": [{"text": "' + b"long" * 99, Confidence.SURE),
        (json.dumps({"history": [{"role": "model", "parts": []}]}).encode(), Confidence.SURE),
        (b'[{"role": "user", "content": "go"}]', Confidence.NO),
        (b'{"parts": [1], "role": "user"}', Confidence.NO),
        (b'[{"parts": ["wheel", "tyre"], "role": "car"}]', Confidence.NO),
        (b'{"sessionId": "x", "type": "user"}', Confidence.NO),
        (b"", Confidence.NO),
        (b"\xff[{", Confidence.NO),
    ],
)
def test_the_format_is_recognised_by_its_content(head: bytes, sure: Confidence) -> None:
    assert READER.recognise(head, "x") is sure


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
WORDS = {
    "id": st.sampled_from(["a", "b"]) | ANY,
    "type": st.sampled_from(["user", "gemini", "info", "error"]) | ANY,
    "role": st.sampled_from(["user", "model"]) | ANY,
    "content": st.sampled_from(["x", [{"functionResponse": {"id": "a"}}], "<state_snapshot>"]) | ANY,
    "parts": st.lists(
        st.sampled_from(
            [{"functionCall": {"id": "a", "name": "t"}}, {"functionResponse": {"id": "a", "response": {}}}]
        )
        | ANY,
        max_size=3,
    )
    | ANY,
    "toolCalls": st.lists(
        st.fixed_dictionaries({"id": st.sampled_from(["a", "b", 1]) | ANY, "name": st.sampled_from(["t"]) | ANY})
        | ANY,
        max_size=3,
    )
    | ANY,
    "tokens": st.dictionaries(st.sampled_from(["input", "cached", "total"]), ANY) | ANY,
    "timestamp": ANY,
    "sessionId": st.sampled_from(["s", "t"]) | ANY,
    "messages": st.lists(ANY, max_size=2) | ANY,
    "$set": st.just({"messages": [{"id": "a", "type": "user", "content": "x"}, 1]}) | ANY,
    "history": ANY,
}
RECORDS = st.lists(st.fixed_dictionaries({}, optional=WORDS), max_size=8)


@settings(max_examples=150, deadline=None)
@given(records=RECORDS)
def test_whatever_is_in_the_records_every_promise_is_kept(records: list[Any]) -> None:
    data = lines(*records).replace(b"NaN", b"1e999").replace(b"-Infinity", b"-1e999").replace(b"Infinity", b"1e999")
    source = Source("x.jsonl", lambda: io.BytesIO(data), ledger=Ledger())
    check(list(READER.read(source)))
    account(source, len(records))


def test_deep_nesting_and_lone_surrogates_do_no_harm() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    call = b'{"id": "m", "type": "gemini", "toolCalls": [{"id": "c", "name": "t", "args": %s, "result": %s}]}\n'
    response = (
        b'{"parts": [{"functionResponse": {"id": "d", "name": "t", "response": {"x": "\\ud800"}}}], "role": "user"}\n'
    )
    asked = b'{"parts": [{"functionCall": {"id": "d", "name": "t\\ud800"}}], "role": "model"}\n'
    events, _ = read(call % (deep, deep) + asked + response)
    assert len(of(Result, events)) == 2


def test_the_loops_of_the_fixtures_are_found_and_the_clean_one_is_not_blocked() -> None:
    report = replay(FIXTURES / "failing-tests.jsonl", ruleset="2026.9", config=ON)
    marks = [(mark.kind, mark.count) for session in report.sessions for run in session.runs for mark in run.marks]
    assert marks == [("warning", 10), ("block", 20), ("block", 21), ("run_end", 21)]
    assert report.sources[0].normalised == {"process-ids": 23}
    (masked,) = replay(FIXTURES / "checkpoint-herbs.json", ruleset="2026.9", config=ON).sessions
    assert [(mark.kind, mark.lossy) for run in masked.runs for mark in run.marks] == [
        ("warning", False),
        ("block", True),
    ]
    (clean,) = replay(FIXTURES / "garden-plan.json", ruleset="2026.9", config=ON).sessions
    assert [mark.kind for run in clean.runs for mark in run.marks] == ["guard_armed"]
    assert clean.calls == 5


@pytest.mark.skipif(not REAL.is_dir(), reason="no recorded sessions here")
def test_every_call_and_response_of_recorded_chats_is_there() -> None:
    for path in sorted(REAL.glob("*.json")):
        document = json.loads(path.read_bytes())
        parts = [part for content in document for part in content["parts"]]
        events = list(READER.read(Source.of_file(path)))
        check(events)
        assert sum(turn.stored_calls for turn in of(Turn, events)) == sum("functionCall" in part for part in parts)
        lost = sum(each.kind == "orphan-result" for each in of(Problem, events))
        assert len(of(Result, events)) + lost == sum("functionResponse" in part for part in parts)
