"""The reader of OpenClaw and pi session files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from loopscan.events import Event, Json, Problem
from loopscan.transcripts.jsonl import Line, parse, read_lines
from loopscan.transcripts.openclaw.entries import Entry, entry_of, identifier, string
from loopscan.transcripts.openclaw.session import Session
from loopscan.transcripts.reader import Confidence, Source

#: How many lines of the head are looked at; more than one, as the first may be damaged.
_LINES = 16
_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
_ENTRIES = frozenset({"model_change", "thinking_level_change", "compaction", "custom", "custom_message", "leaf"})
#: A first line that is longer than the head: the fields before the message are enough.
_LONG_MESSAGE = re.compile(rb'\s*\{"type":\s*"message",.{0,200}?"message":\s*\{"role":\s*"', re.DOTALL)
_AGENT = re.compile(r"(?:^|[/\\])agents[/\\]([^/\\]+)[/\\]sessions(?=[/\\])")


class OpenClawReader:
    """Reads session files of OpenClaw, its predecessors and pi: header and entries, versions 1 to 4."""

    name = "openclaw-jsonl"

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise a session header, or entries with a message in them where the header was lost."""
        lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _LINES)
        best = Confidence.NO
        for line in lines[:_LINES]:
            try:
                value = parse(line) if line.strip() else None
            except (ValueError, RecursionError):
                if _LONG_MESSAGE.match(line):
                    best = Confidence.LIKELY
                continue
            found = _recognise(value)
            if found is Confidence.SURE:
                return found
            best = max(best, found)
        return best

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all sessions in ``source``, in the order of its lines.

        A second header with another id begins another session. Without a header the session is named after
        the file. Bounded memory but for a few machine words an entry. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        session: Session | None = None
        before = 0
        for line in read_lines(source):
            if isinstance(line, Problem) or not isinstance(line.value, dict):
                problem = line if isinstance(line, Problem) else _not_an_object(line)
                if session is None:
                    yield problem
                else:
                    yield from session.note(problem)
                continue
            entry = entry_of(line, line.value)
            if session is None or entry.kind == "session":
                if session is not None and entry.id in (None, session.name):
                    continue
                if session is not None:
                    yield from session.finish()
                    before += session.copies
                session = _begin(entry, source)
                if entry.kind != "session":
                    detail = "the file does not begin with a session header: the session is named after the file"
                    yield from session.note(Problem(entry.where.line, "no-header", detail))
            if entry.kind != "session":
                yield from session.feed(entry)
                source.copies = before + session.copies
        if session is not None:
            yield from session.finish()


def agent_of(path: str) -> str | None:
    """Return the agent that a path names: the ``A`` of ``…/agents/A/sessions/…``, the last one if there are more."""
    found = _AGENT.findall(path)
    return found[-1] if found else None


def session_of(path: str) -> str:
    """Return the session id that a file is named after: ``ID`` of ``ID.jsonl``, ``ID.jsonl.reset.TIME`` and so on."""
    name = re.split(r"[/\\]", path)[-1]
    return re.split(r"\.jsonl|\.checkpoint\.", name, maxsplit=1)[0] or name


def _begin(entry: Entry, source: Source) -> Session:
    header = entry.body if entry.kind == "session" else {}
    name = entry.id if header and entry.id is not None else session_of(source.name)
    taken: Callable[[str], bool] | None = None
    if source.taken is not None:
        taken = partial(source.taken, name)
    return Session(
        name,
        entry.where,
        agent=agent_of(source.name),
        model=string(header.get("modelId")),
        # Version 1 does not say so.
        version=(identifier(header.get("version")) or "1") if header else None,
        taken=taken,
    )


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


def _not_an_object(line: Line) -> Problem:
    return Problem(line.number, "not-an-object", "a line of JSON that is no object: entries are objects")
