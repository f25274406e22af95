"""Two records of the same things are put side by side in order, the nearest together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscan.pairs import APART_SECONDS, pair

TIMES = st.lists(st.none() | st.floats(0, 5000), max_size=8)


def test_what_has_no_time_goes_by_its_order() -> None:
    assert pair([None, None], [None, None, None]) == [(0, 0), (1, 1)]


def test_what_is_too_far_apart_does_not_belong_together() -> None:
    far = APART_SECONDS + 1
    assert pair([0.0, far], [far]) == [(1, 0)]
    assert pair([0.0], [far, 2 * far]) == []
    assert pair([far], [0.0, far]) == [(0, 1)]


def test_the_nearest_is_taken_where_there_is_a_choice() -> None:
    assert pair([100.0], [0.0, 90.0, 101.0, 140.0]) == [(0, 2)]
    assert pair([0.0, 90.0, 101.0, 140.0], [100.0, 141.0]) == [(2, 0), (3, 1)]
    assert pair([100.0, 130.0], [0.0, 90.0]) == [(0, 0), (1, 1)]


@given(TIMES, TIMES)
def test_the_order_is_kept_and_nothing_is_used_twice(one: list[float | None], other: list[float | None]) -> None:
    found = pair(one, other)
    for side in (0, 1):
        places = [places[side] for places in found]
        assert places == sorted(set(places))
    for left, right in found:
        first, second = one[left], other[right]
        assert first is None or second is None or abs(first - second) <= APART_SECONDS


@given(TIMES)
def test_a_record_is_beside_itself(times: list[float | None]) -> None:
    known = sorted(time for time in times if time is not None)
    assert pair(known, known) == [(place, place) for place in range(len(known))]
