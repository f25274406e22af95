"""A run's timeline, folded so that a person sees its shape: repeats, and repeated groups, are shown once.

The data has every step; folding is a matter of showing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from loopscan.events import Recorded
from loopscan.marks import Kind, Mark
from loopscan.report import LiveVerdict, RunReport, SessionReport, Step, agreement

#: A group of up to this many rows is looked for; six tools taking turns are still seen as one loop.
LONGEST_GROUP = 6
_FEWEST_ROUNDS = 3
#: From how many rows on calls of one tool with ever other arguments are shown as one row.
_FEWEST_VARIED = 4
#: How many groups of calls are shown before each mark, and after the last one; the rest is counted.
NEAR = 8


@dataclass(slots=True)
class Row:
    """One row: a step, with what belongs beside it."""

    step: Step
    times: int = 1
    """How many calls of a row of calls; rows that show the same calls one after the other are one."""
    last_batch: int = 0
    blocked: list[Step] = field(default_factory=list)
    """The vetoed calls of the batch, for a mark that vetoed them."""
    live: list[LiveVerdict] = field(default_factory=list)
    """What was recorded live of a mark's intervention, or the recorded verdict of a row of its own."""
    varied: bool = False
    """The row stands for calls of one tool, each with other arguments than the one before."""
    unrecorded: bool = False
    """The live engine's verdicts of this kind are on record in this session, but not this one."""

    def looks(self) -> tuple[object, ...]:
        """Return what makes two rows look the same."""
        step, mark = self.step, self.step.mark
        seen: tuple[object, ...] = (step.kind, step.tool, step.signature, step.preview, step.became, step.text)
        if mark is not None:
            seen += (mark.kind, mark.detector, mark.level, mark.count, mark.threshold, mark.tool, mark.paired_tool)
            seen += (mark.signature, mark.lossy, mark.message, mark.blocked_calls, self.unrecorded)
        seen += tuple((call.tool, call.preview, call.times) for call in self.blocked)
        for verdict in self.live:
            recorded = verdict.recorded
            seen += (recorded.kind, recorded.tool, recorded.detector, recorded.count, verdict.agrees)
        return seen


@dataclass(slots=True)
class Group:
    """Rows that follow each other, and how many times they do."""

    rows: list[Row]
    rounds: int = 1
    last_batch: int = 0
    """The batch of the last row of the last round."""


class LiveRecord:
    """What the live engine did in one session, looked up by mark and by recorded verdict."""

    def __init__(self, session: SessionReport) -> None:
        self.verdicts = agreement(session)
        self._by_mark: dict[Mark, list[LiveVerdict]] = {}
        self._by_recorded: dict[Recorded, LiveVerdict] = {}
        self._kinds = {verdict.recorded.kind for verdict in self.verdicts}
        for verdict in self.verdicts:
            self._by_recorded[verdict.recorded] = verdict
            if verdict.mark is not None:
                self._by_mark.setdefault(verdict.mark, []).append(verdict)

    def of_mark(self, mark: Mark) -> list[LiveVerdict]:
        """Return what was recorded of the same intervention."""
        return self._by_mark.get(mark, [])

    def of_recorded(self, recorded: Recorded) -> LiveVerdict:
        """Return a recorded verdict with the mark that it belongs to."""
        return self._by_recorded.get(recorded) or LiveVerdict(recorded, None, agrees=False)

    def lacks(self, mark: Mark) -> bool:
        """Tell whether such a mark would be on record here had the live engine made it, but is not."""
        return mark.kind.value in self._kinds and mark not in self._by_mark


def timeline(run: RunReport, live: LiveRecord) -> list[Group]:
    """Return the run's steps as groups of rows, folded."""
    steps = run.steps or [Step("mark", batch=mark.batch, mark=mark) for mark in run.marks]
    shown = {step.mark for step in steps if step.mark is not None}
    return _trim(_vary(_fold(_merge(_rows(steps, shown, live)))))


def _rows(steps: list[Step], shown: set[Mark], live: LiveRecord) -> list[Row]:
    owned = _vetoed_calls(steps)
    taken = {id(call) for calls in owned.values() for call in calls}
    rows: list[Row] = []
    for index, step in enumerate(steps):
        if id(step) in taken:
            continue
        row = Row(step, step.times, step.batch)
        if step.mark is not None:
            row.blocked = owned.get(index, [])
            row.live = live.of_mark(step.mark)
            row.unrecorded = live.lacks(step.mark)
        elif step.recorded is not None:
            verdict = live.of_recorded(step.recorded)
            if verdict.mark in shown:
                continue  # it is beside its mark
            row.live = [verdict]
        rows.append(row)
    return rows


