"""From the paths that people name to the sources that hold sessions."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loopscan.errors import InputError
from loopscan.transcripts.reader import (
    HEAD_BYTES,
    MAX_EXPANDED_BYTES,
    MAX_LINE_BYTES,
    Reader,
    Source,
    family_of,
    readers,
    recognise,
    traits_of,
)

#: Names of files in a folder that are looked into: session files, and what OpenClaw leaves beside them
#: (reset, deleted, repaired and checkpointed ones). What they hold is told by their content.
CANDIDATES = re.compile(r"\.jsonl(?:\.(?:reset|deleted)\..+|\.bak-.+)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Found:
    """A source that a reader recognised."""

    source: Source
    reader: str
    """The reader's name."""
    family: frozenset[str] = frozenset()
    """What it shares with other sources that may hold entries of the same session."""
    rank: tuple[int, ...] = ()
    """Of a family, the source with the lowest rank is believed first."""
    here: bool = False
    """It cannot be read in another process."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of a folder that is not read, and why."""

    path: str
    reason: str
    """A few words, free of the file's content."""


@dataclass(slots=True)
class Discovery:
    """What was found, in order: as named, sorted within a folder."""

    sources: list[Found] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def discover(
    paths: Iterable[str | os.PathLike[str]],
    *,
    among: Mapping[str, Reader] | None = None,
    on_error: Callable[[InputError], None] | None = None,
    input_format: str | None = None,
    max_line: int = MAX_LINE_BYTES,
    max_expanded: int = MAX_EXPANDED_BYTES,
) -> Discovery:
    """Find the sources in files and folders.

    Folders are walked to the bottom in sorted order; links in them are not followed (what they point to
    inside the folder is found there anyway). A file that is met twice is read once. ``among`` are the
    readers to choose from, all by default. A named path that is missing, cannot be read or is of no known
    format is an :class:`InputError`, which is raised, or given to ``on_error``; a file in a folder is
    skipped for the same reasons.
    """
    found = Discovery()
    met: set[tuple[int, int]] = set()
    known = readers() if among is None else among
    for name in paths:
        path = Path(name)
        try:
            if _is_folder(path):
                for file in _walk(path):
                    if isinstance(file, Skipped):
                        found.skipped.append(file)
                    else:
                        _look(file, known, met, found, named=False)
            else:
                _look(path, known, met, found, named=True)
        except InputError as error:
            if on_error is None:
                raise
            on_error(error)
    return found


def _look(
    path: Path, known: Mapping[str, Reader], met: set[tuple[int, int]], found: Discovery, *, named: bool
) -> None:
    """Look into one file and put it where it belongs."""
    reason: str | None = None
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            reason = "not a regular file"
        elif (about.st_dev, about.st_ino) in met:
            found.skipped.append(Skipped(str(path), "read already, under another name"))
            return
        elif not named and not CANDIDATES.search(path.name):
            reason = "not named like a transcript"
        else:
            with path.open("rb") as stream:
                head = stream.read(HEAD_BYTES)
            reader = recognise(head, str(path), known)
            if reader is not None:
                met.add((about.st_dev, about.st_ino))
                family = family_of(reader, head, str(path))
                found.sources.append(Found(Source.of_file(path), reader.name, family, (traits_of(reader).rank,)))
                return
            reason = "of no known format" if head.strip() else "empty"
    except (FileNotFoundError, ValueError):
        # ValueError: no file can have a name with NUL in it.
        reason = "no such file or folder"
    except OSError as error:
        reason = f"cannot be read: {error.strerror or 'I/O error'}"
    if named:
        formats = ", ".join(known)
        hint = f" (known: {formats})" if reason == "of no known format" else ""
        raise InputError(f"{path}: {reason}{hint}", str(path))
    found.skipped.append(Skipped(str(path), reason))


def _walk(folder: Path) -> Iterator[Path | Skipped]:
    """Yield the files below ``folder``, sorted by name at each level."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            if path is not folder and path.is_symlink():
                yield Skipped(str(path), "a symbolic link")
            elif path is folder or path.is_dir():
                waiting += sorted(path.iterdir(), reverse=True)
            else:
                yield path
        except OSError as error:
            reason = f"cannot be read: {error.strerror or 'I/O error'}"
            if path is folder:
                raise InputError(f"{path}: {reason}", str(path)) from error
            yield Skipped(str(path), reason)


def _is_folder(path: Path) -> bool:
    """Whether a named path is a folder; one that cannot even be asked is taken for a file, which says why."""
    try:
        return path.is_dir()
    except OSError:
        return False
