"""``sarif`` is valid against the published schema, and has what code scanning asks for."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

import jsonschema
import pytest
from hypothesis import example, given

from loopscan.failing import FailOn
from loopscan.findings import RULES, Findings, Place, Severity, Status
from loopscan.reports import sarif
from loopscan.reports.plain import sentence, title, uri
from tests.reports import samples
from tests.reports.subjects import NASTIEST, SCHEMAS, SUBJECTS, case, finding, findings, written


@cache
def validator() -> jsonschema.Draft7Validator:
    formats = jsonschema.FormatChecker(("uri", "uri-reference"))
    assert {"uri", "uri-reference"} <= set(formats.checkers), "rfc3986-validator is missing"
    schema = json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text("utf-8"))
    return jsonschema.Draft7Validator(schema, format_checker=formats)


def run(subject: object, **options: Any) -> dict[str, Any]:
    document = json.loads(written("sarif", subject, **options))
    validator().validate(document)
    (only,) = document["runs"]
    assert isinstance(only, dict)
    return only


def shown(text: str) -> str:
    """Return what a reader shows of a message, which holds no link and no placeholder, without its escapes."""
    assert not re.search(r"(?<!\\)(?:\\\\)*\[(?:[^\[\]\\]|\\.)*\]\(", text), "a link"
    if "](" in text:
        text = re.sub(r"\\([\\\[\]])", r"\1", text)
    plain = re.sub(r"\{\{|\}\}", lambda pair: pair[0][0], text)
    assert not re.search(r"\{\d+\}", re.sub(r"\{\{|\}\}", "", text)), "a placeholder"
    return plain if re.search(r"\{\d+\}", plain) else text


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_reports_are_valid(name: str) -> None:
    report = samples.SAMPLES[name]()
    unread = sum(bool(source.failures) for source in report.sources)
    assert len(run(report)["results"]) == report.count().marks.total() + unread


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_is_valid_and_comes_back_clean(subject: Findings) -> None:
    made = run(subject)
    found = [(each, finding) for each in subject.cases for finding in each.findings]
    assert len(made["results"]) == len(found)
    for result, (each, finding_) in zip(made["results"], found, strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert result["ruleId"] == finding_.rule == made["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
        assert result["level"] == finding_.severity.value
        assert shown(result["message"]["text"]) == sentence(finding_.message)
        assert result["locations"][0]["logicalLocations"] == [{"name": title(each.name)}]
        assert place["artifactLocation"]["uri"] == uri(finding_.place.path)
        assert place.get("region") == (finding_.place.line and {"startLine": finding_.place.line})
    assert made["invocations"][0]["executionSuccessful"] is not bool(subject.errors or subject.count(Status.ERROR))
    assert len(made["invocations"][0]["toolExecutionNotifications"]) == len(subject.errors)


def test_every_rule_has_what_code_scanning_asks_for() -> None:
    rules = run(findings())["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for rule in rules:
        assert 0 < len(rule["shortDescription"]["text"]) <= 255
        assert rule["fullDescription"]["text"] == rule["help"]["text"] == RULES[rule["id"]].help
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
        assert len(rule["properties"]["tags"]) <= 10


def test_a_result_is_known_by_its_fingerprint_when_lines_move() -> None:
    for prints in (
        run(findings(case(findings=(finding(place=Place("s.jsonl", line)),))))["results"][0]["partialFingerprints"]
        for line in (3, 300)
    ):
        assert prints == {"primaryLocationLineHash": f"{'ab' * 32}:1", "loopscan/v1": "ab" * 32}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("a[1] {x} \\", "a[1] {x} \\"),
        ("[a](b)", "\\[a\\](b)"),
        ("[a\\](b)", "\\[a\\\\\\](b)"),
        ("{0} {x}", "{{0}} {{x}}"),
    ],
)
def test_a_message_is_neither_a_link_nor_has_it_placeholders(message: str, text: str) -> None:
    assert run(findings(case(findings=(finding(message),))))["results"][0]["message"]["text"] == text


def test_a_suppressed_result_says_why_and_the_other_ones_that_they_are_not() -> None:
    known = finding(suppressed="in the baseline")
    both = run(findings(case(findings=(known, finding()))))["results"]
    assert [each["suppressions"] for each in both] == [
        [{"kind": "external", "status": "accepted", "justification": "in the baseline"}],
        [],
    ]
    assert "suppressions" not in run(findings(case(findings=(finding(),))))["results"][0]


def test_errors_are_notifications_and_the_execution_was_no_success() -> None:
    (invocation,) = run(samples.problems())["invocations"]
    assert invocation == {
        "executionSuccessful": False,
        "toolExecutionNotifications": [{"level": "error", "message": {"text": "permission denied"}}],
    }
    assert run(samples.one_warning())["invocations"][0]["executionSuccessful"] is True


def test_marks_are_results_whatever_fails() -> None:
    for fail_on in FailOn:
        assert len(run(samples.block_and_end(), fail_on=fail_on)["results"]) == 4


def test_replays_and_checks_do_not_replace_each_other() -> None:
    ids = {run(each)["automationDetails"]["id"] for each in (samples.one_warning(), findings())}
    assert ids == {"loopscan/replay/", "loopscan/check/"}


def test_of_too_many_results_the_gravest_stay_and_it_says_how_many_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 3)
    made = (
        finding("note", severity=Severity.NOTE),
        finding("1"),
        finding("known", suppressed="in the baseline"),
        finding("warning", severity=Severity.WARNING),
        finding("2"),
    )
    only = run(findings(case(status=Status.FAILED, findings=made)))
    assert [each["message"]["text"] for each in only["results"]] == ["1", "warning", "2"]
    (told,) = only["invocations"][0]["toolExecutionNotifications"]
    assert told["level"] == "warning"
    assert told["message"]["text"].startswith("2 results are left out")


def test_an_absolute_place_has_nothing_to_resolve_it_by() -> None:
    places = [
        run(findings(case(findings=(finding(place=Place(path)),))))["results"][0]["locations"][0]["physicalLocation"]
        for path in ("a:b.jsonl", "/var/log/a.jsonl", "s3://bucket/a b")
    ]
    assert [place["artifactLocation"] for place in places] == [
        {"uri": "a%3Ab.jsonl", "uriBaseId": "%SRCROOT%"},
        {"uri": "file:///var/log/a.jsonl"},
        {"uri": "s3://bucket/a%20b"},
    ]
    assert unquote_to_bytes(places[0]["artifactLocation"]["uri"]) == b"a:b.jsonl"


def test_it_is_harmless_to_look_at() -> None:
    text = written("sarif", samples.hostile()).decode()
    assert all(char == "\n" or char.isprintable() for char in text if ord(char) < 0x2100)
