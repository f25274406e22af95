"""What a reader is, what it reads from, and how the right one is found.

A reader turns one source into the events of :mod:`loopscan.events`. Built-in readers are named in
:data:`BUILTIN`; others announce themselves under the entry point group ``loopscan.readers``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast, runtime_checkable

from loopscan.errors import InputError, UsageError
from loopscan.events import Event
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.places import open_file
from loopscan.transcripts.streams import MAX_EXPANDED_BYTES

if TYPE_CHECKING:
    from loopscan.transcripts.pieces import Pieces

#: The entry point group of third-party readers: each names a :class:`Reader` or a callable that makes one.
GROUP = "loopscan.readers"

#: The readers that come with loopscan, by name; imported when first asked for.
BUILTIN: Mapping[str, str] = {
    "openclaw-jsonl": "loopscan.transcripts.openclaw:OpenClawReader",
    "openclaw-sqlite": "loopscan.transcripts.openclaw.sqlite:OpenClawDatabaseReader",
    "openclaw-backup": "loopscan.transcripts.openclaw.backup:OpenClawBackupReader",
    "openclaw-trajectory": "loopscan.transcripts.openclaw.trajectory:TrajectoryReader",
    "openclaw-log": "loopscan.transcripts.openclaw.log:LogReader",
    "claude-code": "loopscan.transcripts.claude_code:ClaudeCodeReader",
    "swe-agent": "loopscan.transcripts.swe_agent:SweAgentReader",
    "openhands": "loopscan.transcripts.openhands:OpenHandsReader",
    "gemini": "loopscan.transcripts.gemini:GeminiReader",
    "cline": "loopscan.transcripts.cline:ClineReader",
    "cline-ui": "loopscan.transcripts.cline:ClineUiReader",
    "openai-messages": "loopscan.transcripts.openai_messages:OpenAIMessagesReader",
    "codex": "loopscan.transcripts.codex:CodexReader",
    "codex-exec": "loopscan.transcripts.codex:CodexStreamReader",
}

#: How many bytes of a source a reader gets to see to recognise it.
HEAD_BYTES = 1 << 16

_KIND_LENGTH = 60
_MOST_KINDS = 100

#: A longer line is skipped and named, in bytes.
MAX_LINE_BYTES = 64 << 20


class Confidence(IntEnum):
    """How sure a reader is that a source is its own."""

    NO = 0
    LIKELY = 1
    SURE = 2


class Source:
    """One stream of bytes, and what was counted while it was read.

    ``name`` is what people call it (a path); the counts grow as a reader reads.
    A source can be read more than once if its opener can; the counts are those of the last time. It can go
    to another process if its opener can.
    """

    __slots__ = (
        "_opener",
        "blank",
        "bytes",
        "copies",
        "failure",
        "follow",
        "ledger",
        "lines",
        "max_expanded",
        "max_line",
        "name",
        "normalised",
        "path",
        "pieces",
        "unusable",
        "unused",
        "used",
    )

    def __init__(
        self,
        name: str,
        opener: Callable[[], BinaryIO],
        *,
        path: Path | None = None,
        pieces: Pieces | None = None,
        max_line: int = MAX_LINE_BYTES,
        max_expanded: int = MAX_EXPANDED_BYTES,
        ledger: Ledger | None = None,
        follow: bool = False,
    ) -> None:
        """Name a stream.

        ``opener`` gives a fresh binary stream, which raises nothing but :class:`OSError`; ``path`` is where the
        same bytes lie in a file of this machine, if they do. ``pieces`` are the files of a folder that is one
        record: it has no stream, and is read by :func:`~loopscan.transcripts.pieces.read_pieces`. ``max_line`` and
        ``max_expanded`` are in bytes. ``ledger`` knows what other sources of the same session gave (see
        :meth:`is_copy`). ``follow`` says that the end of the stream is not the end of the source.
        """
        self.name = name
        self.path = path
        self.pieces = pieces
        self.max_line = max_line
        self.max_expanded = max_expanded
        self.ledger = ledger
        self.follow = follow
        self._opener = opener
        self.begin()

    def begin(self) -> None:
        """Set the counts to 0: it is read from its start."""
        self.failure: str | None = None
        """Why the source is not whole, as far as that was met so far; see :meth:`local` and :func:`family_of`."""
        self.bytes = 0
        self.lines = 0
        self.blank = 0
        """Lines of white space alone."""
        self.unusable = 0
        """Lines that gave no value; a problem names each."""
        self.used: Counter[str] = Counter()
        """Entries that a reader used, by their kind; see :meth:`count`."""
        self.unused: Counter[str] = Counter()
        """Entries that hold nothing for the loop detection, by their kind."""
        self.copies: Counter[str] = Counter()
        """Entries that were left out because they had been recorded before, by the source that gave them."""
        self.normalised: Counter[str] = Counter()
        """How often each normaliser of the reader changed an outcome or arguments; see :class:`Traits`."""

    @classmethod
    def of_file(
        cls,
        path: str | os.PathLike[str],
        *,
        max_line: int = MAX_LINE_BYTES,
        max_expanded: int = MAX_EXPANDED_BYTES,
    ) -> Source:
        """Return the file ``path`` as a source; nothing is opened yet."""
        name = os.fsdecode(path)
        opener = partial(_open_file, os.fspath(path))
        return cls(name, opener, path=Path(name), max_line=max_line, max_expanded=max_expanded)

    def count(self, kind: str, *, used: bool) -> None:
        """Count an entry under its kind. Every value that the source gave is counted once, here or as a copy.

        Kinds are words of the format, but may come from anywhere: long ones are cut, and there are not many.
        """
        counter = self.used if used else self.unused
        kind = kind[:_KIND_LENGTH]
        counter[kind if kind in counter or len(counter) < _MOST_KINDS else "other"] += 1

    def is_copy(self, session: str, entry: str) -> bool:
        """Say whether another source gave this entry of a session already; it is then counted in ``copies``.

        To be asked once for each entry; near-copies of one session must not count twice.
        """
        giver = self.ledger.entry(self.name, session, entry) if self.ledger is not None else None
        if giver is None:
            return False
        self.copies[giver] += 1
        return True

    def given_by(self, session: str) -> str | None:
        """Return the other source that gave this session, or a part of it, before; ``None`` if none did."""
        return self.ledger.session(self.name, session) if self.ledger is not None else None

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Give the path of a file of this machine that holds the bytes of the source, and set the counts to 0.

        What lies in an archive or elsewhere is copied to a temporary file, which goes at the end; where that breaks
        off, the file holds what there was before, and ``failure`` says why. Raises :class:`InputError` if the
        source cannot be opened.
        """
        if self.path is not None:
            self.begin()
            yield self.path
            return
        with self.open() as stream, tempfile.NamedTemporaryFile(prefix="loopscan-") as copy:
            try:
                shutil.copyfileobj(stream, copy, 1 << 20)
            except OSError as error:
                self.failure = error.strerror or "I/O error"
            copy.flush()
            yield Path(copy.name)

    def open(self) -> BinaryIO:
        """Open the stream from its start and set the counts to 0.

        Raises :class:`InputError` if that does not work.
        """
        self.begin()
        try:
            return self._opener()
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class Traits:
    """What people are told of a reader, and what the replay does with what it gives."""

    summary: str = ""
    """What it reads, in half a sentence."""
    recognised_by: str = ""
    """How it recognises that, in half a sentence."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Tools of the format by the name that the engine's rules know them by, such as ``Bash``: ``exec``."""
    normalisers: Mapping[str, str] = field(default_factory=dict)
    """What it takes out of recorded outcomes, or rebuilds in them, so that equal ones are equal: a sentence for each
    name. Each use is counted in :attr:`Source.normalised`."""
    changes_anywhere: bool = False
    """Its files are not only added to, and the reader finds out by itself what is new, as of a database."""
    pieces: bool = False
    """A folder with a file for each event may be one record, :attr:`Source.pieces`."""
    rank: int = 0
    """Of the sources that hold a session, the one with the lowest rank is believed first."""


