"""Why a file is not read: what it is, as far as its first bytes and its name tell."""

from __future__ import annotations

import re
from typing import Final

from loopscan.transcripts.names import pieces_of

EMPTY: Final = "empty"
UNKNOWN: Final = "of no known format"

ONE_EVENT: Final = "one event of a folder of them: name the folder, unpacked"

_SQLITE = b"SQLite format 3\0"
#: A text has no NUL in as many bytes; the middle of one that a crash has damaged may have.
_TELLING_BYTES: Final = 1024

_BY_CONTENT: Final = (
    (_SQLITE, "a database of no known kind"),
    (b"\x37\x7f\x06\x82", "part of a database"),
    (b"\x37\x7f\x06\x83", "part of a database"),
    (b"\xfd7zXZ\0", "packed by xz, which is not read: unpack it first"),
    (b"BZh", "packed by bzip2, which is not read: unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "packed by 7-Zip, which is not read: unpack it first"),
    (b"Rar!\x1a\x07", "packed by RAR, which is not read: unpack it first"),
    (b"\xff\xfe", "text in UTF-16: convert it to UTF-8"),
    (b"\xfe\xff", "text in UTF-16: convert it to UTF-8"),
)
_BY_NAME: Final = (
    (r"sessions\.json(?:\..+)?", "OpenClaw's index of sessions"),
    (r"(?:openclaw|clawdbot|moltbot)\.json(?:[.-].+)?", "a configuration of OpenClaw"),
    (r".+\.trajectory-path\.json", "names where a trajectory is"),
    (r".+\.lock", "a lock"),
    (r"event-\d{3,}-.*\.json", ONE_EVENT),
    (r".+-(?:wal|shm|journal)", "part of a database"),
)
_NAMES = tuple((re.compile(pattern, re.DOTALL), reason) for pattern, reason in _BY_NAME)


def is_binary(head: bytes) -> bool:
    """Whether no text begins with ``head``, and no database either: nothing that any reader knows."""
    return b"\0" in head[:_TELLING_BYTES] and not head.startswith(_SQLITE)


def why_unknown(head: bytes, name: str) -> str:
    """Return what is to be said of a file that no reader recognises, in a few words that are free of its content."""
    if not head.strip():
        return EMPTY
    for magic, reason in _BY_CONTENT:
        if head.startswith(magic):
            return reason
    last = pieces_of(name)[-1]
    for pattern, reason in _NAMES:
        if pattern.fullmatch(last):
            return reason
    return "binary data" if is_binary(head) else UNKNOWN
