"""Whatever is in the file: no exception, every line accounted for, and what holds for every stream holds."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.transcripts.openclaw import OpenClawReader, session
from loopscan.transcripts.openclaw.held import Held
from loopscan.transcripts.reader import HEAD_BYTES, Confidence
from tests.transcripts.build import Transcript, call, check, source_of

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def mostly(*values: Any) -> st.SearchStrategy[Any]:
    """Draw one of ``values`` as a rule, and anything else now and then."""
    return st.one_of(st.sampled_from(values), st.sampled_from(values), st.sampled_from(values), JSON)


def fields(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=options)


IDS = mostly("a", "b", "c", "d", None)
CALL_IDS = mostly("c1", "c2", "c1", None)
RUN_IDS = st.none() | mostly("r1", "r2", "#1")
TIMES = mostly("2026-06-01T12:00:00.000Z", "2026-06-01T12:00:00.004Z", "2026-06-01T11:00:00Z", 1_780_000_000_000)
TEXTS = mostly(
    "ok",
    "Tool frobnicate not found",
    'Validation failed for tool "exec"',
    "[openclaw] missing tool result in session history",
    "Operation aborted",
    "[System note: Tool-loop warning after 10 repeated calls.]",
    "I can't use the tool \"x\" here because it isn't available.",
    "This run is stopping now.",
)
BLOCKS = st.one_of(
    fields(type=st.just("text"), text=TEXTS),
    fields(
        type=mostly("toolCall", "toolUse"), id=CALL_IDS, name=mostly("exec", "read"), arguments=mostly({"a": 1}, {})
    ),
    JSON,
)
DETAILS = st.one_of(
    JSON,
    fields(
        status=mostly("error", "blocked", "completed"),
        tool=st.just("exec"),
        error=mostly("boom"),
        deniedReason=mostly("tool-loop", "steering"),
        reason=TEXTS,
        intervention=fields(toolCallId=CALL_IDS, detector=mostly("ping_pong"), count=mostly(20)),
        persistedDetailsTruncated=mostly(True),
    ),
)
OWN = fields(runId=RUN_IDS, steerTargetRunId=RUN_IDS, itemId=IDS)
MESSAGES = fields(
    role=mostly("user", "assistant", "assistant", "toolResult", "toolResult"),
    content=st.one_of(st.lists(BLOCKS, max_size=3), TEXTS),
    stopReason=mostly("toolUse", "toolUse", "stop", "error", "aborted"),
    errorMessage=mostly("context overflow"),
    model=mostly("m", "gateway-injected"),
    usage=fields(input=mostly(1), cost=st.one_of(JSON, fields(total=mostly(0.1)))),
    toolCallId=CALL_IDS,
    toolName=mostly("exec", "read", "frobnicate"),
    isError=mostly(True, False),
    details=DETAILS,
    timestamp=TIMES,
    __openclaw=st.one_of(OWN, JSON),
)
ENTRIES = fields(
    type=mostly(
        "message", "message", "message", "message", "compaction", "custom", "model_change", "leaf", "session"
    ),
    id=IDS,
    parentId=IDS,
    timestamp=TIMES,
    message=st.one_of(MESSAGES, MESSAGES, MESSAGES, JSON),
    summary=TEXTS,
    fromHook=mostly(True, False),
    customType=mostly("openclaw:prompt-error", "model-snapshot"),
    data=st.one_of(JSON, fields(runId=RUN_IDS, error=mostly("CRITICAL: tool read repeated 3 times in compaction"))),
    __openclaw=st.one_of(OWN, JSON),
)


def survives(data: bytes) -> None:
    """Read ``data`` to its end: nothing is raised, and every line is counted."""
    source = source_of(data)
    check(list(OpenClawReader().read(source)))
    assert source.bytes == len(data)
    assert source.lines == data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    OpenClawReader().recognise(data[:HEAD_BYTES], "x")


def encode(values: list[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@given(st.lists(JSON, max_size=10))
def test_any_lines_of_json(values: list[Any]) -> None:
    survives(encode(values))


@given(st.lists(ENTRIES, max_size=25), st.sampled_from([1, 3, 1024]))
@settings(max_examples=400)
def test_entries_with_anything_in_every_field(values: list[Any], held: int) -> None:
    """Also where next to nothing may be held back, so that everything is decided early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "Held", partial(Held, held))
        survives(encode(values))


def sample() -> list[bytes]:
    made = Transcript()
    made.entry("model_change", modelId="m")
    made.user("one")
    asked = made.asks(call("c1"), call("c2", "exec", command="ls"))
    made.absent("c3", after=0.001)
    made.result("c2", error=True, details={"status": "error", "tool": "exec", "error": "boom"})
    made.result("c1", details={"persistedDetailsTruncated": True})
    made.says("", stop="error", errorMessage="context overflow")
    made.compaction(fromHook=True)
    made.user("one")
    made.asks(call("c4"))
    made.user("hurry")
    made.result("c4")
    made.result("c2", below=asked)
    made.says()
    made.user("two")
    made.asks(call("c5"), run="r1")
    details = {"status": "blocked", "deniedReason": "tool-loop", "intervention": {"toolCallId": "c5"}}
    made.result("c5", "This run is stopping now.", error=True, details=details, run="r1")
    made.absent("c6", run="r1")
    made.asks(call("c7"), run="r1")
    return made.lines


@given(
    st.lists(
        st.tuples(st.sampled_from(["drop", "double", "swap"]), st.integers(0, 99), st.integers(0, 99)), max_size=6
    )
)
@settings(max_examples=300)
def test_a_transcript_with_lines_missing_doubled_and_swapped(changes: list[tuple[str, int, int]]) -> None:
    lines = sample()
    for change, one, other in changes:
        one, other = one % len(lines), other % len(lines)
        if change == "drop" and len(lines) > 1:
            del lines[one]
        elif change == "double":
            lines.insert(other, lines[one])
        elif change == "swap":
            lines[one], lines[other] = lines[other], lines[one]
    survives(b"".join(lines))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 3)), max_size=6))
@settings(max_examples=300)
def test_a_transcript_with_bytes_changed(changes: list[tuple[int, bytes, int]]) -> None:
    data = b"".join(sample())
    for at, new, cut in changes:
        at %= len(data)
        data = data[:at] + new + data[at + cut :]
    survives(data)


@given(st.integers(0, 10_000))
def test_a_transcript_cut_off_anywhere(at: int) -> None:
    data = b"".join(sample())
    survives(data[: at % len(data)])


@given(st.binary(max_size=200))
def test_any_bytes_are_looked_at_without_an_exception(head: bytes) -> None:
    assert OpenClawReader().recognise(head, "x") in Confidence
