"""The tables of an agent's database that hold transcripts, as they are in every version of its schema (4 to 23).

Everything here is asked within one transaction (see :mod:`loopscan.transcripts.openclaw.readonly`) and answers with
plain data. A column or table that a version does not have is as good as empty.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, cast

import xxhash

#: The table that makes a database one of transcripts.
EVENTS = "transcript_events"
#: The tables of whole transcripts: of deleted and reset sessions, and of those that were not used for long.
ARCHIVES = ("session_transcript_archives", "session_transcript_cold_archives")
#: How many rows, and bytes of events, a batch has at most; one row more than the bytes is taken.
BATCH_ROWS = 500
BATCH_BYTES = 8 << 20

#: Tables with the columns that name a session and its key, in the order in which they are believed.
_KEYS = (
    ("session_windows", "session_id"),
    ("sessions", "session_id"),
    ("session_nodes", "current_session_id"),
    ("session_entries", "session_id"),
    ("session_transcript_archives", "session_id"),
)
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_TOOBIG})
_FIRST_ROWID = -(1 << 63)
_LAST_ROWID = (1 << 63) - 1
#: Sessions are named by text; other values, which no version writes, sort before or behind all of it.
_TEXT = "session_id >= '' AND session_id < x''"


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a row: its session's id as it is stored, and its number in the session."""

    session: bytes
    seq: int

    @property
    def name(self) -> str:
        """The session's id as text."""
        return self.session.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table, with its event as it is stored."""

    place: Place
    text: bytes | None
    frame: bytes | None
    too_long: int
    """The size in bytes of an event that was too long to be fetched, else 0."""

    @property
    def mark(self) -> int:
        """Something that differs when another event stands at the place."""
        return xxhash.xxh3_64_intdigest(self.text or self.frame or b"") ^ self.too_long


@dataclass(frozen=True, slots=True)
class Tail:
    """How far a session goes."""

    place: Place
    created: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that there are of ``transcript_events``."""

    text: bool
    frame: bool
    created: bool

    def events(self, limit: int) -> str:
        """Return the columns to select for a :class:`Row`; events longer than ``limit`` bytes are left out."""
        text_size = "length(CAST(event_json AS BLOB))" if self.text else "NULL"
        frame_size = "length(CAST(event_zstd AS BLOB))" if self.frame else "NULL"
        text = f"CASE WHEN {text_size} <= {limit} THEN event_json END" if self.text else "NULL"
        frame = f"CASE WHEN {frame_size} <= {limit} THEN event_zstd END" if self.frame else "NULL"
        return f"session_id, seq, {text}, {frame}, {text_size}, {frame_size}"


def layout(connection: sqlite3.Connection) -> Layout | None:
    """Return what the table has, ``None`` if there is no such table, or it has not what a transcript needs."""
    columns = _columns(connection, EVENTS)
    if not {"session_id", "seq"} <= columns or not {"event_json", "event_zstd"} & columns:
        return None
    return Layout("event_json" in columns, "event_zstd" in columns, "created_at" in columns)


