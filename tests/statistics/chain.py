"""The whole chain on populations of made sessions: profiles, sweep, labels, choice; and what is true all along.

A pool of sessions is made, profiled and swept once. A population says how likely each session of the pool is to be
drawn; so the rate of false blocks of every setting is known exactly, both by the labels and by what the loops truly
are. Corpora are drawn from it by drawing rows of the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Final

import numpy as np

from loopscan.events import SessionEnded, Where
from loopscan.modes import Mode
from loopscan.rulesets import ruleset
from loopscan.sessions import Options, SessionReplay
from loopscan.tuning.arrays import Bools, Floats, Ints
from loopscan.tuning.chains import chains, leniency
from loopscan.tuning.choice import Preferences, best
from loopscan.tuning.courses import METRIC, Judge
from loopscan.tuning.incidents import Incident
from loopscan.tuning.labels import Label
from loopscan.tuning.parts import Sessions
from loopscan.tuning.profiles import LOWEST_THRESHOLD, Basis, SessionProfile
from loopscan.tuning.promise import Demand, passing
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.sweep import SessionAnswers, Sweeper, UnitAnswers
from tests.statistics.made import Kind, Loop, Made, Turnout, make

RULES: Final = ruleset("2026.6")
IN_FORCE: Final = Setting()
GRID: Final = Grid(
    {
        "history_size": (30,),
        "warning": (5, 10),
        "critical": (8, 10, 12, 15, 20, 30),
        "breaker": (15, 30, 60),
        "unknown_tool": (10,),
    },
    [IN_FORCE, replace(IN_FORCE, enabled=False)],
)

#: The kinds of sessions in a pool: what becomes of the one loop of each, how long it is at least and at most.
GROUPS: Final[Mapping[str, tuple[Turnout | None, int, int]]] = {
    "no loop": (None, 0, 0),
    "finishes early": (Turnout.FINISHES, 3, 12),
    "finishes late": (Turnout.FINISHES, 12, 40),
    "finishes very late": (Turnout.FINISHES, 61, 64),
    "stuck": (Turnout.ABORTED, 10, 60),
    "impatient": (Turnout.IMPATIENT, 10, 40),
    "distracted": (Turnout.DISTRACTED, 10, 40),
    "given up": (Turnout.GIVEN_UP, 6, 40),
    "cut, stuck": (Turnout.CUT_STUCK, 10, 40),
    "cut, working": (Turnout.CUT_WORKING, 10, 40),
}
#: Groups of which the rules say what is true: it is on record.
CERTAIN: Final = ("no loop", "finishes early", "finishes late", "finishes very late", "stuck")
_LOOPS: Final = (Kind.POLL, Kind.SAME, Kind.PARALLEL, Kind.FAILING, Kind.SWING)


@dataclass(slots=True, eq=False)
class Judged:
    """What the settings come to in each session of a pool, by one way of judging; sessions x settings."""

    answers: list[SessionAnswers]
    at_risk: Bools
    """By session alone."""
    told: Bools
    """Sessions at risk that tell whether the setting makes a false block."""
    false_blocks: Bools
    saved: Floats
    warnings: Ints


class Pool:
    """Sessions of every group, each profiled and swept once."""

    def __init__(self, each: int, seed: int) -> None:
        """Make ``each`` sessions of every group."""
        random = Random(seed)
        self.groups = [name for name in GROUPS for _ in range(each)]
        self.made = [_made(f"s{at}", random, *GROUPS[name]) for at, name in enumerate(self.groups)]
        self.profiles = [_profile(made) for made in self.made]
        sweeper = Sweeper(GRID, RULES, Basis(RULES.name))
        swept = [sweeper.session(profile) for profile in self.profiles]
        self.by_rules = _judged(swept, Judge())
        self.by_truth = _judged(swept, Judge(given=self.truth))
        incidents = [
            (each, number, incident)
            for each in swept
            for number, unit in enumerate(each.units)
            for incident in unit.incidents.incidents
            if incident.evidence.length >= LOWEST_THRESHOLD
        ]
        self.labels = [_labels(*each, self) for each in incidents]
        """The group of each incident, its label by the rules and its true one, seen from the lowest threshold."""

    @cached_property
    def _spans(self) -> dict[str, Made]:
        return {made.name: made for made in self.made}

    def truth(self, session: SessionProfile, unit: int, incident: Incident) -> Label:
        """Return what an incident truly is: that of the loop it belongs to; ordinary work is productive."""
        first, last = incident.calls[0].line, incident.calls[-1].line
        spans = self._spans[session.session.split("#")[0]].spans
        return next((span.truth for span in spans if first <= span.last and span.first <= last), Label.PRODUCTIVE)

    def weights(self, shares: Mapping[str, float]) -> Floats:
        """Return how likely each session is to be drawn, given the shares of the groups."""
        counts = {name: self.groups.count(name) for name in shares}
        found = np.array([shares.get(name, 0.0) / counts.get(name, 1) for name in self.groups])
        return found / found.sum()


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A pool, and how likely each of its sessions is to be drawn."""

    name: str
    pool: Pool
    weights: Floats

    def rates(self, judged: Judged) -> Floats:
        """Return the exact rate of false blocks of each setting among sessions at risk; 0 where none is."""
        told, false = self.weights @ judged.told, self.weights @ (judged.told & judged.false_blocks)
        return np.divide(false, told, out=np.zeros(len(GRID.settings)), where=told > 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of many corpora of one population: shares of them, unless they say otherwise."""

    population: str
    sessions: int
    at_risk: float
    """How many sessions at risk a choice was made on, on average."""
    recommended: float
    broken: float
    """The recommended setting blocks falsely more often than was promised, by the labels."""
    any_wrong: float
    """A setting was let through that does, recommended or not."""
    truly_broken: float
    """The recommended setting does so by what the loops truly are."""
    saved: float | None
    """What is saved on average, of what the best setting would save that keeps the promise; None where none does."""
    held_out: tuple[float, float]
    """Mean and standard error of how far the held-out rate of false blocks is above the exact one."""
    in_sample: tuple[float, float]
    """The same of the rate in the sessions that the choice was made on."""
    held_out_saved: tuple[float, float]
    """The same of what is saved in the held-out sessions, as a share of the exact figure."""


@dataclass(frozen=True, slots=True, eq=False)
class Corpora:
    """Corpora drawn from a population, each split into the sessions to choose on and those held out."""

    chosen_on: Floats
    """Corpora x sessions of the pool: how often each is in it."""
    held_out: Floats
    picks: Ints
    """The setting that is recommended for each corpus, -1 for none."""
    passed: Bools
    """Corpora x settings: for which the promise is made."""


def draw(
    population: Population, sessions: int, corpora: int, demand: Demand, *, seed: int, holdout: float = 0.3
) -> Corpora:
    """Draw corpora of ``sessions`` sessions each, and choose by all but the held-out part of each."""
    random = np.random.default_rng(seed)
    newer = round(sessions * holdout)
    older = random.multinomial(sessions - newer, population.weights, size=corpora).astype(np.float64)
    held = random.multinomial(newer, population.weights, size=corpora).astype(np.float64)
    judged = population.pool.by_rules
    told = np.rint(older @ judged.told).astype(np.int64)
    false_blocks = np.rint(older @ (judged.told & judged.false_blocks)).astype(np.int64)
    saved, warnings = older @ judged.saved, np.rint(older @ judged.warnings).astype(np.int64)
    passed = passing(false_blocks, told, demand)
    picks = best(passed, saved, false_blocks, Preferences(changes=CHANGES, warnings=warnings, strictness=STRICTNESS))
    return Corpora(older, held, picks, passed)


def outcome(population: Population, sessions: int, corpora: int, demand: Demand, *, seed: int) -> Outcome:
    """Draw corpora, choose from each as the command does, and compare with what is true."""
    drawn, pool = draw(population, sessions, corpora, demand, seed=seed), population.pool
    rates, true = population.rates(pool.by_rules), population.rates(pool.by_truth)
    picks, wrong = drawn.picks, rates > demand.max_rate
    there = picks >= 0
    gains = population.weights @ pool.by_rules.saved
    eligible = np.zeros(len(gains), dtype=bool)
    eligible[[each for chain in demand.chains for each in chain.candidates]] = True
    most = float(gains[eligible & ~wrong].max(initial=0.0))
    good = there & ~wrong[picks]
    return Outcome(
        population.name,
        sessions,
        float((drawn.chosen_on @ pool.by_rules.at_risk).mean()),
        float(there.mean()),
        float((there & wrong[picks]).mean()),
        float((drawn.passed & wrong).any(axis=1).mean()),
        float((there & (true[picks] > demand.max_rate)).mean()),
        float(np.where(good, gains[picks], 0).mean()) / most if most else None,
        _apart(_rate_of_picks(drawn.held_out, pool.by_rules, picks), rates[picks]),
        _apart(_rate_of_picks(drawn.chosen_on, pool.by_rules, picks), rates[picks]),
        _apart(_saved_of_picks(drawn.held_out, pool.by_rules, picks, gains), np.ones(corpora)),
    )


def sessions_of(weights: Floats, pool: Pool, start: int) -> Sessions:
    """Return the sessions of a corpus as the command would have them, one after the other in time."""
    profiles: list[SessionProfile] = []
    answers: list[SessionAnswers] = []
    for place, count in enumerate(np.rint(weights).astype(np.int64).tolist()):
        for copy in range(count):
            profile = replace(
                pool.profiles[place],
                session=f"{pool.profiles[place].session}#{copy}",
                started=float(start + len(profiles)),
            )
            profiles.append(profile)
            each = pool.by_rules.answers[place]
            answers.append(SessionAnswers(profile, each.units, each.at_risk))
    return Sessions(profiles, answers)


def demand_of(max_rate: float, confidence: float) -> Demand:
    """Return the demand on the chains of the grid."""
    return Demand(chains(GRID, IN_FORCE), max_rate, confidence)


def calibrated(
    name: str, pool: Pool, shares: Mapping[str, float], group: str, setting: Setting, rate: float
) -> Population:
    """Return a population in which a setting has exactly this rate by the labels, by the share of one ``group``."""
    number, judged = GRID.number(setting), pool.by_rules
    low, high = 0.0, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        found = Population(name, pool, pool.weights({**shares, group: middle}))
        if found.rates(judged)[number] < rate:
            low = middle
        else:
            high = middle
    return Population(name, pool, pool.weights({**shares, group: high}))


def populations(pool: Pool, max_rate: float) -> list[Population]:
    """Return the populations; the rates of some lie just above ``max_rate``."""
    clear = {"no loop": 0.3, "finishes early": 0.3, "stuck": 0.4}
    mostly = {"no loop": 0.2, "finishes early": 0.1, "stuck": 0.7}
    misleading = {"impatient": 0.04, "distracted": 0.04, "given up": 0.05, "cut, stuck": 0.04, "cut, working": 0.03}
    erring = {"no loop": 0.2, "finishes early": 0.25, "stuck": 0.35, **misleading}
    above = max_rate * 1.02
    lenient = replace(IN_FORCE, critical=30, breaker=60, warning=10)
    return [
        Population("clear", pool, pool.weights(clear)),
        calibrated("in force above", pool, mostly, "finishes late", IN_FORCE, above),
        calibrated("main chain above", pool, mostly, "finishes very late", lenient, above),
        Population("labels err", pool, pool.weights(erring)),
        calibrated("labels err, in force above", pool, erring, "finishes late", IN_FORCE, above),
        Population(
            "productive loops alone", pool, pool.weights({"no loop": 1, "finishes early": 1, "finishes late": 1})
        ),
        Population("no loops at all", pool, pool.weights({"no loop": 1})),
    ]


CHANGES: Final[Ints] = np.array([len(each.changes(IN_FORCE)) for each in GRID.settings], dtype=np.int64)
STRICTNESS: Final[Ints] = np.argsort(
    sorted(range(len(GRID.settings)), key=lambda number: leniency(GRID.settings[number]))
).astype(np.int64)


def _made(name: str, random: Random, turnout: Turnout | None, shortest: int, longest: int) -> Made:
    loops = []
    if turnout is not None:
        length = round(shortest * (longest / shortest) ** random.random())
        kinds = (*_LOOPS, Kind.INTERLEAVED) if turnout is Turnout.FINISHES else _LOOPS
        loops.append(Loop(random.choice(kinds), length, turnout))
    return make(name, random.getrandbits(32), random.randint(2, 12), loops, repeats=False)


def _profile(made: Made) -> SessionProfile:
    policy = IN_FORCE.policy(RULES)
    options = Options(policy, mode=Mode.OBSERVE, previews=False, profiles=True)
    replaying = SessionReplay(f"{made.name}.jsonl", made.started, options)
    for event in made.events:
        replaying.feed(event)
    profile = replaying.finish(SessionEnded(Where())).profile
    if profile is None:
        raise AssertionError("a profile was asked for")
    return profile


def _judged(swept: Sequence[SessionAnswers], judge: Judge) -> Judged:
    answers = []
    shape = (len(swept), len(GRID.settings))
    at_risk, (told, false) = np.zeros(len(swept), bool), np.zeros((2, *shape), bool)
    found = Judged([], at_risk, told, false, np.zeros(shape), np.zeros(shape, int))
    for place, each in enumerate(swept):
        units = [UnitAnswers(unit.incidents, unit.courses, unit.course, unit.warnings) for unit in each.units]
        copy = SessionAnswers(each.profile, units)
        copy.judge(judge)
        answers.append(copy)
        if not units:
            continue
        figures = copy.figures()
        found.at_risk[place] = copy.at_risk
        found.false_blocks[place] = figures[METRIC["false_blocks"]] > 0
        open_alone = (figures[METRIC["unknown_blocked"]] > 0) & ~found.false_blocks[place]
        found.told[place] = copy.at_risk & ~open_alone
        found.saved[place] = figures[METRIC["saved_usd"]]
        found.warnings[place] = figures[METRIC["warnings"]]
    found.answers = answers
    return found


def _labels(each: SessionAnswers, unit: int, incident: Incident, pool: Pool) -> tuple[str, Label, Label]:
    point = incident.evidence.orders[LOWEST_THRESHOLD - 1]
    ruled = Judge().label_at(each.profile, unit, incident, point).label
    name = pool.groups[int(each.profile.session[1:])]
    return name, ruled, pool.truth(each.profile, unit, incident)


def _rate_of_picks(weights: Floats, judged: Judged, picks: Ints) -> Floats:
    """Return for each corpus the share of its sessions at risk that the recommended setting blocks falsely."""
    told = weights * judged.told.T[picks]
    at_risk = told.sum(axis=1)
    false_blocks = (told * judged.false_blocks.T[picks]).sum(axis=1)
    usable = (picks >= 0) & (at_risk > 0)
    return np.where(usable, false_blocks / np.maximum(at_risk, 1), np.nan)


def _saved_of_picks(weights: Floats, judged: Judged, picks: Ints, gains: Floats) -> Floats:
    """Return for each corpus what the recommended setting saves a session, as a share of the exact figure."""
    mean = (weights * judged.saved.T[picks]).sum(axis=1) / weights.sum(axis=1)
    return np.divide(mean, gains[picks], out=np.full(len(picks), np.nan), where=picks >= 0)


def _apart(seen: Floats, exact: Floats) -> tuple[float, float]:
    """Return the mean difference and its standard error, over the corpora that have both; 0 where fewer than two."""
    difference = (seen - exact)[~np.isnan(seen)]
    if len(difference) < 2:
        return 0.0, 0.0
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
