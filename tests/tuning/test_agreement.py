from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.errors import UsageError
from loopscan.tuning.agreement import Undefined, kappa

LABELS = st.sampled_from(["stuck", "productive", "unknown"])
SESSIONS = st.lists(st.lists(st.tuples(LABELS, LABELS), max_size=4), max_size=6)


def pairs(table: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, times in table.items() for _ in range(times)]


def test_kappa_is_that_of_a_textbook() -> None:
    # 35 of 50 agree; by chance (25 * 30 + 25 * 20) / 50 ** 2 = 0.5 would: (0.7 - 0.5) / (1 - 0.5).
    table = pairs({("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15})
    seen = kappa([[pair] for pair in table])
    assert (seen.pairs, seen.sessions, seen.agreement, seen.undefined) == (50, 50, 0.7, None)
    assert seen.value == pytest.approx(0.4)
    assert seen.interval is not None
    # The usual large-sample error is 0.13: an interval of about 0.4 - 0.25 to 0.4 + 0.25.
    assert seen.interval == pytest.approx((0.15, 0.65), abs=0.05)


def test_three_categories() -> None:
    # Agreeing: 3 + 4 + 2 of 12. Rows 4, 5, 3, columns 4, 5, 3: by chance (16 + 25 + 9) / 144.
    table = pairs(
        {
            ("stuck", "stuck"): 3,
            ("productive", "productive"): 4,
            ("unknown", "unknown"): 2,
            ("stuck", "productive"): 1,
            ("productive", "unknown"): 1,
            ("unknown", "stuck"): 1,
        }
    )
    chance = 50 / 144
    assert kappa([table[:6], table[6:]]).value == pytest.approx((9 / 12 - chance) / (1 - chance))


def test_agreement_no_better_than_chance_is_zero_and_full_disagreement_is_negative() -> None:
    even = pairs({("a", "a"): 1, ("a", "b"): 1, ("b", "a"): 1, ("b", "b"): 1})
    assert kappa([even, even]).value == 0
    assert kappa([[("a", "b")], [("b", "a")]]).value == -1


def test_incidents_of_one_session_count_as_one_draw() -> None:
    table = pairs({("a", "a"): 20, ("a", "b"): 10, ("b", "a"): 10, ("b", "b"): 20})
    alone = kappa([[pair] for pair in table]).interval
    tenfold = kappa([[pair] * 10 for pair in table]).interval
    together = kappa([table[start : start + 10] for start in range(0, 60, 10)]).interval
    assert alone == tenfold  # Ten copies in a session say no more than one.
    assert alone is not None
    assert together is not None
    assert together[1] - together[0] > 1.3 * (alone[1] - alone[0])


def test_higher_confidence_is_a_wider_interval() -> None:
    table = [[pair] for pair in pairs({("a", "a"): 20, ("a", "b"): 10, ("b", "b"): 20})]
    narrow, wide = kappa(table, 0.5).interval, kappa(table, 0.99).interval
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("sessions", "value", "agreement", "undefined"),
    [
        ([], None, None, Undefined.NO_PAIRS),
        ([[], []], None, None, Undefined.NO_PAIRS),
        ([[("stuck", "stuck")], [("stuck", "stuck")]], None, 1, Undefined.ONE_CATEGORY),
        ([[("a", "a"), ("a", "b")], []], 0, 0.5, Undefined.ONE_SESSION),
        ([[("a", "a")], [("b", "b")]], 1, 1, Undefined.NO_DISAGREEMENT),
    ],
)
def test_what_cannot_be_said_is_not_and_why(
    sessions: list[list[tuple[str, str]]], value: float | None, agreement: float | None, undefined: Undefined
) -> None:
    seen = kappa(sessions)
    assert (seen.value, seen.agreement, seen.interval, seen.undefined) == (value, agreement, None, undefined)


def test_redraws_of_a_single_category_are_left_out() -> None:
    seen = kappa([[("a", "a")] * 9, [("a", "b"), ("b", "b")]])
    assert seen.interval is not None
    assert -1 <= seen.interval[0] <= seen.interval[1] <= 1


@given(SESSIONS)
def test_either_an_interval_is_there_or_the_reason_why_not(sessions: list[list[tuple[str, str]]]) -> None:
    seen = kappa(sessions)
    assert (seen.interval is None) == (seen.undefined is not None)
    assert seen.value is None or -1 <= seen.value <= 1
    assert kappa(sessions) == seen
    assert kappa([[(other, one) for one, other in session] for session in sessions]).value == seen.value


def test_a_confidence_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="the confidence must lie between 0 and 1"):
        kappa([[("a", "b")]], 1)
