"""A baseline holds what was found by its content, in an order that depends on nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.checks.baseline.data import Baseline, Checked, KnownMark, KnownSession, updated
from loopscan.checks.baseline.ignores import Ignore
from loopscan.events import Problem
from loopscan.fingerprints import content
from loopscan.marks import Kind, Level
from loopscan.report import UNREADABLE, Report, SourceReport
from tests.checks.baseline.made import TODAY, ignores, mark, report, reports, session
from tests.reports import samples


def test_it_knows_each_mark_once_and_how_often_it_was_met() -> None:
    made = updated(report(session(mark(), mark(batch=30), mark(Kind.BLOCK))), None, TODAY)
    assert made.marks == (
        KnownMark(content("s-1", mark(Kind.BLOCK)), 1, "sessions/s-1.jsonl"),
        KnownMark(content("s-1", mark()), 2, "sessions/s-1.jsonl"),
    )


def test_arming_a_guard_is_no_mark_of_it() -> None:
    assert updated(report(session(mark(Kind.GUARD_ARMED))), None, TODAY).marks == ()


def test_what_was_checked_is_counted_and_sources_that_were_not_read_are_not() -> None:
    found = report(session(name="b", calls=4), session(name="a", calls=3))
    found.sources.append(SourceReport("c.jsonl", UNREADABLE, problems=[Problem(0, UNREADABLE, "gone")]))
    made = updated(found, None, TODAY)
    assert made.checked == Checked(sources=2, sessions=2, runs=2, calls=7)
    assert made.sessions == (KnownSession("a", 3, "sessions/a.jsonl"), KnownSession("b", 4, "sessions/b.jsonl"))


def test_sessions_of_one_id_are_one_with_all_their_calls() -> None:
    found = report(session(calls=4, source="b.jsonl"), session(calls=3, source="a.jsonl"))
    assert updated(found, None, TODAY).sessions == (KnownSession("s-1", 7, "a.jsonl"),)


def test_the_settings_are_those_that_marks_depend_on() -> None:
    found = report(session(), under=samples.policy("2026.6", enabled=False), mode="observe")
    found.agents["main"] = samples.policy("2026.6")
    made = updated(found, None, TODAY).settings
    assert (made.ruleset, made.mode, made.scope, made.arm) == ("2026.6", "observe", "run", "auto")
    assert made.config["enabled"] is False
    assert made.config["warningThreshold"] == 10
    assert made.of("main")["enabled"] is True
    assert made.of("another") == made.config


def test_what_is_ignored_is_not_taken_in_until_the_ignore_expires() -> None:
    ignore = Ignore({"tool": "read"}, "on it", date(2026, 12, 1))
    before = replace(updated(report(session(mark())), None, TODAY), ignores=(ignore,))
    assert updated(report(session(mark())), before, date(2026, 12, 1)).marks == ()
    assert len(updated(report(session(mark())), before, date(2026, 12, 2)).marks) == 1


@given(reports, st.lists(ignores, max_size=2).map(tuple))
def test_an_update_changes_nothing_the_second_time(found: Report, kept: tuple[Ignore, ...]) -> None:
    once = updated(found, replace(updated(found, None, TODAY), ignores=kept), TODAY)
    assert once.ignores == kept
    assert updated(found, once, TODAY) == once


@given(st.data(), reports)
def test_the_order_of_the_sources_changes_nothing(data: st.DataObject, found: Report) -> None:
    other = report(*data.draw(st.permutations(found.sessions)))
    made: Baseline = updated(other, None, TODAY)
    assert made == updated(found, None, TODAY)


@pytest.mark.parametrize(
    "nearly",
    [{"level": Level.CRITICAL}, {"tool": None}, {"signature": None}, {}],
    ids=lambda fields: "-".join(fields),
)
def test_nor_do_marks_that_are_nearly_equal_or_equal_depend_on_it(nearly: dict[str, Any]) -> None:
    base = mark(tool="", signature="")
    here, there = session(base, source="b.jsonl"), session(replace(base, **nearly), source="a.jsonl")
    assert updated(report(here, there), None, TODAY).marks == updated(report(there, here), None, TODAY).marks
