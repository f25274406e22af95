"""What ``loopscan tune`` found, as plain data: computed once, and only formatted by reports.

Rates are shares (0.05 is 5 %). What would be saved is an upper bound throughout: the model might have recovered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loopscan.report import SourceReport
from loopscan.transcripts.discover import Skipped
from loopscan.tuning.incidents import Loop
from loopscan.tuning.labels import Label
from loopscan.tuning.profiles import Basis
from loopscan.tuning.settings import Setting

SCHEMA = "loopscan.tune/1"


@dataclass(frozen=True, slots=True)
class Savings:
    """What would have been saved in stuck incidents, from the step in to their end."""

    calls: int = 0
    responses: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    tokens: int = 0
    """All together, as recorded."""
    cost_usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What one setting comes to on a part of the sessions."""

    caught: int
    """Stuck incidents that it steps into."""
    missed: int
    false_blocks: int
    """Productive incidents that it steps into."""
    spared: int
    unknown_blocked: int
    """Incidents that it steps into and nobody can judge."""
    not_reached: int
    """Incidents that were not over, or had not begun, when something else ended their run."""
    interventions: int
    """Blocks, stops and aborts, each block of one incident counted."""
    warnings: int
    warnings_per_1000_calls: float
    lead: float | None
    """Calls from the step in to the end of the incident: the mean over those that are caught."""
    at_risk: int
    """Sessions that tell whether the setting makes a false block: those with a loop that can be judged, but for those
    in which all that it steps into is unknown."""
    false_sessions: int
    """Those of them in which the setting makes a false block."""
    false_rate: float | None
    """``false_sessions / at_risk``, ``None`` without any."""
    false_interval: tuple[float, float]
    """Clopper-Pearson, two-sided, at the report's confidence, for this setting alone."""
    saved: Savings


@dataclass(frozen=True, slots=True)
class Candidate:
    """One setting, standing for all that come to the same on these sessions."""

    number: int
    """Its place in the sweep."""
    setting: Setting
    same: int
    """How many settings come to the same, itself included."""
    changes: dict[str, bool | int | None]
    """Configuration fields in which it differs from what is in force, in the order of the documentation."""
    figures: Figures
    on_front: bool = False
    """No other setting saves more with as few false blocks."""
    passes: bool = False
    """The promise holds for it."""
    p_value: float | None = None
    upper_bound: float | None = None
    """Of its false-block rate, at the confidence that is left for its chain after correcting for the choice."""


