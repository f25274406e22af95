"""Words and numbers that several parts of a report have in common."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 session``, ``2,000 sessions``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(rate: float) -> str:
    """Return a rate as a percentage that is not rounded to something else: ``5%``, ``0.4%``, ``99.9999%``."""
    return f"{float(f'{100 * rate:.10g}'):.10g}%"
