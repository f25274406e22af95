"""Many transcripts to a score: what the command ``loopscan verify`` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loopscan._version import __version__
from loopscan.comparing.compare import CompareSource
from loopscan.events import Recorded
from loopscan.fidelity.causes import Case, Cause, cause_of, disagrees
from loopscan.marks import Kind, Level, Mark
from loopscan.pool import work_on
from loopscan.replayer import Plan, Progress, bring_home
from loopscan.report import LiveVerdict, Report, SessionReport, SourceReport, agreement
from loopscan.sessions import Options
from loopscan.transcripts.discover import Skipped
from loopscan.transcripts.places import closing_archives

#: What a release before run ids, and one with them, goes by.
_WITHOUT_RUN_IDS, _WITH_RUN_IDS = "2026.6", "2026.9"
_TRAJECTORY = "openclaw-trajectory"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict of the live engine that the replay has not, or the other way round."""

    source: str
    session: str
    agent: str | None
    ruleset: str
    run: int | None
    """``None``: the record does not say of which run it is."""
    recorded: Recorded | None
    mark: Mark | None
    cause: Cause
    why: str


@dataclass(slots=True)
class Tally:
    """How often record and replay agree."""

    agreed: int = 0
    only_recorded: int = 0
    only_replayed: int = 0
    not_reached: int = 0
    """Recorded after the replay had ended the run: they count on neither side."""

    @property
    def score(self) -> float | None:
        """The share of all verdicts that both have, from 0 to 1; ``None`` without any."""
        every = self.agreed + self.only_recorded + self.only_replayed
        return self.agreed / every if every else None


