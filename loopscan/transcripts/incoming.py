"""Streams that come in from other programs: standard input, and pipes with a name.

Each of them can be read once, so whoever looks for sources again and again looks into them the first time alone.
"""

from __future__ import annotations

import io
import os
import select
import sys
import time
from collections.abc import Callable
from typing import BinaryIO, cast

from loopscan.errors import InputError
from loopscan.transcripts.lists import read_list
from loopscan.transcripts.places import WITHOUT_WAITING
from loopscan.transcripts.streams import Raw, Stream

#: How long a stream is waited for until it is asked again whether it is given up, in seconds.
_MOMENT = 0.05


class Incoming:
    """Has each stream looked into once, and remembers what was wrong with it."""

    def __init__(self, stdin: BinaryIO | None = None, given_up: Callable[[], bool] | None = None) -> None:
        """Take ``stdin`` for standard input, by default that of the process.

        As soon as ``given_up`` says so, the streams end where they are: nothing more is waited for.
        """
        self._stdin = stdin
        self._given_up = given_up
        self._closed = False
        self._errors: dict[str, InputError | None] = {}
        self._listed: list[tuple[str, str]] = []

    @property
    def names(self) -> list[str]:
        """What the streams are called that were looked into."""
        return list(self._errors)

    def once(self, name: str, look: Callable[[], None]) -> None:
        """Call ``look`` if the stream ``name`` was not looked into before.

        Raises the :class:`InputError` that this raised, later on too.
        """
        if name not in self._errors:
            if self._closed:
                raise InputError(f"{name}: a stream that was not there when the reading began", name)
            self._errors[name] = None
            try:
                look()
            except InputError as error:
                self._errors[name] = error
        told = self._errors[name]
        if told is not None:
            raise told

    def close(self) -> None:
        """Take in no further stream."""
        self._closed = True

    def stdin(self) -> Raw:
        """Return standard input. Raises :class:`InputError` if it is closed."""
        # It may be missing: a program without a console has none.
        stream = self._stdin if self._stdin is not None else getattr(sys.stdin, "buffer", None)
        if stream is None or stream.closed:
            raise InputError("-: standard input is closed", "-")
        return stream if self._given_up is None else _Waiting(stream, self._given_up)

    def listed(self) -> list[tuple[str, str]]:
        """Return the list of paths on standard input; see :func:`read_list`. Raises :class:`InputError`."""
        self.once("@-", lambda: self._listed.extend(read_list("-", cast("BinaryIO", self.stdin()))))
        return self._listed

    def pipe(self, path: str) -> Raw:
        """Open a pipe with a name; its first writer is waited for. Raises :class:`OSError`."""
        if self._given_up is None:
            return io.FileIO(path)
        return _Waiting(io.FileIO(os.open(path, WITHOUT_WAITING)), self._given_up, pipe=True)


class _Waiting(Stream):
    """What there is of a stream, which is waited for until it is given up: then it ends."""

    def __init__(self, stream: Raw, given_up: Callable[[], bool], *, pipe: bool = False) -> None:
        super().__init__()
        self._stream = stream
        self._read: Callable[[int], bytes | None] = getattr(stream, "read1", stream.read)
        self._given_up = given_up
        self._pipe = pipe
        self._written = not pipe
        """Somebody writes to it, or did: when nothing comes from it, it has ended."""
        self._poller = _poller_of(stream)

    def take(self, wanted: int) -> bytes:
        """Return up to ``wanted`` bytes."""
        while not self._given_up():
            if self._poller is not None and not self._poller.poll(_MOMENT * 1000):
                continue
            data = self._read(wanted)
            if data or (self._written and data is not None):
                self._written = True
                return data
            time.sleep(_MOMENT)
        return b""

    def close(self) -> None:
        """Close the pipe, too; standard input is not ours to close."""
        if self._pipe:
            self._stream.close()
        super().close()


def _poller_of(stream: Raw) -> select.poll | None:
    """Return what says whether there is something to read, ``None`` where nothing can say that."""
    try:
        poller = select.poll()
        poller.register(cast("BinaryIO", stream).fileno(), select.POLLIN)
    except (AttributeError, OSError, ValueError):  # not on this system, or a stream within this process
        return None
    return poller
