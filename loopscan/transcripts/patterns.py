"""Patterns of paths, where no shell has expanded them: ``*``, ``?``, ``[a-z]``, and ``**`` for folders in folders.

As in a shell, what begins with a dot is met only by a pattern that does.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

_MAGIC = frozenset("*?[")
_ANY_DEPTH = "**"


def is_pattern(path: str) -> bool:
    """Whether there is a wildcard in ``path``."""
    return not _MAGIC.isdisjoint(path)


def expand(pattern: str) -> list[str]:
    """Return the files and folders that a pattern meets, sorted.

    ``**`` follows no links; at the end of a pattern it stands for the folder itself. Folders that cannot be read
    meet nothing.
    """
    parts = Path(pattern).parts
    fixed = list(takewhile(lambda part: not is_pattern(part), parts))
    rest = parts[len(fixed) :]
    places = [path for path in [str(Path(*fixed))] if os.path.lexists(path)]
    for number, part in enumerate(rest, 1):
        if part == _ANY_DEPTH:
            if number < len(rest):
                places = list(dict.fromkeys(folder for place in places for folder in _folders(place)))
        elif is_pattern(part):
            places = [child.path for place in places for child in _children(place) if _meets(child.name, part)]
        else:
            places = [path for place in places if os.path.lexists(path := str(Path(place, part)))]
    return sorted(str(Path(place)) for place in places)


def meets(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path meets a pattern, both taken apart at the slashes."""
    reached = {0}
    for part in pattern:
        if part == _ANY_DEPTH:
            for at, name in enumerate(path):
                if at in reached and not name.startswith("."):
                    reached.add(at + 1)
        else:
            reached = {at + 1 for at in reached if at < len(path) and _meets(path[at], part)}
        if not reached:
            return False
    return len(path) in reached


def _meets(name: str, part: str) -> bool:
    return fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def _folders(top: str) -> Iterator[str]:
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        yield folder
        for child in _children(folder):
            try:
                if not child.name.startswith(".") and child.is_dir(follow_symlinks=False):
                    waiting.append(child.path)
            except OSError:  # gone since, or out of reach: nothing of it can be met
                continue


def _children(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (OSError, ValueError):
        return []
