"""From the paths that people name to the sources that hold sessions."""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, cast

from loopscan.errors import InputError, UsageError
from loopscan.transcripts import remote
from loopscan.transcripts.archives import ENCRYPTED, EndlessError, Member, kind_of, tar_members, zip_members
from loopscan.transcripts.either import surely_lines
from loopscan.transcripts.incoming import Incoming
from loopscan.transcripts.lists import MOST_NESTED, read_list
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.once import Once, spool
from loopscan.transcripts.patterns import expand, is_pattern, meets
from loopscan.transcripts.pieces import Pieces, pieces_in
from loopscan.transcripts.places import Expand, LocalFile, Origin, Place, open_file, open_place
from loopscan.transcripts.reader import (
    HEAD_BYTES,
    MAX_LINE_BYTES,
    Reader,
    Source,
    family_of,
    readers,
    reads_for_family,
    recognise,
    traits_of,
)
from loopscan.transcripts.reasons import EMPTY, ONE_EVENT, UNKNOWN, is_binary, why_unknown
from loopscan.transcripts.remote import Remote
from loopscan.transcripts.streams import (
    CHUNK_BYTES,
    MAX_EXPANDED_BYTES,
    Expanded,
    Meter,
    OverLimitError,
    Prefixed,
    Raw,
    codec_of,
    read_head,
)

#: What standard input is called where sources are named.
STDIN: Final = "<stdin>"

#: How many times a source may be packed, archives included: ``a.jsonl.gz`` in a ``b.tar.gz`` is packed three times.
MOST_PACKED: Final = 3

_GONE = "no such file or folder"
_NOT_REGULAR = "not a regular file"
_MET = "read already, under another name"
_TOO_PACKED = f"packed more than {MOST_PACKED} times"

#: What OpenClaw leaves beside a session, after the live file: the earlier, the more it is believed.
_COPIES = tuple(re.compile(copy) for copy in (r"\.deleted\.", r"\.reset\.", r"\.bak-", r"\.checkpoint\."))

#: What is known not to be whole is believed after every whole record, but before what only tells of one (rank 10 on).
_BROKEN_RANK: Final = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A source that a reader recognised."""

    source: Source
    reader: str
    """The reader's name."""
    family: frozenset[str] = frozenset()
    """What it has in common with other sources that may hold the same session; empty if it stands alone."""
    rank: tuple[int, int] = (0, 0)
    """Of the sources of a family, the one with the lowest rank is believed first: the reader's rank (or a worse one
    for what is known not to be whole), then 0 for a live file and more for what was left beside one."""
    here: bool = False
    """Whether it can be read in this process alone, and once: it is a stream that came in here."""


class Unread(str):
    """The reason why something could not be read, which might have been a transcript."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of a folder or an archive that is not read, and why."""

    path: str
    reason: str
    """A few words, free of the file's content."""

    @property
    def unread(self) -> bool:
        """Whether it may be a transcript that could not be read, or not to its end."""
        return isinstance(self.reason, Unread)

    @property
    def again(self) -> bool:
        """Whether it is a source already."""
        return self.reason == _MET


@dataclass(slots=True)
class Discovery:
    """What was found, in order: as named, sorted within a folder, as they lie in an archive."""

    sources: list[Found] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    start_method: str | None = None
    """How processes must be started that read the sources: ``spawn`` if remote ones are among them, as what fetches
    them does not survive a fork; ``None`` for any way."""


