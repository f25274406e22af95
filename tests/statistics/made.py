"""Sessions that are made, so that what each of their loops truly is, is known: work, loops of many kinds, and ends.

What the record shows of a loop, and what the loop was, are two things here: a poll that would have finished may be
aborted by somebody impatient, and a loop may be stuck while other calls still succeed. Labels go by the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final, TypeAlias

from loopscan.events import (
    Call,
    Ending,
    Json,
    Outcome,
    Result,
    RunEnded,
    SessionEvent,
    SessionStarted,
    Turn,
    Usage,
    UserMessage,
    Where,
)
from loopscan.tuning.labels import Label

Asked: TypeAlias = "tuple[str, dict[str, Json], Outcome]"


class Kind(StrEnum):
    """What repeats."""

    POLL = "a process is polled"
    SAME = "one file is read"
    PARALLEL = "one file is read, several times a message"
    FAILING = "a command fails"
    SWING = "two calls alternate"
    INTERLEAVED = "a process is polled between other work"
    LIST = "a list is worked through"


class Turnout(StrEnum):
    """What becomes of a loop."""

    FINISHES = "it comes back otherwise at last, and the run goes on"
    ABORTED = "it is stuck, and the run is aborted"
    IMPATIENT = "it would have finished, and the run is aborted"
    DISTRACTED = "it is stuck while other calls succeed, and the run is aborted"
    GIVEN_UP = "it is stuck until the model gives up, and answers"
    CUT_STUCK = "it is stuck where the record ends"
    CUT_WORKING = "it would have finished, and the record ends before"


TRUTH: Final = {
    Turnout.FINISHES: Label.PRODUCTIVE,
    Turnout.ABORTED: Label.STUCK,
    Turnout.IMPATIENT: Label.PRODUCTIVE,
    Turnout.DISTRACTED: Label.STUCK,
    Turnout.GIVEN_UP: Label.STUCK,
    Turnout.CUT_STUCK: Label.STUCK,
    Turnout.CUT_WORKING: Label.PRODUCTIVE,
}
_ABORTS: Final = (Turnout.ABORTED, Turnout.IMPATIENT, Turnout.DISTRACTED)
_CUT: Final = (Turnout.CUT_STUCK, Turnout.CUT_WORKING)


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop to be made."""

    kind: Kind
    length: int
    """How many of its calls come back alike."""
    turnout: Turnout


@dataclass(frozen=True, slots=True)
class Span:
    """Where a loop is, and what it truly is."""

    first: int
    last: int
    """The lines of its first and last call."""
    truth: Label


@dataclass(slots=True)
class Made:
    """One session that was made."""

    name: str
    events: list[SessionEvent] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    calls: int = 0
    looping: int = 0
    """How many of the calls are in loops."""

    @property
    def started(self) -> SessionStarted:
        """The event that opens it."""
        return SessionStarted(self.name, Where(), "main", "a-model")


def make(name: str, seed: int, work: int, loops: Sequence[Loop], *, repeats: bool = True) -> Made:
    """Make a session with about ``work`` calls apart from the loops, which come in their order.

    With ``repeats`` the work, too, repeats itself here and there: checks that are run again, files that are read
    again. The same arguments make the same session.
    """
    return _Making(name, seed, repeats).session(work, loops)


def corpus(calls: int, share: float, seed: int) -> Iterator[Made]:
    """Make sessions of log-normal sizes with ``calls`` calls together, of which a ``share`` are in loops."""
    random, made, looping, number = Random(seed), 0, 0, 0
    while made < calls:
        work = min(2000, 1 + round(random.lognormvariate(4.1, 1.0)))
        loops: list[Loop] = []
        while looping < share * (made + work):
            loop = Loop(random.choice(list(Kind)), _length(random), random.choice(list(Turnout)))
            loops.append(loop)
            looping += loop.length
            if len(loops) >= 3 or loop.turnout in _CUT:
                break
        session = make(f"s{number}", random.getrandbits(32), work, loops)
        made += session.calls
        looping += session.looping - sum(loop.length for loop in loops)
        number += 1
        yield session


def _length(random: Random) -> int:
    return min(150, 3 + round(random.lognormvariate(2.4, 0.8)))


def _text(body: str, **details: Json) -> Outcome:
    return Outcome(result={"content": [{"type": "text", "text": body}], "details": dict(details)})


