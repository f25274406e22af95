"""Folders that are one record: a file for each event, as OpenHands keeps its conversations.

They are read file by file, so that one which is empty, half-written, gone or not to be read costs no other.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from loopscan.events import Problem
from loopscan.transcripts.jsonl import Line, value_of
from loopscan.transcripts.reader import Source

#: ``event-00012-<id>.json`` in any folder, and ``12.json`` in one named ``events``.
_NUMBERED = re.compile(r"event-(?P<number>\d{3,})-.*\.json", re.DOTALL)
_BARE = re.compile(r"(?P<number>\d+)\.json")


@dataclass(frozen=True, slots=True)
class Pieces:
    """The files of a folder that hold one event each, in the order of their numbers."""

    folder: str
    names: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [os.path.join(self.folder, name) for name in self.names]  # noqa: PTH118 - there may be very many

    def open(self) -> BinaryIO:
        """Raise :class:`OSError`: there is no stream."""
        raise OSError(errno.EISDIR, "a folder of events is read file by file")

    def size(self) -> int:
        """Return how many bytes the files have together, as far as they are there."""
        size = 0
        for path in self.paths:
            with suppress(OSError):
                size += os.stat(path).st_size  # noqa: PTH116 - as above
        return size


def pieces_in(folder: str, names: Iterable[str]) -> Pieces | None:
    """Return the files of a folder that hold one event each, ``None`` if there are none."""
    bare = os.path.basename(folder) == "events"  # noqa: PTH119 - as above
    found: list[tuple[int, str]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name) or (_BARE.fullmatch(name) if bare else None)
        if match is not None:
            found.append((int(match["number"]), name))
    return Pieces(folder, tuple(name for _, name in sorted(found))) if found else None


def read_pieces(source: Source, pieces: Pieces) -> Iterator[Line | Problem]:
    """Yield the value of each file, or the problem with it; the number of a line is that of the file, from 1 on.

    A file longer than ``source.max_line`` is skipped. ``source`` counts a file as a line. If files could not be
    read at all, a last problem says how many.
    """
    source.begin()
    lost: list[str] = []
    for number, path in enumerate(pieces.paths, 1):
        name = pieces.names[number - 1]
        source.lines += 1
        before = source.blank
        try:
            data, size = _content(path, source.max_line)
        except OSError as error:
            lost.append(name)
            source.unusable += 1
            reason = error.strerror or "I/O error"
            yield Problem(number, "unreadable-event", f"{name} cannot be read: {reason}")
            continue
        source.bytes += size
        if size > source.max_line:
            source.unusable += 1
            yield Problem(
                number, "line-too-long", f"{name} has {size:,} bytes, over the limit of {source.max_line:,}"
            )
            continue
        for item in value_of(data, number, source):
            yield item if isinstance(item, Line) else replace(item, detail=f"{name}: {item.detail}")
        if source.blank > before:
            yield Problem(number, "empty-event", f"{name} is empty: still being written, or cut off")
    if lost:
        what = f"{len(lost):,} of {len(pieces.names):,} files of events cannot be read, the first of them {lost[0]}"
        yield Problem(source.lines, "read-error", what)


def _content(path: str, limit: int) -> tuple[bytes, int]:
    """Return what a file holds and how many bytes that are; nothing but the size if it is longer than ``limit``."""
    with Path(path).open("rb", buffering=0) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(limit + 1) if size <= limit else b""
        return (data, len(data)) if size <= limit else (b"", size)
