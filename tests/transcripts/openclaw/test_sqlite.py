"""Databases of agents: the same events as from session files, and not a byte changed, whatever is going on."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan.events import Event, Pause, Problem, SessionEnded, SessionResumed, SessionStarted, Turn
from loopscan.replayer import replay
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.openclaw import OpenClawReader, readonly, rows, tables
from loopscan.transcripts.openclaw.readonly import ChangingError, Database
from loopscan.transcripts.openclaw.sqlite import OpenClawDatabaseReader
from loopscan.transcripts.reader import HEAD_BYTES, Confidence, Source
from tests.transcripts.build import Transcript, call
from tests.transcripts.checks import account, check, of
from tests.transcripts.openclaw.databases import (
    LOOSE,
    SCHEMAS,
    add,
    as_lines,
    create,
    folder,
    insert,
    problems,
    read,
    told,
    transcript,
    writer,
)

RECORDED = Path(__file__).resolve().parents[3].parent / "shared" / "recorded"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon on a database that is busy."""
    monkeypatch.setattr(readonly, "TRIES", 3)
    monkeypatch.setattr(readonly, "LONGEST_PAUSE", 0.01)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 5)


def batches(path: Path, **options: Any) -> tuple[Iterator[Event], Source]:
    """Begin to read a database; the first batch was fetched then."""
    source = Source.of_file(path, **options)
    return OpenClawDatabaseReader().read(source), source


# --- the same as session files


@pytest.mark.parametrize("version", SCHEMAS)
def test_events_are_those_of_the_session_files_in_every_version_of_the_schema(tmp_path: Path, version: int) -> None:
    made = [transcript("b", 12), transcript("a", 3), transcript("c", 0)]
    packed = (3, 4, 5) if version >= 23 else ()
    events, source = read(create(tmp_path / "x.sqlite", *made, version=version, packed=packed))
    assert told(events) == as_lines(*made)
    assert source.lines == sum(len(each.lines) for each in made)
    assert source.bytes == sum(len(each.bytes()) for each in made)
    assert [started.agent for started in of(SessionStarted, events)] == ["main"] * 3


STEPS = st.lists(st.sampled_from(["user", "asks", "result", "says", "absent", "compaction"]), max_size=14)


def built(session: str, steps: list[str]) -> Transcript:
    made = Transcript(session=session, version=4)
    for number, step in enumerate(steps):
        match step:
            case "user":
                made.user(f"do {number % 3}")
            case "asks":
                made.asks(call(f"c{number % 2}"))
            case "result":
                made.result(f"c{number % 2}", "é" * number)
            case "absent":
                made.absent(f"c{number % 2}")
            case "compaction":
                made.compaction()
            case _:
                made.says()
    return made


@settings(max_examples=30)
@given(st.lists(STEPS, min_size=1, max_size=4), st.sets(st.integers(1, 14)), st.sampled_from([1, 3, 500]))
def test_any_sessions_give_the_events_of_their_session_files(
    sessions: list[list[str]], packed: set[int], batch: int
) -> None:
    """Whichever rows are compressed, and however many are fetched at a time."""
    made = [built(f"s{number}", steps) for number, steps in enumerate(sessions)]
    with tempfile.TemporaryDirectory() as temporary, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BATCH_ROWS", batch)
        events, _ = read(create(Path(temporary) / "x.sqlite", *made, packed=packed))
        assert told(events) == as_lines(*made)


def test_batches_are_bounded_by_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH_BYTES", 300)
    made = transcript("a", 6)
    path = create(tmp_path / "x.sqlite", made)
    assert told(read(path)[0]) == as_lines(made)
    columns = tables.Layout(text=True, frame=True, created=True)
    with closing(Database(path)) as database:
        batch = database.read(partial(tables.rows_after, columns=columns, after=None, limit=1 << 20))
        assert 1 < len(batch) < 4


def test_a_row_that_is_a_copy_of_another_source_counts_as_such(tmp_path: Path) -> None:
    made = transcript("a", 3)
    ledger = Ledger()
    ledger.entry("a.jsonl", "a", "e1")
    source = Source.of_file(create(tmp_path / "y.sqlite", made))
    source.ledger = ledger
    check(list(OpenClawDatabaseReader().read(source)))
    account(source)
    assert source.copies == {"a.jsonl": 1}


def test_a_source_is_read_twice_with_the_same_counts(tmp_path: Path) -> None:
    events, source = read(create(tmp_path / "x.sqlite", transcript("a")))
    lines = source.lines
    assert list(OpenClawDatabaseReader().read(source)) == events
    assert source.lines == lines


def test_a_database_out_of_an_archive_is_read_from_a_copy(tmp_path: Path) -> None:
    made = transcript("a")
    path = create(tmp_path / "x.sqlite", made)
    source = Source("backup.zip!/x.sqlite", lambda: path.open("rb"))
    assert told(OpenClawDatabaseReader().read(source)) == as_lines(made)


# --- agents


