"""Trajectories: an export gives what its transcript gives; without either, what the runtime tells is rebuilt."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import (
    AbsentCall,
    Compaction,
    Ending,
    Event,
    Fate,
    Problem,
    Recorded,
    Result,
    RunEnded,
    SessionEnded,
    SessionResumed,
    SessionStarted,
    Turn,
    Usage,
    UserMessage,
)
from loopscan.replayer import replay
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.openclaw.trajectory import TrajectoryReader
from loopscan.transcripts.reader import Confidence, Source
from tests.transcripts.build import START, Transcript, call, fates
from tests.transcripts.checks import account, check, of

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "openclaw-trajectory"
SHARED = Path(__file__).resolve().parents[4] / "shared"
LOOP = (
    "CRITICAL: tool read repeated 3 times with identical arguments and identical results within 3 attempts "
    "after auto-compaction."
)
TYPES = {"user": "user.message", "assistant": "assistant.message", "toolResult": "tool.result"}


class Trace:
    """A trajectory in the making; every method appends lines."""

    def __init__(self, session: str = "s1") -> None:
        self.lines: list[bytes] = []
        self.session = session
        self.time = START

    def event(self, kind: str, data: Any = None, *, source: str = "runtime", after: float = 1, **extra: Any) -> None:
        self.time += timedelta(seconds=after)
        own = {"sessionId": self.session, "sessionKey": "agent:pier:main", "ts": iso(self.time), "data": data or {}}
        body = {"traceSchema": "openclaw-trajectory", "schemaVersion": 1, "source": source, "type": kind, **own}
        self.lines.append(json.dumps({**body, **extra}).encode() + b"\n")

    def transcript(self, made: Transcript) -> None:
        """Append the entries of a transcript as an export holds them: each call twice."""
        for line in made.lines:
            entry = json.loads(line)
            kind = entry.pop("type")
            if kind == "session":
                continue
            ids = {"entryId": entry.pop("id"), "parentEntryId": entry.pop("parentId"), "ts": entry.pop("timestamp")}
            message = entry.get("message")
            name = TYPES.get(message["role"], "message." + message["role"]) if message else "session." + kind
            self.event(name, entry, source="transcript", **ids)
            if message and message["role"] == "assistant":
                for index, block in enumerate(message["content"]):
                    if block["type"] == "toolCall":
                        data = {"toolCallId": block["id"], "name": block["name"], "arguments": block["arguments"]}
                        data |= {"assistantEntryId": ids["entryId"], "blockIndex": index}
                        self.event("tool.call", data, source="transcript", **ids)

    def start(self, run: str = "r1", prompt: str = "do it", messages: list[Any] | None = None) -> None:
        self.event("session.started", {"agentId": "pier"}, runId=run)
        self.event("context.compiled", {"messages": messages or []}, runId=run)
        self.event("prompt.submitted", {"prompt": prompt, "messages": messages or []}, runId=run)

    def end(self, run: str = "r1", status: str = "success", **data: Any) -> None:
        self.event("model.completed", data, runId=run)
        data.pop("messagesSnapshot", None)
        self.event("session.ended", {"status": status, **data}, runId=run)

    def asks(self, identity: str, tool: str = "read", run: str = "r1", **arguments: Any) -> None:
        data = {"toolCallId": identity, "name": tool, "args": arguments or {"path": "notes.txt"}}
        self.event("tool.call", data, runId=run)

    def result(
        self, identity: str, text: str = "ok", tool: str = "read", run: str = "r1", success: bool = True, **more: Any
    ) -> None:
        result = {"content": [{"type": "text", "text": text}], **more}
        data = {"toolCallId": identity, "name": tool, "success": success, "result": result}
        self.event("tool.result", data, runId=run)

    def bytes(self) -> bytes:
        return b"".join(self.lines)


def iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def at(seconds: float) -> int:
    return int((START + timedelta(seconds=seconds)).timestamp() * 1000)


def says(role: str, seconds: float, content: Any = "", **fields: Any) -> dict[str, Any]:
    text = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": role, "content": text, "timestamp": at(seconds), **fields}


def asking(seconds: float, *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return says("assistant", seconds, list(calls), stopReason="toolUse", **fields)


def answer(seconds: float, identity: str, text: str = "ok", **fields: Any) -> dict[str, Any]:
    return says("toolResult", seconds, text, toolCallId=identity, toolName="read", isError=False, **fields)


def source_of(data: bytes, name: str = "t.jsonl", **options: Any) -> Source:
    return Source(name, lambda: io.BytesIO(data), **options)


def read(data: bytes, **options: Any) -> list[Event]:
    source = source_of(data, **options)
    events = list(TrajectoryReader().read(source))
    check(events)
    account(source)
    return events


def told(events: list[Event]) -> list[Any]:
    """Return what events say, without the lines and the format's version."""
    seen: list[Any] = []
    for event in events:
        if isinstance(event, SessionStarted | SessionEnded):
            continue
        fields = {name: getattr(event, name) for name in event.__slots__ if name not in ("where", "line")}
        if isinstance(event, Turn):
            fields["absent"] = [(each.tool, each.error, each.id, each.position) for each in event.absent]
        where = getattr(event, "where", None)
        seen.append((type(event).__name__, where.entry if where is not None else None, fields))
    return seen


