"""The reader of OpenClaw's log: the verdicts of the live engine, to be compared with those of the replay.

A log holds no calls. What it yields are sessions of nothing but recorded verdicts, which belong to no run that it
names; :mod:`loopscan.verdicts` brings them to the sessions that other sources hold.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from loopscan.events import Event, Pause, Problem, Recorded, SessionEnded, SessionResumed, SessionStarted, Where
from loopscan.transcripts.jsonl import BOM, read_raw
from loopscan.transcripts.openclaw.logline import (
    Broken,
    Lane,
    LogLine,
    Loop,
    Names,
    Persisted,
    body_of,
    read_line,
)
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, mapping, string

#: How many verdicts of the post-compaction guard wait for the line that names their session.
MOST_WAITING = 64
#: The session of verdicts of which the log does not say whose they are.
UNKNOWN = "unknown"

_AGENT = re.compile(r"agent:([^:]+):")
_COLOURS = re.compile(rb"\x1b\[[0-9;:]*[A-Za-z]")
#: A line of the console: a time, which some styles leave out, and the subsystem in brackets.
_LINE = re.compile(
    rb"(?:\S{1,60} {1,4}){0,6}?(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,16} |\d\d:\d\d:\d\d )?"
    rb"\[(?P<subsystem>[a-z][a-z0-9/-]{1,60})\] \S"
)
#: Other subsystems of a gateway; the names alone are not unmistakable.
_SUBSYSTEMS = frozenset(
    b"gateway diagnostic ws heartbeat cron plugins hooks reload canvas health-monitor model-fallback memory openclaw "
    b"telegram whatsapp bonjour".split()
)
_OWN = re.compile(
    rb"agents?/(?:embedded|tools|loop-detection|post-compaction-guard|agent-command|auth-profiles|harness)"
)
_MOST_LINES = 200


class LogReader:
    """Reads logs of an OpenClaw gateway or command, and files of its diagnostic events."""

    name = "openclaw-log"
    traits = Traits(
        summary="logs and diagnostic events of OpenClaw: the verdicts of the live engine, without calls",
        recognised_by="lines of its subsystems, or a verdict of the loop detection",
        rank=20,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise a verdict, or lines of subsystems that only OpenClaw has; two of others are a maybe."""
        met: set[bytes] = set()
        best = Confidence.NO
        for line in head.removeprefix(BOM).split(b"\n", _MOST_LINES)[:_MOST_LINES]:
            if isinstance(read_line(line), Loop | Persisted):
                return Confidence.SURE
            body = body_of(line)
            if body is not None:
                best = max(best, _record(body))
                # What a container's own log holds is a line of the console.
                line = (string(body.get("log")) or "").encode("utf-8", "replace")
            found = _LINE.match(_COLOURS.sub(b"", line[:2000]))
            if found is not None and _is_known(found["subsystem"]):
                met.add(found["subsystem"])
        if any(_OWN.fullmatch(subsystem) for subsystem in met) or len(met) > 1:
            best = max(best, Confidence.LIKELY)
        return best

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the verdicts in ``source``, in the order of its lines, each within its session.

        Memory is bounded but for the names of the sessions that have verdicts. Raises
        :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        log = _Log()
        for line in read_raw(source):
            if isinstance(line, Problem | Pause):
                yield line
                continue
            if not line.strip():
                source.blank += 1
                continue
            said = read_line(line)
            kind = _KINDS.get(type(said))
            source.count(kind or "log line", used=kind is not None)
            if said is not None:
                yield from log.take(said, source.lines)
        yield from log.finish(source.lines)


#: What lines that are used are counted as.
_KINDS: dict[type, str] = {Loop: "tool loop", Persisted: "post-compaction loop", Lane: "lane task error"}


class _Log:
    """The verdicts of one log, sorted into sessions."""

    def __init__(self) -> None:
        self._sessions: dict[str, int] = {}
        """Sessions that have verdicts, and the line of the latest."""
        self._current: str | None = None
        self._ids: Recent[str, str] = Recent()
        """The ids of sessions by their keys."""
        self._waiting: deque[Persisted] = deque()

    def take(self, said: LogLine, line: int) -> Iterator[Event]:
        """Take in what line number ``line`` says."""
        match said:
            case Loop():
                if said.session is not None and said.key is not None:
                    self._ids[said.key] = said.session
                where = Where(line, None, said.time)
                recorded = Recorded("", where, said.kind, None, said.tool, said.detector, said.count)
                yield from self._record(said.session, said.key, recorded)
            case Persisted():
                if len(self._waiting) == MOST_WAITING:
                    yield from self._abort(self._waiting.popleft(), None, line)
                self._waiting.append(said)
            case Lane():
                for waiting in self._waiting:
                    if (waiting.tool, waiting.count) == (said.tool, said.count):
                        self._waiting.remove(waiting)
                        yield from self._abort(waiting, said.key, line)
                        return
                yield from self._abort(Persisted(said.tool, said.count, said.time), said.key, line)
            case Names():
                self._ids[said.key] = said.session
            case Broken():
                yield Problem(
                    line, "malformed-entry", "a verdict of the loop detection that is cut off or in no known form"
                )

    def finish(self, line: int) -> Iterator[Event]:
        """Return the rest: nothing follows."""
        for waiting in self._waiting:
            yield from self._abort(waiting, None, line)
        for name, latest in self._sessions.items():
            yield from self._resume(name)
            yield SessionEnded(Where(latest))
            self._current = None

    def _abort(self, said: Persisted, key: str | None, line: int) -> Iterator[Event]:
        where = Where(line, None, said.time)
        detector = "compaction_loop_persisted"
        recorded = Recorded("", where, "compaction_abort", None, said.tool, detector, said.count)
        yield from self._record(None, key, recorded)

    def _record(self, session: str | None, key: str | None, recorded: Recorded) -> Iterator[Event]:
        """Yield a verdict in its session: named by its id, or else its key."""
        if session is None and key is not None:
            session = self._ids.get(key)
        name = session or key or UNKNOWN
        if name in self._sessions:
            yield from self._resume(name)
        else:
            agent = _AGENT.match(key) if key is not None else None
            yield SessionStarted(name, recorded.where, agent=agent[1] if agent else None)
            self._current = name
        self._sessions[name] = recorded.where.line
        yield recorded

    def _resume(self, name: str) -> Iterator[Event]:
        if self._current != name:
            self._current = name
            yield SessionResumed(name)


def _record(body: Object) -> Confidence:
    """Say whether a line of JSON is a record of OpenClaw's log file, or of its console in the style ``json``."""
    meta = mapping(body.get("_meta"))
    if "openclaw" in array(meta.get("parentNames")) or (meta and body.get("0") and meta.get("name") == "openclaw"):
        return Confidence.SURE
    if meta and (string(body.get("0")) or "").startswith('{"subsystem":"'):
        return Confidence.SURE
    subsystem = (string(body.get("subsystem")) or "").encode("utf-8", "replace")
    if {"time", "level", "message"} <= body.keys() and _is_known(subsystem):
        return Confidence.SURE if _OWN.fullmatch(subsystem) else Confidence.LIKELY
    return Confidence.NO


def _is_known(subsystem: bytes) -> bool:
    return bool(_OWN.fullmatch(subsystem)) or subsystem in _SUBSYSTEMS
