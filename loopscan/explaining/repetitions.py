"""What repeats in a run: its calls by signature and by tool, counted, with what last differed between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from loopscan.engine.identify import Identified, Identifier
from loopscan.engine.outcomes import compared
from loopscan.events import Call, Fate, Json, Result, SessionEvent, Turn, UserMessage
from loopscan.explaining.differences import cut
from loopscan.rulesets import Ruleset

#: So many signatures of a run are counted, and of so many what came back is kept: what is longest ago goes.
MOST_COUNTED: Final = 10_000
MOST_KEPT: Final = 256


@dataclass(slots=True)
class Change:
    """Two neighbours that differ: the numbers of the calls, and what is compared of both."""

    calls: tuple[int, int]
    before: Json
    after: Json


@dataclass(slots=True)
class Repetition:
    """The calls of one signature in one run."""

    tool: str
    arguments: Json
    known_poll: bool
    calls: int = 0
    first: int = 0
    """The number of its first call within the run, and of its last."""
    last: int = 0
    line: int = 0
    """Of the first call."""
    lost: int = 0
    """How many have no outcome on record."""
    rejected: int = 0
    not_run: int = 0
    """How many were aborted or skipped before they ran: the engine saw nothing of them."""
    after_user: int = 0
    """How many came after a user message, and how many after another call, since the call before."""
    after_calls: int = 0
    lossy: int = 0
    """How many outcomes are recorded only in part."""
    alike: int = 0
    """How many of its newest calls came back alike."""
    longest: int = 0
    held: int = 0
    """How many of those that came back alike the engine counted at most."""
    changes: int = 0
    """How often it came back otherwise than the time before."""
    change: Change | None = None
    """The latest of them, as far as it is kept."""
    _identity: bytes | None = None
    _value: Json = None
    _number: int = -1
    _users: int = 0

    def called(self, number: int, users: int) -> None:
        """Take in the next call: its number, and how many user messages there were before it."""
        if self.calls:
            self.after_user += users > self._users
            self.after_calls += number > self.last + 1
        self.calls += 1
        self.last, self._users = number, users

    def came(self, identity: bytes, value: Json, number: int) -> None:
        """Take in what a call came back with."""
        if self._identity is not None and identity != self._identity:
            self.changes += 1
            self.alike = 0
            if self._value is not None:
                self.change = Change((self._number, number), self._value, cut(value))
        self.alike += 1
        self.longest = max(self.longest, self.alike)
        self._identity, self._number = identity, number
        self._value = cut(value)

    def forget(self) -> None:
        """Let go of what came back: too much else is kept."""
        self._value = self.change = None


@dataclass(slots=True)
class Tool:
    """The calls of one tool in one run."""

    calls: int = 0
    signature: bytes = b""
    arguments: Json = None
    number: int = -1
    change: Change | None = None
    """The latest two neighbours with other arguments."""
    result_change: Change | None = None
    """The latest two neighbours that came back otherwise."""
    _came: tuple[bytes, Json, int] | None = None

    def called(self, signature: bytes, arguments: Json, number: int) -> None:
        """Take in the next call."""
        if self.calls and signature != self.signature:
            self.change = Change((self.number, number), self.arguments, cut(arguments))
        self.calls += 1
        self.signature, self.arguments, self.number = signature, cut(arguments), number

    def came(self, identity: bytes, value: Json, number: int) -> None:
        """Take in what a call came back with."""
        if self._came is not None and identity != self._came[0]:
            self.result_change = Change((self._came[2], number), self._came[1], cut(value))
        self._came = identity, cut(value), number


@dataclass(slots=True)
class Repeating:
    """One run: what repeats in it."""

    number: int
    """Of the run within its session, from 0."""
    calls: int = 0
    signatures: dict[bytes, Repetition] = field(default_factory=dict)
    """The one called last stands last."""
    tools: dict[str, Tool] = field(default_factory=dict)
    absent: Counter[str] = field(default_factory=Counter)
    """Calls to tools that do not exist."""
    users: int = 0
    """How many user messages there were."""
    _latest: tuple[Turn, list[Identified], list[int]] | None = None
    """The latest message, how the engine knows its calls, and their numbers."""
    _kept: dict[bytes, Repetition] = field(default_factory=dict)
    """Those of which it is kept what came back."""

    def loops(self) -> Iterator[str]:
        """Yield the digests by which marks know what was called."""
        return (sign.hex()[:12] for sign, each in self.signatures.items() if each.calls)

    def known_as(self, digest: str) -> Repetition | None:
        """Return the repetition that marks know by the digest of its signature."""
        return next((each for sign, each in self.signatures.items() if sign.hex()[:12] == digest), None)

    def longest(self) -> Repetition | None:
        """Return the repetition with the most calls; ``None`` for a run without calls."""
        return max(self.signatures.values(), key=lambda each: (each.calls, each.longest), default=None)

    def feed(self, event: SessionEvent, identifier: Identifier, rules: Ruleset) -> None:
        """Take in the next event of the run."""
        if isinstance(event, Turn):
            self._turn(event, identifier)
        elif isinstance(event, Result):
            self._result(event, identifier, rules)
        elif isinstance(event, UserMessage):
            self.users += not event.retry

    def _turn(self, turn: Turn, identifier: Identifier) -> None:
        self.absent.update(identifier.tool(each.tool) for each in turn.absent)
        if not (turn.calls and turn.stored):
            return
        identified = [identifier.call(call) for call in turn.calls]
        absent = {each.position for each in turn.absent}
        numbers = [self.calls + place for place in range(turn.stored_calls) if place not in absent]
        self._latest = (turn, identified, numbers)
        for call, known, number in zip(turn.calls, identified, numbers, strict=True):
            self._called(call, known, number, turn.where.line)
        self.calls += turn.stored_calls

    def _called(self, call: Call, known: Identified, number: int, line: int) -> None:
        found = self.signatures.pop(known.signature, None)
        if found is None:
            found = Repetition(known.tool, cut(known.arguments), known.known_poll, first=number, line=line)
        self.signatures[known.signature] = found
        if len(self.signatures) > MOST_COUNTED:
            del self.signatures[next(iter(self.signatures))]
        if call.fate is Fate.NOT_RUN:
            found.not_run += 1
            return
        found.called(number, self.users)
        found.lost += call.fate is Fate.LOST
        found.rejected += call.fate is Fate.REJECTED
        self.tools.setdefault(known.tool, Tool()).called(known.signature, known.arguments, number)

    def _result(self, result: Result, identifier: Identifier, rules: Ruleset) -> None:
        if self._latest is None or result.index >= len(self._latest[1]):
            return
        turn, identified, numbers = self._latest
        call, known, outcome = turn.calls[result.index], identified[result.index], result.outcome
        found = self.signatures.get(known.signature)
        judged = identifier.outcome(known.tool, call, outcome)
        if found is None or judged.identity is None:
            return
        found.lossy += outcome.lossy
        value = labelled(compared(known.tool, call.arguments, outcome, rules).value)
        found.came(judged.identity, value, numbers[result.index])
        self.tools.setdefault(known.tool, Tool()).came(judged.identity, value, numbers[result.index])
        self._kept.pop(known.signature, None)
        self._kept[known.signature] = found
        if len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept))).forget()


#: What the parts of a compared outcome are called, by its first part.
_PARTS: Final = {
    "error": ("error",),
    "value": ("value",),
    "exec": ("status", "exitCode", "timedOut", "output"),
    "process": ("action", "status", "fields", "text"),
    "send": ("details",),
    "result": ("details", "text"),
}
_FIELDS: Final = {
    "poll": ("exitCode", "exitSignal", "aggregated"),
    "log": ("totalLines", "totalChars", "truncated", "exitCode", "exitSignal"),
}


def labelled(value: list[Json] | None) -> Json:
    """Return what is compared of an outcome with its parts named, so that a path to one of them says what it is."""
    if not value or not isinstance(value[0], str):
        return value
    kind, *rest = value
    names = _PARTS.get(str(kind))
    if names is None or len(names) != len(rest):
        return {str(kind).replace(" ", "_"): rest[0] if len(rest) == 1 else rest}
    made: dict[str, Json] = dict(zip(names, rest, strict=True))
    fields = made.get("fields")
    action = made.get("action")
    if isinstance(fields, list) and isinstance(action, str) and len(fields) == len(_FIELDS.get(action, ())):
        made["fields"] = dict(zip(_FIELDS[action], fields, strict=True))
    return made
