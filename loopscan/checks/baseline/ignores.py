"""Ignores: marks that do not count for a while, with a reason, written by hand into a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from loopscan.fingerprints import Content
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.patterns import meets

#: The field of ``match`` that is a pattern of paths; all others are those of :class:`Content`, and equal.
SOURCE: Final = "source"


@dataclass(frozen=True, slots=True)
class Ignore:
    """One rule about marks that do not count."""

    match: Mapping[str, str | int]
    """Fields of :class:`Content` with the values that they must have, and :data:`SOURCE`; at least one."""
    reason: str
    until: date
    """The last day on which it holds."""
    order: tuple[str, ...] = ("match", "reason", "until")
    """In which its fields were written."""

    def holds(self, today: date) -> bool:
        """Say whether it has not expired."""
        return today <= self.until

    def covers(self, about: Content, source: str) -> bool:
        """Say whether a mark of the transcript ``source`` is one of those that it is about, expired or not."""
        return all(
            _lies_in(source, str(value)) if field == SOURCE else getattr(about, field) == value
            for field, value in self.match.items()
        )


def _lies_in(source: str, pattern: str) -> bool:
    """Say whether the end of a path meets a pattern: how the folder was named does not matter."""
    path, parts = pieces_of(source), pieces_of(pattern)
    return any(meets(path[start:], parts) for start in range(len(path)))
