"""Builds databases and backups as OpenClaw has them, out of small transcripts."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import zstandard

from loopscan.events import Event, Problem, SessionEnded, SessionResumed, SessionStarted
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.openclaw.sqlite import OpenClawDatabaseReader
from loopscan.transcripts.reader import Source
from tests.transcripts.build import Transcript, call, source_of
from tests.transcripts.checks import account, check

#: What the tables of transcripts are in some versions of the schema.
SCHEMAS = {
    4: """
        CREATE TABLE sessions (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, updated_at INTEGER);
        CREATE TABLE session_entries (session_key TEXT PRIMARY KEY, session_id TEXT NOT NULL, entry_json TEXT);
        CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL,
            created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq));
    """,
    20: """
        CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL) STRICT;
        CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL,
            created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq)) STRICT;
    """,
    23: """
        CREATE TABLE schema_meta (meta_key TEXT NOT NULL PRIMARY KEY, role TEXT NOT NULL, agent_id TEXT) STRICT;
        CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL,
            previous_session_id TEXT) STRICT;
        CREATE TABLE session_transcript_archives (session_id TEXT NOT NULL, generation TEXT NOT NULL,
            session_key TEXT NOT NULL, reason TEXT NOT NULL, encoding TEXT NOT NULL, archive_blob BLOB NOT NULL,
            archive_name TEXT NOT NULL UNIQUE, PRIMARY KEY (session_id, generation)) STRICT;
        CREATE TABLE session_transcript_cold_archives (session_id TEXT NOT NULL PRIMARY KEY,
            generation TEXT NOT NULL, archive_name TEXT NOT NULL UNIQUE, storage TEXT NOT NULL,
            archive_blob BLOB) STRICT;
        CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
            created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,
            PRIMARY KEY (session_id, seq)) STRICT;
    """,
}
#: A table that names nothing: no constraints, so that anything can be put into it.
LOOSE = "CREATE TABLE transcript_events (session_id, seq, event_json, event_zstd, PRIMARY KEY (session_id, seq))"


def transcript(session: str, calls: int = 2, *, text: str = "ok") -> Transcript:
    """Return a session of one run with so many calls."""
    made = Transcript(session=session, version=4)
    made.user()
    for number in range(calls):
        made.asks(call(f"c{number}"), run="r1")
        made.result(f"c{number}", text, run="r1")
    made.says(run="r1")
    return made


def create(
    path: Path, *transcripts: Transcript, version: int = 23, key: str = "agent:main:{}", **options: Any
) -> Path:
    """Create a database with some sessions; ``options`` are those of :func:`insert`."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"PRAGMA journal_mode = WAL; {SCHEMAS[version]} PRAGMA user_version = {version}")
        for each in transcripts:
            add(database, each, version=version, key=key, **options)
        database.commit()
    return path


def add(
    database: sqlite3.Connection, made: Transcript, *, version: int = 23, key: str = "agent:main:{}", **options: Any
) -> None:
    """Add a session with all its rows."""
    session = name_of(made)
    tables = {
        4: ("sessions", "session_id, session_key"),
        20: ("session_nodes", "current_session_id, session_key"),
        23: ("session_windows", "session_id, session_key"),
    }
    table, columns = tables[version]
    database.execute(f"INSERT INTO {table} ({columns}) VALUES (?, ?)", (session, key.format(session)))
    insert(database, session, made.lines, **options)


def insert(
    database: sqlite3.Connection, session: str, lines: Iterable[bytes], *, start: int = 0, packed: Iterable[int] = ()
) -> None:
    """Insert the lines of a session as rows, those with the numbers ``packed`` compressed."""
    compressed = set(packed)
    for seq, line in enumerate(lines, start):
        text = line.rstrip(b"\n")
        if seq in compressed:
            frame = zstandard.ZstdCompressor(level=1, write_checksum=True).compress(text)
            row = {"event_zstd": frame, "event_utf8_bytes": len(text), "navigation_json": "{}"}
        else:
            row = {"event_json": text.decode()}
        row |= {"session_id": session, "seq": seq, "created_at": 1_780_000_000_000 + seq}
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        database.execute(f"INSERT INTO transcript_events ({columns}) VALUES ({marks})", tuple(row.values()))


def name_of(made: Transcript) -> str:
    return str(json.loads(made.lines[0])["id"])


def read(path: Path, **options: Any) -> tuple[list[Event], Source]:
    """Read a database, and check what holds for every stream, and that nothing was lost."""
    source = Source.of_file(path, **options)
    events = list(OpenClawDatabaseReader().read(source))
    check(events)
    account(source)
    return events, source


def told(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Return the events by session, without agents, and what belongs to none under an empty name."""
    found: dict[str, list[Event]] = {}
    name = ""
    for event in events:
        if isinstance(event, SessionStarted):
            name = event.session
            event = replace(event, agent=None)
        if isinstance(event, SessionResumed):
            name = event.session
            continue
        found.setdefault("" if isinstance(event, Problem) else name, []).append(event)
        if isinstance(event, SessionEnded):
            name = ""
    return found


def as_lines(*transcripts: Transcript) -> dict[str, list[Event]]:
    """Return what the reader of session files makes of the same sessions."""
    found: dict[str, list[Event]] = {}
    for made in transcripts:
        for name, events in told(OpenClawReader().read(source_of(made.bytes(), f"{name_of(made)}.jsonl"))).items():
            found.setdefault(name, []).extend(events)
    return found


def problems(events: Iterable[Event]) -> list[tuple[int, str]]:
    return [(event.line, event.kind) for event in events if isinstance(event, Problem)]


def folder(path: Path) -> Mapping[str, tuple[int, int, int, str]]:
    """Return everything that can be seen of the files in a folder."""
    return {
        file.name: (
            file.stat().st_ino,
            file.stat().st_size,
            file.stat().st_mtime_ns,
            hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in sorted(path.iterdir())
    }


class Writer:
    """Another process that has the database open, as a gateway has."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def does(self, *statements: str) -> str:
        """Let it execute statements, the last of which may return rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statements) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def adds(self, session: str, lines: Iterable[bytes], start: int = 0) -> None:
        """Let it add rows to a session, and commit."""
        rows = [
            f"INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES "
            f"('{session}', {seq}, '{line.decode().strip()}', {seq})"
            for seq, line in enumerate(lines, start)
        ]
        assert self.does("BEGIN", *rows, "COMMIT") == "[]"

    def dies(self) -> None:
        """Kill it: what it had not checkpointed stays in the WAL."""
        self._process.kill()
        self._end()

    def closes(self) -> None:
        """Let it end as it should: the last one checkpoints, and removes the WAL."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._end()

    def _end(self) -> None:
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def writer(path: Path) -> Iterator[Writer]:
    """Let another process have a database open; it checkpoints when it is told to."""
    process = Writer(path)
    try:
        assert process.does("PRAGMA wal_autocheckpoint = 0") == "[[0]]"
        yield process
    finally:
        process.dies()


_WRITER = """
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    for statement in json.loads(line):
        try:
            found = database.execute(statement).fetchall()
        except sqlite3.Error as error:
            found = str(error)
            break
    print(json.dumps(found), flush=True)
database.close()
"""
