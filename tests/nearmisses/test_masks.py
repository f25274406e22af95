"""What changes in passing is masked, what may be progress is remembered, and nothing depends on the order of keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Json
from loopscan.nearmisses.masks import Masked, masked_text, progresses

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=10,
)


@given(st.text(alphabet=st.sampled_from("ab19fF-:/. \x00\x01tmpsid=TZ"), max_size=60))
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked_text(text, [])
    left: list[float] = []
    assert masked_text(once, left) == once
    assert left == []


@given(values)
def test_any_value_is_masked_whatever_the_order_of_its_keys(value: Json) -> None:
    found = Masked(value)
    assert Masked(value).identity == found.identity
    if isinstance(value, dict):
        turned = Masked(dict(reversed(list(value.items()))))
        assert (turned.identity, turned.numbers) == (found.identity, found.numbers)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-10-05T08:12:03.123Z", "at 2027-01-01T00:00:00Z"),
        ("id 61d09aec-cc2f-4693-a5d1-5f9f80d0e980", "id 00000000-cc2f-4693-a5d1-5f9f80d0e981"),
        ("took 12 ms", "took 3.5 s"),
        ("pid 12, attempt 3", "pid=991, attempt #4"),
        ("wrote /tmp/ab12/x.log", "wrote /var/folders/q/z"),
        ("commit 1a2b3c4d5", "commit ffff0000aa"),
        ("since 1760000000", "since 1760000099"),
        ({"n": 1, "at": "10:20:30"}, {"n": 7, "at": "11:20"}),
    ],
)
def test_what_changes_in_passing_is_alike(one: Json, other: Json) -> None:
    assert Masked(one).identity == Masked(other).identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        ("file a1.txt", "file b1.txt"),
        ({"a": 1}, {"b": 1}),
        ("error: full", "error: denied"),
        (1, "1"),
        (1, True),
    ],
)
def test_what_differs_in_substance_stays_apart(one: Json, other: Json) -> None:
    assert Masked(one).identity != Masked(other).identity


@pytest.mark.parametrize(
    ("steps", "progress"),
    [
        ([(0.0,), (50.0,), (100.0,)], True),
        ([(9.0, 1.0), (9.0, 2.0), (9.0, 3.0)], True),
        ([(3.0,), (2.0,), (1.0,)], True),
        ([(3.0,), (5.0,), (4.0,), (6.0,)], False),
        ([(1.0,)] * 20, False),
        ([(1.0,)] * 19 + [(2.0,)], False),
        ([(1.0,)] * 10 + [(2.0,)] * 10 + [(3.0,)] * 10 + [(4.0,)], True),
        ([(1.0,)], False),
        ([(), ()], False),
    ],
)
def test_a_number_that_goes_one_way_is_progress(steps: list[tuple[float, ...]], progress: bool) -> None:
    assert progresses(steps) is progress


def test_a_hostile_text_takes_no_long_time() -> None:
    for piece in ("1", "a1", "/tmp/", "1:", "pid ", "1-", "f" * 40 + "1"):
        masked_text(piece * 20_000, [])
