"""What the live engine did is put beside the mark of the same intervention."""

from __future__ import annotations

from loopscan.events import Recorded
from loopscan.marks import Kind, Mark
from loopscan.report import LiveVerdict, Step, agreement
from tests.reports.samples import mark, recorded, run, session


def verdicts(marks: list[Mark], live: list[Recorded]) -> list[LiveVerdict]:
    steps = [Step("mark", batch=found.batch, mark=found) for found in marks]
    return agreement(session(run(*steps, calls=50), recorded=live))


def test_the_same_call_and_verdict_agrees() -> None:
    found = mark(Kind.BLOCK, 20, 20)
    live = recorded("block", 20, detector="generic_repeat", count=20)
    assert verdicts([found], [live]) == [LiveVerdict(live, found, agrees=True)]


def test_what_was_not_recorded_is_not_compared() -> None:
    found = mark(Kind.WARNING, 10, 10)
    live = recorded("warning", 10)
    assert verdicts([found], [live]) == [LiveVerdict(live, found, agrees=True)]


def test_another_count_or_detector_differs() -> None:
    found = mark(Kind.BLOCK, 20, 20)
    for live in (recorded("block", 20, count=21), recorded("block", 20, detector="ping_pong")):
        assert verdicts([found], [live]) == [LiveVerdict(live, found, agrees=False)]


def test_another_call_kind_or_run_is_another_intervention() -> None:
    found = mark(Kind.BLOCK, 20, 20)
    for live in (recorded("block", 21), recorded("warning", 20), recorded("block", 20, run="r1")):
        assert verdicts([found], [live]) == [LiveVerdict(live, None, agrees=False)]


def test_siblings_of_a_vetoed_batch_belong_to_its_mark() -> None:
    found = mark(Kind.BLOCK, 20, 20, blocked_calls=3)
    live = recorded("block", 20, tool_call_id="sibling", detector="generic_repeat", count=20)
    assert verdicts([found], [live]) == [LiveVerdict(live, found, agrees=True)]


def test_verdicts_without_a_call_are_taken_in_order() -> None:
    marks = [mark(Kind.COMPACTION_ABORT, batch, 3, tool_call_id=None) for batch in (5, 9)]
    live = [recorded("compaction_abort", batch, tool_call_id=None) for batch in (5, 9, 12)]
    assert [found.mark for found in verdicts(marks, live)] == [*marks, None]


def test_ids_may_repeat_within_a_run() -> None:
    marks = [mark(Kind.WARNING, batch, batch, tool_call_id="call") for batch in (10, 20)]
    live = [recorded("warning", batch, tool_call_id="call", count=batch) for batch in (10, 20)]
    assert all(found.agrees for found in verdicts(marks, live))
