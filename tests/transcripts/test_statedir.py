"""Which configuration holds for a folder that OpenClaw keeps its state in."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscan.transcripts.statedir import StateConfig, state_config


def state(folder: Path, *configs: str, agents: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if agents:
        (folder / "agents").mkdir(exist_ok=True)
    for name in configs:
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize("name", ["openclaw.json", "clawdbot.json", "moltbot.json"])
def test_the_configuration_lies_in_the_folder(tmp_path: Path, name: str) -> None:
    folder = state(tmp_path / "anything", name)
    assert state_config([folder]) == StateConfig(folder / name)
    assert state_config([f"{folder}/"]) == StateConfig(folder / name)


def test_the_newest_name_goes_before_the_older_ones(tmp_path: Path) -> None:
    folder = state(tmp_path, "moltbot.json", "clawdbot.json", "openclaw.json")
    assert state_config([folder]).path == folder / "openclaw.json"


def test_a_folder_that_is_named_like_one_needs_no_agents_and_any_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = state(tmp_path / ".openclaw", "openclaw.json", agents=False)
    assert state_config([folder]).path == folder / "openclaw.json"
    monkeypatch.chdir(folder)
    assert state_config(["."]).path == Path("openclaw.json")
    assert state_config([state(tmp_path / "project", "openclaw.json", agents=False)]) == StateConfig()


def test_what_is_no_state_folder_has_none(tmp_path: Path) -> None:
    state(tmp_path)
    (tmp_path / "openclaw.json").mkdir()
    (tmp_path / "self").symlink_to("self")
    others = [tmp_path, tmp_path / "gone", tmp_path / "self", "with\0nul", "-", "@list", "s3://bucket/x", "*.jsonl"]
    assert state_config(others) == StateConfig()


def test_of_several_that_differ_none_is_used_and_the_reason_is_told(tmp_path: Path) -> None:
    one, two = state(tmp_path / "one", "openclaw.json"), state(tmp_path / "two", "clawdbot.json")
    (tmp_path / "link").symlink_to(one)
    assert state_config([one, tmp_path / "link", one]).path == one / "openclaw.json"
    found = state_config([one, two])
    assert found.path is None
    assert str(one / "openclaw.json") in str(found.reason)
    assert "--config" in str(found.reason)


@pytest.mark.parametrize("name", ["openclaw.json", "moltbot.json"])
def test_a_configuration_beside_sessions_without_agents_is_told_and_not_used(tmp_path: Path, name: str) -> None:
    folder = state(tmp_path / "copy", name, agents=False)
    (folder / "sessions").mkdir()
    assert state_config([tmp_path / "gone", "with\0nul", folder]) == StateConfig(beside=folder / name)
    assert state_config([folder / "sessions"]) == StateConfig()
    home = state(tmp_path / ".openclaw", "openclaw.json")
    assert state_config([folder, home]) == StateConfig(home / "openclaw.json")
    assert state_config([folder, home / "agents"]) == StateConfig(above=home / "openclaw.json")


def test_a_configuration_above_what_was_named_is_told_and_not_used(tmp_path: Path) -> None:
    home = tmp_path / ".openclaw"
    sessions = home / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    (home / "openclaw.json").write_text("{}")
    (sessions / "s.jsonl").write_text("")
    for named in (sessions, sessions / "s.jsonl", home / "agents"):
        assert state_config([named]) == StateConfig(above=home / "openclaw.json")
    assert state_config([home]) == StateConfig(home / "openclaw.json")
    assert state_config([tmp_path]) == StateConfig()
