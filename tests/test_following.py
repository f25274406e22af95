"""Following shows, as it is written, what a replay of the whole would show; each mark once."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan.cli.following import follow_until_interrupted
from loopscan.errors import UsageError
from loopscan.following import Follower
from loopscan.replayer import plan, replay
from tests.transcripts.build import Transcript, call

FIXTURES = Path(__file__).parent.parent / "fixtures"
LOOP = (FIXTURES / "detectors" / "read-notes.jsonl").read_bytes()


def followed(path: Path) -> Follower:
    return Follower(plan(path, ruleset="2026.9"))


def rows(path: Path) -> list[dict[str, Any]]:
    return list(replay(path, ruleset="2026.9").rows())


def without_source(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "source": ""} for row in found]


@contextmanager
def started(command: list[str], **how: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a command that may run for ever; it is killed in the end, and after a while at the latest."""
    running: subprocess.Popen[Any] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    late = threading.Timer(120, running.kill)
    late.start()
    try:
        yield running
    finally:
        late.cancel()
        running.kill()
        running.wait()
        for stream in (running.stdin, running.stdout, running.stderr):
            if stream is not None:
                stream.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, len(LOOP)), max_size=6))
def test_a_file_that_grows_shows_what_the_whole_would(tmp_path: Path, cuts: list[int]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    expected = rows(path)
    places = [0, *sorted(cuts), len(LOOP)]
    path.write_bytes(LOOP[: places[1]])
    follower = followed(path)
    found = list(follower.look())
    for start, end in pairwise(places[1:]):
        append(path, LOOP[start:end])
        found += follower.look()
    found += follower.look()
    assert found == expected[: len(found)]
    found += follower.finish()
    assert found == expected
    assert not follower.report().problems


def test_marks_are_shown_before_the_session_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    made = Transcript()
    made.user()
    for number in range(12):
        made.asks(call(f"c{number}"))
        made.result(f"c{number}")
    path.write_bytes(made.bytes())
    follower = followed(path)
    assert [row["kind"] for row in follower.look()] == ["warning"]
    assert not list(follower.finish())


def test_a_file_that_is_replaced_is_read_anew_and_shows_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = LOOP.splitlines(True)
    path.write_bytes(b"".join(lines[:-6]))
    follower = followed(path)
    before = list(follower.look())
    other = tmp_path / "s.tmp"
    other.write_bytes(LOOP)
    other.replace(path)
    after = list(follower.look()) + list(follower.look()) + list(follower.finish())
    assert before + after == rows(path)
    assert before
    report = follower.report()
    assert [session.calls for session in report.sessions] == [session.calls for session in replay(path).sessions]


def test_a_file_that_is_cut_and_written_again_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    follower = followed(path)
    shown = list(follower.look())
    path.write_bytes(LOOP[:100])
    assert not list(follower.look())
    path.write_bytes(LOOP)
    assert not list(follower.look())
    assert not list(follower.finish())
    assert shown == rows(path)


def test_a_file_that_is_renamed_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP[: len(LOOP) // 2])
    follower = followed(tmp_path)
    shown = list(follower.look())
    append(path, LOOP[len(LOOP) // 2 :])
    path.rename(tmp_path / "s.jsonl.reset.2026-09-01T10-00-00.000Z")
    for _ in range(12):
        shown += follower.look()
    shown += follower.finish()
    report = follower.report()
    assert without_source(shown) == without_source(rows(tmp_path))
    assert len(report.sessions) == 1
    assert sum(session.calls for session in report.sessions) == replay(tmp_path).sessions[0].calls


def test_new_files_of_a_folder_join_in_and_a_file_that_goes_away_is_read_to_its_end(tmp_path: Path) -> None:
    follower = followed(tmp_path)
    assert not list(follower.look())
    path = tmp_path / "a" / "s.jsonl"
    path.parent.mkdir()
    path.write_bytes(LOOP)
    shown = [row for _ in range(6) for row in follower.look()]
    assert shown == rows(path)
    calls = [session.calls for session in replay(path).sessions]
    path.unlink()
    assert not list(follower.look())
    assert not list(follower.finish())
    assert [session.calls for session in follower.report().sessions] == calls


def test_a_format_that_is_no_stream_is_refused() -> None:
    with pytest.raises(UsageError, match="text or jsonl"):
        follow_until_interrupted(plan(FIXTURES), "json", debug=False)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_cleanly_on_an_interrupt(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    command = [sys.executable, "-m", "loopscan", "replay", "--follow", str(path), "--ruleset", "2026.9"]
    command += ["--format", "jsonl", "--fail-on", "end", "-o", f"json={tmp_path / 'all.json'}"]
    with started(command, text=True) as running:
        assert running.stderr is not None
        assert "following 1 source" in running.stderr.readline()
        running.send_signal(number)
        out, said = running.communicate(timeout=30)
    assert running.returncode == 1
    assert len(out.splitlines()) == len(rows(path))
    assert "followed 1 source with 1 session: " in said
    assert "Traceback" not in said
    assert (tmp_path / "all.json").stat().st_size > 1000


def test_a_line_of_a_mark_shows_what_there_is_and_nothing_raw(tmp_path: Path) -> None:
    from loopscan.reports.console import console
    from loopscan.reports.rows import mark_line

    made = Transcript(session="s\x1b[31m")
    made.user()
    for number in range(12):
        made.asks(call(f"c{number}", "re\x1b[2Jad\u202e"))
        made.result(f"c{number}")
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    out = io.StringIO()
    for row in followed(path).look():
        console(out, width=10_000).print(mark_line(row))
    assert out.getvalue().count("\n") == 1
    assert "warning generic_repeat · count 10" in out.getvalue()
    assert not {"\x1b", "\u202e"} & set(out.getvalue())


def test_following_costs_no_second_reading(tmp_path: Path) -> None:
    """Looking again at a file that did not change reads nothing of it."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    follower = followed(path)
    list(follower.look())
    before = [each.found.source.bytes for each in follower._followed.values()]
    for _ in range(3):
        list(follower.look())
    assert [each.found.source.bytes for each in follower._followed.values()] == before == [len(LOOP)]


def test_a_document_that_is_written_anew_with_each_message_shows_each_mark_once(tmp_path: Path) -> None:
    whole = json.loads((FIXTURES / "gemini" / "checkpoint-herbs.json").read_text())
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps(whole[:4]))
    follower = followed(path)
    shown = list(follower.look())
    for end in range(6, len(whole) + 1, 3):
        path.write_text(json.dumps(whole[:end]))
        shown += follower.look()
    path.write_text(json.dumps(whole))
    shown += follower.look()
    shown += follower.finish()
    assert shown == rows(path)
    assert [row["kind"] for row in shown] == ["warning", "block"]


def test_a_database_is_followed_while_its_gateway_writes(tmp_path: Path) -> None:
    entries = LOOP.splitlines()
    path = tmp_path / "openclaw-agent.sqlite"
    gateway = sqlite3.connect(path)
    gateway.execute("PRAGMA journal_mode = WAL")
    gateway.execute("CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT)")
    events = [("s", seq, entry.decode()) for seq, entry in enumerate(entries)]
    gateway.executemany("INSERT INTO transcript_events VALUES (?, ?, ?)", events[:30])
    gateway.commit()
    follower = followed(path)
    shown = list(follower.look())
    assert [row["kind"] for row in shown] == ["warning"]
    for row in events[30:]:
        gateway.execute("INSERT INTO transcript_events VALUES (?, ?, ?)", row)
        gateway.commit()
        shown += follower.look()
    shown += follower.finish()
    gateway.close()
    assert [row["kind"] for row in shown] == ["warning", "block", "block", "run_end"]
    assert without_source(shown) == without_source(rows(path))


@pytest.mark.parametrize(
    "name", ["openai-messages/stuck-drawer.jsonl", "openhands/cider-loop.jsonl", "gemini/failing-tests.jsonl"]
)
def test_formats_of_lines_or_documents_are_followed_to_their_end(tmp_path: Path, name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    path = tmp_path / Path(name).name
    lines = data.splitlines(True)
    path.write_bytes(b"".join(lines[:2]))
    follower = followed(path)
    shown = list(follower.look())
    for start in range(2, len(lines), 7):
        append(path, b"".join(lines[start : start + 7]))
        shown += follower.look()
    shown += follower.finish()
    assert shown == rows(path)
    report = follower.report()
    assert not report.problems
    assert [session.calls for session in report.sessions] == [session.calls for session in replay(path).sessions]


def test_a_document_on_many_lines_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    whole = json.loads((FIXTURES / "gemini" / "garden-plan.json").read_text())
    path.write_text(json.dumps(whole, indent=2))
    follower = followed(path)
    shown = list(follower.look()) + list(follower.finish())
    assert shown == rows(path)
    assert not follower.report().problems


def test_a_file_that_is_written_anew_in_place_is_read_anew(tmp_path: Path) -> None:
    """Though it is longer than before, it is not what it was."""
    path = tmp_path / "s.jsonl"
    made = Transcript(session="another", note="x")
    made.user()
    for number in range(12):
        made.asks(call(f"x{number}"))
        made.result(f"x{number}")
    path.write_bytes(b"".join(made.lines[:5]))
    follower = followed(path)
    assert not list(follower.look())
    path.write_bytes(LOOP)
    shown = list(follower.look()) + list(follower.finish())
    assert shown == rows(path)
    assert [session.session for session in follower.report().sessions] == [shown[0]["session"]]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_stream_shows_marks_as_they_come_and_ends_at_the_first_interrupt(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "loopscan",
        "replay",
        "--follow",
        "-",
        "--ruleset",
        "2026.9",
        "--format",
        "jsonl",
    ]
    command += ["-o", f"json={tmp_path / 'all.json'}"]
    with started(command, stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        lines = LOOP.splitlines(True)
        running.stdin.write(b"".join(lines[:-2]))
        running.stdin.flush()
        shown = [json.loads(running.stdout.readline())["kind"] for _ in range(4)]
        assert shown == ["warning", "block", "block", "run_end"]
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 0
    assert b"followed 1 source with 1 session: 4 marks" in said
    assert json.loads((tmp_path / "all.json").read_text())["totals"]["calls"] > 20


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_whoever_reads_the_marks_may_stop_reading(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    command = [sys.executable, "-m", "loopscan", "replay", "--follow", str(path), "--ruleset", "2026.9"]
    with started(command) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert b"warning" in running.stdout.readline()
        running.stdout.close()
        assert running.wait() == 0
        said = running.stderr.read()
    assert b"error" not in said
    assert b"Traceback" not in said


def test_a_folder_of_events_is_read_on_when_there_are_more(tmp_path: Path) -> None:
    folder = tmp_path / "conversation"
    folder.mkdir()
    events = (FIXTURES / "openhands" / "cider-loop.jsonl").read_text().splitlines()
    follower = Follower(plan(tmp_path, ruleset="2026.9"))
    shown: list[dict[str, Any]] = []
    for number, event in enumerate(events):
        (folder / f"event-{number:05}-x.json").write_text(event)
        if number % 8 == 0:
            shown += [row for _ in range(5) for row in follower.look()]
    shown += follower.finish()
    assert shown == rows(tmp_path)
    assert [session.calls for session in follower.report().sessions] == [23]


@pytest.mark.parametrize("so_far", [b"", LOOP[:30]])
def test_a_named_file_that_has_no_line_yet_is_waited_for(tmp_path: Path, so_far: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(so_far)
    follower = followed(path)
    assert not list(follower.look())
    assert not follower.hopeless
    append(path, LOOP[len(so_far) :])
    shown = [row for _ in range(5) for row in follower.look()] + list(follower.finish())
    assert shown == rows(path)
    assert not follower.report().complaints()
    gone = followed(tmp_path / "gone.jsonl")
    assert not list(gone.look())
    assert gone.hopeless
