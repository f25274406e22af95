"""What a reader is, what it reads from, and how the right one is found.

A reader turns one source into the events of :mod:`loopscan.events`. Built-in readers are named in
:data:`BUILTIN`; others announce themselves under the entry point group ``loopscan.readers``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import partial
from typing import BinaryIO, Protocol, cast, runtime_checkable

from loopscan.errors import InputError, UsageError
from loopscan.events import Event

#: The entry point group of third-party readers: each names a :class:`Reader` or a callable that makes one.
GROUP = "loopscan.readers"

#: The readers that come with loopscan, by name; imported when first asked for.
BUILTIN: Mapping[str, str] = {"openclaw-jsonl": "loopscan.transcripts.openclaw:OpenClawReader"}

#: How many bytes of a source a reader gets to see to recognise it.
HEAD_BYTES = 1 << 16

#: A longer line is skipped and named, in bytes.
MAX_LINE_BYTES = 64 << 20


class Confidence(IntEnum):
    """How sure a reader is that a source is its own."""

    NO = 0
    LIKELY = 1
    SURE = 2


class Source:
    """One stream of bytes, and what was counted while it was read.

    ``name`` is what people call it (a path); ``bytes``, ``lines`` and ``copies`` grow as a reader reads.
    A source can be read more than once if its opener can; the counts are those of the last time. It can go
    to another process if its opener can.
    """

    __slots__ = ("_opener", "bytes", "copies", "lines", "max_line", "name", "taken")

    def __init__(
        self,
        name: str,
        opener: Callable[[], BinaryIO],
        *,
        max_line: int = MAX_LINE_BYTES,
        taken: Callable[[str, str], bool] | None = None,
    ) -> None:
        """Name a stream.

        ``opener`` gives a fresh binary stream; ``max_line`` is in bytes. ``taken`` is asked once for each
        entry, with session id and entry id, and says whether another source gave that entry already
        (near-copies of one session must not count twice): such an entry is skipped and counted in ``copies``.
        """
        self.name = name
        self.max_line = max_line
        self.taken = taken
        self._opener = opener
        self.bytes = 0
        self.lines = 0
        self.copies = 0
        """Entries that were left out because they had been recorded before."""

    @classmethod
    def of_file(cls, path: str | os.PathLike[str], *, max_line: int = MAX_LINE_BYTES) -> Source:
        """Return the file ``path`` as a source; nothing is opened yet."""
        return cls(os.fsdecode(path), partial(_open_file, os.fspath(path)), max_line=max_line)

    def open(self) -> BinaryIO:
        """Open the stream from its start and set the counts to 0.

        Raises :class:`InputError` if that does not work.
        """
        self.bytes = self.lines = self.copies = 0
        try:
            return self._opener()
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror or error}") from error


@runtime_checkable
class Reader(Protocol):
    """One transcript format."""

    name: str
    """Short and stable, such as ``openclaw-jsonl``."""

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Say whether ``head``, the first :data:`HEAD_BYTES` of a source or all of it, is of this format.

        By content; ``name`` may break a tie. Must not raise, whatever the bytes are.
        """
        ...

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of ``source`` in the order in which they were recorded, in bounded memory.

        What cannot be used is a :class:`~loopscan.events.Problem`, never an exception; only a source that
        cannot be opened raises :class:`InputError`. Problems may also stand outside of any session.
        """
        ...


@functools.cache
def readers() -> Mapping[str, Reader]:
    """Return all readers by name, the built-in ones first.

    Raises :class:`UsageError` if a plug-in cannot be loaded or takes a name that is in use.
    """
    found: dict[str, Reader] = {}
    for name, target in BUILTIN.items():
        module, _, attribute = target.partition(":")
        found[name] = getattr(importlib.import_module(module), attribute)()
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        reader = _load(entry)
        if reader.name in found:
            raise UsageError(f"the reader plug-in {entry.value} is named {reader.name!r}, which is taken: remove one")
        found[reader.name] = reader
    return found


def recognise(head: bytes, name: str, among: Mapping[str, Reader] | None = None) -> Reader | None:
    """Return the reader that is surest that ``head`` is its own, ``None`` if none is; the first wins a tie."""
    best: Reader | None = None
    confidence = Confidence.NO
    for reader in (readers() if among is None else among).values():
        found = reader.recognise(head, name)
        if found > confidence:
            best, confidence = reader, found
    return best


def _open_file(path: str | bytes) -> BinaryIO:
    return cast("BinaryIO", open(path, "rb", buffering=0))  # noqa: PTH123 - the caller closes it


def _load(entry: importlib.metadata.EntryPoint) -> Reader:
    try:
        made = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the reader plug-in {entry.value} cannot be loaded ({error}): fix or remove it") from error
    reader = made() if isinstance(made, type) or not isinstance(made, Reader) else made
    if not isinstance(reader, Reader):
        raise UsageError(f"the reader plug-in {entry.value} is no reader: it needs name, recognise and read")
    return reader
