"""The differing part of two values is found, is the shortest there is, and is harmless to look at."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Json
from loopscan.explaining.differences import cut, difference

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=10,
)


@given(values, values)
def test_equal_values_do_not_differ_and_others_do(one: Json, other: Json) -> None:
    assert difference(one, one) is None
    found, back = difference(one, other), difference(other, one)
    assert (found is None) == (back is None) == same(one, other)
    if found is not None and back is not None:
        assert found.places == back.places
        shown = "".join((found.path, found.before, found.after))
        assert {unicodedata.category(char) for char in shown}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


def same(one: Json, other: Json) -> bool:
    """Say whether two values are the same; ``True`` is not 1 here."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    ("one", "other", "path", "before", "after"),
    [
        ({"a": {"b": 1}, "c": [1, 2]}, {"a": {"b": 2}, "c": [1, 3]}, "a.b", "1", "2"),
        ({"a": {"b": 1}, "z": 1}, {"a": {"b": 2}, "z": 2}, "z", "1", "2"),
        ([1, {"x": "y"}], [1, {}], "[1].x", '"y"', "(missing)"),
        ("up 10 s", "up 11 s", "", "up 10 s", "up 11 s"),
        (
            "x" * 90 + "a" + "y" * 90,
            "x" * 90 + "b" + "y" * 90,
            "",
            f"…{'x' * 24}a{'y' * 24}…",
            f"…{'x' * 24}b{'y' * 24}…",
        ),
        ("\x1b[31m1", "\x1b[31m2", "", "\\x1b[31m1", "\\x1b[31m2"),
        (True, 1, "", "true", "1"),
    ],
)
def test_the_shortest_path_and_the_span_are_shown(one: Json, other: Json, path: str, before: str, after: str) -> None:
    found = difference(one, other)
    assert found is not None
    assert (found.path, found.before, found.after) == (path, before, after)


def test_secrets_are_hidden_even_where_they_are_what_differs() -> None:
    found = difference({"text": "password=hunter2abc"}, {"text": "password=hunter3abc"})
    assert found is not None
    assert "hunter" not in found.before + found.after


def test_what_is_kept_is_of_bounded_size() -> None:
    kept = cut({"text": "x" * 1_000_000, "list": [0] * 100_000})
    assert isinstance(kept, dict)
    assert [len(each) for each in kept.values() if isinstance(each, str | list)] == [20_000, 1000]


def test_very_deep_values_are_compared() -> None:
    one: Json = 1
    other: Json = 2
    for _ in range(5000):
        one, other = [one], [other]
    found = difference(one, other)
    assert found is not None
    assert (found.before, found.after) == ("1", "2")