@dataclass(slots=True)
class Fidelity:
    """What was found."""

    version: str
    options: Mapping[str, Options]
    """By ruleset."""
    asked: str | None
    """The ruleset that was asked for; ``None``: the one that each record suggests."""
    tally: Tally = field(default_factory=Tally)
    by_ruleset: dict[str, Tally] = field(default_factory=dict)
    """Were all sessions judged by one ruleset."""
    used: dict[str, int] = field(default_factory=dict)
    """How many of the judged sessions went by each ruleset."""
    disagreements: list[Disagreement] = field(default_factory=list)
    judged: int = 0
    """Sessions with a recorded verdict: the others do not count, since nobody knows whether detection was on."""
    silent: int = 0
    """Sessions without any recorded verdict in which the replay steps in."""
    sessions: int = 0
    elsewhere: int = 0
    """Recorded verdicts of sessions that are not here."""
    sources: list[SourceReport] = field(default_factory=list)
    skipped: Sequence[Skipped] = ()

    def guess(self) -> tuple[list[str], float] | None:
        """Return the rulesets that agree best, newest last, and their score; ``None`` where nothing tells."""
        scores = {name: tally.score for name, tally in self.by_ruleset.items() if tally.score is not None}
        if not scores:
            return None
        best = max(scores.values())
        return [name for name, score in scores.items() if score == best], best

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document ``loopscan.verify/1``."""
        from loopscan.fidelity.document import document

        return document(self)


def verify(
    plans: Mapping[str, Plan],
    asked: str | None = None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    debug: bool = False,
) -> Fidelity:
    """Replay the sources of one plan, given by ruleset for each of them, and compare with what they record."""
    names = list(plans)
    first = plans[names[0]]
    reports = {name: plan.report() for name, plan in plans.items()}
    made = Fidelity(__version__, {name: plan.options for name, plan in plans.items()}, asked)
    found = first.discover(reports[names[0]].unread)
    made.sources += reports[names[0]].sources
    made.skipped = found.skipped
    with closing_archives():
        work = CompareSource(tuple(plan.options for plan in plans.values()), debug)
        for source, sides in work_on(found, work, jobs):
            made.sources.append(source)
            for name, sessions in zip(names, sides, strict=True):
                reports[name].sessions += sessions
            if progress:
                progress(source, len(found.sources))
    for report in reports.values():
        bring_home(report)
    made.elsewhere = sum(len(session.recorded) for session in reports[names[0]].elsewhere)
    _judge(made, reports)
    return made


def _judge(made: Fidelity, reports: Mapping[str, Report]) -> None:
    made.by_ruleset = {name: Tally() for name in reports}
    formats = {source.path: source.format for source in made.sources}
    for sessions in zip(*(report.sessions for report in reports.values()), strict=True):
        by_name = dict(zip(reports, sessions, strict=True))
        session = sessions[0]
        made.sessions += 1
        ruleset = made.asked or suggested(session, formats.get(session.source))
        if not session.recorded:
            made.silent += any(mark.level is Level.CRITICAL for _, mark in by_name[ruleset].marks())
            continue
        made.judged += 1
        made.used[ruleset] = made.used.get(ruleset, 0) + 1
        found = {name: agreement(each) for name, each in by_name.items()}
        for name, each in by_name.items():
            _count(made.by_ruleset[name], found[name], each)
        _count(made.tally, found[ruleset], by_name[ruleset])
        made.disagreements += _together(_disagreements(ruleset, by_name, found, made.options[ruleset]))


def suggested(session: SessionReport, format_: str | None = None) -> str:
    """Return the ruleset that a record of some format suggests.

    Releases from 2026.8 on write run ids into the transcript; trajectories had them before.
    """
    told = format_ != _TRAJECTORY and any(run.run_id for run in session.runs)
    return _WITH_RUN_IDS if told else _WITHOUT_RUN_IDS


def _count(tally: Tally, verdicts: Sequence[LiveVerdict], session: SessionReport) -> None:
    tally.agreed += sum(verdict.agrees for verdict in verdicts)
    tally.only_recorded += sum(disagrees(verdict) for verdict in verdicts)
    tally.not_reached += sum(not verdict.agrees and not verdict.reached for verdict in verdicts)
    tally.only_replayed += len(_unrecorded(verdicts, session))


def _unrecorded(verdicts: Sequence[LiveVerdict], session: SessionReport) -> list[tuple[int, Mark]]:
    """Return the critical marks that no recorded verdict belongs to, with the numbers of their runs.

    Warnings may be in a log alone, and siblings of a batch share a block: neither counts against the replay.
    """
    met = {id(verdict.mark) for verdict in verdicts if verdict.mark is not None}
    ends = {verdict.recorded.run for verdict in verdicts if verdict.recorded.kind != Kind.WARNING}
    return [
        (run.run, mark)
        for run, mark in session.marks()
        if mark.level is Level.CRITICAL and id(mark) not in met and mark.kind is not Kind.RUN_END and mark.run in ends
    ]


def _together(found: Iterable[Disagreement]) -> list[Disagreement]:
    """Return the disagreements of a session; what lacks calls of a run lacks them for all of its verdicts."""
    every = list(found)
    lacking = {each.run for each in every if each.cause is Cause.INCOMPLETE}
    why = "the record of this run is not complete, as other verdicts on it show"
    return [
        replace(each, cause=Cause.INCOMPLETE, why=why)
        if each.cause is Cause.UNKNOWN and each.run in lacking
        else each
        for each in every
    ]


def _disagreements(
    ruleset: str,
    sessions: Mapping[str, SessionReport],
    found: Mapping[str, Sequence[LiveVerdict]],
    options: Options,
) -> Iterator[Disagreement]:
    session = sessions[ruleset]
    policy = options.policy_of(session.agent)
    runs = {mark.run: run for run, mark in session.marks()}
    verdicts = [each for each in found[ruleset] if disagrees(each)]
    unrecorded = _unrecorded(found[ruleset], session)
    agreeing = [
        name
        for name, each in sessions.items()
        if not any(map(disagrees, found[name])) and not _unrecorded(found[name], each)
    ]
    for verdict in verdicts:
        recorded = verdict.recorded
        run = runs.get(recorded.run)
        calls = run.calls if run is not None else (session.calls if len(session.runs) == 1 else 0)
        near = [
            mark.count or 0
            for _, mark in unrecorded
            if (mark.run, mark.detector.value) == (recorded.run, recorded.detector)
        ]
        case = Case(policy, recorded, verdict.mark, agreeing, near, calls)
        number = run.run if run is not None else None
        cause, why = cause_of(case)
        yield Disagreement(
            *(session.source, session.session, session.agent, ruleset, number, recorded, verdict.mark, cause, why)
        )
    for number, mark in unrecorded:
        near = [
            each.recorded.count or 0
            for each in verdicts
            if (each.recorded.run, each.recorded.detector) == (mark.run, mark.detector.value)
        ]
        cause, why = cause_of(Case(policy, None, mark, agreeing, near, 0))
        yield Disagreement(*(session.source, session.session, session.agent, ruleset, number, None, mark, cause, why))
