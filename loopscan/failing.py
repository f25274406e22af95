"""Which marks make a command fail: light, since the command line reads it for its help."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscan.marks import Kind


class FailOn(StrEnum):
    """From which kind of mark on the command exits with 1."""

    WARNING = "warning"
    BLOCK = "block"
    END = "end"
    NEVER = "never"


#: The gravity that each ``--fail-on`` asks for; see :func:`gravity`.
_FROM = {FailOn.WARNING: 1, FailOn.BLOCK: 2, FailOn.END: 3, FailOn.NEVER: 4}


def fails(kind: Kind, fail_on: FailOn) -> bool:
    """Say whether a mark of this kind is at or above ``fail_on``."""
    return gravity(kind) >= _FROM[fail_on]


def gravity(kind: Kind) -> int:
    """Return how grave a kind of mark is: 0 arming, 1 warning, 2 block, 3 the end of a run."""
    from loopscan.marks import ENDS_RUN, Kind

    if kind in ENDS_RUN:
        return 3
    return {Kind.WARNING: 1, Kind.BLOCK: 2}.get(kind, 0)
