"""From sessions to a choice, with the truth known: the promise is kept, and held-out figures are fair."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks import chain as figures
from loopscan.tuning.courses import Judge
from loopscan.tuning.intervals import tails
from loopscan.tuning.parts import Parts, Wishes
from tests.statistics.chain import (
    CERTAIN,
    GRID,
    IN_FORCE,
    Outcome,
    Pool,
    Population,
    demand_of,
    draw,
    outcome,
    populations,
    sessions_of,
)

CORPORA = 1000
CHANCE = 1e-9
"""Less likely than this is no accident; the seeds are fixed besides."""
ERRORS = 5
"""So many standard errors are no accident either."""

STRICT, LOOSE = (0.05, 0.95), (0.2, 0.8)
SIZES = (60, 200, 600)


@cache
def pool() -> Pool:
    return Pool(12, seed=20260201)


@cache
def known(max_rate: float) -> dict[str, Population]:
    return {each.name: each for each in populations(pool(), max_rate)}


@cache
def seen(name: str, sessions: int, wished: tuple[float, float] = STRICT) -> Outcome:
    return outcome(known(wished[0])[name], sessions, CORPORA, demand_of(*wished), seed=sessions)


NAMES = (
    *("clear", "in force above", "main chain above", "labels err", "labels err, in force above"),
    *("productive loops alone", "no loops at all"),
)
USEFUL = NAMES[:5]


def at_least(broken: float, delta: float) -> float:
    """Return how likely so many broken corpora, or more, are where each one breaks with probability delta."""
    count = round(broken * CORPORA)
    return 1 - float(tails(count - 1, CORPORA, delta)) if count else 1.0


@pytest.mark.parametrize("wished", [STRICT, LOOSE], ids=["5% at 95%", "20% at 80%"])
@pytest.mark.parametrize("name", NAMES)
def test_the_promise_about_labelled_false_blocks_is_kept(name: str, wished: tuple[float, float]) -> None:
    for sessions in SIZES:
        found = seen(name, sessions, wished)
        assert found.broken <= found.any_wrong
        assert at_least(found.any_wrong, 1 - wished[1]) > CHANCE, found


def test_where_the_rules_are_right_the_promise_is_about_what_is_true() -> None:
    for group, ruled, true in pool().labels:
        assert group not in CERTAIN or ruled == true
    for name in ("clear", "in force above", "main chain above"):
        population = known(0.05)[name]
        assert np.array_equal(population.rates(pool().by_rules), population.rates(pool().by_truth))
        assert seen(name, 600).truly_broken == seen(name, 600).broken


def test_where_the_rules_err_the_true_rate_is_another_and_nothing_is_promised_of_it() -> None:
    wrong = [ruled != true for group, ruled, true in pool().labels if group not in CERTAIN]
    assert np.mean(wrong) > 0.5
    number, population = GRID.number(IN_FORCE), known(0.05)["labels err, in force above"]
    assert population.rates(pool().by_rules)[number] == pytest.approx(0.051)
    assert population.rates(pool().by_truth)[number] != pytest.approx(0.051, abs=0.005)


@pytest.mark.parametrize("name", ["productive loops alone", "no loops at all"])
def test_where_nothing_is_stuck_no_corpus_leads_to_a_recommendation(name: str) -> None:
    assert [seen(name, sessions, wished).recommended for sessions in SIZES for wished in (STRICT, LOOSE)] == [0] * 6


def test_recommendations_come_when_there_is_enough_evidence_and_save_the_more_the_more_there_is() -> None:
    assert {seen(name, 60).recommended for name in NAMES} == {0}
    found = [seen("clear", sessions) for sessions in SIZES]
    assert found[-1].recommended == 1
    saved = [each.saved or 0.0 for each in found]
    assert saved == sorted(saved)
    assert saved[-1] > 0.7
    for name in ("in force above", "labels err"):
        assert seen(name, 600).recommended > 0.9


def test_the_settings_that_must_not_be_let_through_are_tempting() -> None:
    for name in ("in force above", "main chain above", "labels err, in force above"):
        population = known(0.05)[name]
        wrong = population.rates(pool().by_rules) > 0.05
        gains = population.weights @ pool().by_rules.saved
        assert gains[wrong].max() > gains[~wrong].max() > 0
        assert any(seen(name, sessions).any_wrong > 0 for sessions in SIZES)


@pytest.mark.parametrize("name", USEFUL)
def test_figures_of_held_out_sessions_are_unbiased(name: str) -> None:
    for sessions in SIZES[1:]:
        found = seen(name, sessions)
        for mean, error in (found.held_out, found.held_out_saved):
            assert abs(mean) <= ERRORS * error, found


def test_figures_of_the_sessions_that_were_chosen_on_flatter() -> None:
    for name in ("in force above", "main chain above", "labels err, in force above"):
        mean, error = seen(name, 200).in_sample
        assert mean < -ERRORS * error < 0


@pytest.mark.parametrize("name", ["clear", "labels err"])
def test_a_corpus_drawn_by_rows_gets_the_choice_of_the_command(name: str) -> None:
    drawn = draw(known(0.05)[name], 400, 4, demand_of(*STRICT), seed=11)
    assert (drawn.picks >= 0).any()
    making = Parts(GRID, IN_FORCE, Judge(), Wishes(rounds=0, holdout=0.3))
    for older, newer, pick in zip(drawn.chosen_on, drawn.held_out, drawn.picks.tolist(), strict=True):
        first, second = sessions_of(older, pool(), 0), sessions_of(newer, pool(), round(older.sum()))
        together = replace(
            first,
            profiles=[*first.profiles, *second.profiles],
            answers=[*first.answers, *second.answers],
        )
        part = making.part(None, together)
        assert (part.chosen.candidate.number if part.chosen.candidate else -1) == pick
        if part.chosen.candidate is not None:
            held = part.held_out[0].after
            assert held is not None
            risky = newer * pool().by_rules.told[:, pick]
            assert held.false_sessions == round(float(risky @ pool().by_rules.false_blocks[:, pick]))
            assert held.at_risk == round(float(risky.sum()))


def test_the_table_of_figures_has_a_line_for_each_population_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    figures.show(pool(), 50, (60, 200))
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith(NAMES)]) == len(NAMES) * 2
