"""Two records of the same things, side by side: which of one is which of the other."""

from __future__ import annotations

from collections.abc import Sequence

#: Two records of one thing are at most this far apart, in seconds: a call may run for minutes before its result,
#: which carries the live engine's note, is written down.
APART_SECONDS = 600.0


def pair(one: Sequence[float | None], other: Sequence[float | None]) -> list[tuple[int, int]]:
    """Return which places of ``one`` and ``other`` belong together, each place at most once.

    Both are times, in seconds, in the order in which things happened; ``None`` is a time that nobody knows, which
    may be any. The order is kept, none are further apart than :data:`APART_SECONDS`, and where one side has
    more than the other, those that are nearest are taken. Takes time in proportion to the lengths.
    """
    found: list[tuple[int, int]] = []
    left = right = 0
    while left < len(one) and right < len(other):
        apart = _apart(one[left], other[right])
        if abs(apart) <= APART_SECONDS:
            spare = (len(one) - left) - (len(other) - right)
            while spare > 0 and abs(_apart(one[left + 1], other[right])) < abs(_apart(one[left], other[right])):
                left, spare = left + 1, spare - 1
            while spare < 0 and abs(_apart(one[left], other[right + 1])) < abs(_apart(one[left], other[right])):
                right, spare = right + 1, spare + 1
            found.append((left, right))
            left, right = left + 1, right + 1
        elif apart < 0:
            left += 1
        else:
            right += 1
    return found


def _apart(one: float | None, other: float | None) -> float:
    return 0.0 if one is None or other is None else one - other
