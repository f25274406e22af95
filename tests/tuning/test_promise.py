from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.errors import UsageError
from loopscan.tuning.intervals import sessions_needed, tails
from loopscan.tuning.promise import Chain, Demand, Stop, passing, promised, shared


@st.composite
def demands(draw: st.DrawFn, settings: int) -> Demand:
    chain = st.lists(st.integers(0, settings - 1), max_size=settings, unique=True)
    chains = draw(st.lists(chain, min_size=1, max_size=4))
    return Demand(
        shared(*chains), draw(st.sampled_from([0.01, 0.05, 0.2, 0.5])), draw(st.sampled_from([0.5, 0.9, 0.95]))
    )


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Demand, np.ndarray, int]:
    """A demand of up to eight settings, their counts, and the sessions at risk."""
    settings, at_risk = draw(st.integers(1, 8)), draw(st.integers(0, 300))
    few = st.integers(0, at_risk) | st.integers(0, min(5, at_risk))
    counts = draw(st.lists(few, min_size=settings, max_size=settings))
    return draw(demands(settings)), np.array(counts, dtype=np.int64), at_risk


@given(corpora())
def test_a_setting_passes_just_where_all_before_it_in_a_chain_and_itself_pass_their_tests(
    corpus: tuple[Demand, np.ndarray, int],
) -> None:
    demand, counts, at_risk = corpus
    wanted = set()
    for chain in demand.chains:
        for candidate in chain.candidates:
            if tails(counts[candidate], at_risk, demand.max_rate) > chain.share * (1 - demand.confidence):
                break
            wanted.add(candidate)
    assert set(np.flatnonzero(promised(counts, at_risk, demand).passed)) == wanted


@given(corpora())
def test_nothing_behind_a_stop_passes_by_its_chain_and_what_stopped_it_does_not_itself(
    corpus: tuple[Demand, np.ndarray, int],
) -> None:
    demand, counts, at_risk = corpus
    for number, chain in enumerate(demand.chains):
        alone = Demand((chain,), demand.max_rate, demand.confidence)
        (stop,) = promised(counts, at_risk, alone).stops
        passed = passing(counts, at_risk, alone)
        place = len(chain.candidates) if stop is None else chain.candidates.index(stop.candidate)
        assert all(passed[list(chain.candidates[:place])])
        assert not any(passed[list(chain.candidates[place:])])
        together = promised(counts, at_risk, demand).stops[number]
        assert (stop is None) == (together is None)


@given(corpora())
def test_a_stop_says_how_many_sessions_would_have_done(corpus: tuple[Demand, np.ndarray, int]) -> None:
    demand, counts, at_risk = corpus
    for stop in filter(None, promised(counts, at_risk, demand).stops):
        assert stop.false_blocks == counts[stop.candidate]
        assert stop.more == stop.needed - at_risk > 0
        (alone,) = shared([0])
        alone = Chain(alone.candidates, demand.chains[stop.chain].share)
        one = Demand((alone,), demand.max_rate, demand.confidence)
        count = counts[[stop.candidate]]
        assert passing(count, stop.needed, one).all()
        assert not passing(count, stop.needed - 1, one).any()


@given(corpora(), st.data())
def test_fewer_false_blocks_never_lose_a_setting(corpus: tuple[Demand, np.ndarray, int], data: st.DataObject) -> None:
    demand, counts, at_risk = corpus
    fewer = np.array([data.draw(st.integers(0, int(count))) for count in counts])
    assert np.all(passing(counts, at_risk, demand) <= passing(fewer, at_risk, demand))


@given(corpora(), st.data())
def test_more_sessions_without_a_false_block_never_lose_a_setting(
    corpus: tuple[Demand, np.ndarray, int], data: st.DataObject
) -> None:
    demand, counts, at_risk = corpus
    more = at_risk + data.draw(st.integers(0, 200))
    assert np.all(passing(counts, at_risk, demand) <= passing(counts, more, demand))


