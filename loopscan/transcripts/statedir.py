"""OpenClaw's own folder, which holds its configuration beside the sessions of its agents."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

#: Its configuration, by the names that it has had.
NAMES = ("openclaw.json", "moltbot.json", "clawdbot.json")


def state_config(paths: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return the configuration in a folder of OpenClaw among ``paths``; ``None`` if there is none, or several."""
    found: dict[str, Path] = {}
    for path in paths:
        for name in NAMES:
            config = Path(path) / name
            try:
                if config.is_file():
                    found.setdefault(os.path.realpath(config), config)
                    break
            except (OSError, ValueError):
                continue
    return next(iter(found.values())) if len(found) == 1 else None
