"""The report as data: what a replay found, complete, before anybody formats it.

Everything here is plain data. Texts that come from transcripts (tool names, entry ids, session
names) are kept as they were; reports neutralise them on the way out. Previews of arguments are
masked and short already.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from loopscan.engine.canonical import trim
from loopscan.errors import InputError
from loopscan.events import Problem, Recorded
from loopscan.marks import ENDS_RUN, Kind, Mark
from loopscan.pairs import APART_SECONDS, pair
from loopscan.policy import Note, Policy
from loopscan.sanitize import clean
from loopscan.transcripts.discover import Skipped
from loopscan.transcripts.reader import Source
from loopscan.transcripts.statedir import StateConfig

if TYPE_CHECKING:
    import polars

    from loopscan.nearmisses.watch import NearMiss
    from loopscan.tuning.profiles import SessionProfile

SCHEMA = "loopscan.replay/1"

#: How many problems of one source are kept one by one.
MOST_PROBLEMS = 1000
#: The kind of problem that says that a source could not be read.
UNREADABLE = "unreadable"
#: The kind of problem that says that a source could not be read to its end.
READ_ERROR = "read-error"
#: The kind of problem that says that loopscan itself failed on a source.
INTERNAL_ERROR = "internal-error"
_FAILURES = frozenset({UNREADABLE, READ_ERROR, INTERNAL_ERROR})


@dataclass(slots=True)
class Saved:
    """What would not have been reached: an upper bound, since the model might have recovered."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    responses: int = 0
    """Model responses, with calls or without."""
    responses_without_usage: int = 0
    """Those of which the record says no usage: tokens and dollars are without them."""

    def add(self, other: Saved) -> None:
        """Add ``other`` to this one."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.cost_usd += other.cost_usd
        self.seconds += other.seconds
        self.responses += other.responses
        self.responses_without_usage += other.responses_without_usage

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "cost_usd": round(self.cost_usd, 6),
            "seconds": round(self.seconds, 3),
            "responses": self.responses,
            "responses_without_usage": self.responses_without_usage,
        }


@dataclass(slots=True)
class Step:
    """One line of a run's timeline."""

    kind: str
    """``calls``, ``mark``, ``note`` (such as a compaction), ``recorded``, ``expected`` or ``elided``."""
    batch: int = 0
    """The run's batch at which it happened (the first one of a folded row)."""
    tool: str | None = None
    preview: str | None = None
    """Arguments, masked and short; ``None`` with previews off."""
    signature: str | None = None
    """Digest of the call: previews of different calls may look the same."""
    times: int = 1
    """How many calls were folded into this step (``calls``), or left out (``elided``)."""
    became: str = "ran"
    """``ran``, ``blocked``, ``rejected``, ``not_run`` or ``absent``."""
    mark: Mark | None = None
    recorded: Recorded | None = None
    text: str | None = None
    """Our own words, for a note."""


@dataclass(slots=True)
class RunReport:
    """One run of a session."""

    run: int
    """Counts from 0 within the session, in order of appearance."""
    run_id: str | None
    calls: int = 0
    batches: int = 0
    outcome: str = "completed"
    """``completed``, ``interrupted``, or the kind of the mark that ended it, such as ``run_end``."""
    not_reached: Saved = field(default_factory=Saved)
    suppressed_warnings: int = 0
    marks: list[Mark] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """The timeline; only of runs with marks or recorded verdicts."""

    @property
    def blocked_calls(self) -> int:
        """How many calls were vetoed in this run."""
        return sum(mark.blocked_calls for mark in self.marks)


@dataclass(slots=True)
class SessionReport:
    """One session, with all its runs."""

    source: str
    session: str
    agent: str | None = None
    model: str | None = None
    started: float | None = None
    """Seconds since the epoch, UTC; of the first and last entry that has a time."""
    ended: float | None = None
    calls: int = 0
    runs: list[RunReport] = field(default_factory=list)
    recorded: list[Recorded] = field(default_factory=list)
    profile: SessionProfile | None = None
    """What answers other settings, if it was asked for."""
    near_misses: list[NearMiss] | None = None
    """Repetitions that the rules cannot see, if they were asked for."""

    def marks(self) -> Iterator[tuple[RunReport, Mark]]:
        """Yield every mark with its run, run by run."""
        for run in self.runs:
            for mark in run.marks:
                yield run, mark


