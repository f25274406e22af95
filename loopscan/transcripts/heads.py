"""What the first bytes of a source hold: the values that readers recognise their format by."""

from __future__ import annotations

import functools
import re

from loopscan.events import Json
from loopscan.transcripts.jsonl import BOM, parse

#: How many lines of a head are looked at; more than one, as the first may be damaged.
MOST_LINES = 16

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_CLOSERS = {ord("{"): ord("}"), ord("["): ord("]")}
_COMMA = ord(",")


@functools.lru_cache(maxsize=4)
def lines_of(head: bytes) -> tuple[Json, ...]:
    """Return the values of the first lines that are JSON; the last line of a head may be cut and is then left out."""
    found: list[Json] = []
    for line in head.removeprefix(BOM).split(b"\n", MOST_LINES)[:MOST_LINES]:
        if not line.strip():
            continue
        try:
            found.append(parse(line))
        except (ValueError, RecursionError):
            continue
    return tuple(found)


@functools.lru_cache(maxsize=4)
def document_of(head: bytes) -> Json:
    """Return what a head shows of a document that is one JSON value: as much of it as is complete.

    ``[1, [2, 3, "unfini`` gives ``[1, [2, 3]]``. ``None`` where the head is no beginning of an object or array, or
    where more follows the first value.
    """
    text = head.removeprefix(BOM).lstrip()
    if text[:1] not in (b"{", b"["):
        return None
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return beginning_of(text)


def beginning_of(text: bytes) -> Json:
    """Return as much as is complete of an object or array that begins with ``text``, ``None`` if it is no JSON."""
    cut = 0
    missing = bytearray()
    for token in _TOKEN.finditer(text):
        mark = text[token.start()]
        if mark in b"{[":
            missing.append(_CLOSERS[mark])
            cut = token.end()
        elif mark in b"}]":
            if len(missing) < 2 or missing.pop() != mark:
                return None
            cut = token.end()
        elif mark == _COMMA:
            cut = token.start()
    try:
        return parse(text[:cut] + missing[::-1])
    except (ValueError, RecursionError):
        return None