@runtime_checkable
class Reader(Protocol):
    """One transcript format.

    A reader may also have ``traits`` (:class:`Traits`), and a method ``family(head, name)`` or ``family_in(source)``
    that returns the set of strings by which to tell that two sources may hold entries of the same session; see
    :func:`traits_of` and :func:`family_of` for what holds without them.
    """

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


def traits_of(reader: Reader) -> Traits:
    """Return the traits of a reader, none of them where it declares none."""
    found = getattr(reader, "traits", None)
    return found if isinstance(found, Traits) else Traits()


def family_of(reader: Reader, head: bytes, source: Source, *, again: bool = True) -> frozenset[str]:
    """Return what tells which other sources may hold the same session: nothing where the reader does not say.

    A reader to whom ``head`` does not tell it may have a method ``family_in(source)``, which reads the source and may
    set :attr:`Source.failure`; it is not asked where the source cannot be read ``again``.
    """
    if again and reads_for_family(reader):
        return frozenset(reader.family_in(source))  # type: ignore[attr-defined]
    family = getattr(reader, "family", None)
    return frozenset(family(head, source.name)) if callable(family) else frozenset()


def reads_for_family(reader: Reader) -> bool:
    """Whether a reader has to read a source as a whole to tell its family; see :func:`family_of`."""
    return callable(getattr(reader, "family_in", None))


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
        if confidence is Confidence.SURE:
            break
    return best


def _open_file(path: str) -> BinaryIO:
    return cast("BinaryIO", open_file(path))


def _load(entry: importlib.metadata.EntryPoint) -> Reader:
    try:
        made = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the reader plug-in {entry.value} cannot be loaded ({error}): fix or remove it") from error
    reader = made() if isinstance(made, type) or not isinstance(made, Reader) else made
    if not isinstance(reader, Reader):
        raise UsageError(f"the reader plug-in {entry.value} is no reader: it needs name, recognise and read")
    return reader
