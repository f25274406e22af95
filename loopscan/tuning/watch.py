"""Thresholds that remember what they were compared with.

An engine that is given such a policy decides as with plain numbers. Afterwards the policy tells which other settings
would have led to the same decisions, one by one: so one replay answers for all of them, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from loopscan.policy import Policy

#: The fields of :class:`Policy` that are watched: counts, then switches.
COUNTS: Final = ("history_size", "warning", "critical", "breaker", "unknown_tool")
SWITCHES: Final = ("generic_repeat", "known_poll", "ping_pong")
#: Fields that are not watched, since what is computed with them leaves no trace.
EXACT: Final = ("guard_window",)


@dataclass(slots=True)
class Range:
    """The values of one count that would have compared as it did, both ends included."""

    low: int = 0
    high: int = 1 << 62


class Watched(int):
    """A count that notes every comparison in its :class:`Range`."""

    range: Range

    def __new__(cls, value: int, seen: Range) -> Watched:
        """Return ``value`` as a count that notes into ``seen``."""
        made = super().__new__(cls, value)
        made.range = seen
        return made

    # A comparison ``count >= threshold`` asks the threshold first, since its type is the more special one.

    def __le__(self, count: int) -> bool:
        found = int(self) <= count
        self._note(found, count, count + 1)
        return found

    def __lt__(self, count: int) -> bool:
        found = int(self) < count
        self._note(found, count - 1, count)
        return found

    def __ge__(self, count: int) -> bool:
        found = int(self) >= count
        self._note(not found, count - 1, count)
        return found

    def __gt__(self, count: int) -> bool:
        found = int(self) > count
        self._note(not found, count, count + 1)
        return found

    def __eq__(self, count: object) -> bool:
        raise TypeError("a watched count is compared by size alone")

    def __hash__(self) -> int:
        raise TypeError("a watched count has no hash")

    def _note(self, at_most: bool, high: int, low: int) -> None:
        """Note that the value is at most ``high``, or at least ``low``."""
        seen = self.range
        if at_most:
            seen.high = min(seen.high, high)
        else:
            seen.low = max(seen.low, low)


@dataclass(slots=True)
class Switch:
    """A switch that notes whether it was looked at."""

    value: bool
    looked_at: bool = False

    def __bool__(self) -> bool:
        self.looked_at = True
        return self.value


@dataclass(slots=True)
class Watch:
    """A policy under watch, and what was seen of it."""

    policy: Policy
    ranges: dict[str, Range] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: Policy) -> Watch:
        """Return ``policy`` under watch."""
        ranges = {name: Range() for name in COUNTS}
        switches = {name: Switch(bool(getattr(policy, name))) for name in SWITCHES}
        watched: dict[str, Any] = {
            **{name: Watched(getattr(policy, name), seen) for name, seen in ranges.items()},
            **{name: cast(bool, switch) for name, switch in switches.items()},
        }
        return cls(replace(policy, **watched), ranges, switches)

    def fits(self, name: str, value: int) -> bool:
        """Say whether another value of a field would have changed nothing."""
        if name in EXACT:
            return True
        seen = self.ranges.get(name)
        if seen is not None:
            return seen.low <= value <= seen.high
        switch = self.switches[name]
        return not switch.looked_at or bool(value) == switch.value
