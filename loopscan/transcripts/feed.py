"""What most readers have in common: values in, events out, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from loopscan.events import Event, Pause, Problem
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import Object


class Feed(Protocol):
    """One source while it is read."""

    def line(self, line: Line, body: Object) -> Iterable[Event]:
        """Take in the next value, ``body``, and return what can be told now.

        Must count it (:meth:`Source.count`) unless it is a copy, and must not raise, whatever is in it.
        """
        ...

    def problem(self, problem: Problem) -> Iterable[Event]:
        """Take in the problem with the next line, and return what can be told now."""
        ...

    def finish(self) -> Iterable[Event]:
        """Return the rest: nothing follows."""
        ...


def drive(source: Source, items: Iterable[Line | Problem | Pause], feed: Feed) -> Iterator[Event]:
    """Yield the events that ``feed`` makes of the values of ``source``; a value that is no object is a problem."""
    for item in items:
        if isinstance(item, Pause):
            yield item
        elif isinstance(item, Problem):
            yield from feed.problem(item)
        elif isinstance(item.value, dict):
            yield from feed.line(item, item.value)
        else:
            source.unusable += 1
            detail = "a line of JSON that is no object: entries are objects"
            yield from feed.problem(Problem(item.number, "not-an-object", detail))
    yield from feed.finish()
