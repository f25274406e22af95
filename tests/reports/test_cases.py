"""A report becomes cases and findings that say what happened, where, and which are the same as before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopscan.events import Problem, Where
from loopscan.failing import FailOn
from loopscan.findings import RULES, Case, Place, Severity, Status
from loopscan.marks import Kind
from loopscan.report import READ_ERROR, Report, Skipped
from loopscan.reports import Options
from loopscan.reports.cases import findings_of, gravest_first, groups, unsaid
from loopscan.transcripts.discover import Unread
from tests.reports import samples
from tests.reports.subjects import Checked, case, finding, findings


def only(report: Report, fail_on: FailOn = FailOn.NEVER) -> Case:
    (made,) = findings_of(report, Options(fail_on=fail_on)).cases
    return made


def moved(report: Report, lines: int) -> Report:
    """Return the report of the same transcript with so many lines more at its beginning."""
    for session in report.sessions:
        for run in session.runs:
            run.marks = [replace(mark, where=Where(mark.where.line + lines, mark.where.entry)) for mark in run.marks]
    return report


class TestASession:
    def test_is_a_case_of_its_transcript_with_its_timeline(self) -> None:
        made = only(samples.one_warning())
        assert (made.group, made.name, made.status) == ("sessions/s-1.jsonl", "s-1", Status.PASSED)
        assert made.place == Place("sessions/s-1.jsonl")
        assert "● warning generic_repeat · count 10, threshold 10 · read" in made.text
        assert not made.text.endswith("\n")
        assert made.text.startswith("sessions/s-1.jsonl:23: warning: read was called 10 times")

    def test_without_marks_has_nothing_to_read(self) -> None:
        assert only(samples.silenced()).text == ""

    @pytest.mark.parametrize(
        ("fail_on", "reason", "line"),
        [
            (FailOn.NEVER, None, None),
            (FailOn.END, "1 run end at or above --fail-on end", 45),
            (FailOn.BLOCK, "2 blocks, 1 run end at or above --fail-on block", 43),
            (FailOn.WARNING, "1 warning, 2 blocks, 1 run end at or above --fail-on warning", 23),
        ],
    )
    def test_fails_by_fail_on_and_leads_to_the_first_mark_that_made_it(
        self, fail_on: FailOn, reason: str | None, line: int | None
    ) -> None:
        made = only(samples.block_and_end(), fail_on)
        assert made.status is (Status.PASSED if reason is None else Status.FAILED)
        assert (made.reason, made.place.line) == (reason, line)

    def test_arming_a_guard_never_fails(self) -> None:
        armed = samples.report(
            samples.session(samples.run(samples.shown(samples.mark(Kind.GUARD_ARMED, 3)), calls=9))
        )
        assert only(armed, FailOn.WARNING).status is Status.PASSED

    def test_of_the_same_name_in_one_source_is_told_apart(self) -> None:
        twice = samples.report(*(samples.session(samples.run(calls=1)) for _ in range(3)))
        assert [each.name for each in findings_of(twice, Options()).cases] == ["s-1", "s-1 (2)", "s-1 (3)"]

    def test_leaves_out_arguments_without_previews(self) -> None:
        with_them, without = (
            findings_of(samples.one_warning(), Options(previews=shown)).cases[0].text for shown in (True, False)
        )
        assert samples.PREVIEW in with_them
        assert samples.PREVIEW not in without


class TestAMark:
    def test_is_a_finding_of_its_detector_at_its_line(self) -> None:
        warning, first, _, end = only(samples.block_and_end()).findings
        assert (warning.rule, warning.severity, warning.place) == (
            "generic_repeat",
            Severity.WARNING,
            Place("sessions/s-1.jsonl", 23),
        )
        assert first.message == (
            "block: read was called 20 times with the same arguments (session s-1, run 0, batch 20)"
        )
        assert end.message.startswith("run end: the second critical loop")
        assert {first.severity, end.severity} == {Severity.ERROR}

    def test_that_arms_a_guard_is_a_note_and_a_lossy_one_says_so(self) -> None:
        armed, abort = only(samples.compaction()).findings
        assert (armed.severity, abort.severity) == (Severity.NOTE, Severity.ERROR)
        assert "lossy" in abort.message
        assert "lossy" not in armed.message

    def test_without_a_line_leads_to_the_source_as_a_whole(self) -> None:
        mark = samples.mark(Kind.WARNING, 3, 10, where=Where())
        made = samples.report(samples.session(samples.run(samples.shown(mark), calls=11)))
        assert only(made).findings[0].place == Place("sessions/s-1.jsonl")

    @pytest.mark.parametrize("name", samples.SAMPLES)
    def test_has_a_known_rule_no_lighter_than_itself(self, name: str) -> None:
        order = list(Severity)
        for made in findings_of(samples.SAMPLES[name](), Options()).cases:
            for each in made.findings:
                assert order.index(each.severity) <= order.index(RULES[each.rule].severity)


class TestFingerprints:
    def test_stay_when_lines_move(self) -> None:
        before = [each.fingerprint for each in only(samples.block_and_end()).findings]
        after = only(moved(samples.block_and_end(), 7))
        assert [each.fingerprint for each in after.findings] == before
        assert after.findings[0].place.line == 30

    def test_stay_when_what_came_before_is_another_loop(self) -> None:
        one = only(samples.one_warning()).findings[0].fingerprint
        other = samples.session(samples.run(samples.shown(samples.mark(Kind.WARNING, 4, 10)), calls=9), name="s-0")
        both = samples.report(other, samples.one_warning().sessions[0])
        assert [each.findings[0].fingerprint for each in findings_of(both, Options()).cases][1] == one

    def test_of_equal_marks_differ_by_how_many_came_before(self) -> None:
        marks = only(samples.blocks_in_a_row()).findings
        assert len({each.fingerprint for each in marks}) == len(marks) == 21

    @pytest.mark.parametrize(
        "change",
        [{"count": 20}, {"tool": "write"}, {"paired_tool": "write"}, {"signature": "0"}, {"outcome": "0"}],
    )
    def test_change_with_what_the_mark_is_about(self, change: dict[str, object]) -> None:
        plain, changed = (
            only(
                samples.report(
                    samples.session(samples.run(samples.shown(samples.mark(Kind.WARNING, 9, **fields)), calls=12))
                )
            )
            for fields in ({"count": 10}, {"count": 10, **change})
        )
        assert plain.findings[0].fingerprint != changed.findings[0].fingerprint


class TestWhatCouldNotBeRead:
    def test_is_a_case_with_an_error(self) -> None:
        made = findings_of(samples.problems(), Options())
        bad = made.cases[-1]
        assert (bad.group, bad.status, bad.reason) == ("sessions/s-2.jsonl", Status.ERROR, "permission denied")
        assert [each.rule for each in bad.findings] == ["unreadable_transcript"]
        assert made.errors == ("permission denied",)
        assert not unsaid(made)

    def test_does_not_hide_the_sessions_that_were_read_before(self) -> None:
        report = samples.one_warning()
        report.sources[0].add_problem(Problem(90, READ_ERROR, "it breaks off"))
        names = [(each.name, each.status) for each in findings_of(report, Options()).cases]
        assert names == [("s-1", Status.PASSED), ("reading", Status.ERROR)]

    def test_may_be_a_file_that_was_only_found(self) -> None:
        report = samples.one_warning()
        report.skipped += [Skipped("a.md", "not a transcript"), Skipped("b.zip", Unread("it is encrypted"))]
        made = findings_of(report, Options())
        assert [each.reason for each in made.cases if each.status is Status.ERROR] == ["b.zip: it is encrypted"]


def test_facts_say_what_was_replayed_and_what_came_of_it() -> None:
    facts = dict(findings_of(samples.block_and_end(), Options()).facts)
    assert facts["ruleset"].startswith("2026.9 (")
    assert facts["read"] == "1 session, 1 run, 44 calls, 1 source, 0 problems"
    assert facts["marks"] == "1 warning, 2 blocks, 1 run end"
    assert "upper bound" in facts["not reached"]
    assert "silenced" not in facts
    assert "silent" in dict(findings_of(samples.silenced(), Options()).facts)["silenced"]


def test_what_has_findings_is_asked_itself() -> None:
    made = findings(case())
    assert findings_of(Checked(made), Options()) is made


def test_errors_that_a_case_tells_of_are_not_said_again() -> None:
    told = case(status=Status.ERROR, reason="a", findings=(finding("b"),))
    assert unsaid(findings(told, errors=("a", "b", "c"))) == ["c"]


def test_cases_of_a_group_come_together_in_order_of_appearance() -> None:
    made = findings(case("1", group="b"), case("2", group="a"), case("3", group="b"))
    assert {group: [each.name for each in cases] for group, cases in groups(made).items()} == {
        "b": ["1", "3"],
        "a": ["2"],
    }


def test_the_gravest_come_first_and_equals_stay_in_order() -> None:
    made = [finding("1", severity=Severity.NOTE), finding("2"), finding("3", severity=Severity.WARNING), finding("4")]
    assert [each.message for each in gravest_first(made)] == ["2", "4", "3", "1"]
