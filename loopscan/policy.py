"""A policy: one ruleset with its thresholds, each value with where it came from.

:func:`resolve` is pure: it takes blocks that somebody else has read (:mod:`loopscan.configfile`)
and knows nothing of files.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopscan.errors import ConfigError
from loopscan.rulesets import Ruleset
from loopscan.sanitize import clean


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from, for people and for ``config show``."""

    kind: str
    """``default``, ``fixed`` (by ruleset), ``file``, ``agent``, ``argument``, ``command line`` or ``repaired``."""
    source: str | None = None
    """The file, if there is one."""
    path: str | None = None
    """The dotted path in that file, such as ``tools.loopDetection.warningThreshold``."""
    detail: str | None = None
    """What was repaired and why, if something was."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the configuration that a user should know. Never fatal."""

    kind: str
    """``repaired``, ``ignored``, ``unreachable``, ``late`` or ``silenced``."""
    field: str
    """The field's name as in OpenClaw's configuration, such as ``detectors.pingPong``.

    ``agent`` and ``$include`` for what concerns no single field.
    """
    message: str


@dataclass(frozen=True, slots=True)
class Policy:
    """What the engine goes by: a ruleset and every number resolved.

    Counts are calls or records; nothing here has a unit of time.
    """

    ruleset: Ruleset
    enabled: bool | None
    """``True``: detectors and post-compaction guard; ``None``: the guard alone; ``False``: neither."""
    history_size: int
    warning: int
    critical: int
    breaker: int
    unknown_tool: int
    generic_repeat: bool = True
    known_poll: bool = True
    ping_pong: bool = True
    guard_window: int = 3
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """By configuration field, such as ``warningThreshold``."""
    notes: tuple[Note, ...] = ()

    @property
    def values(self) -> dict[str, int | bool | None]:
        """Every value by configuration field, in the order of :data:`FIELDS`."""
        return {
            "enabled": self.enabled,
            "historySize": self.history_size,
            "warningThreshold": self.warning,
            "criticalThreshold": self.critical,
            "globalCircuitBreakerThreshold": self.breaker,
            "unknownToolThreshold": self.unknown_tool,
            "detectors.genericRepeat": self.generic_repeat,
            "detectors.knownPollNoProgress": self.known_poll,
            "detectors.pingPong": self.ping_pong,
            "postCompactionGuard.windowSize": self.guard_window,
        }


#: Counts by configuration field, with the attribute of :class:`~loopscan.rulesets.Ruleset` that is the default.
COUNTS: Final[Mapping[str, str]] = {
    "historySize": "history_size",
    "warningThreshold": "warning",
    "criticalThreshold": "critical",
    "globalCircuitBreakerThreshold": "breaker",
    "unknownToolThreshold": "unknown_tool",
    "postCompactionGuard.windowSize": "guard_window",
}
#: Switches of single detectors; all are on by default.
SWITCHES: Final = ("detectors.genericRepeat", "detectors.knownPollNoProgress", "detectors.pingPong")
#: Every configuration field, in the order of OpenClaw's documentation.
FIELDS: Final = (
    "enabled",
    *(name for name in COUNTS if "." not in name),
    *SWITCHES,
    "postCompactionGuard.windowSize",
)

_ORDER: Final = (
    ("criticalThreshold", "warningThreshold"),
    ("globalCircuitBreakerThreshold", "criticalThreshold"),
)
"""Each is raised above the other, in this order."""

#: The field with which OpenClaw takes in another file, at any depth.
INCLUDE: Final = "$include"

_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    group: frozenset(name.partition(".")[2] for name in FIELDS if name.startswith(f"{group}."))
    for group in ("detectors", "postCompactionGuard")
}
_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*(?:\.[A-Za-z0-9_$-]+)*")
_NAME_CAP: Final = 80
"""Characters of a name that messages show and comparisons look at: both cost time that grows with length."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One block of settings, as it was written, with where it came from."""

    values: Mapping[str, object]
    """The fields of ``tools.loopDetection``. Overrides may write nested fields dotted as well."""
    kind: str
    """The :attr:`Origin.kind` of its values."""
    source: str | None = None
    """The file, ready to print."""
    path: str = ""
    """The dotted path of the block in the file or object, ready to print."""
    agent: str | None = None
    """The agent whose block it is, as its id is written."""
    dotted: bool = False
    """Nested fields may be written as one dotted name, as overrides are."""

    def origin(self, name: str) -> Origin:
        """Return where this layer's value of the field ``name`` stands."""
        if self.kind == "command line":
            return Origin(self.kind)
        return Origin(self.kind, self.source, f"{self.path}.{name}" if self.path else name)

    def place(self, name: str) -> str:
        """Return :meth:`origin` in words, for messages."""
        origin = self.origin(name)
        if origin.path is None:
            return f"{origin.kind}: {name}"
        return f"{origin.source or self.kind}: {origin.path}"


