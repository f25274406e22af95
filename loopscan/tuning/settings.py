"""Settings: one combination of everything that ``tools.loopDetection`` lets people set, and the grid to try."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Final

from loopscan.errors import UsageError
from loopscan.policy import COUNTS, FIELDS, SWITCHES, Policy, nearest_field, positive_whole
from loopscan.rulesets import Ruleset
from loopscan.sanitize import clean
from loopscan.tuning.profiles import LONGEST_HISTORY, LOWEST_THRESHOLD

#: The configuration field of each attribute of :class:`Setting`.
FIELD_OF: Final[Mapping[str, str]] = {
    "enabled": "enabled",
    "history_size": "historySize",
    "warning": "warningThreshold",
    "critical": "criticalThreshold",
    "breaker": "globalCircuitBreakerThreshold",
    "unknown_tool": "unknownToolThreshold",
    "generic_repeat": "detectors.genericRepeat",
    "known_poll": "detectors.knownPollNoProgress",
    "ping_pong": "detectors.pingPong",
    "guard_window": "postCompactionGuard.windowSize",
}
_ATTRIBUTE_OF: Final = {name: attribute for attribute, name in FIELD_OF.items()}

#: How many settings one sweep may have.
MOST_SETTINGS: Final = 1_000_000
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_RANGE: Final = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})(?::([0-9]{1,18}))?")
_SWITCHES: Final = {"true": True, "on": True, "false": False, "off": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination. The fields are those of :class:`~loopscan.policy.Policy`, and mean the same."""

    enabled: bool | None = True
    history_size: int = 30
    warning: int = 10
    critical: int = 20
    breaker: int = 30
    unknown_tool: int = 10
    generic_repeat: bool = True
    known_poll: bool = True
    ping_pong: bool = True
    guard_window: int = 3

    @classmethod
    def of(cls, policy: Policy) -> Setting:
        """Return what a policy sets."""
        return cls(**{each.name: getattr(policy, each.name) for each in fields(cls)})

    def policy(self, rules: Ruleset) -> Policy:
        """Return the policy that this setting makes under a ruleset, be its thresholds fixed or not."""
        return Policy(rules, **self.values())  # type: ignore[arg-type]

    def values(self) -> dict[str, bool | int | None]:
        """Return the values by attribute."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def changes(self, other: Setting) -> dict[str, bool | int | None]:
        """Return the configuration fields in which this setting differs from ``other``, in their usual order."""
        mine, theirs = self.values(), other.values()
        changed = {FIELD_OF[name]: value for name, value in mine.items() if value != theirs[name]}
        return {name: changed[name] for name in FIELDS if name in changed}

    def with_fields(self, values: Mapping[str, bool | int | None]) -> Setting:
        """Return this setting with other values of some configuration fields, by the names of the fields."""
        return replace(self, **{_ATTRIBUTE_OF[name]: value for name, value in values.items()})  # type: ignore[arg-type]


#: The values of each attribute that are tried, in ascending order (switches: on, off).
Axes = Mapping[str, Sequence[bool | int | None]]

_TRIED: Final[Axes] = {
    "enabled": (False, True),
    "history_size": (30, 60, 120),
    "warning": (5, 8, 10, 15, 20),
    "critical": (8, 10, 12, 15, 20, 25, 30, 40, 60),
    "breaker": (15, 20, 30, 40, 60, 100),
    "unknown_tool": (5, 10, 20),
    "generic_repeat": (True, False),
    "known_poll": (True, False),
    "ping_pong": (True, False),
    "guard_window": (3,),
}


class Grid:
    """All settings of the axes that make sense, in a fixed order.

    A setting makes sense if ``warning < critical < breaker`` (OpenClaw raises them otherwise), and at most one
    detector is off unless the axes leave no choice, or more are in one of ``also``. With ``enabled`` other than
    true the thresholds mean nothing: one of them stands for all.
    """

    def __init__(self, axes: Axes, also: Iterable[Setting] = ()) -> None:
        """Make the grid; ``also`` are settings that belong to it whether they make sense or not."""
        self.axes: dict[str, tuple[bool | int | None, ...]] = {
            name: tuple(axes.get(name, _TRIED[name])) for name in FIELD_OF
        }
        self.shape = tuple(len(values) for values in self.axes.values())
        total = 1
        for size in self.shape:
            total *= size
        if total > MOST_SETTINGS:
            raise UsageError(f"--try asks for {total:,} settings; {MOST_SETTINGS:,} are the most: try fewer values")
        also = list(also)
        self._silent: dict[str, bool | int | None] = (
            also[0].values() if also else {name: values[0] for name, values in self.axes.items()}
        )
        """What stands for all values that mean nothing where the detectors are off."""
        self.settings: list[Setting] = []
        self._numbers: dict[Setting, int] = {}
        self.places: list[int] = []
        """The place of each setting in the flattened axes."""
        most_off = max(1, sum(tuple(self.axes[name]) == (False,) for name in _SWITCH_NAMES))
        switched = {_switched(setting) for setting in also}
        for place, values in enumerate(product(*self.axes.values())):
            setting = Setting(*values)  # type: ignore[arg-type]
            if self._makes_sense(setting, most_off, switched):
                self._add(setting, place)
        for setting in also:
            if self.find(setting) is None:
                self._add(setting, self._place(setting.values()))
        if not self.settings:
            raise UsageError("--try leaves no setting with warningThreshold < criticalThreshold < the breaker")

    @classmethod
    def of(cls, settings: Sequence[Setting]) -> Grid:
        """Return a grid of just these settings, which have to differ, in their order."""
        grid = cls.__new__(cls)
        grid._silent = {}
        values = [setting.values() for setting in settings]
        grid.axes = {name: tuple(sorted({row[name] for row in values}, key=_order)) for name in FIELD_OF}
        grid.shape = tuple(len(axis) for axis in grid.axes.values())
        grid.settings, grid.places, grid._numbers = [], [], {}
        for setting, row in zip(settings, values, strict=True):
            grid._add(setting, grid._place(row))
        return grid

    def _add(self, setting: Setting, place: int) -> None:
        self._numbers[setting] = len(self.settings)
        self.settings.append(setting)
        self.places.append(place)

    def find(self, setting: Setting) -> int | None:
        """Return the place in :attr:`settings` of a setting or the one that stands for it; ``None`` if none does."""
        known = self._numbers.get(setting)
        if known is not None:
            return known
        kept = _kept(setting.enabled)
        if kept is None:
            return None
        wanted = {name: value for name, value in setting.values().items() if name in kept}
        return next(
            (
                number
                for number, each in enumerate(self.settings)
                if wanted == {name: value for name, value in each.values().items() if name in kept}
            ),
            None,
        )

    def number(self, setting: Setting) -> int:
        """Return what :meth:`find` does. Raises :class:`KeyError` for a setting that is not in the grid."""
        found = self.find(setting)
        if found is None:
            raise KeyError(setting)
        return found

    def _place(self, values: Mapping[str, bool | int | None]) -> int:
        place = 0
        for name, axis in self.axes.items():
            place = place * len(axis) + axis.index(values[name])
        return place

    def _makes_sense(self, setting: Setting, most_off: int, switched: set[tuple[bool, ...]]) -> bool:
        kept = _kept(setting.enabled)
        if kept is not None:
            return all(value == self._silent[name] for name, value in setting.values().items() if name not in kept)
        if not setting.warning < setting.critical < setting.breaker:
            return False
        switches = _switched(setting)
        return switches.count(False) <= most_off or switches in switched


def _kept(enabled: bool | None) -> set[str] | None:
    """Return the attributes that still mean something where the detectors are off; ``None`` where they are on."""
    if enabled is True:
        return None
    return {"enabled", "unknown_tool"} | ({"guard_window"} if enabled is None else set())


def _switched(setting: Setting) -> tuple[bool, ...]:
    return (setting.generic_repeat, setting.known_poll, setting.ping_pong)


_SWITCH_NAMES: Final = tuple(_ATTRIBUTE_OF[name] for name in SWITCHES)


def axes_for(
    rules: Ruleset, in_force: Iterable[Setting], tried: Iterable[str] = ()
) -> dict[str, tuple[bool | int | None, ...]]:
    """Return the axes of a sweep: what is in force, with what is usual or what ``--try NAME=VALUES`` says instead.

    ``VALUES`` are numbers and ranges such as ``8,10..40:5``, or ``true,false``. Raises :class:`UsageError` for a
    field that there is not, for values that make no sense, and for those that profiles cannot answer.
    """
    axes = {name: set(values) for name, values in _TRIED.items()} | tried_axes(tried)
    for setting in in_force:
        for name, value in setting.values().items():
            axes[name].add(value)
    return {name: tuple(sorted(values, key=_order)) for name, values in axes.items()}


def tried_axes(tried: Iterable[str]) -> dict[str, set[bool | int | None]]:
    """Return what ``--try NAME=VALUES`` asks for, by attribute; raises as :func:`axes_for`."""
    axes: dict[str, set[bool | int | None]] = {}
    for text in tried:
        name, values = _tried(text)
        axes.setdefault(name, set()).update(values)
    return axes


def _order(value: bool | int | None) -> tuple[int, int]:
    """Order values: ``False``, unset, ``True`` of ``enabled``; numbers by size."""
    return (0, 1) if value is None else (0, 2 * int(value))


def _tried(text: str) -> tuple[str, list[bool | int | None]]:
    written, separator, values = text.partition("=")
    if not separator or not values:
        raise UsageError(f"--try must be NAME=VALUES, such as criticalThreshold=10..40:5, not {clean(text, 80)!r}")
    if written not in FIELDS:
        near = nearest_field(written)
        raise UsageError(
            f"--try: there is no field {clean(written, 80)!r}; "
            + (f"did you mean {near}?" if near else f"known: {', '.join(FIELDS)}")
        )
    parts = [part.strip() for part in values.split(",")]
    if written not in COUNTS:
        return _ATTRIBUTE_OF[written], [_switch(written, part) for part in parts]
    numbers = [number for part in parts for number in _numbers(written, part)]
    lowest, highest = _limits(written)
    for number in numbers:
        if not lowest <= number <= highest:
            raise UsageError(
                f"--try {written}={number}: from {lowest} to {highest} can be answered; "
                "loopscan replay --set replays any other value"
            )
    return _ATTRIBUTE_OF[written], list(numbers)


def _limits(name: str) -> tuple[int, int]:
    if name == "historySize":
        return LOWEST_THRESHOLD, LONGEST_HISTORY
    return (1 if name == "postCompactionGuard.windowSize" else LOWEST_THRESHOLD), 1 << 31


def _switch(name: str, text: str) -> bool | None:
    if name == "enabled" and text in {"unset", "null"}:
        return None
    if text not in _SWITCHES:
        known = "true, false or unset" if name == "enabled" else "true or false"
        raise UsageError(f"--try {name}: must be {known}, not {clean(text, 40)!r}")
    return _SWITCHES[text]


def _numbers(name: str, text: str) -> Iterator[int]:
    spread = _RANGE.fullmatch(text)
    if spread:
        first, last, step = int(spread[1]), int(spread[2]), int(spread[3] or 1)
        if step and first <= last and (last - first) // step < MOST_SETTINGS:
            yield from range(first, last + 1, step)
            return
    elif _NUMBER.fullmatch(text) and positive_whole(int(text)):
        yield int(text)
        return
    raise UsageError(f"--try {name}: {clean(text, 40)!r} is no number or range such as 10..40 or 10..40:5")


def answerable(setting: Setting) -> tuple[Setting, list[str]]:
    """Return a setting with every count brought to where profiles can answer it, and a sentence for each that was."""
    brought: dict[str, int] = {}
    notes: list[str] = []
    for name in ("warning", "critical", "breaker", "unknown_tool", "history_size"):
        lowest, highest = _limits(FIELD_OF[name])
        value = int(getattr(setting, name))
        near = min(max(value, lowest), highest)
        if near != value:
            brought[name] = near
            notes.append(
                f"{FIELD_OF[name]} {value} is in force; from {lowest} to {highest} can be answered, so that {near} "
                "stands for it"
            )
    return replace(setting, **brought), notes  # type: ignore[arg-type]
