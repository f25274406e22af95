"""A comparison tells what two plain replays tell, reading everything once."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscan.comparing.compare import compare
from loopscan.comparing.pairing import Kind
from loopscan.comparing.sides import Side, side_of
from loopscan.errors import UsageError
from loopscan.marks import Level
from loopscan.replayer import plan, replay
from loopscan.rulesets import RULESETS

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = ("detectors", "guards", "compaction", "sessions", "batches", "claude-code")


def paths() -> list[str | Path]:
    return [FIXTURES / name for name in FOLDERS]


@pytest.mark.parametrize(("a", "b"), [("2026.6", "2026.9"), ("2026.9", "latest"), ("latest", "2026.6")])
def test_the_sides_are_those_of_plain_replays(a: str, b: str) -> None:
    found = compare([plan(paths(), ruleset=name) for name in (a, b)], [a, b])
    plain = [replay(paths(), ruleset=name) for name in (a, b)]
    for totals, report in zip(found.totals, plain, strict=True):
        assert totals == report.count()
    loud = [
        sum(mark.level is not Level.INFO for session in report.sessions for _, mark in session.marks())
        for report in plain
    ]
    assert found.count(Kind.GAINED) - found.count(Kind.LOST) == loud[1] - loud[0]
    assert found.changes
    outcomes = [[(run.outcome, run.not_reached) for each in report.sessions for run in each.runs] for report in plain]
    assert len(found.runs) == sum(one != other for one, other in zip(*outcomes, strict=True))


@pytest.mark.parametrize("name", RULESETS)
def test_with_itself_nothing_changes(name: str) -> None:
    found = compare([plan(paths(), ruleset=name)] * 2, [name, name])
    assert not found.changed
    assert (found.changes, found.runs, found.differing) == ([], [], {})


def test_the_document_is_the_same_in_any_number_of_processes() -> None:
    one, two = (
        compare([plan(paths(), ruleset=name) for name in RULESETS], list(RULESETS), jobs=jobs).to_dict()
        for jobs in (1, 2)
    )
    assert one == two


def test_one_side_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="two sides"):
        compare([plan(paths())], ["latest"])


def test_a_side_is_a_ruleset_a_file_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = Path("openclaw.json")
    config.write_text("{}")
    assert side_of("--a", ["2026.6"]) == Side("2026.6")
    side = side_of("--b", [str(config), "warningThreshold=8", "2026.6"])
    assert side == Side("2026.6", config, ("warningThreshold=8",))
    assert side.label("latest") == "2026.6, openclaw.json, warningThreshold=8"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["2026.7"], "is no ruleset"),
        (["warning=8"], "is no ruleset"),
        (["2026.6", "latest"], "names 2 rulesets"),
    ],
)
def test_a_side_that_makes_no_sense_is_said(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        side_of("--a", words)
