"""``loopscan verify``: the score first, exit codes, the schema, and one line for whatever makes no sense."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from loopscan.cli.main import app
from loopscan.errors import LoopscanError

FIXTURES = Path(__file__).parents[2] / "fixtures"
LIVE = FIXTURES / "live"
SCHEMA: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "verify-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def invoke(*arguments: str | Path) -> Result:
    """Run the command in this process; an error that the user is told of counts with its exit code."""
    result = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    if isinstance(result.exception, LoopscanError):
        result.exit_code = result.exception.exit_code
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_first_line_is_the_score() -> None:
    result = invoke(LIVE)
    assert result.exit_code == 0
    assert result.stdout.startswith("100 % agree: 6 of 6 verdicts in 2 sessions with any on record\n")
    assert "2026.6 for 1 session, 2026.9 for 1 session" in result.stdout


def test_what_differs_is_told_once_with_its_cause() -> None:
    result = invoke(LIVE, "--set", "enabled=false")
    assert result.stdout.startswith("0 % agree: 0 of 6 verdicts")
    assert "only recorded  block generic_repeat" in result.stdout
    assert "configuration: the detectors are off in the replay" in " ".join(result.stdout.split())
    assert "Disagreements" not in invoke(LIVE, "--set", "enabled=false", "--quiet").stdout


def test_a_guess_is_one_line() -> None:
    result = invoke(LIVE / "stopped.jsonl", "--guess-ruleset")
    assert result.stdout == "2026.9 and latest, which tie: 100 % agree; 2026.6 50 %\n"
    nothing = invoke(FIXTURES / "clean", "--guess-ruleset")
    assert nothing.stdout.startswith("no ruleset can be guessed")


@pytest.mark.parametrize(("score", "code"), [("0.5", 0), ("1", 1)])
def test_a_score_below_the_least_is_a_finding(score: str, code: int) -> None:
    assert invoke(LIVE, "--ruleset", "2026.6", "--min-score", score).exit_code == code


def test_nothing_to_compare_is_no_score() -> None:
    result = invoke(FIXTURES / "clean")
    assert result.exit_code == 0
    assert result.stdout.startswith("nothing to compare: no verdict of a live engine is on record in 5 sessions")
    assert invoke(FIXTURES / "clean", "--min-score", "0.1").exit_code == 1


@pytest.mark.parametrize(
    "name", ["live", "detectors", "openclaw-log", "openclaw-trajectory", "hostile", "compaction"]
)
@pytest.mark.parametrize("more", [[], ["--set", "enabled=false"]])
def test_json_keeps_to_the_schema(name: str, more: list[str]) -> None:
    result = invoke(FIXTURES / name, *more, "--format", "json", "--skip-errors", "--allow-empty")
    assert result.exit_code == 0
    VALIDATOR.validate(json.loads(result.stdout))
    text = invoke(FIXTURES / name, *more, "--verbose", "--skip-errors", "--allow-empty").stdout
    assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_the_schema_is_one() -> None:
    VALIDATOR.check_schema(SCHEMA)


def test_what_makes_no_sense_is_said(tmp_path: Path) -> None:
    assert "there is no ruleset" in str(invoke(LIVE, "--ruleset", "2025").exception)
    assert invoke(LIVE, "--min-score", "2").exit_code == 2
    assert invoke(tmp_path / "gone.jsonl").exit_code == 3
