"""Runs while they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopscan.events import Ending, RunEnded, Where
from loopscan.transcripts.openclaw.entries import FAILED_STOPS, FINAL_STOPS
from loopscan.transcripts.recent import Recent

if TYPE_CHECKING:
    from loopscan.transcripts.openclaw.entries import Entry
    from loopscan.transcripts.openclaw.slots import AbsentGroup, Batch, CompactionSlot, OpeningUser


class Run:
    """One run while it is read. A run that turns out to be part of another one is merged into it."""

    __slots__ = (
        "above",
        "batch",
        "compactions",
        "ended",
        "explained",
        "group",
        "key",
        "merged",
        "opener",
        "parent",
        "prompt",
        "retryable",
        "run_id",
        "stop",
        "where",
    )

    def __init__(self, parent: Run | None = None, opener: OpeningUser | None = None) -> None:
        self.key = ""
        """Empty until it is settled that this is a run of its own."""
        self.run_id: str | None = None
        self.parent = parent
        self.merged: Run | None = None
        self.opener = opener
        self.above: tuple[int, Run | None] | None = None
        """The nearest settled run above, and when that was found; see :meth:`Runs.settled_above`."""
        self.prompt: int | None = None
        """A hash of the text that opened it."""
        self.batch: Batch | None = None
        """The latest message with calls."""
        self.group: AbsentGroup | None = None
        self.compactions: list[CompactionSlot] = []
        """Compactions of which it is not known whether the run goes on after them."""
        self.retryable = False
        """The same prompt again would be a retry: since the latest response the context was compacted, found too
        long, or written anew."""
        self.stop: str | None = None
        """How the latest model response ended; ``None`` while that is open."""
        self.where = Where()
        """The latest entry."""
        self.explained = False
        """Something in the record tells why it ended."""
        self.ended = False

    @property
    def settled(self) -> bool:
        """Whether it has its key."""
        return bool(self.key)

    def root(self) -> Run:
        """Return the run that this one was merged into, itself if it was not."""
        run = self
        while run.merged is not None:
            run = run.merged
        return run

    def goes_on(self, in_run: bool) -> None:
        """Decide about the compactions that waited for what follows them."""
        for slot in self.compactions:
            slot.in_run = in_run
        self.compactions.clear()

    def over(self) -> bool:
        """Say whether the model was done or failed: what follows a user message then is another run."""
        idle = self.batch is None or self.batch.closed
        return idle and self.group is None and self.stop in (FINAL_STOPS | FAILED_STOPS)


class Node:
    """An entry as it is remembered: its place in the session, and its run."""

    __slots__ = ("_run", "place")

    def __init__(self, place: int) -> None:
        self.place = place
        self._run: Run | None = None

    @property
    def run(self) -> Run | None:
        """The run that the entry belongs to, ``None`` for one before any run."""
        return self._run.root() if self._run is not None else None

    @run.setter
    def run(self, run: Run | None) -> None:
        self._run = run


class Runs:
    """The runs of a session, and which run each of the latest entries belongs to."""

    def __init__(self) -> None:
        self.going: dict[str, Run] = {}
        """Runs that have not ended, by key, in the order in which they were settled."""
        self._settled = 0
        self._changes = 0
        """How often runs were settled or merged: what was found above one holds until then."""
        self._by_id: Recent[str, Run] = Recent()
        self._by_entry: Recent[str, Node] = Recent()
        self._by_place: Recent[int, Node] = Recent()
        self._latest: Node | None = None
        self._latest_id: str | None = None
        self._preamble: Run | None = None

    def node(self, entry: Entry) -> Node:
        """Return a node for a new entry, to be remembered once its run is known."""
        return Node(self._latest.place + 1 if self._latest is not None else 0)

    def remember(self, entry: Entry, node: Node) -> None:
        """Remember an entry."""
        if entry.id is not None:
            self._by_entry[entry.id] = node
            self._latest_id = entry.id
        self._by_place[node.place] = node
        self._latest = node

    @property
    def latest(self) -> Run | None:
        """The run of the latest entry, ``None`` if it has none."""
        return self._latest.run if self._latest is not None else None

    def at(self, place: int) -> Node | None:
        """Return the entry at ``place``, unless it is forgotten."""
        return self._by_place.get(place)

    def branching_point(self, entry: Entry) -> int | None:
        """Return the place of the parent of an entry where that is not the entry before it, -1 if it has none.

        ``None``: the line is unbroken, or the parent is not known, and may be a line that could not be read.
        """
        if not entry.linked or self._latest_id is None or entry.parent == self._latest_id:
            return None
        if entry.parent is None:
            return -1
        parent = self._by_entry.get(entry.parent)
        return parent.place if parent is not None else None

    def above(self, entry: Entry) -> Run | None:
        """Return the run of the entry's parent; of the line before, where the parent is not known."""
        parent = self._by_entry.get(entry.parent) if entry.parent is not None else None
        node = parent or self._latest
        return node.run if node is not None else None

    def named(self, run_id: str | None) -> Run | None:
        """Return the run with a recorded run id, if it was met."""
        run = self._by_id.get(run_id) if run_id is not None else None
        return run.root() if run is not None else None

    def bind(self, run_id: str, run: Run | None) -> Run:
        """Give a recorded run id to ``run`` if a user message opened it that nobody claimed, else to a new run."""
        if run is None or run.run_id is not None or run.opener is None:
            run = Run()
        run.run_id = run_id
        self._by_id[run_id] = run
        return run

    def preamble(self) -> Run:
        """Return the run of what was said before any user message."""
        if self._preamble is None:
            self._preamble = Run()
        return self._preamble

    def settle(self, run: Run) -> None:
        """Make a run of its own of ``run``, and of those above it for which that is still open.

        What was over above its user message ends there.
        """
        waiting: list[Run] = []
        at: Run | None = run.root()
        while at is not None and not at.settled:
            waiting.append(at)
            at = at.parent.root() if at.parent is not None else None
        for each in reversed(waiting):
            above, opener = each.parent, each.opener
            self._give_key(each)
            if above is None or opener is None:
                continue
            above = above.root()
            if above.over() and not above.ended and above.where.line < opener.where.line:
                opener.before.append(self.end(above))

    def settled_above(self, run: Run) -> Run | None:
        """Return the nearest settled run that ``run`` is or hangs below."""
        passed: list[Run] = []
        at: Run | None = run
        while at is not None and not at.settled:
            if at.above is not None and at.above[0] == self._changes:
                at = at.above[1]
                break
            passed.append(at)
            at = at.parent.root() if at.parent is not None else None
        for each in passed:
            each.above = (self._changes, at)
        return at

    def steer(self, run: Run, into: Run) -> None:
        """Make steering of ``into`` of the user message that opened ``run``, and of those right above it."""
        while not run.settled and run is not into:
            if run.opener is not None:
                run.opener.steering = True
            run.merged = into
            self._changes += 1
            if run.parent is None:
                return
            run = run.parent.root()

    def _give_key(self, run: Run) -> None:
        """Name a run by its recorded id, or else ``#`` and its number."""
        self._settled += 1
        self._changes += 1
        if run.run_id is None:
            run.key = f"#{self._settled}"
        else:
            run.key = f"#{run.run_id}" if run.run_id.startswith("#") else run.run_id
        run.parent = None
        self.going[run.key] = run

    def end(self, run: Run) -> RunEnded:
        """Mark a run as ended, and say how. It may still go on, as a record may; but it ends once."""
        run.ended = True
        self.going.pop(run.key, None)
        if run.stop in FINAL_STOPS:
            return RunEnded(run.key, run.where, Ending.COMPLETED)
        lacking = run.stop is None and run.batch is not None and run.batch.lacks_results
        unanswered = lacking and not run.explained
        return RunEnded(run.key, run.where, Ending.INTERRUPTED, unanswered=unanswered)
