"""What the real engine did in the recorded sessions is met, written as expectations and checked by the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from loopscan.checks.check import check

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"
#: The engine's own words for what is marked; what else is on record makes no mark.
KINDS = {
    "warning": "warning",
    "block": "block",
    "run_stopped": "run_end",
    "unknown_tool_rewrite": "unknown_tool_stop",
    "compaction_guard_armed": "guard_armed",
    "compaction_guard_aborted": "compaction_abort",
    "compaction_abort": "compaction_abort",
}


def expected(event: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict of the live engine as a pattern: detector, count and call as far as they are known."""
    mark = {"kind": KINDS[event["kind"]], "detector": event.get("detector"), "count": event.get("count")}
    if event["kind"] == "block":
        mark["tool_call_id"] = event.get("call_id")
    return {name: value for name, value in mark.items() if value is not None}


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded sessions are not here")
def test_every_verdict_of_the_live_engine_is_an_expectation_that_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (RECORDED / "EXPECT.jsonl").read_text(encoding="utf-8").splitlines()
    marks = 0
    for line in lines:
        told = json.loads(line)
        folder = tmp_path / told["version"] / told["scenario"]
        folder.mkdir(parents=True)
        shutil.copyfile(RECORDED / told["transcript"], folder / "session.jsonl")
        config = {
            "tools": {"loopDetection": told["config"]["loopDetection"]} if told["config"]["loopDetection"] else {}
        }
        (folder / "openclaw.json").write_text(json.dumps(config), encoding="utf-8")
        exact = [expected(event) for event in told["events"] if event["kind"] in KINDS]
        marks += len(exact)
        ruleset = told["version"].rpartition(".")[0]
        says = {"ruleset": ruleset, "config": "openclaw.json", "expect": {"exact": exact}}
        (folder / "session.expect.json").write_text(json.dumps(says), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = check(["."], strict=True)
    assert [case.reason for case in report.cases if case.reason] == []
    assert report.summary() == f"{len(lines)} passed"
    assert marks > 250
