"""The order in which settings are tested: made of the grid and of what is in force alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopscan.rulesets import ruleset
from loopscan.tuning.chains import chains, leniency
from loopscan.tuning.promise import Chain
from loopscan.tuning.settings import Grid, Setting, axes_for


def made(now: Setting, *tried: str) -> tuple[list[list[Setting]], tuple[Chain, ...]]:
    """Return the settings of each chain, and the chains."""
    grid = Grid(axes_for(ruleset("2026.6"), [now], tried), [now, replace(now, enabled=False)])
    found = chains(grid, now)
    return [[grid.settings[number] for number in chain.candidates] for chain in found], found


def test_the_first_chain_begins_with_what_is_in_force_and_gets_stricter() -> None:
    (first, *_), (share, *_) = made(Setting())
    assert first[0] == Setting()
    assert share.share == 0.5
    assert {replace(each, warning=10, critical=20, breaker=30) for each in first} == {Setting()}
    assert [leniency(each)[:2] for each in first] == sorted(leniency(each)[:2] for each in first)
    assert max(each.critical for each in first) == 20
    assert min(each.critical for each in first) == 8


def test_the_second_chain_holds_what_is_more_lenient_the_most_lenient_first() -> None:
    (_, second, *_), _ = made(Setting())
    assert second[0].critical == 60
    assert [leniency(each)[:2] for each in second] == sorted(leniency(each)[:2] for each in second)
    assert all(leniency(each)[:2] < leniency(Setting())[:2] for each in second)


def test_every_further_chain_changes_one_thing() -> None:
    (_, _, *others), chained = made(Setting())
    changed = [set(chain[0].changes(Setting())) for chain in others]
    assert changed == [
        {"detectors.genericRepeat"},
        {"detectors.knownPollNoProgress"},
        {"detectors.pingPong"},
        {"historySize"},
        {"historySize"},
        {"unknownToolThreshold"},
        {"unknownToolThreshold"},
    ]
    assert {chain.share for chain in chained[1:]} == {0.5 / 8}


def test_warnings_come_below_what_blocks() -> None:
    for chain in made(Setting())[0]:
        for setting in chain:
            assert setting.warning < setting.critical < setting.breaker
            assert setting.warning in {10, 8, 5}
            assert setting.warning == 10 or setting.critical <= 10


@pytest.mark.parametrize("enabled", [False, None])
def test_what_is_off_in_force_is_on_in_every_chain(enabled: bool | None) -> None:
    for chain in made(Setting(enabled=enabled))[0]:
        assert all(setting.enabled is True for setting in chain)


def test_one_value_makes_one_chain_with_the_whole_error() -> None:
    only = [f"{name}={value}" for name, value in (("criticalThreshold", 20), ("globalCircuitBreakerThreshold", 30))]
    only += ["historySize=30", "unknownToolThreshold=10", "warningThreshold=10"]
    only += [f"detectors.{name}=true" for name in ("genericRepeat", "knownPollNoProgress", "pingPong")]
    assert made(Setting(), *only) == ([[Setting()]], made(Setting(), *only)[1])
    assert [chain.share for chain in made(Setting(), *only)[1]] == [1.0]
