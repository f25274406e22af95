"""The reader of the database of an agent, into which OpenClaw writes from 2026.7.2 on."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from loopscan.errors import InputError
from loopscan.events import Event, Pause, Problem
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.openclaw import tables
from loopscan.transcripts.openclaw.archived import add_lines, read_archive
from loopscan.transcripts.openclaw.reader import agent_of
from loopscan.transcripts.openclaw.readonly import MAGIC, ChangingError, Database, State
from loopscan.transcripts.openclaw.rows import read_row
from loopscan.transcripts.openclaw.sessions import Sessions
from loopscan.transcripts.openclaw.tables import Layout, Place, Row, Tail
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import identifier

_Answer = TypeVar("_Answer")

#: How often a session that was rewritten while it was read is read anew, before it is left as it is.
MOST_REWRITES = 20

_NAMES = (b"transcript_events", b"session_nodes", b"session_windows", b"session_entries")
_KEY = re.compile(r"agent:([^:]+):")


_NO_TRANSCRIPTS = "an SQLite database without a table transcript_events that holds transcripts"
#: A packed transcript goes through a file if it is longer, in bytes.
_ARCHIVE_MEMORY = 8 << 20


class OpenClawDatabaseReader:
    """Reads the transcripts in an agent's database, while the gateway writes or from a copy, and changes nothing.

    A row of ``transcript_events`` is what a line is in a session file, with its ``seq`` plus 1 as the number of
    the line (more, where that would not grow). Transcripts that OpenClaw keeps packed in the database (deleted,
    reset and cold sessions) are read first; the others follow in the order of their ids.
    """

    name = "openclaw-sqlite"
    traits = Traits(
        summary="databases of OpenClaw agents (openclaw-agent.sqlite, from 2026.7.2 on) and their snapshots",
        recognised_by="an SQLite database with the table transcript_events",
        rank=-2,
        changes_anywhere=True,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise an SQLite database with the table; its head alone can only make that likely."""
        if not head.startswith(MAGIC):
            return Confidence.NO
        database = _at(head, name)
        if database is not None:
            try:
                return Confidence.SURE if database.read(tables.layout) else Confidence.NO
            except (sqlite3.Error, OSError, ChangingError):
                pass  # the head must do
            finally:
                database.close()
        named = pieces_of(name)[-1] == "openclaw-agent.sqlite"
        return Confidence.LIKELY if named or any(table in head for table in _NAMES) else Confidence.NO

    def family_in(self, source: Source) -> frozenset[str]:
        """Return the ids of the sessions in the database, wherever it lies, or of those that are left of it."""
        try:
            with source.local() as path, closing(Database(path)) as database:
                if database.lacking():
                    source.failure = source.failure or "the database was cut off"
                try:
                    return frozenset(database.read(tables.sessions))
                except sqlite3.DatabaseError as error:
                    if not tables.damaged(error):
                        raise
                    source.failure = source.failure or _about(error)
                database.lenient = True
                return frozenset(_sessions_left(database))
        except (InputError, sqlite3.Error, OSError, ChangingError):
            return frozenset()  # whoever reads it will say so

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all sessions in the database.

        A few hundred rows are fetched at a time, and nothing is held open between. What was damaged is named, and
        the rest read. A session that is rewritten meanwhile is read anew, and what was given counts as copies. Where
        the source is being followed, new rows and sessions are read after each pause. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        with source.local() as path:
            if source.failure is not None:
                yield _stop(source.failure)
            with path.open("rb") as stream:
                magic = stream.read(len(MAGIC))
            if magic != MAGIC:
                yield Problem(0, "not-a-database", "this is no SQLite database")
                return
            database = Database(path)
            try:
                yield from _Reading(source, database).events()
            finally:
                database.close()


class _StoppedError(Exception):
    """The database cannot be read any further."""

    def __init__(self, problem: Problem, *, passing: bool = False) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.passing = passing
        """It may be possible later on."""


