"""Streams of packed bytes, expanded while they are read: gzip, zstd, and what zip archives use.

All of them raise nothing but :class:`OSError`, with a ``strerror`` for people, and only after everything that stands
before the damage has been given.
"""

from __future__ import annotations

import errno
import io
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final, Protocol, cast

import zstandard

#: How much of a packed stream is read at a time, in bytes.
CHUNK_BYTES: Final = 1 << 17

#: What a source, or an archive as a whole, may expand to, in bytes.
MAX_EXPANDED_BYTES: Final = 16 << 30

_DAMAGED = "the compressed data is damaged"
_CUT = "the compressed data ends in the middle"
_FOLLOWED = "the compressed data is followed by something else"
_TOO_WIDE = "the compressed data needs more than 128 MiB of memory to be expanded"

_GZIP = b"\x1f\x8b\x08"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
"""Follows a byte from 0x50 to 0x5f where a frame of zstd is to be passed over."""
_ZSTD_BLOCK: Final = 1 << 17


class Raw(Protocol):
    """An open stream of bytes."""

    def read(self, size: int = -1, /) -> bytes | None:
        """Return up to ``size`` bytes, none at the end."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class OverLimitError(OSError):
    """More was expanded than is allowed."""

    @classmethod
    def of(cls, limit: int) -> OverLimitError:
        """Return the error for a limit in bytes."""
        return cls(errno.EFBIG, f"it expands to over the limit of {limit:,} bytes (--max-expanded)")


class Meter:
    """Counts what is expanded, against a limit; several streams may share it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    @property
    def left(self) -> int:
        """What may still be expanded, in bytes."""
        return max(0, self.limit - self.spent)

    def spend(self, size: int) -> None:
        """Count ``size`` bytes. Raises :class:`OverLimitError` if there are not as many left."""
        self.spent += size
        if self.spent > self.limit:
            raise OverLimitError.of(self.limit)


def broken(reason: str) -> OSError:
    """Return the error that says ``reason`` to people."""
    return OSError(errno.EIO, reason)


