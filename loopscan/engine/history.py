"""The history of a session: its newest records, and per run the streaks that look back over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import TypeVar

from loopscan.engine.outcomes import Judged
from loopscan.engine.records import Record
from loopscan.engine.streaks import Agreement, Alternation, Churn, ExecTail, Lane, Projection, UnknownTool

_Streak = TypeVar("_Streak", ExecTail, Churn)


class History:
    """The records of one session, newest last, cut to ``size`` after every append, whatever run they belong to."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held = 0
        self._records: deque[Record] = deque()
        self._scopes: dict[str | None, Scope] = {}

    def __len__(self) -> int:
        return self._held

    @property
    def records(self) -> Sequence[Record]:
        """The records, newest last."""
        return self._records

    def scope(self, run_id: str | None) -> Scope:
        """Return the scope of a run id, to look back over; ``None`` is a scope of its own."""
        return self._scopes.get(run_id) or Scope()

    def append(
        self, tool: str, signature: bytes, run_id: str | None, *, veto: bool = False, settled: bool = False
    ) -> Record:
        """Append a record, cut the history, and return the record.

        Its outcome is to be settled later, unless it is a ``veto`` or ``settled``: no outcome will come.
        """
        record = Record(tool, signature, run_id, veto=veto, settled=settled or veto)
        self._scope_of(record).append(record)
        self._add(record)
        return record

    def pass_over(self, run_id: str | None, calls: int) -> None:
        """Append as many records as there are calls, each unlike all others, and of which no outcome will come."""
        record = Record("", b"", run_id, settled=True, calls=calls)
        self._scope_of(record).pass_over(record)
        self._add(record)

    def _scope_of(self, record: Record) -> Scope:
        scope = self._scopes.get(record.run_id)
        if scope is None:
            scope = self._scopes[record.run_id] = Scope()
        return scope

    def _add(self, record: Record) -> None:
        """Take in what its scope has taken in, and cut the history."""
        self._records.append(record)
        self._held += record.calls
        while self._held > self._size:
            oldest = self._records[0]
            calls = min(oldest.calls, self._held - self._size)
            self._held -= calls
            left = self._scopes[oldest.run_id]
            left.evict(oldest, calls)
            if oldest.evicted:
                self._records.popleft()
            if not left.held:
                del self._scopes[oldest.run_id]

    def settle(
        self, record: Record, judged: Judged | None, *, lossy: bool = False, passed_over: bool = False
    ) -> None:
        """Give ``record`` its outcome; ``None``: it is known that none will come.

        ``lossy``: the outcome holds less than the live engine saw. ``passed_over``: see :class:`Record`.
        """
        if record.settled:
            return
        if record.evicted:  # the engine finds no record to put the outcome into, and appends one
            if judged is None or not (judged.identity or judged.veto):
                return
            record = self.append(record.tool, record.signature, record.run_id)
        record.settled = True
        if judged is not None:
            record.outcome = judged.identity
            record.no_progress = judged.no_progress
            record.failure = judged.failure
            record.unknown_tool = judged.unknown_tool
            record.veto = judged.veto
            record.passed_over = passed_over
        self._scopes[record.run_id].settle(record, lossy=lossy)


class Tail:
    """The streaks that a record without outcome ends, over the records from position ``start`` on."""

    def __init__(self, start: int = 0) -> None:
        self.agreement = Agreement(start)
        self.unknown = UnknownTool()

    def push(self, record: Record) -> None:
        """Take in the next record, its outcome known or known to be missing."""
        self.agreement.push(record)
        self.unknown.push(record)


