"""``loopscan config show``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from loopscan.cli.config import app
from loopscan.errors import ConfigError, LoopscanError, UsageError
from loopscan.policy import FIELDS

CONFIG = """{
  // ours
  tools: { loopDetection: { enabled: true, warningThreshold: 12, criticalThreshold: "[bold]x[/bold]" } },
  agents: { list: [{ id: "quiet", tools: { loopDetection: { enabled: false } } }] },
}"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "openclaw.json"
    path.write_text(CONFIG)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["show", *map(str, arguments)])


def line(result: Result, start: str) -> str:
    (found,) = [text for text in result.stdout.splitlines() if text.startswith(start)]
    return " ".join(found.split())


def test_defaults_are_shown_with_nothing_given() -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "ruleset latest" in result.stdout
    assert line(result, "enabled ") == "enabled true default (no configuration: shows what would have fired)"
    for name in FIELDS[1:]:
        assert line(result, f"{name} ").endswith("fixed")


def test_every_value_says_where_it_came_from(config: Path) -> None:
    result = run("--config", config, "--ruleset", "2026.6", "--agent", "quiet", "--set", "historySize=40")
    assert result.exit_code == 0
    assert "agent quiet" in result.stdout
    assert line(result, "enabled ") == f"enabled false agent, {config}: agents.list[0].tools.loopDetection.enabled"
    assert line(result, "historySize ") == "historySize 40 command line"
    assert line(result, "warningThreshold ").startswith(f"warningThreshold 12 file, {config}: tools.loopDetection.")
    assert line(result, "unknownToolThreshold ") == "unknownToolThreshold 10 default"
    assert line(result, "criticalThreshold ").startswith("criticalThreshold 20 repaired, ")
    assert 'agent "quiet" has enabled false' in line(result, "silenced: ")


def test_text_of_users_is_no_markup(config: Path) -> None:
    result = run("--config", config, "--ruleset", "2026.6", "--agent", "[red]a\x1b[31m")
    assert result.exit_code == 0
    assert '"[bold]x[/bold]" is not a positive whole number' in line(result, "repaired: ")
    assert "[red]a" in result.stdout
    assert "\x1b" not in result.stdout


def test_json_holds_the_resolved_values_their_origins_and_the_notes(config: Path) -> None:
    result = run("--config", config, "--ruleset", "2026.6", "--agent", "quiet", "--format", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["ruleset"] == "2026.6"
    assert document["agent"] == "quiet"
    assert set(document["values"]) == set(FIELDS)
    assert document["values"]["warningThreshold"] == {
        "value": 12,
        "origin": "file",
        "source": str(config),
        "path": "tools.loopDetection.warningThreshold",
    }
    assert document["values"]["enabled"]["value"] is False
    assert {note["kind"] for note in document["notes"]} == {"repaired", "silenced"}


def test_unset_is_a_value_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text("{}")
    assert line(run("--config", path), "enabled ") == "enabled unset default (not set by the configuration)"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--config", "missing.json"), ConfigError),
        (("--set", "warningTreshold=3"), ConfigError),
        (("--set", "enabled"), UsageError),
        (("--ruleset", "2020.1"), UsageError),
    ],
)
def test_errors_are_left_to_the_command_line_as_a_whole(
    arguments: tuple[str, ...], error: type[LoopscanError]
) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, error)
    assert result.stdout == ""


def test_the_group_explains_itself() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "show" in result.stdout
