"""What a run cost from one call on: sums that are made once, since many settings ask for them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from loopscan.tuning.evidence import NEVER, Activity
from loopscan.tuning.incidents import Incidents

#: Returns the dollars that a response cost, from its model and its usage as recorded.
Pricing: TypeAlias = Callable[[str | None, Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent in a part of a run."""

    calls: int
    responses: int
    tokens: tuple[float, ...]
    """Input, output, cache read, cache write, and all together, as recorded."""
    usd: float
    seconds: float


class Spending:
    """What the runs of one unit cost."""

    def __init__(self, incidents: Incidents, pricing: Pricing) -> None:
        self._activity, self._pricing = incidents.activity, pricing
        self._calls: dict[str, list[int]] = {}
        for (run, _), at in incidents.calls.items():
            self._calls.setdefault(run, []).append(at.order)
        self._runs: dict[str, _Run] = {}

    def since(self, run: str, first: int, until: int) -> Spent:
        """Return what came of a run from the call ``first`` on, before ``until``; the response that asked is paid."""
        known = self._runs.get(run)
        if known is None:
            known = self._runs[run] = _Run(self._activity[run], sorted(self._calls.get(run, ())), self._pricing)
        return known.since(first, until)


class _Run:
    def __init__(self, activity: Activity, calls: list[int], pricing: Pricing) -> None:
        self._calls = calls
        self._asked = [response.order for response in activity.responses]
        usages = [response.usage or (0, 0, 0, 0, 0, 0.0) for response in activity.responses]
        self._tokens = [[0.0, *accumulate(float(usage[kind]) for usage in usages)] for kind in range(5)]
        priced = (
            pricing(response.model, response.usage) if response.usage is not None else 0.0
            for response in activity.responses
        )
        self._usd = [0.0, *accumulate(priced)]
        self._said = [response.time for response in activity.responses]
        known = [(order, time) for order, time in zip(self._asked, self._said, strict=True) if time is not None]
        times = sorted([*activity.times, *known])
        self._orders = [order for order, _ in times]
        self._latest = list(accumulate((time for _, time in times), max))
        self._closed = activity.closed

    def since(self, first: int, until: int) -> Spent:
        start, end = bisect_right(self._asked, first), bisect_left(self._asked, until)
        end = max(start, end)
        tokens = tuple(sums[end] - sums[start] for sums in self._tokens)
        calls = bisect_left(self._calls, until) - bisect_left(self._calls, first)
        return Spent(calls, end - start, tokens, self._usd[end] - self._usd[start], self._seconds(start, until))

    def _seconds(self, start: int, until: int) -> float:
        begun = self._said[start - 1] if start else None
        place = bisect_left(self._orders, until)
        over = self._latest[place - 1] if place else None
        if until >= NEVER and self._closed is not None:
            over = self._closed if over is None else max(over, self._closed)
        return max(0.0, over - begun) if begun is not None and over is not None else 0.0
