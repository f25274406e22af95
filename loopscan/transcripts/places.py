"""Where the bytes of a source are: in a file, in a member of an archive in it, packed or not.

A :class:`Place` is data: it can be compared and sent to another process, and is opened there. Members of an archive
that are read in the order in which they lie in it cost one pass over it, whether it is packed or not.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, Protocol, TypeAlias, cast

from loopscan.transcripts.streams import CHUNK_BYTES, Expanded, Meter, Part, Raw, Stream, broken

#: How many packed archives are kept open at the same time, in each thread.
_MOST_OPEN: Final = 8

#: How to open a name that nothing may wait for, whatever became of it since it was listed.
WITHOUT_WAITING: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


class Origin(Hashable, Protocol):
    """Where bytes come from before anything is unpacked."""

    @property
    def anywhere(self) -> bool:
        """Whether it can be opened in its middle without reading what stands before."""
        ...

    def open(self, offset: int = 0, size: int | None = None) -> Raw:
        """Return a stream that begins at ``offset``, and may end after ``size`` bytes. Raises :class:`OSError`."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine."""

    path: str

    @property
    def anywhere(self) -> bool:
        """Files can be opened anywhere."""
        return True

    def open(self, offset: int = 0, size: int | None = None) -> Raw:
        """Open the file."""
        stream = open_file(self.path)
        if offset:
            stream.seek(offset)
        return stream


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Expand:
    """The bytes, unpacked; see :class:`~loopscan.transcripts.streams.Expanded`."""

    codec: str
    size: int | None = None
    crc: int | None = None


Step: TypeAlias = Slice | Expand


@dataclass(frozen=True, slots=True)
class Place:
    """Where to find the bytes of a source: from the origin by the steps, in order."""

    origin: Origin
    steps: tuple[Step, ...] = ()

    def then(self, *steps: Step) -> Place:
        """Return the place that the steps lead to from here."""
        return replace(self, steps=self.steps + steps)


def open_file(path: str | os.PathLike[str]) -> io.FileIO:
    """Open a regular file without ever waiting. Raises :class:`OSError`, also if it is something else."""
    handle = os.open(path, WITHOUT_WAITING)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file")
    return io.FileIO(handle)


def open_place(place: Place, limit: int) -> BinaryIO:
    """Open ``place`` at its beginning; no packed stream on the way may expand to more than ``limit`` bytes.

    Raises :class:`OSError`, as does the stream.
    """
    return cast("BinaryIO", _open(place, limit, 0, None))


def _open(place: Place, limit: int, offset: int, size: int | None) -> Raw:
    if not place.steps:
        if offset and not place.origin.anywhere:
            return _Window(place, limit, offset, size)
        stream = place.origin.open(offset, size)
        return stream if size is None else Part(stream, size, owns=True)
    before, step = Place(place.origin, place.steps[:-1]), place.steps[-1]
    if isinstance(step, Slice):
        # A member may be shorter than one that is looked for in it: the archive says so, not the bytes.
        inside = max(0, step.size - offset)
        return _open(before, limit, step.offset + offset, inside if size is None else min(size, inside))
    if offset or size is not None:
        return _Window(place, limit, offset, size)
    return Expanded(_open(before, limit, 0, None), step.codec, Meter(limit), size=step.size, crc=step.crc)


class _Window(Stream):
    """A part of a stream that others read other parts of."""

    def __init__(self, place: Place, limit: int, offset: int, size: int | None) -> None:
        super().__init__()
        self._key = (place, limit)
        self._offset = offset
        self._left = size

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        if self._left is not None:
            wanted = min(wanted, self._left)
        data = _shared(*self._key).read(self._offset, wanted) if wanted else b""
        self._offset += len(data)
        if self._left is not None:
            if wanted and not data:
                raise broken("it ends in the middle")
            self._left -= len(data)
        return data


class _Shared:
    """A stream that can only be read forwards, for those who read parts of it.

    As long as they go forwards, so does it. The first time that somebody goes back, it begins anew, and what
    is read from then on is kept in a temporary file without a name.
    """

    def __init__(self, place: Place, limit: int) -> None:
        self._place = place
        self._limit = limit
        self._stream = _open(place, limit, 0, None)
        self._position = 0
        self._kept: BinaryIO | None = None

    def read(self, offset: int, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes from ``offset`` on."""
        if offset < self._position and self._kept is None:
            self._stream.close()
            self._stream = _open(self._place, self._limit, 0, None)
            self._position = 0
            self._kept = cast("BinaryIO", tempfile.TemporaryFile(prefix="loopscan-"))  # noqa: SIM115 - see close
        if self._kept is not None and offset < self._position:
            self._kept.seek(offset)
            return self._kept.read(min(wanted, self._position - offset))
        while self._position < offset:
            if not self._advance(min(CHUNK_BYTES, offset - self._position)):
                return b""
        return self._advance(wanted)

    def _advance(self, wanted: int) -> bytes:
        data = self._stream.read(wanted) or b""
        if self._kept is not None:
            self._kept.seek(self._position)
            self._kept.write(data)
        self._position += len(data)
        return data

    def close(self) -> None:
        """Close it and let go of what was kept."""
        self._stream.close()
        if self._kept is not None:
            self._kept.close()


class _Open(threading.local):
    """The shared streams of a thread, the one that was used last at the end."""

    def __init__(self) -> None:
        self.streams: OrderedDict[tuple[Place, int], _Shared] = OrderedDict()


_opened = _Open()


def _shared(place: Place, limit: int) -> _Shared:
    streams = _opened.streams
    found = streams.get((place, limit))
    if found is None:
        found = streams[place, limit] = _Shared(place, limit)
        if len(streams) > _MOST_OPEN:
            streams.popitem(last=False)[1].close()
    streams.move_to_end((place, limit))
    return found


def close_shared() -> None:
    """Close what this thread holds open of packed archives."""
    while _opened.streams:
        _opened.streams.popitem()[1].close()


@contextmanager
def closing_archives() -> Iterator[None]:
    """Close what this thread holds open of packed archives once the work within is done."""
    try:
        yield
    finally:
        close_shared()


def _forget() -> None:
    _opened.streams = OrderedDict()


if hasattr(os, "register_at_fork"):
    # A child would move the positions of its parent's files.
    os.register_at_fork(after_in_child=_forget)
