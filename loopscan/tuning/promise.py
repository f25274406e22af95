"""The promise about false blocks: which settings may be let through, at a confidence that holds for all of them.

What is promised: with probability ``confidence``, *no* setting that is let through has a rate of false blocks above
``max_rate``. One may therefore pick among them as one likes, by the same sessions: whatever is picked keeps the
promise.

How (Learn then Test; Angelopoulos, Bates, Candès, Jordan and Lei, 2021, with fixed sequences of tests):

* For each setting the hypothesis is that its rate is above ``max_rate``. Its p-value is how likely it would be, at
  exactly that rate, to see so few sessions with a false block among the sessions at risk: a binomial tail, exact for
  every number of sessions. There is no approximation that a small corpus could break.
* The settings are ordered in chains, the most lenient first, before anybody looks at the data. A chain is tested in
  its order, each time at the chain's whole share of ``delta = 1 - confidence``, and stops at the first setting that
  does not pass. What comes behind it is not let through, whatever its own counts. To let a wrong setting through, a
  chain must do so at the first wrong one it holds, which happens no more often than its share of delta. So the many
  settings of one chain cost nothing, and several chains cost the sum of their shares, which is no more than delta.

Why not something else:

* The setting with the fewest false blocks, or every setting that passes a test of its own: among thousands some look
  harmless by chance, and those are the ones picked. ``python -m benchmarks.promise`` shows how often that goes wrong.
* Bonferroni over the grid is right, but tests each of thousands of settings at delta / thousands: at 5 % and 95 %,
  2,000 settings need 207 sessions without a single false block where one chain needs 59.
* Conformal risk control bounds the rate that is expected over all corpora that might have been recorded, not the
  rate that comes of this one, and needs a rate that can only rise along the settings. A stricter setting blocks
  earlier and so hides later blocks: its false blocks may well become fewer.

What is assumed:

* The sessions at risk are drawn independently from the same source as those to come, so that their order says
  nothing. Other tasks, models or tools make another source, and copies of one session are one session.
* The labels are right. What is labelled ``productive`` and ``stuck`` wrongly is counted wrongly.
* Incidents labelled ``unknown`` are not counted, and sessions with no others are not at risk: the rate is one among
  sessions that can be judged.
* Chains and shares are given a priori. Chains made by looking at the same sessions void the promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscan.errors import UsageError
from loopscan.tuning.arrays import Bools, Floats, Ints
from loopscan.tuning.intervals import fraction, most_allowed, sessions_needed, tails, upper_bounds


@dataclass(frozen=True, slots=True)
class Chain:
    """Settings in the order in which they are tested, and what part of the error the chain may use up."""

    candidates: tuple[int, ...]
    """Numbers of settings, the most lenient first."""
    share: float
    """The part of delta at which each of them is tested: above 0, no more than 1."""


def shared(main: Sequence[int], *others: Sequence[int]) -> tuple[Chain, ...]:
    """Return chains with their shares: all for ``main`` alone; else half for it, and the rest in equal parts."""
    if not others:
        return (Chain(tuple(main), 1.0),)
    return Chain(tuple(main), 0.5), *(Chain(tuple(other), 0.5 / len(others)) for other in others)


@dataclass(frozen=True, slots=True)
class Demand:
    """What is to be promised, and of which chains; UsageError where that makes no sense."""

    chains: tuple[Chain, ...]
    max_rate: float = 0.05
    """The highest rate of false blocks."""
    confidence: float = 0.95
    """How likely the promise is to hold, at least."""

    def __post_init__(self) -> None:
        fraction(self.max_rate, "the highest rate of false blocks")
        fraction(self.confidence, "the confidence")
        if any(chain.share <= 0 for chain in self.chains):
            raise UsageError("a chain must have a share of the error above 0")
        if math.fsum(chain.share for chain in self.chains) > 1 + 1e-9:
            raise UsageError("the shares of the chains sum to more than 1: the promise would not hold")
        if any(len(set(chain.candidates)) < len(chain.candidates) for chain in self.chains):
            raise UsageError("a chain names a setting twice")

    def level(self, chain: Chain) -> float:
        """Return the p-value up to which settings of a chain pass."""
        return chain.share * (1 - self.confidence)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a chain stopped, and what it would have taken to go on."""

    chain: int
    candidate: int
    """The setting that did not pass."""
    false_blocks: int
    """Sessions in which it blocks falsely."""
    needed: int
    """How many sessions at risk would have let it pass with no more false blocks than these."""
    more: int
    """How many of them are missing. Fewer than that cannot be enough."""