class Verdict(StrEnum):
    """What comes of choosing."""

    RECOMMENDED = "recommended"
    TOO_FEW_SESSIONS = "too_few_sessions"
    TOO_MANY_FALSE_BLOCKS = "too_many_false_blocks"
    NOTHING_TO_SAVE = "nothing_to_save"
    NO_INCIDENTS = "no_incidents"
    CONTRADICTED = "contradicted"
    """The held-out sessions are surely against what the others speak for."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice among the settings, or why there is none."""

    verdict: Verdict
    candidate: Candidate | None
    """The recommendation; ``None`` unless the verdict is ``recommended``."""
    by_cost: bool
    """Chosen by ``--cost-ratio``: nothing is promised."""
    sessions_needed: int | None
    """Sessions at risk without a false block that the promise needs."""
    sessions_more: int | None
    """How many more sessions that takes, if as many of them are at risk as now; ``None``: cannot be told."""
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A setting that was chosen on one part of the sessions, and how it fares on the other."""

    name: str
    """``the newest 30 %``, or an agent."""
    chosen: Chosen
    before: Figures | None
    """On the part that it was chosen on."""
    after: Figures | None
    """On the part that was held out."""
    sessions: tuple[int, int]
    """In both parts."""


@dataclass(frozen=True, slots=True)
class Stability:
    """How often the same would have been chosen of sessions drawn anew."""

    rounds: int
    same: float
    """The share of rounds that came to the same choice."""
    none: float
    """The share that came to no recommendation."""
    others: tuple[tuple[Setting, float], ...]
    """What else was chosen, most often first."""


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """One incident, for people to review and label."""

    incident: str
    """Its name: session, run and first call, stable as long as the record is."""
    source: str
    session: str
    run: int
    agent: str | None
    model: str | None
    loops: tuple[Loop, ...]
    tools: tuple[str, ...]
    calls: int
    first_line: int
    last_line: int
    first_call: int
    """Its number within the run; -1 for one that was not stored."""
    last_call: int
    started: float | None
    ended: float | None
    label: Label
    """Seen from its fifth call, where the first setting could step in; the rule that gave it says why."""
    rule: str
    rule_label: Label
    """What the rules say, whatever label was given."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An incident that fares otherwise if one threshold moves by one."""

    field: str
    value: int
    """The threshold as moved."""
    incident: IncidentRow
    before: str
    """How it fares as a :class:`~loopscan.tuning.parts.Fate`, such as ``caught`` or ``false_block``."""
    after: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How rules and given labels agree."""

    given: int
    """Incidents with a given label."""
    unmatched: int
    """Lines of the file that no incident is meant by."""
    kappa: float | None
    interval: tuple[float, float] | None
    table: dict[str, dict[str, int]]
    """Counts by rule label, then by given label."""


@dataclass(frozen=True, slots=True)
class Part:
    """The sessions of one agent or model, or all of them, with what is chosen for them."""

    name: str | None
    """The agent or model; ``None``: all sessions."""
    sessions: int
    runs: int
    calls: int
    started: float | None
    ended: float | None
    at_risk: int
    incidents: dict[str, int]
    """By label, seen from the fifth call."""
    in_force: Candidate
    off: Candidate
    candidates: tuple[Candidate, ...]
    """Every different course, most lenient first."""
    chosen: Chosen
    held_out: tuple[HeldOut, ...]
    stability: Stability | None
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do for all agents or one: what can be acted on under the ruleset."""

    agent: str | None
    changes: dict[str, bool | int | None]
    """Configuration fields to set; empty: leave everything as it is."""
    reason: str


@dataclass(slots=True)
class TuningReport:
    """All that ``loopscan tune`` found."""

    version: str
    basis: Basis
    configurable: bool
    """Whether the ruleset lets thresholds be set; else they are a what-if, and ``enabled`` alone can be acted on."""
    max_false_block: float
    confidence: float
    cost_ratio: float | None
    holdout: float
    settings: int
    """How many were tried."""
    whole: Part
    parts: tuple[Part, ...]
    """By agent or model, if asked for."""
    decisions: tuple[Decision, ...]
    block: str
    """The JSON5 to paste; empty if nothing is to be changed."""
    advice: tuple[str, ...]
    """One to three lines."""
    incidents: tuple[IncidentRow, ...]
    agreement: Agreement | None = None
    priced: str = "as recorded"
    """Where dollars come from."""
    sources: list[SourceReport] = field(default_factory=list)
    skipped: Sequence[Skipped] = ()
    notes: tuple[str, ...] = ()
    """What a reader has to know, a sentence each."""
    sweep: dict[str, list[bool | int | float | None]] = field(default_factory=dict)
    """Every setting that was tried on all sessions, a row each: its configuration fields, then its figures."""

    def table(self) -> dict[str, Sequence[bool | int | float | None]]:
        """Return the sweep with rates beside the counts, as :func:`loopscan.tuning.columns.table` makes them."""
        from loopscan.tuning.columns import table

        return table(self.sweep, self.whole.calls, self.confidence)

    def curve(self) -> tuple[tuple[Setting, Figures], ...]:
        """Return a setting of the sweep with its figures for each critical threshold, ascending.

        All else is as in the recommended setting, or as in what is in force; only the breaker and the warning
        threshold make room where they have to.
        """
        from loopscan.tuning.columns import along_critical

        base = (self.whole.chosen.candidate or self.whole.in_force).setting
        return along_critical(self.sweep, base, self.whole.calls, self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the report in the form of the schema ``loopscan.tune/1``."""
        from loopscan.tuning.document import document

        return document(self)
