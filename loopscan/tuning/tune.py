"""From sessions to thresholds with evidence: what the command ``loopscan tune`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from loopscan._version import __version__
from loopscan.configedit import Change, block_text
from loopscan.errors import InputError, UsageError
from loopscan.modes import By
from loopscan.pool import work_on
from loopscan.replayer import Plan, Progress, ReplaySource
from loopscan.report import SourceReport
from loopscan.rulesets import Ruleset
from loopscan.sanitize import clean
from loopscan.sessions import Options
from loopscan.transcripts.discover import Skipped
from loopscan.transcripts.places import closing_archives
from loopscan.tuning.advice import advise
from loopscan.tuning.courses import METRICS, Judge, as_recorded, nobody
from loopscan.tuning.decisions import decide_enabled, decide_thresholds
from loopscan.tuning.given import GivenLabels
from loopscan.tuning.nearby import flips
from loopscan.tuning.parts import Parts, Sessions, Wishes
from loopscan.tuning.prices import Prices
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.report import Decision, TuningReport
from loopscan.tuning.rows import agreement_of, rows
from loopscan.tuning.settings import FIELD_OF, Grid, Setting, answerable, axes_for
from loopscan.tuning.store import Stored, read, together
from loopscan.tuning.sweep import Sweeper, answer
from loopscan.tuning.totals import Totals
from loopscan.tuning.wording import counted
from loopscan.verdicts import stands_apart


@dataclass(slots=True)
class Gathered:
    """The first pass: the profiles of all sessions, and what was read."""

    basis: Basis
    profiles: list[SessionProfile] = field(default_factory=list)
    sources: list[SourceReport] = field(default_factory=list)
    skipped: Sequence[Skipped] = ()
    repeated: int = 0
    """Sessions that were left out, since they were there already."""
    stored: int = 0
    """Sessions whose profiles were made before."""

    def add(self, stored: Stored) -> None:
        """Add profiles that were made before. Raises :class:`UsageError` if they were made with other options."""
        if stored.sessions and stored.basis != self.basis:
            raise UsageError(
                f"the profiles are of {clean(str(stored.basis))}: "
                "say the same with --ruleset, --scope, --arm and --tool-map"
            )
        self.stored += len(stored.sessions)
        self.profiles, repeated = together([self.profiles, stored.sessions])
        self.repeated += stored.repeated + repeated


def basis_of(options: Options) -> Basis:
    """Return what profiles that are made with these options depend on."""
    return Basis(options.policy.ruleset.name, options.scope, options.arm, tuple(sorted(options.tool_map.items())))


def gather(planned: Plan, *, jobs: int = 1, progress: Progress | None = None, debug: bool = False) -> Gathered:
    """Read all sources once, in observe mode, and return the profiles of their sessions."""
    gathered = Gathered(basis_of(planned.options))
    report = planned.report()
    found = planned.discover(report.unread)
    gathered.sources += report.sources
    gathered.skipped = found.skipped
    with closing_archives():
        for source, sessions in work_on(found, ReplaySource(planned.options, debug), jobs):
            gathered.sources.append(source)
            gathered.profiles += (
                session.profile for session in sessions if session.profile is not None and not stands_apart(session)
            )
            if progress:
                progress(source, len(found.sources))
    return gathered


def tune(
    gathered: Gathered,
    options: Options,
    *,
    tried: Sequence[str] = (),
    by: By | None = None,
    wishes: Wishes | None = None,
    prices: Prices | None = None,
    labels: GivenLabels | None = None,
    jobs: int = 1,
) -> TuningReport:
    """Answer every setting on the sessions that were gathered, and choose.

    ``options`` say what is in force, for all and for agents with a block of their own; ``tried`` are values to try,
    such as ``criticalThreshold=10..40``; ``by`` chooses for each agent or model as well. Raises :class:`UsageError`
    for what makes no sense.
    """
    wishes = wishes or Wishes()
    rules = options.policy.ruleset
    judge = Judge(prices or as_recorded, labels or nobody)
    in_force, notes = answerable(Setting.of(options.policy))
    own = {agent: answerable(Setting.of(policy))[0] for agent, policy in options.agents.items()}
    every = [in_force, *own.values()]
    on = [replace(each, enabled=True) for each in every]
    axes = axes_for(rules, [*every, *on, replace(in_force, enabled=False)], tried)
    grid = Grid(axes, [*every, *on, replace(in_force, enabled=False)])
    sweeper = Sweeper(grid, rules, gathered.basis)
    answers = answer(gathered.profiles, sweeper, judge, jobs=jobs)
    sessions = Sessions(gathered.profiles, answers)

    groups = _groups(sessions, by if rules.configurable else by or By.AGENT)
    share = 1 / (1 + len(groups)) if by else 1.0
    making = Parts(grid, in_force, judge, wishes, Setting.of(options.policy))
    whole = making.part(None, sessions, share=share)
    parts = (
        [_own(making, options, own, name, by).part(name, some, share=share) for name, some in groups.items()]
        if by
        else []
    )
    near = whole.chosen.candidate.setting if whole.chosen.candidate else replace(in_force, enabled=True)
    whole = replace(whole, flips=flips(near, gathered.profiles, rules, gathered.basis, judge, jobs=jobs))

    if rules.configurable:
        decisions = decide_thresholds(whole, parts if by is By.AGENT else [])
    else:
        decisions = _enabled(making, groups if by is not By.MODEL else {}, sessions, wishes)
    found = tuple(rows(answers, judge))
    totals = Totals(answers, gathered.profiles, len(grid.settings))
    return TuningReport(
        __version__,
        gathered.basis,
        rules.configurable,
        wishes.max_false_block,
        wishes.confidence,
        wishes.cost_ratio,
        wishes.holdout,
        len(grid.settings),
        whole,
        tuple(parts),
        tuple(decisions),
        _block(decisions, rules),
        tuple(advise(gathered.profiles, rules, gathered.basis, in_force, judge, pointing=False)),
        found,
        agreement_of(found, labels, wishes.confidence) if labels is not None else None,
        "as recorded, else by the prices given" if prices else "as recorded",
        gathered.sources,
        gathered.skipped,
        (*notes, *_own_blocks(gathered, options, by), *_notes(gathered, prices)),
        _columns(making, totals),
    )


def read_files(paths: Sequence[str]) -> tuple[list[Stored], list[str]]:
    """Return the profiles in files, each read once, and what is wrong with those that cannot be read, a line each."""
    found: list[Stored] = []
    wrong: list[str] = []
    for path in paths:
        try:
            found.append(read([path]))
        except InputError as error:
            wrong.append(str(error))
    return found, wrong


def changes_of(report: TuningReport) -> list[Change]:
    """Return what the decisions of a report set, for :func:`loopscan.configedit.edit`."""
    return _changes(report.decisions)


def _groups(sessions: Sessions, by: By | None) -> dict[str, Sessions]:
    """Return the sessions of each agent or model, by name; those that name none are in no group."""
    if by is None:
        return {}
    names = [each.agent if by is By.AGENT else each.model for each in sessions.profiles]
    return {
        name: sessions.only([each for each, its in zip(sessions.profiles, names, strict=True) if its == name])
        for name in sorted({name for name in names if name is not None})
    }


def _own(making: Parts, options: Options, own: Mapping[str, Setting], name: str, by: By | None) -> Parts:
    """Return what makes the part of an agent with a block of its own: what is in force is another setting."""
    from loopscan.configfile import agent_key

    setting = own.get(agent_key(name)) if by is By.AGENT else None
    if setting is None or setting == making.in_force:
        return making
    return Parts(making.grid, setting, making.judge, making.wishes)


def _enabled(making: Parts, groups: Mapping[str, Sessions], sessions: Sessions, wishes: Wishes) -> list[Decision]:
    """Return for each agent whether ``enabled`` should be true; for all sessions together if none names an agent.

    The error is shared out among the decisions: all of them hold together.
    """
    on = Parts(
        making.grid, replace(making.in_force, enabled=True), making.judge, replace(wishes, rounds=0, holdout=0.0)
    )
    named: list[tuple[str | None, Sessions]] = [*groups.items()] or [(None, sessions)]
    confidence = 1 - (1 - wishes.confidence) / len(named)
    found = [
        decide_enabled(on.part(name, some), max_false_block=wishes.max_false_block, confidence=confidence)
        for name, some in named
    ]
    unnamed = sum(profile.agent is None for profile in sessions.profiles) if groups else 0
    if unnamed:
        why = f"{counted(unnamed, 'session')} without an agent; what is set for all would reach every agent"
        found.append(Decision(None, {}, why))
    return found


def _changes(decisions: Sequence[Decision]) -> list[Change]:
    return [
        Change(decision.agent, name, value)
        for decision in decisions
        for name, value in decision.changes.items()
        if value is not None
    ]


def _block(decisions: Sequence[Decision], rules: Ruleset) -> str:
    changes = _changes(decisions)
    return block_text(changes, rules) if changes else ""


def _own_blocks(gathered: Gathered, options: Options, by: By | None) -> list[str]:
    """Say whose sessions are not judged by their own settings, which go before what is set for all."""
    agents: dict[str, int] = {}
    for profile in gathered.profiles:
        own = options.own_policy(profile.agent)
        if own is not None and profile.agent is not None and Setting.of(own) != Setting.of(options.policy):
            agents[profile.agent] = agents.get(profile.agent, 0) + 1
    more = "their parts below are" if by is By.AGENT else "--by agent judges them by their own"
    return [
        f"agent {clean(agent, 60)} has a block of its own, which goes before what is set for all: as in force its "
        f"{counted(number, 'session')} count with the settings of all; {more}"
        for agent, number in sorted(agents.items())
    ]


def _notes(gathered: Gathered, prices: Prices | None) -> list[str]:
    found: list[str] = []
    timeless = sum(profile.started is None for profile in gathered.profiles)
    if timeless:
        found.append(f"{timeless:,} sessions have no time on record, and count as the oldest")
    torn = sum(profile.torn for profile in gathered.profiles)
    if torn:
        found.append(
            f"{torn:,} runs went on after their steps had been let go: what repeats across the gap is not seen"
        )
    if gathered.repeated:
        found.append(f"{counted(gathered.repeated, 'session')} left out: in the sources or other profiles, too")
    if gathered.stored:
        found.append(
            f"{counted(gathered.stored, 'session')} from profiles: what was wrong with their sources was told when "
            "these were made"
        )
    if prices is not None and prices.unpriced:
        found.append(f"no price was given for {len(prices.unpriced):,} models whose cost is not on record")
    return found


def _columns(making: Parts, totals: Totals) -> dict[str, list[bool | int | float | None]]:
    """Return every setting with its figures, as the columns of a sweep."""
    settings = making.grid.settings
    columns: dict[str, list[bool | int | float | None]] = {
        name: [setting.values()[attribute] for setting in settings] for attribute, name in FIELD_OF.items()
    }
    for name in METRICS:
        values = totals.metric(name).tolist()
        columns[name] = values if name in {"saved_usd", "saved_seconds"} else [int(value) for value in values]
    columns["false_sessions"] = totals.false_sessions.tolist()
    columns["at_risk"] = [totals.at_risk] * len(settings)
    return columns
