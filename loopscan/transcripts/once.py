"""Streams that can be read only once, such as standard input and pipes."""

from __future__ import annotations

import errno
import tempfile
import weakref
from typing import BinaryIO, cast

from loopscan.transcripts.streams import CHUNK_BYTES, OverLimitError, Prefixed, Raw, Stream


class Once:
    """A stream that came in here. It can be looked into, which keeps what was seen, and then be read.

    An archive in it has to be kept as a whole: its members are read later than they are found. It then lies in a
    temporary file without a name.
    """

    def __init__(self, stream: Raw, *, owns: bool) -> None:
        """Take ``stream``, which is closed in the end if it is owned: when nobody can ask for it any more."""
        self._stream = cast("Raw", _Eager(stream)) if hasattr(stream, "read1") else stream
        self._owns = owns
        self._seen = bytearray()
        self._given = False
        self.file: BinaryIO | None = None
        """All of it, if it was kept."""
        if owns:
            weakref.finalize(self, stream.close)

    @property
    def anywhere(self) -> bool:
        """Whether it can be read anywhere, as it was kept."""
        return self.file is not None

    def look(self) -> Raw:
        """Return the stream, to look into it."""
        return _Look(self)

    def see(self, wanted: int) -> bytes:
        """Read on and remember what was read."""
        data = self._stream.read(wanted) or b""
        self._seen += data
        return data

    def open(self, offset: int = 0, size: int | None = None) -> Raw:
        """Return the stream from its beginning, once; or any part of it that was kept. Raises :class:`OSError`."""
        if self.file is not None:
            return _Kept(self.file, offset)
        if self._given:
            raise OSError(errno.ESPIPE, "it can be read only once")
        self._given = True
        seen, self._seen = bytes(self._seen), bytearray()
        return _Rest(seen, self._stream, owns=self._owns)

    def keep(self, limit: int) -> None:
        """Keep all of it, if it is not yet. Raises :class:`OSError`, also if there are more bytes than ``limit``."""
        if self.file is None:
            self.file = spool(self.open(), limit)
            weakref.finalize(self, self.file.close)


class _Eager(Stream):
    """What there is of a buffered stream, without waiting for as much as was asked for."""

    def __init__(self, stream: Raw) -> None:
        super().__init__()
        self._stream = cast("BinaryIO", stream)

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        return self._stream.read1(wanted)  # type: ignore[attr-defined, no-any-return]


class _Look(Stream):
    def __init__(self, once: Once) -> None:
        super().__init__()
        self._once = once

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        return self._once.see(wanted)


class _Rest(Prefixed):
    def __init__(self, head: bytes, rest: Raw, *, owns: bool) -> None:
        super().__init__(head, rest)
        self._owns = owns

    def close(self) -> None:
        """Close the stream if that is to be done."""
        if self._owns:
            super().close()


class _Kept(Stream):
    """What was kept, from a place on; others read it, too."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        super().__init__()
        self._file = file
        self._at = offset

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        self._file.seek(self._at)
        data = self._file.read(wanted)
        self._at += len(data)
        return data


def spool(stream: Raw, limit: int) -> BinaryIO:
    """Copy the rest of a stream to a temporary file without a name, and return that.

    Raises :class:`OSError`, also if there are more bytes than ``limit``.
    """
    file = cast("BinaryIO", tempfile.TemporaryFile(prefix="loopscan-"))  # noqa: SIM115 - the caller's
    size = 0
    try:
        while data := stream.read(CHUNK_BYTES):
            size += len(data)
            if size > limit:
                raise OverLimitError.of(limit)
            file.write(data)
        file.seek(0)
    except OSError:
        file.close()
        raise
    return file
