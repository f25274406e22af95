"""How much a choice hangs on the sessions at hand: they are redrawn, and the whole choice is made again each time.

This says nothing about the promise, which holds as it is. It says whether other sessions of the same source would
have led to the same setting. Redrawn sessions hold copies: a setting that is only just let through often is not then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopscan.tuning.arrays import Bools, Floats, Ints
from loopscan.tuning.choice import Preferences, best, cheapest
from loopscan.tuning.promise import Demand, passing
from loopscan.tuning.redraws import redraws, sums

ROUNDS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """How often each setting was chosen from redrawn sessions."""

    rounds: int
    """How often the sessions were redrawn; 0 where there are none."""
    chosen: Ints
    """In how many rounds each setting was chosen."""
    none: int
    """In how many rounds none was."""

    def share(self, index: int | None) -> float | None:
        """Return in which share of the rounds a setting, or with None none, was chosen; None of no rounds."""
        if not self.rounds:
            return None
        return (self.none if index is None else int(self.chosen[index])) / self.rounds


def stability(
    false_blocks: Bools,
    saved: NDArray[np.float32] | Floats,
    demand: Demand,
    preferences: Preferences,
    rounds: int = ROUNDS,
    seed: int = 1,
    untold: Bools | None = None,
) -> Stability:
    """Return how often ``choose`` picks each setting when the sessions at risk are redrawn, the same for each seed.

    ``false_blocks`` and ``saved`` are sessions at risk x settings, and so is ``untold``: the sessions that tell
    nothing of a setting. What settles ties is not redrawn, apart from the
    false blocks. UsageError as for ``promised``.
    """
    sessions, settings = false_blocks.shape
    if not sessions:
        return Stability(0, np.zeros(settings, dtype=np.int64), 0)
    weights = redraws(sessions, rounds, seed)
    counts = _counted(weights, false_blocks)
    at_risk = sessions if untold is None else sessions - _counted(weights, untold)
    return _tally(best(passing(counts, at_risk, demand), sums(weights, saved), counts, preferences), settings)


def stability_by_cost(
    false_blocks: Bools,
    missed: Bools,
    stuck: Bools,
    saved: NDArray[np.float32] | Floats,
    cost_ratio: float,
    preferences: Preferences,
    rounds: int = ROUNDS,
    seed: int = 1,
) -> Stability:
    """Return how often ``choose_by_cost`` picks each setting when the sessions at risk are redrawn.

    As ``stability``; ``missed`` is sessions at risk x settings, ``stuck`` says which sessions have a stuck incident.
    """
    sessions, settings = false_blocks.shape
    if not sessions:
        return Stability(0, np.zeros(settings, dtype=np.int64), 0)
    weights = redraws(sessions, rounds, seed)
    counts, lost = _counted(weights, false_blocks), _counted(weights, missed)
    total = _counted(weights, stuck[:, None])[:, 0]
    return _tally(cheapest(counts, lost, total, sums(weights, saved), cost_ratio, preferences), settings)


def _counted(weights: Floats, matrix: Bools) -> Ints:
    # Sums of whole numbers, exact in any order: float64 holds them up to 2**53.
    return sums(weights, matrix).astype(np.int64)


def _tally(picks: Ints, settings: int) -> Stability:
    times = np.bincount(picks + 1, minlength=settings + 1)
    return Stability(len(picks), times[1:], int(times[0]))
