"""Messages out of the snapshots of a session: each one once, in the order in which they were made.

A runtime trajectory shows the session's messages after each attempt, so the same ones come again and again. Nothing
identifies them but their time: ids of calls are rewritten for some providers, and the time of a prompt
may differ by seconds between two snapshots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopscan.events import Json
from loopscan.transcripts.openclaw.trace import is_truncation
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, mapping, number, string

#: How the summary of a compaction stands among the messages: before the ones that were kept.
SUMMARY = "compactionSummary"


class Snapshots:
    """Knows the messages that earlier snapshots showed."""

    def __init__(self) -> None:
        self._seen: Recent[tuple[str, float, str, int], bool] = Recent()
        self._newest = 0.0

    @property
    def known(self) -> bool:
        """Whether anything was shown before."""
        return self._newest > 0

    def new(self, messages: Json) -> Iterator[Object]:
        """Yield those of ``messages`` that no snapshot showed before, the summary of a compaction where it was made.

        A prompt or response that is older than what is known already is one of those with another time.
        """
        known = self._newest
        fresh: list[Object] = []
        summary: Object | None = None
        met: Counter[tuple[str, float, str]] = Counter()
        for message in map(mapping, array(messages)):
            role, made = string(message.get("role")), number(message.get("timestamp"))
            if role is None or is_truncation(message):
                continue
            # Some messages have no time: they count as new only where nothing is known yet.
            at = known if made is None else made
            key = (role, at, string(message.get("toolName")) or "")
            met[key] += 1
            if (*key, met[key]) in self._seen:
                continue
            self._seen[*key, met[key]] = True
            if at < known and role in ("user", "assistant"):
                continue
            if made is None and known:
                continue
            self._newest = max(self._newest, at)
            if role == SUMMARY:
                summary = message
            else:
                fresh.append(message)
        compacted = number(summary.get("timestamp")) if summary is not None else None
        for message in fresh:
            made = number(message.get("timestamp"))
            if summary is not None and (compacted is None or (made is not None and made > compacted)):
                yield summary
                summary = None
            yield message
        if summary is not None:
            yield summary
