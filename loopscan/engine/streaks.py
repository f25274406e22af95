"""The streaks, kept as records come: each answers in O(1) amortised, whatever the history size.

All count backwards from the newest record of one scope (the records of one run). Every class here
takes the records of its scope in order; *position* is a record's number within its scope, counted
from 0. Evicting takes the oldest record. What each count means is in ``engine.md``, "Streaks".
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from loopscan.engine.records import Record

#: How often each signature has to occur before churn counts.
CHURN_REPEATS: Final = 3


class Lane:
    """The records of one signature in one scope, and their no-progress streak.

    Outcomes may come in any order; placing one costs as much as it is late.
    """

    __slots__ = ("_breaker", "_leading", "_newest", "_segment", "live", "lossy", "outcome")

    def __init__(self) -> None:
        self.live = 0
        """How many records of the signature the history holds, with or without outcome."""
        self.outcome: bytes | None = None
        """The newest outcome in the history."""
        self.lossy = -1
        """The newest position whose outcome the record holds only in part."""
        self._newest = -1  # position of the newest outcome
        self._breaker = -1  # the newest position that held another outcome
        # Positions with the newest outcome or a veto (True), from the breaker on.
        self._segment: deque[tuple[int, bool]] = deque()
        self._leading = 0  # vetoes before the first outcome, held back

    @property
    def streak(self) -> int:
        """The no-progress count: equal newest outcomes, and the vetoes that are not held back."""
        return len(self._segment) - self._held

    @property
    def start(self) -> int:
        """The position of the oldest record that the streak counts; -1 without any."""
        return self._segment[self._held][0] if len(self._segment) > self._held else -1

    @property
    def _held(self) -> int:
        return 0 if self.outcome is None else self._leading  # vetoes alone all count

    def veto(self, position: int) -> None:
        """Take in a veto."""
        if position > self._breaker:
            self._place(position, veto=True)

    def settle(self, position: int, outcome: bytes) -> None:
        """Take in the outcome of a record."""
        if position < self._breaker:
            return
        if position < self._newest and outcome != self.outcome:
            self._break_at(position)
            return
        newer = position > self._newest
        if newer and outcome != self.outcome:
            self._break_at(self._newest)
            self.outcome = outcome
        if newer:
            self._newest = position
        self._place(position, veto=False)

    def evict(self, position: int) -> None:
        """Forget the record at ``position``, which is the oldest."""
        self.live -= 1
        if self._segment and self._segment[0][0] == position:
            _, veto = self._segment.popleft()
            if veto:
                self._leading -= 1
            else:
                self._hold_back()
            if self._leading == len(self._segment):
                self.outcome = None

    def _place(self, position: int, *, veto: bool) -> None:
        segment = self._segment
        if segment and position < segment[0][0]:  # results in reverse order must not cost their square
            segment.appendleft((position, veto))
            self._leading = self._leading + 1 if veto else 0
            return
        later: list[tuple[int, bool]] = []
        while segment and segment[-1][0] > position:
            later.append(segment.pop())
        segment.append((position, veto))
        segment.extend(reversed(later))
        if later or len(segment) == self._leading + 1:
            self._hold_back()

    def _break_at(self, position: int) -> None:
        self._breaker = position
        while self._segment and self._segment[0][0] <= position:
            self._segment.popleft()
        self._hold_back()

    def _hold_back(self) -> None:
        """Count the vetoes before the first outcome."""
        self._leading = 0
        for _, veto in self._segment:
            if not veto:
                break
            self._leading += 1


class Alternation:
    """The strictly alternating tail of signatures; outcomes play no part."""

    __slots__ = ("before", "last", "length")

    def __init__(self, length: int = 0, last: bytes | None = None, before: bytes | None = None) -> None:
        self.length = length
        self.last = last
        self.before = before
        """The signature of the second newest record."""

    def push(self, signature: bytes) -> None:
        """Take in the next record's signature."""
        if self.last is None or signature == self.last:
            self.length = 1
        elif self.length >= 2 and signature == self.before:
            self.length += 1
        else:
            self.length = 2
        self.before, self.last = self.last, signature

    def copy(self) -> Alternation:
        """Return a copy that can go on without this one."""
        return Alternation(self.length, self.last, self.before)


class Agreement:
    """From which position on every record has an outcome equal to that of the record two before it."""

    __slots__ = ("_outcomes", "start")

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self._outcomes: deque[bytes | None] = deque((None, None), maxlen=2)

    def push(self, record: Record) -> None:
        """Take in the next record, its outcome known or known to be missing."""
        if record.outcome is None:
            self.start = record.position + 1
        elif self.start <= record.position - 2 and record.outcome != self._outcomes[0]:
            self.start = record.position - 1
        self._outcomes.append(record.outcome)


class UnknownTool:
    """Unbroken newest records of one tool whose outcome names one unknown tool."""

    __slots__ = ("count", "name", "tool")

    def __init__(self) -> None:
        self.count = 0
        self.tool: str | None = None
        self.name: str | None = None

    def push(self, record: Record) -> None:
        """Take in the next record, its outcome known or known to be missing."""
        if record.unknown_tool is None:
            self.count, self.tool, self.name = 0, None, None
        elif (record.tool, record.unknown_tool) == (self.tool, self.name):
            self.count += 1
        else:
            self.count, self.tool, self.name = 1, record.tool, record.unknown_tool


