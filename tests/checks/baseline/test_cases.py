"""A judged report becomes cases: one a session, failing for what is new, and two for the baseline itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from loopscan.checks.baseline.cases import cases
from loopscan.checks.baseline.data import updated
from loopscan.checks.baseline.ignores import Ignore
from loopscan.checks.baseline.ratchet import judge
from loopscan.events import Where
from loopscan.findings import RULES, Case, Place, Severity, Status
from loopscan.fingerprints import fingerprints
from loopscan.marks import Detector, Kind
from loopscan.report import Report
from tests.checks.baseline.made import TODAY, mark, report, reports, session
from tests.reports import samples

PATH = "ci/loopscan.baseline.json"


def made(found: Report, known: Report, *ignores: Ignore) -> tuple[Case, ...]:
    return cases(judge(found, replace(updated(known, None, TODAY), ignores=ignores), TODAY), PATH)


def test_a_new_mark_fails_its_session_and_stands_where_it_is() -> None:
    new = mark(Kind.BLOCK, batch=20, detector=Detector.PING_PONG, message="a and b alternated")
    case = made(report(session(mark(), new)), report(session(mark())))[0]
    assert (case.group, case.name, case.status) == ("sessions/s-1.jsonl", "s-1", Status.FAILED)
    assert case.reason == "1 mark not in the baseline"
    assert case.text == "line 43: block by ping_pong: a and b alternated"
    assert case.place == Place("sessions/s-1.jsonl", 43)
    finding = case.findings[1]
    assert (finding.rule, finding.severity, finding.message) == ("ping_pong", Severity.ERROR, "a and b alternated")
    assert finding.place == case.place
    assert finding.suppressed is None
    assert [each.fingerprint for each in case.findings] == fingerprints("s-1", [mark(), new], Counter())


def test_known_and_ignored_marks_are_suppressed_and_fail_nothing() -> None:
    ignore = Ignore({"tool": "exec"}, "they are polls", date(2027, 1, 1))
    case = made(report(session(mark(), mark(tool="exec"))), report(session(mark())), ignore)[0]
    assert case.status is Status.PASSED
    assert [finding.suppressed for finding in case.findings] == ["in the baseline", "they are polls"]
    assert case.findings[0].severity is Severity.WARNING


def test_a_mark_of_a_source_without_lines_has_none() -> None:
    case = made(report(session(mark(where=Where()))), report(session()))[0]
    assert case.findings[0].place == Place("sessions/s-1.jsonl")
    assert case.text.startswith("batch 10: ")


def test_a_session_without_marks_passes() -> None:
    assert made(report(session()), report())[0].status is Status.PASSED


def test_checking_less_fails_a_case_of_the_baseline() -> None:
    case = made(report(session()), report(session(calls=42), session(name="s-2")))[-2]
    assert (case.group, case.name, case.status, case.place) == (
        PATH,
        "as much as before",
        Status.FAILED,
        Place(PATH),
    )
    assert {finding.rule for finding in case.findings} == {"checked_less"}
    assert [finding.message for finding in case.findings] == case.text.splitlines()
    assert case.text.splitlines() == [
        "1 source checked, 2 in the baseline",
        "1 session checked, 2 in the baseline",
        "40 calls checked, 82 in the baseline",
        "1 session of the baseline is gone: s-2 (40 calls)",
        "1 session has fewer calls than in the baseline: s-1 (40 of 42 calls)",
    ]
    assert case.reason == "5 reasons"


def test_other_settings_fail_a_case_of_the_baseline() -> None:
    case = made(report(session(), under=samples.policy(enabled=False)), report(session()))[-1]
    assert (case.name, case.status) == ("the same settings", Status.FAILED)
    assert case.reason == "enabled is false, true in the baseline"
    assert [finding.rule for finding in case.findings] == ["other_settings"]


def test_sessions_of_one_name_in_one_transcript_are_told_apart() -> None:
    found = report(*(session(name=name, source="a.jsonl") for name in ("s", "s", "s (2)", "s")))
    assert [case.name for case in made(found, found)[:4]] == ["s", "s (2)", "s (2) (2)", "s (3)"]


@given(reports, st.sampled_from([True, False]))
def test_the_cases_fail_exactly_if_the_check_does(found: Report, clean: bool) -> None:
    judged = judge(found, updated(found if clean else report(), None, TODAY), TODAY)
    all_cases = cases(judged, PATH)
    assert all(case.status is Status.PASSED for case in all_cases) == judged.passed
    assert len({(case.group, case.name) for case in all_cases}) == len(all_cases) == len(found.sessions) + 2
    assert {finding.rule for case in all_cases for finding in case.findings} <= set(RULES)
    for case in all_cases:
        assert (case.status is Status.FAILED) == any(finding.suppressed is None for finding in case.findings)