@dataclass(slots=True)
class SourceReport:
    """One file (or stream) that was read, or could not be."""

    path: str
    format: str
    bytes: int = 0
    lines: int = 0
    sessions: int = 0
    calls: int = 0
    problems: list[Problem] = field(default_factory=list)
    """The first :data:`MOST_PROBLEMS`; :attr:`problem_count` counts them all."""
    problem_count: int = 0
    copies: dict[str, int] = field(default_factory=dict)
    """Entries that were left out, by the source that had given them: another one, or this one itself."""
    normalised: dict[str, int] = field(default_factory=dict)
    """How often each normaliser of the format was used, by its name."""
    tools: dict[str, str] = field(default_factory=dict)
    """Tools that were judged by the engine's rules for another name, and that name."""

    def add_problem(self, problem: Problem) -> None:
        """Count a problem, and keep it unless there are too many to keep."""
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS or problem.kind in _FAILURES:
            self.problems.append(problem)

    def take_counts(self, source: Source, sessions: int, calls: int) -> None:
        """Take down what was counted while ``source`` was read, and how many sessions and calls that gave."""
        self.bytes, self.lines = source.bytes, source.lines
        self.copies = dict(sorted(source.copies.items()))
        self.normalised = dict(sorted(source.normalised.items()))
        self.sessions, self.calls = sessions, calls

    @contextmanager
    def taking_failures(self, source: Source, *, debug: bool) -> Iterator[None]:
        """Make problems of what is raised while ``source`` is read; ``debug`` lets unforeseen exceptions through."""
        try:
            yield
        except InputError as error:
            self.add_problem(Problem(0, UNREADABLE, str(error)))
        except Exception as error:
            if debug:
                raise
            what = f"{clean(source.name)}: internal error, {type(error).__name__}, after line {source.lines}"
            self.add_problem(Problem(source.lines, INTERNAL_ERROR, f"{what}; run it with --debug and report it"))

    @classmethod
    def unread(cls, error: InputError) -> SourceReport:
        """Return the report of a source that was named and cannot be read."""
        source = cls(error.path, UNREADABLE)
        source.add_problem(Problem(0, UNREADABLE, str(error)))
        return source

    @classmethod
    def killed(cls, path: str, format_: str) -> SourceReport:
        """Return the report of a source whose process was killed while it read it."""
        source = cls(path, format_)
        what = f"{clean(path)}: the process that read it was killed (out of memory?)"
        source.add_problem(Problem(0, INTERNAL_ERROR, f"{what}; the other sources are not affected"))
        return source

    @property
    def failures(self) -> list[Problem]:
        """Why the source could not be read, or not to its end; empty for one that was."""
        return [problem for problem in self.problems if problem.kind in _FAILURES]

    def complaints(self) -> list[str]:
        """Return why the source could not be read, or not to its end, a line each that names it."""
        return [
            f"{self.path}: {problem.detail}" if problem.kind == READ_ERROR else problem.detail
            for problem in self.failures
        ]


