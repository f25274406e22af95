"""Canonical identity: two JSON values are the same if JavaScript would say so.

The engine hashes JSON with keys sorted at every depth, after ``JSON.parse``. So numbers are IEEE
doubles (``1`` is ``1.0``, ``-0`` is ``0``, integers from 2^53 on compare as doubles), key order and
spelling do not matter, and of duplicate keys the last one wins (which every parser used here does).
``1e400`` counts as the text ``Infinity``, ``-1e400`` likewise, and neither is ``null``. Only equality
matters, never the digest: identities of loopscan are not those of OpenClaw.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

import orjson
from xxhash import xxh3_128_digest

from loopscan.events import Json

#: What ``String.prototype.trim`` takes and ``\s`` matches. U+FEFF is in it; U+001C to U+001F and U+0085 are not.
JS_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

_EXACT: Final = 2**53  # below it every integer is a double of its own
_DEEP: Final = 200  # orjson writes 254 levels; from here on the slow writer takes over
_INFINITY: Final = float("inf")

TextRule = Callable[[str], str]


class _SlowPathError(Exception):
    """The value is too deep for the fast writer, or has keys that a text rule makes equal."""


def trim(text: str) -> str:
    """Trim ``text`` as JavaScript does."""
    return text.strip(JS_SPACE)


def identity(value: Json, text: TextRule | None = None) -> bytes:
    """Return 16 bytes that are equal for two values exactly if JavaScript's canonical JSON is.

    ``text`` rewrites every string, keys included, before comparing (the nonces of a ruleset); keys of
    one object that it makes equal stay apart, in the order of their old names.
    """
    try:
        plain = orjson.dumps(_comparable(value, text, 0), option=orjson.OPT_SORT_KEYS)
    except (_SlowPathError, TypeError):
        # Lone surrogates (orjson raises TypeError), great depth, keys made equal. Each is a property of the value, so
        # equal values always meet here, and the leading byte keeps the two apart.
        return xxh3_128_digest(b"\x00" + _write(value, text))
    return xxh3_128_digest(plain)


def number(value: float) -> int | float:
    """Return the one spelling of a number: an ``int`` where it is whole and below 2^53, else a ``float``."""
    if type(value) is int:
        if -_EXACT < value < _EXACT:
            return value
        try:
            return float(value)
        except OverflowError:
            return _INFINITY if value > 0 else -_INFINITY
    return int(value) if -_EXACT < value < _EXACT and value.is_integer() else value


def _spelled(value: float) -> int | float | str:
    """Return :func:`number` with the infinities as the texts that the engine writes for them."""
    plain = number(value)
    return "Infinity" if plain == _INFINITY else "-Infinity" if plain == -_INFINITY else plain


def number_text(value: float) -> str:
    """Return how JavaScript writes a finite number as text."""
    digits, _, exponent = f"{Decimal(repr(float(value))):e}".partition("e")
    if -7 < int(exponent) < 21:
        return f"{Decimal(repr(float(value))).normalize():f}"
    return f"{Decimal(digits).normalize():f}e{int(exponent):+d}"


def _comparable(value: Json, text: TextRule | None, depth: int) -> Json:
    """Return ``value`` with every number and string in its one spelling; the same object where nothing changes."""
    if isinstance(value, str):
        return value if text is None else text(value)
    if value is None or value is True or value is False:
        return value
    if depth >= _DEEP:
        raise _SlowPathError
    if isinstance(value, dict):
        if text is None:
            return {key: _comparable(item, None, depth + 1) for key, item in value.items()}
        renamed = {text(key): _comparable(item, text, depth + 1) for key, item in value.items()}
        if len(renamed) < len(value):
            raise _SlowPathError
        return renamed
    if isinstance(value, list):
        return [_comparable(item, text, depth + 1) for item in value]
    return _spelled(value)


def _utf16(key: str) -> bytes:
    """Order of keys in JavaScript: by UTF-16 code units."""
    return key.encode("utf-16-be", "surrogatepass")


def _write(value: Json, text: TextRule | None) -> bytes:
    """Write any JSON value injectively, however deep: the plain, slow counterpart of the fast writer."""
    out: list[bytes] = []
    stack: list[Json | bytes] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, bytes):
            out.append(item)
        elif isinstance(item, str):
            out.append(_quoted(item if text is None else text(item)))
        elif isinstance(item, dict):
            renamed = [(_utf16(key if text is None else text(key)), _utf16(key), key) for key in item]
            out.append(b"{")
            stack.append(b"}")
            for name, _, key in sorted(renamed, reverse=True):
                stack += (b",", item[key], _quoted(name.decode("utf-16-be", "surrogatepass")) + b":")
        elif isinstance(item, list):
            out.append(b"[")
            stack.append(b"]")
            for element in reversed(item):
                stack += (b",", element)
        elif item is None or isinstance(item, bool):
            out.append(b"null" if item is None else b"true" if item else b"false")
        else:
            spelled = _spelled(item)
            out.append(_quoted(spelled) if isinstance(spelled, str) else repr(spelled).encode())
    return b"".join(out)


def _quoted(text: str) -> bytes:
    """Write a string so that its end is unmistakable; lone surrogates survive."""
    raw = text.encode("utf-8", "surrogatepass")
    return b'"%d:%b' % (len(raw), raw)
