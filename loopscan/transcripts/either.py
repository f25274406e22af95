"""Values of a source that holds lines or one document: its first bytes tell which.

For formats that exist in both forms. Nothing is read twice, so it works for streams that can be opened once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, cast

from loopscan.events import Pause, Problem
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.heads import lines_of
from loopscan.transcripts.jsonl import BOM, Line, read_lines
from loopscan.transcripts.reader import HEAD_BYTES, Source
from loopscan.transcripts.streams import Prefixed, read_head


def read_values(source: Source) -> Iterator[Line | Problem | Pause]:
    """Yield the values of ``source``: of its lines if it looks like lines, else the elements of its document.

    Raises :class:`~loopscan.errors.InputError` if the source cannot be opened.
    """
    stream = source.open()
    head, error = read_head(stream, HEAD_BYTES, surely_lines)
    again = cast("BinaryIO", Prefixed(head, stream, error))
    yield from read_lines(source, again) if looks_like_lines(head) else read_elements(source, again)


def looks_like_lines(head: bytes) -> bool:
    """Say whether ``head`` is the beginning of lines of JSON rather than of one document.

    Its first line is an object by itself, or two of its lines are objects or arrays by themselves.
    """
    if len([value for value in lines_of(head) if isinstance(value, dict | list) and value]) > 1:
        return True
    return any(isinstance(value, dict) for value in lines_of(head.removeprefix(BOM).lstrip().split(b"\n", 1)[0]))


def surely_lines(head: bytes) -> bool:
    """Say whether the whole lines of ``head`` will do to tell: more of the source may be long in coming."""
    return looks_like_lines(head[: head.rfind(b"\n") + 1])