def discover(
    paths: Iterable[str | os.PathLike[str]],
    *,
    among: Mapping[str, Reader] | None = None,
    input_format: str | None = None,
    max_line: int = MAX_LINE_BYTES,
    max_expanded: int = MAX_EXPANDED_BYTES,
    stdin: BinaryIO | None = None,
    incoming: Incoming | None = None,
    on_error: Callable[[InputError], None] | None = None,
) -> Discovery:
    """Find the sources in what is named.

    A ``str`` may be: a file or folder; ``-`` for standard input (or ``stdin``); ``@LIST`` for the paths in a list
    (see :func:`~loopscan.transcripts.lists.read_list`); an address (see :mod:`loopscan.transcripts.remote`); a
    pattern (see :mod:`loopscan.transcripts.patterns`) where no file has that name. Other paths are just that.

    Folders are walked to the bottom in sorted order; links in them are not followed (what they point to inside the
    folder is found there anyway). What is packed is unpacked while it is read, and archives are looked into, up to
    :data:`MOST_PACKED` times; all by content. A file that is met twice is read once.

    ``among`` are the readers to choose from, all by default; ``input_format`` names the one that reads everything.
    ``max_line`` is what a line may have (:attr:`Source.max_line`), ``max_expanded`` what a packed source, or an
    archive as a whole, may expand to, in bytes. Whoever looks again gives the same ``incoming`` each time: it has
    standard input and pipes with a name looked into the first time alone. It goes before ``stdin``.

    A named path that is missing, cannot be read or is of no known format is an :class:`InputError`, which is raised,
    or given to ``on_error``; so is an archive that is damaged, after what could be read of it. What was not named
    itself is skipped for the same reasons. Raises :class:`UsageError` for a format that does not exist, standard
    input named twice, and remote paths without the package for them.
    """
    known = readers() if among is None else among
    if input_format is not None and input_format not in known:
        raise UsageError(f'there is no format "{input_format}"; known: {", ".join(known)}')
    forced = known[input_format] if input_format is not None else None
    paths = list(paths)
    alone = len(paths) == 1 and not str(paths[0]).startswith("@")
    search = _Search(known, forced, max_line, max_expanded, incoming or Incoming(stdin), on_error, alone=alone)
    for name in paths:
        if isinstance(name, str):
            search.name(name)
        else:
            search.path(os.fspath(name))
    return search.found


def rank_of(reader: Reader, name: str) -> tuple[int, int]:
    """Return the rank of a source by its reader and its name; see :attr:`Found.rank`."""
    last = pieces_of(name)[-1]
    return traits_of(reader).rank, next((at for at, copy in enumerate(_COPIES, 1) if copy.search(last)), 0)


