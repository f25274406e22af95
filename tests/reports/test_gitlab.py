"""``gitlab`` is a Code Quality report in which no finding hides another one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given

from loopscan.findings import Findings, Place, Severity
from loopscan.reports.cases import counting
from loopscan.reports.plain import path, sentence
from tests.reports import samples
from tests.reports.subjects import NASTIEST, SUBJECTS, case, finding, findings, written


def issues(subject: object) -> list[dict[str, Any]]:
    made = json.loads(written("gitlab", subject))
    assert isinstance(made, list)
    for issue in made:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert isinstance(issue["location"]["path"], str)
        assert issue["location"]["lines"]["begin"] >= 1
    assert len({issue["fingerprint"] for issue in made}) == len(made)
    return made


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_comes_back_clean(subject: Findings) -> None:
    assert [(each["description"], each["location"]["path"]) for each in issues(subject)] == [
        (sentence(each.message), path(each.place.path)) for each in counting(subject)
    ]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_reports_have_an_issue_a_mark(name: str) -> None:
    report = samples.SAMPLES[name]()
    unread = sum(bool(source.failures) for source in report.sources)
    assert len(issues(report)) == report.count().marks.total() + unread


def test_an_issue_says_what_where_and_of_which_rule() -> None:
    assert issues(findings(case(findings=(finding(),)))) == [
        {
            "description": "it loops",
            "check_name": "loopscan/generic_repeat",
            "fingerprint": "ab" * 32,
            "severity": "major",
            "location": {"path": "s.jsonl", "lines": {"begin": 3}},
        }
    ]


def test_severities_and_unknown_lines() -> None:
    made = tuple(finding(severity=each, place=Place("s.jsonl")) for each in Severity)
    shown = issues(findings(case(findings=made)))
    assert [(each["severity"], each["location"]["lines"]["begin"]) for each in shown] == [
        ("info", 1),
        ("minor", 1),
        ("major", 1),
    ]


def test_suppressed_findings_are_not_shown() -> None:
    assert issues(findings(case(findings=(finding(suppressed="in the baseline"),)))) == []
