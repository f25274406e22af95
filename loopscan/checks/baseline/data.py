"""A baseline: the marks that are known and borne, and how much was checked when they were written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, TypeAlias

from loopscan.checks.baseline.ignores import Ignore
from loopscan.fingerprints import Content, content
from loopscan.marks import Kind, Mark
from loopscan.policy import Policy
from loopscan.report import Report, SessionReport, config_dict

#: The values of OpenClaw's configuration by field, as they were resolved.
Values: TypeAlias = Mapping[str, bool | int | None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What marks depend on, besides the transcripts."""

    ruleset: str
    mode: str
    scope: str
    arm: str
    config: Values
    agents: Mapping[str, Values]
    """Of the agents that have a block of their own."""

    def of(self, agent: str) -> Values:
        """Return the values that the sessions of ``agent`` are judged with."""
        return self.agents.get(agent, self.config)


@dataclass(frozen=True, slots=True)
class Checked:
    """How much was checked."""

    sources: int
    """Those that were read to their end."""
    sessions: int
    runs: int
    calls: int


class KnownSession(NamedTuple):
    """A session that was checked; all that bear one id are one here."""

    session: str
    calls: int
    source: str
    """Where it lay, for people: the first by name, if there are several."""


class KnownMark(NamedTuple):
    """A mark that is borne."""

    about: Content
    times: int
    """How many marks are equal to it, itself included."""
    source: str
    """Where it stood, for people: the first by name, if there are several."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """All that the file holds; see :mod:`loopscan.checks.baseline.file`."""

    version: str
    """The version of loopscan that wrote it."""
    settings: Settings
    checked: Checked
    ignores: tuple[Ignore, ...] = ()
    """Written by hand, in their order."""
    marks: tuple[KnownMark, ...] = ()
    sessions: tuple[KnownSession, ...] = ()


def updated(report: Report, baseline: Baseline | None, today: date) -> Baseline:
    """Return the baseline that ``report`` gives: its marks are known from now on, and what it checked is due.

    Ignores are those of ``baseline`` (``None``: there is none yet), as they are; what they ignore ``today`` is not
    taken into the baseline, so that it counts when they expire. Order depends on content alone, not on that of the
    sources.
    """
    ignores = baseline.ignores if baseline else ()
    active = [ignore for ignore in ignores if ignore.holds(today)]
    times: Counter[Content] = Counter()
    places: dict[Content, str] = {}
    for session in report.sessions:
        for mark in counting_marks(session):
            about = content(session.session, mark)
            if not any(ignore.covers(about, session.source) for ignore in active):
                times[about] += 1
                places[about] = min(session.source, places.get(about, session.source))
    return Baseline(
        report.version,
        settings_of(report),
        checked_in(report),
        ignores,
        tuple(KnownMark(about, times[about], places[about]) for about in sorted(times, key=_place_in_file)),
        tuple(sessions_of(report)),
    )


def counting_marks(session: SessionReport) -> Iterator[Mark]:
    """Yield the marks of a session that a baseline is about: arming a guard is information and none of them."""
    return (mark for _, mark in session.marks() if mark.kind is not Kind.GUARD_ARMED)


def settings_of(report: Report) -> Settings:
    """Return what the marks of ``report`` depend on."""
    agents = {agent: _values(policy) for agent, policy in sorted(report.agents.items())}
    return Settings(report.policy.ruleset.name, report.mode, report.scope, report.arm, _values(report.policy), agents)


def checked_in(report: Report) -> Checked:
    """Return how much ``report`` checked."""
    totals = report.count()
    read = sum(not source.failures for source in report.sources)
    return Checked(read, totals.sessions, totals.runs, totals.calls)


def sessions_of(report: Report) -> list[KnownSession]:
    """Return the sessions of ``report`` by id."""
    calls: Counter[str] = Counter()
    places: dict[str, str] = {}
    for each in report.sessions:
        calls[each.session] += each.calls
        places[each.session] = min(each.source, places.get(each.session, each.source))
    return [KnownSession(session, calls[session], places[session]) for session in sorted(calls)]


def _values(policy: Policy) -> Values:
    return {name: resolved["value"] for name, resolved in config_dict(policy)["values"].items()}


def _place_in_file(about: Content) -> tuple[object, ...]:
    """Return by what marks are sorted; a field that is not there comes first."""
    return (
        about.session,
        about.detector.value,
        about.tool or "",
        about.paired_tool or "",
        about.signature or "",
        -1 if about.count is None else about.count,
        about.kind.value,
        about.outcome or "",
        tuple(field is None for field in about),
        about.level.value,
    )
