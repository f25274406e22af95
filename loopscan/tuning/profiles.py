"""Profiles: what is kept of a session to answer every combination of settings, made in one pass over the record.

The runs of a session that go on at the same time make one *unit*: the engine's history is shared among them, and
nothing of it reaches a run that begins when all others are over. A unit in which nothing repeats is counted and let
go; of the others the steps are kept (:mod:`loopscan.tuning.steps`).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Final

import orjson

from loopscan.engine.identify import Identifier
from loopscan.events import (
    Compaction,
    RunEnded,
    SessionEvent,
    SessionStarted,
    Turn,
    UnknownToolStopped,
    Usage,
    Where,
)
from loopscan.modes import Arm, ScopeRule
from loopscan.tuning.steps import Recorder, Step, costs, written

#: How often something has to occur for its unit to be kept.
REPEATS: Final = 3
#: The lowest threshold that profiles can answer: what is let go cannot reach it.
LOWEST_THRESHOLD: Final = 5
#: The longest history that profiles can answer; what is further apart may have other numbers.
LONGEST_HISTORY: Final = 1000
#: How many bytes of steps of one session are held while it may go on with any of its runs.
_MOST_HELD: Final = 16 << 20
#: How many different things are counted at a time, to find what repeats.
_MOST_COUNTED: Final = 4096


@dataclass(frozen=True, slots=True)
class Basis:
    """What profiles depend on, apart from the records: only profiles of the same basis can be put together."""

    ruleset: str
    scope: ScopeRule = ScopeRule.RUN
    arm: Arm = Arm.AUTO
    tool_map: tuple[tuple[str, str], ...] = ()
    """Tools that were judged as others, over what the readers declare."""

    def __str__(self) -> str:
        renamed = "".join(f", {tool} as {name}" for tool, name in self.tool_map)
        return f"ruleset {self.ruleset}, scope {self.scope.value}, arm {self.arm.value}{renamed}"


@dataclass(slots=True)
class Spent:
    """Calls, responses and what they cost, as recorded; unknown costs are 0."""

    calls: int = 0
    responses: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def add_usage(self, usage: Usage) -> None:
        """Count one response."""
        spent = costs(usage)
        self.responses += 1
        self.input += spent[0]
        self.output += spent[1]
        self.cache_read += spent[2]
        self.cache_write += spent[3]
        self.tokens += spent[4]
        self.cost_usd += spent[5]


@dataclass(frozen=True, slots=True)
class UnitProfile:
    """Runs that go on at the same time, and in which something repeats."""

    packed: bytes
    """:attr:`steps`, compressed: all units are held in memory at the same time."""
    runs: tuple[str, ...]
    """Their keys, in the order in which they appear."""

    @classmethod
    def of(cls, steps: bytes, runs: Iterable[str]) -> UnitProfile:
        """Return the profile with these steps."""
        return cls(zlib.compress(steps, 1), tuple(runs))

    @property
    def steps(self) -> bytes:
        """A JSON array of :data:`~loopscan.tuning.steps.Step`."""
        return zlib.decompress(self.packed)

    def read(self) -> list[Step]:
        """Return the steps."""
        found: list[Step] = orjson.loads(self.steps)
        return found


@dataclass(frozen=True, slots=True)
class SessionProfile:
    """What is kept of one session: the statistical unit of all that follows."""

    source: str
    session: str
    agent: str | None
    model: str | None
    started: float | None
    """Seconds since the epoch, UTC, of the first entry that has a time."""
    ended: float | None
    runs: int
    spent: Spent
    run_numbers: dict[str, int]
    """The numbers of the runs in ``units`` by key, counted from 0 within the session, in order of appearance."""
    units: tuple[UnitProfile, ...]
    torn: int = 0
    """Runs that went on after their steps had been let go: what repeats across the gap is not seen."""

    @property
    def followed(self) -> frozenset[str]:
        """The runs in ``units`` after which others came."""
        return frozenset(run for run, number in self.run_numbers.items() if number < self.runs - 1)


@dataclass(slots=True)
class _Unit:
    """A unit while it is made."""

    steps: bytearray = field(default_factory=bytearray)
    runs: dict[str, None] = field(default_factory=dict)
    scopes: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    seen: Counter[tuple[object, ...]] = field(default_factory=Counter)
    repeats: bool = False

    def add(self, step: Step) -> None:
        self.steps += orjson.dumps(step)
        self.steps += b","

    def note(self, *thing: object) -> None:
        """Note something of which three make a loop possible."""
        if self.repeats:
            return
        count = self.seen.pop(thing, 0) + 1
        self.seen[thing] = count
        self.repeats = count >= REPEATS
        if len(self.seen) > _MOST_COUNTED:  # what was not seen for longest goes
            del self.seen[next(iter(self.seen))]

    def join(self, other: _Unit) -> None:
        """Take in what followed this unit."""
        self.steps += other.steps
        self.runs |= other.runs
        self.scopes |= other.scopes
        self.open |= other.open
        self.repeats = True  # together they may, and it is rare enough not to look


class ProfileBuilder:
    """Makes the profile of one session from its events."""

    def __init__(self, source: str, started: SessionStarted, basis: Basis, identifier: Identifier) -> None:
        self._source = source
        self._started = started
        self._model = started.model
        self._whole = basis.scope is ScopeRule.SESSION
        self._recorder = Recorder(identifier)
        self._first: float | None = None
        self._last: float | None = None
        self._clock(started.where)
        self._numbers: dict[str, int] = {}
        self._spent = Spent()
        self._units: list[_Unit] = []
        self._gone: set[str] = set()
        self._torn = 0

    def feed(self, event: SessionEvent) -> None:
        """Take in the next event of the session."""
        self._clock(event.where)
        if not event.run:
            return
        self._numbers.setdefault(written(event.run), len(self._numbers))
        if isinstance(event, Turn | UnknownToolStopped):
            self._spent.add_usage(event.usage)
        if isinstance(event, Turn):
            self._spent.calls += event.stored_calls
            self._model = self._model or event.model
        step = self._recorder.step(event)
        if step is None:
            return
        unit = self._unit_of(event)
        unit.add(step)
        _note(unit, step)
        if isinstance(event, Compaction):
            unit.repeats |= event.in_run  # it arms a guard that a single loop of three calls sets off
        if isinstance(event, RunEnded):
            unit.open.discard(step[1])
        else:
            unit.open.add(step[1])

    def finish(self, where: Where) -> SessionProfile:
        """Return the profile: nothing follows."""
        self._clock(where)
        started, kept = self._started, [unit for unit in self._units if unit.repeats]
        units = tuple(UnitProfile.of(b"[%s]" % bytes(unit.steps[:-1]), unit.runs) for unit in kept)
        numbers = {run: self._numbers[run] for unit in units for run in unit.runs}
        return SessionProfile(
            written(self._source),
            written(started.session),
            _written(started.agent),
            _written(self._model),
            self._first,
            self._last,
            len(self._numbers),
            replace(self._spent),
            numbers,
            units,
            self._torn,
        )

    def _unit_of(self, event: SessionEvent) -> _Unit:
        """Return the unit that an event belongs to: the one that goes on, or an earlier one of the same run."""
        run = written(event.run or "")
        run_id = getattr(event, "run_id", None)
        scopes = {f"key {run}"} | ({f"id {run_id}"} if run_id else set())
        latest = self._units[-1] if self._units else None
        if latest is not None and run in latest.runs and scopes <= latest.scopes:
            return latest
        place = next((at for at, unit in enumerate(self._units) if scopes & unit.scopes), None)
        if place is not None:
            unit = self._units[place]
            for later in self._units[place + 1 :]:
                unit.join(later)
            del self._units[place + 1 :]
        elif latest is not None and (latest.open or self._whole):
            unit = latest
        else:
            if latest is not None:
                latest.seen.clear()
            unit = _Unit()
            self._units.append(unit)
            self._let_go()
        self._torn += run in self._gone and run not in unit.runs
        unit.runs[run] = None
        unit.scopes |= scopes
        return unit

    def _let_go(self) -> None:
        """Drop what does not repeat if much is held: only a run that goes on after its end would need it."""
        if sum(len(unit.steps) for unit in self._units) <= _MOST_HELD:
            return
        for unit in self._units[:-1]:
            if not unit.repeats:
                self._gone |= unit.runs.keys()
        self._units = [unit for unit in self._units[:-1] if unit.repeats] + self._units[-1:]

    def _clock(self, where: Where) -> None:
        if where.time is not None and isfinite(where.time):
            self._first = where.time if self._first is None else min(self._first, where.time)
            self._last = where.time if self._last is None else max(self._last, where.time)


def _written(text: str | None) -> str | None:
    return None if text is None else written(text)


def _note(unit: _Unit, step: Step) -> None:
    """Note what a step may repeat."""
    match step[0]:
        case "t":
            for tool, signature, *_ in step[8]:
                unit.note("call", tool, signature)
            for tool, *_ in step[9]:
                unit.note("absent", step[1], tool)
        case "s":
            unit.repeats = True
        case "r":
            failure, unknown = step[7:]
            if failure is not None:
                unit.note("failure", failure)
            if unknown is not None:
                unit.note("unknown", unknown)
        case _:
            pass
