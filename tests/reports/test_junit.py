"""``junit`` is valid against the schema of Jenkins' xUnit plugin, whatever it is about."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from lxml import etree

from loopscan.failing import FailOn
from loopscan.findings import Findings, Severity, Status
from loopscan.reports.cases import story, unsaid
from loopscan.reports.plain import sentence, title
from tests.reports import samples
from tests.reports.subjects import NASTIEST, SCHEMAS, SUBJECTS, case, finding, findings, written


@cache
def schema() -> Any:
    return etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))


def parsed(subject: object, **options: Any) -> Any:
    root = etree.fromstring(written("junit", subject, **options))
    schema().assertValid(root)
    return root


@pytest.mark.parametrize("fail_on", FailOn)
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_reports_are_valid(name: str, fail_on: FailOn) -> None:
    report = samples.SAMPLES[name]()
    root = parsed(report, fail_on=fail_on)
    names = [each.get("name") for each in root.iter("testcase")]
    assert len(names) == int(root.get("tests")) >= len(report.sessions)
    if fail_on is FailOn.NEVER:
        assert root.find(".//failure") is None


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_is_valid_and_comes_back_clean(subject: Findings) -> None:
    root = parsed(subject)
    tags = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}
    expected: list[tuple[object, ...]] = []
    for each in subject.cases:
        told = "\n".join(story(each))
        reason = None if each.reason is None else sentence(each.reason)
        if each.status in tags:
            outcome: tuple[object, ...] = (tags[each.status], reason, told)
        else:
            outcome = ("system-out", None, told) if each.findings else ()
        expected.append((title(each.group), title(each.name), *outcome))
    expected += [("loopscan", sentence(error), "error", sentence(error), "") for error in unsaid(subject)]
    found = []
    for element in root.iter("testcase"):
        outcome = ()
        for child in element:
            outcome = (child.tag, child.get("message"), child.text or "")
        found.append((element.get("classname"), element.get("name"), *outcome))
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    for suite in root.iter("testsuite"):
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute)) == len(suite.findall(f"testcase/{tag}"))


def test_suites_are_transcripts_and_the_first_one_has_the_facts() -> None:
    root = parsed(findings(case("1", group="b"), case("2", group="a"), case("3", group="b")))
    assert [(suite.get("name"), suite.get("file"), len(suite.findall("testcase"))) for suite in root] == [
        ("b", "b", 2),
        ("a", "a", 1),
    ]
    assert {each.get("name"): each.get("value") for each in root[0].iter("property")} == {
        "version": "0.1.0",
        "ruleset": "2026.9",
    }


def test_a_failure_says_why_of_which_rule_and_where() -> None:
    light = finding("slow", rule="ping_pong", severity=Severity.WARNING)
    known = finding("known", suppressed="in the baseline")
    failed = case(status=Status.FAILED, reason="1 mark", text="a timeline", findings=(light, finding(), known))
    failure = parsed(findings(failed)).find(".//failure")
    assert (failure.get("message"), failure.get("type")) == ("1 mark", "generic_repeat")
    assert failure.text == "a timeline"
    untold = case(status=Status.FAILED, reason="1 mark", findings=(light, finding(), known))
    assert parsed(findings(untold)).find(".//failure").text == "s.jsonl:3: slow\ns.jsonl:3: it loops"


def test_fail_on_decides_what_fails_and_marks_are_there_all_the_same() -> None:
    never = parsed(samples.block_and_end())
    assert (never.get("failures"), never.find(".//failure")) == ("0", None)
    assert "run end" in never.findtext(".//system-out")
    assert parsed(samples.block_and_end(), fail_on=FailOn.END).get("failures") == "1"
    assert parsed(samples.one_warning(), fail_on=FailOn.END).get("failures") == "0"


def test_what_could_not_be_read_is_an_error() -> None:
    root = parsed(samples.problems())
    assert root.get("errors") == "1"
    assert root.find(".//error").get("message") == "permission denied"


def test_nothing_at_all_is_an_empty_document() -> None:
    assert len(parsed(findings())) == 0


def test_the_same_report_gives_the_same_bytes() -> None:
    assert written("junit", samples.hostile()) == written("junit", samples.hostile())
    assert b"time" not in written("junit", samples.silenced())
