"""Values of a source that holds lines or one document: its first bytes tell which.

For formats that exist in both forms. Nothing is read twice, so it works for streams that can be opened once.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from loopscan.events import Pause, Problem
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.heads import is_line, lines_of
from loopscan.transcripts.jsonl import BOM, Line, read_error, read_lines
from loopscan.transcripts.reader import HEAD_BYTES, Source


def read_values(source: Source) -> Iterator[Line | Problem | Pause]:
    """Yield the values of ``source``: of its lines if it looks like lines, else the elements of its document.

    Raises :class:`~loopscan.errors.InputError` if the source cannot be opened.
    """
    stream = source.open()
    try:
        head = _head(stream)
    except OSError as error:
        stream.close()
        yield read_error(source, error)
        return
    again = cast("BinaryIO", _Again(head, stream))
    # What is being written may have one line so far.
    lines = looks_like_lines(head) or (source.follow and is_line(head))
    yield from read_lines(source, again) if lines else read_elements(source, again)


def looks_like_lines(head: bytes) -> bool:
    """Say whether ``head`` is the beginning of lines of JSON rather than of one document.

    Its first line is an object by itself, or two of its lines are objects or arrays by themselves.
    """
    if len([value for value in lines_of(head) if isinstance(value, dict | list) and value]) > 1:
        return True
    return any(isinstance(value, dict) for value in lines_of(head.removeprefix(BOM).lstrip().split(b"\n", 1)[0]))


def _head(stream: BinaryIO) -> bytes:
    head = b""
    while len(head) < HEAD_BYTES:
        more = stream.read(HEAD_BYTES - len(head))
        if not more:
            break
        head += more
    return head


class _Again(io.RawIOBase):
    """A stream of which the beginning was read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self._head[: len(buffer)] or self._rest.read(len(buffer)) or b""
        self._head = self._head[len(data) :] if self._head else b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._rest.close()
        super().close()
