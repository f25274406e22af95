"""``github``: a command a finding, and nothing else that the runner would take for one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import example, given

from loopscan.findings import RULES, Findings, Place, Severity
from loopscan.reports.cases import counting, gravest_first, unsaid
from loopscan.reports.plain import path, sentence
from tests.reports import samples
from tests.reports.subjects import NASTIEST, SUBJECTS, case, finding, findings, written

COMMANDS = {"error", "warning", "notice", "debug", "group", "endgroup", "stop-commands", "add-mask", "set-env"}
KINDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


@dataclass
class Command:
    name: str
    properties: dict[str, str]
    data: str


def unescaped(text: str, *more: str) -> str:
    for char in (*more, "\r", "\n", "%"):
        text = text.replace(f"%{ord(char):02X}", char)
    return text


def command(line: str) -> Command | None:
    """Return the command in a line of a log as the runner finds it: ``::name p=v,…::data``, else ``##[name …]``."""
    line = line.lstrip()
    if line.startswith("::") and (end := line.find("::", 2)) >= 0:
        name, _, rest = line[2:end].partition(" ")
        if name in COMMANDS:
            pairs = [pair.split("=", 1) for pair in rest.strip().split(",") if pair]
            values = {pair[0]: unescaped(pair[1], ":", ",") for pair in pairs if len(pair) == 2 and pair[1]}
            return Command(name, values, unescaped(line[end + 2 :]))
    older = re.search(r"##\[([^\] ]*)[^\]]*\](.*)", line)
    return Command(older[1], {}, older[2]) if older and older[1] in COMMANDS else None


def lines(subject: object) -> list[str]:
    text = written("github", subject).decode()
    assert text.endswith("\n")
    return re.split(r"\r\n|\r|\n", text)[:-1]


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_makes_a_command_a_finding_and_comes_back_clean(subject: Findings) -> None:
    expected = [("error", None, None, sentence(error)) for error in unsaid(subject)]
    for each in gravest_first(counting(subject)):
        line = None if each.place.line is None else str(each.place.line)
        named = path(each.place.path).replace("##[", r"##\x5b") or None
        expected.append((KINDS[each.severity], named, line, sentence(each.message)))
    made = [command(line) for line in lines(subject)]
    assert made[-1] is None  # the line that sums up
    found = [
        (each.name, each.properties.get("file"), each.properties.get("line"), each.data) for each in made[:-1] if each
    ]
    assert found == [(*start, text.replace("##[", r"##\x5b")) for *start, text in expected]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_reports_have_a_command_a_mark(name: str) -> None:
    report = samples.SAMPLES[name]()
    unread = sum(bool(source.failures) for source in report.sources)
    made = [line for line in lines(report) if command(line)]
    assert len(made) == report.count().marks.total() + unread
    assert not any("##[" in line for line in lines(report))


def test_a_command_says_what_where_and_of_which_rule() -> None:
    odd = finding("100%, or\nmore: all", place=Place("a,b:c%.jsonl", 3))
    first, last = lines(findings(case(findings=(odd,))))
    assert first == (
        "::error file=a%2Cb%3Ac%25.jsonl,line=3,title=The same call over and over::100%25, or\\nmore: all"
    )
    assert last == "loopscan check: 1 error, 0 warnings, 0 notices; 0 cases of 1 failed"


def test_titles_are_those_of_the_rules() -> None:
    for rule in RULES:
        (made, _) = map(command, lines(findings(case(findings=(finding(rule=rule),)))))
        assert made is not None
        assert made.properties["title"] == RULES[rule].title


def test_suppressed_findings_are_not_shown() -> None:
    only = lines(findings(case(findings=(finding(suppressed="in the baseline"),))))
    assert only == ["loopscan check: 0 errors, 0 warnings, 0 notices; 0 cases of 1 failed"]


def test_the_gravest_come_first_and_the_last_line_says_what_github_does_not_show() -> None:
    made = [finding(f"w{at}", severity=Severity.WARNING) for at in range(13)] + [finding("e")]
    shown = lines(findings(case(findings=tuple(made))))
    assert shown[0].endswith("::e")
    assert shown[-1].endswith("so 3 are in this log alone")
    assert len(shown) == 15
