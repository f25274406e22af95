"""Documents of one JSON value, element by element, are what the parser makes of them as a whole."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Problem
from loopscan.transcripts import documents
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.heads import beginning_of, document_of
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.reader import Source
from tests.transcripts.checks import account

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
INDENTS = st.sampled_from([None, 0, 2])


def read(data: bytes, *, max_line: int = 1 << 20) -> tuple[list[Any], list[Problem], Source]:
    source = Source("d.json", lambda: io.BytesIO(data), max_line=max_line)
    items = list(read_elements(source))
    values = [item.value for item in items if isinstance(item, Line)]
    problems = [item for item in items if isinstance(item, Problem)]
    return values, problems, source


@given(elements=st.lists(VALUES, max_size=6), indent=INDENTS, ascii_=st.booleans(), chunk=st.integers(1, 40))
def test_the_elements_of_an_array_are_told_apart_wherever_the_chunks_end(
    elements: list[Any], indent: int | None, ascii_: bool, chunk: int
) -> None:
    data = json.dumps(elements, indent=indent, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    before = documents.BUFFER_BYTES
    try:
        documents.BUFFER_BYTES = chunk
        values, problems, source = read(data)
    finally:
        documents.BUFFER_BYTES = before
    assert values == elements
    assert not problems
    assert source.bytes == len(data)
    assert source.lines == data.count(b"\n") + 1


@given(value=st.dictionaries(st.text(), VALUES, max_size=4), indent=INDENTS)
def test_an_object_is_one_element(value: dict[str, Any], indent: int | None) -> None:
    values, problems, _ = read(json.dumps(value, indent=indent).encode())
    assert values == [value]
    assert not problems


@given(elements=st.lists(VALUES, min_size=1, max_size=6), cut=st.floats(0, 1))
def test_what_stands_before_the_place_where_it_breaks_off_is_used(elements: list[Any], cut: float) -> None:
    data = json.dumps(elements).encode()
    data = data[: max(1, int(len(data) * cut))]
    values, problems, _ = read(data)
    whole = [value for value in values if value in elements]
    assert values[:-1] == elements[: max(0, len(values) - 1)]
    assert len(whole) >= len(values) - 1
    assert bool(problems) == (not data.endswith(b"]") or bool(problems))


def test_elements_have_the_line_in_which_they_begin() -> None:
    source = Source("d.json", lambda: io.BytesIO(b'\n[\n  {"a": 1},\n\n  {"b":\n 2}\n]\n'))
    assert [(item.number, item.value) for item in read_elements(source) if isinstance(item, Line)] == [
        (3, {"a": 1}),
        (5, {"b": 2}),
    ]


def test_an_element_that_is_too_long_is_skipped_with_its_size_and_the_others_are_used() -> None:
    values, problems, source = read(b'[{"a": 1}, "' + b"x" * 5000 + b'", {"b": 2}]', max_line=100)
    assert values == [{"a": 1}, {"b": 2}]
    assert [(each.kind, each.line) for each in problems] == [("line-too-long", 1)]
    assert "5,002 bytes" in problems[0].detail
    source.count("a", used=True)
    source.count("b", used=True)
    account(source, 3)


def test_an_element_that_is_no_json_is_named_and_the_others_are_used() -> None:
    values, problems, _ = read(b'[{"a": 1}, {nonsense}, {"b": 2}]')
    assert values == [{"a": 1}, {"b": 2}]
    assert [each.kind for each in problems] == ["malformed-json"]


def test_an_object_that_breaks_off_is_used_as_far_as_it_goes() -> None:
    values, problems, _ = read(b'{"messages": [{"role": "user", "content": "a"}, {"role": "assist')
    assert values == [{"messages": [{"role": "user", "content": "a"}, {}]}]
    assert [each.kind for each in problems] == ["truncated-document"]


def test_many_open_brackets_are_a_problem_and_no_more() -> None:
    values, problems, _ = read(b"[" * 200_000)
    assert not values
    assert [each.kind for each in problems] == ["truncated-document"]


@pytest.mark.parametrize(
    ("head", "value"),
    [
        (b'[1, [2, 3, "unfini', [1, [2, 3]]),
        (b'{"a": {"b": [1, 2', {"a": {"b": [1]}}),
        (b'{"a": 1, "b', {"a": 1}),
        (b'\xef\xbb\xbf {"a": 1}', {"a": 1}),
        (b'{"a": 1}\n{"a": 2', None),
        (b"text", None),
        (b"", None),
    ],
)
def test_a_head_shows_what_is_complete(head: bytes, value: Any) -> None:
    assert document_of(head) == value


@given(value=st.lists(VALUES, min_size=1) | st.dictionaries(st.text(), VALUES, min_size=1), cut=st.floats(0, 1))
def test_the_beginning_of_json_is_json(value: Any, cut: float) -> None:
    data = json.dumps(value).encode()
    data = data[: max(1, int(len(data) * cut))]
    if len(data) < len(json.dumps(value)):
        assert isinstance(beginning_of(data), type(value))


def test_problems_come_in_the_order_of_the_lines() -> None:
    """What is left of a document that broke off stands before the place where it did."""

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            if not data:
                raise OSError(5, "it breaks off here")
            return data

    source = Source("d.json", lambda: Broken(b'[\n{"a": 1},\n{"b": 2,\n"c":\n'))
    found = [item.number if isinstance(item, Line) else (item.line, item.kind) for item in read_elements(source)]  # type: ignore[union-attr]
    assert found == [2, 3, (5, "truncated-document"), (6, "read-error")]
