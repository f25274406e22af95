"""Lines or a document: which one a source is, and that nothing is lost or counted twice whichever it is."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Pause, Problem
from loopscan.transcripts import either
from loopscan.transcripts.either import looks_like_lines, read_values, surely_lines
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.reader import Source


def values(data: bytes, **options: Any) -> tuple[list[Any], Source]:
    source = Source("x", lambda: io.BytesIO(data), **options)
    return [item.value if isinstance(item, Line) else item for item in read_values(source)], source


NUMBERS = st.integers(-(2**63), 2**64 - 1)
ITEMS = st.lists(st.dictionaries(st.text(max_size=3), NUMBERS | st.text(max_size=9), min_size=1), min_size=2)


@given(items=ITEMS, indent=st.sampled_from([None, 1]))
def test_both_forms_give_the_same_values(items: list[Any], indent: int | None) -> None:
    lines = "\n".join(map(json.dumps, items)).encode()
    document = json.dumps(items, indent=indent).encode()
    assert values(lines)[0] == values(document)[0] == items
    assert looks_like_lines(lines)
    assert not looks_like_lines(document)


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        (b'{"a": 1}', True),
        (b'\n{"a": 1}\n', True),
        (b'[{"a": 1}]\n', False),
        (b"[1]\n[2]\n", True),
        (b'{"a": "cut', False),
        (b'{\n "a":\n{"b": 1}\n}', False),
        (b"", False),
    ],
)
def test_lines_are_told_from_documents(head: bytes, lines: bool) -> None:
    assert looks_like_lines(head) is lines


@pytest.mark.parametrize(
    ("head", "surely"),
    [
        (b'{"a": 1}\n', True),
        (b'{"a": 1}', False),  # "}" or ", " may follow
        (b'{"cut\n{"b": 1}\n{"c": 1}\n', True),
        (b'[{"a": 1}]\n', False),
        (b'[{"a": 1}]\n[{"b": 1}]', False),
        (b'[{"a": 1}]\n[{"b": 1}]\n', True),
        (b"", False),
    ],
)
def test_whole_lines_alone_tell_before_all_is_there(head: bytes, surely: bool) -> None:
    assert surely_lines(head) is surely


def test_lines_are_given_as_they_come() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return self.readline()

    stream = Slow(b'{"a": 1}\n{"a": 2}\n')
    reading = read_values(Source("x", lambda: stream))
    first = next(reading)
    assert isinstance(first, Line)
    assert (first.value, stream.tell()) == ({"a": 1}, len(b'{"a": 1}\n'))


def test_a_damaged_line_costs_only_itself() -> None:
    got, source = values(b'{"a": 1}\n{"a": "unfinis\n{"a": 3}\n')
    assert [each for each in got if not isinstance(each, Problem)] == [{"a": 1}, {"a": 3}]
    assert source.unusable == 1
    assert source.lines == 3


def test_a_cut_document_gives_what_stands_before_the_cut() -> None:
    got, source = values(b'[\n {"a": 1},\n {"a": 2, "b": "unfi')
    assert [each for each in got if not isinstance(each, Problem)] == [{"a": 1}, {"a": 2}]
    assert source.bytes == 33


def test_the_beginning_is_not_lost_where_more_follows_than_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(either, "HEAD_BYTES", 7)
    items = [{"a": number} for number in range(50)]
    got, source = values("\n".join(map(json.dumps, items)).encode())
    assert got == items
    assert source.bytes == len("\n".join(map(json.dumps, items)))


def test_a_followed_source_pauses_at_its_end() -> None:
    source = Source("x", lambda: io.BytesIO(b'{"a": 1}\n'), follow=True)
    reading = read_values(source)
    assert isinstance(next(reading), Line)
    assert isinstance(next(reading), Pause)


class Broken(io.RawIOBase):
    closed_by_reader = False

    def read(self, size: int = -1, /) -> bytes:
        raise OSError(5, "broken")

    def close(self) -> None:
        Broken.closed_by_reader = True


def test_a_stream_that_fails_at_once_is_a_problem_and_is_closed() -> None:
    got = list(read_values(Source("x", lambda: Broken())))  # type: ignore[arg-type, return-value]
    assert [each.kind for each in got if isinstance(each, Problem)] == ["read-error"]
    assert Broken.closed_by_reader


def test_a_stream_that_breaks_off_gives_what_stands_before_and_the_problem() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            if not data:
                raise OSError(5, "it breaks off here")
            return data

    for text, expected in ((b'{"a": 1}\n{"a": 2}\n{"a"', [1, 2]), (b'[{"a": 1}, {"a": 2}, {"a', [1, 2])):
        source = Source("x", lambda text=text: Broken(text))  # type: ignore[misc]
        items = list(read_values(source))
        got = [item.value["a"] for item in items if isinstance(item, Line) and item.value]
        assert got == expected
        assert "read-error" in [item.kind for item in items if isinstance(item, Problem)]
