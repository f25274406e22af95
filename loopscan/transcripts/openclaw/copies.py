"""Entries that OpenClaw appends again: a tail of the session as a new branch of the same file, or a closing text.

Truncating tool results in the middle of a run (2026.6, pre-checks) appends the entries from the first
truncated one on once more, with new ids, below the parent of the original. The engine saw each call once.
So from an entry whose parent is not the entry before it, calls and results that repeat id, name and
arguments of what stands beyond that parent, in the same order, are copies, up to the first one that does
not. Ids that repeat along an unbroken line are new calls: some providers reuse them.

A run that ends by yielding to others leaves its latest text once more, as a message of the api ``cli``: what fills
the gap behind the last tool result, which is none. See :class:`Closings`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

import xxhash

from loopscan.events import Json
from loopscan.transcripts.openclaw.entries import GATEWAY_MODELS, Entry, RawCall, calls_of, usage_of
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import identifier, string, text_of, written


class Copies:
    """Tells copies from new entries, by what it was shown before."""

    def __init__(self) -> None:
        self._said: Recent[int, int | array[int]] = Recent()
        """The digest of what an entry says, and the places at which that was said, in order."""
        self._from: int | None = None
        """While a branch goes on that has only repeated so far: the place from which the next original stands."""
        self._until = 0
        """The place of the branch itself."""

    def branch(self, parent: int, place: int) -> None:
        """Begin a branch at ``place`` that hangs on the entry at ``parent`` (-1: on none)."""
        self._from = parent + 1
        self._until = place

    def original(self, entry: Entry, place: int) -> int | None:
        """Return the place of what ``entry``, which stands at ``place``, repeats; ``None`` if it says something new.

        Either way it is remembered.
        """
        key, decides = _key(entry)
        if key is None:
            return None
        said = self._said.get(key)
        found = self._find(said)
        if found is not None:
            self._from = found + 1
        elif decides:
            self._from = None
        if said is None:
            self._said[key] = place
        elif isinstance(said, int):
            self._said[key] = array("Q", (said, place))
        else:
            said.append(place)
            self._said[key] = said
        return found

    def end(self) -> None:
        """End the branch that went on: something new was said in it."""
        self._from = None

    def _find(self, said: int | array[int] | None) -> int | None:
        if self._from is None or said is None:
            return None
        places = (said,) if isinstance(said, int) else said
        at = bisect_left(places, self._from)
        return places[at] if at < len(places) and places[at] < self._until else None


class Closings:
    """Tells the closing text of a run from a response of the model: it says what the latest one said already.

    It has the text of that one and its total of tokens, no cost, and no id of a response, as nobody responded. The
    responses of a model that is run by its command line have the api ``cli`` too: none of them follows a response of
    another api that said and cost the same.
    """

    def __init__(self) -> None:
        self._latest: tuple[int, int] | None = None
        """The digest of what the latest response of another api said and cost, and its place."""

    def original(self, entry: Entry, place: int) -> int | None:
        """Return the place of the response that ``entry``, which stands at ``place``, repeats, if it does.

        Either way it is remembered.
        """
        if entry.role != "assistant" or string(entry.message.get("model")) in GATEWAY_MODELS:
            return None
        message, usage = entry.message, usage_of(entry.message)
        text = text_of(message.get("content")).strip()
        said = _digest(text, str(usage.total))
        before, self._latest = self._latest, None
        if message.get("api") != "cli":
            self._latest = said, place
            return None
        closing = not calls_of(message) and not usage.cost_usd and message.get("responseId") is None
        return before[1] if before and before[0] == said and text and usage.total and closing else None


def _key(entry: Entry) -> tuple[int | None, bool]:
    """Return a digest of what an entry says, if it says anything; and whether a new one ends a copied tail."""
    message = entry.message
    if entry.role == "assistant":
        calls = calls_of(message)
        if calls:
            parts = [part for call in calls for part in (call.id or "", call.tool, _arguments(call))]
            return _digest("calls", *parts), True
    elif entry.role == "toolResult":
        # Not the content: that is what was truncated.
        name = message.get("toolName")
        call_id = identifier(message.get("toolCallId")) or ""
        return _digest("result", call_id, name if isinstance(name, str) else ""), True
    elif entry.kind == "compaction":
        return _digest("compaction", _text(entry.body.get("summary"))), False
    elif entry.kind != "message" or not entry.role:
        return None, False
    made = message.get("timestamp")
    time = repr(made) if isinstance(made, int | float | str) else ""
    text = text_of(message.get("content"))
    return _digest(entry.role, time, _text(message.get("stopReason")), text), False


def _arguments(call: RawCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else written(call.arguments)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _digest(*parts: str) -> int:
    hasher = xxhash.xxh3_64()
    for part in parts:
        hasher.update(part.encode("utf-8", "surrogatepass"))
        hasher.update(b"\xff")
    return hasher.intdigest()
