"""The guards that stand beside the rolling detectors. Each belongs to one run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class PostCompactionGuard:
    """Aborts a run that does the same thing after a compaction as before it.

    Armed by an in-run compaction, it looks at the next ``window`` outcomes that have an identity.
    """

    window: int
    remaining: int = 0
    key: tuple[bytes, bytes] | None = None
    """Signature and outcome of the first call in the window."""
    same: bool = True

    @property
    def armed(self) -> bool:
        """Whether the guard is looking."""
        return self.remaining > 0

    def arm(self) -> None:
        """Start a fresh window."""
        self.remaining, self.key, self.same = self.window, None, True

    def observe(self, signature: bytes, outcome: bytes) -> bool:
        """Take in an outcome; return whether the run is aborted by it."""
        if not self.armed:
            return False
        if self.key is None:
            self.key = (signature, outcome)
        elif self.key != (signature, outcome):
            self.same = False
        self.remaining -= 1
        return self.remaining == 0 and self.same

    def would_complete(self, signatures: list[bytes]) -> bool:
        """Whether calls without recorded outcome would complete a window of one tool and arguments."""
        if not self.armed or not self.same or len(signatures) < self.remaining:
            return False
        first = self.key[0] if self.key else signatures[0]
        return all(signature == first for signature in signatures)


@dataclass(slots=True)
class UnknownToolGuard:
    """Counts assistant messages in a row whose calls all name one and the same tool that does not exist."""

    tool: str | None = None
    count: int = 0

    def reset(self) -> None:
        """Start afresh: a message with an existing tool, or with no call."""
        self.tool, self.count = None, 0

    def attempt(self, tools: set[str]) -> int:
        """Take in a message whose calls name ``tools``, none of which exists; return the attempts in a row."""
        if len(tools) != 1:
            self.reset()
            return 0
        (tool,) = tools
        self.count = self.count + 1 if tool == self.tool else 1
        self.tool = tool
        return self.count


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed call."""

    signature: bytes
    error: bytes
    lossy: bool = False
    """The record holds less of it than the live engine saw."""


@dataclass(slots=True)
class IdenticalErrorGuard:
    """Counts identical failures in a row, in the model's call order (`latest`)."""

    limit: int
    count: int = 0
    lossy: bool = False
    """One of the failures in the streak is."""
    _last: Failure | None = None

    def reset(self) -> None:
        """Start afresh: a success, or new user input."""
        self._last, self.count, self.lossy = None, 0, False

    def failure(self, failure: Failure) -> bool:
        """Take in a failure; return whether it is the one that ends the run."""
        last = self._last
        if last is None or (last.signature, last.error) != (failure.signature, failure.error):
            self.reset()
        self._last = failure
        self.count += 1
        self.lossy |= failure.lossy
        return self.count == self.limit


#: What became of a call, for :class:`CallOrder`: a failure, ``None`` for a success or something unknown, or
#: :data:`PASSED` for what leaves the streak as it is (a veto, a call that never started).
Fared = Failure | None
PASSED = Failure(b"", b"")


@dataclass(slots=True)
class CallOrder:
    """Brings the outcomes of a parallel batch into the model's call order."""

    size: int
    known: dict[int, Fared] = field(default_factory=dict)
    next: int = 0

    def put(self, slot: int, fared: Fared) -> list[tuple[int, Fared]]:
        """Note how the call in ``slot`` fared; return those that are now next in order."""
        self.known.setdefault(slot, fared)
        ready: list[tuple[int, Fared]] = []
        while self.next < self.size and self.next in self.known:
            ready.append((self.next, self.known.pop(self.next)))
            self.next += 1
        return ready
