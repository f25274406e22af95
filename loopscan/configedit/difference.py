"""What was changed in a configuration, safe to print: such files hold tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from loopscan.configedit.json5text import Json5Text
from loopscan.configfile import agent_key
from loopscan.masking import MASK, mask, mask_keys
from loopscan.policy import FIELDS
from loopscan.sanitize import clean

_CONTEXT: Final = 2
_LONG: Final = 160
"""Characters of a line that are shown in any case."""
_BESIDE: Final = 60
"""Characters of a longer line that are shown on either side of what was changed in it."""
_MOST: Final = 1000
"""Characters of a changed line."""
_NEWLINE: Final = re.compile("\r\n|[\n\r]")
_SHOWN_FIELDS: Final = frozenset(name.rpartition(".")[2] for name in FIELDS)
_LITERALS: Final = frozenset(("true", "false", "null"))


def difference(name: str, before: str, after: str, agents: Collection[str]) -> str:
    """Return what was changed from ``before`` to ``after`` (JSON5, or nothing) as a unified diff.

    Names and comments are shown as they are, keys and passwords in them masked. Of values only the fields of
    loop detection, ``true``, ``false``, ``null`` and the ids ``agents`` are; all others are ``***``, since every
    one of them could be a secret. Lines that are far longer than what was changed in them are cut. Without a
    change the result is empty; else it ends with a line break.
    """
    old, new = _lines(before, agents), _lines(after, agents)
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) > 5000)
    shown: list[str] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        shown.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@")
        for kind, old_start, old_end, new_start, new_end in group:
            gone, come = old[old_start:old_end], new[new_start:new_end]
            if kind == "equal":
                shown += (f" {clean(line, _LONG, keep='start')}" for line in gone)
                continue
            if len(gone) == len(come):
                gone, come = (list(side) for side in zip(*map(_around_change, gone, come), strict=True))
            shown += (f"-{clean(line, _MOST)}" for line in gone)
            shown += (f"+{clean(line, _MOST)}" for line in come)
    if not shown:
        return ""
    path = clean(name)
    return "\n".join([f"--- {path}", f"+++ {path}", *shown, ""])


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


def _around_change(old: str, new: str) -> tuple[str, str]:
    """Return two lines without what is far from where they differ."""
    if max(len(old), len(new)) <= _LONG:
        return old, new
    start = max(0, _alike(old, new) - _BESIDE)
    end = max(0, _alike(old[start:][::-1], new[start:][::-1]) - _BESIDE)
    head, tail = "…" if start else "", "…" if end else ""
    return f"{head}{old[start : len(old) - end]}{tail}", f"{head}{new[start : len(new) - end]}{tail}"


def _alike(one: str, other: str) -> int:
    """Return the number of characters that two texts begin with alike."""
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(one))


def _lines(text: str, agents: Collection[str]) -> Sequence[str]:
    lines = _NEWLINE.split("".join(_masked(text.removeprefix("\ufeff"), agents)))
    if not lines[-1]:
        lines.pop()
    return [line.expandtabs(4) for line in lines]


def _masked(text: str, agents: Collection[str]) -> Iterator[str]:
    """Yield the pieces of ``text`` as they may be shown; there are as many lines as before."""
    parsed = Json5Text(text)
    places = {token: at for at, token in enumerate(parsed.tokens)}
    done = 0
    for token in sorted((*parsed.tokens, *parsed.comments), key=lambda token: token.start):
        yield text[done : token.start]
        done = token.end
        written = text[token.start : token.end]
        if token.kind == "comment":
            yield _same_lines(mask(written), written)
        elif token.kind not in ("string", "word"):
            yield written
        elif parsed.is_name(places[token]):
            yield _same_lines(mask_keys(written), written)
        else:
            yield _value(parsed, places[token], written, agents)
    yield text[done:]


def _value(parsed: Json5Text, at: int, written: str, agents: Collection[str]) -> str:
    if parsed.tokens[at].kind == "string":
        if agent_key(parsed.string(at)) in agents:
            return _same_lines(mask_keys(written), written)
        return _same_lines(f"{written[0]}{MASK}{written[0]}", written)
    return written if written in _LITERALS or parsed.name_of(at) in _SHOWN_FIELDS else MASK


def _same_lines(shown: str, written: str) -> str:
    """Return ``shown`` if it has the lines of ``written``, else as many that say nothing."""
    lines = len(_NEWLINE.findall(written))
    return shown if len(_NEWLINE.findall(shown)) == lines else "\n".join([MASK] * (lines + 1))
