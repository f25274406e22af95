"""The ratchet: what is new against a baseline fails, and so does checking less, or otherwise, than it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from typing import Final

from loopscan.checks.baseline.data import (
    Baseline,
    KnownMark,
    KnownSession,
    Settings,
    Values,
    checked_in,
    counting_marks,
    sessions_of,
    settings_of,
)
from loopscan.checks.baseline.ignores import Ignore
from loopscan.fingerprints import Content, content, fingerprints
from loopscan.marks import Mark
from loopscan.report import Report, SessionReport

#: What may not become less.
_RATCHETED: Final = ("sources", "sessions", "calls")


class Standing(StrEnum):
    """How a mark stands to the baseline."""

    NEW = "new"
    KNOWN = "known"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class JudgedMark:
    """A mark, and how it stands to the baseline."""

    mark: Mark
    fingerprint: str
    standing: Standing
    ignore: Ignore | None = None
    """What ignores it, if something does."""


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """A session with its marks, but for what is information."""

    source: str
    session: str
    marks: tuple[JudgedMark, ...]


@dataclass(frozen=True, slots=True)
class UsedIgnore:
    """An ignore of the baseline, and what it did."""

    place: int
    """Counts from 0, as in ``ignores[0]``."""
    ignore: Ignore
    expired: bool
    marks: int
    """How many marks it is about; if it has expired, those that count again."""


@dataclass(frozen=True, slots=True)
class Less:
    """Something of which there is less than before."""

    what: str
    """``sources``, ``sessions``, ``calls``; or the id of a session, whose calls they are."""
    before: int
    now: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that is not as it was."""

    setting: str
    """Such as ``ruleset``, or ``warningThreshold of agent main``."""
    before: str | bool | int | None
    now: str | bool | int | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a report is, held against a baseline."""

    sessions: tuple[JudgedSession, ...]
    """Those of the report, in its order."""
    gone: tuple[KnownMark, ...] = ()
    """Marks of the baseline that are not there any more; ``times`` says how often."""
    ignores: tuple[UsedIgnore, ...] = ()
    """All of the baseline."""
    less: tuple[Less, ...] = ()
    """What there is less of in all."""
    gone_sessions: tuple[KnownSession, ...] = ()
    shorter: tuple[Less, ...] = ()
    """Sessions with fewer calls than they had."""
    unread: tuple[str, ...] = ()
    """What could not be read, or not to its end, a line each."""
    settings: tuple[Difference, ...] = ()
    versions: tuple[str, str] = ("", "")
    """Of loopscan: the one that wrote the baseline, and this one."""

    def marks(self, standing: Standing) -> Iterator[tuple[JudgedSession, JudgedMark]]:
        """Yield the marks that stand so, each with its session."""
        return ((session, each) for session in self.sessions for each in session.marks if each.standing is standing)

    def count(self, standing: Standing) -> int:
        """Return how many marks stand so."""
        return sum(1 for _ in self.marks(standing))

    @property
    def unused(self) -> list[UsedIgnore]:
        """Ignores that hold, and are about no mark."""
        return [used for used in self.ignores if not used.expired and not used.marks]

    @property
    def expired(self) -> list[UsedIgnore]:
        """Ignores that hold no longer."""
        return [used for used in self.ignores if used.expired]

    @property
    def checked_less(self) -> bool:
        """Whether something that was checked before was not checked now."""
        return bool(self.less or self.gone_sessions or self.shorter or self.unread)

    @property
    def passed(self) -> bool:
        """Whether nothing is new, and all was checked that was before, with the same settings."""
        return not (self.checked_less or self.settings or self.count(Standing.NEW))


def judge(report: Report, baseline: Baseline, today: date) -> Judged:
    """Hold ``report`` against ``baseline``: equal marks are the same by their order, the first ones being known.

    A mark that an ignore is about ``today`` is ignored, whether it is known or not; the first such ignore counts.
    """
    judging = _Marks(baseline, today)
    sessions = tuple(judging.session(session) for session in report.sessions)
    now, before = checked_in(report), baseline.checked
    totals = (Less(what, getattr(before, what), getattr(now, what)) for what in _RATCHETED)
    calls = {each.session: each.calls for each in sessions_of(report)}
    lengths = (Less(name, due, calls[name]) for name, due, _ in baseline.sessions if name in calls)
    return Judged(
        sessions,
        tuple(judging.gone()),
        tuple(judging.ignores()),
        tuple(each for each in totals if each.now < each.before),
        tuple(each for each in baseline.sessions if each.session not in calls),
        tuple(each for each in lengths if each.now < each.before),
        tuple(report.complaints()),
        tuple(differences(baseline.settings, settings_of(report), _agents(report))),
        (baseline.version, report.version),
    )


class _Marks:
    """Judges marks one after the other."""

    def __init__(self, baseline: Baseline, today: date) -> None:
        self._baseline = baseline
        self._seen: Counter[Content] = Counter()
        self._printed: Counter[Content] = Counter()
        self._known = {each.about: each.times for each in baseline.marks}
        self._rules = [(place, ignore, ignore.holds(today)) for place, ignore in enumerate(baseline.ignores)]
        self._used: Counter[int] = Counter()

    def session(self, session: SessionReport) -> JudgedSession:
        marks = list(counting_marks(session))
        prints = fingerprints(session.session, marks, self._printed)
        judged = (self._mark(session, mark, print_) for mark, print_ in zip(marks, prints, strict=True))
        return JudgedSession(session.source, session.session, tuple(judged))

    def _mark(self, session: SessionReport, mark: Mark, fingerprint: str) -> JudgedMark:
        about = content(session.session, mark)
        self._seen[about] += 1
        covering = [rule for rule in self._rules if rule[1].covers(about, session.source)]
        by = next((ignore for _, ignore, holds in covering if holds), None)
        self._used.update(place for place, _, holds in covering if holds or by is None)
        if by is not None:
            return JudgedMark(mark, fingerprint, Standing.IGNORED, by)
        left = self._known.get(about, 0)
        if left:
            self._known[about] = left - 1
        return JudgedMark(mark, fingerprint, Standing.KNOWN if left else Standing.NEW)

    def gone(self) -> Iterator[KnownMark]:
        for each in self._baseline.marks:
            missing = each.times - self._seen[each.about]
            if missing > 0:
                yield each._replace(times=missing)

    def ignores(self) -> Iterator[UsedIgnore]:
        return (UsedIgnore(place, ignore, not holds, self._used[place]) for place, ignore, holds in self._rules)


def _agents(report: Report) -> set[str]:
    return {session.agent for session in report.sessions if session.agent is not None}


def differences(before: Settings, now: Settings, agents: Collection[str] | None = None) -> Iterator[Difference]:
    """Yield the settings that differ; of agents with a block of their own only those in ``agents``, if given."""
    for what in ("ruleset", "mode", "scope", "arm"):
        if getattr(before, what) != getattr(now, what):
            yield Difference(what, getattr(before, what), getattr(now, what))
    common = list(_between(before.config, now.config))
    yield from common
    for agent in sorted({*before.agents, *now.agents}):
        for each in _between(before.of(agent), now.of(agent)) if agents is None or agent in agents else ():
            if each not in common:
                yield replace(each, setting=f"{each.setting} of agent {agent}")


def _between(before: Values, now: Values) -> Iterator[Difference]:
    """Yield the values that differ, of the fields that both know: a later version may have more."""
    for field, value in now.items():
        if field in before and before[field] != value:
            yield Difference(field, before[field], value)