@given(corpora())
def test_the_bound_of_what_passes_is_no_higher_than_the_highest_rate(corpus: tuple[Demand, np.ndarray, int]) -> None:
    demand, counts, at_risk = corpus
    seen = promised(counts, at_risk, demand)
    delta = 1 - demand.confidence
    assert np.all(seen.bounds[seen.passed] <= demand.max_rate + 1e-9)
    assert np.all(seen.p_values[seen.passed] <= delta)
    assert np.all(seen.bounds >= counts / max(at_risk, 1) - 1e-9)
    assert np.all((seen.p_values >= 0) & (seen.p_values <= 1))


@given(corpora(), st.data())
def test_many_corpora_at_once_are_those_one_by_one(
    corpus: tuple[Demand, np.ndarray, int], data: st.DataObject
) -> None:
    demand, counts, at_risk = corpus
    many = np.array([data.draw(st.permutations(list(counts))) for _ in range(3)])
    assert np.array_equal(passing(many, at_risk, demand), [passing(row, at_risk, demand) for row in many])


def test_what_came_of_two_chains() -> None:
    # The main chain is tested at 0.025, which 0 of 72 pass and 1 of 110; the others at 0.0125 each, 0 of 86.
    demand = Demand(shared([0, 1, 2], [3, 2], [4]))
    counts = np.array([0, 1, 0, 0, 9])
    seen = promised(counts, 100, demand)
    assert list(seen.passed) == [True, False, True, True, False]
    assert seen.stops == (
        Stop(0, 1, 1, sessions_needed(1, 0.05, 0.025), sessions_needed(1, 0.05, 0.025) - 100),
        None,
        Stop(2, 4, 9, sessions_needed(9, 0.05, 0.0125), sessions_needed(9, 0.05, 0.0125) - 100),
    )
    assert seen.p_values[0] == pytest.approx(0.95**100)
    assert seen.bounds[0] == pytest.approx(1 - 0.025**0.01)
    assert seen.bounds[3] == pytest.approx(1 - 0.0125**0.01)


def test_a_setting_of_no_chain_is_never_let_through() -> None:
    seen = promised(np.array([0, 0]), 500, Demand(shared([1])))
    assert list(seen.passed) == [False, True]
    assert seen.bounds[0] == pytest.approx(1 - 0.05 ** (1 / 500))


def test_nothing_is_let_through_of_no_sessions_and_of_no_chains() -> None:
    assert not promised(np.array([0]), 0, Demand(shared([0]))).passed.any()
    nothing = promised(np.array([0]), 100, Demand(()))
    assert (nothing.passed.any(), nothing.stops) == (False, ())
    assert promised(np.array([], dtype=np.int64), 100, Demand(shared([]))).stops == (None,)


def test_the_main_chain_gets_half_and_the_others_the_rest() -> None:
    assert shared([1, 2]) == (Chain((1, 2), 1.0),)
    assert [chain.share for chain in shared([0], [1], [2])] == [0.5, 0.25, 0.25]
    assert Demand(shared([0], *[[each] for each in range(1, 50)])).chains[0].share == 0.5


@pytest.mark.parametrize(
    ("chains", "max_rate", "confidence", "wrong"),
    [
        (shared([0]), 0.0, 0.95, "the highest rate"),
        (shared([0]), 1.0, 0.95, "the highest rate"),
        (shared([0]), 0.05, 1.0, "the confidence"),
        ((Chain((0,), 0.0),), 0.05, 0.95, "share of the error above 0"),
        ((Chain((0,), 0.6), Chain((1,), 0.6)), 0.05, 0.95, "sum to more than 1"),
        (shared([0, 1, 0]), 0.05, 0.95, "names a setting twice"),
    ],
)
def test_a_demand_that_cannot_be_kept_is_refused(
    chains: tuple[Chain, ...], max_rate: float, confidence: float, wrong: str
) -> None:
    with pytest.raises(UsageError, match=wrong):
        Demand(chains, max_rate, confidence)


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="between 0 and 4"):
        promised(np.array([5]), 4, Demand(shared([0])))
    with pytest.raises(UsageError, match="of which there are 4"):
        passing(np.array([5]), 4, Demand(shared([0])))
    for place in (1, -1):
        with pytest.raises(UsageError, match="no counts of"):
            promised(np.array([0]), 4, Demand(shared([place])))