# --- recognising


def test_an_event_that_names_the_schema_is_recognised_even_if_it_is_longer_than_the_head() -> None:
    trace = Trace()
    trace.event("session.started", {"x": "y" * 500})
    whole = trace.bytes()
    assert TrajectoryReader().recognise(b"{broken\n" + whole, "x") is Confidence.SURE
    assert TrajectoryReader().recognise(whole[:300], "x") is Confidence.SURE
    assert TrajectoryReader().family(whole[:300], "x") == TrajectoryReader().family(whole, "x") == {"s1"}
    assert TrajectoryReader().recognise(Transcript().bytes(), "x.trajectory.jsonl") is Confidence.NO
    assert OpenClawReader().recognise(whole, "x") is Confidence.NO


# --- exports


def session_with_everything() -> Transcript:
    made = Transcript(version=4)
    made.entry("model_change", provider="p", modelId="m-1")
    made.user("go", run=None)
    made.asks(call("c1"), call("c2", "exec", command="ls"), run="r1")
    made.result("c2", tool="exec", run="r1", details={"status": "completed", "exitCode": 0, "aggregated": "ok"})
    made.result("c1", run="r1")
    made.absent("c9", run="r1")
    made.user("and hurry", __openclaw={"steerTargetRunId": "r1"})
    made.asks(call("c3"), run="r1", usage={"input": 3, "output": 4, "totalTokens": 7})
    made.result("c3", "no such file", error=True, details={}, run="r1")
    made.says("[failed]", stop="error", errorMessage="prompt is too long", run="r1")
    made.compaction(fromHook=True)
    made.asks(call("c4"), run="r1")
    made.result("c4", "ok", run="r1")
    made.says(run="r1")
    made.compaction()
    made.user("once more")
    made.asks(call("c5"), run="r2")
    return made


def test_an_export_gives_what_its_transcript_gives() -> None:
    made = session_with_everything()
    trace = Trace()
    trace.transcript(made)
    events = read(trace.bytes())
    assert told(events) == told(made.read())
    assert of(SessionStarted, events)[0].agent == "pier"


def test_what_the_runtime_tells_of_the_same_calls_does_not_count() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), run="r1")
    made.result("c1", run="r1")
    made.says(run="r1")
    trace = Trace()
    first, second = Transcript(session=None), Transcript(session=None)
    first.lines, second.lines = made.lines[:3], made.lines[3:]
    trace.transcript(first)
    trace.start()
    trace.asks("c1")
    trace.result("c1")
    trace.transcript(second)
    trace.end(messagesSnapshot=[says("user", 1, "do it"), asking(2, call("c1")), answer(3, "c1")])
    assert told(read(trace.bytes())) == told(made.read())


def test_run_ids_come_from_the_runtime_where_the_entries_have_none() -> None:
    made = Transcript()
    made.user("one")
    made.asks(call("c1"))
    made.result("c1")
    made.says()
    split = len(made.lines)
    made.user("two")
    made.says()
    trace = Trace()
    one, two = Transcript(session=None), Transcript(session=None)
    one.lines, two.lines = made.lines[:split], made.lines[split:]
    for run, part in (("r1", one), ("r2", two)):
        trace.start(run)
        trace.transcript(part)
        trace.end(run)
    events = read(trace.bytes())
    assert [each.run for each in of(RunEnded, events)] == ["r1", "r2"]
    assert [type(each) for each in events] == [type(each) for each in made.read()]
    assert not of(Problem, events)


