"""Snapshots written into files of expectations, and nothing else of them changed.

A file keeps its comments, its order and what was written by hand: only the lines of the snapshot are replaced, and of
those the ones that still hold stay as they are.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import yaml

from loopscan.checks.document import Document
from loopscan.checks.folders import ENDINGS
from loopscan.checks.mistakes import TOP
from loopscan.checks.tasks import DEFAULT_RULESET, Task
from loopscan.errors import ConfigError, UsageError
from loopscan.sanitize import clean

_KEY: Final = "snapshot"
_STEP = "  "
#: Old lines times new ones that are compared each with each.
MOST_COMPARED: Final = 4_000_000
#: An ending of a name; the fraction of a second at the end of a copy's name is none.
_ENDING = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]*$")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: What stands before a comment, quoted text as a whole; then the comment.
_COMMENT = re.compile(r"""((?:"(?:\\.|[^"\\])*"|'[^']*'|[^"'#]|(?<![ \t])#)*?)([ \t]+#.*)""")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def rewritten(document: Document, within: tuple[object, ...], snapshot: Mapping[str, Any]) -> Document:
    """Return ``document`` with ``snapshot`` as that of the check at ``within``.

    Raises :class:`ConfigError` where the file is written in a way that cannot be changed without touching the rest.
    """
    if document.root is not None and not isinstance(document.value, dict):
        raise document.error(TOP, "the snapshot cannot be written here: write it by hand")
    try:
        after = document.again(_spliced(document, within, snapshot))
        kept = _without(document.value, within) == _without(after.value, within)
        written = _at(after.value, (*within, _KEY))
    except ConfigError:
        after, kept, written = document, False, None
    if not kept or not _says(written, snapshot):
        spot = document.spot(within)
        raise document.error(spot, "the snapshot cannot be written without touching the rest: write it by hand")
    return after


def expectation_beside(transcript: Path) -> Path:
    """Return the file in which the expectation of a transcript is to be written that has none yet.

    It is called like the transcript, without its last ending where no other file could be meant. Raises
    :class:`UsageError` if such files are there, and about something else.
    """
    name = transcript.name
    base = _ENDING.sub("", name.removesuffix(".gz").removesuffix(".zst")) or name
    beside = [each.name for each in transcript.parent.iterdir()]
    others = [each for each in beside if each.startswith(f"{base}.") and each != name]
    for candidate in (base, name) if not others else (name,):
        path = transcript.with_name(candidate + ENDINGS[0])
        if path.name not in beside:
            return path
    raise UsageError(f"{clean(str(path))} is there already, and is about something else: name {clean(name)} in it")


