"""The reader of backups that are made for git: a row of a table a line, in ``agents/<agent>/tables/<table>.jsonl``.

A value that JSON has no form for is an object: ``{"$hex": …}`` for bytes, ``{"$int": …}`` for a number that is too
large. Cold archives (``sessions/cold/*.jsonl.zst``) are recognised here as well.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import cast

from loopscan.errors import InputError
from loopscan.events import Event, Json, Problem
from loopscan.transcripts.feed import Feed, drive
from loopscan.transcripts.heads import lines_of
from loopscan.transcripts.jsonl import BOM, Line, parse, read_lines
from loopscan.transcripts.openclaw.archived import Cold, add_lines, read_archive
from loopscan.transcripts.openclaw.reader import agent_of, session_of
from loopscan.transcripts.openclaw.rows import row_value
from loopscan.transcripts.openclaw.sessions import Sessions
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.values import Object, string

#: A first line that is longer than the head, of a row of events or of a packed transcript.
_LONG_ROW = re.compile(
    rb'\s*\{"session_id":\s*"[^"]*",\s*(?:"seq":\s*-?\d+,\s*"event_json":|"generation":\s*"[^"]*",\s*"(?:session_key|archive_name)":)'
)
_LONG_COLD = re.compile(rb'\s*\{"kind":\s*"header",\s*"version":\s*1,\s*"sessionId":')
#: Where a row names its session: in whatever order its fields are, and not within a text, where quotes are escaped.
_SESSION = re.compile(rb'"session(?:_id|Id)"\s*:\s*("(?:[^"\\]|\\.){1,512}")')
#: What is looked at again of a long row, to find what is spread over two reads.
_OVERLAP = 1 << 12


class OpenClawBackupReader:
    """Reads the tables of transcripts in a backup: the same rows as in the database, a line each."""

    name = "openclaw-backup"
    traits = Traits(
        summary="tables of transcripts in git backups of OpenClaw, and its cold archives",
        recognised_by="rows with session_id, seq and an event, or the header of a cold archive",
        rank=-1,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise a row of a table of transcripts, or the header of a cold archive."""
        start = head.removeprefix(BOM)
        if _LONG_ROW.match(start) or _LONG_COLD.match(start):
            return Confidence.SURE
        for value in lines_of(head):
            if isinstance(value, dict) and (_is_row(value) or _is_archive(value) or _is_cold(value)):
                return Confidence.SURE
        return Confidence.NO

    def family_in(self, source: Source) -> frozenset[str]:
        """Return the ids of the sessions in the file, wherever it lies."""
        found: set[str] = set()
        try:
            with io.BufferedReader(cast("io.RawIOBase", source.open())) as stream:
                before: bytes | None = b""
                while piece := stream.readline(1 << 16):
                    named = _SESSION.search(before + piece) if before is not None else None
                    if named is not None:
                        found |= _name(named[1])
                    if piece.endswith(b"\n"):
                        before = b""
                    elif before is not None:
                        before = piece[-_OVERLAP:] if named is None else None
        except InputError:
            pass  # whoever reads it will say so
        except OSError as error:
            source.failure = error.strerror or "I/O error"
        return frozenset(found)

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all sessions in ``source``, in the order of its lines; they may take turns.

        Raises :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        agent = agent_of(source.name)
        sessions = Sessions(source, lambda _: agent)
        return drive(source, read_lines(source), _Lines(source, sessions))


class _Lines:
    """A file of rows, or a cold archive, while it is read."""

    def __init__(self, source: Source, sessions: Sessions) -> None:
        self._source = source
        self._sessions = sessions
        self._cold: Feed = Cold(source, sessions, session_of(source.name))
        self._latest: str | None = None
        self._packed = Source(source.name, io.BytesIO)
        """Counts the lines of transcripts that were packed in rows, apart from the numbered lines of the file."""

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a row."""
        session = string(body.get("session_id"))
        if session is None and "kind" in body:
            yield from self._cold.line(line, body)
        elif session is None:
            self._source.count("row", used=False)
        elif _is_archive(body):
            yield from self._archive(line, session, body)
        elif _is_row(body):
            self._latest = session
            try:
                text, frame = _bytes(body.get("event_json")), _bytes(body.get("event_zstd"))
            except ValueError:
                text = frame = None
            for item in row_value(self._source, line.number, text, frame):
                yield from self._sessions.item(session, item)
        else:
            self._source.count("row", used=False)

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        if self._latest is None:
            yield problem
        else:
            yield from self._sessions.problem(self._latest, problem)

    def finish(self) -> Iterator[Event]:
        """End the sessions."""
        yield from self._sessions.finish()
        add_lines(self._source, self._packed)

    def _archive(self, line: Line, session: str, body: Object) -> Iterator[Event]:
        """Read a transcript that is packed in a row."""
        try:
            packed = _bytes(body.get("archive_blob"))
        except ValueError:
            self._source.unusable += 1
            yield Problem(line.number, "malformed-row", "a packed transcript that is no bytes")
            return
        self._source.count("archive", used=packed is not None)
        if packed is None:
            detail = "a session that was moved to a file in sessions/cold, which is not in the backup"
            yield Problem(line.number, "cold-sessions", detail)
            return
        yield from self._sessions.end(session)
        inner = yield from read_archive(
            self._source,
            self._sessions,
            session,
            io.BytesIO(packed),
            encoding=string(body.get("encoding")) or "zstd",
            cold="encoding" not in body,
        )
        add_lines(self._packed, inner)


def _name(text: bytes) -> frozenset[str]:
    """Return the name that a JSON text is, if it is one."""
    try:
        name = parse(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return frozenset()  # whoever reads it will say so
    return frozenset({name}) if isinstance(name, str) else frozenset()


def _is_row(body: Object) -> bool:
    return (
        "session_id" in body
        and "seq" in body
        and ("event_json" in body or "event_zstd" in body)
        and "run_id" not in body
    )


def _is_archive(body: Object) -> bool:
    return "session_id" in body and "archive_blob" in body and "archive_name" in body


def _is_cold(body: Object) -> bool:
    return body.get("kind") == "header" and "sessionId" in body and "generation" in body


def _bytes(value: Json) -> bytes | None:
    """Return a text or bytes of a row. Raises :class:`ValueError` for what is neither."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    packed = value.get("$hex") if isinstance(value, dict) else None
    if not isinstance(packed, str):
        raise ValueError("neither text nor bytes")
    return bytes.fromhex(packed)
