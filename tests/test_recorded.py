"""Sessions that the real software played with detection on replay to what its engine did, mark by mark."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from loopscan.engine.names import signature, tool_name
from loopscan.marks import Mark
from loopscan.replayer import replay
from loopscan.rulesets import ruleset

RECORDED = Path(__file__).resolve().parents[2] / "shared" / "recorded"
EXPECTED = RECORDED / "EXPECT.jsonl"
RULESETS = {"2026.6.11": "2026.6", "2026.9.6": "2026.9"}
#: What the recordings call an event, and what a mark of it is called.
KINDS = {
    "warning": "warning",
    "block": "block",
    "run_stopped": "run_end",
    "unknown_tool_rewrite": "unknown_tool_stop",
    "compaction_guard_armed": "guard_armed",
    "compaction_abort": "compaction_abort",
}


def sessions() -> list[Any]:
    if not EXPECTED.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="no recordings beside the checkout"))]
    lines = (json.loads(line) for line in EXPECTED.read_text().splitlines())
    return [pytest.param(line, id=f"{line['version']}-{line['scenario']}") for line in lines]


def fields(mark: Mark, event: dict[str, Any]) -> dict[str, Any]:
    """Return what a mark says of the fields that the recorded event has."""
    known: dict[str, Any] = {"kind": mark.kind.value}  # every event has one
    if mark.kind.value in ("warning", "block", "compaction_abort"):
        known |= {"detector": mark.detector.value, "count": mark.count, "tool": mark.tool}
    if mark.kind.value in ("warning", "block"):
        known |= {"call_id": mark.tool_call_id, "pairedTool": mark.paired_tool}
    return {field: value for field, value in known.items() if field in event}


@pytest.mark.parametrize("expected", sessions())
def test_the_replay_makes_the_marks_of_the_live_engine(expected: dict[str, Any]) -> None:
    folder = RECORDED / expected["version"] / expected["scenario"]
    report = replay(
        RECORDED / expected["transcript"], ruleset=RULESETS[expected["version"]], config=folder / "openclaw.json"
    )
    (session,) = report.sessions
    assert session.session == expected["session_id"]
    assert report.problems == 0
    events = [event for event in expected["events"] if event["kind"] in KINDS]
    marks = [mark for _, mark in session.marks()]
    assert [mark.kind.value for mark in marks] == [KINDS[event["kind"]] for event in events]
    for mark, event in zip(marks, events, strict=True):
        known = fields(mark, event)
        assert known == {field: event[field] for field in known} | {"kind": KINDS[event["kind"]]}


@pytest.mark.parametrize("expected", sessions())
def test_what_the_transcript_itself_shows_is_reported_as_recorded(expected: dict[str, Any]) -> None:
    folder = RECORDED / expected["version"] / expected["scenario"]
    report = replay(
        RECORDED / expected["transcript"], ruleset=RULESETS[expected["version"]], config=folder / "openclaw.json"
    )
    (session,) = report.sessions
    told = {"block", "run_end", "unknown_tool_stop"}
    if expected["version"] == "2026.9.6":
        told.add("warning")  # a note in the result; before, warnings went to the log alone
    shown = [(verdict.kind, verdict.count) for verdict in session.recorded if verdict.kind in told]
    events = [event for event in expected["events"] if KINDS.get(event["kind"]) in told]
    for kind in told:
        counts = [count for shown_kind, count in shown if shown_kind == kind]
        assert len(counts) == len([event for event in events if KINDS[event["kind"]] == kind])
        if kind in ("warning", "block"):
            assert counts == [event["count"] for event in events if event["kind"] == kind]


def test_the_identity_of_a_call_is_that_of_the_live_engine() -> None:
    """A live veto names the tool and the SHA-256 of its canonical arguments: ours are equal where those are."""
    if not EXPECTED.exists():
        pytest.skip("no recordings beside the checkout")
    pairs: set[tuple[str, bytes]] = set()
    spelled: set[tuple[str, str]] = set()
    for path in sorted(RECORDED.glob("2026.9.6/*/sessions/*.jsonl")):
        arguments: dict[str, Any] = {}
        for line in path.read_text().splitlines():
            message = json.loads(line).get("message", {})
            for block in message.get("content", []) if message.get("role") == "assistant" else []:
                if block["type"] == "toolCall":
                    arguments[block["id"]] = (block["name"], block["arguments"])
            intervention = (message.get("details") or {}).get("intervention")
            if intervention and intervention["toolCallId"] in arguments:
                name, given = arguments[intervention["toolCallId"]]
                tool = tool_name(name, ruleset("2026.9"))
                canonical = json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                digest = hashlib.sha256(canonical.encode()).hexdigest()
                pairs.add((intervention["actionKey"], signature(tool, given)))
                spelled.add((intervention["actionKey"], f"{tool}:{digest}"))
    assert len(pairs) > 3
    assert len({live for live, _ in pairs}) == len(pairs) == len({ours for _, ours in pairs})
    assert all(live == plain for live, plain in spelled)
