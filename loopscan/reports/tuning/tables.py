"""Which settings a report shows of many, and what it says of each: the same cells in every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from loopscan.reports.phrases import counted, money, number
from loopscan.reports.tuning import words
from loopscan.tuning.chains import leniency
from loopscan.tuning.report import Candidate, Figures, Part, TuningReport

#: How many settings of the Pareto front are shown, and how many on each side of the recommendation.
_FRONT = 9
_AROUND = 2

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Shown:
    """A setting that is shown, and why."""

    candidate: Candidate
    roles: tuple[str, ...]
    """``in force``, ``off``, ``recommended``, ``front``; none for one that lies near."""

    @property
    def recommended(self) -> bool:
        """Whether it is what is recommended."""
        return any(role.startswith("recommended") for role in self.roles)

    @property
    def order(self) -> tuple[int, ...]:
        """What orders settings, the most lenient first."""
        return _order(self.candidate)

    @property
    def setting(self) -> str:
        """What it changes."""
        return words.changes(self.candidate.changes) or "as in force"


@dataclass(frozen=True, slots=True)
class Column:
    """A figure: how it is headed and told."""

    head: str
    about: str
    """What it is, in a few words."""
    cell: Callable[[Figures], str]
    saved: bool = False
    """It is part of what would be saved."""


COLUMNS: Final = (
    Column("caught", "stuck incidents that it steps into", lambda each: number(each.caught)),
    Column("missed", "stuck incidents that it does not", lambda each: number(each.missed)),
    Column("false", "productive incidents that it steps into", lambda each: number(each.false_blocks)),
    Column(
        "sessions",
        "sessions at risk with a false block",
        lambda each: f"{number(each.false_sessions)} of {number(each.at_risk)}",
    ),
    Column("rate", "the share of such sessions", lambda each: words.percent(each.false_rate)),
    Column(
        "interval",
        "Clopper-Pearson, for this setting alone",
        lambda each: words.NOT_KNOWN if each.false_rate is None else words.interval(each.false_interval),
    ),
    Column("unknown", "incidents that it steps into and nobody can judge", lambda each: number(each.unknown_blocked)),
    Column("warns", "warnings per 1,000 calls", lambda each: f"{each.warnings_per_1000_calls:,.1f}"),
    Column("lead", "calls from the step in to the end of the incident, the mean", words.lead),
    Column("calls", "calls that would be saved", lambda each: number(each.saved.calls), saved=True),
    Column("tokens", "tokens, all together", lambda each: number(each.saved.tokens), saved=True),
    Column(
        "cached", "those of them that were read from a cache", lambda each: number(each.saved.cache_read_tokens), True
    ),
    Column("dollars", "as priced", lambda each: money(each.saved.cost_usd), saved=True),
    Column("minutes", "from the step in to the end", lambda each: words.minutes(each.saved.seconds), saved=True),
)


def shown(part: Part, *, every: bool = False) -> list[Shown]:
    """Return the settings to show, most lenient first: off, in force, the recommended one, front and around.

    ``every`` returns all candidates. Figures are those of all sessions where they are known: the recommended setting
    brings those of the sessions that it was chosen on, and stands for itself if another one stands for its group.
    """
    roles: dict[int, list[str]] = {}
    found: dict[int, Candidate] = {}

    def take(candidate: Candidate, role: str | None) -> None:
        found.setdefault(candidate.number, candidate)
        named = roles.setdefault(candidate.number, [])
        if role is not None and role not in named:
            named.append(role)

    chosen = part.chosen.candidate
    front = [each for each in part.candidates if each.on_front]
    for each in part.candidates if every else _around(part.candidates, chosen or part.in_force):
        take(each, None)
    for each in front if every else thinned(front, _FRONT):
        take(each, None)
    take(part.off, "off")
    take(part.in_force, "in force")
    if chosen is not None:
        known = next((each for each in found.values() if each.number == chosen.number), None)
        known = known or next((each for each in part.candidates if each.number == chosen.number), None)
        take(known or chosen, "recommended" if known else "recommended; figures of the sessions it was chosen on")
    for each in found.values():
        if each.on_front:
            take(each, "front")
    return [Shown(each, tuple(roles[each.number])) for each in sorted(found.values(), key=_order)]


def _order(candidate: Candidate) -> tuple[int, ...]:
    """Return what orders settings, the most lenient first."""
    setting = candidate.setting
    return (setting.enabled is True, *leniency(setting), candidate.number)


def thinned(rows: Sequence[_T], most: int) -> list[_T]:
    """Return at most ``most`` of the rows, evenly spread, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]


def _around(candidates: Sequence[Candidate], middle: Candidate) -> Iterator[Candidate]:
    """Yield what lies nearest to ``middle``, more lenient and stricter."""
    before = [each for each in candidates if _order(each) < _order(middle)]
    after = [each for each in candidates if _order(each) > _order(middle)]
    yield from before[-_AROUND:]
    yield from after[:_AROUND]


def left_out(report: TuningReport, part: Part, rows: Sequence[Shown]) -> str | None:
    """Return in a sentence what is not shown, ``None`` if every course of events is."""
    numbers = {each.candidate.number for each in rows}
    rest = sum(each.number not in numbers for each in part.candidates)
    if not rest:
        return None
    there = "-o csv=FILE has every setting" if part.name is None else "-o json=FILE has them"
    return f"{counted(rest, 'more course', 'more courses')} of events left out; {there}"
