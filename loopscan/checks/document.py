"""YAML and JSON as people write them: values that remember their place, so that a mistake is named where it stands.

libyaml composes the nodes; what a plain scalar means is decided here by the core schema of YAML 1.2 (``yes`` and
``on`` are words), and a number keeps how it was written: ``ruleset: 2026.10`` is not ``2026.1``.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from loopscan.checks.mistakes import TOP, Mistake, Mistakes, Spot
from loopscan.sanitize import clean
from loopscan.transcripts.places import open_file

#: Bytes that such a file may have; a snapshot of 50,000 marks has some 16 million.
MAX_BYTES: Final = 64 << 20
_DEEPEST = 40
_MOST_VALUES = 5_000_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_TYPES = frozenset({"map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())}
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class WrittenInt(int):
    """A whole number that remembers how it was written."""

    written: str


class WrittenFloat(float):
    """A number that remembers how it was written."""

    written: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read."""

    path: str
    """As it is to be named in messages."""
    text: str
    root: yaml.Node | None
    """``None`` for a file without content."""
    value: Any
    """Dictionaries, lists, ``str``, ``bool``, ``None``, :class:`WrittenInt` and :class:`WrittenFloat`."""
    json: bool = False
    """Whether it was read as JSON."""

    def node(self, path: tuple[object, ...]) -> yaml.Node | None:
        """Return the node at a path of keys and indices, or the last one on the way there that exists."""
        return self._walk(path)[1]

    def spot(self, path: tuple[object, ...], *, key: bool = False) -> Spot:
        """Return where the value at ``path`` stands, or its ``key``; as near as there is something."""
        name, value = self._walk(path)
        node = name if key and name is not None else value
        return TOP if node is None else _spot(node.start_mark)

    def again(self, text: str) -> Document:
        """Return the same file with another text. Raises :class:`ConfigError` as :func:`parse` does."""
        return parse(text, self.path, json=self.json)

    def key(self, path: tuple[object, ...]) -> str | None:
        """Return the last key on the way to ``path`` that is there."""
        last, value = None, self.value
        for step in path:
            if isinstance(value, dict) and step in value:
                last, value = str(step), value[step]
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
        return last

    def error(self, spot: Spot | None, what: str) -> Mistakes:
        """Return an error that names the place."""
        return Mistakes([Mistake(self.path, spot, what)])

    def _walk(self, path: tuple[object, ...]) -> tuple[yaml.Node | None, yaml.Node | None]:
        name: yaml.Node | None = None
        node = self.root
        for step in path:
            if isinstance(node, yaml.MappingNode):
                found = next((pair for pair in node.value if pair[0].value == step), None)
                if found is not None:
                    name, node = found
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                name, node = None, node.value[step]
        return name, node


def read(path: Path, shown: str) -> Document:
    """Read a file of YAML or JSON; ``shown`` is what messages call it.

    Raises :class:`Mistakes` for what cannot be read, is too large, or is neither, with line and column.
    """
    try:
        with io.BufferedReader(open_file(path)) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _error(shown, None, f"cannot be read: {error.strerror or 'input/output error'}") from error
    if len(data) > MAX_BYTES:
        raise _error(shown, None, f"has more than {MAX_BYTES >> 20} MiB, which is too much for such a file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(shown, Spot(line, 1), "is not UTF-8 text; save it as UTF-8") from error
    return parse(text, shown, json=path.suffix == ".json")


def parse(text: str, shown: str, *, json: bool = False) -> Document:
    """Parse YAML; with ``json`` escapes that JSON alone has are understood as well.

    Raises :class:`Mistakes` with line and column for what is neither, more than one document, keys that stand
    twice or are no text, and values of a type that data has not.
    """
    if json:
        text = _PAIR.sub(lambda pair: _character(pair[1], pair[2]), text)
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        what = str(error.problem or error.context or "it is no YAML")
        raise _error(shown, _spot(error.problem_mark or error.context_mark), _explained(what)) from error
    except yaml.YAMLError as error:
        raise _error(shown, None, clean(str(error).partition("\n")[0], 160)) from error
    except RecursionError as error:
        raise _error(shown, None, "is nested too deeply for such a file") from error
    document = Document(shown, text, root, None, json)
    return document if root is None else replace(document, value=_Values(document).of(root))


def _explained(what: str) -> str:
    """Return what the parser says, in words that tell what to do where its own do not."""
    if "cannot start any token" in what:
        return f"{clean(what, 160)}; indent with spaces, and put text with signs in quotes"
    if "another document" in what:
        return 'holds a second document, after "---": a file is one document'
    return clean(what, 160)


def _error(shown: str, spot: Spot | None, what: str) -> Mistakes:
    return Mistakes([Mistake(shown, spot, what)])


class _Values:
    """Makes values of nodes. What is used again by an alias is made once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._made: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        """How many values each node comes to, what aliases repeat counted each time."""

    def of(self, node: yaml.Node, depth: int = 0) -> Any:  # noqa: ANN401 - any value of YAML
        if id(node) in self._made:
            return self._made[id(node)]
        if depth > _DEEPEST:
            raise self._document.error(_spot(node.start_mark), "is nested too deeply for such a file")
        if node.tag.removeprefix(_TAG) not in _TYPES:
            raise self._document.error(_spot(node.start_mark), f"has the type {clean(node.tag, 60)}; leave it out")
        made: Any
        if isinstance(node, yaml.MappingNode):
            made = self._mapping(node, depth)
        elif isinstance(node, yaml.SequenceNode):
            made = [self.of(item, depth + 1) for item in node.value]
        else:
            made = self._scalar(node)
        self._made[id(node)] = made
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        children = [part[1] if isinstance(part, tuple) else part for part in parts]
        size = self._sizes[id(node)] = 1 + sum(self._sizes[id(child)] for child in children)
        if size > _MOST_VALUES:
            raise self._document.error(_spot(node.start_mark), "comes to too many values, by aliases")
        return made

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._document.error(_spot(key.start_mark), "a key must be a word")
            if key.value in made:
                raise self._document.error(_spot(key.start_mark), f'"{clean(key.value, 60)}" stands here twice')
            made[key.value] = self.of(value, depth + 1)
        return made

    def _scalar(self, node: Any) -> Any:  # noqa: ANN401
        text: str = node.value
        return text if node.style else _plain(text)


def _plain(text: str) -> Any:  # noqa: ANN401
    """Return what a scalar without quotes means."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    number: WrittenInt | WrittenFloat
    if _INT.fullmatch(text):
        number = WrittenInt(text)
    elif _FLOAT.fullmatch(text):
        number = WrittenFloat(text)
    else:
        return text
    number.written = text
    return number


def _character(high: str, low: str) -> str:
    return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))


def _spot(mark: Any) -> Spot:  # noqa: ANN401 - the two implementations have marks of their own
    return TOP if mark is None else Spot(mark.line + 1, mark.column + 1)
