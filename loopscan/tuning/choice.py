"""Picking one setting: the one that saves most among those the promise is made for, or a reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from loopscan.errors import UsageError
from loopscan.tuning.arrays import Bools, Floats, Ints
from loopscan.tuning.intervals import sessions_needed, tails
from loopscan.tuning.promise import Promise

_SAME = 1e-9
"""Savings that differ by less, relative to the larger, are the same: sums depend on the order of their parts."""


class Reason(StrEnum):
    """Why a setting is recommended, or none is."""

    RECOMMENDED = "recommended"
    TOO_FEW_SESSIONS = "too few sessions"
    """Settings that save something have few enough false blocks, but too few sessions show it."""
    FALSE_BLOCKS_TOO_FREQUENT = "false blocks too frequent"
    """What saves something surely blocks falsely too often: more sessions of this kind would not help."""
    NOTHING_TO_SAVE = "nothing to save"
    """No setting that may be recommended would have caught anything stuck."""
    NO_INCIDENTS = "no incidents"
    """No session is at risk: nothing is judged stuck or productive."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The setting that is recommended, or none, and why."""

    index: int | None
    reason: Reason
    needed: int | None = None
    """Of too few sessions: how many sessions at risk would do, if those to come bring no further false block."""
    more: int | None = None
    """How many of them are missing; never fewer than 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """What settles ties, the fewest first and in this order, one entry a setting."""

    changes: Ints
    """How many settings must be changed from those in force."""
    warnings: Ints
    """How often it would warn."""
    strictness: Ints
    """Its place in an order given a priori, the most lenient at 0."""


def choose(promise: Promise, saved: Floats, preferences: Preferences) -> Choice:
    """Return the setting that saves most among those the promise is made for.

    ``saved`` is what each setting saves, in whatever unit; nothing is recommended that saves nothing. Ties go to the
    fewest sessions with a false block, then as ``preferences`` say. UsageError where an array has not one entry a
    setting, or ``saved`` is not finite.
    """
    _fits(len(promise.passed), saved, preferences.changes, preferences.warnings, preferences.strictness)
    if not np.isfinite(saved).all():
        raise UsageError("what a setting saves must be a finite number")
    index = int(best(promise.passed, saved, promise.false_blocks, preferences))
    if index >= 0:
        return Choice(index, Reason.RECOMMENDED)
    if promise.at_risk.size and not promise.at_risk.any():
        return Choice(None, Reason.NO_INCIDENTS)
    return _refused(promise, saved)


def choose_by_cost(
    false_blocks: Ints,
    missed: Ints,
    stuck: int,
    saved: Floats,
    at_risk: int,
    cost_ratio: float,
    preferences: Preferences,
) -> Choice:
    """Return the setting with the lowest ``missed + cost_ratio * false_blocks``. Nothing is promised.

    Both are counted in sessions at risk: ``missed`` are those in which the setting does not step into every stuck
    incident, ``false_blocks`` those in which it steps into a productive one; ``cost_ratio`` says how many missed
    sessions are as bad as one false block. Never stepping in misses all ``stuck`` sessions and costs just that: a
    setting is recommended only if it costs less and saves something. Ties as in ``choose``, the most saved first.
    UsageError where the arrays have not one entry a setting, or the ratio is negative or not finite.
    """
    _fits(len(false_blocks), missed, saved, preferences.changes, preferences.warnings, preferences.strictness)
    if not 0 <= cost_ratio < np.inf:
        raise UsageError(f"the cost of a false block must be 0 or more missed sessions, and not {cost_ratio}")
    index = int(cheapest(false_blocks, missed, np.asarray(stuck), saved, cost_ratio, preferences))
    if index >= 0:
        return Choice(index, Reason.RECOMMENDED)
    if not at_risk:
        return Choice(None, Reason.NO_INCIDENTS)
    return Choice(None, Reason.FALSE_BLOCKS_TOO_FREQUENT if (saved > 0).any() else Reason.NOTHING_TO_SAVE)


def best(allowed: Bools, saved: Floats, false_blocks: Ints, preferences: Preferences) -> Ints:
    """Return the allowed setting that saves most, -1 where none saves anything, for any number of corpora at once.

    The first three are ... x settings; what is returned has an entry a corpus. Ties as in ``choose``.
    """
    gain = np.where(allowed, saved, 0.0)
    most = gain.max(axis=-1, keepdims=True, initial=0.0)
    left = (gain > 0) & (gain >= most * (1 - _SAME))
    for key in (false_blocks, preferences.changes, preferences.warnings, preferences.strictness):
        every = np.broadcast_to(key.astype(np.int64, copy=False), left.shape)
        left &= every == every.min(axis=-1, keepdims=True, where=left, initial=np.iinfo(np.int64).max)
    return np.where(left.any(axis=-1), _first(left), -1)


def cheapest(
    false_blocks: Ints, missed: Ints, stuck: Ints, saved: Floats, cost_ratio: float, preferences: Preferences
) -> Ints:
    """Return what ``choose_by_cost`` picks, -1 for none, for any number of corpora at once; arrays as in ``best``."""
    cost = missed + float(cost_ratio) * false_blocks
    useful = (saved > 0) & (cost < stuck[..., None] * (1 - _SAME))
    least = cost.min(axis=-1, keepdims=True, where=useful, initial=np.inf)
    return best(useful & (cost <= least * (1 + _SAME)), saved, false_blocks, preferences)


def pareto_front(false_blocks: Ints, saved: Floats) -> Ints:
    """Return the settings that no other one beats: none saves more with no more false blocks, or as much with fewer.

    Fewest false blocks first, equal ones in the order they came in. All settings with the same two numbers are in it.
    """
    if not false_blocks.size:
        return np.zeros(0, dtype=np.int64)
    counts, group = np.unique(false_blocks, return_inverse=True)
    most = np.full(len(counts), -np.inf)
    np.maximum.at(most, group, saved)
    before = np.concatenate(([-np.inf], np.maximum.accumulate(most)[:-1]))
    front = np.flatnonzero((saved == most[group]) & (saved > before[group]))
    return front[np.argsort(false_blocks[front], kind="stable")]


def _refused(promise: Promise, saved: Floats) -> Choice:
    """Say why nothing is let through that saves something.

    With fewer sessions than the promise takes without any false block, that is the reason, whatever they tell. A
    chain would have had to pass up to the first setting in it that saves something. The counts on the way say how
    many sessions that takes, and whether more of them could help: not if even so many false blocks would be rare at
    the highest rate.
    """
    demand = promise.demand
    ways: list[tuple[int, int]] = []
    easiest = max((demand.level(chain) for chain in demand.chains), default=1.0)
    enough = not demand.chains or promise.at_risk.max(initial=0) >= sessions_needed(0, demand.max_rate, easiest)
    saving = False
    for chain in demand.chains:
        useful = next((place for place, each in enumerate(chain.candidates) if saved[each] > 0), None)
        if useful is None:
            continue
        saving = True
        prefix = chain.candidates[: useful + 1]
        unlikely = (1 - demand.confidence) / (len(prefix) * len(demand.chains))
        if enough and any(_as_many(promise, each) <= unlikely for each in prefix):
            continue
        needed = [
            sessions_needed(int(promise.false_blocks[each]), demand.max_rate, demand.level(chain)) for each in prefix
        ]
        missing = [each - int(promise.at_risk[place]) for each, place in zip(needed, prefix, strict=True)]
        ways.append((max(missing), max(needed)))
    if ways:
        more, needed_in_all = min(ways)
        return Choice(None, Reason.TOO_FEW_SESSIONS, needed_in_all, more)
    return Choice(None, Reason.FALSE_BLOCKS_TOO_FREQUENT if saving else Reason.NOTHING_TO_SAVE)


def _as_many(promise: Promise, setting: int) -> float:
    """Return how likely as many false blocks as a setting makes, or more, would be at the highest rate."""
    count = int(promise.false_blocks[setting])
    fewer = tails(count - 1, int(promise.at_risk[setting]), promise.demand.max_rate) if count else 0.0
    return 1 - float(fewer)


def _first(left: Bools) -> Ints:
    """Return the first setting left of each corpus; 0 where there are none at all."""
    return left.argmax(axis=-1) if left.shape[-1] else np.zeros(left.shape[:-1], dtype=np.int64)


def _fits(settings: int, *arrays: Ints | Floats) -> None:
    if any(array.shape != (settings,) for array in arrays):
        raise UsageError(f"there must be one entry for each of the {settings} settings")
