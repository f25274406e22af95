"""Which task a file belongs to: a task is a folder that is named after its id."""

from __future__ import annotations

import re

from loopscan.transcripts.names import pieces_of

HISTORY = "api_conversation_history.json"
_NAMES = frozenset({HISTORY, "ui_messages.json", "claude_messages.json"})
_ID = re.compile(r"\d{10,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = re.compile(r"(?:\.json)?(?:\.(?:gz|zst))?\Z")
_PACKED = re.compile(r"\.(?:gz|zst)\Z")


def task_of(path: str) -> str:
    """Return the task that a file belongs to: its folder if the file has the name that Cline gives, else the file."""
    *folders, name = pieces_of(path)
    if _PACKED.sub("", name) in _NAMES and folders and folders[-1]:
        return folders[-1]
    return _SUFFIX.sub("", name) or name


def family_of(path: str) -> frozenset[str]:
    """Return what the files of one task have in common: its id, or its folder if that is not named after an id."""
    *folders, name = pieces_of(path)
    if _PACKED.sub("", name) not in _NAMES:
        return frozenset()
    folder = folders[-1] if folders else ""
    return frozenset({f"cline:{folder if _ID.fullmatch(folder) else '/'.join(folders)}"})