class ExecTail:
    """Unbroken newest ``exec`` records that failed alike, whatever their arguments, vetoes between them included.

    Records without outcome are passed over, and so are rejections by argument validation.
    The walk that this replaces leaves the proposed arguments at the first failure with others, and
    stops where it meets them again: so the newest such meeting point of each signature is kept.
    """

    __slots__ = ("_end", "_failure", "_failures", "_head", "_head_before", "_last", "_next", "_ordinals")

    def __init__(self) -> None:
        self._reset()
        self._next = 0  # number of the next failure

    def _reset(self) -> None:
        self._failure: bytes | None = None
        self._failures: deque[tuple[int, int, bytes]] = deque()  # (position, number, signature), oldest first
        self._ordinals: dict[int, int] = {}  # number of a failure -> how many entries came before it
        self._last: dict[bytes, int] = {}  # signature -> number of its newest failure
        self._head: bytes | None = None  # signature of the newest failure
        self._head_before: int | None = None  # where that one was met before its present unbroken run
        self._end = 0  # entries so far, vetoes included

    def push(self, record: Record) -> None:
        """Take in the next record, its outcome known or known to be missing."""
        if record.tool == "exec" and (record.passed_over or not (record.veto or record.outcome)):
            return
        if record.tool != "exec" or not (record.veto or record.failure):
            if self._failure is not None:
                self._reset()
        elif record.failure is None:
            self._end += bool(self._failures)
        else:
            if record.failure != self._failure:
                self._reset()
                self._failure = record.failure
            number, self._next = self._next, self._next + 1
            if record.signature != self._head:
                self._head, self._head_before = record.signature, self._last.get(record.signature)
            self._last[record.signature] = number
            self._ordinals[number] = self._end
            self._failures.append((record.position, number, record.signature))
            self._end += 1

    def evict(self, position: int) -> None:
        """Forget the record at ``position``, which is the oldest."""
        if self._failures and self._failures[0][0] == position:
            _, number, signature = self._failures.popleft()
            del self._ordinals[number]
            if self._last[signature] == number:
                del self._last[signature]

    def count(self, proposed: bytes) -> int:
        """Return the count for a proposed signature; 0 without any failure."""
        if not self._failures:
            return 0
        met = self._head_before if proposed == self._head else self._last.get(proposed)
        oldest = self._failures[0][1]
        if met is not None and met >= oldest:
            oldest = met + 1
        return self._end - self._ordinals[oldest]


class Churn:
    """Unbroken newest records of one tool without progress, over changing arguments.

    Records without outcome are passed over. A signature that changes its outcome ends the tail
    after its last record with the other one.
    """

    __slots__ = ("_by_outcome", "_by_signature", "_outcome_of", "_rare", "_tail", "tool")

    def __init__(self) -> None:
        self.tool: str | None = None
        self._reset()

    def _reset(self) -> None:
        self._tail: deque[tuple[int, bytes, bytes]] = deque()  # (position, signature, outcome)
        self._by_signature: Counter[bytes] = Counter()
        self._by_outcome: Counter[bytes] = Counter()
        self._outcome_of: dict[bytes, bytes] = {}  # each signature has one
        self._rare = 0  # signatures that occur less often than CHURN_REPEATS

    def _clear(self) -> None:
        if self._tail:
            self._reset()

    def push(self, record: Record) -> None:
        """Take in the next record, its outcome known or known to be missing."""
        if record.tool != self.tool:
            self.tool = record.tool
            self._clear()
        if record.outcome is None:
            return
        if not record.no_progress:
            self._clear()
            return
        while self._outcome_of.get(record.signature, record.outcome) != record.outcome:
            self._pop()
        self._outcome_of[record.signature] = record.outcome
        self._tail.append((record.position, record.signature, record.outcome))
        self._by_outcome[record.outcome] += 1
        self._by_signature[record.signature] += 1
        times = self._by_signature[record.signature]
        self._rare += (times == 1) - (times == CHURN_REPEATS)

    def evict(self, position: int) -> None:
        """Forget the record at ``position``, which is the oldest."""
        if self._tail and self._tail[0][0] == position:
            self._pop()

    def count(self, tool: str, proposed: bytes) -> int:
        """Return the count for a proposed call; 0 where the conditions of churn are not met."""
        if tool != self.tool or self._rare or len(self._by_signature) < 2 or len(self._by_outcome) != 1:
            return 0
        return len(self._tail) if proposed in self._by_signature else 0

    def _pop(self) -> None:
        _, signature, outcome = self._tail.popleft()
        times = self._by_signature[signature]
        self._rare += (times == CHURN_REPEATS) - (times == 1)
        if times == 1:
            del self._by_signature[signature], self._outcome_of[signature]
        else:
            self._by_signature[signature] = times - 1
        if self._by_outcome[outcome] == 1:
            del self._by_outcome[outcome]
        else:
            self._by_outcome[outcome] -= 1


@dataclass(slots=True)
class Projection:
    """Earlier siblings of a batch, counted as vetoes on top of the real history."""

    alternation: Alternation
    calls: int = 0
    newest_tool: str | None = None
    tools: set[str] = field(default_factory=set)
    signatures: dict[bytes, int] = field(default_factory=dict)

    def add(self, tool: str, signature: bytes) -> None:
        """Take in the next sibling."""
        self.alternation.push(signature)
        self.calls += 1
        self.newest_tool = tool
        self.tools.add(tool)
        self.signatures[signature] = self.signatures.get(signature, 0) + 1
