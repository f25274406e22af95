"""The steps of a session: what the engine compares of each event, numbered, and nothing of its content.

From these steps alone an engine decides exactly as it does from the record: :class:`Recorder` writes them down, and
:func:`play` gives back events that :class:`PlayedBack` identifies. A step is a JSON array that begins with a letter:

========  ==========================================================================================
``t``     a message of the model: run, line, time, flags, stop, model, usage, calls, absent calls
``r``     an outcome: run, line, time, index, identity, flags, failure, unknown tool
``u``     a user message: run, line, time, flags
``c``     a compaction: run, line, time, in the run, from a hook
``s``     the live unknown-tool guard stepped in: run, line, time, tool, usage
``e``     the run ended: run, line, time, ending, unanswered
``v``     a recorded verdict: run, line, time, kind
========  ==========================================================================================

A call is ``[tool, signature, known poll, fate]``, an absent one ``[tool, signature, position, error]``. Tools stand
by name; signatures, identities, failures and unknown names are numbers that mean the same within one session alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from math import isfinite
from typing import Any, Final, TypeAlias

from loopscan.engine.identify import Identified, Identifier
from loopscan.engine.outcomes import Judged
from loopscan.events import (
    NO_USAGE,
    AbsentCall,
    Call,
    Compaction,
    Ending,
    Fate,
    Json,
    Outcome,
    Recorded,
    Result,
    RunEnded,
    SessionEvent,
    Turn,
    UnknownToolStopped,
    Usage,
    UserMessage,
    Where,
)
from loopscan.tuning.effects import delivered, succeeded, wrote

Step: TypeAlias = "list[Any]"

#: How many parts the step of each letter has.
LENGTHS: Final = {"t": 10, "r": 9, "u": 5, "c": 6, "s": 6, "e": 6, "v": 5}
#: The bits of an outcome's flags.
NO_PROGRESS, VETO, FAILED, LOSSY, SUCCEEDED, WROTE, DELIVERED = (1 << bit for bit in range(7))
#: The bits of a message's flags.
STORED, MODEL_FAILED = 1, 2
#: The bits of a user message's flags.
STEERING, RETRY = 1, 2

_FATES: Final = tuple(Fate)
#: The numbers of two fates.
NOT_RUN, REJECTED = _FATES.index(Fate.NOT_RUN), _FATES.index(Fate.REJECTED)
_ENDINGS: Final = tuple(Ending)
_MOST_TOKENS: Final = 1 << 40
"""No response has more; so sums of many stay within 64 bits."""
_MOST_NUMBERED: Final = 4096
"""How many different things of one kind are remembered: many more than a history holds."""


class Numbers:
    """Gives equal things the same number; what was not seen for long gets a new one: no streak goes that far."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._next = 0

    def of(self, thing: Hashable) -> int:
        """Return the number of a thing."""
        number = self._numbers.pop(thing, None)
        if number is None:
            number = self._next
            self._next += 1
            if len(self._numbers) >= _MOST_NUMBERED:
                del self._numbers[next(iter(self._numbers))]
        self._numbers[thing] = number
        return number

    def of_any(self, thing: Hashable | None) -> int | None:
        """Return the number of a thing, ``None`` for none."""
        return None if thing is None else self.of(thing)


class Recorder:
    """Writes down the steps of one session, as its events come."""

    def __init__(self, identifier: Identifier) -> None:
        self._identifier = identifier
        self._signatures, self._outcomes, self._failures, self._unknown = Numbers(), Numbers(), Numbers(), Numbers()
        self._latest: dict[str, tuple[Turn, list[Identified]]] = {}
        """The latest stored message with calls of each run that goes on."""

    def step(self, event: SessionEvent) -> Step | None:
        """Return the step of an event; ``None`` for what no engine sees and no label looks at."""
        line, time = event.where.line, event.where.time
        run = written(event.run or "")
        match event:
            case Turn():
                return self._turn(event, run)
            case Result():
                return self._result(event, run)
            case UserMessage():
                return ["u", run, line, time, event.steering * STEERING | event.retry * RETRY]
            case Compaction() if event.run is not None:
                return ["c", run, line, time, event.in_run, event.from_hook]
            case UnknownToolStopped():
                tool = written(self._identifier.tool(event.tool))
                return ["s", run, line, time, tool, _usage(event.usage)]
            case RunEnded():
                self._latest.pop(event.run, None)
                return ["e", run, line, time, _ENDINGS.index(event.ending), event.unanswered]
            case Recorded() if event.run:
                return ["v", run, line, time, written(event.kind)]
            case _:
                return None

    def _turn(self, turn: Turn, run: str) -> Step:
        identified = [self._identifier.call(call) for call in turn.calls]
        if turn.stored and (turn.calls or turn.absent):
            self._latest[turn.run] = (turn, identified)
        calls = [
            [
                written(known.tool),
                self._signatures.of(known.signature),
                int(known.known_poll),
                _FATES.index(call.fate),
            ]
            for call, known in zip(turn.calls, identified, strict=True)
        ]
        absent = [self._absent(call) for call in turn.absent]
        flags = turn.stored * STORED | turn.failed * MODEL_FAILED
        usage = _usage(turn.usage)
        said = [None if text is None else written(text) for text in (turn.stop_reason, turn.model)]
        return ["t", run, turn.where.line, turn.where.time, flags, *said, usage, calls, absent]

    def _absent(self, call: AbsentCall) -> Step:
        known = self._identifier.call(call)
        error = self._outcomes.of(self._identifier.absence(call))
        return [written(known.tool), self._signatures.of(known.signature), call.position, error]

    def _result(self, result: Result, run: str) -> Step | None:
        turn, identified = self._latest.get(result.run, (None, []))
        if turn is None or result.index >= len(identified):
            return None
        call, known, outcome = turn.calls[result.index], identified[result.index], result.outcome
        if call.fate not in (Fate.RAN, Fate.REJECTED):
            return None
        judged = self._identifier.outcome(known.tool, call, outcome)
        well = succeeded(outcome)
        flags = (
            judged.no_progress * NO_PROGRESS
            | judged.veto * VETO
            | (outcome.error is not None or outcome.is_error) * FAILED
            | outcome.lossy * LOSSY
            | well * SUCCEEDED
            | (well and wrote(known.tool, judged)) * WROTE
            | (well and delivered(known.tool, call.arguments)) * DELIVERED
        )
        return [
            *("r", run, result.where.line, result.where.time, result.index),
            self._outcomes.of_any(judged.identity),
            flags,
            self._failures.of_any(judged.failure),
            self._unknown.of_any(judged.unknown_tool),
        ]


