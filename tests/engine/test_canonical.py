"""Two values have one identity exactly if JavaScript's canonical JSON is the same."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.engine.canonical import JS_SPACE, identity, number_text, trim

NUMBERS = [0, 0.0, -0.0, 1, 1.0, -1, 2, 0.1, 1e21, 10**21, 2**53 - 1, 2**53, 2**53 + 1, 2.0**53, 5e-324, 10**400]
numbers = st.one_of(
    st.sampled_from([*NUMBERS, float("inf"), float("-inf"), -(10**400)]),
    st.integers(-3, 3),
    st.integers(2**53 - 2, 2**53 + 2),
    st.floats(allow_nan=False),
)
texts = st.one_of(
    st.sampled_from(["", "a", "b", "1", "null", "NaN", "\ud800", "\udc00", "\U0001f600", "\ufffd"]),
    st.text(max_size=3),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


def as_javascript(value: Any) -> Any:
    """Return a model of a value in which Python's equality is JavaScript's."""
    if isinstance(value, dict):
        return ("object", frozenset((key, as_javascript(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(as_javascript(item) for item in value))
    if isinstance(value, bool) or value is None:
        return ("literal", str(value))
    if isinstance(value, str):
        return ("string", value)
    try:
        return ("number", float(value))
    except OverflowError:
        return ("number", float("inf") if value > 0 else float("-inf"))


@settings(max_examples=1500)
@given(values, values)
def test_identity_is_javascripts_equality(one: Any, other: Any) -> None:
    assert (identity(one) == identity(other)) == (as_javascript(one) == as_javascript(other))


scalars = st.sampled_from([None, True, False, 0, 1, "", "a", [], {}, "null", "true"])


@settings(max_examples=800)
@given(st.lists(scalars, max_size=3), st.lists(scalars, max_size=3), values, values)
def test_the_slow_writer_keeps_apart_and_together_what_the_fast_one_does(
    plain: list[Any], plain_other: list[Any], one: Any, other: Any
) -> None:
    """A lone surrogate sends a value to the slow writer."""
    slow = "\ud800"
    assert (identity([slow, plain]) == identity([slow, plain_other])) == (
        as_javascript(plain) == as_javascript(plain_other)
    )
    assert (identity({slow: one}) == identity({slow: other})) == (as_javascript(one) == as_javascript(other))
    assert identity([slow, "A", {"B": "C"}], str.lower) == identity([slow, "a", {"b": "c"}])
    assert identity([slow, "A"], str.lower) != identity([slow, "A"])


def respelled(value: Any) -> Any:
    """Return the same value, for JavaScript: keys the other way round, whole numbers as floats and back."""
    if isinstance(value, dict):
        return {key: respelled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [respelled(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return float(value) if abs(value) < 10**308 else value


@given(values)
def test_spelling_and_order_of_keys_do_not_matter(value: Any) -> None:
    assert identity(respelled(value)) == identity(value)


@given(values, st.integers(150, 400))
def test_depth_is_no_limit(value: Any, depth: int) -> None:
    def nested(inner: Any, levels: int) -> Any:
        for level in range(levels):
            inner = [inner] if level % 2 else {"k": inner}
        return inner

    assert identity(nested(value, depth)) == identity(nested(respelled(value), depth))
    assert identity(nested(value, depth)) != identity(nested(value, depth + 1))
    assert identity(nested(value, depth)) != identity(nested([value], depth))


def test_a_value_deeper_than_the_stack_has_an_identity() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert len(identity(value)) == 16


def test_infinities_and_null_are_three_values() -> None:
    assert len({identity([float("inf")]), identity([float("-inf")]), identity([None])}) == 3


def test_a_text_rule_rewrites_strings_and_keys_at_every_depth() -> None:
    assert identity({"A": ["B", {"C": 1}]}, str.lower) == identity({"a": ["b", {"c": 1}]})
    assert identity({"A": "\ud800"}, str.lower) == identity({"a": "\ud800"})


def test_keys_that_a_text_rule_makes_equal_stay_apart_in_the_order_of_their_old_names() -> None:
    met = identity({"a": 2, "A": 1}, str.lower)
    assert met == identity({"A": 1, "a": 2}, str.lower)
    assert met not in [identity(value, str.lower) for value in ({"a": 2}, {"a": 1}, {"a": 1, "A": 2})]


def test_trimming_is_javascripts() -> None:
    assert trim(JS_SPACE + "x" + JS_SPACE) == "x"
    for kept in "\x1c\x1d\x1e\x1f\x85\u200b\u180e\x00":
        assert trim(kept + "x" + kept) == kept + "x" + kept


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (2.0, "2"),
        (-1.5, "-1.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (5e-324, "5e-324"),
        (-2.5e-7, "-2.5e-7"),
        (120, "120"),
    ],
)
def test_numbers_are_written_as_javascript_writes_them(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@settings(max_examples=5, deadline=None)
@given(st.lists(values, min_size=60, max_size=60))
def test_node_agrees(batch: list[Any]) -> None:
    script = """
      const key = (v) => Array.isArray(v) ? v.map(key) : v && typeof v === "object"
        ? Object.keys(v).sort().map((k) => [k, key(v[k])]).concat([["object"]])
        : typeof v === "number" && !Number.isFinite(v) ? ["number", String(v)] : v;
      const lines = require("fs").readFileSync(0, "utf8").trim().split("\\n");
      console.log(JSON.stringify(lines.map((line) => JSON.stringify(key(JSON.parse(line))))));
    """
    lines = "\n".join(json.dumps(value).replace("Infinity", "1e400") for value in batch)
    done = subprocess.run(["node", "-e", script], input=lines, capture_output=True, text=True, check=True)
    keys = json.loads(done.stdout)
    ours = [identity(value) for value in batch]
    for i in range(len(batch)):
        for j in range(i):
            assert (ours[i] == ours[j]) == (keys[i] == keys[j]), (batch[i], batch[j])
