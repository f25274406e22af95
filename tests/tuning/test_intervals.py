from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopscan.errors import UsageError
from loopscan.tuning.intervals import (
    clopper_pearson,
    clopper_pearson_each,
    most_allowed,
    sessions_needed,
    tails,
    upper_bounds,
)

RATES = st.floats(0.001, 0.999)


@st.composite
def counts(draw: st.DrawFn, most: int = 2000) -> tuple[int, int]:
    trials = draw(st.integers(1, most))
    return draw(st.integers(0, trials)), trials


def exact(successes: int, trials: int, rate: Fraction) -> Fraction:
    """Return the binomial tail in whole numbers."""
    terms = (comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(successes + 1))
    return sum(terms, Fraction(0))


@given(counts(most=60), st.integers(1, 99))
def test_tails_are_the_sums_of_the_binomial_terms(seen: tuple[int, int], percent: int) -> None:
    successes, trials = seen
    wanted = float(exact(successes, trials, Fraction(percent, 100)))
    assert float(tails(successes, trials, percent / 100)) == pytest.approx(wanted, rel=1e-10)


@given(counts(), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_brackets_the_observed_rate_and_inverts_the_test(
    seen: tuple[int, int], confidence: float
) -> None:
    successes, trials = seen
    low, high = clopper_pearson(successes, trials, confidence)
    side = (1 - confidence) / 2
    assert 0 <= low <= successes / trials <= high <= 1
    if successes == trials:
        assert high == 1
    else:
        assert float(tails(successes, trials, high)) == pytest.approx(side, rel=1e-6)
    if successes == 0:
        assert low == 0
    else:
        assert float(tails(trials - successes, trials, 1 - low)) == pytest.approx(side, rel=1e-6)


def test_the_interval_of_a_textbook() -> None:
    # 0 of 10: 1 - 0.025 ** (1 / 10). 1 of 1: 0.025.
    assert clopper_pearson(0, 10) == pytest.approx((0, 1 - 0.025**0.1))
    assert clopper_pearson(1, 1) == pytest.approx((0.025, 1))


def test_nothing_is_known_of_no_trials() -> None:
    assert clopper_pearson(0, 0) == (0, 1)
    assert upper_bounds(0, 0, 0.05) == 1
    assert tails(0, 0, 0.05) == 1


@pytest.mark.parametrize("trials", [1, 7, 30])
def test_the_interval_covers_the_true_rate_as_often_as_it_says(trials: int) -> None:
    low, high = clopper_pearson_each(np.arange(trials + 1), trials, 0.9)
    for rate in np.linspace(0.01, 0.99, 99):
        distribution = np.diff(tails(np.arange(trials + 1), trials, rate), prepend=0)
        assert distribution[(low <= rate) & (rate <= high)].sum() >= 0.9


@given(st.lists(st.integers(0, 50)))
def test_many_intervals_are_those_of_each(successes: list[int]) -> None:
    low, high = clopper_pearson_each(successes, 50, 0.8)
    assert list(zip(low, high, strict=True)) == [clopper_pearson(each, 50, 0.8) for each in successes]


@given(counts(), RATES, st.sampled_from([0.001, 0.05, 0.3]))
def test_the_upper_bound_is_no_higher_than_a_rate_just_where_its_test_passes(
    seen: tuple[int, int], rate: float, level: float
) -> None:
    successes, trials = seen
    tail, bound = float(tails(successes, trials, rate)), float(upper_bounds(successes, trials, level))
    assume(abs(bound - rate) > 1e-9)
    assert (bound <= rate) == (tail <= level)


@given(st.integers(0, 3000), RATES, st.sampled_from([0.0001, 0.05, 0.5]))
def test_the_most_allowed_successes_pass_and_one_more_does_not(trials: int, rate: float, level: float) -> None:
    most = most_allowed(trials, rate, level)
    assert -1 <= most < max(trials, 1)
    assert most < 0 or tails(most, trials, rate) <= level
    assert tails(most + 1, trials, rate) > level


@given(st.integers(0, 200), st.floats(0.001, 0.9), st.floats(0.0001, 0.9))
def test_the_sessions_needed_are_enough_and_one_less_is_not(false_blocks: int, max_rate: float, delta: float) -> None:
    needed = sessions_needed(false_blocks, max_rate, delta)
    assert needed > false_blocks
    assert tails(false_blocks, needed, max_rate) <= delta
    assert tails(false_blocks, needed - 1, max_rate) > delta


@pytest.mark.parametrize(
    ("false_blocks", "max_rate", "delta", "needed"),
    [
        (0, 0.05, 0.05, 59),
        (0, 0.05, 0.025, 72),
        (1, 0.05, 0.05, 93),
        (0, 0.01, 0.05, 299),
        (0, 0.05, 0.05 / 2000, 207),
    ],
)
def test_the_sessions_needed_are_those_known(false_blocks: int, max_rate: float, delta: float, needed: int) -> None:
    assert sessions_needed(false_blocks, max_rate, delta) == needed
    rate = Fraction(str(max_rate))
    assert exact(false_blocks, needed, rate) <= delta < exact(false_blocks, needed - 1, rate)


def test_what_makes_no_sense_is_refused() -> None:
    for successes, trials in ((-1, 5), (6, 5), (0, -1)):
        with pytest.raises(UsageError, match="counts must lie between"):
            clopper_pearson(successes, trials)
    for confidence in (0, 1, 1.5, float("nan")):
        with pytest.raises(UsageError, match="the confidence must lie between 0 and 1"):
            clopper_pearson(1, 2, confidence)
    for call in ((0, 0, 0.05), (0, 1, 0.05), (0, 0.05, 0), (0, 0.05, 1), (-1, 0.05, 0.05)):
        with pytest.raises(UsageError):
            sessions_needed(*call)
