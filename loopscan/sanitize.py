"""Making text from transcripts safe to show: on a terminal, in a log, in a report.

Nothing from a transcript is printed without going through :func:`clean`, and no arguments without
:func:`preview`. Rich never interprets such text: see :mod:`loopscan.reports.console`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from json import dumps
from typing import Literal

from loopscan.events import Json
from loopscan.masking import (
    MASK,
    NAMING_FIELDS,
    VALUE_FIELDS,
    flat_name,
    is_secret_name,
    mask,
    mask_keys,
    secret_arguments,
)

__all__ = ["clean", "escape_json", "mask", "name", "preview"]

# Controls, format characters, surrogates, private use, noncharacters, line and paragraph
# separators, and what Unicode calls default-ignorable (variation selectors, fillers, tags): a fixed
# table, so that reports do not depend on the Unicode version of the interpreter.
_UNSAFE_RANGES: tuple[tuple[int, int], ...] = (
    (0x0000, 0x001F),
    (0x007F, 0x009F),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xD800, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0xFFFE, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),
    (0x1D173, 0x1D17A),
    *((plane << 16 | 0xFFFE, plane << 16 | 0xFFFF) for plane in range(1, 14)),
    (0xE0000, 0x10FFFF),
)
_UNSAFE_CLASS = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _UNSAFE_RANGES)
_UNSAFE = re.compile(f"[{_UNSAFE_CLASS}]")
_UNSAFE_IN_JSON = re.compile(rf"(?!\n)[{_UNSAFE_CLASS}]")

_SHORT_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_PRESENTATION = "\ufe0e\ufe0f"
# What sits on the character before it, besides combining marks: the vowel "am" of Thai and Lao, halfwidth
# voicing marks, the vowels and final consonants of Hangul syllables written in parts.
_EXTENDER_RANGES: tuple[tuple[int, int], ...] = (
    (0x0E33, 0x0E33),
    (0x0EB3, 0x0EB3),
    (0x1160, 0x11FF),
    (0xD7B0, 0xD7FB),
    (0xFF9E, 0xFF9F),
    (0x1F3FB, 0x1F3FF),
)
_EXTENDERS = frozenset(chr(code) for first, last in _EXTENDER_RANGES for code in range(first, last + 1))
# More accents than this on one character are a drawing that runs over the lines around it.
_MAX_ACCENTS = 4
_ELLIPSIS = "…"


def clean(text: str, limit: int | None = None, *, keep: Literal["ends", "start"] = "ends") -> str:
    r"""Return ``text`` as one printable line that cannot act on a terminal or a log.

    Control and format characters, direction marks, invisible characters, lone surrogates and the
    like become visible escapes such as ``\x1b`` or ``\u202e``. With a ``limit`` the result has at
    most that many characters, what was left out being one ``…``: in the middle, or at the end with
    ``keep="start"``. An escape is never cut in two. Clean text comes back as it is.
    """
    if limit is None or len(text) <= limit:
        if text.isascii() and text.isprintable():
            return text
        units = _units(text)
        whole = "".join(units)
        if limit is None or len(whole) <= limit:
            return whole
        return _shorten(units, reversed(units), limit, keep)
    # An escape is never shorter than what it stands for, so no more than this can be of use.
    tail = _units(text[len(text) - limit :]) if keep == "ends" and limit > 0 else []
    return _shorten(_units(text[: max(limit, 0)]), reversed(tail), limit, keep)


def _shorten(head: Iterable[str], tail: Iterable[str], limit: int, keep: Literal["ends", "start"]) -> str:
    if limit <= 0:
        return ""
    room = limit - len(_ELLIPSIS)
    ending = _fill(tail, room // 3) if keep == "ends" else []
    beginning = _fill(head, room - sum(map(len, ending)))
    return "".join([*beginning, _ELLIPSIS, *reversed(ending)])


def _fill(units: Iterable[str], room: int) -> list[str]:
    taken: list[str] = []
    for unit in units:
        room -= len(unit)
        if room < 0:
            break
        taken.append(unit)
    return taken


def _units(text: str) -> list[str]:
    """Split ``text`` into what may not be cut: a character with its accents, or one escape."""
    units: list[str] = []
    accents = _MAX_ACCENTS  # there is nothing yet that an accent could sit on
    before = ""
    for char in text:
        if " " <= char <= "~":
            units.append(char)
            accents = 0
        elif _UNSAFE.match(char):
            if char in _PRESENTATION and before and unicodedata.category(before) in {"So", "Sm"}:
                units[-1] += char
            else:
                units.append(_escape(char))
                accents = _MAX_ACCENTS
        elif _is_accent(char):
            if accents < _MAX_ACCENTS:
                units[-1] += char
                accents += 1
            else:
                units.append(_escape(char))
        else:
            units.append(char)
            accents = 0
        before = char
    return units


def _is_accent(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Me", "Mc"} or char in _EXTENDERS


def _escape(char: str) -> str:
    code = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def escape_json(document: str) -> str:
    r"""Return a JSON text with every character that could act on a terminal written as ``\uXXXX``.

    It stays the same JSON: outside of strings such characters cannot occur, except newlines, which
    are kept. The result can be encoded as UTF-8 even where strings hold lone surrogates. Of accents
    on one character the first four stay.
    """
    document = _UNSAFE_IN_JSON.sub(_json_escape, document)
    if document.isascii():
        return document
    return _accent_flood().sub(lambda flood: "".join(map(_json_escape, flood[0])), document)


@cache
def _accent_flood() -> re.Pattern[str]:
    """Return what matches accents beyond the fourth in a row."""
    # No plane but the first two has accents that are not unsafe already.
    accents = "".join(re.escape(char) for char in map(chr, range(0x300, 0x20000)) if _is_accent(char))
    return re.compile(f"(?<=[{accents}]{{{_MAX_ACCENTS}}})[{accents}]+")


def _json_escape(match: re.Match[str] | str) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


# -- names ----------------------------------------------------------------------------------------

# Of a longer name no more than this is looked at, at either end.
_NAME_SCAN = 4096
_KEY_REST = re.compile(r"[\w%+/=.-]*")


def name(text: str, limit: int | None = None, *, keep: Literal["ends", "start"] = "ends") -> str:
    """Return the name of a tool, model or session as :func:`clean` does, unless it is a key itself.

    Only what is unmistakably a key, or a password in a URL, becomes ``***``: identifiers that are
    merely random stay readable. Ordinary names cost little.
    """
    if limit is not None and len(text) > 2 * _NAME_SCAN and limit <= _NAME_SCAN // 4:
        # The rest of a key that the cut has gone through goes as well.
        tail = text[len(text) - _NAME_SCAN :]
        tail = tail[_KEY_REST.match(tail).end() :]  # type: ignore[union-attr]
        head = mask_keys(text[:_NAME_SCAN])[: _NAME_SCAN // 2]
        if len(tail) < limit:
            return clean(head + _ELLIPSIS, limit, keep="start")
        return clean(head + _ELLIPSIS + mask_keys(tail), limit, keep=keep)
    return clean(mask_keys(text), limit, keep=keep)


# -- previews of arguments ----------------------------------------------------------------------

# A string is cut to this before it is scanned, and loses this much more at the cut: what is left of
# a secret there is either long enough to be recognised, or gone.
_SCAN = 1024
_CUT_EDGE = 512
_MAX_DEPTH = 12
_MAX_FIELDS = 1000
_MAX_WORDS = 200
_KEY_LIMIT = 32
_SHARE = 0.45
_COMMAND_NAMES = frozenset({"command", "cmd", "program", "executable", "exe", "binary", "bin", "file"})


def preview(arguments: Json, limit: int = 60) -> str:
    """Return tool arguments as one short clean line, secrets masked.

    Fields, options and pairs with a secret's name have their values masked whatever these are;
    everything else goes through :func:`mask` before it is shortened. The work is bounded, however
    large or deep the arguments are. ``limit`` is the length of the result in characters.
    """
    pieces = _Pieces(2 * limit + 16)
    several = isinstance(arguments, (dict, list)) and len(arguments) > 1
    _render(arguments, pieces, max(8, int(limit * _SHARE)) if several else limit, 0)
    return clean("".join(pieces.parts), limit, keep="start")


class _Pieces:
    """Collects output up to a budget of characters."""

    __slots__ = ("parts", "room")

    def __init__(self, room: int) -> None:
        self.parts: list[str] = []
        self.room = room

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.room -= len(text)


def _render(value: Json, pieces: _Pieces, share: int, depth: int, program: Sequence[str] = ()) -> None:
    if isinstance(value, str):
        pieces.add(_quoted(value, share))
    elif isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            pieces.add("{…}")
        else:
            _render_object(value, pieces, share, depth)
    elif isinstance(value, list):
        if depth >= _MAX_DEPTH:
            pieces.add("[…]")
        else:
            _render_array(value, pieces, share, depth, program)
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        pieces.add(_ELLIPSIS)  # beyond what the interpreter is willing to spell
    else:
        pieces.add(dumps(value))


def _render_object(value: dict[str, Json], pieces: _Pieces, share: int, depth: int) -> None:
    named = False
    program: list[str] = []
    for key, item in islice(value.items(), _MAX_FIELDS):
        if isinstance(item, str) and len(item) <= 256:
            flat = flat_name(key)
            if flat in NAMING_FIELDS and is_secret_name(item):
                named = True
            elif flat in _COMMAND_NAMES:
                program += item.split()
    separator = "{"
    for key, item in value.items():
        pieces.add(f"{separator}{_quoted(key, _KEY_LIMIT)}:")
        separator = ","
        if pieces.room <= 0:
            break
        if is_secret_name(key) or (named and flat_name(key) in VALUE_FIELDS):
            pieces.add(f'"{MASK}"')
        else:
            _render(item, pieces, share, depth + 1, program)
        if pieces.room <= 0:
            break
    pieces.add("}" if value else "{}")


def _render_array(value: list[Json], pieces: _Pieces, share: int, depth: int, program: Sequence[str]) -> None:
    separator = "["
    secret = False
    # The words before are the program's, if that stands beside the list.
    words = [*program, *(item if isinstance(item, str) else "" for item in islice(value, _MAX_WORDS))]
    secrets = {at - len(program) for at in secret_arguments(words)}
    for at, item in enumerate(value):
        pieces.add(separator)
        separator = ","
        if secret or at in secrets:
            pieces.add(f'"{MASK}"')
        else:
            _render(item, pieces, share, depth + 1)
        if pieces.room <= 0:
            break
        # An argument vector: ["--password", "hunter2"], or a header with its value.
        secret = isinstance(item, str) and len(item) <= 80 and _names_secret(item)
    pieces.add("]" if value else "[]")


_PLAIN_NAME = re.compile(r"-{0,2}[\w.-]+:?")


def _names_secret(item: str) -> bool:
    return _PLAIN_NAME.fullmatch(item) is not None and is_secret_name(item)


def _quoted(text: str, limit: int) -> str:
    """Return ``text`` masked, shortened and in quotes, as JSON would write it."""
    scan = max(_SCAN, 8 * limit)
    if len(text) > scan + _CUT_EDGE:
        masked = mask(text[: scan + _CUT_EDGE])
        masked = masked[: max(0, len(masked) - _CUT_EDGE)] + _ELLIPSIS
    else:
        masked = mask(text)
    if len(masked) > limit:
        masked = masked[: max(0, limit - 1)] + _ELLIPSIS
    return dumps(masked, ensure_ascii=False)


# What a runner of GitHub takes for a command: at the beginning of a line, and anywhere in it.
_COMMAND = re.compile(r"^(\s*):(?=:)|##\[")


def inert(line: str) -> str:
    """Return ``line`` with nothing in it that a log of CI would act on."""
    return _COMMAND.sub(lambda found: "##\\x5b" if found[1] is None else f"{found[1]}\\x3a", line)