def test_a_second_prompt_while_a_run_goes_on_takes_no_run_id_from_it() -> None:
    made = Transcript()
    for text in ("one", "two"):
        made.user(text)
        made.says()
    trace = Trace()
    trace.start("r1")
    trace.transcript(made)
    assert [each.run for each in of(RunEnded, read(trace.bytes()))] == ["r1", "#2"]


def test_the_guard_that_ended_a_run_is_told_once_whoever_tells_it() -> None:
    for in_transcript in (False, True):
        made = Transcript()
        made.user()
        made.asks(call("c1"), run="r1")
        if in_transcript:
            made.entry("custom", customType="openclaw:prompt-error", data={"runId": "r1", "error": LOOP})
        trace = Trace()
        trace.start()
        trace.transcript(made)
        trace.end(status="error", aborted=True, promptError=LOOP)
        events = read(trace.bytes())
        (recorded,) = of(Recorded, events)
        assert (recorded.run, recorded.kind, recorded.tool, recorded.count) == ("r1", "compaction_abort", "read", 3)
        # Only the transcript's own entry explains what it lacks: after a live abort the last result may be missing.
        assert of(RunEnded, events)[0].unanswered is not in_transcript


def test_an_aborted_run_of_an_export_explains_its_missing_results() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"), run="r1")
    for aborted in (False, True):
        trace = Trace()
        trace.start()
        trace.transcript(made)
        trace.end(status="interrupted", aborted=aborted)
        assert of(RunEnded, read(trace.bytes()))[0].unanswered is not aborted


def test_entries_from_before_time_began_are_entries() -> None:
    """An export writes a time that it cannot read as the first of all."""
    made = Transcript()
    made.user()
    trace = Trace()
    trace.transcript(made)
    body = json.loads(trace.lines[0])
    del body["data"]["message"]["timestamp"]
    trace.lines = [json.dumps({**body, "ts": "1970-01-01T00:00:00.000Z"}).encode() + b"\n"]
    assert len(of(UserMessage, read(trace.bytes()))) == 1


# --- beside the transcript


def both(made: Transcript, trace: Trace) -> tuple[list[Event], Source]:
    """Read a trajectory after the transcript of its session."""
    ledger = Ledger()
    first = Source("s1.jsonl", lambda: io.BytesIO(made.bytes()), ledger=ledger)
    list(OpenClawReader().read(first))
    source = source_of(trace.bytes(), ledger=ledger)
    events = list(TrajectoryReader().read(source))
    check(events)
    account(source)
    return events, source


def test_entries_of_a_transcript_that_was_read_are_copies() -> None:
    made = session_with_everything()
    trace = Trace()
    trace.transcript(made)
    events, source = both(made, trace)
    assert events == []
    assert source.copies == {"s1.jsonl": len(made.lines) - 1}


def test_snapshots_of_a_session_that_was_read_are_copies() -> None:
    made = session_with_everything()
    trace = Trace()
    trace.start()
    trace.end(messagesSnapshot=[says("user", 1, "go"), asking(2, call("c1")), answer(3, "c1")])
    events, source = both(made, trace)
    assert events == []
    assert source.copies == {"s1.jsonl": 1}


def test_a_verdict_that_the_trajectory_alone_has_is_given_without_a_run() -> None:
    made = session_with_everything()
    trace = Trace()
    trace.start()
    trace.end(status="error", aborted=True, promptError=LOOP)
    events, _ = both(made, trace)
    assert [type(event) for event in events] == [SessionStarted, Recorded, SessionEnded]
    (recorded,) = of(Recorded, events)
    assert (recorded.run, recorded.kind, recorded.count) == ("", "compaction_abort", 3)


def test_a_second_trajectory_of_a_session_shows_nothing_twice() -> None:
    made = Transcript()
    made.user()
    made.asks(call("c1"))
    made.result("c1")
    shown = [json.loads(line)["message"] for line in made.lines[1:]]
    runtime, export = Trace(), Trace()
    runtime.start()
    runtime.end(messagesSnapshot=shown)
    export.transcript(made)
    ledger = Ledger()
    for place, trace in enumerate((runtime, export, runtime)):
        source = source_of(trace.bytes(), name=f"{place}.jsonl", ledger=ledger)
        events = list(TrajectoryReader().read(source))
        check(events)
        account(source)
        assert len(fates(events)) == (1 if place == 0 else 0)


# --- rebuilt from snapshots (2026.4 to 2026.6)


