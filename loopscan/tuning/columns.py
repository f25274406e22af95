"""The sweep as a table with rates, and the curve that the critical threshold draws in it.

A sweep has a column for each configuration field, then the :data:`~loopscan.tuning.courses.METRICS`,
``false_sessions`` and ``at_risk``; every row is one setting that was tried on all sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from loopscan.policy import FIELDS
from loopscan.tuning.report import Figures, Savings
from loopscan.tuning.settings import FIELD_OF, Setting

Column: TypeAlias = Sequence[bool | int | float | None]
Columns: TypeAlias = Mapping[str, Column]
#: A setting with its figures.
Point: TypeAlias = tuple[Setting, Figures]

_ATTRIBUTE_OF: Final = {name: attribute for attribute, name in FIELD_OF.items()}
_THRESHOLDS: Final = frozenset({"warningThreshold", "criticalThreshold", "globalCircuitBreakerThreshold"})
_FLOATS: Final = frozenset(
    {
        "lead",
        "saved_usd",
        "saved_seconds",
        "warnings_per_1000_calls",
        "false_rate",
        "false_rate_low",
        "false_rate_high",
    }
)


def type_of(name: str) -> type:
    """Return the type of a column's values."""
    if name == "enabled" or name.startswith("detectors."):
        return bool
    return float if name in _FLOATS else int


def setting_row(setting: Setting) -> dict[str, bool | int | None]:
    """Return a setting by configuration field, in the order of the documentation."""
    return {name: getattr(setting, _ATTRIBUTE_OF[name]) for name in FIELDS}


def table(sweep: Columns, calls: int, confidence: float) -> dict[str, Column]:
    """Return a sweep with rates: ``lead`` becomes a mean, and what can be divided is.

    Added are ``warnings_per_1000_calls`` of ``calls`` in all, ``false_rate``, ``false_rate_low`` and
    ``false_rate_high``: the exact interval of each setting alone, at ``confidence``. A rate of nothing is ``None``.
    """
    if not sweep:
        return {}
    from loopscan.tuning.intervals import clopper_pearson_each

    made: dict[str, Column] = {name: sweep[name] for name in FIELDS}
    made.update((name, values) for name, values in sweep.items() if name not in made)
    pairs = zip(_numbers(sweep["lead"]), _numbers(sweep["caught"]), strict=True)
    made["lead"] = [lead / caught if caught else None for lead, caught in pairs]
    made["warnings_per_1000_calls"] = [1000 * each / calls if calls else 0.0 for each in _numbers(sweep["warnings"])]
    at_risk = int(_numbers(sweep["at_risk"])[0]) if sweep["at_risk"] else 0
    false = [int(each) for each in _numbers(sweep["false_sessions"])]
    low, high = clopper_pearson_each(false, at_risk, confidence)
    made["false_rate"] = [each / at_risk if at_risk else None for each in false]
    made["false_rate_low"], made["false_rate_high"] = low.tolist(), high.tolist()
    return made


def along_critical(sweep: Columns, base: Setting, calls: int, confidence: float) -> tuple[Point, ...]:
    """Return a setting of the sweep for each critical threshold that was tried, ascending: the nearest to ``base``.

    The nearest has the fewest other fields that differ; the breaker and the warning threshold, which have to make
    room for some critical thresholds, differ by as little as possible.
    """
    if not sweep:
        return ()
    wanted = setting_row(base) | {"enabled": True}
    others = [(sweep[name], wanted[name]) for name in FIELDS if name not in _THRESHOLDS]
    criticals, breakers, warnings = (
        _numbers(sweep[name]) for name in ("criticalThreshold", "globalCircuitBreakerThreshold", "warningThreshold")
    )
    nearest: dict[float, tuple[tuple[float, float, float], int]] = {}
    for place, critical in enumerate(criticals):
        if sweep["enabled"][place] is not True:
            continue
        distance = (
            sum(values[place] != value for values, value in others),
            abs(breakers[place] - base.breaker),
            abs(warnings[place] - base.warning),
        )
        if critical not in nearest or distance < nearest[critical][0]:
            nearest[critical] = (distance, place)
    places = [place for _, (_, place) in sorted(nearest.items())]
    few = table({name: [values[place] for place in places] for name, values in sweep.items()}, calls, confidence)
    return tuple(_point({name: values[row] for name, values in few.items()}) for row in range(len(places)))


def _point(row: Mapping[str, Any]) -> Point:
    setting = Setting(**{_ATTRIBUTE_OF[name]: row[name] for name in FIELDS})
    saved = Savings(
        row["saved_calls"],
        row["saved_responses"],
        row["saved_input"],
        row["saved_output"],
        row["saved_cache_read"],
        row["saved_cache_write"],
        row["saved_tokens"],
        row["saved_usd"],
        row["saved_seconds"],
    )
    return setting, Figures(
        row["caught"],
        row["missed"],
        row["false_blocks"],
        row["spared"],
        row["unknown_blocked"],
        row["not_reached"],
        row["interventions"],
        row["warnings"],
        row["warnings_per_1000_calls"],
        row["lead"],
        row["at_risk"],
        row["false_sessions"],
        row["false_rate"],
        (row["false_rate_low"], row["false_rate_high"]),
        saved,
    )


def _numbers(values: Column) -> list[float]:
    return [value or 0 for value in values]
