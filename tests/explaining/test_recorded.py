"""For every session that the real software played, the first line of the answer names the real reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loopscan.explaining.explain import explain
from loopscan.explaining.wanted import Wanted
from loopscan.explaining.words import answer_of
from loopscan.replayer import plan
from tests.test_recorded import KINDS, RECORDED, RULESETS, sessions

#: What the live engine did last, from the mildest to the gravest.
GRAVITY = ("warning", "block", "run_end", "unknown_tool_stop", "compaction_abort")
#: How the answer begins where the live engine did nothing, by the beginning of the scenario's name.
SILENT = {
    "a-exec-same-40-off": "detection is off",
    "a-exec-same-40-unset": "detection is not on",
    "e-fail-varargs": "arguments changed",
    "f-poll-30-nopoll": "detectors.knownPollNoProgress is off",
    "f-poll-ticks": "result changed",
    "g-unknown-alternate": "a guard was reset: frobnicate, which does not exist, was asked for 15 times",
    "h-exec-badjson": "nothing repeats",  # these calls are not in the transcript
    "h-exec": "rejected before recording",
    "m-manual-compact": "below the threshold: read came back alike 5 times",
    "m-overflow-loop-off": {
        "2026.6.11": "detection is off … with it on, nothing would have stepped in either, since the compaction did "
        "not arm the guard",
        "2026.9.6": "detection is off",
    },
    "m-overflow-change": {
        "2026.6.11": "below the threshold, and its result changed",
        "2026.9.6": "result changed",
    },
    "m-sg-overflow-loop-off": "detection is off",
    "m-sg-overflow-change": "result changed",
    "m-sg-overflow-mixed": "the post-compaction guard was armed and did not abort",
    "m-overflow": "the compaction did not arm the guard",
    "m-threshold-between": {"2026.6.11": "below the threshold", "2026.9.6": "nothing repeats"},
    "m-threshold-mid": "below the threshold: read came back alike 5 times",
    "o-sessions-steer": "split by runs",
    "p-clean": "nothing repeats",
    "q-heartbeat": "split by runs",
}
#: Why it was no more than a warning.
WARNED = {
    "b-exec-clock": "result changed: exec was called 40 times",
    "e-fail-timestamps": "result changed: exec was called 30 times",
    "g-unknown-with-read": "a guard was reset: frobnicate, which does not exist, was asked for 15 times",
    "h-exec-badjson": "below the threshold: exec came back alike 15 times",
    "i-parallel-mixed-12": "below the threshold, and diluted by other calls: read came back alike 12 times",
    "i-parallel-mixed-24": "diluted by other calls: 20 calls that count reach back over 60 records",
    "j-read-missing": "below the threshold: read came back alike 15 times",
    "l-cycle3": "below the threshold, and diluted by other calls: read came back alike 14 times",
    "n-two-prompts": "split by runs: each run is looked at by itself, and read repeats over 2 of them",
    "o-followup-midrun": "split by runs: each run is looked at by itself, and read repeats over 2 of them",
    "o-steer-cmd": "below the threshold: read came back alike 16 times",
    "r-session-status": "result changed: session_status was called 25 times",
}


def silent(version: str, scenario: str) -> str:
    """Return how the answer has to begin where the live engine did nothing."""
    name = max((name for name in SILENT if scenario.startswith(name)), key=len)
    begins = SILENT[name]
    return begins if isinstance(begins, str) else begins[version]


@pytest.mark.parametrize("expected", sessions())
def test_the_first_line_names_the_real_reason(expected: dict[str, Any]) -> None:
    version, scenario = expected["version"], expected["scenario"]
    folder = RECORDED / version / scenario
    transcript: Path = RECORDED / expected["transcript"]
    planned = plan(transcript, config=folder / "openclaw.json", ruleset=RULESETS[version], agent="main")
    answers = explain(planned, Wanted()).answers
    first = answer_of(answers[0], planned.options.policy)
    did = [KINDS[event["kind"]] for event in expected["events"] if event["kind"] in KINDS]
    grave = max((kind for kind in did if kind in GRAVITY), key=GRAVITY.index, default=None)
    if grave is None:
        begins, _, says = silent(version, scenario).partition(" … ")
        assert first.startswith(begins)
        assert says in first
    else:
        # The second critical verdict ends the run; the first one is what explains it.
        assert first.startswith("block: " if grave == "run_end" else f"{grave}: ")
    if grave == "warning":
        (why,) = (why for name, why in WARNED.items() if scenario.startswith(name))
        assert f"; no more than that, since {why}" in first
