"""One line of OpenClaw's log: what it says of the loop detection, if it says anything.

The same texts come as plain lines of a console (with colours, times, the name of the subsystem, and whatever a
service manager puts before them), as lines of JSON (the log file, and the console style ``json``), and as
diagnostic events. A text counts only where a message begins: that of another line may quote one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from loopscan.events import Json
from loopscan.transcripts.jsonl import parse
from loopscan.transcripts.values import Object, mapping, seconds, string, whole

#: Lines without any of these say nothing; everything else is looked at.
TELLING = re.compile(
    rb"tool[ .]loop|post-compaction loop persisted|CRITICAL: tool |sessionId=\S{1,300} sessionKey=|sessionFile="
)

_COLOURS = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")
#: What may stand before a message: nothing, or something that ends with the name of a subsystem. No quotation mark
#: and no brace, so that a quoted line is none.
_BEFORE = r"(?P<before>(?:[^\"{}]{0,200}?\[[a-z][\w/.-]{0,60}\] )?)"
_LOOP = re.compile(
    _BEFORE + r"tool loop: sessionId=(?P<session>\S{1,300}) sessionKey=(?P<key>.{1,300}?) tool=(?P<tool>.{1,200}?)"
    r" level=(?P<level>\w{1,20}) action=(?P<action>\w{1,20}) detector=(?P<detector>\w{1,60})"
    r" count=(?P<count>\d{1,9})\b"
)
_LOOP_BEGINS = re.compile(_BEFORE + r"tool loop: sessionId=")
_PERSISTED = re.compile(
    _BEFORE + r"post-compaction loop persisted: tool=(?P<tool>.{1,200}?) repeated (?P<count>\d{1,9}) times\b"
)
_LANE = re.compile(
    _BEFORE + r"lane task error: lane=session:(?P<key>\S{1,300}) .{0,100}?error=\"(?:\w+: )?"
    r"CRITICAL: tool (?P<tool>.{1,200}?) repeated (?P<count>\d{1,9}) times\b.{0,200}?\bcompaction\b"
)
_NAMES = re.compile(r"\bsessionId=(?P<session>[^\s\"]{1,300}) sessionKey=(?P<key>[^\s\"]{1,300})")
_KEY = re.compile(r"\bsessionKey=(?P<key>[^\s\"]{1,300}) ")
#: How a session's file is named, not far behind its key; and the session in its name.
_FILE = "sessionFile="
_NEAR = 420
_SESSION = re.compile(r"(?P<session>[^\s\"/\\]{1,200})\.jsonl\b")
_LONGEST_PATH = 800
#: A time with its zone; without one nobody knows when that was.
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)")
#: As much of a message as matters, in characters.
_LONGEST = 4000
_MESSAGES = ("message", "1", "2", "0", "msg", "log", "MESSAGE")
_UNKNOWN = "unknown"
_KINDS = {"block": "block", "warn": "warning"}


@dataclass(frozen=True, slots=True)
class Loop:
    """A verdict of the rolling detectors."""

    session: str | None
    key: str | None
    kind: str
    tool: str
    detector: str
    count: int
    time: float | None


@dataclass(frozen=True, slots=True)
class Persisted:
    """A verdict of the post-compaction guard, which names no session."""

    tool: str
    count: int
    time: float | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A session's run failed with a verdict of the post-compaction guard."""

    key: str
    tool: str
    count: int
    time: float | None


@dataclass(frozen=True, slots=True)
class Names:
    """A session's id and key."""

    session: str
    key: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A verdict that cannot be read."""


LogLine: TypeAlias = "Loop | Persisted | Lane | Names | Broken"


def read_line(line: bytes) -> LogLine | None:
    """Return what a line of a log says: ``None`` for almost all of them."""
    if not TELLING.search(line):
        return None
    body = body_of(line)
    if body is None:
        return _said(line.decode("utf-8", "replace"), None)
    if body.get("type") == "tool.loop":
        return _event(body)
    time = time_of(body)
    return next((said for text in _texts(body) if (said := _said(text, time)) is not None), None)


def body_of(line: bytes) -> Object | None:
    """Return the object that a line of JSON holds; ``None`` for plain text."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        value = parse(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _texts(body: Object) -> Iterator[str]:
    """Yield what may be the message of a line of JSON."""
    for name in _MESSAGES:
        text = body.get(name)
        if isinstance(text, str):
            yield text


def time_of(body: Object) -> float | None:
    """Return when a line of JSON was written, in seconds."""
    for value in (body.get("time"), body.get("ts"), mapping(body.get("_meta")).get("date")):
        if isinstance(value, str) and not _TIME.fullmatch(value):
            continue
        if isinstance(value, str | int | float) and (found := seconds(value)) is not None:
            return found
    return None


def _said(text: str, time: float | None) -> LogLine | None:
    """Return what a message says; ``time`` is that of its line, if the text has none of its own."""
    text = _COLOURS.sub("", text[:_LONGEST])
    if found := _LOOP.match(text):
        kind = _KINDS.get(found["action"]) or ("block" if found["level"] == "critical" else "warning")
        session, key, at = _name(found["session"]), _name(found["key"]), _when(found["before"], time)
        return Loop(session, key, kind, found["tool"], found["detector"], int(found["count"]), at)
    if _LOOP_BEGINS.match(text):
        return Broken()
    if found := _PERSISTED.match(text):
        return Persisted(found["tool"], int(found["count"]), _when(found["before"], time))
    if found := _LANE.match(text):
        return Lane(found["key"], found["tool"], int(found["count"]), _when(found["before"], time))
    if (found := _NAMES.search(text)) and _name(found["session"]) and _name(found["key"]):
        return Names(found["session"], found["key"])
    return _named_by_file(text)


def _named_by_file(text: str) -> Names | None:
    """Return the session whose file a line names after its key."""
    for found in _KEY.finditer(text):
        at = text.find(_FILE, found.end(), found.end() + _NEAR)
        if at < 0:
            continue
        at += len(_FILE)
        path = next(iter(re.split(r"[\s\"]", text[at : at + _LONGEST_PATH], maxsplit=1)))
        session = _SESSION.search(path)
        if session is not None and _name(session["session"]) and _name(found["key"]):
            return Names(session["session"], found["key"])
    return None


def _event(body: Object) -> LogLine:
    tool, detector, count = string(body.get("toolName")), string(body.get("detector")), whole(body.get("count"))
    kind = _KINDS.get(string(body.get("action")) or "")
    if tool is None or detector is None or count is None or kind is None:
        return Broken()
    session, key = string(body.get("sessionId")), string(body.get("sessionKey"))
    return Loop(_name(session), _name(key), kind, tool, detector, count, time_of(body))


def _name(value: str | None) -> str | None:
    return None if value == _UNKNOWN else value


def _when(before: str, time: float | None) -> float | None:
    """Return the time that stands last before a message, else that of the line."""
    found: Json = None
    for match in _TIME.finditer(before):
        found = match[0].replace(",", ".")
    return seconds(found) if found is not None else time
