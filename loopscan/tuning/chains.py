"""The order in which settings are tested for the promise: made of the grid alone, before the data are looked at."""

from __future__ import annotations

from dataclasses import replace

from loopscan.tuning.promise import Chain, shared
from loopscan.tuning.settings import Grid, Setting

_SWITCHES = ("generic_repeat", "known_poll", "ping_pong")


def leniency(setting: Setting) -> tuple[int, ...]:
    """Return what orders settings, the most lenient first: high thresholds, then a short history."""
    return (-setting.critical, -setting.breaker, -setting.unknown_tool, setting.history_size, -setting.warning)


def chains(grid: Grid, in_force: Setting) -> tuple[Chain, ...]:
    """Return the chains of a grid: first the detectors and the history as they are in force, then one thing changed.

    The settings of a chain differ in ``criticalThreshold`` and ``globalCircuitBreakerThreshold`` alone; they come
    from the most lenient to the strictest. ``warningThreshold`` stays as it is, or is the highest below the critical
    one: what blocks hardly depends on it. The chains: everything as in force; each detector switched off (or on);
    each other history; each other ``unknownToolThreshold``.
    """
    base = replace(in_force, enabled=True, warning=0, critical=0, breaker=0)
    wanted = [base]
    wanted += [replace(base, **{name: not getattr(base, name)}) for name in _SWITCHES]
    for name in ("history_size", "unknown_tool"):
        others = (int(value or 0) for value in grid.axes[name] if value != getattr(base, name))
        wanted += [replace(base, **{name: value}) for value in others]  # type: ignore[arg-type]
    place = {setting: number for number, setting in enumerate(grid.settings)}
    found: list[list[int]] = []
    for kept in wanted:
        members = [
            replace(kept, warning=_warning(grid, in_force, critical), critical=critical, breaker=breaker)
            for critical in _numbers(grid, "critical")
            for breaker in _numbers(grid, "breaker")
            if breaker > critical
        ]
        numbers = [place[member] for member in sorted(members, key=leniency) if member in place]
        if numbers:
            found.append(numbers)
    return shared(*found) if found else ()


def _warning(grid: Grid, in_force: Setting, critical: int) -> int:
    below = [value for value in _numbers(grid, "warning") if value < critical]
    return in_force.warning if in_force.warning in below else max(below, default=0)


def _numbers(grid: Grid, name: str) -> list[int]:
    return [int(value or 0) for value in grid.axes[name]]
