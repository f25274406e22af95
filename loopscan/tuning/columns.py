"""The sweep as columns, and the curve that one threshold draws in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from loopscan.policy import FIELDS
from loopscan.tuning.report import Figures
from loopscan.tuning.settings import FIELD_OF, Setting

Columns: TypeAlias = Mapping[str, Sequence[bool | int | float | None]]
Row: TypeAlias = dict[str, Any]

#: The columns of figures, and the type of each. Rates are shares; what would be saved is an upper bound.
FIGURES: Final[Mapping[str, type]] = {
    "caught": int,
    "missed": int,
    "false_blocks": int,
    "spared": int,
    "unknown_blocked": int,
    "not_reached": int,
    "interventions": int,
    "warnings": int,
    "warnings_per_1000_calls": float,
    "lead": float,
    "at_risk": int,
    "false_sessions": int,
    "false_rate": float,
    "false_rate_low": float,
    "false_rate_high": float,
    "saved_calls": int,
    "saved_responses": int,
    "saved_input_tokens": int,
    "saved_output_tokens": int,
    "saved_cache_read_tokens": int,
    "saved_cache_write_tokens": int,
    "saved_tokens": int,
    "saved_cost_usd": float,
    "saved_seconds": float,
}
#: Every column of a sweep, and the type of each: the configuration fields, then the figures. A missing ``enabled`` is
#: one that is not set.
TYPES: Final[Mapping[str, type]] = {
    **{name: bool if name == "enabled" or name.startswith("detectors.") else int for name in FIELDS},
    **FIGURES,
}
_ATTRIBUTE_OF: Final = {name: attribute for attribute, name in FIELD_OF.items()}
_THRESHOLDS: Final = frozenset({"warningThreshold", "criticalThreshold", "globalCircuitBreakerThreshold"})
_CRITICAL: Final = "criticalThreshold"


def setting_row(setting: Setting) -> Row:
    """Return a setting by configuration field, in the order of the documentation."""
    return {name: getattr(setting, _ATTRIBUTE_OF[name]) for name in FIELDS}


def figures_row(figures: Figures) -> Row:
    """Return figures by column."""
    saved = figures.saved
    low, high = figures.false_interval
    own = {"false_rate_low": low, "false_rate_high": high}
    return {
        name: own[name]
        if name in own
        else getattr(saved, name.removeprefix("saved_"))
        if name.startswith("saved_")
        else getattr(figures, name)
        for name in FIGURES
    }


def sweep_of(rows: Iterable[tuple[Setting, Figures]]) -> dict[str, list[bool | int | float | None]]:
    """Return settings with their figures as the columns :data:`TYPES`, a row each in the order given."""
    columns: dict[str, list[bool | int | float | None]] = {name: [] for name in TYPES}
    for setting, figures in rows:
        for name, value in (setting_row(setting) | figures_row(figures)).items():
            columns[name].append(value)
    return columns


def along_critical(sweep: Columns, base: Setting) -> list[Row]:
    """Return a row of the sweep for each critical threshold that was tried, ascending: the one nearest to ``base``.

    The nearest has the fewest other fields that differ; the breaker and the warning threshold, which have to make
    room for some critical thresholds, differ by as little as possible.
    """
    if not sweep:
        return []
    wanted = setting_row(base) | {"enabled": True}
    others = [name for name in FIELDS if name not in _THRESHOLDS]
    nearest: dict[int, tuple[tuple[int, int, int], int]] = {}
    for place, critical in enumerate(sweep[_CRITICAL]):
        if sweep["enabled"][place] is not True or critical is None:
            continue
        distance = (
            sum(sweep[name][place] != wanted[name] for name in others),
            abs(int(sweep["globalCircuitBreakerThreshold"][place] or 0) - base.breaker),
            abs(int(sweep["warningThreshold"][place] or 0) - base.warning),
        )
        found = nearest.get(int(critical))
        if found is None or distance < found[0]:
            nearest[int(critical)] = (distance, place)
    return [{name: values[place] for name, values in sweep.items()} for _, (_, place) in sorted(nearest.items())]