def written(text: str) -> str:
    """Return text as it can be written down: a half of a character that stands alone is spelt out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def costs(usage: Usage) -> list[Any]:
    """Return input, output, cache read, cache write, all tokens and dollars; no absurd numbers."""
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total)
    dollars = usage.cost_usd if isfinite(usage.cost_usd) else 0.0
    return [*(max(0, min(count, _MOST_TOKENS)) for count in counts), dollars]


def play(steps: Iterable[Step]) -> Iterator[SessionEvent]:
    """Yield the events of steps: numbers in the place of arguments and outcomes, which :class:`PlayedBack` knows."""
    for step in steps:
        kind, run, where = step[0], step[1], Where(step[2], None, step[3])
        match kind:
            case "t":
                flags, stop, model, usage, calls, absent = step[4:]
                yield Turn(
                    run,
                    where,
                    tuple(Call(tool, [sign, poll], None, _FATES[fate]) for tool, sign, poll, fate in calls),
                    tuple(
                        AbsentCall(tool, str(error), position=position, arguments=[sign, 0])
                        for tool, sign, position, error in absent
                    ),
                    stored=bool(flags & STORED),
                    model=model,
                    stop_reason=stop,
                    usage=_played_usage(usage),
                    failed=bool(flags & MODEL_FAILED),
                )
            case "r":
                index, identity, flags, failure, unknown = step[4:]
                outcome = Outcome(
                    [identity, flags, failure, unknown], None, bool(flags & FAILED), bool(flags & LOSSY)
                )
                yield Result(run, where, index, outcome)
            case "u":
                yield UserMessage(run, where, steering=bool(step[4] & STEERING), retry=bool(step[4] & RETRY))
            case "c":
                yield Compaction(run, where, step[4], step[5])
            case "s":
                yield UnknownToolStopped(run, where, step[4], usage=_played_usage(step[5]))
            case "e":
                yield RunEnded(run, where, _ENDINGS[step[4]], step[5])
            case "v":
                yield Recorded(run, where, step[4])
            case _:
                raise ValueError(f"there is no step {kind!r}")


class PlayedBack:
    """Identifies what :func:`play` gives back; asked again about the same events, it remembers."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[Call | AbsentCall, Identified]] = {}
        self._outcomes: dict[int, tuple[Outcome, Judged]] = {}

    def call(self, call: Call | AbsentCall) -> Identified:
        """Return what is compared of a call."""
        known = self._calls.get(id(call))
        if known is None:
            sign, poll = _numbers(call.arguments)
            known = self._calls[id(call)] = (call, Identified(call.tool, None, _identity(sign) or b"", bool(poll)))
        return known[1]

    def tool(self, name: str) -> str:
        """Return the name that the engine goes by for a tool: it was written down."""
        return name

    def outcome(self, tool: str, call: Call, outcome: Outcome) -> Judged:
        """Return what is kept of an outcome."""
        known = self._outcomes.get(id(outcome))
        if known is None:
            identity, flags, failure, name = _numbers(outcome.result)
            judged = Judged(
                _identity(identity),
                bool(flags & NO_PROGRESS),
                _identity(failure),
                None if name is None else str(name),
                bool(flags & VETO),
            )
            known = self._outcomes[id(outcome)] = (outcome, judged)
        return known[1]

    def absence(self, call: AbsentCall) -> bytes:
        """Return the identity of the error that a call to an absent tool came back with."""
        return _identity(int(call.error)) or b""


def _numbers(value: Json) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("only events that play() gave back can be identified")
    return value


def _identity(number: int | None) -> bytes | None:
    return None if number is None else number.to_bytes(4, "big")


def _usage(usage: Usage) -> list[Any] | None:
    return None if usage == NO_USAGE else costs(usage)


def _played_usage(usage: list[Any] | None) -> Usage:
    return NO_USAGE if usage is None else Usage(*usage)
