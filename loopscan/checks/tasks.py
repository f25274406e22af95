"""What is to be done: one check of a transcript, with its settings resolved."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loopscan.checks.mistakes import TOP, Spot
from loopscan.checks.schema import Expect, Settings, Snapshot

#: The ruleset of a check that names none, as in a replay.
DEFAULT_RULESET: Final = "latest"


@dataclass(frozen=True, slots=True)
class Task:
    """One check that is to be made."""

    transcript: str
    """What it is called in reports: the first of ``paths``, as it was named or found."""
    paths: tuple[str, ...]
    """What is replayed."""
    name: str
    """Unique among the checks of a transcript."""
    settings: Mapping[str, Any]
    """What is not as by default: ``ruleset``, ``config``, ``agent``, ``set``, ``mode`` and so on."""
    snapshot: Snapshot | None = None
    expect: Expect | None = None
    file: str | None = None
    """The file that says so."""
    spot: Spot = TOP
    """Where in it."""
    within: tuple[object, ...] = ()
    """Keys and indices from the top of the file to the check."""
    snapshots: bool = False
    """Whether ``loopscan check --update`` may write a snapshot here: the file has one, or says nothing yet."""
    skip: str | None = None
    """Why it is not made now."""
    fault: Fault | None = None
    """Why it cannot be made."""
    part_of: str | None = None
    """The key of the folder whose sessions are checked together, if it is one of them."""

    @property
    def id(self) -> str:
        """What the check is called as a whole."""
        return f"{self.transcript} [{self.name}]"

    @property
    def key(self) -> str:
        """What stays the same when settings go over it: the transcript, and the place that says what it must meet."""
        file = None if self.file is None else os.path.realpath(self.file)
        return self.part_of or json.dumps([os.path.realpath(self.transcript), file, *self.within])


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a check fails before anything is replayed."""

    rule: str
    """``no_expectation`` or ``unreadable_transcript``."""
    sentence: str


@dataclass(frozen=True, slots=True)
class BenignFolder:
    """A folder of sessions in which nothing may be blocked."""

    folder: str
    max_warnings: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    file: str | None = None
    """The file that says so."""

    @property
    def key(self) -> str:
        """What it is remembered by, as :attr:`Task.key`."""
        return json.dumps([os.path.realpath(self.folder), "benign"])


def placed(settings: Settings, folder: Path) -> Settings:
    """Return settings of a file in ``folder`` with the path of the configuration from where the command runs."""
    if settings.config is None:
        return settings
    return settings.model_copy(update={"config": joined(folder, settings.config)})


def joined(folder: Path, name: str) -> str:
    """Return the path of what a file in ``folder`` calls ``name``."""
    return os.path.normpath(folder / name)


def label(settings: Mapping[str, Any]) -> str:
    """Return what a check is called by its settings: the ruleset, and what is not as by default."""
    parts = [str(settings.get("ruleset", DEFAULT_RULESET))]
    if "config" in settings:
        parts.append(Path(settings["config"]).name)
    if "agent" in settings:
        parts.append(f"agent {settings['agent']}")
    parts += [f"{name}={str(value).lower()}" for name, value in settings.get("set", {}).items()]
    parts += [f"{name} {settings[name]}" for name in ("mode", "scope", "arm", "input_format") if name in settings]
    parts += [f"{tool}={name}" for tool, name in settings.get("tool_map", {}).items()]
    return ", ".join(parts)