def test_messages_of_overlapping_snapshots_count_once() -> None:
    """Ids of calls may be rewritten from one snapshot to the next, and prompts get another time."""
    first = [says("user", 5, "one"), asking(6, call("call_1")), answer(7, "call_1"), says("assistant", 8, "a")]
    again = [says("user", 2, "one"), asking(6, call("call1")), answer(7, "call1"), says("assistant", 8, "a")]
    more = [says("user", 20, "two"), asking(21, call("call2")), answer(22, "call2"), says("assistant", 23, "b")]
    trace = Trace()
    trace.start("r1")
    trace.end("r1", messagesSnapshot=first)
    trace.start("r2", messages=again)
    trace.end("r2", messagesSnapshot=again + more)
    events = read(trace.bytes())
    assert [event.run for event in of(UserMessage, events)] == ["r1", "r2"]
    assert [each.id for turn in of(Turn, events) for each in turn.calls] == ["call_1", "call2"]
    assert fates(events) == [Fate.RAN, Fate.RAN]


def test_parallel_results_of_the_same_moment_are_all_there() -> None:
    shown = [says("user", 5), asking(6, call("c1"), call("c2")), answer(7, "c1"), answer(7, "c2")]
    trace = Trace()
    trace.start()
    trace.end(messagesSnapshot=shown)
    assert len(of(Result, read(trace.bytes()))) == 2


def test_the_record_says_once_that_it_is_partial_and_why() -> None:
    cut = {"truncated": True, "reason": "trajectory-array-size-limit", "originalLength": 90, "limitItems": 64}
    trace = Trace()
    trace.start("r1")
    trace.end("r1", messagesSnapshot=[says("user", 5), asking(6, call("c1")), cut])
    trace.start("r2")
    trace.event("model.completed", {"truncated": True, "droppedFields": ["messagesSnapshot"]}, runId="r2")
    trace.event("trace.artifacts", {"toolMetas": [{"toolName": "exec"}] * 5, "usage": {"total": 12}}, runId="r2")
    trace.event("session.ended", {"status": "success"}, runId="r2")
    events = read(trace.bytes())
    (problem,) = of(Problem, events)
    assert problem.kind == "partial-record"
    assert "26 messages were cut off" in problem.detail
    assert "1 attempts show no messages (tool calls in them: 5)" in problem.detail
    one, two = of(RunEnded, events)
    # What was cut off is why the call has no result.
    assert (one.run, one.unanswered, one.ending) == ("r1", False, Ending.COMPLETED)
    assert (two.run, two.ending) == ("r2", Ending.COMPLETED)
    assert sum(turn.usage.total for turn in of(Turn, events)) == 12


@pytest.mark.parametrize(
    ("data", "ending"), [({}, "completed"), ({"aborted": True}, "interrupted"), ({"timedOut": True}, "interrupted")]
)
def test_the_runtime_tells_how_a_run_ended_that_shows_no_messages(data: dict[str, Any], ending: str) -> None:
    trace = Trace()
    trace.start()
    trace.end(status="error" if data else "success", **data)
    (ended,) = of(RunEnded, read(trace.bytes()))
    assert ended.ending == ending
    assert not ended.unanswered


def test_an_attempt_after_a_compaction_is_the_same_run() -> None:
    """The runner compacted and tried again: the prompt comes twice, and the guard is armed."""
    before = [says("user", 4), asking(5, call("c1")), answer(6, "c1")]
    summary = {"role": "compactionSummary", "summary": "so far", "timestamp": at(7)}
    after = [summary, *before[1:], says("user", 11), asking(12, call("c2")), answer(13, "c2")]
    trace = Trace()
    trace.start()
    trace.end(status="error", messagesSnapshot=before)
    trace.time = START + timedelta(seconds=8)
    trace.start()
    trace.end(status="error", aborted=True, promptError=LOOP, messagesSnapshot=after)
    events = read(trace.bytes())
    assert [event.retry for event in of(UserMessage, events)] == [False, True]
    (compaction,) = of(Compaction, events)
    assert (compaction.run, compaction.in_run, compaction.from_hook) == ("r1", True, True)
    assert [event.run for event in of(RunEnded, events)] == ["r1"]
    assert [(each.run, each.count) for each in of(Recorded, events)] == [("r1", 3)]
    assert len(fates(events)) == 2


