"""Files of expectations mean what the published schema says, and a mistake is told where it stands."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.checks.document import parse
from loopscan.checks.mistakes import MOST, Mistakes
from loopscan.checks.schema import (
    CHECKS,
    EXPECT,
    ChecksFile,
    ExpectFile,
    Settings,
    json_schema,
    load,
    merged,
)
from loopscan.marks import Detector, Kind

VALIDATOR = jsonschema.Draft202012Validator(json_schema(ExpectFile, EXPECT))


def mistakes(text: str) -> list[str]:
    with pytest.raises(Mistakes) as caught:
        load(ExpectFile, parse(text, "x.yaml"))
    return list(map(str, caught.value.found))


def accepts(text: str) -> bool:
    try:
        load(ExpectFile, parse(text, "x.json", json=True))
    except Mistakes:
        return False
    return True


def test_all_that_can_be_said_is_understood() -> None:
    file = load(
        ExpectFile,
        parse(
            """
            transcript: a.jsonl
            ruleset: 2026.9
            requires: {ruleset: ">=2026.9"}
            expect:
              none: true
              exact: [{kind: block, count: 20}]
              at_least: [{kind: [block, run_end], times: 2}, {tool: read}]
              at_most: [{detector: ping_pong, times: 0}]
              first: {kind: warning, call: 9, of: {tool: [read, exec]}}
              outcomes: {outcome: run_end}
              not_reached: {calls: 4, tokens: {value: 44367, within: 5%}}
              counts: {sessions: 1}
            checks:
              - {name: old, ruleset: 2026.6, skip: later, set: {warningThreshold: 8, detectors.pingPong: false}}
            """,
            "x.yaml",
        ),
    )
    assert file.ruleset == "2026.9"
    assert file.transcript == ["a.jsonl"]
    expect = file.expect
    assert expect is not None
    assert expect.none is not None
    assert expect.none[0].wanted() == {"level": ["warning", "critical"]}
    assert expect.at_least is not None
    assert [each.times for each in expect.at_least] == [2, 1]
    assert expect.not_reached is not None
    assert expect.not_reached.tokens is not None
    assert expect.not_reached.tokens.slack() == pytest.approx(2218.35)
    assert expect.not_reached.calls is not None
    assert expect.not_reached.calls.slack() == 0
    assert file.checks is not None
    assert file.checks[0].set == {"warningThreshold": 8, "detectors.pingPong": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rulset: 2026.9", 'x.yaml:1:1: unknown key "rulset"; did you mean "ruleset"?'),
        (
            "expect:\n  at_least:\n    - {kind: blok}",
            'x.yaml:3:14: "kind" must be one of warning, block, run_end, error_streak_end, unknown_tool_stop,'
            ' guard_armed, compaction_abort; did you mean "block"?',
        ),
        ("expect: {at_most: [{kind: block}]}", 'x.yaml:1:20: "times" is missing'),
        ("expect: {none: [{calls: 1}]}", 'x.yaml:1:18: unknown key "calls"; did you mean "call"?'),
        ("expect: {none: false}", 'x.yaml:1:16: "none" must be true, a mark, or a list of marks'),
        ('expect: {exact: [{count: "10"}]}', 'x.yaml:1:26: "count" must be a whole number'),
        ("expect: {exact: [{count: -1}]}", 'x.yaml:1:26: "count" must be at least 0'),
        ("expect: {not_reached: {tokens: {value: 1, within: 5 %}}}", 'must be a share such as "5%"'),
        ("expect: {}", 'x.yaml:1:9: "expect" says nothing'),
        ("expect: {counts: {}}", 'x.yaml:1:18: "counts" says nothing'),
        ("checks: []", 'x.yaml:1:9: "checks" must not be empty'),
        ("expect: {none: []}", 'x.yaml:1:16: "none" must not be empty'),
        ("expect: {none: {kind: []}}", 'x.yaml:1:23: "kind" must not be empty'),
        ("ruleset: 2027", 'x.yaml:1:10: "ruleset" must be one of 2026.6, 2026.9, latest'),
        (
            "set: {warnThreshold: 2}",
            'x.yaml:1:7: "warnThreshold" is no field of the configuration; did you mean "warningThreshold"?',
        ),
        ("expect: {exact: [block]}", 'x.yaml:1:18: "exact" must be a mark such as block generic_repeat 20'),
        ('requires: ">=2026.9"', 'x.yaml:1:11: "requires" must be {ruleset: ">=2026.9"}'),
        ("expect: {not_reached: {calls: many}}", 'x.yaml:1:31: "calls" must be a number, or {value'),
        ("skip: no", 'x.yaml:1:7: "skip" must say why'),
        ('skip: " "', 'x.yaml:1:7: "skip" must say why'),
        (
            "snapshot: {sessions: 1, runs: 1, calls: 1,\n"
            "  marks: [{kind: block, detector: ping_pong, run: 0, batch: 1}]}",
            'x.yaml:1:11: "snapshot" has marks without "session", and none of its own',
        ),
        ("skip: true", 'x.yaml:1:7: "skip" must be text; put it in quotes'),
        ("checks: {}", 'x.yaml:1:9: "checks" must be a list'),
        ("- a", "x.yaml:1:1: this must be keys with values"),
        ("<<: {ruleset: 2026.9}", 'unknown key "<<"'),
    ],
)
def test_a_mistake_is_told_with_line_and_column(text: str, said: str) -> None:
    assert said in mistakes(text)[0]


def test_all_mistakes_are_told_but_not_without_end() -> None:
    lines = mistakes("\n".join(f"key{number}: 1" for number in range(MOST + 5)))
    assert len(lines) == MOST + 1
    assert lines[-1] == "x.yaml: 5 more mistakes; mend these first"


def test_what_a_file_holds_is_not_printed_raw() -> None:
    assert "\x1b" not in mistakes('"\\x1b[31mred": 1')[0]


def test_both_schemas_are_valid_schemas() -> None:
    for schema in (json_schema(ExpectFile, EXPECT), json_schema(ChecksFile, CHECKS)):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False


KEYS = st.sampled_from([*ExpectFile.model_fields, "$schema", "oops"])
SCALARS: st.SearchStrategy[Any] = (
    st.sampled_from(
        [
            "2026.9",
            "block generic_repeat 20",
            "run end  ping_pong",
            ">=2026.9",
            "block",
            "read",
            "5%",
            "run_end",
            "session",
            "observe",
            0,
            3,
            -1,
            2.5,
            True,
            False,
        ]
    )
    | st.sampled_from(list(Kind)).map(str)
    | st.sampled_from(list(Detector)).map(str)
)
PATTERNS = st.dictionaries(
    st.sampled_from(["kind", "detector", "tool", "run", "call", "count", "times", "lossy", "of", "level"]),
    SCALARS | st.lists(SCALARS, max_size=2),
    max_size=3,
)
EXPECTS = st.dictionaries(
    st.sampled_from(["none", "exact", "at_least", "at_most", "first", "outcomes", "not_reached", "counts"]),
    PATTERNS | st.lists(PATTERNS, max_size=2) | SCALARS,
    max_size=2,
)


@given(st.dictionaries(KEYS, SCALARS | EXPECTS | st.lists(EXPECTS | SCALARS, max_size=2), max_size=3))
def test_a_file_is_accepted_exactly_if_the_published_schema_accepts_it(data: dict[str, Any]) -> None:
    assert accepts(json.dumps(data)) == VALIDATOR.is_valid(data)


def test_nearer_settings_go_over_those_above() -> None:
    outer = Settings(ruleset="2026.6", agent="a", set={"warningThreshold": 8, "criticalThreshold": 16})
    inner = Settings(ruleset="2026.9", agent=None, set={"criticalThreshold": 12})
    assert merged(outer, None, inner) == {
        "ruleset": "2026.9",
        "set": {"warningThreshold": 8, "criticalThreshold": 12},
    }