def _vetoed_calls(steps: list[Step]) -> dict[int, list[Step]]:
    """Return, by the index of each block, the vetoed calls next to it in its batch."""
    owned: dict[int, list[Step]] = {}
    taken: set[int] = set()
    for index, step in enumerate(steps):
        if step.mark is None or step.mark.kind is not Kind.BLOCK:
            continue
        for direction in (-1, 1):
            at = index + direction
            found: list[Step] = []
            while 0 <= at < len(steps) and steps[at].batch == step.batch and at not in taken:
                near = steps[at]
                if near.kind == "calls" and near.became == "blocked":
                    found.append(near)
                    taken.add(at)
                elif near.kind == "calls" or (near.mark is not None and near.mark.kind is Kind.BLOCK):
                    break
                at += direction
            owned.setdefault(index, []).extend(found[::direction])
    return owned


def _merge(rows: list[Row]) -> list[Row]:
    """Add up rows of the same calls (or of the same omission) that follow each other."""
    merged: list[Row] = []
    for row in rows:
        before = merged[-1] if merged else None
        if (
            before is not None
            and row.step.kind == before.step.kind
            and row.step.kind in {"calls", "elided"}
            and row.looks() == before.looks()
        ):
            before.times += row.times
            before.last_batch = row.last_batch
        else:
            merged.append(row)
    return merged


def _fold(rows: list[Row]) -> list[Group]:
    """Fold rows that repeat: single ones from the second time on, groups from the third round on."""
    looks = [(row.looks(), row.times) for row in rows]
    groups: list[Group] = []
    at = 0
    while at < len(rows):
        best, best_rounds = 1, _rounds(looks, at, 1)
        for length in range(2, LONGEST_GROUP + 1):
            rounds = _rounds(looks, at, length)
            if rounds >= _FEWEST_ROUNDS and rounds * length > best * best_rounds:
                best, best_rounds = length, rounds
        end = at + best * best_rounds
        groups.append(Group(rows[at : at + best], best_rounds, rows[end - 1].last_batch))
        at = end
    return groups


def _vary(groups: list[Group]) -> list[Group]:
    """Show calls of one tool in a row, each with other arguments, as one row."""
    varied: list[Group] = []
    for _, same in groupby(groups, key=_kind_of_call):
        rows = list(same)
        if _kind_of_call(rows[0]) is None or len(rows) < _FEWEST_VARIED:
            varied += rows
            continue
        first = rows[0].rows[0]
        varied.append(Group([Row(first.step, len(rows), rows[-1].last_batch, varied=True)], 1, rows[-1].last_batch))
    return varied


def _kind_of_call(group: Group) -> tuple[object, ...] | None:
    """Return what single calls have in common that differ in their arguments alone; nothing for other rows."""
    row = group.rows[0]
    single = len(group.rows) == 1 and group.rounds == 1 and row.times == 1 and row.step.kind == "calls"
    return (row.step.tool, row.step.became) if single else None


def _trim(groups: list[Group]) -> list[Group]:
    """Leave out the calls that are far from any mark, and say how many they were."""
    trimmed: list[Group] = []
    stretch: list[Group] = []
    for group in groups:
        if all(row.step.kind in {"calls", "elided"} for row in group.rows):
            stretch.append(group)
            continue
        far, near = (stretch[:-NEAR], stretch[-NEAR:]) if len(stretch) > NEAR else ([], stretch)
        trimmed += [*_elided(far), *near, group]
        stretch = []
    return [*trimmed, *stretch[:NEAR], *_elided(stretch[NEAR:])]


def _elided(groups: list[Group]) -> list[Group]:
    calls = sum(group.rounds * sum(row.times for row in group.rows) for group in groups)
    return [Group([Row(Step("elided", times=calls), calls)])] if calls else []


def _rounds(looks: list[tuple[tuple[object, ...], int]], at: int, length: int) -> int:
    end = at + length
    while end < len(looks) and looks[end] == looks[end - length]:
        end += 1
    return max(1, (end - at) // length)
