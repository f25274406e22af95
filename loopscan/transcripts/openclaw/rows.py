"""One row of the table ``transcript_events``: an event as JSON text, or as a zstd frame of it (from schema 23 on).

A row is what a line is in a session file, without the line break. Cold archives hold the same rows.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import zstandard

from loopscan.events import Problem
from loopscan.transcripts.jsonl import Line, value_of
from loopscan.transcripts.reader import Source

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: A frame that needs more than this to be decompressed is refused, in bytes. OpenClaw's need 4 MiB at most.
MAX_WINDOW_BYTES = 32 << 20

_CHUNK_BYTES = 1 << 17
#: So little is unpacked at a time that what it can grow to, about 8 MiB, does no harm.
_INPUT_BYTES = 256
#: More than is unpacked beyond what was asked for.
_AHEAD = 16 << 20


def read_row(
    source: Source, number: int, text: bytes | None, frame: bytes | None, *, too_long: int = 0
) -> Iterator[Line | Problem]:
    """Yield the value of a row of a database, or the problem with it; ``source`` counts it as a line.

    See :func:`row_value`. The event counts as so many bytes as it would have in a session file.
    """
    source.lines += 1
    before = source.unusable
    for item in row_value(source, number, text, frame, too_long=too_long):
        if isinstance(item, Line):
            source.bytes += item.size
        yield item
    if source.unusable > before:
        source.bytes += too_long or len(text or frame or b"")


def row_value(
    source: Source, number: int, text: bytes | None, frame: bytes | None, *, too_long: int = 0
) -> Iterator[Line | Problem]:
    """Yield the value of a row, or the problem with it; ``source`` counts what cannot be used.

    ``number`` is that of the line. ``text`` is the event itself, ``frame`` its compressed form; ``too_long`` is the
    size of one that was too long to be fetched, in bytes. What is decompressed never takes more memory than
    ``source.max_line`` and a few buffers.
    """
    if not too_long and text is None and frame is not None:
        try:
            text = unpack(frame, source.max_line)
        except OSError:
            source.unusable += 1
            detail = f"a row of {len(frame):,} bytes is no whole zstd frame, or needs too much memory"
            yield Problem(number, "malformed-zstd", detail)
            return
    size = too_long or len(text or b"")
    if size > source.max_line:
        source.unusable += 1
        yield Problem(number, "line-too-long", f"an event of {size:,} bytes or more, over {source.max_line:,}")
    elif text is None:
        source.unusable += 1
        yield Problem(number, "malformed-row", "a row that holds no event")
    else:
        yield from value_of(text + b"\n", number, source)


def unpack(frame: bytes, limit: int) -> bytes:
    """Return what a zstd frame holds, but at most ``limit`` bytes and one more.

    Raises :class:`OSError` for what is no whole frame.
    """
    data = bytearray()
    with Unpacked(io.BytesIO(frame), limit + _AHEAD) as stream:
        while len(data) <= limit:
            piece = stream.read(min(_CHUNK_BYTES, limit + 1 - len(data)))
            if not piece:
                break
            data += piece
    return bytes(data)


class Unpacked(io.RawIOBase):
    """What is compressed in ``file``, in bounded memory and up to the most that a source may grow to.

    Reading raises :class:`OSError` for what is damaged or cut off.
    """

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._frame = self._decompressor.decompressobj()
        self._within = True
        """A frame has begun, or must begin."""
        self._waiting = b""
        self._left = limit

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of ``buffer`` and return its size in bytes, 0 at the end."""
        while not self._waiting:
            piece = self._file.read(_INPUT_BYTES)
            if not piece:
                if self._within:
                    raise OSError(errno.EIO, "a zstd frame that was cut off")
                return 0
            try:
                self._waiting = self._take(piece)
            except (zstandard.ZstdError, MemoryError) as error:
                raise OSError(errno.EIO, "a damaged zstd frame") from error
            self._left -= len(self._waiting)
            if self._left < 0:
                raise OSError(errno.EFBIG, "more is packed than may be unpacked")
        view = memoryview(buffer)
        size = min(len(view), len(self._waiting))
        view[:size] = self._waiting[:size]
        self._waiting = self._waiting[size:]
        return size

    def _take(self, piece: bytes) -> bytes:
        data = b""
        while piece:
            self._within = True
            data += self._frame.decompress(piece)
            if not self._frame.eof:
                break
            piece = self._frame.unused_data
            self._within = False
            self._frame = self._decompressor.decompressobj()
        return data