@dataclass(frozen=True, slots=True)
class _Setting:
    """One field as one layer sets it."""

    name: str
    raw: object
    layer: Layer

    @property
    def origin(self) -> Origin:
        return self.layer.origin(self.name)

    @property
    def place(self) -> str:
        return self.layer.place(self.name)


def resolve(
    ruleset: Ruleset,
    *,
    block: Layer | None = None,
    agent: Layer | None = None,
    overrides: Layer | None = None,
    notes: Sequence[Note] = (),
) -> Policy:
    """Return the policy that ``ruleset`` makes of the global block, the agent's block and overrides.

    A later layer goes over an earlier one field by field, with ``detectors`` and
    ``postCompactionGuard`` merged one level down (2026.6). A JSON ``null`` sets a field back to unset.
    Where the ruleset has fixed thresholds (2026.9 and later), ``enabled`` alone is read, and a note
    says of each other field that it is ignored.

    Without ``block`` and ``agent`` there is no configuration, and ``enabled`` is ``True``: the question
    is what would have fired. With one, its ``enabled`` is obeyed, and a note says when that silences
    the detectors. ``notes`` are put before those that come up here.

    In configurable rulesets a count that is no positive whole number falls back to its default, then
    ``criticalThreshold`` is raised above ``warningThreshold`` and the breaker above that (2026.6, silently
    there; each has a note here).

    Raises :class:`~loopscan.errors.ConfigError` for a field that does not exist, and for a switch that
    is not a boolean.
    """
    layers = [layer for layer in (block, agent, overrides) if layer is not None]
    settings: dict[str, _Setting] = {}
    found: list[Note] = list(notes)
    for layer in layers:
        for setting in _settings(layer, found):
            if ruleset.configurable or setting.name == "enabled":
                settings[setting.name] = setting
            elif setting.raw is not None:
                found.append(_fixed_note(ruleset, setting))

    enabled, enabled_origin = _enabled(settings.get("enabled"), configured=block is not None or agent is not None)
    origins = {"enabled": enabled_origin}
    counts = {name: _count(ruleset, name, settings.get(name), origins, found) for name in COUNTS}
    switches = {name: _switch(ruleset, name, settings.get(name), origins) for name in SWITCHES}
    if ruleset.configurable:
        for name, floor in _ORDER:
            found += _raise_above(counts, name, floor, settings.get(name), origins)
        found += _unreachable(counts, switches)
        found += _late(counts, switches)
    if enabled is not True:
        found.append(_silenced(ruleset, enabled, settings.get("enabled"), block or agent))

    return Policy(
        ruleset=ruleset,
        enabled=enabled,
        history_size=counts["historySize"],
        warning=counts["warningThreshold"],
        critical=counts["criticalThreshold"],
        breaker=counts["globalCircuitBreakerThreshold"],
        unknown_tool=counts["unknownToolThreshold"],
        generic_repeat=switches["detectors.genericRepeat"],
        known_poll=switches["detectors.knownPollNoProgress"],
        ping_pong=switches["detectors.pingPong"],
        guard_window=counts["postCompactionGuard.windowSize"],
        origins={name: origins[name] for name in FIELDS},
        notes=tuple(found),
    )


def positive_whole(value: object) -> int | None:
    """Return ``value`` as a count if OpenClaw takes it for one, else ``None``.

    A count is a positive whole JavaScript number: ``5`` and ``5.0``, but no boolean, string, fraction,
    infinity or NaN. Integers beyond 2^53 are rounded as doubles are.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer that is infinite as a double
        return None
    return int(number) if number.is_integer() and number >= 1 else None


def nearest_field(name: str) -> str | None:
    """Return the configuration field whose name is most like ``name``, or ``None`` if none is near.

    Both the dotted name and its last part count, so ``pingpong`` finds ``detectors.pingPong``.
    """
    wanted = name[:_NAME_CAP].casefold()
    best, best_ratio = None, 0.6
    for known in FIELDS:
        for form in {known, known.rpartition(".")[2]}:
            ratio = difflib.SequenceMatcher(None, wanted, form.casefold()).ratio()
            if ratio > best_ratio:
                best, best_ratio = known, ratio
    return best


def unknown_field(source: str, path: str, name: str) -> ConfigError:
    """Return the error for a field ``name`` that nobody knows, below ``path`` in ``source`` (both ready to print)."""
    nearest = nearest_field(name)
    hint = f"did you mean {nearest}?" if nearest else f"known fields: {', '.join(FIELDS)}"
    return ConfigError(f"{source}: {member(path, name)}: there is no such field; {hint}")


def member(path: str, name: str) -> str:
    """Return the dotted path of ``name`` below ``path``, in brackets where the name is no plain word."""
    if len(name) > _NAME_CAP or not _WORD.fullmatch(name):
        return f"{path}[{quoted(name)}]"
    return f"{path}.{name}" if path else name


def quoted(text: str) -> str:
    """Return user-controlled ``text`` in quotes, neutralised and cut, for messages."""
    return f'"{clean(text, _NAME_CAP, keep="start")}"'


def shown(value: object) -> str:
    """Return a user's value the way JSON writes it, short enough for a message."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**21:
        return "an integer of more than 21 digits"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "an object"
    return "an array" if isinstance(value, Sequence) else f"a Python {clean(type(value).__name__)}"


