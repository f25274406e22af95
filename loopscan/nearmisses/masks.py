"""Looser identities: what changes from call to call without a change of substance is masked, numbers are kept apart.

Numbers that are left may be progress (an offset, a percentage, a counter), so they are masked but remembered: who
asks whether two values are alike learns what their numbers were.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from loopscan.engine.canonical import identity
from loopscan.events import Json

#: So much of a text is looked at, and so many numbers of one value are remembered.
LONGEST: Final = 20_000
MOST_NUMBERS: Final = 64
_DEEPEST: Final = 50

_HEX: Final = r"(?<![\w-])(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[\da-fA-F]{7,}(?![\w])"
#: What says nothing of progress, in the order in which it is masked: each pattern is linear.
_NOISE: Final = (
    ("a uuid", re.compile(r"[\da-fA-F]{8}-(?:[\da-fA-F]{4}-){3}[\da-fA-F]{12}")),
    ("a time", re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")),
    ("a time", re.compile(r"(?<!\d)\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?!\d)")),
    ("a time", re.compile(r"(?<!\d)1[5-9]\d{8}(?:\d{3})?(?!\d)")),
    (
        "a temporary path",
        re.compile(r"(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm)/[^\s\"'<>:,;)\]}]{1,500}"),
    ),
    ("a hex string", re.compile(_HEX)),
    (
        "a duration",
        re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:[nuµm]?s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![\w])"),
    ),
    ("a process id", re.compile(r"(?i)(?<!\w)p?pid(?:\s|[:=#]){1,3}\d+")),
    ("an attempt", re.compile(r"(?i)(?<!\w)(?:attempt|retry|try)(?:\s|[:=#]){1,3}\d+")),
)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


class Masked:
    """A value with what changes in passing masked."""

    __slots__ = ("identity", "numbers")

    def __init__(self, value: Json) -> None:
        numbers: list[float] = []
        self.identity = identity(_masked(value, numbers, 0))
        self.numbers = tuple(numbers[:MOST_NUMBERS])
        """In order; equal identities have equally many."""


def _masked(value: Json, numbers: list[float], depth: int) -> Json:
    if isinstance(value, str):
        return masked_text(value[:LONGEST], numbers)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        numbers.append(float(value) if abs(value) < 1e15 else 0.0)
        return 0
    if depth >= _DEEPEST:
        return None
    if isinstance(value, list):
        return [_masked(each, numbers, depth + 1) for each in value]
    return {key: _masked(value[key], numbers, depth + 1) for key in sorted(value)}


def masked_text(text: str, numbers: list[float]) -> str:
    """Return a text with noise and numbers masked; the numbers that may be progress are added to ``numbers``."""
    if not any(char.isdigit() for char in text) and "/" not in text:
        return text
    for _, pattern in _NOISE:
        text = pattern.sub("\x00", text)

    def note(found: re.Match[str]) -> str:
        numbers.append(float(found[0][:15]))
        return "\x01"

    return _NUMBER.sub(note, text)


def progresses(steps: list[tuple[float, ...]]) -> bool:
    """Say whether some number goes one way from step to step: up or down, without ever turning back.

    Where it changes in fewer than half of the steps, and those are fewer than three, that may be chance.
    """
    if len(steps) < 2:
        return False
    for place in range(min(map(len, steps))):
        values = [step[place] for step in steps]
        changes = [later - earlier for earlier, later in pairwise(values) if later != earlier]
        one_way = all(change > 0 for change in changes) or all(change < 0 for change in changes)
        if changes and one_way and (len(changes) >= 3 or 2 * len(changes) >= len(values)):
            return True
    return False
