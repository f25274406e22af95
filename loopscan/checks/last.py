"""Which checks failed last time, for ``--rerun``: remembered beside the files, in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path
from typing import Final

import orjson

from loopscan.checks.run import Checked
from loopscan.errors import UsageError
from loopscan.transcripts.places import open_file
from loopscan.wholefile import whole_file

#: The folder, in the one that the command runs in.
FOLDER: Final = Path(".loopscan_cache")
_FILE: Final = "failed-checks.json"


def failed_last_time(folder: Path = FOLDER) -> frozenset[str]:
    """Return the checks that failed when they were last made; empty if none did, or nothing is known.

    Raises :class:`UsageError` where what was remembered cannot be read.
    """
    path = folder / _FILE
    try:
        with open_file(path) as stream:
            known = orjson.loads(stream.readall())
    except FileNotFoundError:
        return frozenset()
    except (OSError, orjson.JSONDecodeError) as error:
        raise UsageError(f"{path} cannot be read; remove it and run all checks") from error
    if not isinstance(known, list) or not all(isinstance(each, str) for each in known):
        raise UsageError(f"{path} is not what loopscan writes there; remove it and run all checks")
    return frozenset(known)


def _is_there(key: str) -> bool:
    """Tell whether there still is what a key is of: its first part is a path; see :attr:`Task.key`."""
    try:
        return Path(orjson.loads(key)[0]).exists()
    except (OSError, ValueError, LookupError, TypeError):
        return False  # it was written by something else


def remember(checked: Iterable[Checked], before: Set[str], folder: Path = FOLDER) -> None:
    """Remember which checks failed; those that were not made now stay what they were ``before``.

    Raises :class:`UsageError` if it cannot be written.
    """
    made: dict[str, int] = {}
    for each in checked:
        made[each.task.key] = made.get(each.task.key, 0) or each.code
    kept = {each for each in before if each not in made and _is_there(each)}
    failed = sorted(kept | {each for each, code in made.items() if code})
    if not failed and not folder.exists():
        return
    try:
        folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or 'input/output error'}") from error
    path = folder / _FILE
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no file; remove it")
    with whole_file(str(path)) as stream:
        stream.write(orjson.dumps(failed, option=orjson.OPT_APPEND_NEWLINE))
