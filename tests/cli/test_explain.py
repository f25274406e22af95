"""``loopscan explain``: the answer first, exit codes, and one line for whatever makes no sense."""

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
from loopscan.explaining.shadows import Reason
from tests.transcripts.build import Transcript, call

FIXTURES = Path(__file__).parents[2] / "fixtures"
NOTES = FIXTURES / "detectors" / "read-notes.jsonl"
SCHEMA: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "explain-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def invoke(*arguments: str | Path) -> Result:
    """Run the command in this process; an error that the user is told of counts with its exit code."""
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)])
    if isinstance(result.exception, LoopscanError):
        result.exit_code = result.exception.exit_code
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def first_line(result: Result) -> str:
    return result.stdout.splitlines()[0]


@pytest.mark.parametrize("place", [":20", ":#20"])
def test_a_call_is_named_by_its_number(place: str) -> None:
    result = invoke(f"{NOTES}{place}", "--ruleset", "2026.9")
    assert result.exit_code == 0
    assert first_line(result).startswith(
        "block: read was called 20 times with the same arguments and the same outcome"
    )
    assert "[====================] 20 of 30, newest last" in result.stdout
    assert "generic_repeat          critical  20 of 20  the verdict" in result.stdout


def test_a_call_without_verdict_says_what_is_nearest() -> None:
    result = invoke(f"{NOTES}:5", "--ruleset", "2026.9")
    assert first_line(result) == "no verdict: generic_repeat is nearest (warning), 5 of 10; 5 more would meet it"


def test_a_warning_that_is_kept_back_says_why() -> None:
    result = invoke(f"{NOTES}:12", "--ruleset", "2026.9")
    assert first_line(result).startswith(
        "warning kept back: generic_repeat counts 12, and one warning is let out per"
    )


def test_an_agents_own_block_is_named() -> None:
    config = FIXTURES / "config" / "openclaw-2026.9.json"
    result = invoke(NOTES, "--ruleset", "2026.9", "--config", config, "--agent", "scribe", "--quiet")
    words = " ".join(result.stdout.split())
    assert "agents.entries.scribe.tools.loopDetection.enabled): with it on, read would have been blocked" in words


@pytest.mark.parametrize("name", ["detectors", "guards", "compaction", "hostile", "sessions", "batches"])
def test_whatever_is_explained_keeps_to_the_schema_in_any_number_of_processes(name: str) -> None:
    one, two = (invoke(FIXTURES / name, "--format", "json", "--skip-errors", "--jobs", jobs) for jobs in ("1", "2"))
    assert (one.exit_code, two.exit_code) == (0, 0)
    assert one.stdout == two.stdout
    found = json.loads(one.stdout)
    VALIDATOR.validate(found)
    assert found["answers"]
    text = invoke(FIXTURES / name, "--verbose", "--skip-errors")
    assert [char for char in text.stdout if not char.isprintable() and char != "\n"] == []


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("number", range(0, 26, 5))
def test_any_call_keeps_to_the_schema(number: int, mode: str) -> None:
    result = invoke(f"{NOTES}:{number}", "--mode", mode, "--format", "json", "--ruleset", "2026.9")
    if number > 21 and mode == "enforce":
        assert result.exit_code == 2
        return
    found = json.loads(result.stdout)
    VALIDATOR.validate(found)
    assert [answer["call"]["call"] for answer in found["answers"]] == [number]


def test_the_schema_is_one() -> None:
    VALIDATOR.check_schema(SCHEMA)


def test_the_schema_names_every_reason() -> None:
    assert SCHEMA["$defs"]["silence"]["properties"]["reason"]["enum"] == [reason.value for reason in Reason]


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 6
    made = Transcript()
    made.user()
    for number in range(25):
        made.asks(call(f"c{number}", "fetch", url="x", api_key=secret))
        made.result(f"c{number}", f"token={secret} at {number}")
    made.says()
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    for more in ([], ["--format", "json"], ["--verbose"]):
        assert secret[:20] not in invoke(path, *more).stdout
    assert secret[:20] not in invoke(f"{path}:3").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([f"{NOTES}:99"], "no judged call is call 99"),
        ([f"{NOTES}:3", "--entry", "x"], "name one call"),
        ([NOTES, "--session", "gone"], "there is no session gone"),
        ([NOTES, "--run", "7"], "there is no run 7"),
        ([NOTES, "--tool-call", "nobody"], "no judged call is tool call nobody"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(arguments: list[str | Path], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in str(result.exception)


def test_a_file_that_is_not_there_is_exit_3(tmp_path: Path) -> None:
    result = invoke(tmp_path / "gone.jsonl")
    assert result.exit_code == 3


def test_a_file_whose_name_ends_in_a_number_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl:20"
    path.write_bytes(NOTES.read_bytes())
    result = invoke(path, "--ruleset", "2026.9")
    assert first_line(result).startswith("block: read was called 20 times")
