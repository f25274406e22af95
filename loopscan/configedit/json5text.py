"""Setting values in a JSON5 text, all other bytes of which stay: comments, order, spacing, quotes.

Why an editor of its own: of the libraries that keep comments, json-five takes the import name ``json5`` of the
parser in use, and json5-document runs on Python 3.12 and later alone. All that is needed is where names and
values begin and end, and the grammar for that is one regular expression. The text must be valid JSON5, which
the caller has its parser say; nothing here checks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from json import dumps
from typing import Final, NamedTuple, TypeAlias

from loopscan.sanitize import escape_json

#: What can be written into a text.
Value: TypeAlias = "bool | int | str | Sequence[Value] | Mapping[str, Value]"
#: What is to be set: by name in objects, by index in arrays.
Settings: TypeAlias = "Mapping[str | int, Settings | bool | int]"

#: What ends a line in JSON5.
LINE_BREAK: Final = re.compile("\r\n|[\n\r\u2028\u2029]")

_TOKEN: Final = re.compile(
    r"""
      (?P<blank>   [\s\ufeff]++ )
    | (?P<comment> //[^\n\r\u2028\u2029]*+ | /\*.*?\*/ )
    | (?P<sign>    [{}\[\]:,] )
    | (?P<string>  "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' )
    | (?P<word>    [^\s\ufeff{}\[\]:,"'/]++ )
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SEPARATOR: Final = re.compile(r"[ \t]?:[ \t]?")
_GAP: Final = re.compile(r"[ \t]?")


class Token(NamedTuple):
    """A piece of a text that is no white space."""

    kind: str
    """``comment``, ``string``, ``word`` (a number, a literal, a bare name) or one of ``{}[]:,``."""
    start: int
    end: int


class _Member(NamedTuple):
    """A member of an object, by the indices of its tokens; of an element of an array, ``name`` is ``value``."""

    name: int
    value: int
    last: int
    """The last token of the value."""
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Style:
    """How the members of an object are written."""

    broken: bool
    """Each on a line of its own; else all in one line."""
    indent: str = ""
    """What is before a member, if ``broken``."""
    unit: str = "  "
    """What each level adds to ``indent``."""
    quote: str = ""
    separator: str = ": "
    gap: str = " "
    """What follows a comma in a line."""
    pad: str = " "
    """What is inside of the braces in a line."""
    trailing: bool = True
    """There is a comma after the last, if ``broken``."""
    newline: str = "\n"

    def member(self, name: str, value: Value) -> str:
        """Return a member as it is written."""
        return f"{self.name(name)}{self.separator}{self.value(value)}"

    def name(self, name: str) -> str:
        """Return the name of a member as it is written."""
        if _PLAIN_NAME.fullmatch(name):
            return f"{self.quote}{name}{self.quote}"
        return _string(name)

    def value(self, value: Value) -> str:
        """Return the value of a member as it is written."""
        if isinstance(value, str):
            return _string(value)
        if isinstance(value, Mapping):
            inner = self._inner
            return self._enclosed("{}", self.pad, [inner.member(*member) for member in value.items()])
        if isinstance(value, Sequence):
            inner = self._inner
            return self._enclosed("[]", "", [inner.value(item) for item in value])
        return dumps(value)

    @property
    def _inner(self) -> _Style:
        return replace(self, indent=self.indent + self.unit)

    def _enclosed(self, braces: str, pad: str, items: Sequence[str]) -> str:
        if not items:
            return braces
        if self.broken:
            return f"{braces[0]}{self._inner.lines(items)}{self.newline}{self.indent}{braces[1]}"
        return f"{braces[0]}{pad}{self.line(items)}{pad}{braces[1]}"

    def lines(self, items: Sequence[str]) -> str:
        """Return ``items`` on lines of their own, with the line break before the first and none after the last."""
        body = f",{self.newline}{self.indent}".join(items)
        return f"{self.newline}{self.indent}{body}{',' if self.trailing else ''}"

    def line(self, items: Sequence[str]) -> str:
        """Return ``items`` in one line."""
        return f",{self.gap}".join(items)


def document(value: Mapping[str, Value]) -> str:
    """Return ``value`` as a JSON5 text of its own: bare names, trailing commas, a level is two blanks."""
    return _Style(broken=True).value(value) + "\n"


def with_values(text: str, settings: Settings) -> str:
    """Return ``text``, a JSON5 object, with ``settings`` in it and everything else as it was.

    A value that is there is replaced; an object that is there is gone into, and what is missing is added after
    its last member, in the way that the members around it are written. JSON stays JSON. Of names that are there
    twice, the last one is meant, as parsers do. Indices of arrays must exist.
    """
    return _Editor(text).edited(settings)


class Json5Text:
    """The tokens of a valid JSON5 text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.comments: list[Token] = []
        self.closing: dict[int, int] = {}
        """By the index of an opening brace, that of its closing one."""
        open_braces: list[int] = []
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup
            token = Token(match[0] if kind == "sign" else str(kind), *match.span())
            if kind == "comment":
                self.comments.append(token)
            elif kind != "blank":
                if token.kind in "{[":
                    open_braces.append(len(self.tokens))
                elif token.kind in "}]":
                    self.closing[open_braces.pop()] = len(self.tokens)
                self.tokens.append(token)

    def content(self, at: int) -> str:
        """Return what the token with the index ``at`` is, as it is written."""
        token = self.tokens[at]
        return self.text[token.start : token.end]

    def string(self, at: int) -> str:
        """Return what the string or the bare name with the index ``at`` says."""
        written = self.content(at)
        quoted = self.tokens[at].kind == "string"
        if "\\" not in written:
            return written[1:-1] if quoted else written
        import json5

        return str(json5.loads(written if quoted else f'"{written}"'))

    def is_name(self, at: int) -> bool:
        """Tell whether the token with the index ``at`` is the name of a member."""
        return at + 1 < len(self.tokens) and self.tokens[at + 1].kind == ":"

    def name_of(self, at: int) -> str | None:
        """Return the name of the member whose value begins with the token ``at``; ``None`` for any other token."""
        return self.string(at - 2) if at >= 2 and self.tokens[at - 1].kind == ":" else None


class _Editor(Json5Text):
    """Gathers what is to be changed in a text, and changes it at once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._splices: list[tuple[int, int, str]] = []

    def edited(self, settings: Settings) -> str:
        self._set(0, settings, self._general)
        pieces: list[str] = []
        done = 0
        for start, end, new in sorted(self._splices, key=lambda splice: splice[:2]):
            pieces += (self.text[done:start], new)
            done = end
        return "".join([*pieces, self.text[done:]])

    def _set(self, at: int, settings: Settings, around: _Style) -> None:
        """Set values in the object or array that opens with the token ``at``, in one that is written ``around``."""
        members = self._members(at)
        if self.tokens[at].kind == "[":
            style, there = around, dict[str | int, _Member](enumerate(members))
        else:
            style, there = self._style(at, members, around), {self.string(each.name): each for each in members}
        missing: dict[str, Value] = {}
        for name, new in settings.items():
            if name not in there:
                missing[str(name)] = _new(new)
                continue
            member = there[name]
            if isinstance(new, Mapping) and member.value in self.closing:
                self._set(member.value, new, style)
            else:
                self._splice(self.tokens[member.value].start, self.tokens[member.last].end, style.value(_new(new)))
        if missing:
            self._insert(at, members, [style.member(*each) for each in missing.items()], style)

    def _insert(self, at: int, members: Sequence[_Member], new: Sequence[str], style: _Style) -> None:
        """Insert members into the object at ``at``, after its last one and what is said of that in its line."""
        brace = self.tokens[self.closing[at]].start
        after = self.tokens[at].end
        if members:
            last = members[-1]
            after = self.tokens[last.last if last.comma is None else last.comma].end
            if last.comma is None:
                self._splice(after, after, ",")
        here = self._after_comments(after)
        if style.broken:
            body = style.lines(new)
            if LINE_BREAK.search(self.text, here, brace):
                self._splice(here, here, body)
            else:
                self._splice(here, brace, f"{body}{style.newline}{self._indent(self.tokens[at].start)}")
        elif members:
            self._splice(here, here, f"{style.gap}{style.line(new)}{',' if style.trailing else ''}")
        else:
            self._splice(here, brace, f"{style.pad}{style.line(new)}{style.pad}")

    def _after_comments(self, here: int) -> int:
        """Return where the comments end that follow ``here`` in the same line; ``here`` if there are none."""
        end = here
        while (match := _TOKEN.match(self.text, here)) is not None:
            if match.lastgroup == "comment":
                end = match.end()
            elif match.lastgroup != "blank" or LINE_BREAK.search(match[0]):
                break
            here = match.end()
        return end

    def _splice(self, start: int, end: int, new: str) -> None:
        self._splices.append((start, end, new))

    def _members(self, at: int) -> list[_Member]:
        found: list[_Member] = []
        named = self.tokens[at].kind == "{"
        here, end = at + 1, self.closing[at]
        while here < end:
            value = here + 2 if named else here
            last = self.closing.get(value, value)
            comma = last + 1 if self.tokens[last + 1].kind == "," else None
            found.append(_Member(here, value, last, comma))
            here = (last if comma is None else comma) + 1
        return found

    @cached_property
    def _general(self) -> _Style:
        """How objects of this text are written, as far as that shows anywhere."""
        signs = [token.kind for token in self.tokens]
        newline = LINE_BREAK.search(self.text)
        style = _Style(
            broken=True,
            quote='"',
            trailing=any(first == "," and second in "}]" for first, second in pairwise(signs)),
            newline=newline[0] if newline and newline[0] in "\r\n" else "\n",
        )
        for at, kind in enumerate(signs):
            if kind == "{" and LINE_BREAK.search(self.text, self.tokens[at].end, self.tokens[at + 1].start):
                outer, inner = (self._indent(token.start) for token in self.tokens[at : at + 2])
                if inner.startswith(outer) and inner != outer:
                    style = replace(style, unit=inner.removeprefix(outer))
                    break
        names = [at for at in range(len(signs)) if self.is_name(at)]
        return replace(style, quote=self._quote(names, style.quote))

    def _style(self, at: int, members: Sequence[_Member], around: _Style) -> _Style:
        """Return how the members of the object at ``at`` are written, in an object that is written ``around``."""
        opening, closing = self.tokens[at], self.tokens[self.closing[at]]
        if not members:
            broken = around.broken or LINE_BREAK.search(self.text, opening.end, closing.start) is not None
            return replace(around, broken=broken, indent=self._indent(opening.start) + around.unit)
        first, last = members[0], members[-1]
        before = self.text[self.tokens[last.name - 1].end : self.tokens[last.name].start]
        pad = self.text[opening.end : self.tokens[first.name].start]
        separator = self.text[self.tokens[last.name].end : self.tokens[last.value].start]
        separator = separator if _SEPARATOR.fullmatch(separator) else around.separator
        own_lines = LINE_BREAK.search(before) is not None
        start = self.tokens[last.name if own_lines else at].start
        return _Style(
            broken=own_lines or LINE_BREAK.search(self.text, self.tokens[last.last].end, closing.start) is not None,
            indent=self._indent(start) + ("" if own_lines else around.unit),
            unit=around.unit,
            quote=self._quote([each.name for each in members], around.quote),
            separator=separator,
            gap=before if len(members) > 1 and _GAP.fullmatch(before) else " " if separator != ":" else "",
            pad=pad if _GAP.fullmatch(pad) else around.pad,
            trailing=last.comma is not None,
            newline=around.newline,
        )

    def _quote(self, names: Sequence[int], otherwise: str) -> str:
        """Return what is around ``names``; those that need quotes show nothing."""
        if any(self.tokens[name].kind == "word" for name in names):
            return ""
        plain = (name for name in names if _PLAIN_NAME.fullmatch(self.content(name)[1:-1]))
        return next((self.content(name)[0] for name in plain), otherwise)

    def _indent(self, position: int) -> str:
        """Return the white space that the line of ``position`` begins with."""
        start = max(self.text.rfind(each, 0, position) for each in "\n\r\u2028\u2029") + 1
        end = start
        while self.text[end] in " \t":
            end += 1
        return self.text[start:end]


def _new(settings: Settings | bool | int) -> Value:
    if isinstance(settings, Mapping):
        return {str(name): _new(value) for name, value in settings.items()}
    return settings


def _string(text: str) -> str:
    return escape_json(dumps(text, ensure_ascii=False))
