"""What a run did around an incident: the facts that labels are made of, and what it cost.

Places in a unit are orders: the number of a call among all calls of the unit. What happens between two calls has the
order of the later one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from loopscan.events import Ending
from loopscan.tuning.steps import DELIVERED, SUCCEEDED, WROTE


class End(StrEnum):
    """How what followed an incident ended."""

    COMPLETED = "completed"
    """The model was done."""
    ABORTED = "aborted"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    """The model's call failed."""
    LENGTH = "length"
    """The context or the answer was full."""
    USER = "user"
    """The user stepped in: with a message into the run, or with the next one while this was not done."""
    OPEN = "open"
    """The record ends there, or does not tell."""


#: Words in a stop reason that say how a run broke off.
_STOPS = (
    (End.TIMED_OUT, ("timeout", "timed_out", "timedout")),
    (End.ABORTED, ("abort", "cancel", "interrupt")),
    (End.LENGTH, ("length", "max_tokens", "max_output", "context_window")),
    (End.FAILED, ("error", "fail")),
)


#: An order that no call has.
_NEVER: Final = 1 << 62


@dataclass(slots=True)
class Response:
    """One message of the model."""

    order: int
    """The order of the first call that it asks for, or of the next one if it asks for none."""
    time: float | None
    usage: Sequence[float] | None
    """Input, output, cache read, cache write, total, dollars; ``None``: not recorded."""
    model: str | None


@dataclass(slots=True)
class Activity:
    """What one run did."""

    responses: list[Response] = field(default_factory=list)
    times: list[tuple[int, float]] = field(default_factory=list)
    """Orders of calls and when their outcomes came."""
    succeeded: list[tuple[int, int]] = field(default_factory=list)
    """Orders and signatures of calls that brought something new: a success that the run had not seen."""
    wrote: list[tuple[int, int]] = field(default_factory=list)
    delivered: list[tuple[int, int]] = field(default_factory=list)
    steered: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    """Where the live engine stepped in."""
    stop: str | None = None
    failed: bool = False
    ending: Ending | None = None
    _seen: set[tuple[int, int | None]] = field(default_factory=set)

    def response(self, response: Response, stop: str | None, *, failed: bool) -> None:
        """Take in a message of the model."""
        self.responses.append(response)
        self.stop, self.failed, self.ending = stop, failed, None

    def outcome(self, order: int, signature: int, identity: int | None, flags: int, time: float | None) -> None:
        """Take in an outcome."""
        if time is not None:
            self.times.append((order, time))
        if not flags & SUCCEEDED:
            return
        if (signature, identity) not in self._seen:
            self._seen.add((signature, identity))
            self.succeeded.append((order, signature))
            if flags & WROTE:
                self.wrote.append((order, signature))
            if flags & DELIVERED:
                self.delivered.append((order, signature))

    def user(self, order: int, *, steering: bool) -> None:
        """Take in a user message."""
        if steering:
            self.steered.append(order)

    def live_verdict(self, order: int) -> None:
        """Take in that the live engine stepped in before the call ``order``."""
        self.live.append(order)

    def ended(self, ending: int) -> None:
        """Take in the end of the run."""
        self.ending = tuple(Ending)[ending]

    def end(self, *, followed: bool) -> End:
        """Return how the run ended; ``followed``: another one came after it."""
        if self.ending is Ending.COMPLETED:
            return End.COMPLETED
        stop = (self.stop or "").lower()
        for end, words in _STOPS:
            if any(word in stop for word in words):
                return end
        if self.failed:
            return End.FAILED
        return End.USER if followed and self.ending is not None else End.OPEN

    def between(self, first: int, last: int) -> tuple[list[Response], float]:
        """Return the responses after the one that asked for call ``first``, to that of ``last``; and the seconds."""
        orders = [response.order for response in self.responses]
        asked = bisect_right(orders, first)
        found = self.responses[asked : bisect_right(orders, last)]
        start = self.responses[asked - 1].time if asked else None
        known = bisect_right([order for order, _ in self.times], last)
        end = max((time for _, time in self.times[:known]), default=None)
        return found, max(0.0, end - start) if start is not None and end is not None else 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an incident. Orders are of the latest such thing; -1: there was none."""

    length: int
    """Its calls."""
    first: int
    last: int
    """The orders of its first and last call."""
    changed: int
    """A call of the loop came back otherwise."""
    succeeded: int
    """Another call brought something new."""
    wrote: int
    """Another call wrote a file."""
    delivered: int
    """Another call delivered a message."""
    live: int
    """The live engine stepped in while it went on, or before anything else came of it; -1: it did not."""
    end: End
    """How the run ended, or how the user stepped in, if nothing new was brought after the incident."""
    orders: tuple[int, ...]
    """Of all its calls."""

    def remaining(self, point: int) -> int:
        """Return how many of its calls are at or after a point."""
        return self.length - bisect_left(self.orders, point)

    @property
    def went_on(self) -> bool:
        """Whether the run brought something new after the incident."""
        return self.succeeded > self.last


def evidence_of(
    orders: Sequence[int], signatures: Collection[int], changes: Sequence[int], activity: Activity, *, followed: bool
) -> Evidence:
    """Return the evidence on the calls ``orders`` of one loop, whose own ``signatures`` tell nothing new of it.

    What comes after the user stepped into the loop is the user's doing: it is no evidence.
    """
    last = orders[-1]
    others = [order for order, sign in activity.succeeded if sign not in signatures]
    end, until = activity.end(followed=followed), _NEVER
    steered = next((order for order in activity.steered if order > last), None)
    if steered is not None and not any(last < order < steered for order in others):
        end, until = End.USER, steered

    def latest(things: Sequence[tuple[int, int]]) -> int:
        return next((order for order, sign in reversed(things) if order < until and sign not in signatures), -1)

    return Evidence(
        len(orders),
        orders[0],
        last,
        max((order for order in changes if order < until), default=-1),
        latest(activity.succeeded),
        latest(activity.wrote),
        latest(activity.delivered),
        _stepped_in(activity.live, orders, [*changes, *_others(activity.succeeded, signatures)]),
        end,
        tuple(orders),
    )


def _others(things: Sequence[tuple[int, int]], signatures: Collection[int]) -> list[int]:
    """Return the orders of what other calls than those with ``signatures`` brought."""
    return [order for order, sign in things if sign not in signatures]


def _stepped_in(live: Sequence[int], orders: Sequence[int], came: Sequence[int]) -> int:
    """Return where the live engine stepped into a loop of the calls ``orders``; -1 if something came of it before."""
    first = next((order for order in live if order >= orders[0]), -1)
    return -1 if any(orders[-1] < order < first for order in came) else first
