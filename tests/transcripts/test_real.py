"""Recorded sessions: read without an unaccounted problem, and every call is there.

The counts are made here from the raw JSON, not by the reader. Where the recordings are not at hand, these
tests are skipped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loopscan.events import (
    Compaction,
    Ending,
    Event,
    Fate,
    Problem,
    Recorded,
    Result,
    RunEnded,
    SessionStarted,
    Turn,
    UserMessage,
)
from loopscan.transcripts.discover import discover
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.reader import Source
from tests.transcripts.build import check, of

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
REAL = SHARED / "real" / "openclaw"
RECORDED = SHARED / "recorded"

pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded sessions are not here")

CALLS = {"toolCall", "toolUse", "functionCall"}


def files() -> list[Path]:
    recorded = (path for path in RECORDED.glob("*/*/sessions/*.jsonl") if ".trajectory." not in path.name)
    return sorted(REAL.iterdir() if REAL.is_dir() else ()) + sorted(recorded)


def expected() -> list[dict[str, Any]]:
    path = RECORDED / "EXPECT.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read(path: Path) -> tuple[list[Event], Source]:
    source = Source.of_file(path)
    events = list(OpenClawReader().read(source))
    check(events)
    return events, source


def messages(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry.get("type") == "message":
            yield entry["message"]


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if block.get("type") in CALLS] if isinstance(content, list) else []


@pytest.mark.parametrize("path", files(), ids=lambda path: "/".join(path.parts[-3:])[-60:])
def test_a_recorded_session_is_read_whole(path: Path) -> None:
    """No problems, and as many calls, results, responses and tokens as the raw lines hold."""
    events, source = read(path)
    assert not of(Problem, events)
    assert source.lines == len(path.read_bytes().splitlines())
    assert source.bytes == path.stat().st_size

    stored = [message for message in messages(path) if message["role"] == "assistant"]
    turns = of(Turn, events)
    calls = [block["id"] for message in stored for block in blocks(message)]
    if source.copies:
        # Entries were appended again: each call counts once. No provider in these reuses ids.
        assert sum(turn.stored_calls for turn in turns) == len(set(calls))
        return
    assert sum(turn.stored_calls for turn in turns) == len(calls)

    results = [message for message in messages(path) if message["role"] == "toolResult"]
    outcomes = Counter(call.fate for turn in turns for call in turn.calls)
    absent = sum(len(turn.absent) for turn in turns)
    made_up = sum(
        "missing tool result" in json.dumps(message["content"]) and not message.get("details") for message in results
    )
    assert len(of(Result, events)) == outcomes[Fate.RAN] + outcomes[Fate.REJECTED]
    answered = outcomes[Fate.RAN] + outcomes[Fate.REJECTED] + outcomes[Fate.VETOED] + outcomes[Fate.NOT_RUN]
    assert answered + absent == len(results)
    assert outcomes[Fate.LOST] == len(calls) - len(results) + absent
    assert made_up <= outcomes[Fate.NOT_RUN]

    users = [message for message in messages(path) if message["role"] == "user"]
    assert len(of(UserMessage, events)) == len(users)

    spent = sum((message.get("usage") or {}).get("totalTokens", 0) for message in stored)
    stopped = [event.usage.total for event in events if type(event).__name__ == "UnknownToolStopped"]
    assert sum(turn.usage.total for turn in turns) + sum(stopped) == spent


@pytest.mark.parametrize("expect", expected(), ids=lambda expect: f"{expect['version']}-{expect['scenario']}")
def test_a_recorded_session_has_the_runs_and_verdicts_that_the_live_engine_had(expect: dict[str, Any]) -> None:
    events, _ = read(RECORDED / expect["transcript"])
    old = expect["version"].startswith("2026.6")

    runs = [ended.run for ended in of(RunEnded, events)]
    # The gateway answers /compact without a run; to the record it is a user message like any other.
    commands = 1 if expect["scenario"] == "m-manual-compact" else 0
    assert len(runs) == len(expect["runs_in_trajectory"]) + commands
    if not old:
        assert [run for run in runs if not run.startswith("#")] == expect["runs_in_transcript"]

    names = {"block": "block", "warning": "warning", "run_stopped": "run_end"}
    names |= {"unknown_tool_rewrite": "unknown_tool_stop", "compaction_abort": "compaction_abort"}
    # Warnings of 2026.6 are in the log alone, compaction aborts of 2026.9 are stored nowhere.
    unseen = "warning" if old else "compaction_abort"
    live = [event for event in expect["events"] if event["kind"] in names and event["kind"] != unseen]
    found = of(Recorded, events)
    assert [recorded.kind for recorded in found] == [names[event["kind"]] for event in live]
    for recorded, event in zip(found, live, strict=True):
        if recorded.kind in ("block", "warning"):
            assert (recorded.tool_call_id, recorded.tool, recorded.count) == (
                event["call_id"],
                event["tool"],
                event["count"],
            )
        if recorded.kind == "block":
            assert recorded.detector == event["detector"]
            assert recorded.where.line == event["line"] + 1

    found_in_run = {each.where.line - 1: each.in_run for each in of(Compaction, events)}
    assert list(found_in_run) == [event["line"] for event in expect["events"] if event["kind"] == "compaction"]
    for event in expect["events"]:
        if event["kind"] == "compaction_guard_armed":
            assert found_in_run[event["line"]]
    assert sum(each.unanswered for each in of(RunEnded, events)) == (
        0 if old else sum(event["kind"] == "compaction_abort" for event in expect["events"])
    )


def test_runs_that_went_on_at_the_same_time_are_kept_apart() -> None:
    """A session with interleaved runs: each answer is in the run of its call, no call is lost."""
    path = REAL / "openclaw-33.jsonl"
    if not path.exists():
        pytest.skip("not here")
    events, _ = read(path)
    order = [turn.run for turn in of(Turn, events)]
    switches = sum(one != other for one, other in pairwise(order))
    assert switches > 2 * len(set(order))
    assert not [turn for turn in of(Turn, events) for call in turn.calls if call.fate is Fate.LOST]
    assert len(of(RunEnded, events)) == len(of(UserMessage, events))


def test_the_folders_hold_these_sessions_and_nothing_else_of_this_format() -> None:
    found = [Path(each.source.name) for each in discover([RECORDED]).sources if each.reader == "openclaw-jsonl"]
    assert len(found) == len(expected())
    assert all(isinstance(next(iter(read(path)[0])), SessionStarted) for path in found[:3])
    assert Ending.COMPLETED in {ended.ending for path in found[:3] for ended in of(RunEnded, read(path)[0])}
