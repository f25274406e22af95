"""Entries that a session repeats of another: it is a copy, or it was resumed or forked and begins with a history.

Codex writes the history anew, with new times and without a word on where it ends. So what a file begins with is
compared with what its ancestors gave, by content and by how often that content came before. The history ends at
the first call, output or message that no ancestor has; what comes after it is new, however alike it looks.
"""

from __future__ import annotations

import json

import orjson
import xxhash

from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, string

_ANY_CONTENT = "content of "


class Replays:
    """What one session of one source repeats, as far as the ledger of the source knows the other sources."""

    def __init__(self, source: Source, session: str) -> None:
        self._source = source
        self._session = session
        self._ancestors = [session]
        """The sessions of which history may follow; the one of which it comes first is the last."""
        self._seen: Recent[int, int] = Recent()
        """How often each content came, by its digest."""

    def descends_from(self, session: str) -> None:
        """Take in that the history of ``session`` may follow, before that of the ancestors known so far."""
        if session not in self._ancestors:
            self._ancestors.append(session)

    def is_copy(self, body: Object, *, decides: bool) -> bool:
        """Say whether another source gave this entry already; it is then counted as a copy.

        ``body`` is the whole line. ``decides``: an entry that ends the history if no ancestor has it.
        """
        source = self._source
        if source.ledger is None:
            return False
        content, dated = self._keys(body)
        for place in reversed(range(len(self._ancestors))):
            if source.is_copy(_ANY_CONTENT + self._ancestors[place], content):
                if decides:
                    del self._ancestors[place + 1 :]
                return True
        if decides:
            self._ancestors.clear()
        source.ledger.entry(source.name, _ANY_CONTENT + self._session, content)
        return source.is_copy(self._session, dated)

    def _keys(self, body: Object) -> tuple[str, str]:
        """Return two names of an entry: by its content, and by its content and time; numbered where they repeat."""
        undated = {key: value for key, value in body.items() if key != "timestamp"}
        content = xxhash.xxh3_64_intdigest(_bytes(undated))
        time = string(body.get("timestamp")) or ""
        dated = xxhash.xxh3_64_intdigest(f"{content} {time}".encode("utf-8", "surrogatepass"), seed=1)
        return self._numbered(content), self._numbered(dated)

    def _numbered(self, digest: int) -> str:
        count = self._seen.get(digest) or 0
        self._seen[digest] = count + 1
        return f"{digest:x}.{count}"


def _bytes(body: Object) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        pass  # what orjson cannot write: lone surrogates, deep nesting
    try:
        return json.dumps(body, sort_keys=True).encode()
    except RecursionError:
        return f"nested too deeply to compare: {sorted(body)}".encode()
