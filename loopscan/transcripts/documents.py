"""Documents that are one JSON value, element by element: one pass, memory for one element.

The elements of an array at the top are told apart by their brackets and parsed one by one, exactly as a
line is (see :mod:`loopscan.transcripts.jsonl`). So a document may be longer than memory, and what stands before
the place where it breaks off is used, within the last element too. Anything else at the top is one element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from loopscan.events import Pause, Problem
from loopscan.transcripts.heads import beginning_of
from loopscan.transcripts.jsonl import BOM, BUFFER_BYTES, Line, read_error, value_of
from loopscan.transcripts.reader import Source

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NESTED = re.compile(_STRING + rb'|["\[\]{}]', re.DOTALL)
_FLAT = re.compile(_STRING + rb'|["\[\]{},]', re.DOTALL)
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SPACE = b" \t\r\n"


def read_elements(source: Source, opened: BinaryIO | None = None) -> Iterator[Line | Problem | Pause]:
    """Yield each element of the document ``source``, or the problem with it, in order.

    An element is what stands between the commas of an array at the top, or a whole value at the top that is
    no array; several values may follow one another. ``Line.number`` is the line in which it begins. An element
    longer than ``source.max_line`` is skipped without being held in memory. ``source.lines`` and
    ``source.bytes`` count everything that was read. Raises :class:`~loopscan.errors.InputError` if the source
    cannot be opened. ``opened`` is a stream that was opened before, at its start.
    """
    splitter = _Splitter(source)
    failed: Problem | None = None
    with opened if opened is not None else source.open() as stream:
        while True:
            try:
                chunk = stream.read(BUFFER_BYTES)
            except OSError as error:
                failed = read_error(source, error)
                break
            if not chunk:
                break
            yield from splitter.take(chunk)
    yield from splitter.finish()
    if failed is not None:
        yield failed


class _Splitter:
    """Tells the elements of a document apart, chunk by chunk."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._element = bytearray()
        """The element so far, as long as it is not too long."""
        self._size = 0
        """Of the element so far, in bytes."""
        self._line = 1
        """The line in which the element begins."""
        self._depth = 0
        """How many brackets are open, that of the array at the top included."""
        self._array = False
        """Whether the value at the top is an array."""
        self._in_string = False
        self._unscanned = b""
        self._first = True

    def take(self, chunk: bytes) -> Iterator[Line | Problem]:
        """Take in the next bytes and yield the elements that end in them."""
        source = self._source
        source.bytes += len(chunk)
        if self._first:
            self._first = False
            source.lines = 1
            chunk = chunk.removeprefix(BOM)
        data = self._unscanned + chunk
        self._unscanned = b""
        at = kept = 0
        while True:
            if self._in_string:
                found = _REST_OF_STRING.match(data, at)
                at = found.end() if found else at
                if at == len(data):
                    break
                if data[at : at + 1] == b"\\":  # its second half is in the next chunk
                    self._unscanned = data[at:]
                    data = data[:at]
                    break
                self._in_string = False
                at += 1
                continue
            pattern = _FLAT if self._depth <= 1 else _NESTED
            token = pattern.search(data, at)
            if token is None:
                break
            mark = data[token.start() : token.start() + 1]
            at = token.end()
            if mark == b'"':
                if token.end() - token.start() == 1:
                    self._in_string = True
            elif mark in b"{[":
                if not self._depth and mark == b"[":
                    self._add(data[kept : token.start()])
                    yield from self._end()  # what stands before it, if anything
                    kept = at
                    self._array = True
                elif not self._depth:
                    self._array = False
                self._depth += 1
            elif mark == b",":
                if self._array or not self._depth:
                    self._add(data[kept : token.start()])
                    yield from self._end()
                    kept = at
            else:
                self._depth = max(0, self._depth - 1)  # a bracket of the wrong kind: the parser will say so
                if not self._depth:
                    end = token.start() if self._array else at
                    self._add(data[kept:end])
                    yield from self._end()
                    kept = at
                    self._array = False
        self._add(data[kept:])

    def finish(self) -> Iterator[Line | Problem]:
        """Yield what is left at the end of the document."""
        self._add(self._unscanned)
        if self._depth:
            value = beginning_of(bytes(self._element)) if self._size <= self._source.max_line else None
            if value:
                yield Line(self._line, value, self._size)
            else:
                self._source.unusable += 1
            detail = "the document ends in the middle: still being written, or cut off"
            yield Problem(self._source.lines, "truncated-document", detail)
        else:
            yield from self._end()

    def _add(self, data: bytes) -> None:
        if self._size == 0:
            stripped = data.lstrip(_SPACE)
            self._source.lines += data.count(b"\n", 0, len(data) - len(stripped))
            self._line = self._source.lines
            data = stripped
        self._source.lines += data.count(b"\n")
        self._size += len(data)
        if self._size <= self._source.max_line:
            self._element += data
        else:
            self._element.clear()

    def _end(self) -> Iterator[Line | Problem]:
        size, data = self._size, bytes(self._element)
        self._size = 0
        self._element = bytearray()
        if size > self._source.max_line:
            self._source.unusable += 1
            limit = self._source.max_line
            yield Problem(self._line, "line-too-long", f"an element of {size:,} bytes, over the limit of {limit:,}")
        elif size:
            yield from value_of(data + b"\n", self._line, self._source)
