from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from loopscan.errors import UsageError
from loopscan.tuning.redraws import redraws, sums


def test_as_many_sessions_are_drawn_as_there_are_and_each_as_often_as_any() -> None:
    weights = redraws(50, 4000, 1)
    assert weights.shape == (4000, 50)
    assert set(weights.sum(axis=1)) == {50}
    assert np.allclose(weights.mean(axis=0), 1, atol=0.1)
    assert np.allclose(weights.var(axis=0), 49 / 50, atol=0.15)


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert np.array_equal(redraws(20, 10, 7), redraws(20, 10, 7))
    assert not np.array_equal(redraws(20, 10, 7), redraws(20, 10, 8))


def test_one_session_is_always_itself() -> None:
    assert np.array_equal(redraws(1, 5, 3), np.ones((5, 1)))


@pytest.mark.parametrize(("sessions", "rounds"), [(0, 5), (5, 0)])
def test_nothing_cannot_be_redrawn(sessions: int, rounds: int) -> None:
    with pytest.raises(UsageError, match="at least one session and one round"):
        redraws(sessions, rounds, 1)


def test_sums_are_the_same_in_one_block_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, matrix = redraws(97, 11, 1), np.random.default_rng(2).integers(0, 9, (97, 13))
    wanted = np.array(
        [[sum(w * x for w, x in zip(row, column, strict=True)) for column in matrix.T] for row in weights]
    )
    assert np.array_equal(sums(weights, matrix), wanted)
    monkeypatch.setattr("loopscan.tuning.redraws._BLOCK", 40)
    assert np.array_equal(sums(weights, matrix), wanted)
    assert sums(weights, np.zeros((97, 0))).shape == (11, 0)


def test_a_large_matrix_is_never_converted_as_a_whole() -> None:
    weights, matrix = redraws(5000, 10, 1), np.ones((5000, 2000), dtype=np.bool_)
    tracemalloc.start()
    try:
        total = sums(weights, matrix)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.all(total == 5000)
    assert peak < 10_000_000  # As floats the matrix has 80 MB.
