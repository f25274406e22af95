"""Units in which no streak reaches any threshold: most of them, and they need no engine.

One pass over the steps bounds all that the detectors could count, from above: where every bound stays below the
lowest threshold of a grid, no setting of it blocks, ends or aborts anything, and the only warnings left are those of
calls that merely repeat. Their counts are exact here, so that what is emitted is what the engine would emit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loopscan.engine.detectors import Warnings
from loopscan.rulesets import Ruleset
from loopscan.tuning.incidents import SHORTEST, SHORTEST_ALTERNATION, Loop
from loopscan.tuning.profiles import LOWEST_THRESHOLD
from loopscan.tuning.settings import Setting
from loopscan.tuning.steps import FAILED, NO_PROGRESS, NOT_RUN, REJECTED, VETO, Step


@dataclass(frozen=True, slots=True)
class Limits:
    """What the settings of a grid have in common."""

    rules: Ruleset
    lowest: int
    """The lowest of all their thresholds."""
    least_warning: int
    """The lowest count at which one of them emits a warning."""
    histories: tuple[int, ...]
    """Their history sizes, in ascending order."""
    longest_guard: int
    """The longest window of the post-compaction guard."""

    @classmethod
    def of(cls, settings: Iterable[Setting], rules: Ruleset) -> Limits:
        """Return the limits of some settings."""
        every = list(settings)
        warning = min(each.warning for each in every)
        lowest = min(
            warning,
            *(min(each.critical, each.breaker, each.unknown_tool) for each in every),
            *(threshold for _, threshold in rules.poll_critical),
        )
        sizes = tuple(sorted({each.history_size for each in every}))
        guard = max(each.guard_window for each in every)
        return cls(rules, lowest, max(warning, Warnings.BUCKET), sizes, guard)


@dataclass(slots=True)
class Quiet:
    """What there is to say of a unit in which nothing is blocked."""

    incidents: bool = False
    """Some incident may have enough calls for a threshold."""
    repeats: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """For each history size the signature and the count of every call that may bring a warning, in order."""

    def warnings(self, history_size: int, threshold: int) -> int:
        """Return how many warnings are emitted where the detectors are on, ``genericRepeat`` among them."""
        rate = Warnings()
        repeats = self.repeats.get(history_size, ())
        return sum(rate.emit(None, (sign,), count) for sign, count in repeats if count >= threshold)


def quiet(steps: Iterable[Step], limits: Limits) -> Quiet | None:
    """Return what there is to say of the steps of a single run; ``None`` where that takes the engine."""
    listening = _Listening(limits)
    for step in steps:
        if not listening.step(step):
            return None
    return listening.found


_ACROSS: Final = "exec"


class _Listening:
    """Goes through the steps of one run; each is answered by whether all is still quiet."""

    def __init__(self, limits: Limits) -> None:
        self.found = Quiet()
        self._limits, self._rules, self._lowest = limits, limits.rules, limits.lowest
        self._asked: list[int | None] = []
        """The signatures of the latest message's calls; ``None`` for one that did not reach the detectors."""
        self._tools: list[str] = []
        self._newest: dict[int, int] = {}
        """For each signature the newest of those calls that came back."""
        self._rejected: set[int] = set()
        """Which of those calls argument validation rejected: streaks of failures pass over them."""
        self._places: dict[int, list[int]] = {}
        """The places among all recorded calls of each signature."""
        self._recorded = 0
        self._alike: dict[int, int] = {}
        """At most so many newest calls of a signature came back alike."""
        self._outcome: dict[int, int] = {}
        self._alternating, self._last, self._before = 0, -1, -1
        self._failing, self._failure = 0, -1
        """At most so many newest ``exec`` calls failed alike."""
        self._churn, self._tool = 0, ""
        """At most so many newest calls of one tool made no progress."""
        self._absent = self._unknown = 0
        self._short: set[Loop] = set()
        """What repeats in the streaks that may be incidents."""
        self._alternated = False
        self._failed: Counter[int] = Counter()

    def step(self, step: Step) -> bool:
        """Take in the next step."""
        match step[0]:
            case "t":
                return self._turn(step[4], step[8], step[9])
            case "r":
                return self._result(*step[4:])
            case "s":
                return False
            case "c":
                return not step[4]  # one within the run may arm a guard
            case _:
                return True

    def _turn(self, flags: int, calls: Sequence[Any], absent: Sequence[Any]) -> bool:
        if not calls and not absent:
            return True
        if absent:
            self._absent += 1
            self._streak(Loop.ABSENT_TOOL, self._absent)
            if self._absent >= self._lowest or not all(self._fails(call[1]) for call in absent):
                return False
        if len(calls) > self._limits.histories[0]:
            return False  # some would leave the history before their outcomes come
        start, siblings = self._recorded, 0
        self._asked, self._tools, self._newest = [], [], {}
        self._rejected = {at for at, call in enumerate(calls) if call[3] == REJECTED}
        for tool, sign, poll, fate in calls:
            self._tools.append(tool)
            if fate == NOT_RUN or (fate == REJECTED and not self._rules.record_rejections):
                self._asked.append(None)
                continue
            self._asked.append(sign)
            if not self._proposed(tool, sign, siblings):
                return False
            first = start if self._rules.batch_admission else self._recorded
            places = self._places.setdefault(sign, [])
            if not poll and len(places) >= self._limits.least_warning:
                self._repeats(sign, places, first)
            places.append(self._recorded)
            self._recorded += 1
            siblings += 1
        return True

    def _proposed(self, tool: str, sign: int, siblings: int) -> bool:
        alike = self._alike.get(sign, 0)
        self._alike[sign] = alike + 1
        if sign == self._last or self._last < 0:
            self._alternating = 1
        else:
            self._alternating = self._alternating + 1 if self._alternating >= 2 and sign == self._before else 2
        self._before, self._last = self._last, sign
        if self._alternating >= SHORTEST_ALTERNATION:
            self._streak(Loop.ALTERNATION, self._alternating)
        if tool != _ACROSS:
            self._failing = 0
        if tool != self._tool:
            self._churn, self._tool = 0, tool
        return max(alike, self._alternating, self._failing + siblings, self._churn) < self._lowest

    def _repeats(self, sign: int, places: Sequence[int], first: int) -> None:
        """Note how many records of a signature each history holds, as far as that may bring a warning."""
        for size in self._limits.histories:
            count = len(places) - bisect_left(places, first - size)
            if count >= self._limits.least_warning:
                self.found.repeats.setdefault(size, []).append((sign, count))

    def _result(self, index: int, identity: int | None, flags: int, failure: int | None, unknown: int | None) -> bool:
        if flags & VETO or index >= len(self._asked):
            return False
        sign, alone = self._asked[index], len(self._asked) == 1
        if flags & FAILED and not self._fails(sign):
            return False
        if sign is None or identity is None:
            return True
        if (alone or self._asked.count(sign) == 1) and self._outcome.get(sign, identity) != identity:
            self._alike[sign] = 1
        if index >= self._newest.get(sign, 0):  # results come in any order
            self._newest[sign], self._outcome[sign] = index, identity
        if not flags & NO_PROGRESS:
            self._churn = 0 if alone else self._churn
        elif self._rules.argument_churn:
            self._churn += 1
        across = self._tools[index] == _ACROSS and index not in self._rejected
        if across and self._rules.failures_across_arguments:
            self._fell(failure, alone=alone)
        if unknown is not None:
            self._unknown += 1
        self._streak(Loop.SAME_CALL, self._alike[sign])
        self._streak(Loop.SAME_FAILURE, self._failing)
        self._streak(Loop.UNKNOWN_TOOL, self._unknown)
        return self._unknown < self._lowest

    def _fell(self, failure: int | None, *, alone: bool) -> None:
        """Take in how an ``exec`` call failed, if it did."""
        if failure is None:
            self._failing = 0 if alone else self._failing
        else:
            self._failing = 1 if alone and failure != self._failure else self._failing + 1
            self._failure = failure

    def _streak(self, loop: Loop, calls: int) -> None:
        """Take in how many calls a streak may have.

        Short streaks that share calls may be a long incident, which only those of two loops do, and alternations.
        """
        if calls >= SHORTEST:
            self._short.add(loop)
            two = len(self._short) > 1 or (loop is Loop.ALTERNATION and self._alternated)
            self._alternated |= loop is Loop.ALTERNATION
            self.found.incidents |= two or calls >= LOWEST_THRESHOLD

    def _fails(self, sign: int | None) -> bool:
        """Take in a failed call; return whether the guard against identical errors cannot have met its limit."""
        limit = self._rules.identical_errors
        if limit is None or sign is None:
            return limit is None
        self._failed[sign] += 1
        return self._failed[sign] < limit
