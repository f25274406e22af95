"""Damage to transcripts, as a disk, an editor, an old program or a hostile one might do it.

Everything is drawn from the generator that is passed in: the same seed does the same damage.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import zstandard

_BYTES = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\r\n",
    b"\n",
    b"\xef\xbb\xbf",
    b'"',
    b"\\",
    b"{",
    b"]",
    b"\x1b[2J",
    b" ",
)
_NUMBERS = (0, -1, 2**63, 2**64, -(2**70), 10**400, 1e308, -0.0, 0.1)
_TEXTS = ("", "\0", "\ud800", "\u202e", "\x1b]0;x\x07", "x" * 5000, "null", "1e999", "e1", "s1", "c1", "\u00e9" * 9)
_KEYS = ("id", "type", "role", "content", "message", "toolCallId", "timestamp", "", "__proto__", "\ud800")


def damage(data: bytes, rng: random.Random) -> bytes:
    """Return ``data`` with one to three faults of bytes, lines or structure."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_FAULTS)(data, rng)
    return data


# --- bytes


def _flip(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 5, 40))):
        if damaged:
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(_BYTES) * rng.choice((1, 1, 3, 2000)) + data[at:]


def _delete(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at + rng.choice((1, 3, 50, 3000)) :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _cut_front(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randint(0, len(data)) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    end = min(len(data), start + rng.choice((10, 500, 5000)))
    return data[:end] + data[start:end] + data[end:]


def _line_breaks(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\n\n", b"\r", b"", b" \n", b"\n\xef\xbb\xbf")))


def _utf16(data: bytes, rng: random.Random) -> bytes:
    return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "latin-1")), "replace")


def _squeeze(data: bytes, rng: random.Random) -> bytes:
    packed = gzip.compress(data, 1) if rng.random() < 0.5 else zstandard.compress(data, 1)
    return rng.choice((_cut, _flip))(packed, rng) if rng.random() < 0.7 else packed


# --- lines


def _lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(True)
    if not lines:
        return data
    what = rng.randrange(6)
    at = rng.randrange(len(lines))
    if what == 0:
        rng.shuffle(lines)
    elif what == 1:
        del lines[at]
    elif what == 2:
        lines.insert(rng.randint(0, len(lines)), lines[at])
    elif what == 3:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 4:
        lines = lines[at:] + lines[:at]
    else:
        lines.insert(at, b"[" * 100_000 + b"\n" if rng.random() < 0.3 else rng.choice(_BYTES) + b"\n")
    return b"".join(lines)


# --- structure


def _value(rng: random.Random) -> Any:
    kind = rng.randrange(8)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.choice(_NUMBERS)
    if kind in (3, 4):
        return rng.choice(_TEXTS)
    if kind == 5:
        return [_value(rng) for _ in range(rng.randrange(3))]
    if kind == 6:
        return {rng.choice(_KEYS): _value(rng) for _ in range(rng.randrange(3))}
    deep: Any = 1
    for _ in range(rng.choice((5, 400, 900))):
        deep = [deep]
    return deep


def _structure(data: bytes, rng: random.Random) -> bytes:
    """Change a few values, wherever they are, in one line of JSON or in the document."""
    lines = data.splitlines(True)
    for _ in range(rng.choice((1, 3))):
        at = rng.randrange(len(lines)) if lines else 0
        try:
            value = json.loads(lines[at])
            lines[at] = _dumped(_changed(value, rng), rng) + b"\n"
        except (ValueError, IndexError, RecursionError):
            try:
                return _dumped(_changed(json.loads(data), rng), rng)
            except (ValueError, RecursionError):
                return data
    return b"".join(lines)


def _changed(value: Any, rng: random.Random) -> Any:
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        if isinstance(inside, dict | list):
            items = inside.items() if isinstance(inside, dict) else enumerate(inside)
            for key, child in items:
                places.append((inside, key))
                waiting.append(child)
    if not places:
        return _value(rng)
    inside, key = rng.choice(places)
    what = rng.randrange(5)
    if what == 0 and isinstance(inside, dict):
        del inside[key]
    elif what == 1 and isinstance(inside, list):
        inside.insert(key, _value(rng))
    elif what == 2 and isinstance(inside, dict):
        inside[rng.choice(_KEYS)] = inside[key]
    elif what == 3:
        other, place = rng.choice(places)
        with_cycle = other is inside[key] or not _acyclic(inside[key], other)
        if not with_cycle:
            other[place] = inside[key]
    else:
        inside[key] = _value(rng)
    return value


def _acyclic(value: Any, holder: Any) -> bool:
    """Whether ``holder`` is no part of ``value``."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if each is holder:
            return False
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return True


def _dumped(value: Any, rng: random.Random) -> bytes:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.1:
        text = text.replace("{", '{"id": 1, "id": 2, ', 1)  # equal keys
    return text.encode("utf-8", "surrogatepass")


_FAULTS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _insert,
    _delete,
    _cut,
    _cut_front,
    _repeat,
    _line_breaks,
    _utf16,
    _squeeze,
    _lines,
    _lines,
    _lines,
    *[_structure] * 12,
)