class Scope:
    """The records of one run id in the history, and their streaks.

    Streaks that depend on outcomes take records in order, each when it is settled: records behind
    one that still waits for its outcome wait too. While some wait, what counts is what came after the
    newest of them, and a second set of streaks is kept of that.
    """

    def __init__(self) -> None:
        self.records: deque[Record] = deque()
        self.held = 0
        """How many calls they stand for."""
        self._next = 0
        self._waiting: deque[Record] = deque()
        self._lanes: dict[bytes, Lane] = {}
        self._alternation = Alternation()
        self._settled = Tail()
        self._after_waiting: Tail | None = Tail()  # None: to be looked up anew
        self._exec = ExecTail()
        self._churn = Churn()
        self._lossy = -1  # position of the newest outcome that is less than the live engine saw

    # --- the history's side

    def append(self, record: Record) -> None:
        """Take in the newest record."""
        self._number(record)
        lane = self._lanes.get(record.signature)
        if lane is None:
            lane = self._lanes[record.signature] = Lane()
        lane.live += 1
        self._alternation.push(record.signature)
        if record.veto:
            lane.veto(record.position)
        self._wait(record)

    def pass_over(self, record: Record) -> None:
        """Take in a record that stands for calls that differ from all others."""
        self._number(record)
        for number in range(max(self._next - 2, self._next - record.calls), self._next):
            self._alternation.push(b"passed over %d" % number)
        self._wait(record)

    def _number(self, record: Record) -> None:
        self._next += record.calls
        self.held += record.calls
        record.position = self._next - 1
        self.records.append(record)

    def _wait(self, record: Record) -> None:
        self._waiting.append(record)
        if not record.settled:
            self._after_waiting = None
        elif self._after_waiting is not None:
            self._after_waiting.push(record)
        self._advance()

    def settle(self, record: Record, *, lossy: bool = False) -> None:
        """Take in the outcome of one of the records."""
        lane = self._lanes[record.signature]
        if lossy:
            lane.lossy = max(lane.lossy, record.position)
            self._lossy = max(self._lossy, record.position)
        if record.veto:
            lane.veto(record.position)
        elif record.outcome is not None:
            lane.settle(record.position, record.outcome)
        self._after_waiting = None
        self._advance()

    def evict(self, record: Record, calls: int = 1) -> None:
        """Forget ``calls`` of those that ``record`` stands for, which is the oldest."""
        self.held -= calls
        record.calls -= calls
        if record.calls:
            return
        self.records.popleft()
        record.evicted = True
        lane = self._lanes.get(record.signature)
        if lane is not None:
            lane.evict(record.position)
            if not lane.live:
                del self._lanes[record.signature]
        if self._waiting and self._waiting[0] is record:
            self._waiting.popleft()
            self._take(record)
            self._advance()
        self._exec.evict(record.position)
        self._churn.evict(record.position)

    def _advance(self) -> None:
        while self._waiting and self._waiting[0].settled:
            self._take(self._waiting.popleft())

    def _take(self, record: Record) -> None:
        self._settled.push(record)
        self._exec.push(record)
        self._churn.push(record)

    # --- the detectors' side

    def projection(self) -> Projection:
        """Return an empty projection on top of this scope."""
        return Projection(self._alternation.copy())

    def recent(self, signature: bytes, ahead: Projection) -> int:
        """Return how many records have ``signature``."""
        lane = self._lanes.get(signature)
        return (lane.live if lane else 0) + ahead.signatures.get(signature, 0)

    def no_progress(self, signature: bytes, ahead: Projection) -> int:
        """Return the no-progress count of a proposed call, by its own signature."""
        lane = self._lanes.get(signature)
        return (lane.streak if lane else 0) + ahead.signatures.get(signature, 0)

    def exec_failures(self, tool: str, signature: bytes, ahead: Projection) -> int:
        """Return the count of ``exec`` calls that failed alike, whatever their arguments; 0 for other tools."""
        if tool != "exec" or not ahead.tools <= {tool}:
            return 0
        failing = self._over_waiting(self._exec, ExecTail()).count(signature)
        return failing + ahead.calls if failing else 0

    def newest_outcome(self, signature: bytes) -> bytes | None:
        """Return the newest outcome identity of a signature."""
        lane = self._lanes.get(signature)
        return lane.outcome if lane else None

    def is_lossy(self, signature: bytes | None, count: int) -> bool:
        """Whether a streak of ``count`` rests on an outcome of which the record holds only a part.

        ``signature`` names the streak's lane; ``None`` stands for the newest records whatever their signature.
        """
        if signature is None:
            return self._lossy >= max(0, self._next - count)
        lane = self._lanes.get(signature)
        return lane is not None and 0 <= lane.start <= lane.lossy

    def unknown_tool(self, tool: str, ahead: Projection) -> tuple[int, str | None]:
        """Return the unknown-tool streak of a proposed tool and the name that is unknown."""
        if ahead.calls:
            return 0, None
        streak = self._tail().unknown
        if streak.tool != tool:
            return 0, None
        return min(streak.count, self.held), streak.name

    def ping_pong(self, signature: bytes, ahead: Projection) -> tuple[int, str | None, bool, bytes]:
        """Return the ping-pong count of a proposed call, and of the other call the tool and signature.

        Before the signature stands whether nothing progresses.
        """
        alternation = ahead.alternation
        length = min(alternation.length, self.held + ahead.calls)
        if length < 2 or alternation.before != signature or alternation.last is None:
            return 0, None, False, b""
        paired = ahead.newest_tool if ahead.calls else self.records[-1].tool
        evidence = False
        if not ahead.calls and self.records[-1].settled:
            evidence = self._tail().agreement.start <= self._next - length
        return length + 1, paired, evidence, alternation.last

    def churn(self, tool: str, signature: bytes, ahead: Projection) -> int:
        """Return the argument-churn count of a proposed call."""
        if not ahead.tools <= {tool}:
            return 0
        return self._over_waiting(self._churn, Churn()).count(tool, signature)

    def _over_waiting(self, settled: _Streak, fresh: _Streak) -> _Streak:
        """Return a streak that passes over records without outcome, as it is while some wait for theirs.

        It is walked anew then: rulesets that have such a streak have a short history.
        """
        if not self._waiting:
            return settled
        for record in self.records:
            fresh.push(record)
        return fresh

    def _tail(self) -> Tail:
        """Return the streaks as they are now: those after the newest record that waits for its outcome."""
        if not self._waiting:
            return self._settled
        if self._after_waiting is None:
            newest = list(takewhile(lambda record: record.settled, reversed(self._waiting)))
            self._after_waiting = Tail(self._next - sum(record.calls for record in newest))
            for record in reversed(newest):
                self._after_waiting.push(record)
        return self._after_waiting
