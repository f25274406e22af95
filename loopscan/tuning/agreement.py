"""How well two labellings of the same incidents agree beyond chance: Cohen's kappa, with an interval by session.

Kappa is (observed - expected) / (1 - expected) agreement, where the expected one is that of two labellings with the
same frequencies that know nothing of each other (Cohen, 1960). The interval holds the middle share ``confidence`` of
the kappas of redrawn sessions. Of few sessions it is too narrow, as every interval of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from loopscan.tuning.arrays import Floats
from loopscan.tuning.intervals import fraction
from loopscan.tuning.redraws import redraws, sums

_ROUNDS = 2000


class Undefined(StrEnum):
    """Why there is no kappa, or no interval of it."""

    NO_PAIRS = "no pairs"
    """Nothing was labelled twice: neither agreement nor kappa."""
    ONE_CATEGORY = "one category"
    """Both labellings know the same single category: they agree, but chance would, too. No kappa."""
    ONE_SESSION = "one session"
    """All pairs come from one session, so that nothing can be redrawn. No interval."""
    NO_DISAGREEMENT = "no disagreement"
    """All pairs agree, and so do all that are redrawn: an interval from 1 to 1 would claim to be certain. None."""


@dataclass(frozen=True, slots=True)
class Kappa:
    """What is known about the agreement of two labellings."""

    pairs: int
    """Incidents with both labels."""
    sessions: int
    """Sessions with such incidents."""
    agreement: float | None
    """The share of pairs with the same label; None of no pairs."""
    value: float | None
    """Kappa: 1 is full agreement, 0 what chance gives."""
    interval: tuple[float, float] | None
    """What the kappas of redrawn sessions lie in; None for the reason in ``undefined``."""
    undefined: Undefined | None
    """Why kappa or its interval are missing; None where they are there."""


def kappa(pairs_by_cluster: Sequence[Sequence[tuple[str, str]]], confidence: float = 0.95, seed: int = 1) -> Kappa:
    """Return the agreement of two labellings, from pairs (label of one, label of the other), grouped by session.

    Sessions without pairs count for nothing. Rounds in which only one category comes up have no kappa and are left
    out of the interval. UsageError where the confidence makes no sense.
    """
    outside = (1 - fraction(confidence, "the confidence")) / 2
    clusters = [cluster for cluster in pairs_by_cluster if cluster]
    labels = sorted({label for cluster in clusters for pair in cluster for label in pair})
    if not labels:
        return Kappa(0, 0, None, None, None, Undefined.NO_PAIRS)
    place = {label: number for number, label in enumerate(labels)}
    tables = np.zeros((len(clusters), len(labels), len(labels)), dtype=np.int64)
    for table, cluster in zip(tables, clusters, strict=True):
        for one, other in cluster:
            table[place[one], place[other]] += 1
    whole = tables.sum(axis=0, dtype=np.float64)
    pairs, agreeing = int(whole.sum()), int(np.trace(whole))
    value = None if len(labels) == 1 else float(_kappas(whole[None])[0])
    interval = None
    undefined = _undefined(len(labels), len(clusters), pairs - agreeing)
    if undefined is None:
        drawn = sums(redraws(len(clusters), _ROUNDS, seed), tables.reshape(len(clusters), -1))
        low, high = np.nanquantile(_kappas(drawn.reshape(_ROUNDS, len(labels), len(labels))), [outside, 1 - outside])
        interval = float(low), float(high)
    return Kappa(pairs, len(clusters), agreeing / pairs, value, interval, undefined)


def _undefined(labels: int, clusters: int, disagreeing: int) -> Undefined | None:
    if labels == 1:
        return Undefined.ONE_CATEGORY
    if clusters == 1:
        return Undefined.ONE_SESSION
    return None if disagreeing else Undefined.NO_DISAGREEMENT


def _kappas(tables: Floats) -> Floats:
    """Return kappa of each table, not a number where it has but one category."""
    pairs = tables.sum(axis=(1, 2))
    agreeing = tables.diagonal(axis1=1, axis2=2).sum(axis=1)
    # Counts until the end, so that one category is told by an exact 0.
    by_chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    room = pairs * pairs - by_chance
    values = np.full(len(tables), np.nan)
    np.divide(pairs * agreeing - by_chance, room, out=values, where=room > 0)
    return values
