"""Following shows, as it is written, what a replay of the whole would show; each mark once."""

from __future__ import annotations

import io
import json
import os
import shutil
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
from loopscan.replayer import Plan, plan, replay
from tests.transcripts.build import Transcript, call
from tests.transcripts.packs import gz, tar

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


COMMAND = [sys.executable, "-m", "loopscan", "replay", "--follow", "--ruleset", "2026.9"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    "name",
    [
        "detectors/read-notes.jsonl",
        "openhands/cider-loop.jsonl",
        "openai-messages/stuck-drawer.jsonl",
        "gemini/failing-tests.jsonl",
    ],
)
def test_a_stream_shows_marks_as_they_come_and_what_came_before_an_interrupt_counts(
    tmp_path: Path, name: str
) -> None:
    command = [*COMMAND, "-", "--format", "jsonl", "-o", f"json={tmp_path / 'all.json'}"]
    expected = rows(FIXTURES / name)
    with started(command, stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write((FIXTURES / name).read_bytes() + b'{"half of a li')
        running.stdin.flush()
        shown = [json.loads(running.stdout.readline()) for _ in expected]
        assert [row["kind"] for row in shown] == [row["kind"] for row in expected]
        running.send_signal(signal.SIGINT)
        # Not communicate(): that would close standard input, which ends the stream.
        assert running.wait(30) == 0
        assert running.stderr is not None
        said = running.stderr.read()
    assert f"followed 1 source with 1 session: {len(expected)} mark".encode() in said
    written = json.loads((tmp_path / "all.json").read_text())
    assert written["totals"]["calls"] == replay(FIXTURES / name).count().calls
    assert [problem["kind"] for problem in written["sources"][0]["problems"]] == ["truncated-last-line"]


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes")
@pytest.mark.parametrize("named", ["@list", "pipe"])
def test_one_interrupt_ends_a_stream_whose_writer_is_silent(tmp_path: Path, named: str) -> None:
    (tmp_path / "list").write_text("-\n")
    os.mkfifo(tmp_path / "pipe")
    with (
        started([*COMMAND, named], stdin=subprocess.PIPE, cwd=tmp_path) as running,
        (tmp_path / "pipe").open("r+b", buffering=0) as pipe,
    ):
        assert running.stdin is not None
        assert running.stdout is not None
        writer = pipe if named == "pipe" else running.stdin
        writer.write(LOOP)
        writer.flush()
        assert all(running.stdout.readline() for _ in range(4))
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0


@pytest.mark.skipif(os.name == "nt", reason="signals and pipes")
@pytest.mark.parametrize("named", ["-", "@-", "pipe"])
def test_one_interrupt_ends_a_stream_that_never_said_anything(tmp_path: Path, named: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with started([*COMMAND, named], stdin=subprocess.PIPE, cwd=tmp_path) as running:
        # Nothing shows that it waits by now; before that the signal itself ends it.
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) in (3, -signal.SIGTERM)


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_a_file_that_a_pipe_takes_the_place_of_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    script = f"""
import os
from loopscan.following import Follower
from loopscan.replayer import plan
follower = Follower(plan({str(path)!r}))
rows = list(follower.look())
os.remove({str(path)!r})
os.mkfifo({str(path)!r})
for _ in range(6):
    rows += follower.look()
rows += follower.finish()
print(len(rows), follower.report().complaints(), *follower.gone)
"""
    # By itself: where it waits for the pipe it waits for ever.
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == f"4 [] {path}: a stream that was not there when the reading began\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes")
@pytest.mark.parametrize("format_", ["text", "jsonl"])
@pytest.mark.parametrize("stdin", [False, True])
def test_whoever_reads_the_marks_may_stop_reading(tmp_path: Path, format_: str, stdin: bool) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    command = [*COMMAND, "-" if stdin else str(path), "--format", format_, "--fail-on", "block"]
    command += ["-o", f"json={tmp_path / 'all.json'}"]
    with started(command, stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        if stdin:  # and nothing more comes
            running.stdin.write(LOOP)
            running.stdin.flush()
        assert b"warning" in running.stdout.readline()
        running.stdout.close()
        assert running.wait(60) == 1
        said = running.stderr.read()
    assert b"error" not in said
    assert b"Traceback" not in said
    assert json.loads((tmp_path / "all.json").read_text())["totals"]["calls"] == replay(path).count().calls


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


def written_events(folder: Path) -> list[str]:
    """Write a folder of events without the last one; return that, and the names of all."""
    folder.mkdir()
    *events, last = (FIXTURES / "openhands" / "cider-loop.jsonl").read_text().splitlines()
    for number, event in enumerate(events):
        (folder / f"event-{number:05}-x.json").write_text(event)
    return [f"event-{len(events):05}-x.json", last]


@pytest.mark.parametrize("looks", [0, 6])
def test_an_event_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path, looks: int) -> None:
    name, event = written_events(tmp_path / "conversation")
    path = tmp_path / "conversation" / name
    path.write_text(event[:40])
    follower = followed(tmp_path)
    shown = list(follower.look())
    path.write_text(event)
    shown += [row for _ in range(looks) for row in follower.look()]
    shown += follower.finish()
    assert shown == rows(tmp_path)
    report = follower.report()
    assert not report.problems
    assert [source.lines for source in report.sources] == [56]