@dataclass(slots=True, repr=False)
class Report:
    """What a replay found."""

    version: str
    policy: Policy
    mode: str
    scope: str
    sources: list[SourceReport] = field(default_factory=list)
    sessions: list[SessionReport] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    agents: dict[str, Policy] = field(default_factory=dict)
    """Agents with a block of their own whose sessions are in here, with the policy that these were judged by."""
    elsewhere: list[SessionReport] = field(default_factory=list)
    """Sessions of which there is nothing but verdicts that a log, say, records."""
    found_config: StateConfig = field(default_factory=StateConfig)
    """The configuration that was used because it lies in a folder that was named, or why none was."""
    advice: tuple[str, ...] = ()
    """What the record advises on thresholds, in one to three lines, if it was asked for; see
    :mod:`loopscan.tuning.advice`."""
    arm: str = "auto"
    """When a compaction within a run armed the post-compaction guard; see :class:`~loopscan.modes.Arm`."""

    def __repr__(self) -> str:
        totals = self.count()
        marks = ", ".join(f"{count} {kind.value}" for kind, count in totals.marks.items()) or "no marks"
        return f"<Report: {totals.sessions} sessions, {totals.calls} calls, {marks}>"

    @property
    def silenced(self) -> list[Note]:
        """Why detectors were off, for all sessions or for those of single agents; empty where they were on."""
        return [
            note
            for policy in (self.policy, *self.agents.values())
            for note in policy.notes
            if note.kind == "silenced"
        ]

    def unread(self, error: InputError) -> None:
        """Add a source that was named and cannot be read."""
        self.sources.append(SourceReport.unread(error))

    def complaints(self) -> list[str]:
        """Return what could not be read, or not to its end, a line each; see :func:`complaints`."""
        return complaints(self.sources, self.skipped)

    def unread_count(self) -> int:
        """Return how many sources and files could not be read, or not to their end."""
        return unread_count(self.sources, self.skipped)

    @property
    def problems(self) -> int:
        """How many problems the sources had in all."""
        return sum(source.problem_count for source in self.sources)

    def count(self) -> Totals:
        """Count everything once; formats use these numbers and never count themselves."""
        totals = Totals()
        for session in self.sessions:
            totals.sessions += 1
            totals.calls += session.calls
            totals.runs += len(session.runs)
            for run in session.runs:
                totals.not_reached.add(run.not_reached)
                totals.suppressed_warnings += run.suppressed_warnings
                for mark in run.marks:
                    totals.marks[mark.kind] += 1
                    totals.by_detector[mark.detector] += 1
                    totals.by_detector_and_kind[mark.detector, mark.kind] += 1
                    totals.blocked_calls += mark.blocked_calls
                    totals.lossy += mark.lossy
                    if mark.tool is not None:
                        totals.by_tool[mark.tool] += 1
            totals.sessions_with_marks += any(run.marks for run in session.runs)
            for live in agreement(session):
                totals.recorded[live.recorded.kind] += 1
                totals.recorded_agreeing += live.agrees
                totals.recorded_not_reached += not live.reached
        return totals

    def to_dict(self) -> dict[str, Any]:
        """Return the report in the form of the schema ``loopscan.replay/1``."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "ruleset": self.policy.ruleset.name,
            "mode": self.mode,
            "scope": self.scope,
            "config": config_dict(self.policy),
            "agents": {agent: config_dict(policy) for agent, policy in sorted(self.agents.items())},
            "sources": [source_dict(source) for source in self.sources],
            "skipped": [{"path": file.path, "reason": file.reason} for file in self.skipped],
            "sessions": [_session_dict(session) for session in self.sessions],
            "recorded_elsewhere": [
                {"source": each.source, "session": each.session, "recorded": _recorded_list(each)}
                for each in self.elsewhere
            ],
            "totals": self.count().to_dict(),
            "problems": self.problems,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one flat object a mark, with ``source`` added: the lines of ``jsonl`` and the rows of tables."""
        for session in self.sessions:
            for run, mark in session.marks():
                yield {"source": session.source, **mark_dict(session.session, run, mark)}

    def to_polars(self) -> polars.DataFrame:
        """Return the marks as a table, one row a mark, the columns those of :meth:`rows`."""
        import polars as pl

        schema: dict[str, Any] = {
            "source": pl.String,
            "session": pl.String,
            "run": pl.Int64,
            "kind": pl.String,
            "detector": pl.String,
            "level": pl.String,
            "count": pl.Int64,
            "threshold": pl.Int64,
            "batch": pl.Int64,
            "call": pl.Int64,
            "tool": pl.String,
            "paired_tool": pl.String,
            "tool_call_id": pl.String,
            "entry": pl.String,
            "time": pl.String,
            "signature": pl.String,
            "outcome": pl.String,
            "lossy": pl.Boolean,
            "message": pl.String,
            "blocked_calls": pl.Int64,
        }
        return pl.DataFrame(list(self.rows()), schema=schema, orient="row")


