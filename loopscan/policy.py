"""A policy: one ruleset with its thresholds, each value with where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loopscan.rulesets import Ruleset


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from, for people and for ``config show``."""

    kind: str
    """``default``, ``fixed`` (by the ruleset), ``file``, ``agent``, ``argument``, ``command line`` or ``repaired``."""
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
    """``repaired``, ``ignored``, ``unreachable`` or ``silenced``."""
    field: str
    """The field's name as in OpenClaw's configuration, such as ``detectors.pingPong``."""
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
