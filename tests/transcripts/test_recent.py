"""What is remembered of a long session is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscan.transcripts.recent import Recent


@given(st.lists(st.integers(0, 30)), st.integers(1, 8))
def test_the_latest_keys_are_remembered_and_at_most_twice_as_many(keys: list[int], size: int) -> None:
    recent: Recent[int, int] = Recent(size)
    for at, key in enumerate(keys):
        recent[key] = at
        latest = list(dict.fromkeys(reversed(keys[: at + 1])))
        for each in latest[:size]:
            assert each in recent
            assert recent.get(each) == at - keys[at::-1].index(each)
        assert sum(each in recent for each in set(keys)) <= 2 * size