def _settings(layer: Layer, notes: list[Note]) -> Iterator[_Setting]:
    """Yield every field that ``layer`` sets; raise :class:`ConfigError` for one that does not exist."""
    for name, raw in layer.values.items():
        if not isinstance(name, str):
            raise ConfigError(f"{_block_place(layer)}: field names must be strings, not {shown(name)}")
        if name in _GROUPS:
            yield from _group(layer, name, raw, notes)
        elif name in FIELDS and (layer.dotted or "." not in name):
            yield _Setting(name, raw, layer)
        elif name == INCLUDE and not layer.dotted:
            notes.append(include_note(_block_place(layer)))
        else:
            raise unknown_field(layer.source or layer.kind, layer.path, name)


def _group(layer: Layer, group: str, raw: object, notes: list[Note]) -> Iterator[_Setting]:
    if raw is None:
        # 2026.6 merges one level down, where a null adds nothing: what is below stays.
        return
    place = layer.place(group)
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{place} must be an object, not {shown(raw)}")
    for name, value in raw.items():
        if not isinstance(name, str):
            raise ConfigError(f"{place}: field names must be strings, not {shown(name)}")
        if name in _GROUPS[group]:
            yield _Setting(f"{group}.{name}", value, layer)
        elif name == INCLUDE and not layer.dotted:
            notes.append(include_note(place))
        else:
            raise unknown_field(layer.source or layer.kind, member(layer.path, group), name)


def include_note(place: str) -> Note:
    """Return the note that an ``$include`` at ``place`` (ready to print) is not followed."""
    return Note(
        "ignored",
        INCLUDE,
        f"{place} has an $include, which loopscan does not follow: settings in the included file do not count here; "
        "merge the files first, or override the fields",
    )


def _block_place(layer: Layer) -> str:
    return ": ".join(part for part in (layer.source or layer.kind, layer.path) if part)


def _default(ruleset: Ruleset, name: str) -> int | bool:
    if name in COUNTS:
        number: int = getattr(ruleset, COUNTS[name])
        return number
    return True


def _fixed_note(ruleset: Ruleset, setting: _Setting) -> Note:
    value = shown(_default(ruleset, setting.name))
    return Note(
        "ignored",
        setting.name,
        f"{setting.place} is ignored: ruleset {ruleset.name} fixes {setting.name} at {value} "
        "and reads `enabled` alone",
    )


def _unset_origin(setting: _Setting) -> Origin:
    return replace(setting.origin, kind="default", detail="null: unset")


def _boolean(setting: _Setting, allowed: str) -> bool | None:
    if setting.raw is None or isinstance(setting.raw, bool):
        return setting.raw
    raise ConfigError(f"{setting.place} must be {allowed}, not {shown(setting.raw)}")


def _enabled(setting: _Setting | None, *, configured: bool) -> tuple[bool | None, Origin]:
    if setting is None:
        if configured:
            return None, Origin("default", detail="not set by the configuration")
        return True, Origin("default", detail="no configuration: shows what would have fired")
    value = _boolean(setting, "true, false or null (unset)")
    return value, _unset_origin(setting) if value is None else setting.origin


def _switch(ruleset: Ruleset, name: str, setting: _Setting | None, origins: dict[str, Origin]) -> bool:
    if setting is None:
        origins[name] = Origin("default" if ruleset.configurable else "fixed")
        return True
    value = _boolean(setting, "true, false or null (the default, true)")
    origins[name] = _unset_origin(setting) if value is None else setting.origin
    return value is not False