@dataclass(frozen=True, slots=True, eq=False)
class Promise:
    """What became of each setting; arrays have one entry a setting."""

    demand: Demand
    at_risk: Ints
    """How many sessions tell whether the setting blocks falsely; the same for all unless it was said otherwise."""
    false_blocks: Ints
    """Sessions at risk in which the setting blocks falsely."""
    passed: Bools
    """Whether the promise is made for it."""
    p_values: Floats
    """How likely so few false blocks are at exactly the highest rate."""
    bounds: Floats
    """The exact upper bound of its rate, at the level it is tested at: the largest of its chains, all of delta where
    it is in none. It is a statement about this setting alone; about whichever one is picked, only the highest rate
    of the demand is promised."""
    stops: tuple[Stop | None, ...]
    """Where each chain stopped; None for a chain that passed to its end."""


def promised(false_blocks: Ints, at_risk: int | Ints, demand: Demand) -> Promise:
    """Return which settings the promise is made for, from the sessions with a false block of each setting.

    ``at_risk`` is how many sessions there are in all, or for each setting how many tell something of it: those are
    another sample for each, and each test is exact for its own.

    UsageError where a count is below 0 or above ``at_risk``, or a chain names a setting that has no count.
    """
    p_values = tails(false_blocks, at_risk, demand.max_rate)
    passed = passing(false_blocks, at_risk, demand)
    levels = np.full(len(false_blocks), 0.0)
    for chain in demand.chains:
        places = list(chain.candidates)
        levels[places] = np.maximum(levels[places], demand.level(chain))
    levels[levels == 0] = 1 - demand.confidence
    return Promise(
        demand,
        np.broadcast_to(np.asarray(at_risk, dtype=np.int64), false_blocks.shape),
        false_blocks,
        passed,
        p_values,
        upper_bounds(false_blocks, at_risk, levels),
        tuple(_stop(number, false_blocks, at_risk, demand) for number in range(len(demand.chains))),
    )


def passing(false_blocks: Ints, at_risk: int | Ints, demand: Demand) -> Bools:
    """Return which settings pass, for any number of corpora at once.

    ``false_blocks`` is ... x settings, of corpora with ``at_risk`` sessions each, or as many for each corpus and
    setting; what is returned is shaped like it. UsageError as for ``promised``.
    """
    if np.any(false_blocks < 0) or np.any(false_blocks > at_risk):
        raise UsageError(f"false blocks must be counted in sessions at risk, of which there are {at_risk}")
    passed = np.zeros(false_blocks.shape, dtype=np.bool_)
    for chain in demand.chains:
        places = list(chain.candidates)
        if any(not 0 <= place < false_blocks.shape[-1] for place in places):
            raise UsageError("a chain names a setting that there are no counts of")
        some = false_blocks[..., places]
        if isinstance(at_risk, int):
            passes = some <= most_allowed(at_risk, demand.max_rate, demand.level(chain))
        else:
            trials = np.broadcast_to(at_risk, false_blocks.shape)[..., places]
            passes = tails(some, trials, demand.max_rate) <= demand.level(chain)
        passed[..., places] |= np.logical_and.accumulate(passes, axis=-1)
    return passed


def _stop(number: int, false_blocks: Ints, at_risk: int | Ints, demand: Demand) -> Stop | None:
    chain = demand.chains[number]
    trials = np.broadcast_to(at_risk, false_blocks.shape)
    for candidate in chain.candidates:
        count, sessions = int(false_blocks[candidate]), int(trials[candidate])
        if count > most_allowed(sessions, demand.max_rate, demand.level(chain)):
            needed = sessions_needed(count, demand.max_rate, demand.level(chain))
            return Stop(number, candidate, count, needed, needed - sessions)
    return None