@dataclass(slots=True)
class Totals:
    """Sums over a report."""

    sessions: int = 0
    runs: int = 0
    calls: int = 0
    suppressed_warnings: int = 0
    marks: Counter[Kind] = field(default_factory=Counter)
    by_detector: Counter[str] = field(default_factory=Counter)
    by_tool: Counter[str] = field(default_factory=Counter)
    not_reached: Saved = field(default_factory=Saved)
    sessions_with_marks: int = 0
    by_detector_and_kind: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    blocked_calls: int = 0
    lossy: int = 0
    """How many marks are lossy."""
    recorded: Counter[str] = field(default_factory=Counter)
    """Verdicts of the live engine that the records show, by kind."""
    recorded_agreeing: int = 0
    """How many of them the replay agrees with."""
    recorded_not_reached: int = 0
    """How many of them came after the replay had ended their run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract: every kind is there, the rest by name."""
        return {
            "sessions": self.sessions,
            "runs": self.runs,
            "calls": self.calls,
            "sessions_with_marks": self.sessions_with_marks,
            "suppressed_warnings": self.suppressed_warnings,
            "blocked_calls": self.blocked_calls,
            "marks": {kind.value: self.marks[kind] for kind in Kind},
            "by_detector": dict(sorted(self.by_detector.items())),
            "by_tool": dict(sorted(self.by_tool.items())),
            "recorded": {
                "verdicts": self.recorded.total(),
                "by_kind": dict(sorted(self.recorded.items())),
                "agreeing": self.recorded_agreeing,
                "not_reached": self.recorded_not_reached,
            },
            "not_reached": self.not_reached.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class LiveVerdict:
    """A verdict of the live engine, beside the mark of the replay that stands for the same intervention."""

    recorded: Recorded
    mark: Mark | None
    """``None``: the replay has no such mark."""
    agrees: bool
    """There is such a mark, with the same detector and count as far as these were recorded."""
    reached: bool = True
    """The replay had not ended the run before it."""


def agreement(session: SessionReport) -> list[LiveVerdict]:
    """Return each recorded verdict of ``session``, in its order, with the mark that it belongs to.

    They belong together if run, kind and tool call are the same. A batch veto is recorded on every
    sibling, while the mark names the call that caused it; and some records name no call at all:
    there, detector and count decide. What a log tells names no run either: such a verdict belongs to a mark of
    the same kind, detector, count and tool that no other one belongs to, by the order and the time of both.
    """
    if not session.recorded:
        return []
    by_call: dict[tuple[object, ...], deque[Mark]] = {}
    by_verdict: dict[tuple[object, ...], Mark] = {}
    by_kind: dict[tuple[object, ...], deque[Mark]] = {}
    for _, mark in session.marks():
        kind = (mark.run, mark.kind.value)
        if mark.tool_call_id is not None:
            by_call.setdefault((*kind, mark.tool_call_id), deque()).append(mark)
        if mark.blocked_calls > 1:
            by_verdict.setdefault((*kind, mark.detector.value, mark.count), mark)
        by_kind.setdefault(kind, deque()).append(mark)

    ended = {mark.run: mark.where.line for _, mark in _ends(session)}
    verdicts: list[LiveVerdict | None] = []
    taken: set[int] = set()
    for recorded in session.recorded:
        if not recorded.run:
            verdicts.append(None)
            continue
        kind = (recorded.run, recorded.kind)
        found: Mark | None = None
        if recorded.tool_call_id is None:
            if waiting := by_kind.get(kind):
                found = waiting.popleft()
        elif named := by_call.get((*kind, recorded.tool_call_id)):
            # Ids may repeat within a run; the last one stays for what else is recorded of it.
            found = named.popleft() if len(named) > 1 else named[0]
        else:
            found = by_verdict.get((*kind, recorded.detector, recorded.count))
        agrees = (
            found is not None
            and recorded.detector in {None, found.detector.value}
            and recorded.count in {None, found.count}
        )
        reached = found is not None or recorded.where.line <= ended.get(recorded.run, recorded.where.line)
        if found is not None:
            taken.add(id(found))
        verdicts.append(LiveVerdict(recorded, found, agrees, reached))
    logged = iter(_logged(session, taken))
    return [next(logged) if verdict is None else verdict for verdict in verdicts]


def _ends(session: SessionReport) -> Iterator[tuple[RunReport, Mark]]:
    """Yield the marks that ended their run."""
    return ((run, mark) for run, mark in session.marks() if mark.kind in ENDS_RUN and mark.kind == run.outcome)


def _logged(session: SessionReport, taken: set[int]) -> list[LiveVerdict]:
    """Return the verdicts that belong to no run, in their order; the marks in ``taken`` (by identity) are others'."""
    logged = [recorded for recorded in session.recorded if not recorded.run]
    if not logged:
        return []
    groups: dict[tuple[object, ...], tuple[list[int], list[Mark]]] = {}
    for place, recorded in enumerate(logged):
        key = (recorded.kind, recorded.detector, recorded.count, trim(recorded.tool or "").lower())
        groups.setdefault(key, ([], []))[0].append(place)
    for _, mark in session.marks():
        group = groups.get((mark.kind.value, mark.detector.value, mark.count, mark.tool or ""))
        if group is not None and id(mark) not in taken:
            group[1].append(mark)
    found: dict[int, Mark] = {}
    for places, marks in groups.values():
        times = [logged[place].where.time for place in places]
        for at, to in pair(times, [mark.where.time for mark in marks]):
            found[places[at]] = marks[to]
    reached = _reached(session, logged, found)
    return [
        LiveVerdict(recorded, found.get(place), place in found, reached[place])
        for place, recorded in enumerate(logged)
    ]


def _reached(session: SessionReport, logged: list[Recorded], found: dict[int, Mark]) -> list[bool]:
    """Say of each verdict that belongs to no run whether the replay had not ended its run before it.

    By its time where that is known. Else the order tells: what comes after the latest mark of a run that the replay
    ended, and before one of a later run.
    """
    over: list[tuple[float, float]] = []
    for run, mark in _ends(session):
        if mark.where.time is not None:
            over.append((mark.where.time, mark.where.time + run.not_reached.seconds + APART_SECONDS))
    ended = {mark.run for _, mark in _ends(session)}
    following: str | None = None
    later: list[str | None] = []
    for place in reversed(range(len(logged))):
        later.append(following)
        if place in found:
            following = found[place].run
    later.reverse()
    reached: list[bool] = []
    latest: str | None = None
    for place, recorded in enumerate(logged):
        time = recorded.where.time
        if place in found:
            latest = found[place].run
            reached.append(True)
        elif time is not None and over:
            reached.append(not any(end < time <= last for end, last in over))
        else:
            reached.append(latest not in ended or later[place] == latest)
    return reached


def iso_time(seconds: float | None) -> str | None:
    """Return ``seconds`` since the epoch as ISO 8601 in UTC with milliseconds, ``None`` for none."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def mark_dict(session: str, run: RunReport, mark: Mark) -> dict[str, Any]:
    """Return one mark in the form of the contract."""
    return {
        "session": session,
        "run": run.run,
        "kind": mark.kind.value,
        "detector": mark.detector.value,
        "level": mark.level.value,
        "count": mark.count,
        "threshold": mark.threshold,
        "batch": mark.batch,
        "call": mark.call,
        "tool": mark.tool,
        "paired_tool": mark.paired_tool,
        "tool_call_id": mark.tool_call_id,
        "entry": mark.where.entry,
        "time": iso_time(mark.where.time),
        "signature": mark.signature,
        "outcome": mark.outcome,
        "lossy": mark.lossy,
        "message": mark.message,
        "blocked_calls": mark.blocked_calls,
    }


def config_dict(policy: Policy) -> dict[str, Any]:
    """Return the resolved configuration: each value with its origin, and the notes."""
    resolved: dict[str, Any] = {}
    for name, value in policy.values.items():
        origin = policy.origins.get(name)
        resolved[name] = {"value": value, "origin": origin.kind if origin else "default"}
        if origin:
            for key in ("source", "path", "detail"):
                text = getattr(origin, key)
                if text is not None:
                    resolved[name][key] = text
    return {
        "values": resolved,
        "notes": [{"kind": n.kind, "field": n.field, "message": n.message} for n in policy.notes],
    }


def complaints(sources: Sequence[SourceReport], skipped: Sequence[Skipped]) -> list[str]:
    """Return what could not be read, or not to its end, a line each: of the sources, and of what was only found."""
    lines = [complaint for source in sources for complaint in source.complaints()]
    return lines + [f"{file.path}: {file.reason}" for file in skipped if file.unread]


def unread_count(sources: Sequence[SourceReport], skipped: Sequence[Skipped]) -> int:
    """Return how many sources and files could not be read, or not to their end."""
    return sum(bool(source.failures) for source in sources) + sum(file.unread for file in skipped)


def source_dict(source: SourceReport) -> dict[str, Any]:
    """Return what is said of one source in the form of the contract."""
    return {
        "path": source.path,
        "format": source.format,
        "bytes": source.bytes,
        "lines": source.lines,
        "sessions": source.sessions,
        "calls": source.calls,
        "copies": [{"of": path, "entries": entries} for path, entries in source.copies.items()],
        "normalised": source.normalised,
        "tools": source.tools,
        "problems": [{"line": p.line, "kind": p.kind, "detail": p.detail} for p in source.problems],
    }


def _session_dict(session: SessionReport) -> dict[str, Any]:
    return {
        "source": session.source,
        "session": session.session,
        "agent": session.agent,
        "model": session.model,
        "started": iso_time(session.started),
        "ended": iso_time(session.ended),
        "calls": session.calls,
        "runs": [
            {
                "run": run.run,
                "run_id": run.run_id,
                "calls": run.calls,
                "batches": run.batches,
                "outcome": run.outcome,
                "not_reached": run.not_reached.to_dict(),
                "suppressed_warnings": run.suppressed_warnings,
                "marks": [mark_dict(session.session, run, mark) for mark in run.marks],
            }
            for run in session.runs
        ],
        "recorded": _recorded_list(session),
        **(
            {"near_misses": [each.to_dict() for each in session.near_misses]}
            if session.near_misses is not None
            else {}
        ),
    }


def _recorded_list(session: SessionReport) -> list[dict[str, Any]]:
    return [
        {"kind": r.kind, "tool_call_id": r.tool_call_id, "count": r.count, "detector": r.detector}
        for r in session.recorded
    ]
