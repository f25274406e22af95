"""Our own fixtures are guarded: each is checked, and a threshold that is changed turns those red that it decides."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from loopscan.checks.check import check
from loopscan.checks.report import CheckReport
from loopscan.findings import Status
from tests.checks.files import FIXTURES


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the fixtures that may be changed."""
    shutil.copytree(FIXTURES, tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)
    return Path("fixtures")


def red(report: CheckReport) -> set[str]:
    return {f"{case.group} [{case.name}]" for case in report.cases if case.status is not Status.PASSED}


def test_every_fixture_meets_what_is_expected_of_it(copy: Path) -> None:
    report = check([str(copy)], strict=True)
    assert red(report) == set()
    assert (report.exit_code(), report.mistakes, report.missing) == (0, [], [])
    assert len(report.checked) > 200


def test_a_changed_threshold_turns_exactly_the_checks_red_that_go_by_it(copy: Path) -> None:
    path = copy / "config" / "openclaw.json"
    text, changed = re.subn(r"(criticalThreshold: )12\b", r"\g<1>14", path.read_text(encoding="utf-8"))
    assert changed == 1
    path.write_text(text, encoding="utf-8")
    report = check([str(copy)])
    assert red(report) == {"fixtures/detectors/failing-build.jsonl [2026.6, openclaw.json, agent builder]"}
    (case,) = (case for case in report.cases if case.status is Status.FAILED)
    assert case.reason is not None
    assert case.reason.startswith("exact: mark 2 is another one")
    assert (
        "criticalThreshold 14 is set by fixtures/config/openclaw.json:"
        " agents.list[0].tools.loopDetection.criticalThreshold" in case.text
    )
    assert "● block generic_repeat · count 14, threshold 14 · exec" in case.text


def test_a_changed_transcript_turns_exactly_its_own_checks_red(copy: Path) -> None:
    path = copy / "detectors" / "read-notes.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:40]), encoding="utf-8")
    names = {name.partition(" [")[0] for name in red(check([str(copy)]))}
    assert names == {"fixtures/detectors/read-notes.jsonl"}


def test_another_ruleset_turns_those_red_that_it_judges_otherwise(copy: Path) -> None:
    report = check([str(copy / "swe-agent")], only=["2026.9"])
    assert red(report) == set()
    (copy / "swe-agent" / "gate-check.traj.expect.yaml").write_text(
        (copy / "swe-agent" / "gate-check.traj.expect.yaml")
        .read_text()
        .replace('ruleset: "2026.9"', "ruleset: latest")
    )
    report = check([str(copy / "swe-agent")])
    assert {name.partition(" [")[0] for name in red(report)} == {"fixtures/swe-agent/gate-check.traj.json"}
    text = next(case.text for case in report.cases if case.status is Status.FAILED)
    assert "unexpected: error streak end identical_error" in text
    assert "expected here: block generic_repeat" in text
