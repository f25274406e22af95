"""What may have been a transcript and could not be read is an error wherever it lies, and everything else is read."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"
SESSION = (FIXTURES / "clean" / "paging.jsonl").read_bytes()


def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "loopscan", command, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "whole.jsonl").write_bytes(SESSION)
    (tmp_path / "notes.txt").write_text("nothing of interest")
    return tmp_path


def archive(path: Path) -> None:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as made:
        made.add(FIXTURES / "clean", "clean")
    path.write_bytes(held.getvalue()[: len(held.getvalue()) // 2])


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_damaged_containers_in_a_folder_are_errors(folder: Path, command: str) -> None:
    archive(folder / "cut.tar.gz")
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(SESSION)[:-200])
    done = run(command, str(folder), "--format", "json")
    assert done.returncode == 3
    said = done.stderr.splitlines()
    assert any(
        "cut.tar.gz: the compressed data ends in the middle; what follows is not read" in line for line in said
    )
    assert any("cut.jsonl.gz: reading stopped here: the compressed data ends" in line for line in said)
    assert not any("notes.txt" in line for line in said)
    totals = json.loads(done.stdout)["totals"]
    assert totals["sessions"] >= 2
    assert run(command, str(folder), "--skip-errors").returncode == 0
    assert "not read, or not to the end" in run(command, str(folder), "-q").stdout


def test_archives_without_their_end_and_locked_members_are_errors(folder: Path) -> None:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as made:
        made.add(FIXTURES / "clean" / "paging.jsonl", "a.jsonl")
    end = len(held.getvalue().rstrip(b"\0"))
    (folder / "endless.tar").write_bytes(held.getvalue()[: -(-end // 512) * 512])
    locked = io.BytesIO()
    with zipfile.ZipFile(locked, "w") as packed:
        packed.writestr("b.jsonl", SESSION)
    data = bytearray(locked.getvalue())
    data[6] |= 1  # says of itself that it is encrypted, here and in the list at the end
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    (folder / "locked.zip").write_bytes(data)
    done = run("replay", str(folder))
    assert done.returncode == 3
    assert "endless.tar: " in done.stderr
    assert "locked.zip!b.jsonl: encrypted" in done.stderr


@pytest.mark.parametrize(
    "name", ["openhands/cider-loop.jsonl", "gemini/failing-tests.jsonl", "openai-messages/stuck-drawer.jsonl"]
)
def test_what_stands_before_the_damage_is_used_whatever_the_format(tmp_path: Path, name: str) -> None:
    whole = (FIXTURES / name).read_bytes()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(whole)[:-12])
    done = run("inspect", str(tmp_path / "cut.gz"), "--format", "json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["totals"]["calls"] > 20


def test_copies_count_once_in_an_archive_too(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "both.tar.gz", "w:gz") as made:
        for name in ("openclaw-sqlite", "openclaw-backup"):
            made.add(FIXTURES / name, name)
    plain = json.loads(run("inspect", str(FIXTURES / "openclaw-sqlite"), "--format", "json").stdout)
    packed = json.loads(run("inspect", str(tmp_path), "--format", "json", "--jobs", "2").stdout)
    assert packed["totals"]["calls"] == plain["totals"]["calls"] == 25
    assert packed["totals"]["sessions"] == 2


def test_single_events_of_a_folder_say_what_to_do(tmp_path: Path) -> None:
    event = (FIXTURES / "openhands" / "cider-loop.jsonl").read_text().splitlines()[0]
    (tmp_path / "event-00001-a.json").write_text(event)
    done = run("replay", str(tmp_path / "event-00001-a.json"))
    assert done.returncode == 3
    assert "one event of a folder of them: name the folder" in done.stderr
    assert run("replay", str(tmp_path), "--allow-empty").returncode == 0


@pytest.mark.parametrize("command", ["replay", "inspect"])
def test_what_is_no_transcript_in_a_folder_is_no_error(folder: Path, command: str) -> None:
    done = run(command, str(folder))
    assert (done.returncode, done.stderr) == (0, "")


def test_sources_without_sessions_are_told_from_no_sources(tmp_path: Path) -> None:
    log = FIXTURES / "openclaw-log" / "gateway.log"
    done = run("replay", str(log))
    assert done.returncode == 3
    assert "1 source was read and holds no session" in done.stderr
    assert "3 recorded verdicts are of a session that is not here" in done.stderr
    assert "no transcript found" in run("replay", str(tmp_path)).stderr


@pytest.mark.parametrize(
    ("command", "options", "advice"),
    [
        ("replay", (), "holds no session; loopscan inspect shows what was found"),
        ("inspect", (), "holds no session; the kinds of entries tell what is in there"),
        ("replay", ("--input-format", "codex"), "read as codex and holds no session; without --input-format"),
        ("inspect", ("--input-format", "codex"), "read as codex and holds no session; without --input-format"),
    ],
)
def test_what_is_said_of_sources_without_sessions_is_of_use(
    command: str, options: tuple[str, ...], advice: str
) -> None:
    done = run(command, str(FIXTURES / "openclaw-log" / "gateway.log"), *options)
    assert done.returncode == 3
    assert advice in done.stderr


def test_a_configuration_that_is_not_used_is_named(folder: Path) -> None:
    (folder / "sessions").mkdir()
    (folder / "openclaw.json").write_text("{}")
    done = run("replay", str(folder))
    assert done.returncode == 0
    expected = (
        f"{folder / 'openclaw.json'} was found, but not used, since its folder has no agents: give it by --config"
    )
    assert done.stderr == f"loopscan: {expected}\n"
    assert not run("replay", str(folder), "--no-config").stderr


def test_tools_that_nobody_called_are_named_if_they_are_mapped(folder: Path) -> None:
    done = run("replay", str(folder), "--tool-map", "nosuch=exec", "--tool-map", "exec=")
    assert (
        done.stderr
        == "loopscan: --tool-map nosuch=exec: there is no call of nosuch; loopscan inspect lists the tools\n"
    )
    assert done.returncode == 0


def test_following_what_is_not_there_is_an_error_and_a_stream_ends_it(folder: Path) -> None:
    done = run("replay", "--follow", str(folder / "gone"))
    assert done.returncode == 3
    assert done.stderr.count("gone: no such file or folder") == 1
    line = [sys.executable, "-m", "loopscan", "replay", "--follow", "-", "--ruleset", "2026.9"]
    loop = (FIXTURES / "detectors" / "read-notes.jsonl").read_bytes()
    done_ = subprocess.run(line, input=loop, capture_output=True, check=False, timeout=60)
    assert done_.returncode == 0
    assert len(done_.stdout.splitlines()) == 4
