"""New marks fail, known ones pass, and nothing gets through by checking less than before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loopscan.checks.baseline.data import Baseline, KnownMark, KnownSession, updated
from loopscan.checks.baseline.ignores import Ignore
from loopscan.checks.baseline.ratchet import Difference, Judged, Less, Standing, UsedIgnore, judge
from loopscan.events import Problem
from loopscan.fingerprints import Content, content, fingerprints
from loopscan.marks import Kind, Mark
from loopscan.report import READ_ERROR, UNREADABLE, Report, SessionReport
from tests.checks.baseline.made import TODAY, hostile, mark, marks, places, report, reports, session
from tests.reports import samples

READ = Ignore({"tool": "read"}, "on it", date(2026, 12, 31))


def held(found: Report, known: Report, *ignores: Ignore, today: date = TODAY) -> Judged:
    """Hold one report against the baseline that another one gives, with ignores written into it afterwards."""
    return judge(found, replace(updated(known, None, TODAY), ignores=ignores), today)


def standings(judged: Judged) -> list[str]:
    return [each.standing.value for each_session in judged.sessions for each in each_session.marks]


def with_marks(found: SessionReport, *now: Mark) -> SessionReport:
    return replace(found, runs=[replace(run, marks=list(now)) for run in found.runs])


class TestMarks:
    def test_known_ones_pass_and_new_ones_fail(self) -> None:
        judged = held(report(session(mark(), mark(Kind.BLOCK))), report(session(mark())))
        assert standings(judged) == ["known", "new"]
        assert not judged.passed
        assert held(report(session(mark())), report(session(mark()))).passed

    def test_one_equal_mark_more_than_before_is_new(self) -> None:
        judged = held(report(session(mark(), mark(), mark())), report(session(mark(), mark())))
        assert standings(judged) == ["known", "known", "new"]

    def test_those_of_another_session_are_new(self) -> None:
        known = report(session(mark()), session(name="s-2"))
        judged = held(report(session(), session(mark(), name="s-2")), known)
        assert standings(judged) == ["new"]
        assert judged.gone == (KnownMark(content("s-1", mark()), 1, "sessions/s-1.jsonl"),)

    def test_gone_ones_pass_and_are_told(self) -> None:
        judged = held(report(session(mark())), report(session(mark(), mark(), mark())))
        assert judged.gone == (KnownMark(content("s-1", mark()), 2, "sessions/s-1.jsonl"),)
        assert judged.passed

    def test_arming_a_guard_is_neither_new_nor_gone(self) -> None:
        armed, plain = report(session(mark(Kind.GUARD_ARMED))), report(session())
        assert held(armed, plain) == held(plain, plain)
        assert held(plain, armed).passed

    @given(reports)
    def test_against_a_baseline_of_itself_nothing_is_new_or_gone(self, found: Report) -> None:
        judged = held(found, found)
        assert judged.passed
        assert not judged.gone
        assert set(standings(judged)) <= {"known"}

    @given(st.data(), reports)
    def test_moving_marks_and_transcripts_changes_nothing(self, data: st.DataObject, found: Report) -> None:
        def moved(found: Mark) -> Mark:
            number = data.draw(st.integers(0, 99))
            return replace(found, where=data.draw(places), batch=number, call=number, run=data.draw(hostile))

        there = [
            replace(with_marks(each, *(moved(mark) for _, mark in each.marks())), source=f"moved/{number}.jsonl")
            for number, each in enumerate(data.draw(st.permutations(found.sessions)))
        ]
        judged = held(report(*there), found)
        assert judged.passed
        assert not judged.gone

    @given(st.data(), reports, marks())
    def test_each_that_is_added_is_new_once(self, data: st.DataObject, found: Report, more: Mark) -> None:
        assume(found.sessions)
        at = data.draw(st.integers(0, len(found.sessions) - 1))
        times = data.draw(st.integers(1, 3))
        there = [found_mark for _, found_mark in found.sessions[at].marks()]
        for _ in range(times):
            there.insert(data.draw(st.integers(0, len(there))), more)
        added = [*found.sessions]
        added[at] = with_marks(added[at], *there)
        judged = held(report(*added), found)
        new = [content(each.session, judged_mark.mark) for each, judged_mark in judged.marks(Standing.NEW)]
        assert new == [content(added[at].session, more)] * times
        assert not judged.gone

    @given(st.data(), reports)
    def test_each_that_is_taken_away_is_gone_once(self, data: st.DataObject, found: Report) -> None:
        gone: Counter[Any] = Counter()
        left = []
        for each in found.sessions:
            there = [found_mark for _, found_mark in each.marks()]
            stays = data.draw(st.lists(st.booleans(), min_size=len(there), max_size=len(there)))
            gone.update(content(each.session, mark) for mark, stay in zip(there, stays, strict=True) if not stay)
            left.append(with_marks(each, *(mark for mark, stay in zip(there, stays, strict=True) if stay)))
        judged = held(report(*left), found)
        assert {known.about: known.times for known in judged.gone} == gone
        assert judged.count(Standing.NEW) == 0
        assert judged.passed

    @given(reports)
    def test_each_has_the_fingerprint_that_others_give_it(self, found: Report) -> None:
        judged = held(found, found)
        seen: Counter[Content] = Counter()
        for each, made in zip(found.sessions, judged.sessions, strict=True):
            prints = fingerprints(each.session, (found_mark for _, found_mark in each.marks()), seen)
            assert [judged_mark.fingerprint for judged_mark in made.marks] == prints


class TestIgnores:
    def test_what_they_are_about_does_not_count(self) -> None:
        judged = held(report(session(mark(), mark(tool="exec"))), report(session()), READ)
        assert standings(judged) == ["ignored", "new"]
        assert judged.sessions[0].marks[0].ignore is READ

    def test_one_that_has_expired_is_told_and_its_marks_count_again(self) -> None:
        judged = held(report(session(mark(), mark())), report(session()), READ, today=date(2027, 1, 1))
        assert standings(judged) == ["new", "new"]
        assert judged.expired == [UsedIgnore(0, READ, expired=True, marks=2)]
        assert judged.unused == []

    def test_the_first_that_holds_counts(self) -> None:
        old = replace(READ, until=date(2026, 1, 1))
        other = Ignore({"kind": "warning"}, "wait for it", date(2027, 1, 1))
        judged = held(report(session(mark())), report(session()), old, other, READ)
        assert judged.sessions[0].marks[0].ignore is other
        assert [used.marks for used in judged.ignores] == [0, 1, 1]

    def test_one_that_is_about_nothing_is_told_and_fails_nothing(self) -> None:
        other = Ignore({"tool": "exec"}, "on it", date(2027, 1, 1))
        judged = held(report(session(mark())), report(session()), READ, other)
        assert judged.unused == [UsedIgnore(1, other, expired=False, marks=0)]
        assert judged.passed

    def test_a_known_mark_that_is_ignored_as_well_is_not_gone(self) -> None:
        judged = held(report(session(mark())), report(session(mark())), READ)
        assert standings(judged) == ["ignored"]
        assert not judged.gone

    def test_an_ignored_mark_leaves_the_known_ones_known(self) -> None:
        """Equal marks stand in two transcripts of a session; what is known of one is not used up by the other."""
        both = report(session(mark(), source="a.jsonl"), session(mark(), source="b.jsonl"))
        known = report(session(source="a.jsonl"), session(mark(), source="b.jsonl"))
        judged = held(both, known, Ignore({"source": "a.jsonl"}, "on it", date(2027, 1, 1)))
        assert standings(judged) == ["ignored", "known"]


class TestCheckedLess:
    known = report(session(mark(), name="a", calls=4), session(name="b", calls=3))

    def test_a_session_that_is_gone_fails_and_so_its_marks_do_not_get_through(self) -> None:
        judged = held(report(session(name="b", calls=3)), self.known)
        assert judged.gone_sessions == (KnownSession("a", 4, "sessions/a.jsonl"),)
        assert judged.less == (Less("sources", 2, 1), Less("sessions", 2, 1), Less("calls", 7, 3))
        assert judged.checked_less
        assert not judged.passed

    def test_another_session_does_not_make_up_for_it(self) -> None:
        judged = held(report(session(name="b", calls=3), session(name="c", calls=99)), self.known)
        assert judged.less == ()
        assert [each.session for each in judged.gone_sessions] == ["a"]
        assert not judged.passed

    def test_nor_do_calls_of_another_session(self) -> None:
        judged = held(report(session(name="a", calls=3), session(name="b", calls=30)), self.known)
        assert judged.shorter == (Less("a", 4, 3),)
        assert judged.less == ()
        assert not judged.passed

    def test_one_of_two_transcripts_of_a_session_that_is_gone_fails(self) -> None:
        known = report(session(calls=0, source="a.jsonl"), session(calls=3, source="b.jsonl"))
        judged = held(report(session(calls=3, source="b.jsonl")), known)
        assert Less("sessions", 2, 1) in judged.less
        assert not judged.passed

    @pytest.mark.parametrize("kind", [UNREADABLE, READ_ERROR])
    def test_what_could_not_be_read_fails_even_if_all_else_is_there(self, kind: str) -> None:
        now = replace(self.known, sources=[*self.known.sources])
        now.sources.append(replace(now.sources[0], path="c.jsonl"))
        now.sources[-1].problems = [Problem(7, kind, "c.jsonl: it breaks off")]
        judged = held(now, self.known)
        assert len(judged.unread) == 1
        assert judged.less == ()
        assert not judged.passed

    def test_more_of_everything_passes(self) -> None:
        more = report(*self.known.sessions, session(name="c"))
        more.sessions[1] = session(name="b", calls=30)
        assert held(more, self.known).passed

    @given(st.data(), reports)
    def test_nothing_gets_through_by_deleting_transcripts(self, data: st.DataObject, found: Report) -> None:
        assume(found.sessions)
        left = data.draw(st.lists(st.sampled_from(found.sessions), unique_by=id))
        assume(len(left) < len(found.sessions))
        judged = held(report(*left), found)
        assert not judged.passed
        assert judge(report(*left), updated(report(*left), None, TODAY), TODAY).passed


class TestSettings:
    def differences(self, before: Report, now: Report) -> tuple[Difference, ...]:
        judged = held(now, before)
        assert judged.passed == (not judged.settings)
        return judged.settings

    def test_they_fail_where_they_differ(self) -> None:
        """Detectors that are off make no marks: that must not look like a clean log."""
        off = report(session(), under=samples.policy(enabled=False))
        assert self.differences(report(session()), off) == (Difference("enabled", True, False),)

    def test_each_that_differs_is_named(self) -> None:
        now = report(session(), under=replace(samples.policy("2026.6"), warning=12), mode="observe")
        now.arm = "never"
        assert self.differences(report(session()), now) == (
            Difference("ruleset", "2026.9", "2026.6"),
            Difference("mode", "enforce", "observe"),
            Difference("arm", "auto", "never"),
            Difference("warningThreshold", 10, 12),
        )

    def test_those_of_an_agent_count_where_sessions_of_it_are_here(self) -> None:
        before, now = report(session()), report(session())
        before.agents["main"] = samples.policy(enabled=False)
        assert self.differences(before, now) == (Difference("enabled of agent main", False, True),)
        now.sessions[0].agent = "another"
        assert self.differences(before, now) == ()

    def test_what_differs_for_all_is_not_said_of_an_agent_again(self) -> None:
        before, now = report(session()), report(session(), under=replace(samples.policy(), warning=12))
        before.agents["main"] = samples.policy()
        assert self.differences(before, now) == (Difference("warningThreshold", 10, 12),)

    def test_a_field_that_only_one_side_knows_is_not_compared(self) -> None:
        """A later version may have more of them."""
        made: Baseline = updated(report(session()), None, TODAY)
        older = {field: value for field, value in made.settings.config.items() if field != "warningThreshold"}
        old = replace(made, settings=replace(made.settings, config={**older, "given up": 1}))
        assert judge(report(session()), old, TODAY).passed