def keys(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the session keys by session id, from wherever the version has them."""
    found: dict[str, str] = {}
    for table, session in _KEYS:
        if {session, "session_key"} <= _columns(connection, table):
            for name, key in connection.execute(f"SELECT {session}, session_key FROM {table}"):
                if isinstance(name, bytes) and isinstance(key, bytes):
                    found.setdefault(_text(name), _text(key))
    return found


def owner(connection: sqlite3.Connection) -> str | None:
    """Return the agent that the database says it is of."""
    if "agent_id" in _columns(connection, "schema_meta"):
        for (agent,) in connection.execute("SELECT agent_id FROM schema_meta WHERE agent_id <> '' LIMIT 1"):
            return _text(agent) if isinstance(agent, bytes) else None
    return None


def sessions(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of all sessions of which the database holds something."""
    found = [tail.place.name for tail in tails(connection, Layout(text=False, frame=False, created=False))]
    return found + archived_sessions(connection)


def archived_sessions(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of the sessions of which it holds a whole transcript, or did."""
    found: list[str] = []
    for table in ARCHIVES:
        if "session_id" in _columns(connection, table):
            named = connection.execute(f"SELECT DISTINCT session_id FROM {table}")
            found += [_text(name) for (name,) in named if isinstance(name, bytes)]
    return found


def nameless(connection: sqlite3.Connection) -> int:
    """Return the number of rows whose session or place in it has no usable name."""
    question = f"SELECT count(*) FROM {EVENTS} WHERE typeof(session_id) <> 'text' OR typeof(seq) <> 'integer'"
    (count,) = connection.execute(question).fetchone()
    return int(count)


@dataclass(frozen=True, slots=True)
class Archive:
    """A whole transcript that is packed in a row of one of :data:`ARCHIVES`."""

    table: str
    rowid: int
    session: str
    encoding: str
    """``identity`` or ``zstd``."""
    elsewhere: bool
    """The row only names a file that holds it."""


def archives(connection: sqlite3.Connection) -> list[Archive]:
    """Return the whole transcripts that are packed in the database or moved out of it."""
    found: list[Archive] = []
    for table in ARCHIVES:
        columns = _columns(connection, table)
        if {"session_id", "archive_blob"} <= columns:
            encoding = "encoding" if "encoding" in columns else "'zstd'"
            question = f"SELECT rowid, session_id, {encoding}, archive_blob IS NULL FROM {table} ORDER BY rowid"
            found += [
                Archive(table, rowid, _text(name), _text(_bytes(packed) or b""), bool(elsewhere))
                for rowid, name, packed, elsewhere in connection.execute(question)
                if isinstance(name, bytes)
            ]
    return found


def copied(connection: sqlite3.Connection, archive: Archive, memory: int) -> IO[bytes]:
    """Return a file with what is packed in a row, in memory up to so many bytes."""
    copy = tempfile.SpooledTemporaryFile(memory, prefix="loopscan-")  # noqa: SIM115 - the caller closes it
    try:
        with connection.blobopen(archive.table, "archive_blob", archive.rowid, readonly=True) as blob:
            shutil.copyfileobj(cast("IO[bytes]", blob), copy, 1 << 20)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return cast("IO[bytes]", copy)


def rows_after(
    connection: sqlite3.Connection, columns: Layout, after: Place | None, limit: int, *, within: bool = False
) -> list[Row]:
    """Return the next rows in the order of session and number, a batch at most.

    ``within`` stays in the session of ``after``.
    """
    where = _TEXT
    values: tuple[object, ...] = ()
    if after is not None:
        name, bound = _bound(after.session)
        if within:
            where = f"session_id = {name} AND seq > ?"
        else:
            where = f"(session_id, seq) > ({name}, ?) AND session_id < x''"
        values = (bound, after.seq)
    question = (
        f"SELECT {columns.events(limit)} FROM {EVENTS} WHERE {where} AND typeof(seq) = 'integer' "
        f"ORDER BY session_id, seq LIMIT {BATCH_ROWS}"
    )
    return list(_batch(connection.execute(question, values)))


def row_at(connection: sqlite3.Connection, columns: Layout, place: Place, limit: int) -> Row | None:
    """Return the row at a place, ``None`` if there is none now."""
    name, bound = _bound(place.session)
    question = f"SELECT {columns.events(limit)} FROM {EVENTS} WHERE session_id = {name} AND seq = ?"
    for found in connection.execute(question, (bound, place.seq)):
        return _row(found)
    return None


def tails(connection: sqlite3.Connection, columns: Layout) -> list[Tail]:
    """Return how far each session goes, without looking at all of their rows."""
    created = "created_at" if columns.created else "NULL"
    of_session = f"FROM {EVENTS} WHERE session_id = ids.id AND typeof(seq) = 'integer' ORDER BY seq DESC LIMIT 1"
    question = (
        f"WITH RECURSIVE ids(id) AS (SELECT min(session_id) FROM {EVENTS} WHERE {_TEXT} UNION ALL "
        f"SELECT (SELECT min(session_id) FROM {EVENTS} WHERE session_id > ids.id AND session_id < x'') "
        f"FROM ids WHERE ids.id IS NOT NULL) "
        f"SELECT id, (SELECT seq {of_session}), (SELECT {created} {of_session}) FROM ids WHERE id IS NOT NULL"
    )
    return [
        Tail(Place(session, seq), moment if isinstance(moment, int) else None)
        for session, seq, moment in connection.execute(question)
        if isinstance(seq, int)
    ]


@dataclass(slots=True)
class Stretch:
    """A part of a damaged table, by the numbers that SQLite gave its rows."""

    rows: list[tuple[bytes, int, int]] = field(default_factory=list)
    """Session, number in it, and row number, of the rows that can be found."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """From which row number on rows may be lost, and the first from which on they are not."""
    end: int | None = None
    """Where the next part begins, ``None`` if there is none."""


def stretch(connection: sqlite3.Connection, start: int = _FIRST_ROWID) -> Stretch:
    """Find the rows from the number ``start`` on that are still there, a batch at most.

    The index of the table may be damaged as well, so it is not used.
    """
    found = Stretch()
    for _ in range(BATCH_ROWS):
        try:
            row = _next_row(connection, start)
        except sqlite3.DatabaseError as error:
            if not damaged(error):
                raise
            after = _behind(start, lambda at: _reads(connection, at))
            found.lost.append((max(start, 1), after))
            if after >= _LAST_ROWID:
                return found
            start = after
            continue
        if row is None or row[0] < start:  # a tree that leads backwards is damaged
            return found
        rowid, session, seq = row
        if isinstance(session, bytes) and isinstance(seq, int):
            found.rows.append((session, seq, rowid))
        if rowid == _LAST_ROWID:
            return found
        start = rowid + 1
    found.end = start
    return found


class Salvage:
    """The rows that were found in a damaged table: two numbers for each, and nothing of what is in it."""

    def __init__(self) -> None:
        self._found: dict[bytes, tuple[array[int], array[int]]] = {}

    def add(self, found: Stretch) -> None:
        """Take in a part of the table."""
        for session, seq, rowid in found.rows:
            seqs, rowids = self._found.setdefault(session, (array("q"), array("q")))
            seqs.append(seq)
            rowids.append(rowid)

    def places(self, after: Place | None) -> Iterator[tuple[Place, int]]:
        """Yield the places behind ``after``, in order, with the row numbers."""
        for session in sorted(self._found):
            if after is not None and session < after.session:
                continue
            seqs, rowids = self._found[session]
            order = sorted(range(len(seqs)), key=seqs.__getitem__)
            first = 0
            if after is not None and session == after.session:
                first = bisect_right(order, after.seq, key=seqs.__getitem__)
            for at in order[first:]:
                yield Place(session, seqs[at]), rowids[at]


def damaged(error: sqlite3.Error) -> bool:
    """Say whether an error means that the file is damaged, or the disk that it is on."""
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGE


def rows_numbered(
    connection: sqlite3.Connection, columns: Layout, numbers: Sequence[tuple[Place, int]], limit: int
) -> list[tuple[Place, Row | None]]:
    """Return rows by their numbers: as many as a batch takes, ``None`` for one that cannot be read."""
    found: list[tuple[Place, Row | None]] = []
    size = 0
    question = f"SELECT {columns.events(limit)} FROM {EVENTS} NOT INDEXED WHERE rowid = ?"
    for place, number in numbers:
        row: Row | None = None
        try:
            for each in connection.execute(question, (number,)):
                row = _row(each)
        except sqlite3.DatabaseError as error:
            if not damaged(error):
                raise
            row = None
        found.append((place, row))
        size += _size(row) if row is not None else 0
        if size > BATCH_BYTES:
            break
    return found


def _next_row(connection: sqlite3.Connection, start: int) -> tuple[int, object, object] | None:
    question = (
        f"SELECT rowid, CASE WHEN typeof(session_id) = 'text' THEN session_id END, seq FROM {EVENTS} NOT INDEXED "
        "WHERE rowid >= ? ORDER BY rowid LIMIT 1"
    )
    for rowid, session, seq in connection.execute(question, (start,)):
        return int(rowid), session, seq
    return None


def _reads(connection: sqlite3.Connection, start: int) -> bool:
    try:
        found = _next_row(connection, start)
    except sqlite3.DatabaseError as error:
        if not damaged(error):
            raise
        return False
    return found is None or found[0] >= start


def _behind(start: int, reads: Callable[[int], bool]) -> int:
    """Return where a damaged stretch that begins at ``start`` is over; the last number if it never is."""
    bad, step = start, 1
    if start == _FIRST_ROWID:
        # No row has such a number, but the way to the first one leads through the damage.
        bad = start = 0
    while True:
        good = min(start + step, _LAST_ROWID)
        if reads(good):
            break
        if good == _LAST_ROWID:
            return _LAST_ROWID
        bad, step = good, 2 * step
    while good - bad > 1:
        middle = (good + bad) // 2
        if reads(middle):
            good = middle
        else:
            bad = middle
    return good


def _batch(cursor: sqlite3.Cursor) -> Iterator[Row]:
    size = 0
    for found in cursor:
        row = _row(found)
        yield row
        size += _size(row)
        if size > BATCH_BYTES:
            return


def _row(found: tuple[object, ...]) -> Row:
    session, seq, text, frame, text_size, frame_size = found
    kept = _bytes(text), _bytes(frame)
    size = max(each for each in (text_size, frame_size, 0) if isinstance(each, int))
    place = Place(session if isinstance(session, bytes) else b"", seq if isinstance(seq, int) else 0)
    return Row(place, *kept, too_long=size if kept == (None, None) else 0)


def _size(row: Row) -> int:
    return len(row.text or b"") + len(row.frame or b"")


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()  # a bare number, which is JSON as well


def _bound(session: bytes) -> tuple[str, object]:
    """Return how to ask for a session id: it is text, even where it is no UTF-8."""
    try:
        return "?", session.decode()
    except UnicodeDecodeError:
        return "CAST(? AS TEXT)", session


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the stored columns of a table; none for a view or a virtual table, which could do anything."""
    question = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
    made = connection.execute(question, (table,)).fetchone()
    if made is None or not isinstance(made[0], bytes) or made[0].lstrip()[:14].upper() == b"CREATE VIRTUAL":
        return frozenset()
    about = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,))
    return frozenset(_text(name) for (name,) in about if isinstance(name, bytes))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