class _Search:
    """What was named on its way to what is found."""

    def __init__(
        self,
        known: Mapping[str, Reader],
        forced: Reader | None,
        max_line: int,
        max_expanded: int,
        incoming: Incoming,
        on_error: Callable[[InputError], None] | None,
        *,
        alone: bool,
    ) -> None:
        self.found = Discovery()
        self._known = known
        self._forced = forced
        self._max_line = max_line
        self._max_expanded = max_expanded
        self._incoming = incoming
        self._stdin_used = False
        self._on_error = on_error
        self._alone = alone
        """Whether one thing was named: if it is a stream, there is nothing that it could be a copy of."""
        self._met: set[object] = set()
        self._names: dict[str, int] = {}
        self._lists = 0
        self._listed = ""
        """Where in a list the path stands that is being looked at, for messages."""

    def name(self, name: str) -> None:
        """Look for what somebody named in whatever way."""
        if name == "-":
            self._take_stdin()
        elif name.startswith("@") and len(name) > 1:
            with self._errors():
                self._list(name[1:])
        elif remote.is_remote(name):
            remote.require()
            self.found.start_method = "spawn"
            with self._errors():
                self._remote(Remote(name))
        else:
            self.path(name, pattern=is_pattern(name))

    def path(self, name: str, *, pattern: bool = False) -> None:
        """Look into a file or folder that was named, or what a pattern meets."""
        with self._errors():
            if not name:
                raise InputError("an empty path is no file or folder", name)
            path = str(Path(name))
            if pattern and not os.path.lexists(path):
                met = expand(name)
                if not met:
                    raise InputError(f"{name}: no file or folder meets this pattern", name)
                for each in met:
                    with self._errors():
                        self._local(each, named=False)
            else:
                self._local(path, named=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            if self._listed and error.path:
                error = InputError(f"{error} ({self._listed})", error.path)
            if self._on_error is None:
                raise error from error.__cause__
            self._on_error(error)

    def _list(self, name: str) -> None:
        if self._lists == MOST_NESTED:
            raise InputError(f"@{name}: lists name lists more than {MOST_NESTED} deep", name)
        outer = self._listed
        if name == "-":
            self._claim_stdin()
        paths = self._incoming.listed() if name == "-" else read_list(name)
        self._lists += 1
        try:
            for where, path in paths:
                self._listed = f"{where} of {'standard input' if name == '-' else name}"
                self.name(path)
        finally:
            self._lists -= 1
            self._listed = outer

    def _claim_stdin(self) -> None:
        if self._stdin_used:
            raise UsageError("standard input can be read only once: name it once")
        self._stdin_used = True

    def _take_stdin(self) -> None:
        self._claim_stdin()
        with self._errors():
            self._incoming.once(STDIN, lambda: self._once(Once(self._incoming.stdin(), owns=False), STDIN))

    def _pipe(self, path: str) -> None:
        """Look into a pipe that was named."""
        try:
            stream = self._incoming.pipe(path)
        except OSError as error:
            raise InputError(f"{path}: {_unreadable(error)}", path) from error
        self._once(Once(stream, owns=True), path)

    def _once(self, origin: Once, name: str) -> None:
        """Look into a stream that cannot be read again."""
        self._tell(name, self._look(Place(origin), name, origin.look(), named=True), named=True)

    def _local(self, path: str, *, named: bool) -> None:
        if _is_folder(path):
            for file, reason in _walk(path):
                if isinstance(file, Pieces):
                    self._pieces(file)
                elif reason is None:
                    self._file(file, named=False)
                else:
                    self.found.skipped.append(Skipped(file, reason))
        else:
            self._file(path, named=named)

    def _pieces(self, pieces: Pieces) -> None:
        """Look into files that may be one record together; if they are none, into each."""
        if pieces in self._met:
            return
        able = {name: reader for name, reader in self._known.items() if traits_of(reader).pieces}
        for head in _heads(pieces):
            reader = recognise(head, pieces.folder, able)
            if reader is not None:
                self._met.add(pieces)
                self._add(self._of_pieces(pieces), pieces.folder, reader, head)
                return
        before = len(self.found.skipped)
        for path in pieces.paths:
            self._file(path, named=False)
        # That there is a folder to be named is of no use to whoever named it.
        skipped = self.found.skipped[before:]
        self.found.skipped[before:] = [
            replace(each, reason=UNKNOWN) if each.reason == ONE_EVENT else each for each in skipped
        ]

    def _file(self, path: str, *, named: bool) -> None:
        reason: str | None
        try:
            if named and _is_pipe(path):
                self._incoming.once(path, lambda: self._pipe(path))
                return
            with open_file(path) as stream:
                about = os.fstat(stream.fileno())
                identity = (about.st_dev, about.st_ino)
                if identity in self._met:
                    self.found.skipped.append(Skipped(path, _MET))
                    return
                before = len(self.found.sources)
                reason = self._look(Place(LocalFile(path)), path, stream, named=named)
                if len(self.found.sources) > before:
                    self._met.add(identity)
        except (FileNotFoundError, ValueError):
            # ValueError: no file can have a name with NUL in it.
            reason = _GONE
        except OSError as error:
            reason = _NOT_REGULAR if _is_special(path) else _unreadable(error)
        self._tell(path, reason, named=named)

    def _tell(self, name: str, reason: str | None, *, named: bool) -> None:
        """Say why something is not read, or not all of it, if there is a reason."""
        if reason is None:
            return
        if not named:
            self.found.skipped.append(Skipped(name, reason))
            return
        hint = f" (known: {', '.join(self._known)})" if reason == UNKNOWN else ""
        raise InputError(f"{name}: {reason}{hint}", name)

    def _remote(self, named: Remote) -> None:
        """Look into an object, or those below a folder."""
        try:
            if named.is_web:
                self._object(named, named=True)
            elif is_pattern(named.key):
                parts = named.key.split("/")
                fixed = next(at for at, part in enumerate(parts) if is_pattern(part))
                folder = Remote("/".join([named.store_url, *parts[:fixed]]))
                found = [each for each in remote.below(folder) if meets(each[0].key.split("/"), parts)]
                self._objects(found, named, "no object meets this pattern")
            elif not named.key or named.key.endswith("/"):
                self._objects(remote.below(named), named, "no such object, and nothing below it")
            else:
                try:
                    self._object(named, named=True)
                except FileNotFoundError:
                    self._objects(remote.below(named), named, "no such object, and nothing below it")
        except OSError as error:
            raise InputError(f"{named.name}: {error.strerror or 'cannot be read'}", named.name) from None

    def _objects(self, found: list[tuple[Remote, int]], named: Remote, none: str) -> None:
        if not found:
            raise InputError(f"{named.name}: {none}", named.name)
        for each, size in found:
            if not size:
                self.found.skipped.append(Skipped(each.name, EMPTY))
                continue
            try:
                self._object(each, named=False)
            except OSError as error:
                self.found.skipped.append(Skipped(each.name, _unreadable(error)))

    def _object(self, each: Remote, *, named: bool) -> None:
        if each in self._met:
            self.found.skipped.append(Skipped(each.name, _MET))
            return
        self._met.add(each)
        self._tell(each.name, self._look(Place(each), each.name, each.open(), named=named), named=named)

    def _look(
        self,
        place: Place,
        name: str,
        stream: Raw,
        *,
        named: bool,
        packed: int = 0,
        meter: Meter | None = None,
        inside: bool = False,
    ) -> str | None:
        """Look into bytes, all of which ``stream`` gives, and put them where they belong.

        ``packed`` is how many times they are, ``meter`` counts what is expanded on the way, ``inside`` says that
        they are in an archive. Return why they are not read, or not all of them, if so.
        """
        live = isinstance(place.origin, Once) and not place.steps
        head, error = read_head(stream, HEAD_BYTES, surely_lines) if live else read_head(stream, HEAD_BYTES)
        if inside and isinstance(error, OverLimitError):
            raise error
        codec, archive = codec_of(head), kind_of(head)
        if codec is None and archive is None:
            return self._offer(place, name, head, stream, error, named=named, meter=meter if inside else None)
        if packed == MOST_PACKED:
            return _TOO_PACKED
        meter = meter or Meter(self._max_expanded)
        rest = _again(head, stream)
        if codec is not None:
            expanded = Expanded(rest, codec, meter)
            step = place.then(Expand(codec))
            return self._look(step, name, expanded, named=named, packed=packed + 1, meter=meter, inside=inside)
        try:
            if isinstance(place.origin, Once) and not place.origin.anywhere:
                place.origin.keep(self._max_expanded)
                meter.spent = 0  # all of it is expanded once more
                rest = cast("Raw", open_place(place, self._max_expanded))
            empty = True
            with _members(archive, place, rest, meter) as members:
                for member in members:
                    empty = False
                    self._member(place, f"{name}!{member.name}", member, packed + 1, meter)
            return "an archive without files" if empty else None
        except EndlessError as ending:
            self.found.skipped.append(Skipped(name, Unread(ending.strerror)))
            return None
        except OverLimitError as ending:
            if inside:
                raise
            return Unread(f"{ending.strerror}; what follows is not read")
        except OSError as ending:
            return Unread(f"{ending.strerror or 'I/O error'}; what follows is not read")

    def _member(self, place: Place, name: str, member: Member, packed: int, meter: Meter) -> None:
        reason = member.reason
        if member.stream is not None:
            inner = place.then(*member.steps)
            reason = self._look(inner, name, member.stream, named=False, packed=packed, meter=meter, inside=True)
        if reason is not None:
            lost = reason in (ENCRYPTED, ONE_EVENT)
            self.found.skipped.append(Skipped(name, Unread(reason) if lost else reason))

    def _offer(
        self,
        place: Place,
        name: str,
        head: bytes,
        stream: Raw,
        error: OSError | None,
        *,
        named: bool,
        meter: Meter | None,
    ) -> str | None:
        """Ask the readers about bytes that are not packed, or not any more."""
        if error is not None and not head.strip():
            return _unreadable(error)
        if (is_binary(head) and not named) or not head.strip():
            return why_unknown(head, name)
        reader = self._reader(head, name, named=named)
        if reader is None:
            return why_unknown(head, name) if error is None else _unreadable(error)
        try:
            self._keep(place.origin, reader)
        except OSError as problem:
            return _unreadable(problem)
        source = self._source(place, self._unique(name))
        self._add(source, name, reader, head, once=place.origin if isinstance(place.origin, Once) else None)
        last = place.steps[-1] if place.steps else None
        if meter is not None and isinstance(last, Expand):
            # What it comes to counts now: later on it would depend on what else is read when, and by which process.
            if last.size is not None:
                meter.spend(max(0, last.size - len(head)))
            else:
                _drain(stream)
        return None

    def _keep(self, origin: Origin, reader: Reader) -> None:
        """Keep a stream that has to be read as a whole to tell what it has in common with others, if it has any."""
        if isinstance(origin, Once) and not self._alone and reads_for_family(reader):
            origin.keep(self._max_expanded)

    def _add(self, source: Source, name: str, reader: Reader, head: bytes, *, once: Once | None = None) -> None:
        """Take in a source, which may come from a stream that came in here."""
        family = family_of(reader, head, source, again=once is None or once.anywhere)
        rank, kind = rank_of(reader, name)
        if source.failure is not None:
            rank = max(rank, _BROKEN_RANK)
        self.found.sources.append(Found(source, reader.name, family, (rank, kind), once is not None))

    def _reader(self, head: bytes, name: str, *, named: bool) -> Reader | None:
        """Return the reader to use; the one that reads everything leaves out what is plainly something else."""
        forced = self._forced
        if forced is None:
            return recognise(head, name, self._known)
        return forced if named or why_unknown(head, name) == UNKNOWN or forced.recognise(head, name) else None

    def _of_pieces(self, pieces: Pieces) -> Source:
        name = self._unique(pieces.folder)
        return Source(name, pieces.open, pieces=pieces, max_line=self._max_line, max_expanded=self._max_expanded)

    def _source(self, place: Place, name: str) -> Source:
        origin: Origin = place.origin
        if not place.steps and isinstance(origin, LocalFile):
            return Source.of_file(origin.path, max_line=self._max_line, max_expanded=self._max_expanded)
        opener = partial(open_place, place, self._max_expanded)
        return Source(name, opener, max_line=self._max_line, max_expanded=self._max_expanded)

    def _unique(self, name: str) -> str:
        """Return a name that no other source has: an archive may hold several members of one name."""
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else self._unique(f"{name} ({count})")


@contextmanager
def _members(kind: str | None, place: Place, stream: Raw, meter: Meter) -> Iterator[Iterator[Member]]:
    """Give the members of an archive, whose bytes are at ``place`` and come from ``stream``."""
    if kind == "tar":
        yield tar_members(stream)
        return
    if isinstance(stream, io.FileIO):
        with io.BufferedReader(stream) as file:
            yield zip_members(cast("BinaryIO", file), meter)
    elif isinstance(place.origin, Remote) and not place.steps and place.origin.anywhere:
        stream.close()
        with place.origin.whole() as file:
            yield zip_members(cast("BinaryIO", file), meter)
    elif isinstance(place.origin, Once) and not place.steps and place.origin.file is not None:
        yield zip_members(place.origin.file, meter)
    else:
        # What lists the members stands at the end.
        with spool(stream, meter.limit) as kept:
            yield zip_members(kept, meter)


def _again(head: bytes, stream: Raw) -> Raw:
    """Return a stream that begins where ``stream`` did before ``head`` was read from it."""
    if isinstance(stream, io.FileIO):
        stream.seek(0)
        return stream
    return Prefixed(head, stream)


def _drain(stream: Raw) -> None:
    """Read to the end, or to where it is damaged, which whoever reads it for what it says will say."""
    try:
        while stream.read(CHUNK_BYTES):
            pass
    except OverLimitError:
        raise
    except OSError:
        return


def _unreadable(error: OSError) -> Unread:
    return Unread(f"cannot be read: {error.strerror or 'I/O error'}")


def _heads(pieces: Pieces) -> Iterator[bytes]:
    """Yield the heads of files that can be read and hold something."""
    for path in pieces.paths:
        try:
            with open_file(path) as stream:
                head, _ = read_head(stream, HEAD_BYTES)
        except OSError:
            continue  # whoever reads it will say so
        if head.strip():
            yield head


def _walk(folder: str) -> Iterator[tuple[str | Pieces, str | None]]:
    """Yield the files below ``folder``, sorted by name at each level, and why one is not to be opened if so.

    Files of one folder that may be a record together come first.
    """
    waiting: list[tuple[str, os.DirEntry[str] | None]] = [(folder, None)]
    while waiting:
        path, entry = waiting.pop()
        try:
            if entry is None or entry.is_dir(follow_symlinks=False):
                with os.scandir(path) as found:
                    children = sorted(((child.path, child) for child in found), key=_by_name, reverse=True)
                pieces = pieces_in(path, (child.name for _, child in children if _is_file(child)))
                if pieces is not None:
                    yield pieces, None
                    taken = set(pieces.names)
                    children = [each for each in children if each[1].name not in taken]
                waiting += children
            elif entry.is_symlink():
                yield path, "a symbolic link"
            elif entry.is_file(follow_symlinks=False):
                yield path, None
            else:
                yield path, _NOT_REGULAR
        except FileNotFoundError:
            yield path, _GONE
        except OSError as error:
            if entry is None:
                raise InputError(f"{path}: {_unreadable(error)}", path) from error
            yield path, _unreadable(error)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _by_name(child: tuple[str, os.DirEntry[str] | None]) -> str:
    return child[0]


def _is_folder(path: str) -> bool:
    """Whether a named path is a folder; one that cannot even be asked is taken for a file, which says why."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - a Path for each of many files takes its time
    except (OSError, ValueError):
        return False


def _is_pipe(path: str) -> bool:
    return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116 - as above


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
