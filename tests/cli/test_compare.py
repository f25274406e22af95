"""``loopscan compare``: the answer first, every format, exit codes, and one line for whatever makes no sense."""

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
from tests.transcripts.build import Transcript, call

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCHEMA: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "compare-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
HOSTILE = "<script>alert(1)</script>\x1b[31m|`x`"


def invoke(*arguments: str | Path) -> Result:
    """Run the command in this process; an error that the user is told of counts with its exit code."""
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
    if isinstance(result.exception, LoopscanError):
        result.exit_code = result.exception.exit_code
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_first_line_is_the_answer() -> None:
    result = invoke(FIXTURES / "detectors", "--a", "2026.6", "--b", "2026.9")
    assert result.exit_code == 0
    assert result.stdout.startswith("9 of 13 sessions differ; marks: 9 gained, 27 lost, 6 changed\n")
    assert "lost block known_poll_no_progress 20 at call 24, and 9 more up to call 33" in result.stdout


def test_settings_of_a_side_move_marks() -> None:
    build = FIXTURES / "detectors" / "failing-build.jsonl"
    result = invoke(build, "--ruleset", "2026.6", "--a", "2026.6", "--b", "criticalThreshold=12")
    assert "moved block generic_repeat" in result.stdout or "gained block generic_repeat" in result.stdout


def test_all_rulesets_make_a_matrix() -> None:
    result = invoke(FIXTURES / "detectors", "--all-rulesets")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["sessions", "that", "differ", "2026.6", "2026.9", "latest"] in lines
    assert ["2026.6", "9", "12"] in lines


@pytest.mark.parametrize("more", [["--a", "2026.6", "--b", "latest"], ["--all-rulesets"]])
@pytest.mark.parametrize("name", ["detectors", "guards", "compaction", "hostile"])
def test_json_keeps_to_the_schema(name: str, more: list[str]) -> None:
    result = invoke(FIXTURES / name, *more, "--format", "json", "--skip-errors")
    assert result.exit_code == 0
    VALIDATOR.validate(json.loads(result.stdout))


def test_the_schema_is_one() -> None:
    VALIDATOR.check_schema(SCHEMA)


def test_a_change_fails_if_asked_to() -> None:
    notes = FIXTURES / "detectors" / "ssh-failures.jsonl"
    assert invoke(notes, "--a", "2026.6", "--b", "2026.9", "--fail-on-change").exit_code == 1
    assert invoke(FIXTURES / "clean", "--a", "2026.6", "--b", "2026.9", "--fail-on-change").exit_code == 0


def test_names_from_a_transcript_are_harmless_in_every_format(tmp_path: Path) -> None:
    made = Transcript(session=HOSTILE)
    made.user()
    for number in range(25):
        made.asks(call(f"c{number}", HOSTILE))
        made.result(f"c{number}", "same")
    made.says()
    (tmp_path / "s.jsonl").write_bytes(made.bytes())
    targets = {name: tmp_path / f"out.{name}" for name in ("text", "json", "markdown", "html")}
    outputs = [f"-o{name}={path}" for name, path in targets.items()]
    assert invoke(tmp_path / "s.jsonl", "--a", "2026.6", "--b", "2026.9", *outputs, "--quiet").exit_code == 0
    texts = {name: path.read_text("utf-8") for name, path in targets.items()}
    assert all("\x1b" not in text for text in texts.values())
    assert "<script>alert" not in texts["html"]
    assert "default-src &#39;none&#39;; script-src &#39;none&#39;" in texts["html"]
    assert "``<script>alert(1)</script>" in texts["markdown"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--a", "2026.6"], "name both sides"),
        (["--a", "2026.6", "--b", "2026.6"], "are the same"),
        (["--all-rulesets", "--a", "2026.6"], "goes without --a and --b"),
        (["--a", "2026.6", "--b", "nowhere.json"], "is no ruleset"),
        (["--a", "2026.6", "--b", "latest", "--format", "csv"], "csv"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(arguments: list[str], message: str) -> None:
    result = invoke(FIXTURES / "clean", *arguments)
    assert result.exit_code == 2
    assert message in str(result.exception)


def test_a_file_that_is_not_there_is_exit_3(tmp_path: Path) -> None:
    assert invoke(tmp_path / "gone.jsonl", "--all-rulesets").exit_code == 3
