"""Whole transcripts that OpenClaw packs, in an agent's database or beside it.

Deleted and reset sessions are session files (``session_transcript_archives``, until they are published as files).
A cold archive (``session_transcript_cold_archives``, ``sessions/cold/*.jsonl.zst``, from schema 20 on) is lines of
JSON, each with a ``kind``: a header, then the rows of the session's tables, its events among them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import IO, BinaryIO, cast

from loopscan.events import Event, Problem
from loopscan.transcripts.feed import Feed, drive
from loopscan.transcripts.jsonl import Line, read_lines
from loopscan.transcripts.openclaw.rows import Unpacked, row_value
from loopscan.transcripts.openclaw.sessions import Sessions
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import Object, mapping, string, whole


def read_archive(
    source: Source, sessions: Sessions, session: str, file: IO[bytes], *, encoding: str, cold: bool
) -> Generator[Event, None, Source]:
    """Yield the events of a transcript that is packed in ``source``, and end its session.

    Returns the transcript as a source of its own, whose lines are to be added to ``source`` with :func:`add_lines`;
    its entries are counted already. ``encoding`` is ``identity`` or ``zstd``.
    """
    stream = Unpacked(file, source.max_expanded) if encoding == "zstd" else file
    inner = Source(source.name, lambda: cast("BinaryIO", stream), max_line=source.max_line)
    feed: Feed = Cold(source, sessions, session) if cold else _Lines(sessions, session)
    yield from drive(inner, read_lines(inner), feed)
    yield from sessions.end(session)
    return inner


def add_lines(source: Source, inner: Source) -> None:
    """Count the lines of a transcript that was packed in ``source`` as lines of it."""
    source.lines += inner.lines
    source.bytes += inner.bytes
    source.blank += inner.blank
    source.unusable += inner.unusable


class Cold:
    """The lines of a cold archive. Without its header the session is the one that is ``named``."""

    def __init__(self, source: Source, sessions: Sessions, named: str) -> None:
        self._source = source
        self._sessions = sessions
        self._session = named
        self._number = 0

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a line: an event, or what the database needs to restore the session."""
        kind = string(body.get("kind")) or ""
        if kind == "header":
            self._source.count("header", used=True)
            self._session = string(body.get("sessionId")) or self._session
        elif kind == "event":
            row = mapping(body.get("row"))
            event = row.get("event_json")
            text = event.encode("utf-8", "surrogatepass") if isinstance(event, str) else None
            self._number = max(whole(row.get("seq")) or 0, self._number) + 1
            for item in row_value(self._source, self._number, text, None):
                yield from self._sessions.item(self._session, item)
        else:
            self._source.count(kind, used=False)

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        return self._sessions.problem(self._session, problem)

    def finish(self) -> Iterator[Event]:
        """End the session."""
        return self._sessions.end(self._session)


class _Lines:
    """The lines of a session file that is packed."""

    def __init__(self, sessions: Sessions, session: str) -> None:
        self._sessions = sessions
        self._session = session

    def line(self, line: Line, body: Object) -> Iterable[Event]:
        return self._sessions.entry(self._session, line, body)

    def problem(self, problem: Problem) -> Iterable[Event]:
        return self._sessions.problem(self._session, problem)

    def finish(self) -> Iterable[Event]:
        return ()
