from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.errors import UsageError
from loopscan.tuning.choice import Choice, Preferences, Reason, choose, choose_by_cost, pareto_front
from loopscan.tuning.intervals import sessions_needed
from loopscan.tuning.promise import Demand, Promise, promised, shared

SMALL = st.integers(0, 3)


def preferring(settings: int, warnings: Any = None, changes: Any = None, strictness: Any = None) -> Preferences:
    same = np.zeros(settings, dtype=np.int64)
    return Preferences(
        *(same if each is None else np.array(each) for each in (changes, warnings)),
        np.arange(settings) if strictness is None else np.array(strictness),
    )


def promise(counts: list[int], at_risk: int = 200, *chains: list[int]) -> Promise:
    return promised(
        np.array(counts, dtype=np.int64), at_risk, Demand(shared(*(chains or [list(range(len(counts)))])))
    )


def chosen(seen: Promise, saved: list[float], **ties: Any) -> Choice:
    return choose(seen, np.array(saved, dtype=np.float64), preferring(len(saved), **ties))


def test_what_saves_most_of_what_is_let_through_is_recommended() -> None:
    assert chosen(promise([0, 1, 50]), [1, 2, 9]) == Choice(1, Reason.RECOMMENDED)
    assert chosen(promise([0, 0, 0]), [3, 2, 1]).index == 0


@pytest.mark.parametrize(
    ("counts", "ties", "index"),
    [
        ([2, 1, 1], {"warnings": [0, 9, 9]}, 1),
        ([1, 1, 1], {"changes": [3, 2, 1], "warnings": [0, 1, 2]}, 2),
        ([1, 1, 1], {"changes": [2, 1, 1], "warnings": [0, 2, 1]}, 2),
        ([1, 1, 1], {"changes": [1, 1, 1], "strictness": [2, 0, 1]}, 1),
        ([1, 1, 1], {}, 0),
    ],
)
def test_ties_go_to_false_blocks_then_changes_then_warnings_then_the_lenient(
    counts: list[int], ties: dict[str, list[int]], index: int
) -> None:
    assert chosen(promise(counts), [5, 5, 5], **ties).index == index


def test_savings_that_differ_only_by_the_order_of_their_sum_are_ties() -> None:
    assert chosen(promise([1, 0]), [0.3, 0.1 + 0.1 + 0.1]).index == 1
    assert chosen(promise([0, 1]), [0.3, 0.1 + 0.1 + 0.1]).index == 0
    assert chosen(promise([0, 1]), [0.3, 0.300001]).index == 1


def test_where_nothing_is_saved_nothing_is_recommended() -> None:
    assert chosen(promise([0, 0]), [0, 0]) == Choice(None, Reason.NOTHING_TO_SAVE)
    assert chosen(promise([0, 0]), [-1, 0]) == Choice(None, Reason.NOTHING_TO_SAVE)
    assert chosen(promise([]), []) == Choice(None, Reason.NOTHING_TO_SAVE)
    # The second one saves, but no chain leads to it.
    assert chosen(promise([0, 0], 200, [0]), [0, 1]) == Choice(None, Reason.NOTHING_TO_SAVE)


def test_without_sessions_at_risk_there_are_no_incidents() -> None:
    assert chosen(promise([0, 0], 0), [0, 0]) == Choice(None, Reason.NO_INCIDENTS)


def test_too_few_sessions_are_told_with_the_number_that_is_missing() -> None:
    assert chosen(promise([0, 0], 20), [0, 5]) == Choice(None, Reason.TOO_FEW_SESSIONS, 59, 39)
    # The first setting that saves is behind one with two false blocks: it is that one that needs the sessions.
    needed = sessions_needed(2, 0.05, 0.05)
    assert chosen(promise([2, 0, 0], 50), [0, 5, 9]) == Choice(None, Reason.TOO_FEW_SESSIONS, needed, needed - 50)


def test_of_several_chains_the_one_with_the_fewest_missing_sessions_is_told() -> None:
    seen = promise([1, 0], 50, [0], [1])
    assert chosen(seen, [5, 5]) == Choice(None, Reason.TOO_FEW_SESSIONS, 72, 22)
    assert chosen(seen, [5, 0]).needed == sessions_needed(1, 0.05, 0.025)


def test_false_blocks_at_a_rate_that_is_surely_too_high_are_no_matter_of_too_few_sessions() -> None:
    assert chosen(promise([12, 30], 100), [1, 5]) == Choice(None, Reason.FALSE_BLOCKS_TOO_FREQUENT)
    assert chosen(promise([10], 100), [1]) == Choice(None, Reason.FALSE_BLOCKS_TOO_FREQUENT)  # 2.8 % at a rate of 5 %
    assert chosen(promise([9], 100), [1]).reason is Reason.TOO_FEW_SESSIONS  # 6.3 %


def test_a_false_block_of_few_sessions_does_not_tell_that_there_are_too_many() -> None:
    needed = sessions_needed(1, 0.05, 0.05)
    assert chosen(promise([1], 4), [1]) == Choice(None, Reason.TOO_FEW_SESSIONS, needed, needed - 4)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[int], int, list[list[int]], list[float], dict[str, list[int]]]:
    settings, at_risk = draw(st.integers(1, 7)), draw(st.integers(0, 250))

    def each(what: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(what, min_size=settings, max_size=settings))

    chain = st.lists(st.integers(0, settings - 1), unique=True)
    return (
        each(st.integers(0, min(at_risk, 8))),
        at_risk,
        draw(st.lists(chain, min_size=1, max_size=3)),
        each(st.sampled_from([0.0, 1.0, 0.1 + 0.2, 0.3, 7.5])),
        {"warnings": each(SMALL), "changes": each(SMALL), "strictness": draw(st.permutations(range(settings)))},
    )


