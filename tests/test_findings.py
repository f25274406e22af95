"""Cases have names of their own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscan.findings import Names

NAMES = st.sampled_from(["a", "b", "a (2)", "a (3)", "a (2) (2)"])


def test_a_name_that_comes_again_gets_a_number() -> None:
    names = Names()
    assert [names.unique("g", name) for name in ("a", "a", "b", "a")] == ["a", "a (2)", "b", "a (3)"]
    assert names.unique("other", "a") == "a"


@given(st.lists(NAMES, max_size=30))
def test_names_are_unique_whatever_they_are(given_names: list[str]) -> None:
    names = Names()
    made = [names.unique("g", name) for name in given_names]
    assert len(set(made)) == len(made)
    assert all(one.startswith(name) for one, name in zip(made, given_names, strict=True))
