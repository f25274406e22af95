"""Streams that come in are looked into once, and end when they are given up."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from loopscan.errors import InputError
from loopscan.transcripts.incoming import Incoming

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes")


@contextmanager
def piped() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Give both ends of a pipe: to read from, to write to."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source, os.fdopen(writer, "wb", buffering=0) as sink:
        yield source, cast("BinaryIO", sink)


def test_a_stream_is_looked_into_once_and_its_error_stays() -> None:
    looked: list[str] = []

    def look() -> None:
        looked.append("")
        raise InputError("x: empty", "x")

    incoming = Incoming()
    for _ in range(2):
        with pytest.raises(InputError, match="x: empty"):
            incoming.once("x", look)
    incoming.once("y", lambda: looked.append("y"))
    incoming.once("y", lambda: looked.append("y"))
    assert looked == ["", "y"]
    incoming.close()
    incoming.once("y", lambda: looked.append("y"))
    with pytest.raises(InputError, match="z: a stream that was not there"):
        incoming.once("z", lambda: looked.append("z"))
    assert looked == ["", "y"]


def test_standard_input_gives_what_there_is_and_ends_when_it_is_given_up() -> None:
    given_up = False
    with piped() as (source, sink):
        stream = Incoming(source, lambda: given_up).stdin()
        sink.write(b"some")
        assert stream.read(100) == b"some"
        sink.write(b"more")
        given_up = True
        assert stream.read(100) == b""
        del stream
        gc.collect()
        assert not source.closed


def test_standard_input_that_ends_has_ended() -> None:
    with piped() as (source, sink):
        stream = Incoming(source, lambda: False).stdin()
        sink.write(b"all")
        sink.close()
        assert stream.read(100) == b"all"
        assert stream.read(100) == b""
    within = Incoming(io.BytesIO(b"all"), lambda: False).stdin()
    assert (within.read(100), within.read(100)) == (b"all", b"")


def test_a_list_on_standard_input_is_read_once() -> None:
    stream = io.BytesIO(b"a\nb\n")
    incoming = Incoming(stream)
    assert incoming.listed() == incoming.listed() == [("line 1", "a"), ("line 2", "b")]


def test_standard_input_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for _ in range(2):
        with pytest.raises(InputError, match="standard input is closed"):
            Incoming().listed()


def test_a_pipe_waits_for_its_first_writer_and_ends_with_the_last(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    asked = count()

    def given_up() -> bool:
        """Write after a while, as somebody else would."""
        if next(asked) == 2:
            os.write(writer(), b"written")
        return False

    opened: list[int] = []

    def writer() -> int:
        opened.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return opened[0]

    stream = Incoming(None, given_up).pipe(str(path))
    assert stream.read(100) == b"written"
    os.close(opened[0])
    assert stream.read(100) == b""
    stream.close()


def test_a_pipe_that_nobody_writes_to_ends_when_it_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    asked = count()
    stream = Incoming(None, lambda: next(asked) > 2).pipe(str(path))
    assert stream.read(100) == b""
    stream.close()
