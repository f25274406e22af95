"""``loopscan replay --near-misses``: told in text and JSON, the same in any number of processes, if asked for."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from loopscan.cli.main import app

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCHEMA: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "replay-1.schema.json").read_text("utf-8"))


def replayed(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["replay", "--no-advice", *map(str, arguments)])
    assert result.exit_code == 0
    return result.stdout


def test_a_blind_spot_is_told_of_with_its_place_and_its_cost() -> None:
    words = " ".join(replayed(FIXTURES / "detectors" / "mirrors.jsonl", "--near-misses").split())
    assert "Near misses: blind spots of the rules, no verdicts web_fetch failed alike 22 times with other" in words
    assert "mirrors.jsonl:6 · run 0, calls 0–21 of " in words
    assert "17,797 tokens" in words


@pytest.mark.parametrize("name", ["clean", "codex", "claude-code", "gemini", "openhands", "swe-agent", "cline"])
def test_fixtures_in_which_nothing_is_hidden_are_silent(name: str) -> None:
    assert "none: nothing repeats that the rules cannot see" in replayed(FIXTURES / name, "--near-misses")


def test_nothing_is_said_unless_it_is_asked_for() -> None:
    assert "Near misses" not in replayed(FIXTURES / "detectors")
    document = json.loads(replayed(FIXTURES / "detectors", "--format", "json"))
    assert not any("near_misses" in session for session in document["sessions"])


def test_json_keeps_to_the_schema_in_any_number_of_processes() -> None:
    asked = (FIXTURES / "detectors", FIXTURES / "sessions", FIXTURES / "guards", "--near-misses", "--format", "json")
    one, two = replayed(*asked, "--jobs", "1"), replayed(*asked, "--jobs", "2")
    assert one == two
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(one))
    found = [miss for session in json.loads(one)["sessions"] for miss in session["near_misses"]]
    assert {miss["relaxation"] for miss in found} >= {"same_error", "cycle"}