class _Reading:
    """One database while it is read."""

    def __init__(self, source: Source, database: Database) -> None:
        self._source = source
        self._database = database
        self._keys: dict[str, str] = {}
        self._owner = agent_of(source.name)
        self._sessions = Sessions(source, self._agent, most_open=None)
        self._lines: dict[bytes, int] = {}
        """The number of the latest line of each session that goes on."""
        self._marks: dict[bytes, tuple[Place, int]] = {}
        """The latest row of each session that goes on, and what stood there."""
        self._created: dict[bytes, tuple[Place, int | None]] = {}
        """How far each session went at the latest look, and when that row was written."""
        self._rewrites: dict[bytes, int] = {}
        self._given: Recent[int, bool] = Recent()
        """Entries that were given, by session and id."""
        self._seen: State | None = None
        """The state in which everything was read."""

    def events(self) -> Iterator[Event]:
        """Yield everything."""
        try:
            yield from self._begin()
            yield from self._everything()
        except _StoppedError as stopped:
            yield stopped.problem
        except sqlite3.DatabaseError as error:
            yield _damage(error)
        while self._source.follow:
            yield Pause()
            try:
                yield from self._news()
            except _StoppedError as stopped:
                if stopped.passing and self._source.follow:
                    continue
                yield stopped.problem
                break
        yield from self._sessions.finish()

    def _begin(self) -> Iterator[Event]:
        """Learn what the database has, and read what is packed in it."""
        lacking = self._database.lacking() if self._source.failure is None else 0
        if lacking:
            yield _stop(f"the database was cut off, its last {lacking:,} bytes are not there")
        try:
            found = self._ask(tables.layout)
        except sqlite3.DatabaseError as error:
            yield _damage(error)
            self._database.lenient = True
            found = self._ask(tables.layout, last=True)
        if found is None:
            raise _StoppedError(Problem(0, "no-transcripts", _NO_TRANSCRIPTS))
        try:
            self._owner = self._owner or self._ask(tables.owner)
            self._keys = self._ask(tables.keys)
        except sqlite3.DatabaseError as error:
            yield _damage(error)
        try:
            yield from self._archives()
            nameless = self._ask(tables.nameless)
        except sqlite3.DatabaseError as error:
            yield _damage(error)
            return
        if nameless:
            self._source.lines += nameless
            self._source.unusable += nameless
            detail = f"{nameless:,} rows that do not name their session and their place in it"
            yield Problem(0, "malformed-row", detail)

    def _archives(self) -> Iterator[Event]:
        """Read the transcripts that are packed whole."""
        found = self._ask(tables.archives)
        for archive in found:
            if archive.elsewhere:
                continue
            with self._ask(partial(tables.copied, archive=archive, memory=_ARCHIVE_MEMORY)) as file:
                cold = archive.table == tables.ARCHIVES[1]
                inner = yield from read_archive(
                    self._source, self._sessions, archive.session, file, encoding=archive.encoding, cold=cold
                )
                add_lines(self._source, inner)
        elsewhere = sum(archive.elsewhere for archive in found)
        if elsewhere:
            detail = f"{elsewhere:,} sessions were moved to files in sessions/cold: they are not in the database"
            yield Problem(0, "cold-sessions", detail)

    def _everything(self) -> Iterator[Event]:
        """Read all rows, by session and number."""
        seen = self._database_state()
        at: Place | None = None
        while True:
            try:
                batch, rewritten = self._ask(partial(self._next, after=at))
            except sqlite3.DatabaseError as error:
                yield _damage(error)
                yield from self._salvaged(at)
                return
            if at is not None and rewritten:
                at = self._again(at)
                continue
            if not batch:
                break
            for row in batch:
                if at is not None and row.place.session != at.session and not self._source.follow:
                    yield from self._over(at)
                at = row.place
                yield from self._row(row)
        if not self._source.follow and at is not None:
            yield from self._over(at)
        self._seen = seen

    def _news(self) -> Iterator[Event]:
        """Read what was added since the latest look."""
        seen = self._database_state()
        if seen is not None and seen == self._seen:
            return
        try:
            tails = self._ask(self._tails)
            if any(tail.place.session not in self._marks for tail in tails):
                self._keys = self._ask(tables.keys)
            for tail in tails:
                session = tail.place.session
                if self._created.get(session) == (tail.place, tail.created):
                    continue
                yield from self._session(session)
                self._created[session] = (tail.place, tail.created)
        except sqlite3.DatabaseError as error:
            raise _StoppedError(_stop(_about(error))) from error
        self._seen = seen

    def _session(self, session: bytes) -> Iterator[Event]:
        """Read on in one session."""
        marked = self._marks.get(session)
        at = marked[0] if marked is not None else _before(session)
        while True:
            batch, rewritten = self._ask(partial(self._next, after=at, within=True))
            if rewritten:
                at = self._again(at)
                continue
            if not batch:
                return
            for row in batch:
                at = row.place
                yield from self._row(row)

    def _next(
        self, connection: sqlite3.Connection, after: Place | None, *, within: bool = False
    ) -> tuple[list[Row], bool]:
        """Return the next rows, unless what was read of the session was rewritten since."""
        limit = self._source.max_line
        columns = _columns(connection)
        marked = self._marks.get(after.session) if after is not None else None
        if marked is not None and after == marked[0]:
            row = tables.row_at(connection, columns, marked[0], limit)
            if (row is None or row.mark != marked[1]) and self._rewrites.get(marked[0].session, 0) < MOST_REWRITES:
                return [], True
        return tables.rows_after(connection, columns, after, limit, within=within), False

    def _again(self, at: Place) -> Place:
        """Begin the session anew: the gateway rewrote it."""
        self._rewrites[at.session] = self._rewrites.get(at.session, 0) + 1
        del self._marks[at.session]
        return _before(at.session)

    def _row(self, row: Row) -> Iterator[Event]:
        """Give a row."""
        session, name = row.place.session, row.place.name
        number = self._lines[session] = max(row.place.seq, self._lines.get(session, 0)) + 1
        self._marks[session] = (row.place, row.mark)
        for item in read_row(self._source, number, row.text, row.frame, too_long=row.too_long):
            if self._is_again(name, item, rewritten=session in self._rewrites):
                self._source.copies[self._source.name] += 1
            else:
                yield from self._sessions.item(name, item)

    def _is_again(self, name: str, item: Line | Problem, *, rewritten: bool) -> bool:
        """Whether an entry was given before its session was rewritten."""
        body = item.value if isinstance(item, Line) else None
        entry = identifier(body.get("id")) if isinstance(body, dict) else None
        if entry is None:
            return False
        key = hash((name, entry))
        if rewritten and key in self._given:
            return True
        self._given[key] = True
        return False

    def _over(self, at: Place) -> Iterator[Event]:
        """End a session whose rows were all read."""
        for known in (self._lines, self._marks, self._rewrites):
            known.pop(at.session, None)
        yield from self._sessions.end(at.name)

    def _salvaged(self, after: Place | None) -> Iterator[Event]:
        """Read what can be read behind a place, row by row: the database is damaged."""
        salvage = tables.Salvage()
        start: int | None = None
        while True:
            search = tables.stretch if start is None else partial(tables.stretch, start=start)
            try:
                found = self._ask(search)
            except sqlite3.DatabaseError as error:
                yield _damage(error)
                break
            for first, end in found.lost:
                yield Problem(0, "damaged", f"nothing can be read from row number {first} to {end - 1}")
            salvage.add(found)
            start = found.end
            if start is None:
                break
        at = after
        places = salvage.places(after)
        waiting = list(islice(places, tables.BATCH_ROWS))
        while waiting:
            rows = self._ask(partial(self._numbered, numbers=waiting))
            for place, row in rows:
                if at is not None and place.session != at.session and not self._source.follow:
                    yield from self._over(at)
                at = place
                if row is None:
                    self._source.lines += 1
                    self._source.unusable += 1
                    number = self._lines[place.session] = max(place.seq, self._lines.get(place.session, 0)) + 1
                    detail = "a row that cannot be read: the database is damaged there"
                    yield from self._sessions.problem(place.name, Problem(number, "damaged-row", detail))
                else:
                    yield from self._row(row)
            waiting = waiting[len(rows) :] or list(islice(places, tables.BATCH_ROWS))

    def _numbered(
        self, connection: sqlite3.Connection, numbers: Sequence[tuple[Place, int]]
    ) -> list[tuple[Place, Row | None]]:
        return tables.rows_numbered(connection, _columns(connection), numbers, self._source.max_line)

    def _tails(self, connection: sqlite3.Connection) -> list[Tail]:
        return tables.tails(connection, _columns(connection))

    def _ask(self, question: Callable[[sqlite3.Connection], _Answer], *, last: bool = False) -> _Answer:
        """Return the answer to a question, which is asked again if it must be.

        Raises :class:`sqlite3.DatabaseError` for a damaged database, unless this was the ``last`` resort, and
        :class:`_StoppedError` for everything else that cannot be helped.
        """
        try:
            return self._database.read(question)
        except ChangingError as error:
            problem = _stop("the database was busy or changed each time that it was tried")
            raise _StoppedError(problem, passing=True) from error
        except sqlite3.DatabaseError as error:
            if not last and tables.damaged(error):
                raise
            raise _StoppedError(_stop(_about(error))) from error
        except (sqlite3.Error, OSError) as error:
            raise _StoppedError(_stop(getattr(error, "strerror", None) or "I/O error")) from error

    def _database_state(self) -> State | None:
        try:
            return self._database.settled_state()
        except OSError:
            return None

    def _agent(self, session: str) -> str | None:
        key = _KEY.match(self._keys.get(session, ""))
        return key[1] if key is not None else self._owner


