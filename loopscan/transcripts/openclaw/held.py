"""Events that wait: a call's fate is known only from its result, so what follows is held back with it.

The queue keeps the order of the file. Each place in it is a :class:`Slot` that is decided at once or later;
events leave from the front as soon as the front is decided. When too much is held, the front is told to
decide with what it knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from loopscan.events import Event

#: How many entries are held back at most.
MAX_HELD = 16_384

#: How many bytes of lines are held back at most.
MAX_HELD_BYTES = 64 << 20


class Slot(Protocol):
    """A place in the queue."""

    size: int
    """Bytes of the line that it came from."""

    @property
    def decided(self) -> bool:
        """Whether its events are known."""
        ...

    def force(self) -> None:
        """Decide now."""
        ...

    def events(self) -> Sequence[Event]:
        """Return the events; asked once, when it is decided and all before it is out."""
        ...


class Held:
    """The queue of slots."""

    def __init__(self, max_held: int = MAX_HELD, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._slots: deque[Slot] = deque()
        self._bytes = 0
        self._max_held = max_held
        self._max_bytes = max_bytes

    def add(self, slot: Slot) -> None:
        """Put a slot at the end."""
        self._slots.append(slot)
        self._bytes += slot.size

    def drain(self) -> Iterator[Event]:
        """Yield what can go."""
        slots = self._slots
        while slots:
            first = slots[0]
            if not first.decided:
                if len(slots) <= self._max_held and self._bytes <= self._max_bytes:
                    return
                first.force()
            slots.popleft()
            self._bytes -= first.size
            yield from first.events()

    def flush(self) -> Iterator[Event]:
        """Decide everything, in order, and yield it."""
        for slot in self._slots:
            if not slot.decided:
                slot.force()
        yield from self.drain()


class Ready:
    """Events that wait for nothing but their turn."""

    __slots__ = ("_events", "size")

    decided = True

    def __init__(self, *events: Event, size: int = 0) -> None:
        self._events = events
        self.size = size

    def force(self) -> None:
        """Nothing to decide."""

    def events(self) -> Sequence[Event]:
        """Return the events."""
        return self._events
