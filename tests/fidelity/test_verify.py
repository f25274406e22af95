"""What the live engine did and what the replay does are compared one by one, each difference with its cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Recorded, SessionEvent
from loopscan.fidelity.causes import Cause
from loopscan.fidelity.verify import Fidelity, verify
from loopscan.marks import Kind, Level
from loopscan.replayer import plan
from loopscan.report import SessionReport, agreement
from loopscan.rulesets import RULESETS
from tests.explaining.build import options
from tests.test_recorded import RECORDED, sessions
from tests.test_recorded import RULESETS as RELEASES
from tests.tuning.sessions import sessions as made_sessions

LIVE = Path(__file__).parents[2] / "fixtures" / "live"


def verified(path: Path, asked: str | None = None, jobs: int = 1, **more: Any) -> Fidelity:
    return verify({name: plan(path, ruleset=name, **more) for name in RULESETS}, asked, jobs=jobs)


def folder_of(expected: Mapping[str, Any]) -> Path:
    return RECORDED / expected["version"] / expected["scenario"]


@pytest.mark.parametrize("expected", sessions())
def test_what_the_real_software_recorded_agrees_under_its_own_configuration(expected: dict[str, Any]) -> None:
    folder = folder_of(expected)
    found = verified(folder, config=folder / "openclaw.json", agent="main")
    assert found.disagreements == []
    assert found.tally.score in (None, 1)
    assert set(found.used) <= {RELEASES[expected["version"]]}


def recorded(scenario: str) -> Path:
    folder = RECORDED / scenario
    if not folder.exists():
        pytest.skip("no recordings beside the checkout")
    return folder


@pytest.mark.parametrize(
    ("scenario", "more", "cause"),
    [
        ("2026.6.11/a-exec-same-40", {"overrides": {"criticalThreshold": 15}}, Cause.THRESHOLDS),
        ("2026.6.11/a-exec-same-40-custom", {"find_config": False}, Cause.THRESHOLDS),
        ("2026.6.11/a-exec-same-40", {"overrides": {"enabled": False}}, Cause.CONFIGURATION),
        ("2026.9.6/c-read-same-40", {"overrides": {"enabled": False}}, Cause.CONFIGURATION),
        ("2026.9.6/e-fail-varargs-30", {"asked": "2026.6"}, Cause.RULESET),
        ("2026.6.11/c-read-same-40", {"asked": "2026.9"}, Cause.RULESET),
    ],
)
def test_the_cause_of_what_differs_is_named(scenario: str, more: dict[str, Any], cause: Cause) -> None:
    found = verified(recorded(scenario), more.pop("asked", None), **more)
    assert {each.cause for each in found.disagreements} == {cause}
    assert found.tally.score is not None
    assert found.tally.score < 1


def test_a_record_without_its_beginning_is_not_complete(tmp_path: Path) -> None:
    (path,) = (recorded("2026.9.6/c-read-same-40") / "sessions").glob("*.jsonl")
    header, *lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "s.jsonl").write_text(header + "".join(lines[23:]))
    found = verified(tmp_path / "s.jsonl")
    assert {each.cause for each in found.disagreements} == {Cause.INCOMPLETE}


def test_whether_a_guard_was_armed_may_not_be_on_record() -> None:
    path = LIVE.parent / "openclaw-trajectory" / "snapshots.trajectory.jsonl"
    assert verified(path, "2026.6").tally.score == verified(path).tally.score == 1
    assert [each.cause for each in verified(path, arm="never").disagreements] == [Cause.COMPACTION]


def test_the_ruleset_that_agrees_best_is_guessed() -> None:
    assert verified(recorded("2026.6.11/c-read-same-40")).guess() == (["2026.6"], 1)
    assert verified(recorded("2026.9.6/c-read-same-40")).guess() == (["2026.9", "latest"], 1)


def test_without_a_recorded_verdict_there_is_no_score() -> None:
    found = verified(Path(__file__).parents[2] / "fixtures" / "detectors")
    assert (found.tally.score, found.guess(), found.judged) == (None, None, 0)
    assert found.silent > 0


def test_fixtures_with_live_verdicts_agree_in_any_number_of_processes() -> None:
    one, two = (verified(LIVE, jobs=jobs).to_dict() for jobs in (1, 2))
    assert one == two
    assert one["judged"] > 0
    assert one["score"] == 1


@pytest.mark.parametrize("rules", RULESETS)
@settings(max_examples=20)
@given(events=made_sessions(), data=st.data())
def test_what_a_replay_makes_agrees_with_itself_once_it_is_on_record(
    rules: str, events: list[SessionEvent], data: st.DataObject
) -> None:
    """The marks of a replay are written into the events as a live engine's, and replayed."""
    from loopscan.events import SessionEnded, SessionStarted, Where
    from loopscan.sessions import SessionReplay

    def replayed(stream: list[SessionEvent]) -> tuple[SessionReport, list[SessionEvent]]:
        replaying = SessionReplay("s", SessionStarted("s", Where()), options(rules))
        told: list[SessionEvent] = []
        for event in stream:
            told.append(event)
            told += (
                Recorded(
                    mark.run,
                    mark.where,
                    mark.kind.value,
                    mark.tool_call_id,
                    mark.tool,
                    mark.detector.value,
                    mark.count,
                )
                for mark in replaying.feed(event)
                if mark.level is not Level.INFO and mark.kind is not Kind.ERROR_STREAK_END
            )
        return replaying.finish(SessionEnded(Where())), told

    _, told = replayed(events)
    session, _ = replayed(told)
    assert all(verdict.agrees for verdict in agreement(session))


def test_the_document_names_both_sides() -> None:
    found = verified(recorded("2026.6.11/a-exec-same-40"), overrides={"criticalThreshold": 15})
    document = json.loads(json.dumps(found.to_dict()))
    sides = [(each["recorded"] is None, each["replayed"] is None) for each in document["disagreements"]]
    assert (False, False) in sides
    assert (True, False) in sides
