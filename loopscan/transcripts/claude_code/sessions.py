"""Which session a line is of, and whether the line was recorded before.

Resuming or forking a session copies its lines, to another file or further down in the same one: with the same
``uuid``, or with a new one and ``forkedFrom``, and often under the id of the new session. So copies are told by the
original's uuid, whatever session they name.
"""

from __future__ import annotations

import re

import xxhash

from loopscan.events import Json
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, identifier, mapping

#: Where the ledger keeps the lines of all sessions: their uuids are unique without it.
_LEDGER = "claude-code"
_ID_IN_HEAD = re.compile(rb'"(?:sessionId|session_id|uuid|messageUuid|messageId)"\s*:\s*"([^"\\]{1,200})"')
#: No digest.
_NO_ID = 0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def entry_id(body: Object) -> str | None:
    """Return the id of a line: that of the original, where it says that it is a copy."""
    return identifier(mapping(body.get("forkedFrom")).get("messageUuid")) or identifier(body.get("uuid"))


def session_id(body: Object) -> str | None:
    """Return the id of the session that a line names; ``session_id`` is the spelling of stream-json."""
    return identifier(body.get("sessionId")) or identifier(body.get("session_id"))


def session_of(path: str) -> str:
    """Return the session that a file is named after: ``ID`` of ``ID.jsonl`` and of ``ID/subagents/agent-1.jsonl``."""
    *folders, name = pieces_of(path)
    if len(folders) > 1 and folders[-1] == "subagents":
        return folders[-2]
    return name.split(".jsonl", maxsplit=1)[0] or name


def family_of(head: bytes, path: str) -> frozenset[str]:
    """Return what tells which files may hold the same lines: the ids of sessions and lines in ``head`` and ``path``.

    Lines, too, since a file that begins with copies may name nothing else of the session that they are of.
    """
    found = {match.decode("utf-8", "replace") for match in _ID_IN_HEAD.findall(head)}
    found.update(_UUID.findall("/".join(pieces_of(path)[-3:])))
    return frozenset(found)


class Sessions:
    """Names the session of each line of one file."""

    def __init__(self, path: str) -> None:
        self._session = session_of(path)
        """The latest that a line named; what names none is of it."""
        self._branches: Recent[str, str] = Recent()
        """Lines of sub-agents without an id, and the first line of each."""

    def name(self, body: Object, number: int) -> str:
        """Return the session of a line; that of a sub-agent begins with the session that started it.

        Lines of sub-agents name the agent; those of older versions are side chains, told apart by how they hang
        together, those of stream-json name the call that started it. ``number`` is that of the line.
        """
        self._session = session_id(body) or self._session
        agent = identifier(body.get("agentId")) or identifier(body.get("parent_tool_use_id"))
        if agent is None and body.get("isSidechain") is True:
            agent = self._branch(body, number)
        return self._session if agent is None else f"{self._session}/agent-{agent}"

    def _branch(self, body: Object, number: int) -> str:
        parent, own = identifier(body.get("parentUuid")), identifier(body.get("uuid"))
        first = self._branches.get(parent) if parent is not None else None
        if first is None:
            first = own or f"line-{number}"
        if own is not None:
            self._branches[own] = first
        return first


class Copies:
    """Tells lines that were recorded before, in the same file or in another one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._seen: Recent[int, int] = Recent()
        """What the line of a uuid says, by digests; :data:`_NO_ID` for a uuid that several lines share."""

    def is_copy(self, body: Object) -> bool:
        """Say whether a line was recorded before; it is then counted as a copy. To be asked once for each line."""
        own = entry_id(body)
        if own is None:
            return False
        marks = "\0".join(_marks(body))
        uuid, says = _digest(own), _digest(marks)
        said = self._seen.get(uuid)
        if said == says:
            self._source.copies[self._source.name] += 1
            return True
        if said is not None:
            # A placeholder, say, where somebody took out what was there.
            self._seen[uuid] = _NO_ID
            return False
        self._seen[uuid] = says
        return self._source.is_copy(_LEDGER, f"{own}\0{marks}")


def _marks(body: Object) -> list[str]:
    """Return what a copy of a line has in common with it, besides the uuid, and few other lines have."""
    message = mapping(body.get("message"))
    marks = [_text(body.get("type")), _text(body.get("subtype")), identifier(message.get("id")) or ""]
    marks.append(_text(mapping(body.get("attachment")).get("type")))
    for block in array(message.get("content")):
        given = mapping(block)
        marks += [_text(given.get("type")), _text(given.get("id")), _text(given.get("tool_use_id"))]
    return marks


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) or 1


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
