"""The folder that OpenClaw keeps its state in: which configuration holds for what is read there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Names of the configuration, of OpenClaw and of what it was called before; the first that is there holds.
CONFIGS: Final = ("openclaw.json", "clawdbot.json", "moltbot.json")

_FOLDERS: Final = frozenset((".openclaw", ".clawdbot", ".moltbot"))
_AGENTS: Final = "agents"
_SESSIONS: Final = "sessions"
#: How far below its state folder a session lies: ``agents/main/sessions/cold/1.jsonl.zst``.
_DEPTH: Final = 5


@dataclass(frozen=True, slots=True)
class StateConfig:
    """The configuration that was found, or why there is none to be used."""

    path: Path | None = None
    reason: str | None = None
    """One sentence, where there are several to choose from; ``None`` where there is none at all."""
    above: Path | None = None
    """One that lies in a state folder of which only a part was named: it is not used."""
    beside: Path | None = None
    """One that lies beside a folder of sessions in a folder that was named and is no state folder: it is not used."""


def state_config(paths: Iterable[str | os.PathLike[str]]) -> StateConfig:
    """Find the configuration of the state folders among ``paths``. Nothing is opened.

    A folder is one if it is named like one, ``~/.openclaw``, or holds a folder ``agents``, and a configuration
    lies in it. If several hold different ones, none is chosen.
    """
    paths = list(paths)
    found: dict[Path, Path] = {}
    for path in paths:
        try:
            config = _config_in(Path(path))
            if config is not None:
                found.setdefault(config.resolve(), config)
        except (OSError, ValueError, RuntimeError):  # no such name can be, or links lead in a circle: no state folder
            continue
    if len(found) > 1:
        names = ", ".join(str(config) for config in found.values())
        return StateConfig(reason=f"each of these may hold, so none of them is used: {names}; choose with --config")
    if found:
        return StateConfig(next(iter(found.values())))
    above = _above(paths)
    return StateConfig(above=above, beside=_beside(paths) if above is None else None)


def _above(paths: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return the configuration of the state folder that a path lies in."""
    for path in paths:
        try:
            folders = Path(os.path.abspath(path)).parents[:_DEPTH]  # noqa: PTH100 - links are not to be followed here
            config = next((each for folder in folders if (each := _config_in(folder)) is not None), None)
        except (OSError, ValueError, RuntimeError):
            continue
        if config is not None:
            return config
    return None


def _beside(paths: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return the configuration of a folder that has sessions, but no agents: nothing says that it holds for them."""
    for path in paths:
        try:
            config = _first_in(Path(path)) if (Path(path) / _SESSIONS).is_dir() else None
        except (OSError, ValueError):
            continue
        if config is not None:
            return config
    return None


def _config_in(folder: Path) -> Path | None:
    named = folder.name in _FOLDERS or folder.resolve().name in _FOLDERS
    return _first_in(folder) if named or (folder / _AGENTS).is_dir() else None


def _first_in(folder: Path) -> Path | None:
    return next((folder / name for name in CONFIGS if (folder / name).is_file()), None)
