"""Which source gave which entry: near-copies of a session must not count twice."""

from __future__ import annotations

import xxhash


class Ledger:
    """Remembers the entries that the sources of one family gave, a number of 64 bits for each.

    A family is a set of sources that may hold the same session; they are read one after the other, the one
    that is to be believed first.
    """

    def __init__(self) -> None:
        self._givers: list[str] = []
        self._numbers: dict[str, int] = {}
        self._given: dict[int, int] = {}
        self._sessions: dict[str, int] = {}

    def entry(self, source: str, session: str, entry: str) -> str | None:
        """Take down that ``source`` holds an entry of a session; return the other source that gave it before."""
        digest = xxhash.xxh3_64_intdigest("\0".join((session, entry)).encode("utf-8", "surrogatepass"))
        number = self._number(source)
        first = self._given.setdefault(digest, number)
        self._sessions.setdefault(session, number)
        return None if first == number else self._givers[first]

    def session(self, source: str, session: str) -> str | None:
        """Take down that ``source`` holds a session; return the other source that gave any of it before."""
        number = self._number(source)
        first = self._sessions.setdefault(session, number)
        return None if first == number else self._givers[first]

    def _number(self, source: str) -> int:
        number = self._numbers.get(source)
        if number is None:
            number = self._numbers[source] = len(self._givers)
            self._givers.append(source)
        return number
