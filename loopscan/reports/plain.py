"""Text and paths of findings as formats for machines write them: clean, masked, one line where one is meant."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from loopscan.masking import mask_keys
from loopscan.sanitize import name

#: At most so many characters of a name, and of a sentence with names in it, are written.
NAME: Final = 300
SENTENCE: Final = 1000

_REMOTE = re.compile(r"(?P<scheme>s3|gs|az|https?)://(?P<host>[^/]*)(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_HOST = re.compile(r"[^:]*(?::\d*)?")


def title(text: str) -> str:
    """Return the name of a case or a group on one clean line."""
    return name(text, NAME)


def sentence(text: str) -> str:
    """Return a message or a reason on one clean line."""
    return name(text, SENTENCE, keep="start")


def lines(text: str) -> list[str]:
    """Return a text of many lines line by line, each one clean."""
    return [name(line) for line in text.split("\n")] if text else []


def path(place: str) -> str:
    """Return the path of a file as annotations want it: from the working folder where it lies in there, clean."""
    return name(_from_here(place))


def uri(place: str) -> str:
    """Return the path or address of a file as a URI: relative where it can be, percent-encoded, keys masked.

    What lies outside of the working folder, and was named by its whole path, is a ``file:`` URI; an address of an
    object store keeps its scheme.
    """
    shown = mask_keys(_from_here(place))
    if found := _REMOTE.fullmatch(shown):
        host = _quoted(found["host"], ":" if _HOST.fullmatch(found["host"]) else "")
        return f"{found['scheme'].lower()}://{host}{_quoted(found['rest'], '/')}"
    if Path(shown).is_absolute():
        # Of several slashes the first two would start a host.
        return "file:///" + _quoted(shown.replace(os.sep, "/").lstrip("/"), "/")
    return _quoted(shown.replace(os.sep, "/").lstrip("/"), "/") or "."


def _from_here(place: str) -> str:
    """Return ``place`` without the working folder, where it lies in there, and without ``./`` before it."""
    with suppress(OSError):  # a folder that is gone holds nothing
        place = place.removeprefix(str(Path.cwd() / " ")[:-1])
    while place.startswith("./") and len(place) > 2:
        place = place[2:].lstrip("/")
    return place


def _quoted(text: str, safe: str) -> str:
    """Return ``text`` percent-encoded as UTF-8; bytes of a file's name that are none are written as they are."""
    try:
        return quote(text.encode("utf-8", "surrogateescape"), safe)
    except UnicodeEncodeError:  # half of a pair that no file system gave
        return quote(text.encode("utf-8", "surrogatepass"), safe)
