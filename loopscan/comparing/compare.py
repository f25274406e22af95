"""Many transcripts under two policies or more, read once: what the command ``loopscan compare`` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from loopscan._version import __version__
from loopscan.comparing.pairing import Kind, Pair, paired
from loopscan.errors import UsageError
from loopscan.pool import work_on
from loopscan.replayer import Plan, Progress, SourceReplay
from loopscan.report import Report, RunReport, SessionReport, SourceReport, Totals
from loopscan.sessions import Options
from loopscan.transcripts.discover import Found, Skipped
from loopscan.transcripts.places import closing_archives
from loopscan.transcripts.reader import readers
from loopscan.verdicts import stands_apart


@dataclass(frozen=True, slots=True)
class Change:
    """One mark that is not as it was, with where it is."""

    source: str
    session: str
    agent: str | None
    run: int
    pair: Pair

    @property
    def kind(self) -> Kind:
        """What became of it."""
        if self.pair.kind is None:
            raise ValueError("nothing changed")
        return self.pair.kind


@dataclass(frozen=True, slots=True)
class RunChange:
    """One run that ends otherwise."""

    source: str
    session: str
    agent: str | None
    run: int
    a: RunReport
    b: RunReport


@dataclass(slots=True)
class Comparison:
    """What was found; the sides in the order in which they were named."""

    version: str
    labels: tuple[str, ...]
    options: tuple[Options, ...]
    totals: list[Totals]
    """Of each side."""
    changes: list[Change] = field(default_factory=list)
    """From the first side to the second, where there are two, in the order of the sessions."""
    runs: list[RunChange] = field(default_factory=list)
    """Likewise, those that end otherwise."""
    differing: Counter[tuple[int, int]] = field(default_factory=Counter)
    """For each pair of sides in how many sessions their marks differ."""
    sessions: int = 0
    sources: list[SourceReport] = field(default_factory=list)
    skipped: Sequence[Skipped] = ()

    @property
    def changed(self) -> bool:
        """Whether any two sides differ in anything."""
        return bool(self.differing) or bool(self.runs)

    def count(self, kind: Kind) -> int:
        """Return how many marks became so."""
        return sum(change.kind is kind for change in self.changes)

    def by(self, what: str) -> Mapping[str, Counter[Kind]]:
        """Return the changes by ``detector``, ``tool`` or ``agent``, by name."""
        found: dict[str, Counter[Kind]] = {}
        for change in self.changes:
            found.setdefault(_name_of(change, what), Counter())[change.kind] += 1
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document ``loopscan.compare/1``."""
        from loopscan.comparing.document import document

        return document(self)


def _name_of(change: Change, what: str) -> str:
    mark = change.pair.mark
    if what == "detector":
        return mark.detector.value
    return (mark.tool if what == "tool" else change.agent) or "(none)"


def compare(
    plans: Sequence[Plan],
    labels: Sequence[str],
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    debug: bool = False,
) -> Comparison:
    """Replay the sources of the first plan with the options of all, and compare; they name the same paths.

    Raises :class:`UsageError` for fewer than two.
    """
    if len(plans) < 2:
        raise UsageError("a comparison takes two sides")
    first = plans[0]
    options = tuple(plan.options for plan in plans)
    reports = [plan.report() for plan in plans]
    made = Comparison(__version__, tuple(labels), options, [])
    found = first.discover(reports[0].unread)
    made.sources += reports[0].sources
    made.skipped = found.skipped
    with closing_archives():
        for source, sides in work_on(found, CompareSource(options, debug), jobs):
            made.sources.append(source)
            _take(made, reports, sides)
            if progress:
                progress(source, len(found.sources))
    made.totals = [_totals(report) for report in reports]
    return made


def _totals(report: Report) -> Totals:
    report.sources = []
    return report.count()


def _take(made: Comparison, reports: Sequence[Report], sides: Sequence[Sequence[SessionReport]]) -> None:
    """Take in the sessions of a source, as each side has them."""
    for session in zip(*sides, strict=True):
        if stands_apart(session[0]):
            continue
        made.sessions += 1
        for report, each in zip(reports, session, strict=True):
            report.sessions.append(each)
        for one, other in combinations(range(len(session)), 2):
            differs = list(_changes(session[one], session[other]))
            if differs:
                made.differing[one, other] += 1
            if len(session) == 2:
                made.changes += differs
        if len(session) == 2:
            made.runs += _runs(*session)
        for each in session:
            for run in each.runs:
                run.steps = []


def _changes(a: SessionReport, b: SessionReport) -> Iterator[Change]:
    for one, other in zip(a.runs, b.runs, strict=True):
        if one.marks or other.marks:
            for pair in paired(one.marks, other.marks):
                if pair.kind is not None:
                    yield Change(a.source, a.session, a.agent, one.run, pair)


def _runs(a: SessionReport, b: SessionReport) -> Iterator[RunChange]:
    for one, other in zip(a.runs, b.runs, strict=True):
        if one.outcome != other.outcome or one.not_reached != other.not_reached:
            yield RunChange(a.source, a.session, a.agent, one.run, one, other)


@dataclass(frozen=True, slots=True)
class CompareSource:
    """Replays one source with each of several options, reading it once; goes to other processes."""

    options: tuple[Options, ...]
    debug: bool = False

    def __call__(self, found: Found) -> tuple[SourceReport, list[list[SessionReport]]]:
        """Replay the source; its sessions come once a side."""
        sides = [SourceReplay(found, each) for each in self.options]
        with sides[0].report.taking_failures(found.source, debug=self.debug):
            for event in readers()[found.reader].read(found.source):
                for side in sides:
                    side.feed(event)
        answers = [side.finish() for side in sides]
        return answers[0][0], [sessions for _, sessions in answers]

    def killed(self, found: Found) -> tuple[SourceReport, list[list[SessionReport]]]:
        """Return the answer for a source whose process was killed."""
        return SourceReport.killed(found.source.name, found.reader), [[] for _ in self.options]
