"""Readers by name, and which one recognises a source."""

from __future__ import annotations

import importlib.metadata
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopscan.errors import InputError, UsageError
from loopscan.events import Event
from loopscan.transcripts.reader import Confidence, Reader, Source, readers, recognise


class Echo:
    """A reader that is as sure as its name says."""

    def __init__(self, name: str = "echo", confidence: Confidence = Confidence.LIKELY) -> None:
        self.name = name
        self.confidence = confidence

    def recognise(self, head: bytes, name: str) -> Confidence:
        return self.confidence

    def read(self, source: Source) -> Iterator[Event]:
        yield from ()


def not_a_reader() -> int:
    return 7


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[importlib.metadata.EntryPoint]]:
    """Install entry points for the length of a test."""
    installed: list[importlib.metadata.EntryPoint] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: list(installed))
    readers.cache_clear()
    yield installed
    readers.cache_clear()


def entry(value: str, name: str = "x") -> importlib.metadata.EntryPoint:
    return importlib.metadata.EntryPoint(name, value, "loopscan.readers")


def test_the_built_in_readers_are_there() -> None:
    assert "openclaw-jsonl" in readers()
    assert all(isinstance(reader, Reader) and reader.name == name for name, reader in readers().items())


def test_a_plug_in_is_a_reader_beside_the_built_in_ones(plugins: list[importlib.metadata.EntryPoint]) -> None:
    plugins.append(entry(f"{__name__}:Echo"))
    assert list(readers())[-1] == "echo"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:Reader", "cannot be loaded"),
        (f"{__name__}:NoSuchReader", "cannot be loaded"),
        (f"{__name__}:not_a_reader", "is no reader"),
        ("loopscan.transcripts.openclaw:OpenClawReader", "is taken"),
    ],
)
def test_a_plug_in_that_does_not_work_is_named(
    plugins: list[importlib.metadata.EntryPoint], value: str, message: str
) -> None:
    plugins.append(entry(value))
    with pytest.raises(UsageError, match=message):
        readers()


def test_the_surest_reader_wins_and_the_first_of_equals() -> None:
    no, likely, sure = (Echo(c.name, c) for c in Confidence)
    again = Echo("again", Confidence.SURE)
    found = recognise(b"", "x", {each.name: each for each in (no, likely, sure, again)})
    assert found is sure
    assert recognise(b"", "x", {"no": no}) is None


def test_a_source_counts_afresh_each_time_it_is_opened_and_can_be_sent_away(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n")
    source = Source.of_file(path)
    source.lines = 5
    with pickle.loads(pickle.dumps(source)).open() as stream:
        assert stream.read() == b"1\n"
    with source.open():
        assert source.lines == 0
    assert source.name == str(path)


def test_a_source_that_is_gone_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Source.of_file(tmp_path / "gone.jsonl").open()