def test_a_compaction_after_the_answer_is_between_runs() -> None:
    summary = {"role": "compactionSummary", "summary": "so far", "timestamp": at(9)}
    trace = Trace()
    trace.start()
    trace.end(messagesSnapshot=[summary, says("user", 4), says("assistant", 8, "done", stopReason="stop")])
    events = read(trace.bytes())
    assert [type(event).__name__ for event in events[1:4]] == ["UserMessage", "Turn", "Compaction"]
    assert not of(Compaction, events)[0].in_run


def test_what_an_attempt_cost_beyond_its_messages_is_not_lost() -> None:
    used = {"input": 10, "output": 2, "totalTokens": 12}
    trace = Trace()
    trace.start()
    shown = [says("user", 4), says("assistant", 5, "done", stopReason="stop", usage=used)]
    trace.end(messagesSnapshot=shown, usage={"input": 30, "output": 2, "cacheRead": 5, "total": 37})
    turns = of(Turn, read(trace.bytes()))
    assert [turn.stored for turn in turns] == [True, False]
    assert turns[1].usage == Usage(input=20, cache_read=5, total=25)


def test_outcomes_that_were_cut_are_lossy_and_so_are_those_of_cut_arguments() -> None:
    gone = {"truncated": True, "reason": "trajectory-depth-limit", "limitDepth": 6}
    deep = {"type": "toolCall", "id": "c2", "name": "read", "arguments": {"a": gone}}
    long = {"type": "text", "text": {**gone, "reason": "trajectory-field-size-limit", "originalChars": 90_000}}
    trace = Trace()
    trace.start()
    shown = [says("user", 4), asking(5, call("c1"), deep, call("c3")), answer(6, "c1"), answer(6.1, "c2")]
    trace.end(messagesSnapshot=[*shown, says("toolResult", 6.2, [long], toolCallId="c3", toolName="read")])
    assert [each.outcome.lossy for each in of(Result, read(trace.bytes()))] == [False, True, True]


def test_messages_from_before_the_trajectory_come_first() -> None:
    old = [says("user", -90), asking(-80, call("c1")), answer(-70, "c1"), says("assistant", -60, stopReason="stop")]
    trace = Trace()
    trace.start(messages=old)
    trace.end(messagesSnapshot=[*old, says("user", 5), says("assistant", 6, stopReason="stop")])
    events = read(trace.bytes())
    assert [event.run for event in of(UserMessage, events)] == ["#1", "r1"]
    assert len(fates(events)) == 1


# --- rebuilt from tool events (2026.9)


def test_tool_events_are_used_where_there_is_nothing_else() -> None:
    trace = Trace()
    trace.start(prompt="look")
    trace.asks("c1")
    trace.asks("c2", "exec", command="ls")
    trace.result("c1", "one")
    trace.result("c2", "two", tool="exec", details={"status": "completed", "exitCode": 0})
    trace.asks("c3", "frobnicate")
    trace.result("c3", "Tool frobnicate not found", tool="frobnicate", success=False, details={})
    shown = [says("user", 4), asking(5, call("c1")), answer(6, "c1")]
    trace.end(messagesSnapshot=shown, assistantTexts=["done"], stopReason="stop", usage={"total": 9})
    events = read(trace.bytes())
    turns = of(Turn, events)
    assert [[each.tool for each in turn.calls] for turn in turns] == [["read", "exec"], [], [], []]
    assert [each.outcome.result for each in of(Result, events)][1] == {
        "content": [{"type": "text", "text": "two"}],
        "details": {"status": "completed", "exitCode": 0},
    }
    (absent,) = turns[1].absent
    assert isinstance(absent, AbsentCall)
    assert (absent.tool, absent.position) == ("frobnicate", 0)
    assert turns[2].stop_reason == "stop"
    assert sum(turn.usage.total for turn in turns) == 9
    (ended,) = of(RunEnded, events)
    assert (ended.run, ended.ending) == ("r1", Ending.COMPLETED)
    assert [problem.kind for problem in of(Problem, events)] == ["partial-record"]


def test_a_vetoed_message_is_one_though_its_calls_are_told_one_after_the_other() -> None:
    trace = Trace()
    trace.start()
    for culprit, calls in (("c2", ("c1", "c2")), ("c3", ("c3", "c4"))):
        for identity in calls:
            trace.asks(identity)
            found = {"toolCallId": culprit, "detector": "generic_repeat", "count": 20}
            details = {"status": "blocked", "deniedReason": "tool-loop", "intervention": found}
            trace.result(identity, "vetoed", success=False, details=details)
    trace.end(status="error")
    events = read(trace.bytes())
    assert [[each.id for each in turn.calls] for turn in of(Turn, events)] == [["c1", "c2"], ["c3", "c4"]]
    assert set(fates(events)) == {Fate.VETOED}
    assert [each.tool_call_id for each in of(Recorded, events)] == ["c2", "c3"]


