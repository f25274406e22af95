"""SQLite files that a gateway may be writing: read without a trace.

Nothing is ever written, created or removed beside the database, and the gateway is never kept waiting. SQLite by
itself does not promise that: a plain read-only connection to a database in WAL mode writes into ``-shm``, and
creates ``-wal`` and ``-shm`` where they are missing. There are three ways, by what lies beside the database:

- ``-wal`` with content, and ``-shm``: SQLite's own protocol with a read-only ``-shm`` (``readonly_shm``). A
  shared lock, for as long as a batch takes, keeps the last writer from removing the two files at that moment.
- ``-wal`` with content but no ``-shm``, or a rollback journal: nobody has it open who keeps to the rules, but the
  database is incomplete without the other file. Both are copied to a temporary folder and read there.
- Neither: the file is complete, and read as one that does not change (``immutable``).

For the last two the files must be the same after a batch as they were before it; otherwise the batch is read again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_Answer = TypeVar("_Answer")

#: What stands before the content of the first page, and a size of pages that does not fit in there.
_HEADER_BYTES = 100
_LARGEST_PAGE = 1 << 16

#: The first bytes of every SQLite database.
MAGIC = b"SQLite format 3\0"

#: How often a batch is tried, with a pause before each further try that doubles up to the longest, in seconds.
TRIES = 12
FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.25

#: Times of files are no finer than this, in seconds.
_TICK = 0.02
#: Where SQLite keeps its shared locks in a database file: first byte and length.
_SHARED_LOCKS = (0x40000002, 510)
#: What passes. ``READONLY``: the index of the WAL is being made, or has to be and was not yet.
_TRANSIENT = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_READONLY),
    }
)


class ChangingError(Exception):
    """The database was busy, or changed, each time that it was tried."""


@dataclass(frozen=True, slots=True)
class State:
    """What tells that a database may have changed: size and time of its files."""

    database: tuple[int, int, int, int]
    wal: tuple[int, int]
    journal: tuple[int, int]
    shared: bool
    """Whether there is a ``-shm``."""

    @property
    def newest(self) -> float:
        """When the newest of the files was written, in seconds since the epoch."""
        return max(self.database[3], self.wal[1], self.journal[1]) / 1e9


class Database:
    """An SQLite file, read in short transactions; see the module. To be closed."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()  # the other files lie where the file itself does
        self._copied: tuple[State, tempfile.TemporaryDirectory[str], Path] | None = None
        self.lenient = False
        """Read what can be read of a damaged file, such as one that is shorter than it says."""

    def close(self) -> None:
        """Remove what was copied."""
        if self._copied is not None:
            self._copied[1].cleanup()
            self._copied = None

    def state(self) -> State:
        """Return the state of the files. Raises :class:`OSError` if the database is not there."""
        about = self._path.stat()
        database = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        return State(database, self._beside("-wal"), self._beside("-journal"), self._file("-shm").exists())

    def settled_state(self) -> State | None:
        """Return the state, ``None`` if it was changed so shortly before that a further change might not show."""
        state = self.state()
        return state if abs(time.time() - state.newest) > _TICK else None

    def lacking(self) -> int:
        """Return how many bytes the file is shorter than its first page says, 0 if that cannot be told.

        It cannot while a log beside it may hold the rest, or while it changes.
        """
        try:
            before = self.state()
            with self._path.open("rb") as stream:
                head = stream.read(_HEADER_BYTES)
            if before.wal[0] or before.journal[0] or self.state() != before:
                return 0
        except OSError:
            return 0
        if len(head) < _HEADER_BYTES or head[24:28] != head[92:96]:  # written by something that leaves the size out
            return 0
        page = int.from_bytes(head[16:18], "big")
        pages = int.from_bytes(head[28:32], "big")
        return max(0, pages * (_LARGEST_PAGE if page == 1 else page) - before.database[2])

    def read(self, query: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        """Return what ``query`` returns, which it finds out in one read transaction; it may be called again.

        Text comes as ``bytes``. Raises :class:`sqlite3.Error`, :class:`OSError`, or :class:`ChangingError` if the
        database was busy or changed again and again.
        """
        pause = FIRST_PAUSE
        for left in reversed(range(TRIES)):
            before: State | None = None
            try:
                before = self.state()
                if not _shared(before) and abs(time.time() - before.newest) < _TICK:
                    time.sleep(_TICK)
                    before = self.state()
                with self._connection(before) as connection:
                    connection.execute("BEGIN")
                    try:
                        answer = query(connection)
                    except UnicodeDecodeError as error:  # of what SQLite says of a damaged schema
                        raise sqlite3.DatabaseError("the schema is damaged") from error
                if _shared(before) or self.state() == before:
                    return answer
            except sqlite3.Error as error:
                changed = before is not None and not _shared(before) and self.state() != before
                if not changed and (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _TRANSIENT:
                    raise
                if not left and not changed and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN:
                    raise
            except _MovedError:
                pass
            if left:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        raise ChangingError

    @contextmanager
    def _connection(self, state: State) -> Iterator[sqlite3.Connection]:
        if _shared(state):
            with self._kept(), closing(self._connect(self._path, "mode=ro&readonly_shm=1")) as connection:
                yield connection
        elif state.wal[0] or state.journal[0]:
            with closing(self._connect(self._copy(state), "mode=rw")) as connection:
                yield connection
        else:
            with closing(self._connect(self._path, "mode=ro&immutable=1")) as connection:
                yield connection

    def _connect(self, path: Path, how: str) -> sqlite3.Connection:
        connection = sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=LONGEST_PAUSE, isolation_level=None)
        connection.text_factory = bytes
        for setting in ("query_only=ON", "trusted_schema=OFF", "temp_store=MEMORY", "mmap_size=0"):
            connection.execute(f"PRAGMA {setting}")
        if self.lenient:
            connection.execute("PRAGMA writable_schema=ON")
        return connection

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Hold SQLite's shared lock, so that ``-wal`` and ``-shm`` stay where they are.

        Otherwise SQLite might create a ``-wal`` anew that went away after it was seen.
        """
        held = os.open(self._path, os.O_RDONLY)
        try:
            _lock(held)
            if not _shared(self.state()):
                raise _MovedError
            yield
        finally:
            os.close(held)

    def _copy(self, state: State) -> Path:
        if self._copied is not None and self._copied[0] == state:
            return self._copied[2]
        self.close()
        folder = tempfile.TemporaryDirectory(prefix="loopscan-")
        copy = Path(folder.name) / "database"
        shutil.copyfile(self._path, copy)
        for suffix, (size, _) in (("-wal", state.wal), ("-journal", state.journal)):
            if size:
                shutil.copyfile(self._file(suffix), f"{copy}{suffix}")
        if self.state() != state:
            folder.cleanup()
            raise _MovedError
        self._copied = (state, folder, copy)
        return copy

    def _beside(self, suffix: str) -> tuple[int, int]:
        try:
            about = self._file(suffix).stat()
        except FileNotFoundError:
            return (0, 0)
        return (about.st_size, about.st_mtime_ns)

    def _file(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


def _lock(file: int) -> None:
    """Take SQLite's shared lock of a database that is open as ``file``; it goes when that is closed."""
    if sys.platform == "win32":
        return  # an open file cannot be removed there
    import fcntl

    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_LOCKS[1], _SHARED_LOCKS[0])
    except BlockingIOError:
        raise _MovedError from None
    except OSError:
        pass  # a file system without locks: SQLite does without them there as well


class _MovedError(Exception):
    """The files changed while they were being opened."""


def _shared(state: State) -> bool:
    return state.wal[0] > 0 and state.shared
