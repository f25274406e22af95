"""A replay is held against snapshots and assertions, and every difference says what, where and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan import replay
from loopscan.checks.compare import Difference, compare
from loopscan.checks.document import parse
from loopscan.checks.marks import snapshot_of
from loopscan.checks.schema import ExpectFile, Snapshot, load
from loopscan.report import Report
from tests.checks.files import CLEAN, FIXTURES, LOOP

REPORT = replay(LOOP, ruleset="2026.9", find_config=False)
NOW = snapshot_of(REPORT)
OLD = replay(LOOP, ruleset="2026.6", find_config=False)


def snapshot(**changes: Any) -> Snapshot:
    return Snapshot.model_validate({**NOW, **changes})


def against(report: Report, text: str) -> list[Difference]:
    return compare(report, None, load(ExpectFile, parse(f"expect: {text}", "x")).expect)


def sentences(differences: list[Difference]) -> list[str]:
    return [each.sentence for each in differences]


# -- snapshots


def test_a_replay_meets_its_own_snapshot() -> None:
    assert compare(REPORT, snapshot(), None) == []


@given(st.data())
def test_every_change_of_a_mark_is_seen_once(data: st.DataObject) -> None:
    marks = [dict(mark) for mark in NOW["marks"]]
    at = data.draw(st.integers(0, len(marks) - 1))
    name = data.draw(st.sampled_from([name for name, value in marks[at].items() if isinstance(value, int)]))
    marks[at][name] += data.draw(st.integers(1, 5))
    differences = compare(REPORT, snapshot(marks=marks), None)
    assert sorted(each.rule for each in differences) in (["changed_mark"], ["missing_mark", "unexpected_mark"])


@given(st.lists(st.integers(0, len(NOW["marks"]) - 1), unique=True))
def test_every_mark_that_a_snapshot_lacks_is_unexpected_and_every_other_missing(places: list[int]) -> None:
    kept = [mark for at, mark in enumerate(NOW["marks"]) if at not in places]
    assert [each.rule for each in compare(REPORT, snapshot(marks=kept), None)] == ["unexpected_mark"] * len(places)
    empty = replay(CLEAN, ruleset="2026.9", find_config=False)
    expected = {**snapshot_of(empty), "marks": kept}
    assert [each.rule for each in compare(empty, Snapshot.model_validate(expected), None)] == ["missing_mark"] * len(
        kept
    )


def test_equal_marks_are_counted() -> None:
    mark = NOW["marks"][0]
    (one,) = compare(REPORT, snapshot(marks=[mark, *NOW["marks"]]), None)
    assert one.rule == "missing_mark"


def test_another_order_is_a_difference() -> None:
    (one,) = compare(REPORT, snapshot(marks=NOW["marks"][::-1]), None)
    assert one.sentence == "the marks are the same, but in another order"


def test_a_transcript_that_holds_less_is_a_difference() -> None:
    assert sentences(compare(REPORT, snapshot(calls=30), None)) == ["the transcript has 26 calls, not 30"]


def test_the_mark_at_the_same_call_is_the_one_that_changed() -> None:
    differences = compare(OLD, snapshot(), None)
    assert sentences(differences) == [
        "changed: block generic_repeat: count 21 → 20",
        "missing: run end generic_repeat",
        *["unexpected: block generic_repeat"] * 4,
    ]
    assert differences[1].why == "ruleset 2026.6 vetoes single calls and never ends a run"
    assert (
        differences[1].expected
        == "run end generic_repeat · count 21 · threshold 20 · read · run 0, batch 21, call 21"
    )
    line = differences[2].line
    assert line is not None
    assert OLD.sessions[0].runs[0].marks[3].where.entry in LOOP.read_text().splitlines()[line - 1]


# -- why


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"overrides": {"enabled": False}}, "detectors are silenced: enabled false"),
        ({"overrides": {"detectors.genericRepeat": False}}, "detectors.genericRepeat is false, set by the settings"),
        (
            {"overrides": {"criticalThreshold": 25}},
            "criticalThreshold is 25 here, set by the settings of this check, not 20",
        ),
        (
            {"config": FIXTURES / "config" / "openclaw.json"},
            "openclaw.json: tools.loopDetection.criticalThreshold, not 20",
        ),
        ({"ruleset": "latest"}, "no count of generic_repeat reaches its threshold here"),
    ],
)
def test_a_missing_block_is_explained(settings: dict[str, Any], why: str) -> None:
    settings = {"ruleset": "2026.6", **settings}
    report = replay(LOOP, find_config=False, **settings)
    mark = {**NOW["marks"][1], "call": 3, "batch": 3, "signature": "other"}
    differences = compare(report, snapshot(marks=[mark]), None)
    assert why in next(each.why or "" for each in differences if each.rule == "missing_mark")


def test_a_mark_after_the_end_of_the_run_is_explained() -> None:
    late = {**NOW["marks"][0], "batch": 24, "call": 24}
    (one,) = compare(REPORT, snapshot(marks=[*NOW["marks"], late]), None)
    assert one.why == "the run ends before, at batch 21, by run_end generic_repeat"
    (gone,) = compare(REPORT, snapshot(marks=[*NOW["marks"], {**late, "session": "other"}]), None)
    assert gone.why == "the transcript has no such session"


def test_an_unexpected_mark_comes_with_the_engines_sentence() -> None:
    (one,) = compare(REPORT, snapshot(marks=NOW["marks"][1:]), None)
    assert one.why == "read was called 10 times with the same arguments; from 10 on the engine warns"


# -- assertions


@pytest.mark.parametrize(
    "text",
    [
        "{none: {detector: ping_pong}}",
        "{none: [{kind: warning, count: 20}, {tool: exec}]}",
        "{exact: [{kind: warning}, {kind: block, call: 20}, {}, {kind: run_end}]}",
        "{at_least: [{kind: block, times: 2}, {kind: [block, warning], times: 3}, {run: 0, times: 4}]}",
        "{at_most: [{kind: block, times: 2}, {tool: exec, times: 0}]}",
        "{first: {kind: warning, call: 10}}",
        "{first: {call: 20, of: {kind: block}}}",
        "{outcomes: {outcome: run_end}}",
        "{outcomes: [{run: 0, outcome: [completed, run_end]}]}",
        "{not_reached: {calls: 4, tokens: {value: 45000, within: 2%}, cost_usd: {value: 0.02, within: 0.01}}}",
        "{counts: {sessions: 1, runs: 1, calls: 26, problems: 0}}",
    ],
)
def test_assertions_that_hold_are_silent(text: str) -> None:
    assert against(REPORT, text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{none: true}", [f"unexpected: {mark} generic_repeat" for mark in ("warning", "block", "block", "run end")]),
        ("{none: {kind: warning}}", ["unexpected: warning generic_repeat"]),
        ("{exact: [{}, {}]}", ["unexpected: block generic_repeat", "unexpected: run end generic_repeat"]),
        ("{exact: [{kind: block}, {}, {}, {}, {}]}", ["exact: mark 1 is another one", "exact: mark 5 is missing"]),
        ("{at_least: [{kind: block, times: 3}]}", ["at_least: 2 marks instead of 3"]),
        ("{at_most: [{kind: block, times: 1}]}", ["at_most: 2 marks instead of 1"]),
        ("{first: {call: 9}}", ["first: the first mark is another one"]),
        ("{first: {call: 9, of: {detector: ping_pong}}}", ["first: there is no such mark"]),
        ("{outcomes: {outcome: completed}}", ["outcomes: run 0 came to another end"]),
        ("{outcomes: {outcome: completed, run: 1}}", ["outcomes: there is no such run"]),
        ("{not_reached: {calls: 5}}", ["not_reached: 4 calls"]),
        ("{not_reached: {tokens: {value: 45000, within: 1%}}}", ["not_reached: 44,367 tokens"]),
        ("{counts: {runs: 2, calls: 2}}", ["the transcript has 1 run, not 2", "the transcript has 26 calls, not 2"]),
    ],
)  # fmt: skip
def test_assertions_that_do_not_hold_say_so(text: str, said: list[str]) -> None:
    assert sentences(against(REPORT, text)) == said


def test_arming_a_guard_is_no_mark_of_the_kind_that_none_is_about() -> None:
    report = replay(FIXTURES / "gemini" / "garden-plan.json", ruleset="2026.9", find_config=False)
    assert len(snapshot_of(report)["marks"]) == 1
    assert against(report, "{none: true}") == []
    assert sentences(against(report, "{none: {kind: guard_armed}}")) == [
        "unexpected: guard armed compaction_loop_persisted"
    ]


@pytest.mark.parametrize(
    ("text", "settings", "why"),
    [
        ("{exact: [block generic_repeat 20]}", {"overrides": {"enabled": False}}, "detectors are silenced"),
        ("{first: {kind: block}}", {"overrides": {"enabled": False}}, "detectors are silenced"),
        ("{at_least: [{kind: run_end, detector: generic_repeat}]}", {"ruleset": "2026.6"}, "never ends a run"),
        ("{at_least: [{kind: run_end}]}", {"ruleset": "2026.6"}, "never ends a run"),
        ("{at_least: [{detector: identical_error}]}", {}, "ruleset 2026.9 has no identical_error"),
        ("{at_least: [{detector: [identical_error, ping_pong]}]}", {}, None),
        ("{at_least: [{detector: ping_pong}]}", {}, None),
    ],
)
def test_an_assertion_that_no_mark_meets_says_what_the_settings_have_to_do_with_it(
    text: str, settings: dict[str, Any], why: str | None
) -> None:
    report = replay(LOOP, find_config=False, **{"ruleset": "2026.9", **settings})
    last = against(report, text)[-1]
    assert (last.why or "").find(why or "") >= 0
    assert (last.why is None) == (why is None)


def test_a_warning_whose_place_a_block_takes_is_explained() -> None:
    expected = snapshot_of(replay(LOOP, ruleset="2026.6", find_config=False, overrides={"warningThreshold": 5}))
    lower = replay(
        LOOP, ruleset="2026.6", find_config=False, overrides={"warningThreshold": 5, "criticalThreshold": 8}
    )
    missing = [
        each for each in compare(lower, Snapshot.model_validate(expected), None) if each.rule == "missing_mark"
    ]
    assert [each.why for each in missing if each.about == "warning generic_repeat"] == [
        "a block of generic_repeat at batch 8, count 8, takes its place"
    ]


def test_a_threshold_that_the_history_cannot_hold_is_explained() -> None:
    short = replay(LOOP, ruleset="2026.6", find_config=False, overrides={"historySize": 12})
    expected = Snapshot.model_validate(snapshot_of(OLD))
    missing = [each for each in compare(short, expected, None) if each.rule == "missing_mark"]
    assert missing
    assert all("criticalThreshold 20 is out of reach" in (each.why or "") for each in missing)


def test_a_session_that_is_not_there_is_named() -> None:
    (gone,) = compare(REPORT, snapshot(marks=[*NOW["marks"], {**NOW["marks"][0], "session": "s-old"}]), None)
    assert (gone.expected or "").endswith(" · session s-old")