def new_file(task: Task, snapshot: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return the text of a new file: the ruleset, ``settings`` of the command line, and the snapshot."""
    pinned = {"ruleset": task.settings.get("ruleset", DEFAULT_RULESET), **settings}
    lines = ["# What the transcript of this name must meet; loopscan check --update rewrites the snapshot."]
    lines += [f"{name}: {_flow(value)}" for name, value in pinned.items()]
    return "\n".join([*lines, *_block(snapshot, "")]) + "\n"


# -- where the snapshot goes --------------------------------------------------------------------


def _spliced(document: Document, within: tuple[object, ...], snapshot: Mapping[str, Any]) -> str:
    text, newline = document.text, "\r\n" if "\r\n" in document.text else "\n"
    if document.root is None and document.json:
        return f'{{\n{_STEP}"{_KEY}": {_braces(snapshot, _STEP, json.dumps)}\n}}\n'
    if document.root is None:
        return newline.join([*text.splitlines(), *_block(snapshot, ""), ""])
    check = document.node(within)
    if not isinstance(check, yaml.MappingNode):
        return text
    pair = next((pair for pair in check.value if pair[0].value == _KEY), None)
    if check.flow_style:
        return _in_flow(document, check, pair, snapshot)
    lines = text.splitlines(keepends=True)
    column = check.value[0][0].start_mark.column
    indent = lines[check.value[0][0].start_mark.line][:column]
    indent = re.sub(r"[^ ]", " ", indent)  # the first key may stand behind the dash of a list
    if pair is None:
        at = _last_line(check) + 1
        new = _block(snapshot, indent)
        if at and not lines[at - 1].endswith("\n"):
            lines[at - 1] += newline
        return "".join([*lines[:at], *(line + newline for line in new), *lines[at:]])
    first, last = pair[0].start_mark.line, max(_last_line(pair[1]), pair[0].start_mark.line)
    old = [line.rstrip("\r\n") for line in lines[first : last + 1]]
    new = _block(snapshot, indent)
    prefix = old[0][: pair[0].start_mark.column]  # "- " where the snapshot is the first key of a list's item
    new[0] = prefix + new[0].lstrip(" ")
    made = list(_kept(old, new))
    return "".join([*lines[:first], *(line + newline for line in made), *lines[last + 1 :]])


def _in_flow(document: Document, check: yaml.MappingNode, pair: Any, snapshot: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Write the snapshot into a mapping in braces, as in JSON."""
    text, encode = document.text, json.dumps if document.json else _flow
    if pair is not None:
        start, end = pair[1].start_mark.index, pair[1].end_mark.index
        margin = " " * int(pair[0].start_mark.column)
        return text[:start] + _braces(snapshot, margin, encode) + text[end:]
    at = check.value[-1][1].end_mark.index if check.value else check.start_mark.index + 1
    margin = " " * int(check.value[-1][0].start_mark.column if check.value else check.start_mark.column + 2)
    comma = "," if check.value else ""
    end = "" if check.value else f"\n{margin[2:]}"
    return f'{text[:at]}{comma}\n{margin}"{_KEY}": {_braces(snapshot, margin, encode)}{end}{text[at:]}'


def _last_line(node: Any) -> int:  # noqa: ANN401 - any kind of node
    """Return the line in which the content of a node ends: its own end is where the next one begins."""
    line: int = node.end_mark.line
    if isinstance(node, yaml.ScalarNode):
        folded = node.style in {"|", ">"} and node.end_mark.column == 0
        return line - 1 if folded else line
    if node.flow_style or not node.value:
        return line
    if isinstance(node, yaml.SequenceNode):
        return _last_line(node.value[-1])
    key, value = node.value[-1]
    empty = isinstance(value, yaml.ScalarNode) and not value.value and not value.style
    return _last_line(key if empty else value)


def _kept(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the new lines; where an old one says the same, that one; comments of the old ones stay."""
    comments: dict[int, list[str]] = {}
    said: list[str] = []
    places: list[int] = []
    for number, line in enumerate(old):
        if not line.strip() or line.lstrip().startswith("#"):
            comments.setdefault(len(said), []).append(line)
        else:
            said.append(_apart(line)[0].rstrip())
            places.append(number)
    for what, start, end, first, last in _opcodes(said, [line.rstrip() for line in new]):
        if what == "equal":
            for at in range(start, end):
                yield from comments.pop(at, ())
                yield old[places[at]]
            continue
        pairs = end - start if end - start == last - first else 0
        for at in range(start, end):
            yield from comments.pop(at, ())
            if pairs:
                yield new[first + at - start] + _apart(old[places[at]])[1]
        if not pairs:
            lines = new[first:last]
            for at in range(start, end):
                before, comment = _apart(old[places[at]])
                if comment and at == 0 and lines:
                    lines[0] += comment  # of the key itself
                elif comment:
                    yield before[: len(before) - len(before.lstrip())] + comment.lstrip()
            yield from lines
    yield from comments.pop(len(said), ())


def _opcodes(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Return how to get from the old lines to the new; where both are very many, all that differs is one step."""
    if len(old) * len(new) <= MOST_COMPARED:
        return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    return [("equal", 0, same, 0, same), ("replace", same, len(old), same, len(new))]


def _apart(line: str) -> tuple[str, str]:
    """Return what a line says, and the comment behind it with the spaces between; ``#`` in quotes is none."""
    found = _COMMENT.fullmatch(line)
    return (found[1], found[2]) if found else (line, "")


# -- how it is written --------------------------------------------------------------------------


def _block(snapshot: Mapping[str, Any], indent: str) -> list[str]:
    lines = [f"{indent}{_KEY}:"]
    for name, value in snapshot.items():
        if name == "marks" and value:
            lines.append(f"{indent}{_STEP}{name}:")
            lines += [f"{indent}{_STEP}{_STEP}- {_flow(mark)}" for mark in value]
        else:
            lines.append(f"{indent}{_STEP}{name}: {_flow(value)}")
    return lines


def _flow(value: Any) -> str:  # noqa: ANN401 - a value of JSON
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value.lower() not in _WORDS else _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    return (
        '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _escaped(char)) for char in text) + '"'
    )


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _braces(snapshot: Mapping[str, Any], margin: str, encode: Callable[[Any], str]) -> str:
    lines = [f'{_STEP}"{name}": {encode(value)}' for name, value in snapshot.items() if name != "marks"]
    marks = [f"\n{margin}{_STEP}{_STEP}{encode(mark)}" for mark in snapshot["marks"]]
    end = f"\n{margin}{_STEP}]" if marks else "]"
    lines.append(f'{_STEP}"marks": [' + ",".join(marks) + end)
    return "{" + ",".join(f"\n{margin}{line}" for line in lines) + f"\n{margin}}}"


# -- whether it is right ------------------------------------------------------------------------


def _says(written: Any, snapshot: Mapping[str, Any]) -> bool:  # noqa: ANN401
    """Tell whether a parsed snapshot says what was to be written; text may look like a number there."""
    if not isinstance(written, dict):
        return False
    return bool(json.loads(json.dumps(snapshot)) == written)


def _without(value: Any, within: tuple[object, ...]) -> Any:  # noqa: ANN401
    """Return ``value`` without the snapshot of the check at ``within``."""
    if not within:
        return {name: each for name, each in (value or {}).items() if name != _KEY}
    step, *rest = within
    if isinstance(value, list) and isinstance(step, int):
        return [_without(each, tuple(rest)) if at == step else each for at, each in enumerate(value)]
    return {name: _without(each, tuple(rest)) if name == step else each for name, each in value.items()}


def _at(value: Any, path: tuple[object, ...]) -> Any:  # noqa: ANN401
    for step in path:
        value = value[step]
    return value
