"""The random ids of envelopes around untrusted content, which change on every call.

Rule (2026.9 and later): the 16-hex id of a matching pair of markers counts as constant when both
ids are equal and no other marker, well formed or not, stands between. The quotes may be escaped by
2^n-1 backslashes, as JSON inside JSON has them, alike on all four; a quote inside the envelope whose
backslashes do not fit that depth leaves the envelope as it is.
"""

from __future__ import annotations

import re
from typing import Final

_HINT: Final = "EXTERNAL_UNTRUSTED_CONTENT"
_MARKER: Final = re.compile(
    r"<<<(?P<end>END_)?EXTERNAL_UNTRUSTED_CONTENT"
    r'(?: id=(?P<open>\\*)"(?P<id>[0-9a-f]{16})(?P<close>\\*)">>>)?'
)
# A run of backslashes is tried once, from its start: without that, one that no quote ends costs its length squared.
_QUOTE: Final = re.compile(r'(?<!\\)(\\*)"')
_CONSTANT: Final = "0" * 16


def without_nonces(text: str) -> str:
    """Return ``text`` with the ids of well-formed envelopes replaced by a constant. Linear in its length."""
    if _HINT not in text:
        return text
    pieces: list[str] = []
    done = 0
    start: re.Match[str] | None = None
    for marker in _MARKER.finditer(text):
        if marker["id"] is None or marker["open"] != marker["close"]:
            start = None
        elif not marker["end"]:
            start = marker
        else:
            if start and start["id"] == marker["id"] and _fits(text, start, marker):
                pieces += (text[done : start.start("id")], _CONSTANT, text[start.end("id") : marker.start("id")])
                pieces.append(_CONSTANT)
                done = marker.end("id")
            start = None
    pieces.append(text[done:])
    return "".join(pieces)


def _fits(text: str, start: re.Match[str], end: re.Match[str]) -> bool:
    """Whether the quotes of an envelope and those inside it are escaped to one depth."""
    backslashes = len(start["open"])
    unit = backslashes + 1
    if start["open"] != end["open"] or unit & (unit - 1):
        return False
    if unit == 1:
        return True
    inside = _QUOTE.finditer(text, start.end(), end.start())
    return all((len(quote[1]) + 1) % unit == 0 for quote in inside)
