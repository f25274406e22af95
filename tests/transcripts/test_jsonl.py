"""Lines of JSON: values as JavaScript sees them, and every line that cannot be used is named."""

from __future__ import annotations

import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.errors import InputError
from loopscan.events import Problem
from loopscan.transcripts.jsonl import Line, parse, read_lines
from loopscan.transcripts.reader import Source
from tests.transcripts.build import source_of


def lines(data: bytes, **options: int) -> list[Line | Problem]:
    return list(read_lines(source_of(data, **options)))


def kinds(data: bytes, **options: int) -> list[tuple[int, str]]:
    return [(p.line, p.kind) for p in lines(data, **options) if isinstance(p, Problem)]


def test_lines_are_numbered_from_one_and_blank_ones_are_passed_over() -> None:
    source = source_of(b'{"a":1}\n\n  \r\n{"b":2}\r\n')
    assert list(read_lines(source)) == [Line(1, {"a": 1}, 8), Line(4, {"b": 2}, 9)]
    assert (source.lines, source.bytes) == (4, 22)


def test_a_whole_last_line_needs_no_line_break() -> None:
    assert lines(b'1\n{"a":1}') == [Line(1, 1, 2), Line(2, {"a": 1}, 7)]


def test_a_byte_order_mark_is_tolerated_where_a_line_begins() -> None:
    assert lines(b"\xef\xbb\xbf[1]\n") == [Line(1, [1], 7)]
    assert lines(b"[1]\n\xef\xbb\xbf[1]\n") == [Line(1, [1], 4), Line(2, [1], 7)]
    assert kinds(b"[1\xef\xbb\xbf]\n") == [(1, "malformed-json")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e400", math.inf),
        ("-1e400", -math.inf),
        ("1e-400", 0.0),
        ("18446744073709551616", 2.0**64),
        ("[1e400,18446744073709551616]", [math.inf, 2.0**64]),
        ("[1e400,9007199254740993]", [math.inf, 9007199254740993]),
        ("[1e400,18446744073709551615,-9223372036854775808]", [math.inf, 18446744073709551615, -(1 << 63)]),
        ("1" * 5000, math.inf),
        ("-" + "1" * 5000, -math.inf),
        ("1" * 300, float("1" * 300)),
        ('"\\ud800"', "\ud800"),
        ('"\\ude00\\ud83d"', "\ude00\ud83d"),
        ('"\\ud83d\\ude00"', "😀"),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a":1,"a":"\\ud800"}', {"a": "\ud800"}),
        ('{"__proto__":1}', {"__proto__": 1}),
    ],
)
def test_values_are_those_of_javascript(text: str, value: object) -> None:
    assert parse(text) == value
    assert parse(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        "-Infinity",
        "{'a':1}",
        "[1,]",
        "01",
        "+1",
        "1.",
        ".5",
        '"\t"',
        '"\\x"',
        "[1]\0",
        "",
        "{}{}",
    ],
)
def test_what_javascript_refuses_is_malformed(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)
    if text:
        assert kinds(text.encode() + b"\n") == [(1, "malformed-json")]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_what_json_writes_is_read_back(value: object) -> None:
    """Every value that can be written comes back, integers beyond 64 bits as doubles."""

    def rounded(value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
            return float(json.dumps(value))
        if isinstance(value, list):
            return [rounded(each) for each in value]
        if isinstance(value, dict):
            return {key: rounded(each) for key, each in value.items()}
        return value

    assert lines(json.dumps(value).encode() + b"\n")[0].value == rounded(value)  # type: ignore[union-attr]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_that_is_too_deep_is_malformed_and_no_crash(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    for depth in (2_000, 100_000):
        data = opening * depth + b"1" + closing * depth + b"\n[2]\n"
        found = lines(data)
        assert isinstance(found[0], Problem)
        assert (found[0].kind, "nested too deeply" in found[0].detail) == ("malformed-json", True)
        assert found[1] == Line(2, [2], 4)


def test_invalid_utf8_is_read_with_replacements_and_named() -> None:
    problem, line = lines(b'{"a":"\xff\xed\xa0\x80"}\n')
    assert isinstance(problem, Problem)
    assert problem.kind == "malformed-utf8"
    assert line == Line(1, {"a": "\ufffd" * 4}, 13)
    assert kinds(b"\xff\n") == [(1, "malformed-json")]


def test_a_cut_off_last_line_is_told_from_a_malformed_one() -> None:
    assert kinds(b'[1]\n{"a":"b') == [(2, "truncated-last-line")]
    assert kinds(b'[1]\n{"a":"b\n') == [(2, "malformed-json")]
    assert kinds(b'[1]\n{"a":"\xc3') == [(2, "truncated-last-line")]


def test_nul_bytes_are_named() -> None:
    (problem,) = lines(b"\0\0\0\0\n")
    assert isinstance(problem, Problem)
    assert problem.kind == "malformed-json"
    assert "NUL" in problem.detail


def test_problems_hold_no_text_of_the_transcript() -> None:
    for data in (b'{"password": hunter2}\n', b'{"password":"hunter2', b'"hunter2\xff\n', b"hunter2\n"):
        assert all("hunter2" not in found.detail for found in lines(data) if isinstance(found, Problem))


def test_lines_over_the_limit_are_skipped_with_their_size() -> None:
    long = b'"' + b"x" * 3_000_000 + b'"\n'
    source = source_of(b"[1]\n" + long + b"[2]\n" + long[:-1], max_line=1000)
    found = list(read_lines(source))
    assert [type(each) for each in found] == [Line, Problem, Line, Problem]
    assert found[1] == Problem(2, "line-too-long", "a line of 3,000,003 bytes, over the limit of 1,000")
    assert (source.lines, source.bytes) == (4, 8 + 2 * len(long) - 1)


def test_a_line_of_exactly_the_limit_is_read() -> None:
    assert lines(b'"xxxxxxx"\n', max_line=10) == [Line(1, "xxxxxxx", 10)]
    assert kinds(b'"xxxxxxxx"\n', max_line=10) == [(1, "line-too-long")]


class _Failing(io.RawIOBase):
    """A stream that breaks after its first bytes."""

    def __init__(self) -> None:
        self.left = [b"[1]\n[2"]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self.left:
            raise OSError(5, "Input/output error")
        data = self.left.pop()
        buffer[: len(data)] = data
        return len(data)


def test_a_stream_that_fails_ends_with_a_problem() -> None:
    source = Source("broken", lambda: _Failing())  # type: ignore[arg-type, return-value]
    found = list(read_lines(source))
    assert found[0] == Line(1, [1], 4)
    assert isinstance(found[-1], Problem)
    assert found[-1].kind == "read-error"


def test_a_source_that_cannot_be_opened_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"cannot read gone\.jsonl"):
        list(read_lines(Source.of_file("gone.jsonl")))
