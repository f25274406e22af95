"""Folding for people: repeats become one row, groups of tools taking turns one block, distant calls a number."""

from __future__ import annotations

from loopscan.report import RunReport, SessionReport, Step
from loopscan.reports.timeline import NEAR, Group, LiveRecord, timeline
from tests.test_timeline import MARK

LIVE = LiveRecord(SessionReport("s.jsonl", "s"))


def folded(*steps: Step) -> list[Group]:
    return timeline(RunReport(0, None, steps=list(steps)), LIVE)


def calls(tool: str, times: int = 1, *, batch: int = 0, signature: str = "a", preview: str = "{}") -> Step:
    return Step("calls", batch, tool, preview, signature, times)


def shown(groups: list[Group]) -> int:
    return sum(group.rounds * sum(row.times for row in group.rows) for group in groups)


def test_different_calls_that_look_alike_are_not_one_row() -> None:
    groups = folded(calls("edit", signature="a"), calls("edit", signature="b"), Step("mark", mark=MARK))
    assert [row.times for group in groups for row in group.rows] == [1, 1, 1]


def test_tools_taking_turns_are_one_group() -> None:
    steps = [calls("read"), calls("exec")] * 5
    first, mark = folded(*steps, Step("mark", mark=MARK))
    assert (len(first.rows), first.rounds) == (2, 5)
    assert mark.rows[0].step.mark is MARK


def test_calls_far_from_every_mark_are_counted() -> None:
    steps = [calls(f"tool {n}", batch=n) for n in range(30)]
    groups = folded(*steps, Step("mark", mark=MARK), *steps)
    kinds = [group.rows[0].step.kind for group in groups]
    assert kinds == ["elided", *["calls"] * NEAR, "mark", *["calls"] * NEAR, "elided"]
    assert shown(groups) == 61
    assert [group.rows[0].step.batch for group in groups[1 : NEAR + 1]] == list(range(22, 30))


def test_what_was_left_out_before_adds_up() -> None:
    steps = [calls(f"tool {n}", batch=n) for n in range(10)]
    groups = folded(Step("elided", times=100), *steps, Step("mark", mark=MARK))
    assert (groups[0].rows[0].step.kind, shown(groups)) == ("elided", 111)


def test_calls_of_one_tool_with_ever_other_arguments_are_one_row() -> None:
    steps = [calls("exec", batch=n, signature=str(n), preview=str(n)) for n in range(20)]
    varied, mark = folded(*steps, Step("mark", mark=MARK))
    (row,) = varied.rows
    assert (row.varied, row.times, row.step.tool) == (True, 20, "exec")
    assert not mark.rows[0].varied


def test_three_are_still_shown_one_by_one() -> None:
    steps = [calls("exec", batch=n, signature=str(n), preview=str(n)) for n in range(3)]
    assert len(folded(*steps, Step("mark", mark=MARK))) == 4


def test_calls_that_repeat_are_not_hidden_among_those_that_vary() -> None:
    before = [calls("exec", batch=n, signature=str(n), preview=str(n)) for n in range(6)]
    after = [calls("exec", batch=20 + n, signature=f"t{n}", preview=f"t{n}") for n in range(4)]
    groups = folded(*before, calls("exec", 10, signature="same"), *after, Step("mark", mark=MARK))
    rows = [row for group in groups[:-1] for row in group.rows]
    assert [(row.varied, row.times) for row in rows] == [(True, 6), (False, 10), (True, 4)]
