"""Settings and the grid that is tried: what --try says, which combinations make sense, and which stand for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.errors import UsageError
from loopscan.policy import FIELDS, Layer, resolve
from loopscan.rulesets import RULESETS, ruleset
from loopscan.tuning import settings as module
from loopscan.tuning.chains import chains
from loopscan.tuning.settings import FIELD_OF, Grid, Setting, answerable, axes_for, tried_axes

RULES = ruleset("2026.6")
SMALL: dict[str, tuple[Any, ...]] = {
    "enabled": (False, None, True),
    "history_size": (30,),
    "warning": (5, 10),
    "critical": (8, 10, 20),
    "breaker": (15, 30),
    "unknown_tool": (5, 10),
    "generic_repeat": (True, False),
    "known_poll": (True, False),
    "ping_pong": (True, False),
    "guard_window": (2, 3),
}


@pytest.mark.parametrize(
    ("text", "attribute", "values"),
    [
        ("criticalThreshold=12", "critical", {12}),
        ("criticalThreshold=8,10..12", "critical", {8, 10, 11, 12}),
        ("criticalThreshold= 8 , 10..20:5 ", "critical", {8, 10, 15, 20}),
        ("criticalThreshold=10..20:7", "critical", {10, 17}),
        ("historySize=5,1000", "history_size", {5, 1000}),
        ("postCompactionGuard.windowSize=1..3", "guard_window", {1, 2, 3}),
        ("enabled=true,false,unset", "enabled", {True, False, None}),
        ("enabled=null", "enabled", {None}),
        ("detectors.pingPong=off,on", "ping_pong", {False, True}),
    ],
)
def test_what_is_to_be_tried_is_read(text: str, attribute: str, values: set[object]) -> None:
    assert tried_axes([text]) == {attribute: values}


def test_what_is_to_be_tried_adds_up() -> None:
    assert tried_axes(["criticalThreshold=8", "criticalThreshold=9"]) == {"critical": {8, 9}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("criticalThreshold", "--try must be NAME=VALUES, such as criticalThreshold=10..40:5, not"),
        ("criticalThreshold=", "--try must be NAME=VALUES"),
        ("=5", "there is no field ''"),
        ("criticalTreshold=5", "there is no field 'criticalTreshold'; did you mean criticalThreshold?"),
        ("x=5", "there is no field 'x'; known: enabled, "),
        (
            "criticalThreshold=4",
            "--try criticalThreshold=4: from 5 to 2147483648 can be answered; loopscan replay --set",
        ),
        ("historySize=1001", "from 5 to 1000 can be answered"),
        ("postCompactionGuard.windowSize=0", "is no number or range"),
        ("criticalThreshold=ten", "'ten' is no number or range such as 10..40 or 10..40:5"),
        ("criticalThreshold=-5", "is no number or range"),
        ("criticalThreshold=1e3", "is no number or range"),
        ("criticalThreshold=20..10", "is no number or range"),
        ("criticalThreshold=10..20:0", "is no number or range"),
        ("criticalThreshold=10..", "is no number or range"),
        ("criticalThreshold=5..999999999", "is no number or range"),
        ("criticalThreshold=8,,9", "is no number or range"),
        ("criticalThreshold=²", "is no number or range"),
        ("criticalThreshold=١٢", "is no number or range"),
        ("criticalThreshold=99999999999", "can be answered"),
        ("criticalThreshold=" + "9" * 5000, "is no number or range"),
        ("criticalThreshold=" + "9" * 5000 + ".." + "9" * 5000, "is no number or range"),
        ("enabled=maybe", "--try enabled: must be true, false or unset, not 'maybe'"),
        ("detectors.pingPong=unset", "--try detectors.pingPong: must be true or false, not 'unset'"),
    ],
)
def test_what_cannot_be_tried_is_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        tried_axes([text])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_what_is_tried_shows_nothing_raw() -> None:
    with pytest.raises(UsageError) as caught:
        tried_axes(["criticalThreshold=\x1b[31m"])
    assert "\x1b" not in str(caught.value)


def test_axes_hold_what_is_in_force_with_what_is_usual_or_what_is_tried_instead() -> None:
    now = Setting(critical=21, breaker=33, ping_pong=False)
    axes = axes_for(RULES, [now], ["criticalThreshold=13", "enabled=true,unset,false"])
    assert axes["critical"] == (13, 21)
    assert {15, 20, 30, 33} <= set(axes["breaker"])
    assert axes["ping_pong"] == (False, True)
    assert axes["enabled"] == (False, None, True)
    for name in ("critical", "breaker", "warning", "history_size"):
        assert list(axes[name]) == sorted(set(axes[name]))  # type: ignore[type-var]


def test_every_setting_of_a_grid_makes_sense_and_none_is_there_twice() -> None:
    grid = Grid(SMALL)
    on = [setting for setting in grid.settings if setting.enabled is True]
    assert all(setting.warning < setting.critical < setting.breaker for setting in on)
    assert all([setting.generic_repeat, setting.known_poll, setting.ping_pong].count(False) <= 1 for setting in on)
    assert len(set(grid.settings)) == len(grid.settings)
    # 5 before 8 before 15 or 30, and so on; four choices of switches, two of unknownToolThreshold and the window.
    thresholds = [(w, c, b) for w in (5, 10) for c in (8, 10, 20) for b in (15, 30) if w < c < b]
    assert len(on) == len(thresholds) * 4 * 2 * 2


def test_settings_are_in_the_order_of_their_places() -> None:
    grid = Grid(SMALL)
    assert grid.places == sorted(grid.places)
    assert [grid.find(setting) for setting in grid.settings] == list(range(len(grid.settings)))


def test_one_setting_stands_for_all_with_the_detectors_off() -> None:
    grid = Grid(SMALL)
    off = [setting for setting in grid.settings if setting.enabled is False]
    unset = [setting for setting in grid.settings if setting.enabled is None]
    assert [setting.unknown_tool for setting in off] == [5, 10]
    assert sorted((setting.unknown_tool, setting.guard_window) for setting in unset) == [
        (5, 2),
        (5, 3),
        (10, 2),
        (10, 3),
    ]
    assert grid.find(Setting(enabled=False, critical=7, ping_pong=False, guard_window=9)) == grid.settings.index(
        off[1]
    )
    assert grid.find(Setting(enabled=None, critical=7, guard_window=2, unknown_tool=5)) is not None
    assert grid.find(Setting(enabled=None, guard_window=9)) is None
    assert grid.find(Setting(critical=21)) is None
    with pytest.raises(KeyError):
        grid.number(Setting(critical=21))


def test_what_is_in_force_belongs_to_the_grid_whether_it_makes_sense_or_not() -> None:
    odd = Setting(warning=20, critical=8, breaker=15, generic_repeat=False, ping_pong=False)
    axes = {**SMALL, "warning": (5, 10, 20)}
    grid = Grid(axes, [odd, odd])
    assert grid.settings.count(odd) == 1
    assert grid.settings[grid.number(odd)] == odd


def test_detectors_that_are_off_in_force_are_off_in_the_settings_to_choose_from() -> None:
    now = Setting(generic_repeat=False, ping_pong=False)
    grid = Grid(axes_for(RULES, [now]), [now, replace(now, enabled=False)])
    alike = [
        s
        for s in grid.settings
        if s.enabled and (s.generic_repeat, s.known_poll, s.ping_pong) == (False, True, False)
    ]
    assert len(alike) > 100
    (main, *_) = chains(grid, now)
    assert len(main.candidates) > 10
    assert {replace(grid.settings[n], warning=10, critical=20, breaker=30) for n in main.candidates} == {now}


def test_a_grid_of_no_setting_is_an_error() -> None:
    with pytest.raises(UsageError, match="--try leaves no setting with warningThreshold < criticalThreshold"):
        Grid({**SMALL, "enabled": (True,), "critical": (40,)})


def test_too_many_settings_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SETTINGS", 10)
    with pytest.raises(UsageError, match=r"--try asks for 1,152 settings; 10 are the most: try fewer values"):
        Grid(SMALL)


def test_axes_that_leave_no_choice_may_have_several_detectors_off() -> None:
    grid = Grid({**SMALL, "generic_repeat": (False,), "known_poll": (False,)})
    assert {(s.generic_repeat, s.known_poll) for s in grid.settings} == {(False, False)}


def test_a_grid_of_just_some_settings_keeps_their_order() -> None:
    some = [Setting(critical=25), Setting(), Setting(enabled=False), Setting(enabled=None)]
    grid = Grid.of(some)
    assert grid.settings == some
    assert [grid.number(each) for each in some] == [0, 1, 2, 3]
    assert len(set(grid.places)) == 4


@pytest.mark.parametrize("name", RULESETS)
def test_a_setting_is_what_a_policy_sets(name: str) -> None:
    rules = ruleset(name)
    policy = resolve(rules, block=Layer({"enabled": True}, "argument"))
    assert Setting.of(policy) == Setting()
    assert Setting.of(Setting(critical=25).policy(rules)) == Setting(critical=25)
    assert Setting.of(resolve(rules, block=Layer({}, "argument"))).enabled is not True


def test_changes_are_in_the_order_of_the_documentation() -> None:
    one = Setting(critical=25, enabled=False, ping_pong=False, history_size=60)
    assert list(one.changes(Setting())) == [name for name in FIELDS if name in one.changes(Setting())]
    assert one.changes(Setting()) == {
        "enabled": False,
        "historySize": 60,
        "criticalThreshold": 25,
        "detectors.pingPong": False,
    }
    assert Setting(enabled=None).changes(Setting(enabled=False)) == {"enabled": None}
    assert one.changes(one) == {}


def test_every_field_that_can_be_set_has_an_attribute() -> None:
    assert set(FIELD_OF.values()) == set(FIELDS)


@given(
    st.builds(
        Setting,
        warning=st.integers(1, 2**33),
        critical=st.integers(1, 2**33),
        breaker=st.integers(1, 2**33),
        unknown_tool=st.integers(1, 2**33),
        history_size=st.integers(1, 2000),
    )
)
def test_what_is_brought_to_where_it_can_be_answered_is_told_field_by_field(setting: Setting) -> None:
    brought, notes = answerable(setting)
    assert answerable(brought) == (brought, [])
    changed = brought.changes(setting)
    assert len(notes) == len(changed)
    for name, value in changed.items():
        (note,) = [each for each in notes if each.startswith(f"{name} ")]
        assert f"so that {value} stands for it" in note
        if name != "historySize":
            assert 5 <= brought.history_size <= 1000
