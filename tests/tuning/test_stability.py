from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.tuning.choice import Preferences, choose, choose_by_cost
from loopscan.tuning.promise import Demand, promised, shared
from loopscan.tuning.redraws import redraws
from loopscan.tuning.stability import Stability, stability, stability_by_cost

DEMAND = Demand(shared([0, 1, 2], [3, 1]), max_rate=0.2, confidence=0.9)


def preferences(settings: int) -> Preferences:
    same = np.zeros(settings, dtype=np.int64)
    return Preferences(same, same, np.arange(settings))


def sample(sessions: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """False blocks, what is saved, and which sessions are stuck, of four settings."""
    draw = np.random.default_rng(5)
    false_blocks = draw.random((sessions, 4)) < [0.02, 0.08, 0.1, 0.02]
    stuck = draw.random(sessions) < 0.3
    return false_blocks, stuck[:, None] * draw.random((sessions, 1)) * [1.0, 2.0, 3.0, 1.5], stuck


def test_each_round_is_the_choice_from_its_redrawn_sessions() -> None:
    false_blocks, saved, _ = sample()
    seen = stability(false_blocks, saved, DEMAND, preferences(4), rounds=40, seed=9)
    chosen, none = np.zeros(4, dtype=int), 0
    for weights in redraws(60, 40, 9):
        again = np.repeat(np.arange(60), weights.astype(int))
        choice = choose(promised(false_blocks[again].sum(0), 60, DEMAND), saved[again].sum(0), preferences(4))
        if choice.index is None:
            none += 1
        else:
            chosen[choice.index] += 1
    assert (list(seen.chosen), seen.none, seen.rounds) == (list(chosen), none, 40)
    assert np.count_nonzero(seen.chosen) > 1  # The sample is one whose choice does hang on its sessions.


def test_by_cost_each_round_is_the_choice_from_its_redrawn_sessions() -> None:
    false_blocks, saved, stuck = sample()
    missed = stuck[:, None] & (np.random.default_rng(1).random((60, 4)) < [0.6, 0.3, 0.2, 0.5])
    seen = stability_by_cost(false_blocks, missed, stuck, saved, 1.5, preferences(4), rounds=40, seed=9)
    chosen, none = np.zeros(4, dtype=int), 0
    for weights in redraws(60, 40, 9):
        again = np.repeat(np.arange(60), weights.astype(int))
        counts, lost = false_blocks[again].sum(0), missed[again].sum(0)
        choice = choose_by_cost(counts, lost, int(stuck[again].sum()), saved[again].sum(0), 60, 1.5, preferences(4))
        if choice.index is None:
            none += 1
        else:
            chosen[choice.index] += 1
    assert (list(seen.chosen), seen.none, seen.rounds) == (list(chosen), none, 40)
    assert np.count_nonzero(seen.chosen) > 1


@given(st.booleans(), st.sampled_from([0.0, 1.0]))
def test_one_session_is_redrawn_as_itself(blocked: bool, gain: float) -> None:
    lax = Demand(shared([0]), max_rate=0.9, confidence=0.5)
    seen = stability(np.array([[blocked]]), np.array([[gain]]), lax, preferences(1), rounds=7)
    times = 7 if not blocked and gain else 0
    assert (list(seen.chosen), seen.none) == ([times], 7 - times)


def test_a_choice_that_no_session_could_change_is_made_every_time() -> None:
    saved = np.ones((100, 2)) * [1, 2]
    seen = stability(np.zeros((100, 2), dtype=bool), saved, Demand(shared([0, 1])), preferences(2), rounds=50)
    assert (list(seen.chosen), seen.none) == ([0, 50], 0)
    assert (seen.share(1), seen.share(0), seen.share(None)) == (1, 0, 0)


def test_no_sessions_are_no_rounds() -> None:
    nothing = np.zeros((0, 4), dtype=bool)
    for seen in (
        stability(nothing, np.zeros((0, 4)), DEMAND, preferences(4)),
        stability_by_cost(nothing, nothing, np.zeros(0, dtype=bool), np.zeros((0, 4)), 1, preferences(4)),
    ):
        assert (seen.rounds, list(seen.chosen), seen.none, seen.share(0)) == (0, [0, 0, 0, 0], 0, None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_settings_that_do_the_same_are_told_apart_by_preference_in_every_round(dtype: type) -> None:
    draw = np.random.default_rng(3)
    saved = np.repeat(draw.random((200, 1)).astype(dtype), 37, axis=1)
    alike = Preferences(np.zeros(37, dtype=np.int64), np.zeros(37, dtype=np.int64), np.roll(np.arange(37), 20))
    seen = stability(np.zeros((200, 37), dtype=bool), saved, Demand(shared(range(37))), alike)
    assert seen.chosen[20] == seen.rounds == 200


def test_the_same_seed_gives_the_same_counts() -> None:
    false_blocks, saved, _ = sample()

    def counts(seed: int) -> list[int]:
        seen: Stability = stability(false_blocks, saved, DEMAND, preferences(4), seed=seed)
        return [*seen.chosen, seen.none]

    assert counts(1) == counts(1) != counts(2)
    assert sum(counts(1)) == 200
