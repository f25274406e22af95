"""Builds small OpenClaw transcripts line by line, reads them, and checks what holds for every stream of events."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from loopscan.events import Event, Fate, Turn
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.reader import Source
from tests.transcripts.checks import account, check, of

#: When the first entry of a built transcript is written; each further one comes a second later.
START = datetime(2026, 6, 1, 12, tzinfo=UTC)


def call(identity: str | None, tool: str = "read", /, **arguments: Any) -> dict[str, Any]:
    """Return a call block; without arguments it has some."""
    block: dict[str, Any] = {"type": "toolCall", "name": tool, "arguments": arguments or {"path": "notes.txt"}}
    return block if identity is None else {**block, "id": identity}


__all__ = ["START", "Transcript", "call", "check", "fates", "of", "read", "source_of"]


class Transcript:
    """A transcript in the making; every method appends one line and returns the entry's id."""

    def __init__(self, *, session: str | None = "s1", version: int | None = 3, **header: Any) -> None:
        self.lines: list[bytes] = []
        self.version = version
        self.parent: str | None = None
        self.time = START
        self._ids = 0
        if session is not None:
            numbered = {} if version is None else {"version": version}
            self.json({"type": "session", **numbered, "id": session, "timestamp": _iso(self.time), **header})

    def json(self, value: Any) -> None:
        """Append any JSON value; an infinite number is written as JavaScript's JSON.parse makes one."""
        self.raw(json.dumps(value).replace("Infinity", "1e400").encode() + b"\n")

    def raw(self, line: bytes) -> None:
        """Append bytes, which bring their own line break."""
        self.lines.append(line)

    def entry(self, kind: str, *, below: str | None = "", after: float = 1, **fields: Any) -> str:
        """Append an entry ``after`` seconds later, below the entry before it or below the one named."""
        self._ids += 1
        identity = f"e{self._ids}"
        self.time += timedelta(seconds=after)
        linked = {"id": identity, "parentId": self.parent if below == "" else below}
        self.json({"type": kind, **(linked if self.version else {}), "timestamp": _iso(self.time), **fields})
        self.parent = identity
        return identity

    def message(
        self,
        role: str,
        content: Any,
        *,
        below: str | None = "",
        after: float = 1,
        run: str | None = None,
        **fields: Any,
    ) -> str:
        """Append a message; ``run`` is the run id that 2026.9 stores."""
        own = {} if run is None else {"__openclaw": {"runId": run}}
        made = int((self.time + timedelta(seconds=after)).timestamp() * 1000)
        message = {"role": role, "content": content, "timestamp": made, **own, **fields}
        return self.entry("message", below=below, after=after, message=message)

    def user(self, text: str = "do it", **fields: Any) -> str:
        return self.message("user", [{"type": "text", "text": text}], **fields)

    def asks(self, *calls: dict[str, Any], stop: str = "toolUse", **fields: Any) -> str:
        """Append an assistant message with calls."""
        return self.message("assistant", list(calls), stopReason=stop, **fields)

    def says(self, text: str = "done", *, stop: str = "stop", **fields: Any) -> str:
        """Append an assistant message without calls."""
        return self.message("assistant", [{"type": "text", "text": text}], stopReason=stop, **fields)

    def result(
        self, identity: str | None, text: str = "ok", *, tool: str = "read", error: bool = False, **fields: Any
    ) -> str:
        content = [{"type": "text", "text": text}]
        named = {} if identity is None else {"toolCallId": identity}
        return self.message("toolResult", content, **named, toolName=tool, isError=error, **fields)

    def absent(self, identity: str, tool: str = "frobnicate", **fields: Any) -> str:
        """Append the result of a call to a tool that does not exist."""
        return self.result(identity, f"Tool {tool} not found", tool=tool, error=True, details={}, **fields)

    def compaction(self, summary: str = "so far", **fields: Any) -> str:
        return self.entry("compaction", summary=summary, firstKeptEntryId="e1", tokensBefore=1000, **fields)

    def bytes(self) -> bytes:
        return b"".join(self.lines)

    def read(self, name: str = "s1.jsonl") -> list[Event]:
        """Read what was built, and check what holds for every stream."""
        return read(self.bytes(), name)


def source_of(data: bytes, name: str = "s1.jsonl", **options: Any) -> Source:
    return Source(name, lambda: io.BytesIO(data), **options)


def read(data: bytes, name: str = "s1.jsonl", **options: Any) -> list[Event]:
    """Read a transcript from bytes, and check what holds for every stream."""
    source = source_of(data, name, **options)
    events = list(OpenClawReader().read(source))
    check(events)
    account(source)
    assert source.bytes == len(data)
    return events


def fates(events: Iterable[Event]) -> list[Fate]:
    return [each.fate for turn in of(Turn, events) for each in turn.calls]


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