def codec_of(head: bytes) -> str | None:
    """Return how the bytes that begin with ``head`` are packed, ``gzip`` or ``zstd``; ``None`` if they are not."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD) or (head[1:4] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F):
        return "zstd"
    return None


def read_head(
    stream: Raw | BinaryIO, size: int, enough: Callable[[bytes], bool] = lambda head: False
) -> tuple[bytes, OSError | None]:
    """Read up to ``size`` bytes; return them, and the error that came before there were as many.

    ``enough`` says whether what was read will do: more may be long in coming.
    """
    pieces: list[bytes] = []
    missing = size
    try:
        while missing and (piece := stream.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
            if enough(b"".join(pieces)):
                break
    except OSError as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


class Stream(io.RawIOBase):
    """Base of the streams here: to be read forwards, in pieces of any size."""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill ``buffer`` as far as there is something; 0 at the end."""
        data = self.take(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes, none at the end alone."""
        raise NotImplementedError


class Prefixed(Stream):
    """A stream after ``head`` was read from it: gives that once more, then the rest, or the error that came then."""

    def __init__(self, head: bytes, rest: Raw, error: OSError | None = None) -> None:
        super().__init__()
        self._error = error
        self._head = head
        self._rest = rest

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        if self._head:
            data, self._head = self._head[:wanted], self._head[wanted:]
            return data
        if self._error is not None:
            raise self._error
        return self._rest.read(wanted) or b""

    def close(self) -> None:
        """Close the stream below, too."""
        self._rest.close()
        super().close()


class Part(Stream):
    """The next ``size`` bytes of a stream, which must be there; closing it leaves the stream open unless ``owns``."""

    def __init__(self, whole: Raw, size: int, *, owns: bool = False) -> None:
        super().__init__()
        self._whole = whole
        self._owns = owns
        self.left = size

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        data = self._whole.read(min(wanted, self.left)) or b"" if self.left else b""
        if self.left and wanted and not data:
            raise broken("it ends in the middle")
        self.left -= len(data)
        return data

    def close(self) -> None:
        """Close it, and the stream below if it owns that."""
        if self._owns:
            self._whole.close()
        super().close()


class Expanded(Stream):
    """What a packed stream holds.

    ``codec`` is one of :data:`CODECS`. ``size`` and ``crc`` are what it must come to, where the archive says so.
    """

    def __init__(
        self, packed: Raw, codec: str, meter: Meter, *, size: int | None = None, crc: int | None = None
    ) -> None:
        super().__init__()
        self._packed = packed
        self._decoder = CODECS[codec](packed)
        self._meter = meter
        self._size = size
        self._crc = crc
        self._given = 0
        self._sum = 0
        self._error: OSError | None = None

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes. An error stays."""
        if self._error is not None:
            raise self._error
        try:
            return self._take(wanted)
        except OSError as error:
            self._error = error
            raise

    def _take(self, wanted: int) -> bytes:
        left = self._meter.left
        data = self._decoder.decode(min(wanted, left or 1))
        self._meter.spend(len(data))
        if self._size is not None:
            self._given += len(data)
            self._sum = zlib.crc32(data, self._sum)
            if self._given > self._size or (
                not data and wanted and (self._given, self._sum) != (self._size, self._crc)
            ):
                raise broken(_DAMAGED)
        return data

    def close(self) -> None:
        """Close the packed stream, too."""
        self._packed.close()
        super().close()


class _Decoder(Protocol):
    def decode(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes, none at the end alone; raise :class:`OSError` where the data is damaged."""
        ...


class _Stored:
    def __init__(self, packed: Raw) -> None:
        self._packed = packed

    def decode(self, wanted: int) -> bytes:
        return self._packed.read(wanted) or b""


class _Deflate:
    """Members of gzip one after the other, or the one raw stream of a member of a zip archive."""

    def __init__(self, packed: Raw, *, raw: bool = False) -> None:
        self._packed = packed
        self._raw = raw
        self._decoder = self._fresh()
        self._pending = b""
        self._error: OSError | None = None
        self._recovered = b""
        self._between = not raw
        """Whether the next member, if there is one, has not begun yet."""

    def _fresh(self) -> zlib._Decompress:
        return zlib.decompressobj(-zlib.MAX_WBITS if self._raw else 16 + zlib.MAX_WBITS)

    def decode(self, wanted: int) -> bytes:
        while self._error is None:
            if self._between and not self._begin():
                return b""
            data = self._pending or self._packed.read(CHUNK_BYTES) or b""
            before = self._decoder.copy()
            try:
                given = self._decoder.decompress(data, wanted)
            except zlib.error:
                self._error = broken(_DAMAGED)
                self._recovered = _up_to_damage(before, data)
                break
            self._pending = self._decoder.unconsumed_tail
            if self._decoder.eof:
                self._pending = self._decoder.unused_data
                self._between = True
            if given:
                return given
            if not data and not self._between:
                self._error = broken(_CUT)
        if self._recovered:
            given, self._recovered = self._recovered[:wanted], self._recovered[wanted:]
            return given
        assert self._error is not None
        raise self._error

    def _begin(self) -> bool:
        """Begin the next member; padding is passed over. Return whether there is one."""
        if self._raw:
            return False
        while True:
            self._pending = self._pending.lstrip(b"\0")
            if len(self._pending) >= len(_GZIP):
                break
            more = self._packed.read(CHUNK_BYTES)
            if not more:
                break
            self._pending += more
        if not self._pending:
            return False
        if not self._pending.startswith(_GZIP):
            raise broken(_CUT if _GZIP.startswith(self._pending) else _FOLLOWED)
        self._decoder = self._fresh()
        self._between = False
        return True


def _up_to_damage(decoder: zlib._Decompress, data: bytes) -> bytes:
    """Return what ``decoder`` gives of ``data`` before it fails; a call that fails gives nothing of its own."""
    given = bytearray()
    try:
        for at in range(len(data)):
            given += decoder.decompress(data[at : at + 1])
    except zlib.error:
        return bytes(given)
    return bytes(given)


class _Zstd:
    """Frames of zstd, block by block: no block gives more than 128 KiB, and a frame without its last one is cut.

    The decoder alone tells neither how much one call will give nor that a frame has no end (RFC 8878, section 3).
    """

    def __init__(self, packed: Raw) -> None:
        self._packed = io.BufferedReader(cast("io.RawIOBase", packed), CHUNK_BYTES)
        self._context = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._checksum = False
        self._last = False
        self._left = b""

    def decode(self, wanted: int) -> bytes:
        while not self._left:
            piece = self._next()
            if piece is None:
                return b""
            if self._frame is not None:
                try:
                    self._left = self._frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise broken(_TOO_WIDE if "too much memory" in str(error) else _DAMAGED) from error
            if self._last and not self._checksum:
                self._frame = None
        given, self._left = self._left[:wanted], self._left[wanted:]
        return given

    def _next(self) -> bytes | None:
        """Return the next header, block or checksum; ``None`` at the end."""
        if self._frame is None:
            return self._header()
        if self._last:
            self._checksum = False
            return self._exactly(4)
        header = self._exactly(3)
        value = int.from_bytes(header, "little")
        kind, size = value >> 1 & 3, value >> 3
        self._last = bool(value & 1)
        if kind == 3 or size > _ZSTD_BLOCK:
            raise broken(_DAMAGED)
        return header + self._exactly(1 if kind == 1 else size)

    def _header(self) -> bytes | None:
        magic = self._packed.read(4)
        while len(magic) == 4 and magic[1:] == _SKIPPABLE and 0x50 <= magic[0] <= 0x5F:
            left = int.from_bytes(self._exactly(4), "little")
            while left:
                left -= len(self._exactly(min(left, CHUNK_BYTES)))
            magic = self._packed.read(4)
        if not magic:
            return None
        if magic != _ZSTD:
            raise broken(_CUT if _ZSTD.startswith(magic) else _FOLLOWED)
        descriptor = self._exactly(1)
        single = descriptor[0] >> 5 & 1
        size = (single, 2, 4, 8)[descriptor[0] >> 6] + (0, 1, 2, 4)[descriptor[0] & 3] + (1 - single)
        self._checksum = bool(descriptor[0] >> 2 & 1)
        self._last = False
        self._frame = self._context.decompressobj()
        return magic + descriptor + self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = self._packed.read(size)
        if len(data) < size:
            raise broken(_CUT)
        return data


def _raw_deflate(packed: Raw) -> _Decoder:
    return _Deflate(packed, raw=True)


class _Codec(Protocol):
    def __call__(self, packed: Raw, /) -> _Decoder: ...


#: What streams can be packed with: ``gzip`` and ``zstd``, and in zip archives ``deflate`` and ``stored``, too.
CODECS: Final[dict[str, _Codec]] = {"gzip": _Deflate, "zstd": _Zstd, "deflate": _raw_deflate, "stored": _Stored}
