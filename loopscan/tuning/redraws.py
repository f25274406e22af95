"""Redrawing whole sessions: how often each one comes up, and what is summed over them.

Incidents of one session have one cause, so that a bootstrap of incidents would be too sure of itself: it is the
sessions that are drawn again, with replacement, each with all it holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopscan.errors import UsageError
from loopscan.tuning.arrays import Floats

_BLOCK = 1 << 19  # cells that are converted to floats at a time: 4 MB


def redraws(sessions: int, rounds: int, seed: int) -> Floats:
    """Return how often each session comes up in each round: an array of rounds x sessions, each row summing to them.

    The same seed gives the same rounds. UsageError where there is no session or no round.
    """
    if sessions < 1 or rounds < 1:
        raise UsageError("redrawing needs at least one session and one round")
    drawn = np.random.default_rng(seed).multinomial(sessions, np.full(sessions, 1 / sessions), size=rounds)
    return drawn.astype(np.float64)


def sums(
    weights: Floats, matrix: NDArray[np.bool_] | NDArray[np.int64] | NDArray[np.float32] | NDArray[np.float64]
) -> Floats:
    """Return the sums over the redrawn sessions: rounds x sessions times sessions x columns, by blocks of sessions.

    Only a block of ``matrix`` is ever converted, so that a matrix of truth values takes no more room than it has.
    """
    sessions, columns = matrix.shape
    rows = max(1, _BLOCK // max(1, columns))
    total = np.zeros((weights.shape[0], columns))
    for start in range(0, sessions, rows):
        total += weights[:, start : start + rows] @ matrix[start : start + rows].astype(np.float64)
    return total
