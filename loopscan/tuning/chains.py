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
    """Return the chains of a grid.

    First what is in force, and then one critical threshold or breaker stricter than the other. Second the more
    lenient ones, from the most lenient on: what is left if what is in force is too strict. Then, each from the
    thresholds in force on, with one thing changed: a detector switched off (or on), the history,
    ``unknownToolThreshold``. ``warningThreshold`` stays as it is, or is the highest below the critical one: what
    blocks hardly depends on it.
    """
    base = replace(in_force, enabled=True, warning=0, critical=0, breaker=0)
    changed = [replace(base, **{name: not getattr(base, name)}) for name in _SWITCHES]
    for name in ("history_size", "unknown_tool"):
        others = (int(value or 0) for value in grid.axes[name] if value != getattr(base, name))
        changed += [replace(base, **{name: value}) for value in others]  # type: ignore[arg-type]
    start = leniency(in_force)[:2]
    ordered = _ordered(grid, in_force, base)
    found = [
        [number for number in ordered if leniency(grid.settings[number])[:2] >= start],
        [number for number in ordered if leniency(grid.settings[number])[:2] < start],
    ]
    for kept in changed:
        numbers = _ordered(grid, in_force, kept)
        found.append([number for number in numbers if leniency(grid.settings[number])[:2] >= start])
    used = [numbers for numbers in found if numbers]
    return shared(*used) if used else ()


def _ordered(grid: Grid, in_force: Setting, kept: Setting) -> list[int]:
    """Return the settings that differ from ``kept`` in their thresholds alone, the most lenient first."""
    members = [
        replace(kept, warning=_warning(grid, in_force, critical), critical=critical, breaker=breaker)
        for critical in _numbers(grid, "critical")
        for breaker in _numbers(grid, "breaker")
        if breaker > critical
    ]
    found = (grid.find(member) for member in sorted(members, key=leniency))
    return [number for number in found if number is not None]


def _warning(grid: Grid, in_force: Setting, critical: int) -> int:
    below = [value for value in _numbers(grid, "warning") if value < critical]
    return in_force.warning if in_force.warning in below else max(below, default=0)


def _numbers(grid: Grid, name: str) -> list[int]:
    return [int(value or 0) for value in grid.axes[name]]
