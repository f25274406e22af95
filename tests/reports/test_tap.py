"""``tap`` is read by the rules of version 14 as what was written, whatever the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from hypothesis import example, given

from loopscan.failing import FailOn
from loopscan.findings import Findings, Status
from loopscan.reports.cases import unsaid
from loopscan.reports.plain import lines, path, sentence, title
from tests.reports import samples
from tests.reports.subjects import NASTIEST, SUBJECTS, case, finding, findings, written


@dataclass
class Point:
    ok: bool
    description: str
    skip: str | None = None
    yaml: dict[str, Any] | None = None


def unescaped(text: str) -> str:
    return re.sub(r"\\([\\#])", r"\1", text)


def points(subject: object, **options: Any) -> list[Point]:
    """Return the test points as a harness finds them; anything else but comments is no TAP."""
    document = re.split(r"\r\n|\r|\n", written("tap", subject, **options).decode())
    assert document[0] == "TAP version 14"
    assert document.pop() == ""
    planned = int(re.fullmatch(r"1\.\.(\d+)(?: # .*)?", document[1])[1])  # type: ignore[index]
    made: list[Point] = []
    at = 2
    while at < len(document):
        line = document[at]
        at += 1
        if line.startswith("# "):
            continue
        if line == "  ---":
            end = document.index("  ...", at)
            block = document[at:end]
            assert all(each.startswith("  ") for each in block)
            made[-1].yaml = yaml.safe_load("\n".join(each[2:] for each in block))
            at = end + 1
            continue
        found = re.fullmatch(r"(not )?ok (\d+) - ((?:[^\\#]|\\.)*?)(?: # SKIP(?: (.*))?)?", line)
        assert found, line
        assert int(found[2]) == len(made) + 1
        skip = None if " # SKIP" not in line else unescaped(found[4] or "")
        made.append(Point(not found[1], unescaped(found[3]), skip))
    assert len(made) == planned
    return made


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_comes_back_clean(subject: Findings) -> None:
    made = points(subject)
    stray = unsaid(subject)
    assert [(point.ok, point.description) for point in made[len(subject.cases) :]] == [
        (False, sentence(error)) for error in stray
    ]
    for point, each in zip(made, subject.cases, strict=False):
        assert point.ok is (each.status in {Status.PASSED, Status.SKIPPED})
        assert point.description == f"{path(each.group)}: {title(each.name)}"
        if each.status is Status.SKIPPED:
            assert (point.skip, point.yaml) == (sentence(each.reason or ""), None)
            continue
        assert point.skip is None
        if each.status is Status.PASSED and not each.findings:
            assert point.yaml is None
            continue
        assert point.yaml is not None
        assert point.yaml.get("message") == (None if each.reason is None else sentence(each.reason))
        assert point.yaml["at"]["file"] == path(each.place.path)
        assert point.yaml["at"].get("line") == each.place.line
        assert point.yaml.get("text", []) == lines(each.text)
        assert [found["message"] for found in point.yaml.get("findings", [])] == [
            sentence(found.message) for found in each.findings
        ]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_reports_have_a_point_a_session(name: str) -> None:
    report = samples.SAMPLES[name]()
    unread = sum(bool(source.failures) for source in report.sources)
    assert len(points(report)) == len(report.sessions) + unread


def test_a_failed_case_says_why_and_what() -> None:
    failed = case(status=Status.FAILED, reason="1 mark", text="a\nb", findings=(finding(suppressed="known"),))
    (point,) = points(findings(failed))
    assert point == Point(
        False,
        "s.jsonl: one",
        yaml={
            "message": "1 mark",
            "severity": "fail",
            "at": {"file": "s.jsonl"},
            "findings": [
                {
                    "rule": "generic_repeat",
                    "severity": "error",
                    "message": "it loops",
                    "file": "s.jsonl",
                    "line": 3,
                    "suppressed": "known",
                }
            ],
            "text": ["a", "b"],
        },
    )


def test_fail_on_decides_what_is_not_ok() -> None:
    assert [points(samples.one_warning(), fail_on=each)[0].ok for each in FailOn] == [False, True, True, True]
    marked = points(samples.one_warning())[0]
    assert marked.yaml is not None
    assert (marked.yaml["severity"], len(marked.yaml["findings"])) == ("none", 1)


def test_what_could_not_be_read_is_not_ok() -> None:
    last = points(samples.problems())[-1]
    assert (last.ok, last.yaml and last.yaml["severity"]) == (False, "error")


def test_nothing_at_all_is_a_plan_of_nothing() -> None:
    assert points(findings()) == []