class _Making:
    """Makes one session."""

    def __init__(self, name: str, seed: int, repeats: bool) -> None:
        self._made, self._random, self._repeats = Made(name), Random(seed), repeats
        self._line, self._time = 0, 1.7e9 + self._random.randrange(30_000_000)
        self._run = 0

    def session(self, work: int, loops: Sequence[Loop]) -> Made:
        self._begin()
        for number, loop in enumerate(loops):
            self._work(work // (len(loops) + 1))
            self._loop(loop, number)
            if loop.turnout in _CUT:
                return self._made
            if loop.turnout in _ABORTS:
                self._end("aborted", Ending.INTERRUPTED)
                self._begin()
            elif loop.turnout is Turnout.GIVEN_UP:
                self._end("stop", Ending.COMPLETED)
                self._begin()
        self._work(max(1, work // (len(loops) + 1)))
        self._end("stop", Ending.COMPLETED)
        return self._made

    def _where(self, seconds: float = 3.0) -> Where:
        self._line += 1
        self._time += seconds
        return Where(self._line, None, self._time)

    @property
    def _key(self) -> str:
        return f"r{self._run}"

    def _begin(self) -> None:
        self._run += 1
        self._made.events.append(UserMessage(self._key, self._where(60.0)))

    def _end(self, reason: str, ending: Ending) -> None:
        said = Turn(self._key, self._where(), stop_reason=reason, usage=self._usage(), failed=reason == "aborted")
        self._made.events += (said, RunEnded(self._key, self._where(0.0), ending))

    def _usage(self) -> Usage:
        return Usage(500, 120, 20_000, 400, 21_020, 0.011)

    def _turn(self, asked: Sequence[Asked]) -> int:
        """Add a message that asks for calls, and what they come back with; return its line."""
        where = self._where()
        calls = tuple(Call(tool, arguments, f"c{where.line}-{at}") for at, (tool, arguments, _) in enumerate(asked))
        self._made.events.append(Turn(self._key, where, calls, stop_reason="toolUse", usage=self._usage()))
        for place, (_, _, outcome) in enumerate(asked):
            self._made.events.append(Result(self._key, self._where(0.5), place, outcome))
        self._made.calls += len(asked)
        return where.line

    # --- work

    def _work(self, calls: int) -> None:
        left = calls
        while left > 0:
            size = min(left, self._random.choices((1, 2, 3, 4), (80, 12, 5, 3))[0])
            self._turn([self._something() for _ in range(size)])
            left -= size

    def _something(self) -> Asked:
        """Return a call of ordinary work."""
        number, which = self._random.getrandbits(48), self._random.random()
        if self._repeats and which < 0.1:
            failed = self._random.random() < 0.5
            return "exec", {"command": "make check"}, self._ran(f"{number % 50} of 50 pass", 1 if failed else 0)
        if self._repeats and which < 0.2:
            path = f"src/part{number % 9}.py"
            return "read", {"path": path}, _text(f"{path}, as of {self._line // 60}")
        if which < 0.5:
            return "read", {"path": f"src/{number}.py"}, _text(f"lines of {number}")
        if which < 0.75:
            return "exec", {"command": f"grep -n {number} src"}, self._ran(f"found {number}", 0)
        return "write", {"path": f"out/{number}.py", "content": f"{number}"}, _text(f"wrote {number} bytes")

    def _ran(self, output: str, code: int) -> Outcome:
        status = "failed" if code else "completed"
        return _text(output, status=status, exitCode=code, aggregated=output)

    # --- loops

    def _loop(self, loop: Loop, number: int) -> None:
        before = self._made.calls
        first = self._line + 1
        last = first
        done = 0
        while done < loop.length:
            size = min(loop.length - done, self._random.randint(2, 3)) if loop.kind is Kind.PARALLEL else 1
            last = self._turn([self._repeated(loop.kind, number, done + at) for at in range(size)])
            done += size
            if (loop.kind is Kind.INTERLEAVED and done < loop.length) or (
                loop.turnout is Turnout.DISTRACTED and done % 3 == 0
            ):
                self._turn([self._fresh()])
        if loop.turnout is Turnout.FINISHES:
            last = self._turn([self._changed(loop.kind, number, done)])
        elif loop.turnout is Turnout.DISTRACTED:
            self._turn([self._fresh()])
        self._made.looping += self._made.calls - before
        self._made.spans.append(Span(first, last, TRUTH[loop.turnout]))
        if loop.turnout is Turnout.FINISHES:
            self._turn([self._fresh()])

    def _fresh(self) -> Asked:
        number = self._random.getrandbits(48)
        return "write", {"path": f"log/{number}.txt", "content": f"{number}"}, _text(f"wrote {number} bytes")

    def _repeated(self, kind: Kind, number: int, at: int) -> Asked:
        """Return the next call of a loop that makes no progress; each loop of a session has calls of its own."""
        match kind:
            case Kind.POLL | Kind.INTERLEAVED:
                return "process", {"action": "poll", "sessionId": f"p{number}"}, _text("running", status="running")
            case Kind.FAILING:
                command = f"ssh host{number} uptime"
                return "exec", {"command": command}, self._ran(f"ssh: no route to host{number}", 255)
            case Kind.SWING if at % 2:
                return "grep", {"pattern": f"needle{number}"}, _text(f"nothing of needle{number}")
            case Kind.LIST:
                return "exec", {"command": f"convert {number}-{at}.png"}, self._ran(f"converted {at}", 0)
            case _:
                return "read", {"path": f"state/{number}.json"}, _text(f"state {number}: waiting")

    def _changed(self, kind: Kind, number: int, at: int) -> Asked:
        """Return the call of a loop that comes back otherwise at last."""
        tool, arguments, _ = self._repeated(kind, number, at)
        return tool, arguments, self._ran(f"done after {at}", 0) if tool in ("exec", "process") else _text("done")
