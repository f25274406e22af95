"""Folders that are one record: a file for each event, as OpenHands keeps its conversations."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from loopscan.transcripts.streams import Raw, Stream

#: ``event-00012-<id>.json`` in any folder, and ``12.json`` in one named ``events``.
_NUMBERED = re.compile(r"event-(?P<number>\d{3,18})-.*\.json", re.DOTALL)
_BARE = re.compile(r"(?P<number>\d{1,18})\.json")


@dataclass(frozen=True, slots=True)
class Pieces:
    """The files of a folder that hold one event each, in the order of their numbers; the origin of one source."""

    folder: str
    names: tuple[str, ...]

    @property
    def anywhere(self) -> bool:
        """They are read one after the other."""
        return False

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [os.path.join(self.folder, name) for name in self.names]  # noqa: PTH118 - there may be very many

    def open(self, offset: int = 0, size: int | None = None) -> Raw:
        """Return all of them as one stream, a line break after each. Raises :class:`OSError`."""
        if offset or size is not None:
            raise OSError(0, "a folder of events is read from its start")
        return _Joined(self.paths)


def pieces_in(folder: str, names: Iterable[str]) -> Pieces | None:
    """Return the files of a folder that hold one event each, ``None`` if there are none."""
    bare = os.path.basename(folder) == "events"  # noqa: PTH119 - as above
    found: list[tuple[int, str]] = []
    for name in names:
        match = _NUMBERED.fullmatch(name) or (_BARE.fullmatch(name) if bare else None)
        if match is not None:
            found.append((int(match["number"]), name))
    return Pieces(folder, tuple(name for _, name in sorted(found))) if found else None


class _Joined(Stream):
    """Files one after the other, one open at a time."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self._paths = iter(paths)
        self._open: Raw | None = None
        self._at_end = True
        """What was read last ended with a line break."""

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        while True:
            if self._open is None:
                path = next(self._paths, None)
                if path is None:
                    return b""
                self._open = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115 - closed below
            data = self._open.read(wanted)
            if data:
                self._at_end = data.endswith(b"\n")
                return data
            self._open.close()
            self._open = None
            if not self._at_end:
                self._at_end = True
                return b"\n"

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open.close()
        super().close()
