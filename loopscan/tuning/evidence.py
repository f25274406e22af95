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
NEVER: Final = 1 << 62


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
    good: set[int] = field(default_factory=set)
    """Orders of all calls that succeeded."""
    wrote: list[tuple[int, int]] = field(default_factory=list)
    delivered: list[tuple[int, int]] = field(default_factory=list)
    steered: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    """Where the live engine stepped in."""
    stop: str | None = None
    failed: bool = False
    ending: Ending | None = None
    closed: float | None = None
    """When it ended."""
    _seen: set[tuple[int, int | None]] = field(default_factory=set)
    _brought: Brought | None = None

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
        self.good.add(order)
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

    def ended(self, ending: int, time: float | None) -> None:
        """Take in the end of the run."""
        self.ending, self.closed = tuple(Ending)[ending], time

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

    @property
    def brought(self) -> Brought:
        """What calls brought that was new, ready to be searched once the run is read."""
        if self._brought is None or len(self._brought.orders) != len(self.succeeded):
            self._brought = Brought(sorted(self.succeeded))
        return self._brought


class Brought:
    """Successes by the order of their calls."""

    def __init__(self, things: Sequence[tuple[int, int]]) -> None:
        self.orders = [order for order, _ in things]
        self._signatures = [sign for _, sign in things]

    def between(self, after: int, before: int, signatures: Collection[int]) -> bool:
        """Say whether another call than those with ``signatures`` brought something between two orders."""
        places = range(bisect_right(self.orders, after), bisect_left(self.orders, before))
        return any(self._signatures[place] not in signatures for place in places)


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
    until: int
    """Where the user stepped into the run after it; :data:`NEVER` if nobody did before the run's end."""
    orders: tuple[int, ...]
    """Of all its calls."""
    failing: bool = False
    """None of its calls succeeded."""

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
    brought = activity.brought
    end, until = activity.end(followed=followed), NEVER
    at = bisect_right(activity.steered, last)
    if at < len(activity.steered) and not brought.between(last, activity.steered[at], signatures):
        end, until = End.USER, activity.steered[at]

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
        _stepped_in(orders, signatures, changes, activity),
        end,
        until,
        tuple(orders),
        not any(order in activity.good for order in orders),
    )


def _stepped_in(
    orders: Sequence[int], signatures: Collection[int], changes: Sequence[int], activity: Activity
) -> int:
    """Return where the live engine stepped into a loop; -1 if it did not, or something came of the loop before."""
    at = bisect_left(activity.live, orders[0])
    if at == len(activity.live):
        return -1
    first, last = activity.live[at], orders[-1]
    came = any(last < order < first for order in changes) or activity.brought.between(last, first, signatures)
    return -1 if came else first
