"""The part of a run that has to be replayed for each setting: the calls that any of them could step in at.

One pass over the steps bounds every count of the detectors and guards from above, for all settings of a grid at once,
and remembers from which message on the calls stand that it counts. Where a bound reaches the lowest threshold, the
call is *loud*. What a loud call's counts look back on is kept, the other messages are passed over
(:meth:`SessionEngine.pass_over`): each of their calls takes its place in the history, different from all others. So

- no setting steps in at what is passed over, and none has a warning to emit there;
- counts that reach a threshold are what they are in the whole run, since all that they count is kept;
- other counts are at most what they are in the whole run: what is passed over ends whatever stands in a row, and of a
  signature all calls between two that are kept are kept. So they are below all thresholds, as in the whole run.

A bound has to hold whatever a setting blocks. Calls of a message that is not loud are *certain*: they are recorded
under every setting, as long as the run goes on, and only they may end a streak here. A loud call may be missing from
the history, and what stands on both sides of it may then be neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopscan.events import SessionEvent
from loopscan.tuning.quiet import Limits
from loopscan.tuning.steps import (
    FAILED,
    MODEL_FAILED,
    NO_PROGRESS,
    NOT_RUN,
    REJECTED,
    RETRY,
    STORED,
    VETO,
    Step,
    play,
)


@dataclass(slots=True)
class Passed:
    """Messages that are passed over."""

    run: str
    messages: int = 0
    calls: int = 0
    recorded: int = 0
    """How many of the calls are recorded in the history."""


@dataclass(slots=True)
class _Bound:
    """At most ``count``, and the place of the first message that it counts."""

    count: int = 0
    start: int = 0

    def add(self, place: int) -> None:
        """Count one more."""
        if not self.count:
            self.start = place
        self.count += 1


@dataclass(slots=True)
class _Asked:
    """A call of the latest stored message that reached the detectors."""

    tool: str
    sign: int
    certain: bool
    rejected: bool
    open: bool = True
    """No result has come."""


_ACROSS: Final = "exec"


def window(steps: Sequence[Step], limits: Limits) -> list[SessionEvent | Passed] | None:
    """Return what has to be replayed of the steps of a single run; ``None``: the whole of it.

    That is so where a message has more calls than the shortest history: some leave it before their outcomes come,
    which are then recorded anew, behind later calls. And where a message with calls was not stored.
    """
    listening = _Listening(limits)
    for place, step in enumerate(steps):
        if not listening.step(place, step):
            return None
    return _cut(steps, listening)


def _cut(steps: Sequence[Step], heard: _Listening) -> list[SessionEvent | Passed]:
    """Return the events of what is kept, and what is passed over between them, up to the last loud step."""
    kept = _kept(steps, heard)
    found: list[SessionEvent | Passed] = []
    going: Passed | None = None
    begun = keeps = False
    for place, step in enumerate(steps[: heard.last + 1]):
        if step[0] == "t" and place not in kept and step[8]:
            if going is None:
                going = Passed(step[1])
                found.append(going)
            going.messages += 1
            going.calls += len(step[8])
            if begun:  # what comes first pushes nothing out of the history
                going.recorded += sum(heard.reaches(call) for call in step[8])
            keeps = False
        elif step[0] != "r" or keeps:
            found += play((step,))
            if step[0] == "t" and (step[8] or step[9]):
                begun, going = True, None
                keeps |= bool(step[4] & STORED)
    return found


def _kept(steps: Sequence[Step], heard: _Listening) -> set[int]:
    """Return the places of the messages that are kept."""
    kept: set[int] = set()
    reach: dict[int, tuple[int, int]] = {}
    """The first and the last kept call of each signature."""
    left: list[int] = [place for place, step in enumerate(steps[: heard.last + 1]) if step[0] == "t" and step[9]]
    for first, last in heard.spans:
        left += (place for place in range(first, last + 1) if steps[place][0] == "t" and steps[place][8])

    def extend(sign: int, first: int, last: int) -> None:
        before = reach.get(sign)
        low, high = (first, last) if before is None else (min(first, before[0]), max(last, before[1]))
        if before != (low, high):
            reach[sign] = low, high
            places = heard.places[sign]
            left.extend(at for at in places[bisect_left(places, low) : bisect_right(places, high)] if at not in kept)

    for sign, (first, last) in heard.signs.items():
        extend(sign, first, last)
    while left:
        place = left.pop()
        if place not in kept:
            kept.add(place)
            for call in steps[place][8]:
                if heard.reaches(call):
                    extend(call[1], place, place)
    return kept


class _Listening:
    """Goes through the steps of one run."""

    def __init__(self, limits: Limits) -> None:
        self.last = -1
        """The place of the last loud step."""
        self.spans: list[tuple[int, int]] = []
        """The places between which loud steps look back on every message, both included."""
        self.signs: dict[int, tuple[int, int]] = {}
        """The same for calls of one signature."""
        self.places: dict[int, list[int]] = {}
        """The messages in which each signature reached the detectors."""
        self._limits, self._rules, self._lowest = limits, limits.rules, limits.lowest
        self._place = 0
        """Of the step that is looked at."""
        self._message = 0
        """The place of the latest stored message with calls."""
        self._asked: list[_Asked | None] = []
        self._alone = False
        """That message has one call, of whatever kind."""
        self._own: dict[int, _Bound] = {}
        """The newest calls of each signature that may have come back alike."""
        self._outcome: dict[int, int] = {}
        """The outcome of the newest call of a signature, if it is certain."""
        self._tail: deque[tuple[int, int, bool]] = deque()
        """The newest calls that may alternate, once loud ones are left out: signature, place, certain."""
        self._failing, self._failure = _Bound(), -1
        """The newest ``exec`` calls that may have failed alike, and the newest failure; -1: it is not certain."""
        self._churn, self._tool = _Bound(), ""
        """The newest calls of one tool without progress, and the tool; "": it is not certain."""
        self._unknown = _Bound()
        self._unknown_tools: set[str] = set()
        self._absent = _Bound()
        self._failed: dict[int, _Bound] = {}
        self._held: dict[int, deque[tuple[int, int]]] = {}
        """For each signature the calls that the longest history may hold: certain calls up to it, and place."""
        self._certain = 0
        """How many calls are certain."""
        self._armed = 0
        """At most so many outcomes the guard that a compaction arms looks at."""

    def step(self, place: int, step: Step) -> bool:
        """Take in the next step; say whether it can be told what is loud."""
        self._place = place
        match step[0]:
            case "t":
                return self._turn(step[4], step[8], step[9])
            case "r":
                self._result(*step[4:])
            case "u" if not step[4] & RETRY:
                self._failed.clear()
            case "c" if step[4]:  # outcomes of the message before it may be the first that the guard looks at
                self._loud(self._message)
                self._armed = self._limits.longest_guard
            case "s":
                self._absent.add(place)
                self._loud(self._absent.start)
            case "e" if self._armed:
                self._loud(self._message)
            case _:
                pass
        return True

    def _loud(self, start: int) -> None:
        """Note that the step is loud, and looks back on all messages from ``start`` on."""
        self.last = self._place
        self.spans.append((start, self._place))

    def _loud_call(self, sign: int, start: int) -> None:
        """Note that the step is loud, and looks back on the calls of a signature from ``start`` on."""
        self.last = self._place
        self.signs[sign] = (min(start, self.signs.get(sign, (start, 0))[0]), self._place)

    # --- messages

    def _turn(self, flags: int, calls: Sequence[Any], absent: Sequence[Any]) -> bool:
        if not calls and not absent:
            if not flags & MODEL_FAILED:
                self._absent = _Bound()
            return True
        if len(calls) > self._limits.histories[0] or (calls and not flags & STORED):
            return False
        if calls:
            self._absent = _Bound()
        else:
            self._absent.add(self._place)
            if self._absent.count >= self._lowest:
                self._loud(self._absent.start)
        if flags & STORED:
            self._message, self._asked, self._alone = self._place, [], len(calls) + len(absent) == 1
        self._admit(calls)
        for _, sign, *_ in absent:
            self._fails(sign)
        return True

    def _admit(self, calls: Sequence[Any]) -> None:
        """Take in the calls of a message: all may be vetoed because of one where messages are admitted as a whole."""
        ahead: list[int] = []
        loud: list[bool] = []
        for call in calls:
            loud.append(self.reaches(call) and self._is_loud(call, ahead))
            if self.reaches(call):
                ahead.append(call[1])
        whole = self._rules.batch_admission and any(loud)
        for call, itself in zip(calls, loud, strict=True):
            if self.reaches(call):
                self._asked.append(self._propose(call, certain=not (whole or itself)))
            else:
                self._asked.append(None)

    def reaches(self, call: Step) -> bool:
        """Whether a call reached the detectors."""
        return call[3] != NOT_RUN and (call[3] != REJECTED or self._rules.record_rejections)

    def _is_loud(self, call: Step, ahead: Sequence[int]) -> bool:
        """Say whether a count of a call may reach a threshold, ``ahead`` being the signatures asked for before it."""
        sign, alike = call[1], ahead.count(call[1])
        held = self._still_held(sign)
        recent = len(held) + alike
        own = self._own.get(sign) or _Bound(0, self._place)
        repeats = not call[2] and recent >= self._limits.least_warning
        stuck = min(own.count + alike, recent) >= self._lowest
        rows = list(self._in_a_row(call, len(ahead), alike))
        if not (repeats or stuck or any(bound.count >= least for least, bound in rows)):
            return False
        # Its newest outcome tells warnings apart: so that has to be known, too.
        self._loud_call(sign, min(own.start, held[0][1]) if repeats and held else own.start)
        for _, bound in rows:
            if bound.count >= self._lowest:
                self._loud(bound.start)
        return True

    def _in_a_row(self, call: Step, ahead: int, alike: int) -> Iterator[tuple[int, _Bound]]:
        """Yield what may stand in a row before a call, each with the count from which on it matters."""
        tool, sign = call[:2]
        yield self._lowest, self._swings(sign, ahead, alike)
        if tool == _ACROSS and self._failing.count:
            yield self._lowest, _Bound(self._failing.count + ahead, self._failing.start)
        if tool in self._unknown_tools:
            yield self._lowest, self._unknown
        if self._tool in ("", tool):
            # Churn is warned of, no more: below the first bucket it can do no more than hide another warning.
            yield self._limits.least_warning, self._churn

    def _swings(self, sign: int, ahead: int, alike: int) -> _Bound:
        """Return how many calls may alternate: those back to the second certain signature besides this one."""
        other, calls, start = None, 0, self._place
        for newer, place, certain in reversed(self._tail):
            if certain and newer != sign:
                if other not in (None, newer):
                    break
                other = newer
            calls, start = calls + 1, place
            alike += newer == sign
        # Of the two signatures that alternate every second call is this one.
        return _Bound(min(calls + ahead + 1, 2 * (alike + 1)), start)

    def _still_held(self, sign: int) -> Sequence[tuple[int, int]]:
        """Return the calls of a signature that the longest history may still hold."""
        held = self._held.get(sign)
        if held is None:
            return ()
        while held and self._certain - held[0][0] >= self._limits.histories[-1]:
            held.popleft()
        return held

    def _propose(self, call: Step, *, certain: bool) -> _Asked:
        tool, sign, _, fate = call
        self._own.setdefault(sign, _Bound()).add(self._place)
        self._alternate(sign, certain=certain)
        if certain:
            if tool != _ACROSS:
                self._failing = _Bound()
            if self._tool and tool != self._tool:
                self._churn = _Bound()
            self._tool = tool
            self._certain += 1
        else:
            self._outcome.pop(sign, None)
            self._tool = ""
            if tool == _ACROSS:  # vetoes count among failures
                self._failing.add(self._place)
                self._failure = -1
        self.places.setdefault(sign, []).append(self._place)
        self._held.setdefault(sign, deque()).append((self._certain, self._place))
        return _Asked(tool, sign, certain, fate == REJECTED)

    def _alternate(self, sign: int, *, certain: bool) -> None:
        """Take in a call; three certain ones in a row that do not alternate end whatever alternated before."""
        tail = self._tail
        tail.append((sign, self._place, certain))
        keep = len(tail)
        if certain and keep >= 2 and tail[-2][2]:
            if tail[-2][0] == sign:
                keep = 1
            elif keep >= 3 and tail[-3][2] and tail[-3][0] != sign:
                keep = 2
        while len(tail) > keep:
            tail.popleft()

    # --- outcomes

    def _result(self, index: int, identity: int | None, flags: int, failure: int | None, unknown: int | None) -> None:
        if self._armed:
            self._loud(self._message)
        asked = self._asked[index] if index < len(self._asked) else None
        if asked is None or not asked.open:
            return
        asked.open = False
        alone = asked.certain and self._alone
        self._fared(asked, identity, flags)
        if unknown is not None:
            self._unknown.add(self._message)
            self._unknown_tools.add(asked.tool)
        elif alone:
            self._unknown = _Bound()
            self._unknown_tools.clear()
        if asked.tool == _ACROSS and self._rules.failures_across_arguments and asked.certain:
            self._fell(asked, identity, failure, veto=bool(flags & VETO))
        if flags & VETO:
            self._outcome.pop(asked.sign, None)
        elif identity is not None:
            self._came(asked, identity, still=bool(flags & NO_PROGRESS))

    def _came(self, asked: _Asked, identity: int, *, still: bool) -> None:
        """Take in an outcome: two certain calls in a row that came back otherwise are no streak."""
        if not still:
            if asked.certain and self._alone:
                self._churn = _Bound()
        elif self._rules.argument_churn:
            self._churn.add(self._message)
        if not asked.certain:
            return
        if sum(each is not None and each.sign == asked.sign for each in self._asked) > 1:
            self._outcome.pop(asked.sign, None)  # results come in any order
            return
        if self._outcome.get(asked.sign, identity) != identity:
            self._own[asked.sign] = _Bound(1, self._message)
        self._outcome[asked.sign] = identity

    def _fared(self, asked: _Asked, identity: int | None, flags: int) -> None:
        """Tell the guards."""
        if flags & FAILED:
            self._fails(asked.sign)
        elif asked.certain and self._alone:
            self._failed.clear()
        if asked.certain and not asked.rejected and identity is not None and self._armed:
            self._armed -= 1

    def _fails(self, sign: int) -> None:
        """Take in a failed call: so many in a row end the run, whatever the setting."""
        limit = self._rules.identical_errors
        if limit is None:
            return
        bound = self._failed.setdefault(sign, _Bound())
        bound.add(self._message)
        if bound.count >= limit:
            self._loud(bound.start)

    def _fell(self, asked: _Asked, identity: int | None, failure: int | None, *, veto: bool) -> None:
        """Take in how a certain ``exec`` call failed, if it did: the others have been counted already."""
        if veto:
            self._failing.add(self._message)
        elif failure is not None:
            if self._alone and self._failure not in (-1, failure) and not asked.rejected:
                self._failing = _Bound()
            self._failing.add(self._message)
            self._failure = -1 if asked.rejected else failure
        elif identity is not None and self._alone and not asked.rejected:
            self._failing = _Bound()
