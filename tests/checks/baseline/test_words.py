"""What is said of a baseline: in sentences, with names that can do no harm."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from loopscan.checks.baseline import words
from loopscan.checks.baseline.data import updated
from loopscan.checks.baseline.ignores import Ignore
from loopscan.checks.baseline.ratchet import judge
from loopscan.events import Problem
from loopscan.marks import Kind
from loopscan.report import UNREADABLE, Report, SourceReport
from tests.checks.baseline.made import TODAY, mark, report, session
from tests.reports import samples

READ = Ignore({"tool": "read"}, "on it", date(2026, 12, 31))


def test_the_summary_counts_what_there_is() -> None:
    known = replace(updated(report(session(mark(), mark())), None, TODAY), ignores=(READ,))
    judged = judge(report(session(mark(), mark(Kind.BLOCK, tool="exec"))), known, TODAY)
    assert words.summary(judged) == "1 new mark, 0 in the baseline, 1 ignored, 1 gone"
    assert words.summary(judge(report(), known, TODAY)) == "0 new marks, 0 in the baseline, 2 gone"


def test_what_is_gone_is_named_up_to_three() -> None:
    known = report(session(mark(), mark(), *(mark(count=count) for count in (11, 12, 13))))
    judged = judge(report(session()), updated(known, None, TODAY), TODAY)
    (said,) = words.remarks(judged)
    assert said == (
        "5 marks of the baseline are gone, which --update drops: "
        "warning generic_repeat at 10 of read in s-1, 2 times, "
        "warning generic_repeat at 11 of read in s-1, warning generic_repeat at 12 of read in s-1 and 1 more"
    )


def test_ignores_that_do_nothing_are_to_be_deleted() -> None:
    known = replace(updated(report(session()), None, TODAY), ignores=(READ, replace(READ, until=date(2026, 1, 1))))
    assert list(words.remarks(judge(report(session()), known, TODAY))) == [
        'ignores[1] ("on it") has expired on 2026-01-01: it is about no mark: delete it',
        'ignores[0] ("on it") is about no mark: delete it',
    ]


def test_of_an_expired_ignore_it_is_said_what_counts_again() -> None:
    known = replace(updated(report(session()), None, TODAY), ignores=(READ,))
    judged = judge(report(session(mark())), known, date(2027, 1, 1))
    assert list(words.remarks(judged)) == [
        'ignores[0] ("on it") has expired on 2026-12-31: 1 mark counts again; mend it, or give it a new date'
    ]


def test_marks_that_are_gone_and_new_at_once_may_come_from_another_version() -> None:
    known = replace(updated(report(session(mark(outcome="1"))), None, TODAY), version="0.0.9")
    assert any("written by loopscan 0.0.9" in said for said in words.remarks(judge(other(), known, TODAY)))
    same = replace(known, version="0.1.0")
    assert not any("written by" in said for said in words.remarks(judge(other(), same, TODAY)))


def other() -> Report:
    return report(session(mark(outcome="2")))


def test_what_could_not_be_read_is_named() -> None:
    now = report(session())
    now.sources.append(SourceReport("a\x1b.jsonl", UNREADABLE))
    now.sources[-1].add_problem(Problem(0, UNREADABLE, "a.jsonl: permission denied\x1b"))
    judged = judge(now, updated(report(session()), None, TODAY), TODAY)
    assert list(words.less(judged)) == [r"not everything could be read: a.jsonl: permission denied\x1b"]


def test_names_do_no_harm() -> None:
    evil = "s\x1b[2J\u202e"
    known = updated(report(session(mark(tool=evil), name=evil)), None, TODAY)
    now = report(session())
    now.agents["main"] = samples.policy(enabled=False)
    judged = judge(now, replace(known, ignores=(replace(READ, reason=evil),)), TODAY)
    said = [*words.remarks(judged), *words.less(judged), *words.settings(judged.settings)]
    said += words.changes(known, updated(now, known, TODAY))
    assert len(said) == 7
    assert all(line.isprintable() for line in said)


class TestChanges:
    def test_a_first_one_says_what_it_holds(self) -> None:
        assert list(words.changes(None, updated(report(session(mark(), mark())), None, TODAY))) == [
            "the baseline knows 2 marks of 1 session with 40 calls"
        ]

    def test_what_is_lowered_is_said(self) -> None:
        before = updated(report(session(mark(), mark(count=20)), session(name="s-2")), None, TODAY)
        after = updated(report(session(mark(count=30), calls=38)), before, TODAY)
        assert list(words.changes(before, after)) == [
            "1 mark taken in",
            "2 marks dropped",
            "sources: lowered from 2 to 1",
            "sessions: lowered from 2 to 1",
            "calls: lowered from 80 to 38",
            "1 session dropped: s-2 (40 calls)",
            "1 session lowered: s-1 (38 of 40 calls)",
        ]

    def test_so_are_more_and_other_settings(self) -> None:
        before = updated(report(session()), None, TODAY)
        after = updated(report(session(calls=41), under=samples.policy(enabled=False)), before, TODAY)
        assert list(words.changes(before, after)) == [
            "calls: raised from 40 to 41",
            "enabled: true becomes false",
        ]

    def test_nothing_is_said_of_nothing(self) -> None:
        before = updated(report(session(mark())), None, TODAY)
        assert list(words.changes(before, before)) == []