def _count(
    ruleset: Ruleset, name: str, setting: _Setting | None, origins: dict[str, Origin], notes: list[Note]
) -> int:
    default = int(_default(ruleset, name))
    if setting is None:
        origins[name] = Origin("default" if ruleset.configurable else "fixed")
        return default
    if setting.raw is None:
        origins[name] = _unset_origin(setting)
        return default
    number = positive_whole(setting.raw)
    if number is not None:
        origins[name] = setting.origin
        return number
    detail = f"{shown(setting.raw)} is not a positive whole number: the default {default} instead"
    origins[name] = replace(setting.origin, kind="repaired", detail=detail)
    notes.append(Note("repaired", name, f"{setting.place}: {detail}"))
    return default


def _raise_above(
    counts: dict[str, int], name: str, floor: str, setting: _Setting | None, origins: dict[str, Origin]
) -> Iterator[Note]:
    """Raise the count ``name`` to one above ``floor`` if it is not above it, with a note (2026.6)."""
    old, new = counts[name], counts[floor] + 1
    if old >= new:
        return
    counts[name] = new
    detail = f"raised from {old} to {new}: it must be above {floor} {counts[floor]}"
    before = origins[name]
    origins[name] = replace(before, kind="repaired", detail="; ".join(filter(None, (before.detail, detail))))
    yield Note("repaired", name, f"{setting.place if setting else name}: {detail}")


def _unreachable(counts: Mapping[str, int], switches: Mapping[str, bool]) -> Iterator[Note]:
    """Yield a note for every threshold that a history of ``historySize`` records cannot reach.

    N records give at most N for a streak of one signature or one unknown tool, and N + 1 for ping-pong:
    its count takes in the proposed call.
    """
    size = counts["historySize"]
    single = [
        detector
        for detector, switch in (
            ("generic_repeat", "detectors.genericRepeat"),
            ("known_poll_no_progress", "detectors.knownPollNoProgress"),
        )
        if switches[switch]
    ]
    by_threshold: tuple[tuple[str, list[str], bool], ...] = (
        ("warningThreshold", single, switches["detectors.pingPong"]),
        ("criticalThreshold", single, switches["detectors.pingPong"]),
        ("globalCircuitBreakerThreshold", ["global_circuit_breaker"], False),
        ("unknownToolThreshold", ["unknown_tool_repeat"], False),
    )
    for name, detectors, ping_pong in by_threshold:
        threshold = counts[name]
        silent = list(detectors) if threshold > size else []
        needed = threshold if silent else threshold - 1
        if ping_pong and threshold > size + 1:
            silent.append("ping_pong")
        if silent:
            most = f"{size} ({size + 1} for ping_pong)" if "ping_pong" in silent else f"{size}"
            yield Note(
                "unreachable",
                name,
                f"{name} {threshold} is out of reach of {_listed(silent)}: a history of {size} records counts "
                f"{most} at most; historySize would have to be {needed}",
            )


def _late(counts: Mapping[str, int], switches: Mapping[str, bool]) -> Iterator[Note]:
    """Yield a note if warnings come later than ``warningThreshold`` says: their first bucket starts at 10."""
    warning, critical, size = counts["warningThreshold"], counts["criticalThreshold"], counts["historySize"]
    if warning >= 10 or not any(switches.values()):
        return
    message = f"warningThreshold {warning}: warnings are still only emitted from count 10 on"
    if critical <= min(10, size):
        message += f", and criticalThreshold {critical} blocks a loop without progress before any warning"
    elif size < 10:
        message += (
            f", which a history of {size} records does not {'reach' if size < 9 else 'reach but for ping_pong'}"
        )
    yield Note("late", "warningThreshold", message)


def _silenced(ruleset: Ruleset, enabled: bool | None, setting: _Setting | None, configuration: Layer | None) -> Note:
    if setting is not None:
        who = f"agent {quoted(setting.layer.agent)} has " if setting.layer.agent is not None else ""
        state = "null (unset)" if setting.raw is None else "false"
        cause = f"{who}enabled {state} ({setting.place})"
    else:
        source = configuration.source if configuration is not None else None
        cause = f"enabled is not set in {source or 'the configuration'}"
    left = ["the unknown-tool guard"]
    if ruleset.identical_errors is not None:
        left.append("the identical-error guard")
    if enabled is None:
        effect = "the rolling detectors are silent, the post-compaction guard alone acts"
    else:
        effect = "neither the rolling detectors nor the post-compaction guard act"
    return Note(
        "silenced",
        "enabled",
        f"{cause}: {effect} (besides {_listed(left)}, always on); enabled=true in an override (--set) shows what "
        "would have fired",
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
