"""The curve of a sweep takes for each critical threshold the setting nearest to a base."""

from __future__ import annotations

from dataclasses import replace

from loopscan.tuning.columns import along_critical, setting_row, table
from loopscan.tuning.courses import METRICS
from loopscan.tuning.settings import Setting


def sweep(*settings: Setting, false: int = 0, at_risk: int = 0) -> dict[str, list[bool | int | float | None]]:
    columns: dict[str, list[bool | int | float | None]] = {name: [] for name in setting_row(Setting())}
    for setting in settings:
        for name, value in setting_row(setting).items():
            columns[name].append(value)
    columns |= {name: [0] * len(settings) for name in METRICS}
    return columns | {"false_sessions": [false] * len(settings), "at_risk": [at_risk] * len(settings)}


def test_all_else_is_as_in_the_base_where_it_can_be() -> None:
    base = Setting(critical=20, breaker=30, warning=10)
    settings = [
        Setting(enabled=False, critical=8),
        replace(base, critical=15, history_size=60),
        replace(base, critical=15, ping_pong=False),
        replace(base, critical=15),
        replace(base, critical=15, warning=5),
        replace(base, critical=40, breaker=100),
        replace(base, critical=40, breaker=60),
        replace(base, critical=8, warning=5),
        replace(base, critical=8, warning=7),
        replace(base, critical=60, breaker=61, generic_repeat=False),
    ]
    found = [setting for setting, _ in along_critical(sweep(*settings), base, 0, 0.95)]
    assert found == [settings[8], settings[3], settings[6], settings[9]]


def test_a_base_that_is_off_is_drawn_as_if_it_were_on() -> None:
    on = Setting(critical=15)
    assert [each for each, _ in along_critical(sweep(on), Setting(enabled=False), 0, 0.95)] == [on]


def test_rates_of_nothing_are_missing() -> None:
    ((_, figures),) = along_critical(sweep(Setting()), Setting(), 0, 0.95)
    assert (figures.false_rate, figures.false_interval, figures.lead) == (None, (0.0, 1.0), None)
    assert figures.warnings_per_1000_calls == 0
    assert table({}, 10, 0.95) == {}
    assert along_critical({}, Setting(), 10, 0.95) == ()


def test_rates_are_of_what_they_are_divided_by() -> None:
    columns = sweep(Setting(), false=1, at_risk=4) | {"lead": [30], "caught": [4], "warnings": [5]}
    ((_, figures),) = along_critical(columns, Setting(), 2_000, 0.95)
    assert (figures.lead, figures.false_rate, figures.warnings_per_1000_calls) == (7.5, 0.25, 2.5)
    low, high = figures.false_interval
    assert low < 0.25 < high
