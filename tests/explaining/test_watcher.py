"""What a call is explained by is what the replay makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import SessionEvent
from loopscan.explaining.looks import Cell
from loopscan.explaining.wanted import Wanted
from loopscan.marks import Kind, Level
from loopscan.modes import Mode, ScopeRule
from loopscan.rulesets import RULESETS
from tests.explaining.build import explained, options
from tests.tuning.build import Told, text
from tests.tuning.sessions import sessions


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("rules", RULESETS)
@settings(max_examples=12)
@given(events=sessions(), scope=st.sampled_from(ScopeRule), data=st.data())
def test_the_marks_of_a_call_are_those_of_the_replay(
    rules: str, mode: Mode, events: list[SessionEvent], scope: ScopeRule, data: st.DataObject
) -> None:
    asked = options(rules, mode=mode, scope=scope)
    answers, marks = explained(events, asked)
    by_run: dict[str, list[Kind]] = {}
    for mark in marks:
        if mark.kind is not Kind.GUARD_ARMED:
            by_run.setdefault(mark.run, []).append(mark.kind)
    assert sum(answer.mark is not None for answer in answers) == len(by_run)
    judged = [mark for mark in marks if mark.call is not None and mark.kind in (Kind.WARNING, Kind.BLOCK)]
    if judged:
        mark = data.draw(st.sampled_from(judged))
        found, _ = explained(events, asked, Wanted(call=mark.call, batch=mark.batch))
        (look,) = [answer.look for answer in found if answer.look is not None and answer.look.run == mark.run]
        assert mark in look.marks
        assert look.verdict is not None
        assert (look.verdict.detector, look.verdict.level) == (mark.detector, mark.level)
        assert (look.verdict.count, look.tool, look.signature.hex()[:12]) == (mark.count, mark.tool, mark.signature)


@pytest.mark.parametrize("rules", RULESETS)
@settings(max_examples=15)
@given(events=sessions(), call=st.integers(0, 20))
def test_a_call_without_mark_has_a_verdict_only_if_its_warning_is_kept_back(
    rules: str, events: list[SessionEvent], call: int
) -> None:
    found, _ = explained(events, options(rules), Wanted(call=call))
    for answer in found:
        look = answer.look
        assert look is not None
        warned = any(mark.kind is Kind.WARNING for mark in look.marks)
        blocked = any(mark.kind is Kind.BLOCK for mark in look.marks)
        assert look.suppressed == (look.verdict is not None and not look.verdict.critical and not warned)
        assert (look.verdict is not None and look.verdict.critical) == blocked
        assert len([rule for rule in look.rules if rule.first]) == (look.verdict is not None)


def test_the_history_is_shown_as_it_was_before_the_call() -> None:
    told = Told().user()
    told.call("list", "here", "files").call(came="one").call(times=3).call(came=None)
    (answer,), _ = explained(told.call().events, options(), Wanted(call=6))
    look = answer.look
    assert look is not None
    assert look.cells == [Cell.OTHER, Cell.OTHER_OUTCOME, *[Cell.SAME] * 3, Cell.NO_OUTCOME]
    assert (look.room, look.line, look.batch) == (30, 13, 6)


def test_calls_of_other_runs_take_room() -> None:
    told = Told().user("a").call(times=2, run="a").user("b").call(times=2, run="b")
    found, _ = explained(told.events, options(), Wanted(call=1, run="1"))
    assert [answer.look.cells for answer in found if answer.look] == [[Cell.OTHER_RUN, Cell.OTHER_RUN, Cell.SAME]]


def test_a_call_is_found_by_its_id_and_by_its_entry() -> None:
    told = Told().user().call(times=3)
    for wanted in (Wanted(tool_call="c3-0"), Wanted(entry="e4")):
        found, _ = explained(told.events, options(), wanted)
        assert [answer.look.call for answer in found if answer.look] == [1]


def test_with_the_detectors_off_a_call_is_shown_without_counts() -> None:
    found, _ = explained(Told().user().call(times=3).events, options(enabled=False), Wanted(call=2))
    (look,) = [answer.look for answer in found]
    assert look is not None
    assert (look.counts, look.rules, look.verdict) == (None, [], None)
    assert look.outcome is not None


def test_what_came_back_is_shown_as_it_is_compared() -> None:
    told = Told().user()
    told.turn(("message", {"action": "send"}, None))
    told.turn(("message", {"action": "send"}, text("sent", messageId="m-1", channel="c")))
    found, _ = explained(told.events, options(), Wanted(call=1))
    (look,) = [answer.look for answer in found]
    assert look is not None
    assert look.outcome is not None
    assert look.outcome.value == ["send", {"channel": "c"}]


def test_the_first_critical_mark_of_a_run_goes_before_its_first_warning() -> None:
    answers, _ = explained(Told().user().call(times=30).events, options())
    (answer,) = answers
    mark, look = answer.mark, answer.look
    assert mark is not None
    assert look is not None
    assert (mark.level, mark.call, look.call, answer.silence) == (Level.CRITICAL, 20, 20, None)
