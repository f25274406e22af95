"""Live sessions: the marks of what is written, as it is written.

Files that grow are read on from where the reading stopped. A file that was replaced, cut or rewritten is read
anew from its start, and only marks that were not shown before are shown; so is a document that is written anew
with each message, and a folder of events with each change in it. New files in a folder join in; a file that went
away is read to its end. Streams are taken in at the first look alone, and are read to their end at one go.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from loopscan.events import Event, Pause
from loopscan.pool import belief
from loopscan.replayer import Plan, SourceReplay, add, bring_home
from loopscan.report import Report, SourceReport
from loopscan.transcripts.discover import Found, Skipped
from loopscan.transcripts.incoming import Incoming
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.pieces import Pieces
from loopscan.transcripts.places import closing_archives, open_file
from loopscan.transcripts.reader import readers, traits_of

#: A new file is looked for at every so many looks at the known ones.
DISCOVER_EVERY = 5

#: What tells that a file is still the one that it was: device, inode, size, time of change in nanoseconds.
_Stamp: TypeAlias = tuple[int, int, int, int]
#: How much of the start and of the end of what was there is compared to tell that a file was only added to, in bytes.
_COMPARED = 4096
#: What makes two marks of one source the same.
_SAME = ("session", "run", "kind", "detector", "count", "batch", "call", "tool_call_id", "entry")


@dataclass(slots=True)
class _Followed:
    """One source that is being followed."""

    found: Found
    stamp: _Stamp | None
    held: bytes = b""
    """The start and the end of what was there at the latest look."""
    replaying: SourceReplay = field(init=False)
    events: Iterator[Event] = field(init=False)
    started: bool = False
    """Something was read of it since it was begun."""
    over: bool = False
    """The reader has read it to its end; it is read again if it changes."""
    stamps: tuple[_Stamp | None, ...] = ()
    """Of a folder that is one record, those of its files; it is read again when one of them changes or joins in."""
    shown: set[tuple[object, ...]] = field(default_factory=set)
    """The marks that were shown."""


class Follower:
    """Follows transcripts: call :meth:`look` again and again, and :meth:`finish` at the end."""

    def __init__(self, planned: Plan, *, debug: bool = False, given_up: Callable[[], bool] = lambda: False) -> None:
        """Follow what ``planned`` names; nothing is read yet.

        ``debug`` lets unforeseen exceptions through. Streams are waited for until they end, or ``given_up`` says so.
        """
        self._plan = planned
        self._debug = debug
        self._incoming = Incoming(given_up=given_up)
        self._followed: dict[str, _Followed] = {}
        self._ledger = Ledger()
        self._unread: list[SourceReport] = []
        self._gone: list[SourceReport] = []
        self._named = {name for path in planned.paths for name in (str(path).removeprefix("@"), str(Path(path)))}
        """What was named, as it is called in what is said of it."""
        self._fine: set[str] = set()
        """What was named and could be read at some look."""
        self._skipped: list[Skipped] = []
        self._looks = 0

    @property
    def sources(self) -> int:
        """How many sources are being followed."""
        return len(self._followed)

    @property
    def finished(self) -> bool:
        """Whether nothing more can come: all that is followed are streams, and they have ended."""
        return bool(self._followed) and all(
            each.over and each.found.source.path is None and each.found.source.pieces is None
            for each in self._followed.values()
        )

    @property
    def still(self) -> int:
        """How many of the sources are read once and not followed: packed and remote ones."""
        return sum(
            each.found.source.path is None and not each.found.here and each.found.source.pieces is None
            for each in self._followed.values()
        )

    @property
    def hopeless(self) -> bool:
        """Whether nothing is followed, and nothing that was named is there: a file may be empty so far."""
        named = [each.path for each in self._unread]
        return not self._followed and bool(named) and not any(map(os.path.lexists, named))

    @property
    def complaints(self) -> list[str]:
        """What was named and cannot be read, a line each."""
        return [complaint for source in self._unread for complaint in source.complaints()]

    @property
    def gone(self) -> list[str]:
        """What was named and read, and cannot be read any more, a line each: what was read of it counts."""
        return [complaint for source in self._gone for complaint in source.complaints()]

    def look(self) -> Iterator[dict[str, Any]]:
        """Look once whether there is more, and yield each new mark: a row as in the report ``jsonl``."""
        if self._looks % DISCOVER_EVERY == 0:
            self._discover()
        self._looks += 1
        for each in list(self._followed.values()):
            yield from self._look_at(each)

    def finish(self) -> Iterator[dict[str, Any]]:
        """Read what is there to its end, what is new included, and yield the marks that this makes."""
        with closing_archives():
            self._discover()
            for each in self._followed.values():
                yield from self._look_at(each)
                each.found.source.follow = False
                yield from self._pull(each)

    def report(self) -> Report:
        """Return the report of all that was read; to be asked once, after :meth:`finish`."""
        report = self._plan.report()
        report.sources += self._unread
        report.skipped = self._skipped
        for each in self._followed.values():
            add(report, *each.replaying.finish(), self._plan.options)
        bring_home(report)
        return report

    def _discover(self) -> None:
        """Look for sources that are new. Of a file that was only renamed every entry is a copy."""
        unread: list[SourceReport] = []
        found = self._plan.discover(lambda error: unread.append(SourceReport.unread(error)), self._incoming)
        self._incoming.close()
        self._fine |= self._followed.keys()
        self._gone = [each for each in unread if each.path in self._fine]
        self._unread = [each for each in unread if each.path not in self._fine]
        self._fine |= self._named - {each.path for each in unread}
        of_streams = tuple(f"{name}!" for name in self._incoming.names)
        self._skipped = [each for each in self._skipped if each.path.startswith(of_streams)] + found.skipped
        for each in found.sources:
            known = self._followed.get(each.source.name)
            if known is not None and each.source.pieces is not None:
                stamps = _stamps(each.source.pieces)
                if (each.source.pieces, stamps) != (known.found.source.pieces, known.stamps):
                    known.found, known.stamps = each, stamps
                    each.source.ledger = self._ledger
                    self._begin(known)
        new = [each for each in found.sources if each.source.name not in self._followed]
        for each in sorted(new, key=belief):
            each.source.ledger = self._ledger
            stamps = _stamps(each.source.pieces) if each.source.pieces is not None else ()
            followed = _Followed(each, _stamp(each.source.path), stamps=stamps)
            self._begin(followed)
            self._followed[each.source.name] = followed

    def _look_at(self, each: _Followed) -> Iterator[dict[str, Any]]:
        if each.found.source.pieces is not None:
            if not each.started:
                yield from self._pull(each)
            return
        path = each.found.source.path
        before, now = each.stamp, _stamp(path)
        if each.over:
            if path is None or now is None or now == before:
                return
            self._begin_anew(each, path)
        elif each.started and now == before:
            return
        elif before is not None and (now is None or not _is_continued(each, before, now)):
            # Gone or replaced: what is still open is read to its end first. Else there is nothing left of it.
            if now is None or now[:2] != before[:2]:
                each.found.source.follow = False
                yield from self._pull(each)
            each.over = True
            if path is None or now is None:
                return
            self._begin_anew(each, path)
        each.stamp = now
        each.held = _ends(path, now)
        yield from self._pull(each)

    def _begin(self, each: _Followed) -> None:
        """Read a source from its start, whether or not it was read before."""
        source = each.found.source
        source.follow = source.path is not None
        each.replaying = SourceReplay(each.found, self._plan.options)
        each.events = iter(readers()[each.found.reader].read(source))
        each.over = each.started = False

    def _begin_anew(self, each: _Followed, path: Path) -> None:
        """Read a file that was written anew, which may be of another format by now."""
        # Where that cannot be told so far its reader stays, which says what is wrong with it.
        again = replace(self._plan, paths=[path]).discover(lambda error: None, self._incoming).sources
        if len(again) == 1 and again[0].source.path is not None:
            each.found = replace(each.found, reader=again[0].reader)
        self._begin(each)

    def _pull(self, each: _Followed) -> Iterator[dict[str, Any]]:
        """Read on as far as there is something, and yield the marks that were not shown before."""
        if each.over:
            return
        each.started = True
        replaying = each.replaying
        with replaying.report.taking_failures(each.found.source, debug=self._debug):
            for event in each.events:
                if isinstance(event, Pause):
                    return
                for mark in replaying.feed(event):
                    row = replaying.row(mark)
                    key = tuple(row[name] for name in _SAME)
                    if key not in each.shown:
                        each.shown.add(key)
                        yield row
        each.over = True


def _is_continued(each: _Followed, before: _Stamp, now: _Stamp) -> bool:
    """Say whether a file is the one that it was with something added, or one that its reader reads on anyway."""
    if now[:2] != before[:2] or now[2] < before[2]:
        return False
    anywhere = traits_of(readers()[each.found.reader]).changes_anywhere
    return anywhere or _ends(each.found.source.path, before) == each.held


def _ends(path: Path | None, stamp: _Stamp | None) -> bytes:
    """Return the start and the end of what a file held when it had ``stamp``."""
    if path is None or stamp is None:
        return b""
    size = stamp[2]
    try:
        with open_file(path) as stream:
            start = stream.read(min(size, _COMPARED))
            stream.seek(max(size - _COMPARED, 0))
            return start + stream.read(min(size, _COMPARED))
    except OSError:
        return b""


def _stamps(pieces: Pieces) -> tuple[_Stamp | None, ...]:
    """Return what tells whether one of the files of a folder changed."""
    return tuple(
        (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns) if (about := _about(path)) else None
        for path in pieces.paths
    )


def _about(path: str | Path) -> os.stat_result | None:
    """Return what is known of a regular file, ``None`` where there is none."""
    try:
        about = os.stat(path)  # noqa: PTH116 - a Path for each of very many files takes its time
    except OSError:
        return None
    return about if stat.S_ISREG(about.st_mode) else None


def _stamp(path: Path | None) -> _Stamp | None:
    """Return what tells whether a file changed, ``None`` where there is none.

    A database changes in the log beside it first.
    """
    about = _about(path) if path is not None else None
    if path is None or about is None:
        return None
    changed = about.st_mtime_ns
    with suppress(OSError):
        log = path.with_name(path.name + "-wal").stat()
        changed += log.st_mtime_ns + log.st_size
    return about.st_dev, about.st_ino, about.st_size, changed