def test_an_event_that_joins_in_while_its_folder_is_listed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, event = written_events(tmp_path / "conversation")
    listed = Plan.discover

    def slowly(*arguments: Any) -> Any:
        found = listed(*arguments)
        (tmp_path / "conversation" / name).write_text(event)
        return found

    monkeypatch.setattr(Plan, "discover", slowly)
    follower = followed(tmp_path)
    for _ in range(6):
        list(follower.look())
    list(follower.finish())
    assert [source.lines for source in follower.report().sources] == [56]


def test_standard_input_that_cannot_be_read_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(LOOP)
    for named, data, said in (
        ("-", b"no transcript", "<stdin>: of no known format"),
        ("@-", b"gone.jsonl", "gone.jsonl: no such file or folder (line 1 of standard input)"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        follower = Follower(plan([named, path], ruleset="2026.9"))
        shown = [row for _ in range(7) for row in follower.look()] + list(follower.finish())
        assert shown == rows(path)
        (complaint,) = follower.report().complaints()
        assert complaint.startswith(said)
        assert not follower.gone


def test_what_cannot_be_read_in_an_archive_on_standard_input_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = tar({"s.jsonl": LOOP, "broken.jsonl.gz": gz(LOOP)[:12]})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    follower = Follower(plan("-", ruleset="2026.9"))
    assert len([row for _ in range(7) for row in follower.look()] + list(follower.finish())) == 4
    (complaint,) = follower.report().complaints()
    assert complaint.startswith("<stdin>!broken.jsonl.gz: cannot be read")


def test_new_files_of_a_folder_in_a_list_on_standard_input_join_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(str(tmp_path).encode())))
    follower = Follower(plan("@-", ruleset="2026.9"))
    assert not list(follower.look())
    (tmp_path / "s.jsonl").write_bytes(LOOP)
    assert [row for _ in range(5) for row in follower.look()] == rows(tmp_path)


def test_a_file_that_is_written_anew_in_another_format_is_read_as_that(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    document = (FIXTURES / "gemini" / "checkpoint-herbs.json").read_bytes()
    lines = (FIXTURES / "claude-code" / "guide.jsonl").read_bytes()
    for first, then, format_ in ((LOOP, lines, "claude-code"), (document, LOOP, "openclaw-jsonl")):
        path.write_bytes(first)
        follower = followed(path)
        list(follower.look())
        path.write_bytes(then)
        assert list(follower.look()) + list(follower.finish()) == rows(path)
        report = follower.report()
        assert [source.format for source in report.sources] == [format_]
        assert not report.problems


def test_what_is_written_anew_right_before_the_end_is_read(tmp_path: Path) -> None:
    whole = json.loads((FIXTURES / "gemini" / "checkpoint-herbs.json").read_text())
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps(whole[:4]))
    follower = followed(path)
    assert not list(follower.look())
    path.write_text(json.dumps(whole))
    assert list(follower.finish()) == rows(path)


@pytest.mark.parametrize("named", ["logs", "logs/*.jsonl", "@list", "logs/s.jsonl"])
def test_what_was_read_before_it_went_away_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "s.jsonl").write_bytes(LOOP)
    (tmp_path / "list").write_text("logs/s.jsonl")
    follower = Follower(plan([named, "never.jsonl"], ruleset="2026.9"))
    shown = list(follower.look())
    shutil.rmtree(tmp_path / "logs")
    (tmp_path / "list").unlink()
    shown += [row for _ in range(6) for row in follower.look()] + list(follower.finish())
    assert [row["kind"] for row in shown] == ["warning", "block", "block", "run_end"]
    report = follower.report()
    assert [session.calls for session in report.sessions] == [26]
    assert report.complaints() == ["never.jsonl: no such file or folder"]
    assert [line.partition(":")[0] for line in follower.gone] == [named.removeprefix("@")]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_command_says_what_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "s.jsonl").write_bytes(LOOP)
    with started([*COMMAND, str(folder)], text=True) as running:
        assert running.stderr is not None
        assert "following 1 source" in running.stderr.readline()
        shutil.rmtree(folder)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 0
    assert f"not any more: {folder}: no such file or folder; what was read of it is in the report" in said


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


def test_a_file_of_a_list_that_has_no_line_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    (tmp_path / "list").write_text(str(path))
    follower = Follower(plan(f"@{tmp_path / 'list'}", ruleset="2026.9"))
    assert not list(follower.look())
    assert not follower.hopeless
    append(path, LOOP)
    assert list(follower.finish()) == rows(path)
