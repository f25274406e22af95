"""Sources that say which session an entry is of: they hold several, which may take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from loopscan.events import Event, Problem, SessionEnded, SessionResumed, SessionStarted
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.openclaw.entries import Entry, entry_of
from loopscan.transcripts.openclaw.session import Session
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import Object, identifier, string

#: How many sessions of a source may take turns, where it cannot be known when one is over.
MOST_OPEN = 256


class Sessions:
    """The sessions of a source that names the session of each entry.

    ``agent`` tells the agent of a session by its id. At most ``most_open`` sessions are open at a time (``None``:
    any number); the one that was silent for longest is ended then, and begins anew if more of it follows.
    """

    def __init__(
        self, source: Source, agent: Callable[[str], str | None], *, most_open: int | None = MOST_OPEN
    ) -> None:
        self._source = source
        self._agent = agent
        self._most_open = most_open
        self._open: dict[str, Session] = {}
        """The open sessions, the one that was silent for longest first."""
        self._cut: set[str] = set()
        """Sessions that were ended for want of room."""
        self._current: str | None = None
        """The session that the events are of, for whoever reads them."""

    def entry(self, name: str, line: Line, body: Object) -> Iterator[Event]:
        """Take in the next entry of the session ``name`` and yield what can be told now."""
        entry = entry_of(line, body)
        header = entry.kind == "session"
        if header:
            self._source.count(entry.kind, used=True)
        session = self._open.pop(name, None)
        if session is None:
            while self._most_open is not None and len(self._open) >= self._most_open:
                oldest = next(iter(self._open))
                self._cut.add(oldest)
                yield from self.end(oldest)
            session = begin(name, entry, self._source, agent=self._agent(name))
            if name in self._cut:
                detail = f"more than {self._most_open} sessions take turns: one was ended, and begins anew here"
                yield from self._of(name, session.note(Problem(line.number, "session-cut", detail)))
            elif not header:
                detail = "the session does not begin with a session header"
                yield from self._of(name, session.note(Problem(line.number, "no-header", detail)))
        self._open[name] = session
        if not header:
            yield from self._of(name, session.feed(entry))

    def item(self, name: str, item: Line | Problem) -> Iterator[Event]:
        """Take in the next value of the session ``name``, or the problem with it."""
        if isinstance(item, Problem):
            yield from self.problem(name, item)
        elif isinstance(item.value, dict):
            yield from self.entry(name, item, item.value)
        else:
            self._source.unusable += 1
            detail = "a row of JSON that is no object: entries are objects"
            yield from self.problem(name, Problem(item.number, "not-an-object", detail))

    def problem(self, name: str, problem: Problem) -> Iterator[Event]:
        """Put a problem where the entry of a session would have been."""
        session = self._open.get(name)
        if session is None:
            yield problem
        else:
            yield from self._of(name, session.note(problem))

    def end(self, name: str) -> Iterator[Event]:
        """End a session, if it is open: nothing more of it follows."""
        session = self._open.pop(name, None)
        if session is not None:
            yield from self._of(name, session.finish())

    def finish(self) -> Iterator[Event]:
        """End all sessions."""
        for name in list(self._open):
            yield from self.end(name)

    def _of(self, name: str, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, SessionStarted):
                self._current = name
            elif self._current != name and not isinstance(event, Problem):
                self._current = name
                yield SessionResumed(name)
            yield event
            if isinstance(event, SessionEnded):
                self._current = None


def begin(name: str, entry: Entry, source: Source, *, agent: str | None) -> Session:
    """Return a new session whose first entry is ``entry``, its header if it has one."""
    header = entry.body if entry.kind == "session" else {}
    return Session(
        name,
        entry.where,
        source,
        agent=agent,
        model=string(header.get("modelId")),
        # Version 1 does not say so.
        version=(identifier(header.get("version")) or "1") if header else None,
    )
