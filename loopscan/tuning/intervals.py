"""Exact statements about a rate from counts: binomial tails, the bounds that invert them, sessions that are needed.

All of them are exact for every number of trials. The binomial tail is a regularised incomplete beta function, so
that its bounds are quantiles of beta distributions (Clopper and Pearson, 1934).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from loopscan.errors import UsageError
from loopscan.tuning.arrays import Floats, Ints


def fraction(value: float, name: str) -> float:
    """Return ``value``, which must lie between 0 and 1, both left out; else UsageError, which calls it ``name``."""
    if not 0 < value < 1:
        raise UsageError(f"{name} must lie between 0 and 1, both left out, and not be {value}")
    return value


def tails(successes: ArrayLike, trials: int | Ints, rate: float) -> Floats:
    """Return, for each number of successes f, how likely f or fewer are in so many trials: P(Bin(trials, rate) <= f).

    UsageError where f is below 0 or above the trials.
    """
    counts = _counts(successes, trials)
    fewer = np.minimum(counts, trials - 1)
    tail = special.betaincc(fewer + 1.0, np.maximum(trials - fewer, 1.0), rate)
    return np.where(counts == trials, 1.0, tail)


def upper_bounds(successes: ArrayLike, trials: int | Ints, level: float | Floats) -> Floats:
    """Return, for each number of successes, the one-sided exact upper bound of the rate, at one level or one each.

    It is the rate at which so few successes are just as likely as ``level``: the rate is higher in no more than that
    share of all samples. Where all trials, or none at all, were made, it is 1. UsageError as for ``tails``.
    """
    counts = _counts(successes, trials)
    bound = special.betainccinv(counts + 1.0, np.maximum(trials - counts, 1.0), level)
    return np.where(counts == trials, 1.0, bound)


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact two-sided interval of a rate; of no trials, it is (0, 1).

    UsageError where the counts or the confidence make no sense.
    """
    low, high = clopper_pearson_each(successes, trials, confidence)
    return float(low), float(high)


def clopper_pearson_each(successes: ArrayLike, trials: int | Ints, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Return the exact two-sided interval of each rate, the lower ends and the upper ends.

    Each of them is right in the share ``confidence`` of all samples by itself, not all of them together.
    """
    side = (1 - fraction(confidence, "the confidence")) / 2
    counts = _counts(successes, trials)
    # The lower end is what is left of the upper end of the failures' rate.
    return 1 - upper_bounds(trials - counts, trials, side), upper_bounds(counts, trials, side)


def lower_bounds(successes: ArrayLike, trials: int | Ints, level: float) -> Floats:
    """Return the one-sided exact lower bound of each rate: what :func:`upper_bounds` leaves of the failures' rate."""
    counts = _counts(successes, trials)
    return 1 - upper_bounds(trials - counts, trials, level)


def most_allowed(trials: int, max_rate: float, level: float) -> int:
    """Return the most successes whose tail at ``max_rate`` is no more than ``level``; -1 where 0 are too many."""
    low, high = -1, trials  # The tail of all trials is 1.
    while high - low > 1:
        middle = (low + high) // 2
        if tails(middle, trials, max_rate) <= level:
            low = middle
        else:
            high = middle
    return low


def sessions_needed(false_blocks: int, max_rate: float, delta: float) -> int:
    """Return the fewest sessions of which no more than so many false blocks rule out a rate above ``max_rate``.

    That is the least n with P(Bin(n, max_rate) <= false_blocks) <= delta, found by search in the exact tail, which
    falls as n grows. UsageError where the count is negative, or the rate or delta make no sense.
    """
    fraction(max_rate, "the highest rate")
    fraction(delta, "delta")
    if false_blocks < 0:
        raise UsageError(f"there cannot be {false_blocks} false blocks")
    low, high = false_blocks, 2 * false_blocks + 2
    while tails(false_blocks, high, max_rate) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if tails(false_blocks, middle, max_rate) <= delta:
            high = middle
        else:
            low = middle
    return high


def _counts(successes: ArrayLike, trials: int | Ints) -> Ints:
    counts = np.asarray(successes, dtype=np.int64)
    if np.any(counts < 0) or np.any(counts > trials):
        raise UsageError(f"counts must lie between 0 and {trials}, the number of trials")
    return counts