@pytest.mark.parametrize(
    ("key", "name", "meta", "agent"),
    [
        ("agent:Writer:main", "agents/one/agent/x.sqlite", "two", "Writer"),
        ("global", "agents/one/agent/x.sqlite", "two", "one"),
        ("global", "x.sqlite", "two", "two"),
        ("global", "x.sqlite", None, None),
    ],
)
def test_the_agent_is_that_of_the_session_key_the_path_or_the_database(
    tmp_path: Path, key: str, name: str, meta: str | None, agent: str | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    create(path, transcript("a"), key=key)
    with closing(sqlite3.connect(path)) as database:
        if meta is not None:
            database.execute("INSERT INTO schema_meta VALUES ('primary', 'agent', ?)", (meta,))
        database.commit()
    assert of(SessionStarted, read(path)[0])[0].agent == agent


# --- what is recognised


def head_of(path: Path) -> bytes:
    return path.read_bytes()[:HEAD_BYTES]


def test_a_database_with_transcripts_is_recognised_and_another_is_not(tmp_path: Path) -> None:
    reader = OpenClawDatabaseReader()
    ours = create(tmp_path / "any.name", transcript("a"))
    assert reader.recognise(head_of(ours), str(ours)) is Confidence.SURE
    other = tmp_path / "openclaw-agent.sqlite"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE transcript_event_identities (session_id, seq)")
        database.execute("CREATE VIEW transcript_events AS SELECT 'a' session_id, 1 seq, '{}' event_json")
    assert reader.recognise(head_of(other), str(other)) is Confidence.NO
    assert reader.recognise(b"SQLite format 2\0", str(ours)) is Confidence.NO
    assert reader.recognise(b"", "x\0y") is Confidence.NO


def test_a_head_alone_makes_it_likely(tmp_path: Path) -> None:
    reader = OpenClawDatabaseReader()
    head = head_of(create(tmp_path / "x.sqlite"))
    assert reader.recognise(head, "a.tar!/database.sqlite") is Confidence.LIKELY
    assert reader.recognise(head[:200], "a.tar!/agents/main/agent/openclaw-agent.sqlite") is Confidence.LIKELY
    assert reader.recognise(head[:200], "a.tar!/places.sqlite") is Confidence.NO
    assert reader.recognise(head, str(tmp_path)) is Confidence.LIKELY


def test_a_head_of_another_file_of_that_name_is_not_mixed_up_with_it(tmp_path: Path) -> None:
    ours = create(tmp_path / "x.sqlite", transcript("a"))
    with closing(sqlite3.connect(tmp_path / "y.sqlite")) as database:
        database.execute("PRAGMA page_size = 8192")
        database.execute("CREATE TABLE bookmarks (url)")
    assert OpenClawDatabaseReader().recognise(head_of(tmp_path / "y.sqlite"), str(ours)) is Confidence.NO
    assert OpenClawDatabaseReader().family_in(Source.of_file(tmp_path / "y.sqlite")) == frozenset()


def test_what_turns_out_to_be_another_database_is_a_problem(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as database:
        database.execute("CREATE TABLE bookmarks (url)")
    assert problems(read(tmp_path / "x.sqlite")[0]) == [(0, "no-transcripts")]
    (tmp_path / "y.sqlite").write_bytes(b"something else")
    assert problems(read(tmp_path / "y.sqlite")[0]) == [(0, "not-a-database")]


def test_the_family_is_all_sessions_of_which_there_is_something(tmp_path: Path) -> None:
    path = create(tmp_path / "x.sqlite", transcript("b"), transcript("a"))
    with closing(sqlite3.connect(path)) as database:
        pack(database, "old", b"", "identity")
        database.execute("INSERT INTO session_transcript_cold_archives VALUES ('cold', 'g', 'n', 'file', NULL)")
        database.commit()
    reader = OpenClawDatabaseReader()
    assert reader.family_in(Source.of_file(path)) == {"a", "b", "old", "cold"}
    packed = Source("x.sqlite.gz", lambda: io.BytesIO(path.read_bytes()))
    assert reader.family_in(packed) == {"a", "b", "old", "cold"}, "wherever it lies"
    assert reader.family_in(Source.of_file(tmp_path / "gone.sqlite")) == frozenset()


# --- without a trace


def test_a_database_that_is_being_written_is_read_with_what_is_in_its_wal(tmp_path: Path) -> None:
    """Nothing appears beside it, and not a byte of it and its companions changes."""
    first, second = transcript("a", 3), transcript("b", 3)
    path = create(tmp_path / "x.sqlite", first)
    with writer(path) as gateway:
        gateway.adds("b", second.lines)
        before = folder(tmp_path)
        assert {"x.sqlite", "x.sqlite-wal", "x.sqlite-shm"} == set(before)
        events, _ = read(path)
        assert OpenClawDatabaseReader().recognise(head_of(path), str(path)) is Confidence.SURE
        assert OpenClawDatabaseReader().family_in(Source.of_file(path)) == {"a", "b"}
        assert folder(tmp_path) == before
        assert told(events) == as_lines(first, second)


@pytest.mark.parametrize("name", ["a b", "100%41", "what?mode=rw", "#1", "ü"])
def test_any_name_of_a_file_will_do_and_a_link_to_it(tmp_path: Path, name: str) -> None:
    """The WAL of a database that is linked to lies beside the database, not beside the link."""
    place = tmp_path / name
    place.mkdir()
    path = create(place / f"{name}.sqlite", transcript("a"))
    with writer(path) as gateway:
        gateway.adds("b", transcript("b").lines)
        link = tmp_path / "link"
        link.symlink_to(path)
        before = folder(place)
        for each in (path, link):
            assert told(read(each)[0]) == as_lines(transcript("a"), transcript("b"))
        assert folder(place) == before


@pytest.mark.parametrize("companions", [("-wal", "-shm"), ("-wal",), ()])
def test_what_a_gateway_left_behind_is_read_as_it_lies(tmp_path: Path, companions: tuple[str, ...]) -> None:
    """A crash, or a copy: with a WAL that was never checkpointed, with and without its index."""
    first, second = transcript("a", 3), transcript("b", 3)
    path = create(tmp_path / "x.sqlite", first)
    with writer(path) as gateway:
        gateway.adds("b", second.lines)
        gateway.dies()
    for suffix in {"-wal", "-shm"} - set(companions):
        (tmp_path / f"x.sqlite{suffix}").unlink()
    before = folder(tmp_path)
    assert len(before) == 1 + len(companions)
    events, _ = read(path)
    assert folder(tmp_path) == before
    assert told(events) == (as_lines(first, second) if companions else as_lines(first))


def test_an_empty_wal_stays_where_it_is(tmp_path: Path) -> None:
    path = create(tmp_path / "x.sqlite", transcript("a"))
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"x.sqlite{suffix}").touch()
    before = folder(tmp_path)
    assert told(read(path)[0]) == as_lines(transcript("a"))
    assert folder(tmp_path) == before


def test_an_unfinished_rollback_is_read_as_if_it_were_done(tmp_path: Path) -> None:
    """A journal that a crash left is rolled back in a copy, not in the database."""
    path = create(tmp_path / "x.sqlite", transcript("a"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    with writer(path) as gateway:
        change = "UPDATE transcript_events SET event_json = '{}'"
        gateway.does("PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN IMMEDIATE", change)
        gateway.does(
            "INSERT INTO transcript_events (session_id, seq, event_json, created_at) "
            "SELECT 'z', seq, printf('%9000d', 1), 1 FROM transcript_events"
        )
        gateway.dies()
    assert (tmp_path / "x.sqlite-journal").stat().st_size
    before = folder(tmp_path)
    assert told(read(path)[0]) == as_lines(transcript("a"))
    assert folder(tmp_path) == before


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not read-only there")
@pytest.mark.parametrize("companions", [("-wal", "-shm"), ("-wal",), ()])
def test_a_read_only_folder_is_enough(companions: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        path = create(place / "x.sqlite", transcript("a"))
        with writer(path) as gateway:
            gateway.adds("b", transcript("b").lines)
            gateway.dies()
        for suffix in {"-wal", "-shm"} - set(companions):
            (place / f"x.sqlite{suffix}").unlink()
        for file in place.iterdir():
            file.chmod(0o444)
        place.chmod(0o555)
        before = folder(place)
        try:
            assert as_nobody(lambda: sorted(told(read(path)[0]))) == str(["a", "b"] if companions else ["a"])
            assert folder(place) == before
        finally:
            place.chmod(0o755)


def as_nobody(do: Callable[[], object]) -> str:
    """Return what ``do`` returns in a process that may not write into the folders of others."""
    receives, sends = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            found = str(do())
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent compares it
            found = repr(error)
        os.write(sends, found.encode())
        os._exit(0)
    os.close(sends)
    with os.fdopen(receives, encoding="utf-8") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found


@pytest.mark.usefixtures("small_batches")
def test_the_gateway_is_never_kept_waiting(tmp_path: Path) -> None:
    """Between batches nothing is held: it can checkpoint, lock the database for itself, and go."""
    made = transcript("a", 10)
    path = create(tmp_path / "x.sqlite", made)
    with writer(path) as gateway:
        gateway.adds("b", transcript("b").lines)
        events, _ = batches(path)
        given = [next(events)]
        assert gateway.does("PRAGMA wal_checkpoint(TRUNCATE)") == "[[0, 0, 0]]"
        assert gateway.does("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "COMMIT") == "[]"
        assert gateway.does("PRAGMA locking_mode = NORMAL", f"SELECT count(*) FROM {tables.EVENTS}") != "[]"
        given.append(next(events))
        gateway.closes()
        assert not (tmp_path / "x.sqlite-wal").exists()
        given += events
        check(given)
        assert told(given) == as_lines(made, transcript("b"))
        assert set(folder(tmp_path)) == {"x.sqlite"}


def test_a_copy_for_reading_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create(tmp_path / "x.sqlite", transcript("a"))
    with writer(path) as gateway:
        gateway.adds("b", transcript("b").lines)
        gateway.dies()
    (tmp_path / "x.sqlite-shm").unlink()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    events, _ = batches(path)
    next(events)
    assert list(scratch.iterdir())
    events.close()  # type: ignore[attr-defined]
    assert not list(scratch.iterdir())


# --- while it changes


@pytest.mark.usefixtures("small_batches")
def test_rows_that_are_added_while_it_is_read_are_read_or_left(tmp_path: Path) -> None:
    made = [transcript("b", 10), transcript("d", 10)]
    path = create(tmp_path / "x.sqlite", *made)
    with writer(path) as gateway:
        gateway.adds("x", [b"{}"])
        events, source = batches(path)
        given = [next(events)]
        gateway.adds("a", transcript("a").lines)
        gateway.adds("c", transcript("c").lines)
        given += events
        check(given)
        account(source)
        found = told(given)
        assert found["c"] == as_lines(transcript("c"))["c"]
        assert found["b"] == as_lines(made[0])["b"]
        assert "a" not in found


@pytest.mark.usefixtures("small_batches")
def test_a_session_that_is_rewritten_while_it_is_read_loses_nothing(tmp_path: Path) -> None:
    """Removing a row moves all that follow: what was given already counts as copies when it is read anew."""
    made = transcript("a", 12)
    path = create(tmp_path / "x.sqlite", made)
    with writer(path) as gateway:
        assert gateway.does("BEGIN", "COMMIT") == "[]"
        events, source = batches(path)
        given = [next(events)]
        gateway.does("DELETE FROM transcript_events WHERE session_id = 'a' AND seq >= 2")
        gateway.adds("a", made.lines[3:], start=2)
        given += events
        check(given)
        account(source)
        assert sum(len(turn.calls) for turn in of(Turn, given)) == 12
        assert set(source.copies) == {str(path)}


@pytest.mark.usefixtures("small_batches", "impatient")
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("DROP TABLE transcript_events", "no-transcripts"),
        ("ALTER TABLE transcript_events RENAME COLUMN seq TO number", "no-transcripts"),
    ],
)
def test_a_table_that_goes_away_in_the_middle_is_a_problem(tmp_path: Path, change: str, kind: str) -> None:
    path = create(tmp_path / "x.sqlite", transcript("a", 12))
    events, source = batches(path)
    given = [next(events)]
    with closing(sqlite3.connect(path)) as database:
        database.execute(change)
    given += events
    check(given)
    account(source)
    assert [problem for problem in problems(given) if problem[1] == kind] == [(0, kind)]
    assert of(Turn, given)


@pytest.mark.usefixtures("small_batches", "impatient")
def test_a_file_that_goes_away_in_the_middle_is_a_problem(tmp_path: Path) -> None:
    path = create(tmp_path / "x.sqlite", transcript("a", 12))
    events, source = batches(path)
    given = [next(events)]
    path.unlink()
    given += events
    check(given)
    account(source)
    assert (0, "read-error") in problems(given)


@pytest.mark.usefixtures("small_batches")
def test_a_column_that_is_added_in_the_middle_is_read(tmp_path: Path) -> None:
    """The gateway may be updated at any time."""
    made = transcript("a", 12)
    path = create(tmp_path / "x.sqlite", made, version=20)
    events, _ = batches(path)
    given = [next(events)]
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "DROP TABLE transcript_events; CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json "
            "TEXT, event_zstd BLOB, event_utf8_bytes, navigation_json, created_at, PRIMARY KEY (session_id, seq))"
        )
        insert(database, "a", made.lines, packed=range(10, 20))
        database.commit()
    given += events
    assert told(given) == as_lines(made)


def busy(times: int, error: type[sqlite3.Error] = sqlite3.OperationalError) -> Callable[[sqlite3.Connection], int]:
    left = [times]

    def ask(connection: sqlite3.Connection) -> int:
        left[0] -= 1
        if left[0] >= 0:
            raised = error("busy")
            raised.sqlite_errorcode = sqlite3.SQLITE_BUSY | 0x200
            raise raised
        return int(connection.execute("SELECT 1").fetchone()[0])

    return ask


@pytest.mark.usefixtures("impatient")
def test_a_busy_database_is_tried_again(tmp_path: Path) -> None:
    with closing(Database(create(tmp_path / "x.sqlite"))) as database:
        assert database.read(busy(2)) == 1
        with pytest.raises(ChangingError):
            database.read(busy(3))


@pytest.mark.usefixtures("impatient")
def test_a_database_that_is_locked_for_good_is_a_problem(tmp_path: Path) -> None:
    """Somebody holds it for himself alone, as SQLite does to remove the WAL."""
    path = create(tmp_path / "x.sqlite", transcript("a"))
    with writer(path) as gateway:
        gateway.adds("b", transcript("b").lines)
        gateway.dies()
    with subprocess.Popen(
        [sys.executable, "-c", _LOCK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as lock:
        assert lock.stdout is not None
        assert lock.stdout.readline().strip() == "locked"
        assert problems(read(path)[0]) == [(0, "read-error")]
        lock.communicate("")
    assert told(read(path)[0]) == as_lines(transcript("a"), transcript("b"))


_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("impatient")
def test_a_batch_during_which_the_file_changed_is_not_believed(tmp_path: Path) -> None:
    path = create(tmp_path / "x.sqlite", transcript("a"))
    changes = [2]

    def ask(connection: sqlite3.Connection) -> int:
        found = int(connection.execute(f"SELECT count(*) FROM {tables.EVENTS}").fetchone()[0])
        if changes[0]:
            changes[0] -= 1
            with closing(sqlite3.connect(path)) as other:
                other.execute("DELETE FROM transcript_events WHERE seq = (SELECT max(seq) FROM transcript_events)")
                other.commit()
        return found

    whole = len(transcript("a").lines)
    with closing(Database(path)) as database:
        assert database.read(ask) == whole - 2
        changes[0] = 100
        with pytest.raises(ChangingError):
            database.read(ask)


# --- being followed


def pulled(events: Iterator[Event]) -> list[Event]:
    """Return the events up to the next pause."""
    found = []
    for event in events:
        if isinstance(event, Pause):
            break
        found.append(event)
    return found


def test_what_is_added_is_read_after_each_pause(tmp_path: Path) -> None:
    """Rows of known sessions and new sessions; all stay open to the end."""
    one, two = transcript("a", 4), transcript("b", 4)
    path = create(tmp_path / "x.sqlite")
    with writer(path) as gateway:
        gateway.adds("a", one.lines[:4])
        gateway.adds("b", two.lines[:3])
        events, source = batches(path)
        source.follow = True
        given = pulled(events)
        assert pulled(events) == []
        gateway.adds("a", one.lines[4:8], start=4)
        gateway.adds("c", transcript("c").lines)
        given += pulled(events)
        gateway.adds("b", two.lines[3:], start=3)
        gateway.adds("a", one.lines[8:], start=8)
        given += pulled(events)
        assert not of(SessionEnded, given)
        assert of(SessionResumed, given)
        assert pulled(events) == []
        source.follow = False
        given += events
        check(given)
        account(source)
        assert told(given) == as_lines(one, two, transcript("c"))
        before = folder(tmp_path)
        assert told(read(path)[0]) == as_lines(one, two, transcript("c"))
        assert folder(tmp_path) == before


def test_a_followed_database_gives_what_it_gives_at_once(tmp_path: Path) -> None:
    """The replay finds the same, however the rows came."""
    made = transcript("a", 24)
    path = create(tmp_path / "x.sqlite")
    with writer(path) as gateway:
        events, source = batches(path)
        source.follow = True
        given = pulled(events)
        for start in range(0, len(made.lines), 7):
            gateway.adds("a", made.lines[start : start + 7], start=start)
            given += pulled(events)
        source.follow = False
        given += events
    assert told(given) == as_lines(made)


def test_a_tail_that_is_replaced_while_it_is_followed_is_read(tmp_path: Path) -> None:
    made = transcript("a", 4)
    path = create(tmp_path / "x.sqlite")
    with writer(path) as gateway:
        gateway.adds("a", made.lines[:8])
        events, source = batches(path)
        source.follow = True
        given = pulled(events)
        gateway.does("DELETE FROM transcript_events WHERE seq >= 6")
        gateway.adds("a", made.lines[8:], start=6)
        given += pulled(events)
        source.follow = False
        given += events
        check(given)
        account(source)
        assert sum(len(turn.calls) for turn in of(Turn, given)) == 4
        assert source.copies.total() == 6


@pytest.mark.usefixtures("impatient")
def test_a_busy_moment_does_not_end_the_following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create(tmp_path / "x.sqlite")
    events, source = batches(path)
    source.follow = True
    given = pulled(events)
    with writer(path) as gateway:
        gateway.adds("a", transcript("a").lines)
        with monkeypatch.context() as patch:
            patch.setattr(readonly, "TRIES", 0)
            assert pulled(events) == []
        given += pulled(events)
        assert len(of(Turn, given)) == 3
        source.follow = False
        with monkeypatch.context() as patch:
            patch.setattr(readonly, "TRIES", 0)
            gateway.adds("b", transcript("b").lines)
            given += events
    check(given)
    account(source)
    assert problems(given) == [(0, "read-error")]


def test_a_gateway_that_goes_does_not_end_the_following(tmp_path: Path) -> None:
    one = transcript("a", 3)
    path = create(tmp_path / "x.sqlite")
    events, source = batches(path)
    source.follow = True
    given = pulled(events)
    for start in (0, 5):
        with writer(path) as gateway:
            gateway.adds("a", one.lines[start : start + 5], start=start)
            gateway.closes()
        given += pulled(events)
    source.follow = False
    given += events
    assert told(given) == as_lines(one)


# --- damage


def damaged(path: Path, at: int, data: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)
    return path


def root_of(path: Path, name: str) -> int:
    """Return where the root page of a table or index begins, in bytes."""
    with closing(sqlite3.connect(path)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    return int((page - 1) * size)


def test_nothing_is_lost_where_only_the_index_is_damaged(tmp_path: Path) -> None:
    made = [transcript("b", 20), transcript("a", 20)]
    path = create(tmp_path / "x.sqlite", *made, packed=[5, 6])
    events, _ = read(damaged(path, root_of(path, "sqlite_autoindex_transcript_events_1"), b"\xff" * 4096))
    assert told(event for event in events if not isinstance(event, Problem)) == as_lines(*made)
    assert problems(events) == [(0, "damaged"), (0, "damaged")]


def test_what_is_around_the_damage_is_read(tmp_path: Path) -> None:
    """A leaf of the table is gone: the rows in it are named, the sessions before and behind are whole."""
    made = [transcript(f"s{number}", 30, text=f"said in s{number}") for number in range(5)]
    path = create(tmp_path / "x.sqlite", *made)
    at = [found.start() for found in re.finditer(b"said in s2", path.read_bytes())][15]
    events, source = read(damaged(path, at // 4096 * 4096, bytes(4096)))
    found, whole = told(events), as_lines(*made)
    assert all(found[name] == whole[name] for name in ("s0", "s1", "s3", "s4"))
    assert (0, "damaged") in problems(events)
    lost = next(problem.detail for problem in of(Problem, events) if "row number" in problem.detail)
    first, last = (int(word) for word in lost.split() if word.isdigit())
    assert source.lines == sum(len(each.lines) for each in made) - (last - first + 1)


def test_a_row_whose_rest_is_gone_is_named(tmp_path: Path) -> None:
    made = [transcript("a", 3), transcript("b", 1, text="long " * 9000)]
    path = create(tmp_path / "x.sqlite", *made)
    events, source = read(damaged(path, 0, b""))
    assert not problems(events)
    path.write_bytes(path.read_bytes()[: -4096 * 3])
    events, source = read(path)
    assert {(4, "damaged-row")} <= set(problems(events))
    assert told(events)["a"] == as_lines(made[0])["a"]
    assert source.unusable == 1


@pytest.mark.parametrize("size", [16, 60, 4096, 4096 * 5, 4096 * 12 + 7, -4096, -100])
def test_a_database_that_was_cut_off_is_said_not_to_have_been_read_to_its_end(
    tmp_path: Path, damageable: bytes, size: int
) -> None:
    """On disk as in an archive, within a page too."""
    path = tmp_path / "cut.sqlite"
    path.write_bytes(damageable[:size])
    assert (0, "read-error") in problems(read(path)[0])


def test_a_database_that_another_file_completes_or_that_does_not_say_how_long_it_is_was_not_cut_off(
    tmp_path: Path, damageable: bytes
) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(damageable[:-4096])
    database = Database(path)
    assert database.lacking() == 4096
    for suffix in ("-wal", "-journal"):
        path.with_name(f"{path.name}{suffix}").write_bytes(b"something")
        assert database.lacking() == 0
        path.with_name(f"{path.name}{suffix}").unlink()
    damaged(path, 24, b"\xff")
    assert database.lacking() == 0
    path.unlink()
    assert database.lacking() == 0
    assert Database(create(tmp_path / "whole.sqlite")).lacking() == 0


@pytest.mark.parametrize("damage", ["cut", "table", "index", "schema"])
def test_a_damaged_database_is_known_by_the_sessions_that_are_left(tmp_path: Path, damage: str) -> None:
    made = [transcript(f"s{number}", 30, text=f"said in s{number}") for number in range(5)]
    path = create(tmp_path / "x.sqlite", *made)
    whole = OpenClawDatabaseReader().family_in(Source.of_file(path))
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2 // 4096 * 4096])
    elif damage == "table":
        damaged(path, data.index(b"said in s2") // 4096 * 4096, bytes(4096))
    elif damage == "index":
        damaged(path, root_of(path, "sqlite_autoindex_transcript_events_1"), b"\xff" * 4096)
    else:
        damaged(path, data.index(b"CREATE TABLE session_transcript_archives"), b"\xb3\xb3\xb3")
    reader, source = OpenClawDatabaseReader(), Source.of_file(path)
    left = {started.session for started in of(SessionStarted, reader.read(source))}
    assert left
    assert left <= reader.family_in(source) <= whole


def test_a_damaged_database_beside_a_whole_one_counts_nothing_twice(tmp_path: Path) -> None:
    made = [transcript(f"s{number}", 30) for number in range(5)]
    data = create(tmp_path / "x.sqlite", *made).read_bytes()
    whole = replay(tmp_path / "x.sqlite").count()
    (tmp_path / "a.sqlite").write_bytes(data[: len(data) // 2 // 4096 * 4096])
    (tmp_path / "b.sqlite.gz").write_bytes(gzip.compress(data)[:-3000])
    report = replay(tmp_path, max_expanded=len(data))
    assert (report.count().sessions, report.count().calls) == (whole.sessions, whole.calls)
    assert report.unread_count() == 2
    assert [len(source.copies) for source in report.sources] == [1, 1, 0]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1), st.integers(1, 6000), st.randoms(use_true_random=False), st.booleans())
def test_any_damage_is_survived(
    damageable: bytes, tmp_path: Path, where: float, size: int, random: Any, cut: bool
) -> None:
    at = int(where * (len(damageable) - 1))
    data = damageable[: max(at, 16)] if cut else damageable[:at] + random.randbytes(size) + damageable[at + size :]
    path = tmp_path / "damaged.sqlite"
    path.write_bytes(data)
    OpenClawDatabaseReader().recognise(data[:HEAD_BYTES], str(path))
    OpenClawDatabaseReader().family_in(Source.of_file(path))
    read(path)


@pytest.fixture(scope="module")
def damageable(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "x.sqlite"
    made = [transcript("a", 25), transcript("b", 25), transcript("c", 2, text="long " * 4000)]
    return create(path, *made, packed=[3, 8]).read_bytes()


# --- rows


def loose(path: Path, *found: tuple[Any, ...]) -> Path:
    """Create a database with any rows: session, seq, event, compressed event."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(LOOSE)
        database.executemany("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", found)
        database.commit()
    return path


def packed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(data)


@pytest.mark.parametrize(
    ("text", "frame", "kind"),
    [
        (None, None, "malformed-row"),
        ("{broken", None, "malformed-json"),
        ("[1]", None, "not-an-object"),
        (7, None, "not-an-object"),
        (None, b"no frame", "malformed-zstd"),
        (None, packed(b'{"type":"message"}' * 9)[:-4], "malformed-zstd"),
        (None, packed(b"{broken"), "malformed-json"),
        (None, b"", "malformed-zstd"),
        ("[" * 3000, None, "malformed-json"),
    ],
)
def test_a_row_that_cannot_be_used_is_a_problem_in_its_place(
    tmp_path: Path, text: Any, frame: bytes | None, kind: str
) -> None:
    made = transcript("a")
    rows_of = [("a", seq, line.decode(), None) for seq, line in enumerate(made.lines)]
    rows_of[3] = ("a", 3, text, frame)
    events, source = read(loose(tmp_path / "x.sqlite", *rows_of))
    assert problems(events)[0] == (4, kind)
    assert source.unusable == 1
    assert source.lines == len(made.lines)


def test_bad_utf8_is_read_as_in_a_file_and_blank_rows_are_passed_over(tmp_path: Path) -> None:
    header = transcript("a").lines[0].decode()
    bad = b'{"type":"label","id":"e1","parentId":null,"label":"\xff"}'
    events, source = read(
        loose(tmp_path / "x.sqlite", ("a", 0, header, None), ("a", 1, bad, None), ("a", 2, " ", None))
    )
    assert problems(events) == [(2, "malformed-utf8")]
    assert (source.blank, source.unused["label"]) == (1, 1)


def test_rows_that_name_no_session_are_counted(tmp_path: Path) -> None:
    made = transcript("a")
    odd = [(None, 1), (b"a", 1), (7, 1), ("a", None), ("a", "x"), ("a", 2.5)]
    rows_of = [("a", seq, line.decode(), None) for seq, line in enumerate(made.lines)]
    path = loose(tmp_path / "x.sqlite", *[(*each, "{}", None) for each in odd], *rows_of)
    events, source = read(path)
    assert problems(events) == [(0, "malformed-row")]
    assert source.unusable == len(odd)
    assert told(event for event in events if not isinstance(event, Problem)) == as_lines(made)


def test_odd_names_and_numbers_are_read(tmp_path: Path) -> None:
    """A session id that is no UTF-8 or has NUL in it, numbers with gaps, below zero and huge: lines still grow."""
    lines = [line.decode() for line in transcript("a").lines]
    numbers = [-5, 0, 1, 7, 8, (1 << 63) - 1]
    path = loose(tmp_path / "x.sqlite", *[("a", seq, line, None) for seq, line in zip(numbers, lines, strict=False)])
    with closing(sqlite3.connect(path)) as database:
        for name in (b"\xff", b"a\0b", b"'; --"):
            database.execute("INSERT INTO transcript_events VALUES (CAST(? AS TEXT), 0, '{}', NULL)", (name,))
            database.execute("INSERT INTO transcript_events VALUES (CAST(? AS TEXT), 1, '{}', NULL)", (name,))
        database.commit()
    events, source = read(path)
    assert source.lines == len(lines[:6]) + 6
    assert [each.session for each in of(SessionStarted, events)] == ["'; --", "a", "a\0b", "\\xff"]
    assert [kind for _, kind in problems(events)] == ["no-header"] * 3


def test_a_utf16_database_is_read(tmp_path: Path) -> None:
    made = transcript("é", 2, text="ö")
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA encoding = 'UTF-16le'")
        database.executescript(SCHEMAS[23])
        add(database, made)
        database.commit()
    assert told(read(path)[0]) == as_lines(made)


def test_an_event_over_the_limit_is_skipped_however_it_is_stored(tmp_path: Path) -> None:
    made = transcript("a")
    long = '{"type":"custom","id":"x","data":"%s"}' % ("x" * 5000)
    rows_of = [("a", seq, line.decode(), None) for seq, line in enumerate(made.lines)]
    more = [("a", 90, long, None), ("a", 91, None, packed(long.encode())), ("a", 92, None, os.urandom(5000))]
    path = loose(tmp_path / "x.sqlite", *rows_of, *more)
    events, _ = read(path, max_line=2000)
    assert problems(events) == [(91, "line-too-long"), (92, "line-too-long"), (93, "line-too-long")]
    assert told(event for event in events if not isinstance(event, Problem))["a"][:-1] == as_lines(made)["a"][:-1]
    assert not problems(read(path, max_line=6000)[0])[1:]


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    """A thousand times the limit is packed; hardly more than it comes out, whether or not the frame says so."""
    limit = 1 << 16
    silent = zstandard.ZstdCompressor(level=1, write_content_size=False).compress(bytes(64 << 20))
    for bomb in (packed(bytes(64 << 20)), silent):
        assert len(rows.unpack(bomb, limit)) == limit + 1
    greedy = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True), level=1
    ).compressobj()
    frame = greedy.compress(bytes(1 << 20)) + greedy.flush()
    with pytest.raises(OSError, match="damaged"):
        rows.unpack(frame, limit)


# --- transcripts that are packed whole


def pack(database: sqlite3.Connection, session: str, data: bytes, encoding: str) -> None:
    database.execute(
        "INSERT INTO session_transcript_archives VALUES (?, 'g', ?, 'deleted', ?, ?, ?)",
        (session, f"agent:old:{session}", encoding, data, f"{session}.jsonl.deleted.x"),
    )


def cold(made: Transcript, session: str) -> bytes:
    """Return a cold archive of a session."""
    records: list[dict[str, Any]] = [{"kind": "header", "version": 1, "sessionId": session, "generation": "g"}]
    for seq, line in enumerate(made.lines):
        records.append({"kind": "event", "row": {"seq": seq, "event_json": line.decode().strip(), "created_at": 1}})
    records.append({"kind": "identity", "row": {"event_id": "e1", "seq": 1, "created_at": 1}})
    records.append({"kind": "fts", "row": {"text": "x"}})
    return b"".join(json.dumps(each).encode() + b"\n" for each in records)


def test_deleted_and_cold_sessions_that_are_in_the_database_are_read(tmp_path: Path) -> None:
    live, plain, deleted, old = (transcript(name, 3) for name in ("live", "plain", "deleted", "old"))
    path = create(tmp_path / "x.sqlite", live)
    with closing(sqlite3.connect(path)) as database:
        pack(database, "plain", plain.bytes(), "identity")
        pack(database, "deleted", packed(deleted.bytes()), "zstd")
        statement = "INSERT INTO session_transcript_cold_archives VALUES (?, 'g', ?, ?, ?)"
        database.execute(statement, ("old", "n", "sqlite", packed(cold(old, "old"))))
        database.execute(statement, ("far", "m", "file", None))
        database.commit()
    events, source = read(path)
    found = told(events)
    assert problems(events) == [(0, "cold-sessions")]
    found.pop("")
    assert found == as_lines(live, plain, deleted, old)
    agents = {started.session: started.agent for started in of(SessionStarted, events)}
    assert agents == {"plain": "old", "deleted": "old", "old": None, "live": "main"}
    assert source.unused["identity"] == source.unused["fts"] == 1


@pytest.mark.parametrize("data", [b"", b"no frame", packed(b"{}\n" * 99)[:-5], packed(b"[]\n{broken\n\n{}")])
@pytest.mark.parametrize("table", tables.ARCHIVES)
def test_a_damaged_archive_is_a_problem_and_no_more(tmp_path: Path, data: bytes, table: str) -> None:
    path = create(tmp_path / "x.sqlite", transcript("live"))
    with closing(sqlite3.connect(path)) as database:
        if table == tables.ARCHIVES[0]:
            pack(database, "a", data, "zstd")
        else:
            database.execute(f"INSERT INTO {table} VALUES ('a', 'g', 'n', 'sqlite', ?)", (data,))
        database.commit()
    events, _ = read(path)
    assert told(events)["live"] == as_lines(transcript("live"))["live"]
    assert problems(events)


# --- what was recorded


def databases() -> list[Path]:
    return sorted(RECORDED.glob("*/*/openclaw-agent.sqlite"))


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded sessions are not here")
@pytest.mark.parametrize("path", databases(), ids=lambda path: path.parent.name)
def test_a_recorded_database_gives_the_events_of_its_session_files(path: Path) -> None:
    before = folder_names(path.parent)
    events, source = read(path)
    files = sorted(path.parent.glob("sessions/*.jsonl"))
    lines: dict[str, list[Event]] = {}
    for file in files:
        lines |= told(OpenClawReader().read(Source.of_file(file)))
    assert told(events) == lines
    assert source.bytes == sum(file.stat().st_size for file in files)
    assert {started.agent for started in of(SessionStarted, events)} == {"main"}
    reader = OpenClawDatabaseReader()
    assert reader.recognise(head_of(path), str(path)) is Confidence.SURE
    assert reader.recognise(head_of(path), "archive!/any.sqlite") is Confidence.LIKELY
    assert reader.family_in(Source.of_file(path)) == {file.stem for file in files}
    assert folder_names(path.parent) == before


def folder_names(path: Path) -> dict[str, tuple[int, int]]:
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in path.iterdir()}


def test_a_schema_that_is_no_text_is_a_damaged_database(tmp_path: Path) -> None:
    """Found by damaging a fixture: what SQLite says of such a schema is no UTF-8 either."""
    path = create(tmp_path / "x.sqlite", transcript("a"))
    data = path.read_bytes()
    at = data.index(b"CREATE TABLE transcript_events")
    path.write_bytes(data[: at + 7] + b"\xb3\xb3\xb3" + data[at + 10 :])
    events, _ = read(path)
    assert problems(events) == [(0, "read-error")]