def test_the_result_that_the_guard_ended_the_run_on_is_not_an_aborted_call() -> None:
    """It is told as aborted, but the guard saw what it was: the call is as good as unanswered."""
    for error, fate in ((LOOP, Fate.LOST), ("stopped by hand", Fate.NOT_RUN)):
        trace = Trace()
        trace.start()
        trace.asks("c1")
        trace.result("c1", "Aborted", success=False, details={})
        trace.end(status="interrupted", aborted=True, promptError=error)
        events = read(trace.bytes())
        assert fates(events) == [fate]
        assert of(RunEnded, events)[0].unanswered is (fate is Fate.LOST)


# --- several sessions, and anything at all


def test_sessions_that_take_turns_in_one_file_are_kept_apart() -> None:
    one, two = Trace("s1"), Trace("s2")
    for trace in (one, two):
        trace.start()
        trace.asks("c1")
        trace.result("c1")
        trace.end()
    mixed = b"".join(line for pair in zip(one.lines, two.lines, strict=True) for line in pair)
    events = read(mixed)
    assert [event.session for event in of(SessionStarted, events)] == ["s1", "s2"]
    assert of(SessionResumed, events)
    assert len(fates(events)) == 2


def test_lines_that_are_no_events_are_passed_over() -> None:
    trace = Trace()
    trace.event("session.started", sessionId=None)
    trace.event("weather.changed")
    trace.lines.append(b'{"traceSchema": "another"}\n[1]\n\n{broken}\n')
    events = read(trace.bytes())
    assert [problem.kind for problem in of(Problem, events)] == [
        *("malformed-entry", "not-an-object", "malformed-json", "partial-record")
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def mostly(*values: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(values), st.sampled_from(values), st.sampled_from(values), JSON)


def fields(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


GONE = st.just({"truncated": True, "reason": "trajectory-array-size-limit", "originalLength": 99, "limitItems": 64})
BLOCKS = st.lists(
    fields(type=mostly("toolCall", "text"), id=mostly("c_1", "c1", "c2"), name=mostly("read"), text=mostly("ok")),
    max_size=3,
)
MESSAGES = fields(
    role=mostly("user", "assistant", "toolResult", "compactionSummary"),
    timestamp=mostly(*(at(second) for second in range(6))),
    content=st.one_of(BLOCKS, mostly("Aborted", "ok")),
    toolCallId=mostly("c_1", "c1", "c2"),
    toolName=mostly("read"),
    stopReason=mostly("toolUse", "stop", "error", "aborted"),
    usage=fields(totalTokens=mostly(3)),
    details=st.one_of(GONE, JSON),
    isError=mostly(True, False),
)
SNAPSHOTS = st.one_of(JSON, st.lists(st.one_of(MESSAGES, MESSAGES, GONE, JSON), max_size=5))
DATA = fields(
    message=MESSAGES,
    messages=SNAPSHOTS,
    messagesSnapshot=SNAPSHOTS,
    toolCallId=mostly("c_1", "c1", "c2"),
    name=mostly("read"),
    args=mostly({"a": 1}),
    success=mostly(True, False),
    result=st.one_of(
        JSON,
        fields(
            content=st.one_of(BLOCKS, JSON),
            details=st.one_of(
                JSON,
                fields(
                    status=mostly("blocked"),
                    deniedReason=mostly("tool-loop"),
                    intervention=fields(toolCallId=mostly("c1", "c2")),
                ),
            ),
        ),
    ),
    promptError=mostly(LOOP, "failed"),
    aborted=mostly(True, False),
    status=mostly("success", "error"),
    assistantTexts=mostly(["done"]),
    toolMetas=mostly([{}]),
    usage=fields(total=mostly(5)),
    prompt=mostly("go"),
    summary=mostly("so far"),
    customType=mostly("openclaw:prompt-error"),
    data=fields(runId=mostly("r1"), error=mostly(LOOP)),
)
KINDS = (
    *("session.started", "context.compiled", "prompt.submitted", "model.completed", "trace.artifacts"),
    *("session.ended", "tool.call", "tool.result", "user.message", "assistant.message", "tool.result"),
    *("session.compaction", "session.custom", "session.info", "message.custom"),
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"traceSchema": st.just("openclaw-trajectory"), "type": mostly(*KINDS), "data": st.one_of(DATA, DATA, JSON)},
        optional={
            "source": mostly("runtime", "transcript"),
            "sessionId": mostly("s1", "s1", "s2"),
            "runId": mostly("r1", "r2"),
            "ts": mostly(iso(START), iso(START + timedelta(seconds=5))),
            "entryId": mostly("a", "b", "c"),
            "parentEntryId": mostly("a", "b", None),
            "sessionKey": mostly("agent:pier:main"),
        },
    ),
    max_size=9,
)


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.booleans())
def test_whatever_is_in_the_events_nothing_raises_and_every_line_is_accounted_for(
    events: list[dict[str, Any]], again: bool
) -> None:
    data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    ledger = Ledger()
    for name in ("one", "two") if again else ("one",):
        source = Source(name, partial(io.BytesIO, data), ledger=ledger)
        found = list(TrajectoryReader().read(source))
        check(found)
        account(source)
    if again:
        assert not fates(found)


