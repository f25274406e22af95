"""What a mark is about, whatever place it stands in: the content that is the same when lines move.

Signatures and outcomes are digests of canonical values, so they are the same in every process and on every machine;
another version of loopscan may judge outcomes by other rules, and its digests may differ then.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from loopscan.marks import Detector, Kind, Level, Mark

_DIGITS: Final = 32


class Content(NamedTuple):
    """What makes two marks the same one; the fields are those of :class:`~loopscan.marks.Mark`."""

    session: str
    kind: Kind
    detector: Detector
    level: Level
    count: int | None = None  # type: ignore[assignment]  # hides a method of tuples that nobody needs here
    tool: str | None = None
    paired_tool: str | None = None
    signature: str | None = None
    outcome: str | None = None


def content(session: str, mark: Mark) -> Content:
    """Return what a mark of ``session`` (its id) is about: nothing of line, entry, batch, call, time or file."""
    return Content(
        session,
        mark.kind,
        mark.detector,
        mark.level,
        mark.count,
        mark.tool,
        mark.paired_tool,
        mark.signature,
        mark.outcome,
    )


def fingerprints(session: str, marks: Iterable[Mark], seen: Counter[Content]) -> list[str]:
    """Return a fingerprint for each mark of ``session``: a digest of its content, and of how many like it precede.

    So equal marks of one session are told apart by their order alone. ``marks`` are all of them, in their order;
    ``seen`` counts those that came before, since several sources may have parts of a session.
    """
    found: list[str] = []
    for mark in marks:
        about = content(session, mark)
        seen[about] += 1
        found.append(digest("mark", *about, seen[about]))
    return found


def digest(*parts: str | int | None) -> str:
    """Return a digest in hex that is the same for the same parts, everywhere and in every version of loopscan."""
    # Escapes keep lone surrogates apart, which no encoding would take.
    written = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:_DIGITS]