def _sessions_left(database: Database) -> Iterator[str]:
    """Yield the ids of the sessions of which a damaged database still holds something."""
    start: int | None = None
    with suppress(sqlite3.Error, OSError, ChangingError):  # whoever reads it will say so
        while True:
            search = tables.stretch if start is None else partial(tables.stretch, start=start)
            found = database.read(search)
            yield from (Place(session, seq).name for session, seq, _ in found.rows)
            start = found.end
            if start is None:
                break
    with suppress(sqlite3.Error, OSError, ChangingError):
        yield from database.read(tables.archived_sessions)


def _columns(connection: sqlite3.Connection) -> Layout:
    """Return what the table has now: an update of the gateway may change it at any time."""
    found = tables.layout(connection)
    if found is None:
        raise _StoppedError(Problem(0, "no-transcripts", _NO_TRANSCRIPTS))
    return found


def _before(session: bytes) -> Place:
    return Place(session, -(1 << 63))


def _stop(reason: str) -> Problem:
    return Problem(0, "read-error", f"reading stopped here: {reason}")


def _damage(error: sqlite3.Error) -> Problem:
    return Problem(0, "damaged", f"{_about(error)}: what can still be read of it is read")


def _about(error: sqlite3.Error) -> str:
    """Say in a sentence what SQLite found, without its message, which may quote the database."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if tables.damaged(error):
        return f"the database is damaged ({name})"
    return f"the database cannot be read any further ({name})"


def _at(head: bytes, name: str) -> Database | None:
    """Return the database that lies in the file ``name`` of this machine, if its head is this one."""
    try:
        path = Path(name)
        if not head.startswith(MAGIC) or not path.is_file():
            return None
        with path.open("rb") as stream:
            return Database(path) if stream.read(100)[:24] == head[:24] else None
    except (OSError, ValueError):
        return None
