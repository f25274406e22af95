"""The file of a baseline: JSON with one mark a line, in a stable order, so that version control shows what changed.

Its schema is ``loopscan.baseline/1``. What it holds is of the user's own making, yet names of sessions and tools came
from transcripts: messages show them neutralised.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast

import orjson

from loopscan.checks.baseline.data import Baseline, Checked, KnownMark, KnownSession, Settings, Values
from loopscan.checks.baseline.ignores import SOURCE, Ignore
from loopscan.errors import ConfigError
from loopscan.fingerprints import Content
from loopscan.marks import Detector, Kind, Level
from loopscan.policy import member, quoted, shown
from loopscan.reports.encode import encode
from loopscan.sanitize import clean
from loopscan.transcripts.places import open_file
from loopscan.wholefile import whole_file

SCHEMA: Final = "loopscan.baseline/1"

_UPDATE: Final = "the same command with --update"

_TOP: Final = ("schema", "version", "made_with", "checked", "ignores", "marks", "sessions")
_MADE_WITH: Final = ("ruleset", "mode", "scope", "arm", "config", "agents")
_CHECKED: Final = ("sources", "sessions", "runs", "calls")
_SESSION: Final = ("session", "calls", "source")
_NEEDED_OF_A_MARK: Final = ("session", "kind", "detector", "level", "source")
_MARK: Final = (*Content._fields, "times", SOURCE)
_IGNORE: Final = ("match", "reason", "until")
_MATCH: Final = (*Content._fields, SOURCE)
_WHOLE: Final = frozenset(("count", "times"))

_WORDS: Final[dict[str, dict[str, str]]] = {
    "kind": {kind.value: kind for kind in Kind if kind is not Kind.GUARD_ARMED},
    "detector": {detector.value: detector for detector in Detector},
    "level": {level.value: level for level in Level},
}
"""Fields that have one of a few values."""

_CONFLICT: Final = re.compile(rb"^(?:<{7}|>{7}|={7}|\|{7})(?:[ \r\n]|\Z)", re.MULTILINE)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Object = Mapping[str, object]


class NoBaselineError(ConfigError):
    """There is no such file: the first update makes it."""


def load(path: str | os.PathLike[str]) -> Baseline:
    """Return the baseline in the file ``path``.

    Raises :class:`NoBaselineError` if there is no such file, and :class:`~loopscan.errors.ConfigError` for one that
    cannot be read or makes no sense, with the line or the field at fault.
    """
    name = clean(os.fspath(path))
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with open_file(path) as stream:
            data = stream.readall()
    except FileNotFoundError:
        raise NoBaselineError(f"there is no baseline {name}; {_UPDATE} makes it") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or "no valid path"
        raise ConfigError(f"cannot read the baseline {name}: {reason}") from None
    return _Reading(name).baseline(_parse(data, name))


def write(baseline: Baseline, path: str | os.PathLike[str]) -> None:
    """Write ``baseline`` to the file ``path``, which holds the old one until the new one is complete.

    Raises :class:`~loopscan.errors.UsageError` if it cannot be written.
    """
    with whole_file(os.fspath(path)) as out:
        out.writelines(_lines(baseline))


# -- writing ------------------------------------------------------------------------------------


def _lines(baseline: Baseline) -> Iterator[bytes]:
    settings, checked = baseline.settings, baseline.checked
    head = {
        "schema": SCHEMA,
        "version": baseline.version,
        "made_with": {
            "ruleset": settings.ruleset,
            "mode": settings.mode,
            "scope": settings.scope,
            "arm": settings.arm,
            "config": settings.config,
            "agents": settings.agents,
        },
        "checked": {field: getattr(checked, field) for field in _CHECKED},
        "ignores": [_ignore_dict(ignore) for ignore in baseline.ignores],
    }
    yield encode(head, indent=True).removesuffix(b"\n}\n")
    yield from _list("marks", map(_mark_dict, baseline.marks))
    yield from _list("sessions", (each._asdict() for each in baseline.sessions))
    yield b"\n}\n"


def _list(name: str, objects: Iterator[dict[str, object]]) -> Iterator[bytes]:
    """Yield a member that is a list, one object a line."""
    yield f',\n  "{name}": ['.encode()
    before = b"\n    "
    for each in objects:
        yield before + encode(each).removesuffix(b"\n")
        before = b",\n    "
    yield b"]" if before == b"\n    " else b"\n  ]"


def _mark_dict(known: KnownMark) -> dict[str, object]:
    """Return a mark without the fields that have nothing to say."""
    written: dict[str, object] = {name: value for name, value in known.about._asdict().items() if value is not None}
    if known.times > 1:
        written["times"] = known.times
    written[SOURCE] = known.source
    return written


def _ignore_dict(ignore: Ignore) -> dict[str, object]:
    values = {"match": ignore.match, "reason": ignore.reason, "until": ignore.until.isoformat()}
    return {field: values[field] for field in ignore.order}


# -- reading ------------------------------------------------------------------------------------


def _parse(data: bytes, name: str) -> object:
    try:
        return orjson.loads(data)
    except ValueError:  # perhaps for lone surrogates, which are JSON to the standard library
        pass
    if marker := _CONFLICT.search(data):
        line = data.count(b"\n", 0, marker.start()) + 1
        raise ConfigError(
            f"{name}: line {line} is the marker of a merge conflict; settle it, with the lines of either side, and "
            f"run {_UPDATE}"
        )
    restore = f"restore it from version control, or delete it and run {_UPDATE}"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: byte {error.start + 1} is no UTF-8; {restore}") from None
    if not text.strip("\0 \t\r\n"):
        raise ConfigError(f"{name}: empty; {restore}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated"):
            raise ConfigError(f"{name}: line {text.count(chr(10)) + 1}: the file breaks off; {restore}") from None
        raise ConfigError(
            f"{name}: line {error.lineno}, column {error.colno}: not valid JSON; correct it there, or {restore}"
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; nested without end
        raise ConfigError(f"{name}: this is no baseline; {restore}") from None


class _Reading:
    """Makes a baseline of parsed JSON; each method takes a value and the place at which it stands."""

    def __init__(self, name: str) -> None:
        self._name = name

    def baseline(self, value: object) -> Baseline:
        if not isinstance(value, dict):
            raise self._error("", f"holds {shown(value)}; a baseline is an object; {_UPDATE} writes one")
        schema = value.get("schema")
        if schema != SCHEMA:
            what = "is missing" if "schema" not in value else f"is {shown(schema)}"
            raise self._error(
                "schema", f"{what}, not {quoted(SCHEMA)}: this is no baseline that this version can read"
            )
        top = self._object(value, "", _TOP, _TOP)
        return Baseline(
            self._text(top["version"], "version"),
            self._settings(top["made_with"]),
            self._checked(top["checked"]),
            tuple(self._ignore(each, f"ignores[{at}]") for at, each in self._items(top["ignores"], "ignores")),
            tuple(self._marks(top["marks"])),
            tuple(self._sessions(top["sessions"])),
        )

    def _settings(self, value: object) -> Settings:
        path = "made_with"
        made = self._object(value, path, _MADE_WITH, _MADE_WITH)
        agents = self._any_object(made["agents"], f"{path}.agents")
        return Settings(
            self._text(made["ruleset"], f"{path}.ruleset"),
            self._text(made["mode"], f"{path}.mode"),
            self._text(made["scope"], f"{path}.scope"),
            self._text(made["arm"], f"{path}.arm"),
            self._values(made["config"], f"{path}.config"),
            {agent: self._values(values, member(f"{path}.agents", agent)) for agent, values in agents.items()},
        )

    def _values(self, value: object, path: str) -> Values:
        values = self._any_object(value, path)
        for field, each in values.items():
            if each is not None and not isinstance(each, bool | int):
                raise self._error(
                    member(path, field), f"must be a whole number, true, false or null, not {shown(each)}"
                )
        return cast(Values, values)

    def _checked(self, value: object) -> Checked:
        checked = self._object(value, "checked", _CHECKED, _CHECKED)
        return Checked(**{field: self._count(checked[field], f"checked.{field}", 0) for field in _CHECKED})

    def _ignore(self, value: object, path: str) -> Ignore:
        written = self._object(value, path, _IGNORE, _IGNORE)
        match = self._object(written["match"], f"{path}.match", _MATCH, ())
        if not match:
            raise self._error(f"{path}.match", f"is empty and would meet every mark; name one of {', '.join(_MATCH)}")
        reason = self._text(written["reason"], f"{path}.reason")
        if not reason.strip():
            raise self._error(f"{path}.reason", "is empty; say why these marks do not count")
        return Ignore(
            {field: self._field(field, each, f"{path}.match.{field}") for field, each in match.items()},
            reason,
            self._date(written["until"], f"{path}.until"),
            tuple(written),
        )

    def _sessions(self, value: object) -> Iterator[KnownSession]:
        met: dict[str, int] = {}
        for at, each in self._items(value, "sessions"):
            path = f"sessions[{at}]"
            written = self._object(each, path, _SESSION, _SESSION)
            session = self._text(written["session"], f"{path}.session")
            if met.setdefault(session, at) != at:
                raise self._twice(path, f"sessions[{met[session]}]")
            calls = self._count(written["calls"], f"{path}.calls", 0)
            yield KnownSession(session, calls, self._text(written[SOURCE], f"{path}.source"))

    def _marks(self, value: object) -> Iterator[KnownMark]:
        met: dict[Content, int] = {}
        for at, each in self._items(value, "marks"):
            path = f"marks[{at}]"
            fields = {
                field: self._field(field, given, f"{path}.{field}")
                for field, given in self._object(each, path, _MARK, _NEEDED_OF_A_MARK).items()
            }
            times, source = cast(int, fields.pop("times", 1)), cast(str, fields.pop(SOURCE))
            about = Content(**fields)  # type: ignore[arg-type]  # _field has seen to it
            if met.setdefault(about, at) != at:
                raise self._twice(path, f"marks[{met[about]}]")
            yield KnownMark(about, times, source)

    def _field(self, field: str, value: object, path: str) -> str | int:
        """Return a field of a mark: one of a few words, a whole number, or any text."""
        if field in _WORDS:
            words = _WORDS[field]
            if isinstance(value, str) and value in words:
                return words[value]
            near = get_close_matches(value[:80], words, 1) if isinstance(value, str) else []
            hint = f"did you mean {near[0]}?" if near else f"write one of {', '.join(words)}"
            raise self._error(path, f"must be a {field} that counts, not {shown(value)}; {hint}")
        if field in _WHOLE:
            return self._count(value, path, 1)
        return self._text(value, path)

    def _text(self, value: object, path: str) -> str:
        if isinstance(value, str):
            return value
        raise self._error(path, f"must be a text, not {shown(value)}")

    def _count(self, value: object, path: str, least: int) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        raise self._error(path, f"must be a whole number from {least} on, not {shown(value)}")

    def _date(self, value: object, path: str) -> date:
        if isinstance(value, str) and _DATE.fullmatch(value):
            try:
                return date.fromisoformat(value)
            except ValueError:
                pass  # no day of the calendar: said below
        raise self._error(path, f"must be the last day on which it holds, such as 2027-01-31, not {shown(value)}")

    def _items(self, value: object, path: str) -> Iterator[tuple[int, object]]:
        if not isinstance(value, list):
            raise self._error(path, f"must be an array, not {shown(value)}")
        return enumerate(value)

    def _any_object(self, value: object, path: str) -> Object:
        if not isinstance(value, dict):
            raise self._error(path, f"must be an object, not {shown(value)}")
        return value

    def _object(self, value: object, path: str, known: Collection[str], needed: Collection[str]) -> Object:
        """Return an object that has no other fields than ``known``, and all of ``needed``."""
        found = self._any_object(value, path)
        for field in found:
            if field not in known:
                near = get_close_matches(field[:80], known, 1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                raise self._error(f"{member(path, field)}:", f"there is no such field; {hint}")
        for field in needed:
            if field not in found:
                raise self._error(member(path, field), "is missing; add it")
        return found

    def _twice(self, path: str, first: str) -> ConfigError:
        return self._error(path, f"is {first} once more; delete one of them")

    def _error(self, path: str, what: str) -> ConfigError:
        return ConfigError(" ".join(part for part in (f"{self._name}:", path, what) if part))
