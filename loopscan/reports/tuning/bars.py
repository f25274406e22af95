"""Bars of block characters; the console turns them into ASCII where an encoding has none."""

from __future__ import annotations

from collections.abc import Iterable

FULL, HALF = "█", "▌"


def scale(values: Iterable[float | None]) -> float:
    """Return the largest of the values that are known, 1 if none is above 0."""
    return max((value for value in values if value), default=1.0)


def bar(share: float, width: int) -> str:
    """Return a bar of ``share`` (0 to 1) of ``width`` columns, to half a column; never empty."""
    halves = max(1, round(min(max(share, 0.0), 1.0) * width * 2))
    return FULL * (halves // 2) + HALF * (halves % 2)