@given(corpora(), st.data())
def test_another_order_of_the_settings_does_not_change_the_choice(
    corpus: tuple[list[int], int, list[list[int]], list[float], dict[str, list[int]]], data: st.DataObject
) -> None:
    counts, at_risk, chains, saved, ties = corpus
    order = data.draw(st.permutations(range(len(counts))))
    moved = {old: new for new, old in enumerate(order)}
    one = chosen(promise(counts, at_risk, *chains), saved, **ties)
    other = chosen(
        promise([counts[old] for old in order], at_risk, *([moved[each] for each in chain] for chain in chains)),
        [saved[old] for old in order],
        **{name: [key[old] for old in order] for name, key in ties.items()},
    )
    index = None if one.index is None else moved[one.index]
    assert other == Choice(index, one.reason, one.needed, one.more)


@given(corpora())
def test_what_is_recommended_is_let_through_and_saves_the_most_of_it(
    corpus: tuple[list[int], int, list[list[int]], list[float], dict[str, list[int]]],
) -> None:
    counts, at_risk, chains, saved, ties = corpus
    seen = promise(counts, at_risk, *chains)
    choice = chosen(seen, saved, **ties)
    open_to = [each for each in np.flatnonzero(seen.passed) if saved[each] > 0]
    if choice.index is None:
        assert not open_to
        assert choice.reason is not Reason.RECOMMENDED
    else:
        assert choice == Choice(choice.index, Reason.RECOMMENDED)
        assert choice.index in open_to
        assert saved[choice.index] == pytest.approx(max(saved[each] for each in open_to))


@given(corpora())
def test_with_the_sessions_that_are_said_to_be_needed_there_is_a_recommendation_and_with_one_less_there_is_not(
    corpus: tuple[list[int], int, list[list[int]], list[float], dict[str, list[int]]],
) -> None:
    counts, at_risk, chains, saved, ties = corpus
    choice = chosen(promise(counts, at_risk, *chains), saved, **ties)
    if choice.reason is Reason.TOO_FEW_SESSIONS:
        assert choice.needed is not None
        assert choice.more == choice.needed - at_risk > 0
        assert chosen(promise(counts, choice.needed, *chains), saved, **ties).index is not None
        # With several chains one less may do for another one, whose false blocks are too frequent so far.
        before = promise(counts, choice.needed - 1, *chains)
        hopeful = [chain for chain in chains if any(saved[each] > 0 for each in chain)]
        if len(hopeful) == 1:
            assert chosen(before, saved, **ties).index is None


def test_arrays_that_do_not_fit_and_savings_that_are_no_numbers_are_refused() -> None:
    seen = promise([0, 0])
    with pytest.raises(UsageError, match="each of the 2 settings"):
        choose(seen, np.array([1.0]), preferring(2))
    with pytest.raises(UsageError, match="each of the 2 settings"):
        choose(seen, np.array([1.0, 2.0]), preferring(3))
    with pytest.raises(UsageError, match="finite"):
        chosen(seen, [1, float("nan")])


def by_cost(
    counts: list[int],
    missed: list[int],
    saved: list[float],
    stuck: int,
    ratio: float,
    at_risk: int = 100,
    **ties: Any,
) -> Choice:
    return choose_by_cost(
        np.array(counts),
        np.array(missed),
        stuck,
        np.array(saved, float),
        at_risk,
        ratio,
        preferring(len(counts), **ties),
    )


def test_by_cost_the_lowest_sum_of_missed_and_falsely_blocked_sessions_is_recommended() -> None:
    # 10 stuck sessions. At 1 a false block: 8, 7, 9. At 3: 8, 13, 27. At 0: 8, 4, 0.
    for ratio, index in ((1, 1), (3, 0), (0, 2)):
        assert by_cost([0, 3, 9], [8, 4, 0], [1, 2, 3], 10, ratio) == Choice(index, Reason.RECOMMENDED)


def test_by_cost_ties_go_to_what_saves_most_and_then_as_ever() -> None:
    assert by_cost([0, 2], [4, 2], [1, 2], 10, 1).index == 1
    assert by_cost([2, 0], [2, 4], [2, 2], 10, 1).index == 1
    assert by_cost([1, 1], [2, 2], [2, 2], 10, 1, warnings=[2, 1]).index == 1


def test_by_cost_nothing_is_recommended_that_costs_as_much_as_never_stepping_in() -> None:
    assert by_cost([3], [7], [1], 10, 1) == Choice(None, Reason.FALSE_BLOCKS_TOO_FREQUENT)
    assert by_cost([3], [7], [1], 10, 0.99) == Choice(0, Reason.RECOMMENDED)
    assert by_cost([0], [0], [0], 0, 1) == Choice(None, Reason.NOTHING_TO_SAVE)
    assert by_cost([0], [0], [0], 0, 1, at_risk=0) == Choice(None, Reason.NO_INCIDENTS)


@pytest.mark.parametrize("ratio", [-1, float("nan"), float("inf")])
def test_a_cost_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(UsageError, match="the cost of a false block"):
        by_cost([0], [0], [1], 1, ratio)


POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20)


@given(POINTS)
def test_the_front_is_what_no_other_setting_beats(points: list[tuple[int, int]]) -> None:
    counts, saved = np.array([p[0] for p in points], int), np.array([p[1] for p in points], float)

    def beaten(one: tuple[int, int]) -> bool:
        return any(a <= one[0] and b >= one[1] and (a, b) != one for a, b in points)

    front = [int(each) for each in pareto_front(counts, saved)]
    assert sorted(front) == [number for number, point in enumerate(points) if not beaten(point)]
    assert [(points[each][0], each) for each in front] == sorted((points[each][0], each) for each in front)
