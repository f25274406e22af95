"""Logs of single requests: each holds all messages up to its response, so the next one repeats them.

Some hold the messages alone. The calls in them happened once. So a log is held back until another one goes on
where it ends, and stands for it; what only the earlier one tells (what its response cost, and when) goes on with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

import xxhash

from loopscan.events import Json, Where
from loopscan.transcripts.openai_messages.blocks import as_json, calls_of
from loopscan.transcripts.openai_messages.conversation import Response
from loopscan.transcripts.openai_messages.shapes import Reply, name_of
from loopscan.transcripts.values import Object, mapping

#: How many conversations are held back at most; requests of several may come in turn.
MOST_HELD = 8
#: How many bytes of logs are held back at most.
MOST_HELD_BYTES = 64 << 20


@dataclass(slots=True)
class Log:
    """One request with its response, or messages alone."""

    body: Object
    messages: list[Json]
    reply: Reply | None
    where: Where
    size: int
    digests: list[int] = field(init=False)
    """Of the messages up to each one."""
    known: dict[int, Response] = field(default_factory=dict)
    """What earlier logs tell of responses, by the place of their message."""

    def __post_init__(self) -> None:
        self.digests = digests_of(self.messages)

    @property
    def opening(self) -> int:
        """What logs of one conversation have in common: the messages up to the first of the user."""
        return opening_of(self.messages, self.digests)

    @property
    def name(self) -> str:
        """What names the conversation; empty if nothing does."""
        return name_of(self.body, "", 1)

    @property
    def answered(self) -> bool:
        """Whether the model said something in it."""
        return any(mapping(message).get("role") == "assistant" for message in self.messages)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """What the log tells, step by step: the messages up to each one, and how many calls the next one makes.

        The calls, since some write those of earlier responses into later requests as text: such a request does not
        stand for the response. The last step is that of the response.
        """
        following = [*self.messages[1:], self.reply.message if self.reply is not None else None]
        calls = (len(calls_of(mapping(message))[0]) for message in following)
        return list(zip(self.digests, calls, strict=True))

    def goes_on_from(self, other: Log) -> bool:
        """Whether this log begins with all that ``other`` tells, the calls of its response too.

        Messages alone must go on with something, and must not have another name: two conversations may be alike.
        """
        count = len(other.digests)
        if count > len(self.digests) or self.digests[count - 1] != other.digests[-1]:
            return False
        if other.reply is None and (count == len(self.digests) or other.name != self.name or not other.answered):
            return False
        _, made = other.steps[-1]
        return not made or (count < len(self.digests) and self.steps[count - 1][1] >= made)


class Logs:
    """Holds back the latest log of each conversation."""

    def __init__(self) -> None:
        self._held: OrderedDict[int, Log] = OrderedDict()
        self._bytes = 0

    def add(self, log: Log) -> Iterator[tuple[Log, bool]]:
        """Take in a log; yield what is let go: logs, and whether another one stands for each."""
        opening = log.opening
        before = self._held.pop(opening, None)
        if before is not None:
            self._bytes -= before.size
            goes_on = log.goes_on_from(before)
            if goes_on:
                told = {} if before.reply is None else {len(before.messages): before.reply.known}
                log.known = {**before.known, **told}
            yield before, goes_on
        self._held[opening] = log
        self._bytes += log.size
        while len(self._held) > MOST_HELD or (self._bytes > MOST_HELD_BYTES and self._held):
            _, oldest = self._held.popitem(last=False)
            self._bytes -= oldest.size
            yield oldest, False

    def finish(self) -> Iterator[Log]:
        """Yield what is still held."""
        held, self._held = self._held, OrderedDict()
        self._bytes = 0
        yield from held.values()


def digests_of(messages: list[Json]) -> list[int]:
    """Return a digest of the messages up to each one."""
    hasher = xxhash.xxh3_64()
    digests: list[int] = []
    for message in messages:
        hasher.update(as_json(message).encode("utf-8", "surrogatepass"))
        hasher.update(b"\xff")
        digests.append(hasher.intdigest())
    return digests


def opening_of(messages: list[Json], digests: list[int]) -> int:
    """Return the digest of the messages up to the first of the user; of the first one if there is none."""
    users = (place for place, message in enumerate(messages) if mapping(message).get("role") == "user")
    return digests[next(users, 0)]
