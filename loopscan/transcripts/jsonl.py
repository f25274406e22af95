"""Lines of JSON from a binary stream: one pass, bounded memory, values as JavaScript reads them.

OpenClaw wrote these lines with ``JSON.stringify`` and reads them with ``JSON.parse``, so that is what
counts as JSON here: numbers are doubles (``1e400`` is infinite, an integer of any length is a number),
lone surrogates are kept, the last of two equal keys wins, and ``NaN`` is no JSON. Two things differ:
integers within 64 bits stay exact, for whoever compares them to round; and nesting that Python cannot
hold (about a thousand levels) makes a line malformed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

import orjson

from loopscan.events import Json, Pause, Problem
from loopscan.transcripts.reader import Source

#: What is read from the stream at a time, in bytes.
BUFFER_BYTES = 1 << 20

#: Some editors put it at the start of a file.
BOM = b"\xef\xbb\xbf"
#: Decimal digits that surely fit 64 bits; longer integers become doubles, as orjson does it.
_EXACT_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Line:
    """One line that holds a JSON value."""

    number: int
    """Counts from 1, blank and unusable lines included."""
    value: Json
    size: int
    """In bytes, with its line break."""


def read_lines(source: Source, stream: BinaryIO | None = None) -> Iterator[Line | Problem | Pause]:
    """Yield the JSON value of every line of ``source``, or the problem with it, in order.

    Blank lines are passed over. ``source.lines`` and ``source.bytes`` count everything that was read. Where the
    source is being followed, its end is a pause, and what was added since is read after it.
    A line longer than ``source.max_line`` is skipped without being held in memory. Invalid UTF-8 is read
    as JavaScript reads it (each bad sequence becomes U+FFFD): the line is used and the problem named.
    Raises :class:`~loopscan.errors.InputError` if the source cannot be opened; a stream that fails later
    ends the lines with a problem. ``stream`` is one that was opened before, at its start.
    """
    for data in read_raw(source, stream):
        if isinstance(data, bytes):
            yield from value_of(data, source.lines, source)
        else:
            yield data


def read_raw(source: Source, opened: BinaryIO | None = None) -> Iterator[bytes | Problem | Pause]:
    """Yield every line of ``source`` as it is, blank ones too; ``source.lines`` is then its number.

    What holds for :func:`read_lines` holds here: lengths, counts, pauses, problems with the stream.
    """
    with opened if opened is not None else source.open() as raw:
        stream = cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", raw), BUFFER_BYTES))
        limit = source.max_line
        data, skipped = b"", 0
        while True:
            try:
                more = stream.readline(limit + 1 - len(data)) if len(data) <= limit else b""
                data += more
                ended = data.endswith(b"\n")
                if len(data) > limit and not ended:
                    drained, ended = _drain(stream)
                    skipped += drained
            except OSError as error:
                yield read_error(source, error)
                return
            if not ended and source.follow:
                yield Pause()
                continue
            if not data:
                return
            source.lines += 1
            size = len(data) + skipped
            source.bytes += size
            if len(data) > limit:
                source.unusable += 1
                yield Problem(source.lines, "line-too-long", f"a line of {size:,} bytes, over the limit of {limit:,}")
            else:
                yield data
            data, skipped = b"", 0


def parse(data: bytes | str) -> Json:
    """Return the JSON value of ``data`` as JavaScript's ``JSON.parse`` sees it.

    Raises :class:`ValueError` for what is no JSON (invalid UTF-8 too) and :class:`RecursionError` for
    nesting that is too deep.
    """
    try:
        return cast("Json", orjson.loads(data))
    except orjson.JSONDecodeError as error:
        if any(word in str(error) for word in ("depth", "ecursion")):
            # Not to be tried again: how deep the standard library goes depends on the version of Python.
            raise RecursionError from error
        text = data.decode() if isinstance(data, bytes) else data
        return cast("Json", _DECODER.decode(text))


def parsed(text: Json) -> Json:
    """Return what was written as a text of JSON, as arguments often are; what is none comes back as it is."""
    if not isinstance(text, str):
        return text
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return text


def value_of(data: bytes, number: int, source: Source) -> Iterator[Line | Problem]:
    """Yield the value that ``data``, which begins in line ``number`` of ``source``, is; or the problem with it.

    Nothing for white space alone. ``source`` counts what became of it.
    """
    size = len(data)
    data = data.removeprefix(BOM)  # in the middle, too: files are joined without thinking of it
    if not data.strip():
        source.blank += 1
        return
    try:
        yield Line(number, parse(data), size)
        return
    except UnicodeDecodeError:
        pass
    except (ValueError, RecursionError) as error:
        source.unusable += 1
        yield _malformed(data, number, size, error)
        return
    text = data.decode("utf-8", errors="replace")
    try:
        line = Line(number, parse(text), size)
    except (ValueError, RecursionError) as error:
        source.unusable += 1
        yield _malformed(data, number, size, error)
        return
    yield Problem(number, "malformed-utf8", "invalid UTF-8: read with replacement characters")
    yield line


def read_error(source: Source, error: OSError) -> Problem:
    """Return the problem that a stream failed: what is left of the source is lost."""
    return Problem(source.lines + 1, "read-error", f"reading stopped here: {error.strerror or 'I/O error'}")


def _malformed(data: bytes, number: int, size: int, error: Exception) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(number, "malformed-json", f"a line of {size:,} bytes is nested too deeply")
    if not data.endswith(b"\n"):
        detail = f"the last line ends in the middle, after {size:,} bytes: still being written, or cut off"
        return Problem(number, "truncated-last-line", detail)
    nul = ", with NUL bytes in it" if b"\0" in data else ""
    at = f" from character {error.pos} on" if isinstance(error, json.JSONDecodeError) else ""
    return Problem(number, "malformed-json", f"a line of {size:,} bytes is not JSON{at}{nul}")


def _drain(stream: BinaryIO) -> tuple[int, bool]:
    """Read on to the end of the line; return how many bytes that were, and whether it was the end of the line."""
    size = 0
    while piece := stream.readline(BUFFER_BYTES):
        size += len(piece)
        if piece.endswith(b"\n"):
            return size, True
    return size, False


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _EXACT_DIGITS else _wide(digits)


def _wide(digits: str) -> int | float:
    # At most twenty characters can be within 64 bits; float() has no limit on digits where int() has one.
    if len(digits) <= _EXACT_DIGITS + 2:
        value = int(digits)
        if -(1 << 63) <= value < (1 << 64):
            return value
    return float(digits)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=float, parse_constant=_constant)
