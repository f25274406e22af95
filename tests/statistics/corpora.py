"""Populations of sessions whose true rates are known, and what choosing from random corpora of them comes to.

Each population is a list of sessions; a corpus is drawn from it with replacement. So the true rate of a setting is
the share of the population's sessions in which it blocks falsely, exactly, and whether a choice keeps the promise is
known and not estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from loopscan.tuning.arrays import Bools, Floats, Ints
from loopscan.tuning.choice import Preferences, best
from loopscan.tuning.intervals import most_allowed
from loopscan.tuning.promise import Chain, Demand, passing, shared

SESSIONS = 1000
"""In a population: rates are whole thousandths."""


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Sessions at risk x settings: where a false block is made, and what is saved."""

    name: str
    false_blocks: Bools
    saved: Floats
    chains: tuple[Chain, ...]

    @property
    def rates(self) -> Floats:
        """The true rate of each setting."""
        return self.false_blocks.mean(axis=0)

    @property
    def preferences(self) -> Preferences:
        """What settles ties: the first setting is the most lenient."""
        none = np.zeros(self.saved.shape[1], dtype=np.int64)
        return Preferences(none, none, np.arange(len(none)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of many corpora of one population: shares of them, but for ``corpora``."""

    population: str
    sessions: int
    corpora: int
    broken: float
    """The recommended setting blocks falsely more often than was promised."""
    any_wrong: float
    """A setting was let through that does, recommended or not."""
    recommended: float
    saved: float | None
    """What is saved on average, of what the best setting would save that keeps the promise; None where none does."""
    lowest_broken: float
    """The naive choice: the lowest observed rate of the settings that save something, whatever that rate is."""
    observed_broken: float
    """The naive choice: what saves most with an observed rate no higher than is to be promised."""
    each_broken: float
    """The naive choice: what saves most and passes an exact test of its own at all of delta."""


@cache
def populations(max_rate: float) -> tuple[Population, ...]:
    """Return populations around ``max_rate``, the same ones every time."""
    draw = np.random.default_rng(20260101)
    over = round(SESSIONS * max_rate) + 1
    rising = [round(SESSIONS * max_rate * part) for part in (0, 0.1, 0.2, 0.3, 0.5, 0.8, 1)] + [
        over,
        2 * over,
        4 * over,
    ]
    later = [round(SESSIONS * max_rate * part) for part in (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1)] + [
        over,
        2 * over,
        4 * over,
    ]
    clean = [0] * 8
    ten, forty = range(10), range(40)
    threes = [range(start, start + 3) for start in range(4, 61, 3)]
    return (
        Population("a ladder of rates, one chain", _nested(rising), _growing(10, draw), shared(ten)),
        Population("ladders, four chains", _ladders(later, 4, draw), _growing(40, draw), shared(*_rows(4, 10))),
        Population("all just above, nested", _nested([over] * 40), _growing(40, draw), shared(forty)),
        Population("all just above, correlated", _alike(over, 40, draw), _growing(40, draw), shared(*_rows(8, 5))),
        Population("all just above, independent", _mixed([over] * 40, draw), _growing(40, draw), shared(forty)),
        Population(
            "all just above, 20 chains", _mixed([over] * 61, draw), _growing(61, draw), shared(ten[:4], *threes)
        ),
        Population(
            "main chain good, 19 others above",
            _mixed([over // 5] * 4 + [over] * 57, draw),
            _growing(61, draw),
            shared(ten[:4], *threes),
        ),
        Population(
            "good ones behind a bad one", _mixed([2 * over, 0, 0, 0], draw), _growing(4, draw), shared(range(4))
        ),
        Population("everything productive", _nested(rising), np.zeros((SESSIONS, 10)), shared(ten)),
        Population("everything stuck", _nested(clean), _growing(8, draw, share=1), shared(range(8))),
        Population("nothing wrong at all", _nested(clean), np.zeros((SESSIONS, 8)), shared(range(8))),
    )


def simulate(population: Population, sessions: int, corpora: int, max_rate: float, confidence: float) -> Outcome:
    """Draw corpora, choose from each in every way, and compare with the truth."""
    weights = _drawn(sessions, corpora)
    false_blocks = (weights @ population.false_blocks.astype(np.float64)).astype(np.int64)
    saved = weights @ population.saved
    demand = Demand(population.chains, max_rate, confidence)
    passed = passing(false_blocks, sessions, demand)
    wrong = population.rates > max_rate
    keep = population.preferences

    def pick(allowed: Bools) -> Ints:
        return best(allowed, saved, false_blocks, keep)

    def broken(picks: Ints) -> float:
        return float(np.mean((picks >= 0) & wrong[picks]))

    lowest = np.where(saved > 0, false_blocks, sessions + 1)
    chosen = pick(passed)
    gains = population.saved.mean(axis=0)
    most = gains[~wrong].max(initial=0.0)
    return Outcome(
        population.name,
        sessions,
        corpora,
        broken(chosen),
        float(np.mean((passed & wrong).any(axis=1))),
        float(np.mean(chosen >= 0)),
        float(np.mean(np.where((chosen >= 0) & ~wrong[chosen], gains[chosen], 0)) / most) if most else None,
        broken(pick(lowest == lowest.min(axis=1, keepdims=True))),
        broken(pick(false_blocks <= max_rate * sessions)),
        broken(pick(false_blocks <= most_allowed(sessions, max_rate, 1 - confidence))),
    )


@lru_cache(maxsize=5)
def _drawn(sessions: int, corpora: int) -> Floats:
    """Return how often each session of a population is in each corpus, the same for every population."""
    picked = np.random.default_rng([sessions, corpora]).integers(SESSIONS, size=(corpora, sessions))
    flat = (picked + SESSIONS * np.arange(corpora)[:, None]).ravel()
    return np.bincount(flat, minlength=corpora * SESSIONS).reshape(corpora, SESSIONS).astype(np.float64)


def _rows(chains: int, length: int) -> list[range]:
    return [range(start, start + length) for start in range(0, chains * length, length)]


def _nested(counts: Sequence[int]) -> Bools:
    """A session that a setting blocks falsely is blocked by all that block more."""
    return np.arange(SESSIONS)[:, None] < np.array(counts)


def _mixed(counts: Sequence[int], draw: np.random.Generator) -> Bools:
    """Each setting blocks sessions of its own choosing, exactly as many as it is to."""
    return draw.permuted(_nested(counts), axis=0)


def _ladders(counts: Sequence[int], chains: int, draw: np.random.Generator) -> Bools:
    """Nested within each chain, independent between them."""
    return np.hstack([_nested(counts)[draw.permutation(SESSIONS)] for _ in range(chains)])


def _alike(count: int, settings: int, draw: np.random.Generator) -> Bools:
    """Half of the blocked sessions are the same for all settings, half are each one's own."""
    same = count // 2
    return np.vstack(
        [np.ones((same, settings), dtype=np.bool_), draw.permuted(_nested([count - same] * settings)[:-same], axis=0)]
    )


def _growing(settings: int, draw: np.random.Generator, share: float = 0.3) -> Floats:
    """Return what is saved in the share of sessions that are stuck: the more, the stricter the setting is."""
    stuck = draw.random((SESSIONS, 1)) < share
    return stuck * draw.lognormal(size=(SESSIONS, 1)) * np.linspace(1, 2, settings)
