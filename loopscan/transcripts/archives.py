"""The members of tar and zip archives: names, places and beginnings. Nothing is ever extracted by name."""

from __future__ import annotations

import io
import re
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

from loopscan.transcripts.places import Expand, Slice, Step
from loopscan.transcripts.streams import CHUNK_BYTES, Expanded, Meter, Part, Raw, Stream, broken, read_head

_DAMAGED = "the archive is damaged"
_CUT = "the archive ends in the middle"

_BLOCK: Final = 512
#: What stands before a member and tells more of it, such as a long name, in bytes.
_MOST_EXTRA: Final = 1 << 20
_EXTENSION = (b"x", b"X", b"g", b"L", b"K")
_SPARSE_MORE: Final = 482
_SPARSE_AGAIN: Final = 504
_RECORD = re.compile(rb"(\d{1,9}) ")

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_LOCAL_BYTES: Final = 30
_ENCRYPTED: Final = 1
#: Why a member is not read that nobody can read without its key.
ENCRYPTED: Final = "encrypted"
_METHODS: Final = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflate", 93: "zstd"}
_BAD_ZIP = (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OverflowError, EOFError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. Its stream is good until the next member is asked for."""

    name: str
    steps: tuple[Step, ...] = ()
    """How to come to it from the archive."""
    stream: Raw | None = None
    reason: str | None = None
    """Why it is not read, if it is not; there are no steps and no stream then."""


class EndlessError(OSError):
    """All that is there could be read, but the archive has no end: what followed may be lost."""


def kind_of(head: bytes) -> str | None:
    """Return which kind of archive begins with ``head``, ``tar`` or ``zip``; ``None`` if none does."""
    if head.startswith(_ZIP):
        return "zip"
    try:
        tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return None
    return "tar"


def tar_members(stream: Raw) -> Iterator[Member]:
    """Yield the members of a tar archive, reading forwards; folders are none.

    Raises :class:`OSError` where it is damaged, after the members before that.
    """
    cursor = _Cursor(stream)
    extra: dict[str, str] = {}
    everywhere: dict[str, str] = {}
    ended = False
    while True:
        block = cursor.up_to(_BLOCK)
        if not block or (ended and len(block) < _BLOCK):
            break
        if len(block) < _BLOCK:
            raise broken(_CUT)
        if not block.strip(b"\0"):
            ended = True
            continue
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError):
            if ended:
                return
            raise broken(_DAMAGED) from None
        ended = False
        if info.type in _EXTENSION:
            _take_extra(cursor, info, extra, everywhere)
            continue
        fields = {**everywhere, **extra}
        extra.clear()
        name = fields.get("path", info.name)
        size = _size(fields.get("size"), info.size)
        sparse = info.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse.") for key in fields)
        if info.type == tarfile.GNUTYPE_SPARSE:
            _pass_sparse(cursor, block)
        if info.isdir() or (info.type == tarfile.AREGTYPE and name.endswith("/")):
            continue
        if info.islnk() or info.issym() or info.isdev():
            # Whatever they say of their size, nothing of it follows.
            yield Member(name, reason="a link in an archive" if not info.isdev() else "not a regular file")
            continue
        end = cursor.position + size
        if sparse or not info.isfile():
            yield Member(name, reason="a sparse file in an archive" if sparse else "not a regular file")
        else:
            part = Part(cursor, size)
            yield Member(name, (Slice(cursor.position, size),), part)
        if not cursor.skip_to(end):
            raise broken(_CUT)
        cursor.skip_to(end + -size % _BLOCK)
    if not ended:
        raise EndlessError(0, "the archive has no end: more may have followed")


def zip_members(file: BinaryIO, meter: Meter) -> Iterator[Member]:
    """Yield the members of a zip archive in the order in which they lie in it; folders are none.

    ``file`` can be read anywhere. What the members expand to as they are read counts in ``meter``.
    Raises :class:`OSError` where it is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    except _BAD_ZIP as error:
        raise broken(_DAMAGED) from error
    for info in infos:
        if info.is_dir():
            continue
        codec = _METHODS.get(info.compress_type)
        mode = info.external_attr >> 16
        if info.flag_bits & _ENCRYPTED:
            yield Member(info.filename, reason=ENCRYPTED)
        elif stat.S_ISLNK(mode):
            yield Member(info.filename, reason="a link in an archive")
        elif codec is None:
            yield Member(info.filename, reason=f"packed by method {info.compress_type}, which is not read")
        else:
            offset = _data_of(file, info.header_offset)
            if offset is None:
                yield Member(info.filename, reason=_DAMAGED)
                continue
            part = Part(file, info.compress_size)
            expand = Expand(codec, info.file_size, info.CRC)
            stream = Expanded(part, codec, meter, size=info.file_size, crc=info.CRC)
            yield Member(info.filename, (Slice(offset, info.compress_size), expand), stream)


class _Cursor(Stream):
    """A stream that is read forwards, and where it stands."""

    def __init__(self, stream: Raw) -> None:
        super().__init__()
        self._stream = stream
        self._seeks = isinstance(stream, io.FileIO)
        self.position = 0

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        data = self._stream.read(wanted) or b""
        self.position += len(data)
        return data

    def up_to(self, wanted: int) -> bytes:
        """Return ``wanted`` bytes, fewer only at the end. Raises :class:`OSError` where there are none to be had."""
        data, error = read_head(self, wanted)
        if error is not None:
            raise error
        return data

    def skip_to(self, position: int) -> bool:
        """Go forwards to ``position``; return whether there is as much."""
        if self._seeks and position - self.position > CHUNK_BYTES:
            # To just before it: one can go to where nothing is, but not read there.
            cast("io.FileIO", self._stream).seek(position - 1)
            self.position = position - 1
        while self.position < position:
            if not self.take(min(CHUNK_BYTES, position - self.position)):
                return False
        return True


def _take_extra(cursor: _Cursor, info: tarfile.TarInfo, extra: dict[str, str], everywhere: dict[str, str]) -> None:
    """Take in what stands before a member and tells more of it, or of all that follow."""
    size = _size(None, info.size)
    if size > _MOST_EXTRA:
        raise broken(_DAMAGED)
    data = cursor.up_to(size + -size % _BLOCK)[:size]
    if len(data) < size:
        raise broken(_CUT)
    if info.type == b"L":
        extra["path"] = data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    elif info.type == b"g":
        everywhere.update(_records(data))
    elif info.type != b"K":
        extra.update(_records(data))


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the fields of an extended header, ``LENGTH KEY=VALUE`` and a line break each (POSIX pax)."""
    at = 0
    while found := _RECORD.match(data, at):
        end = at + int(found[1])
        if end <= found.end():
            return
        key, _, value = data[found.end() : end - 1].partition(b"=")
        yield key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")
        at = end


def _size(text: str | None, declared: int) -> int:
    if text is not None and text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    if declared < 0:
        raise broken(_DAMAGED)
    return declared


def _pass_sparse(cursor: _Cursor, block: bytes) -> None:
    """Pass over the blocks that continue the header of an old sparse file."""
    more = block[_SPARSE_MORE]
    while more:
        following = cursor.up_to(_BLOCK)
        if len(following) < _BLOCK:
            raise broken(_CUT)
        more = following[_SPARSE_AGAIN]


def _data_of(file: BinaryIO, offset: int) -> int | None:
    """Return where the data of the member of a zip archive begins whose header is at ``offset``; go there."""
    try:
        file.seek(offset)
        header = file.read(_LOCAL_BYTES)
        if len(header) < _LOCAL_BYTES or not header.startswith(_ZIP[0]):
            return None
        lengths = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
        data = offset + _LOCAL_BYTES + sum(lengths)
        file.seek(data)
    except (ValueError, OverflowError):
        return None
    return data