# --- fixtures and recordings


@pytest.mark.parametrize(
    ("name", "calls", "marks", "problems"),
    [
        ("export-gauge.jsonl", 22, ["warning", "block", "block", "run_end"], 0),
        ("export-clean.jsonl", 3, [], 0),
        ("snapshots.trajectory.jsonl", 5, ["guard_armed", "compaction_abort"], 1),
        ("tools.trajectory.jsonl", 22, ["warning", "block", "block", "run_end"], 1),
    ],
)
def test_the_fixtures_make_their_marks(name: str, calls: int, marks: list[str], problems: int) -> None:
    report = replay(FIXTURES / name, ruleset="2026.9")
    (session,) = report.sessions
    assert session.calls == calls
    assert [mark.kind.value for _, mark in session.marks()] == marks
    assert report.problems == problems


def test_what_a_whole_attempt_cost_is_not_taken_for_saved() -> None:
    """The runtime says what 22 calls cost together: how much of it came after the end of the run is not known."""
    (session,) = replay(FIXTURES / "tools.trajectory.jsonl", ruleset="2026.9").sessions
    (run,) = session.runs
    saved = run.not_reached
    assert (run.outcome, saved.tokens, saved.responses, saved.responses_without_usage) == ("run_end", 0, 1, 1)


RECORDED = sorted((SHARED / "recorded").glob("*/*/sessions/*.trajectory.jsonl"))


@pytest.mark.skipif(not RECORDED, reason="no recordings beside the checkout")
def test_a_recorded_trajectory_rebuilds_the_beginning_of_its_session() -> None:
    """What it shows, it shows as the transcript does; what it lacks is the end of a long run."""
    for path in RECORDED:
        rebuilt = list(TrajectoryReader().read(Source.of_file(path)))
        check(rebuilt)
        whole = list(OpenClawReader().read(Source.of_file(str(path).replace(".trajectory", ""))))
        known = [(each.tool, each.arguments, each.fate) for turn in of(Turn, whole) for each in turn.calls]
        shown = [(each.tool, each.arguments, each.fate) for turn in of(Turn, rebuilt) for each in turn.calls]
        if len(shown) < len(known):
            # Of 64 messages the last one is a call, whose result was cut off.
            assert (len(shown), shown.pop()[2]) == (32, Fate.LOST)
        assert shown == known[: len(shown)]
        for result, full in zip(of(Result, rebuilt), of(Result, whole), strict=False):
            assert result.outcome == full.outcome or result.outcome.lossy
        assert len(of(RunEnded, rebuilt)) == len(of(RunEnded, whole))


def test_a_block_whose_type_is_no_text_is_passed_over() -> None:
    """Found by damaging a fixture: a list where the type stands."""
    path = Path(__file__).parents[3] / "fixtures" / "openclaw-trajectory" / "snapshots.trajectory.jsonl"
    data = path.read_bytes().replace(b'"type":"toolCall"', b'"type":[1]', 1)
    assert data != path.read_bytes()
    source = Source("snapshots.trajectory.jsonl", lambda: io.BytesIO(data))
    check(list(TrajectoryReader().read(source)))
    account(source)
