"""The reader of OpenClaw and pi session files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopscan.events import Event, Json, Problem
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import lines_of
from loopscan.transcripts.jsonl import BOM, Line, read_lines
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.openclaw.entries import entry_of
from loopscan.transcripts.openclaw.session import Session
from loopscan.transcripts.openclaw.sessions import begin
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.values import Object, identifier, mapping

_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
_ENTRIES = frozenset({"model_change", "thinking_level_change", "compaction", "custom", "custom_message", "leaf"})
#: A first line that is longer than the head: the fields before the message are enough.
_LONG_MESSAGE = re.compile(rb'\s*\{"type":\s*"message",.{0,200}?"message":\s*\{"role":\s*"', re.DOTALL)
_AGENT = re.compile(r"(?:^|[/\\!])agents[/\\]([^/\\]+)[/\\](?:sessions|agent|tables)(?=[/\\])")


class OpenClawReader:
    """Reads session files of OpenClaw, its predecessors and pi: header and entries, versions 1 to 4."""

    name = "openclaw-jsonl"
    traits = Traits(
        summary="session files of OpenClaw, its predecessors and pi, versions 1 to 4",
        recognised_by="a session header, or entries with a message in them",
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise a session header, or entries with a message in them where the header was lost."""
        best = Confidence.LIKELY if _LONG_MESSAGE.match(head.removeprefix(BOM)) else Confidence.NO
        for value in lines_of(head):
            best = max(best, _recognise(value))
        return best

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all sessions in ``source``, in the order of its lines.

        A second header with another id begins another session. Without a header the session is named after
        the file. Bounded memory but for a few machine words an entry. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        return drive(source, read_lines(source), _File(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the id of the session that the header names, or else the file."""
        for value in lines_of(head):
            header = mapping(value)
            if header.get("type") == "session":
                named = identifier(header.get("id"))
                return frozenset({named}) if named is not None else frozenset()
        return frozenset({session_of(name)})


class _File:
    """One session file while it is read; a second header with another id begins another session."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._session: Session | None = None

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in an entry."""
        entry = entry_of(line, body)
        session = self._session
        if entry.kind == "session":
            self._source.count(entry.kind, used=True)
            if session is not None and entry.id in (None, session.name):
                return
        if session is None or entry.kind == "session":
            if session is not None:
                yield from session.finish()
            header = entry.kind == "session"
            name = entry.id if header and entry.id is not None else session_of(self._source.name)
            self._session = session = begin(name, entry, self._source, agent=agent_of(self._source.name))
            if not header:
                detail = "the file does not begin with a session header: the session is named after the file"
                yield from session.note(Problem(entry.where.line, "no-header", detail))
        if entry.kind != "session":
            yield from session.feed(entry)

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        if self._session is None:
            yield problem
        else:
            yield from self._session.note(problem)

    def finish(self) -> Iterator[Event]:
        """End the last session."""
        if self._session is not None:
            yield from self._session.finish()


def agent_of(path: str) -> str | None:
    """Return the agent that a path names: the ``A`` of ``…/agents/A/sessions/…``, the last one if there are more.

    ``agent`` (the database) and ``tables`` (a backup) may stand for ``sessions``.
    """
    found = _AGENT.findall(path)
    return found[-1] if found else None


def session_of(path: str) -> str:
    """Return the session id that a file is named after: ``ID`` of ``ID.jsonl``, ``ID.jsonl.reset.TIME`` and so on."""
    name = pieces_of(path)[-1]
    return re.split(r"\.jsonl|\.checkpoint\.", name, maxsplit=1)[0] or name


def _recognise(value: Json) -> Confidence:
    if not isinstance(value, dict):
        return Confidence.NO
    kind = value.get("type")
    if kind == "session" and identifier(value.get("id")) and ("timestamp" in value or "version" in value):
        return Confidence.SURE
    if kind == "message":
        message = value.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(role, str) and role in _ROLES and "timestamp" in value:
            return Confidence.SURE
    if isinstance(kind, str) and kind in _ENTRIES and "parentId" in value and "timestamp" in value:
        return Confidence.LIKELY
    return Confidence.NO
