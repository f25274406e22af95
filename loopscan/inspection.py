"""What transcripts hold: formats, sessions, runs, calls, time, tokens, problems. Nothing is judged.

It is what the command ``loopscan inspect`` shows: a first look at a folder, and the answer to "was everything
read?".
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from loopscan._version import __version__
from loopscan.errors import InputError, UsageError
from loopscan.events import (
    Compaction,
    Event,
    Pause,
    Problem,
    Recorded,
    Result,
    SessionEnded,
    SessionResumed,
    SessionStarted,
    Turn,
    UnknownToolStopped,
)
from loopscan.pool import work_on
from loopscan.report import SourceReport, complaints, iso_time, source_dict, unread_count
from loopscan.transcripts.discover import Found, Skipped, discover
from loopscan.transcripts.places import closing_archives
from loopscan.transcripts.reader import MAX_LINE_BYTES, readers
from loopscan.transcripts.streams import MAX_EXPANDED_BYTES

SCHEMA = "loopscan.inspect/1"
PathLike = str | os.PathLike[str]


@dataclass(slots=True)
class Facts:
    """What one session holds, or several together."""

    runs: int = 0
    responses: int = 0
    """Messages of the model."""
    calls: int = 0
    tools: Counter[str] = field(default_factory=Counter)
    """Calls by tool, as recorded."""
    fates: Counter[str] = field(default_factory=Counter)
    """Calls by :class:`~loopscan.events.Fate`, and under ``absent`` those of tools that do not exist."""
    errors: int = 0
    """Outcomes that were recorded as an error."""
    compactions: int = 0
    compactions_in_run: int = 0
    recorded: Counter[str] = field(default_factory=Counter)
    """Verdicts of a live engine, by kind."""
    models: Counter[str] = field(default_factory=Counter)
    """Messages of the model by its name."""
    tokens: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    started: float | None = None
    """Seconds since the epoch, UTC; of the first and last entry that has a time."""
    ended: float | None = None

    def add(self, other: Facts) -> None:
        """Add ``other`` to this one."""
        for name in ("runs", "responses", "calls", "errors", "compactions", "compactions_in_run", "tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("input", "output", "cache_read", "cache_write", "cost_usd"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("tools", "fates", "recorded", "models"):
            getattr(self, name).update(getattr(other, name))
        for time in (other.started, other.ended):
            self.clock(time)

    def clock(self, time: float | None) -> None:
        """Take in the time of an entry."""
        if time is not None:
            self.started = time if self.started is None else min(self.started, time)
            self.ended = time if self.ended is None else max(self.ended, time)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "runs": self.runs,
            "responses": self.responses,
            "calls": self.calls,
            "tools": _ordered(self.tools),
            "fates": _ordered(self.fates),
            "errors": self.errors,
            "compactions": {"in_run": self.compactions_in_run, "all": self.compactions},
            "recorded": _ordered(self.recorded),
            "models": _ordered(self.models),
            "usage": {
                "tokens": self.tokens,
                "input": self.input,
                "output": self.output,
                "cache_read": self.cache_read,
                "cache_write": self.cache_write,
                "cost_usd": round(self.cost_usd, 6),
            },
            "started": iso_time(self.started),
            "ended": iso_time(self.ended),
        }


@dataclass(slots=True)
class SessionFacts:
    """One session."""

    source: str
    session: str
    agent: str | None
    facts: Facts = field(default_factory=Facts)
    run_keys: set[str] = field(default_factory=set)


@dataclass(slots=True)
class SourceFacts:
    """One source: how it was read, its sessions, and the kinds of entries that it has."""

    report: SourceReport
    sessions: list[SessionFacts] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    """Entries by kind that say something to the loop detection."""
    unused: dict[str, int] = field(default_factory=dict)
    """Entries by kind that do not."""
    logged: Counter[str] = field(default_factory=Counter)
    """Verdicts of a live engine on sessions of which it holds nothing else, as logs do, by kind."""


@dataclass(slots=True)
class Inspection:
    """What was found."""

    sources: list[SourceFacts] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def sessions(self) -> list[SessionFacts]:
        """All sessions, in the order of their sources."""
        return [session for source in self.sources for session in source.sessions]

    @property
    def reports(self) -> list[SourceReport]:
        """How the sources were read."""
        return [source.report for source in self.sources]

    def complaints(self) -> list[str]:
        """Return what could not be read, or not to its end, a line each."""
        return complaints(self.reports, self.skipped)

    def unread_count(self) -> int:
        """Return how many sources and files could not be read, or not to their end."""
        return unread_count(self.reports, self.skipped)

    @property
    def problems(self) -> int:
        """How many problems the sources had in all."""
        return sum(source.report.problem_count for source in self.sources)

    def total(self) -> Facts:
        """Return the facts of all sessions together."""
        return total(self.sources)

    @property
    def logged(self) -> Counter[str]:
        """Verdicts that logs and the like tell of, by kind; the sessions that they are of may record them, too."""
        found: Counter[str] = Counter()
        for source in self.sources:
            found.update(source.logged)
        return found

    def by_format(self) -> dict[str, list[SourceFacts]]:
        """Return the sources by format, in alphabetical order."""
        found: dict[str, list[SourceFacts]] = {}
        for source in self.sources:
            found.setdefault(source.report.format, []).append(source)
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return it in the form of the schema ``loopscan.inspect/1``."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "sources": [
                {
                    **source_dict(source.report),
                    "used": source.used,
                    "unused": source.unused,
                    "logged": _ordered(source.logged),
                }
                for source in self.sources
            ],
            "skipped": [{"path": file.path, "reason": file.reason} for file in self.skipped],
            "sessions": [
                {
                    "source": session.source,
                    "session": session.session,
                    "agent": session.agent,
                    **session.facts.to_dict(),
                }
                for session in self.sessions
            ],
            "formats": {
                name: {
                    "sources": len(sources),
                    "sessions": sum(len(source.sessions) for source in sources),
                    **total(sources).to_dict(),
                }
                for name, sources in self.by_format().items()
            },
            "totals": {
                "sources": len(self.sources),
                "sessions": len(self.sessions),
                **self.total().to_dict(),
                "logged": _ordered(self.logged),
            },
            "problems": self.problems,
        }


def inspect(
    paths: PathLike | Iterable[PathLike],
    *,
    input_format: str | None = None,
    max_line: int = MAX_LINE_BYTES,
    max_expanded: int = MAX_EXPANDED_BYTES,
    jobs: int = 1,
    progress: Callable[[SourceReport, int], None] | None = None,
    debug: bool = False,
) -> Inspection:
    """Read recorded sessions and return what they hold.

    The arguments are those of :func:`loopscan.replay`. A source that cannot be read does not stop the others.
    Raises :class:`UsageError` for what does not make sense before anything is read.
    """
    if jobs < 1:
        raise UsageError(f"jobs must be at least 1, not {jobs}")
    inspection = Inspection()

    def unread(error: InputError) -> None:
        inspection.sources.append(SourceFacts(SourceReport.unread(error)))

    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    found = discover(named, on_error=unread, input_format=input_format, max_line=max_line, max_expanded=max_expanded)
    inspection.skipped = found.skipped
    with closing_archives():
        for source in work_on(found, InspectSource(debug), jobs):
            inspection.sources.append(source)
            if progress:
                progress(source.report, len(found.sources))
    return inspection


@dataclass(frozen=True, slots=True)
class InspectSource:
    """Inspects one source."""

    debug: bool = False

    def __call__(self, found: Found) -> SourceFacts:
        """Read the source and return what it holds."""
        source = found.source
        answer = SourceFacts(SourceReport(source.name, found.reader))
        account = _Account(answer)
        with answer.report.taking_failures(source, debug=self.debug):
            for event in readers()[found.reader].read(source):
                account.take(event)
        for each in answer.sessions:
            if each.facts.recorded and not each.facts.runs:
                answer.logged.update(each.facts.recorded)
        sessions = [each for each in answer.sessions if each.facts.runs or not (each.facts.recorded or source.copies)]
        answer.sessions = sessions
        answer.report.take_counts(source, len(sessions), sum(each.facts.calls for each in sessions))
        answer.used, answer.unused = dict(sorted(source.used.items())), dict(sorted(source.unused.items()))
        return answer

    def killed(self, found: Found) -> SourceFacts:
        """Return the answer for a source whose process was killed."""
        return SourceFacts(SourceReport.killed(found.source.name, found.reader))


class _Account:
    """Takes the events of one source down under its sessions."""

    def __init__(self, answer: SourceFacts) -> None:
        self._answer = answer
        self._going: dict[str, SessionFacts] = {}
        self._current: SessionFacts | None = None

    def take(self, event: Event) -> None:
        match event:
            case Problem():
                self._answer.report.add_problem(event)
            case Pause():
                pass
            case SessionStarted():
                self._current = SessionFacts(self._answer.report.path, event.session, event.agent)
                self._going[event.session] = self._current
                self._answer.sessions.append(self._current)
                self._current.facts.clock(event.where.time)
            case SessionResumed():
                self._current = self._going.get(event.session)
            case _ if self._current is not None:
                self._add(self._current, event)
                if isinstance(event, SessionEnded):
                    self._going.pop(self._current.session, None)
                    self._current = None
            case _:
                pass

    def _add(self, session: SessionFacts, event: Event) -> None:
        facts = session.facts
        if isinstance(event, Problem | Pause | SessionStarted | SessionResumed):
            return
        facts.clock(event.where.time)
        if isinstance(event, SessionEnded):
            return
        if event.run and event.run not in session.run_keys:
            session.run_keys.add(event.run)
            facts.runs += 1
        match event:
            case Turn():
                facts.responses += event.stored
                facts.calls += event.stored_calls
                facts.tools.update(call.tool for call in event.calls)
                facts.tools.update(call.tool for call in event.absent if call.position is not None)
                facts.fates.update(call.fate.value for call in event.calls)
                facts.fates["absent"] += len(event.absent)
                facts.errors += len(event.absent)
                if event.model is not None and event.stored:
                    facts.models[event.model] += 1
                _spend(facts, event)
            case UnknownToolStopped():
                facts.responses += 1
                _spend(facts, event)
            case Result():
                facts.errors += event.outcome.error is not None or event.outcome.is_error
            case Compaction():
                facts.compactions += 1
                facts.compactions_in_run += event.in_run
            case Recorded():
                facts.recorded[event.kind] += 1
            case _:
                pass


def total(sources: Iterable[SourceFacts]) -> Facts:
    """Return the facts of the sessions of several sources together."""
    found = Facts()
    for source in sources:
        for session in source.sessions:
            found.add(session.facts)
    return found


def _spend(facts: Facts, event: Turn | UnknownToolStopped) -> None:
    usage = event.usage
    facts.tokens += usage.total
    facts.input += usage.input
    facts.output += usage.output
    facts.cache_read += usage.cache_read
    facts.cache_write += usage.cache_write
    facts.cost_usd += usage.cost_usd


def _ordered(counter: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in sorted(counter.items(), key=lambda item: (-item[1], item[0])) if count}
