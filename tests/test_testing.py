"""``loopscan.testing``: the marks of whatever is replayed can be asserted, and what is not so is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopscan.errors import ConfigError, InputError, UsageError
from loopscan.events import Outcome, Turn, UserMessage, Where
from loopscan.testing import replay, session

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOTES = FIXTURES / "detectors" / "read-notes.jsonl"
MARKS = [
    "warning generic_repeat 10",
    "block generic_repeat 20",
    "block generic_repeat 21",
    "run_end generic_repeat 21",
]
READ = ("read", {"path": "notes.txt"}, "the same text")


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "what",
    [NOTES, str(NOTES), [NOTES], entries(NOTES), session([READ] * 26)],
    ids=["path", "text", "paths", "entries", "events"],
)
def test_paths_entries_and_events_give_the_same_marks(what: Any) -> None:
    assert replay(what, ruleset="2026.9").marks == MARKS


def test_entries_are_of_any_format_that_their_content_tells() -> None:
    replayed = replay(entries(FIXTURES / "claude-code" / "import-poll.jsonl"))
    assert replayed.report.sources[0].format == "claude-code"
    assert replayed.marks[0] == "warning known_poll_no_progress 10"


def test_a_document_is_a_dictionary_or_a_list_of_them() -> None:
    listed = json.loads((FIXTURES / "gemini" / "checkpoint-herbs.json").read_text(encoding="utf-8"))
    messages = {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello"}]}
    assert replay(messages).report.sources[0].format == "openai-messages"
    assert replay(listed).marks == ["warning generic_repeat 10", "block generic_repeat 20"]


def test_the_keywords_are_those_of_the_library() -> None:
    settings = {"warningThreshold": 10, "criticalThreshold": 12}
    replayed = replay(session([READ] * 13), ruleset="2026.6", overrides=settings, jobs=1)
    assert replayed.marks == ["warning generic_repeat 10", "block generic_repeat 12"]
    with pytest.raises(ConfigError, match="criticalTreshold"):
        replay(session([READ]), overrides={"criticalTreshold": 1})


@pytest.mark.parametrize("what", [NOTES, entries(NOTES), session([READ])], ids=["path", "entries", "events"])
def test_an_unknown_keyword_is_named_as_one_of_replay(what: Any) -> None:
    with pytest.raises(UsageError, match=r'^replay: unknown keyword "rulset"; did you mean "ruleset"\?$'):
        replay(what, rulset="2026.9")
    with pytest.raises(
        UsageError, match=r'^replay: unknown keyword "colour"; known: config, agent, ruleset, .*, jobs,'
    ):
        replay(what, colour="red")
    with pytest.raises(UsageError, match=r'^replay: unknown keyword "paths"; known: '):
        replay(what, paths=[])


def test_outcomes_tell_calls_apart_and_may_be_errors() -> None:
    moving = session([("read", {"path": "log"}, f"line {number}") for number in range(25)])
    assert replay(moving).marks == ["warning generic_repeat 10", "warning generic_repeat 20"]
    failing = session([("exec", {"command": "make"}, Outcome(error="no such target", is_error=True))] * 3)
    assert replay(failing).marks == ["error_streak_end identical_error 3"]


def test_an_agent_of_made_up_events_is_judged_by_its_own_block() -> None:
    config = FIXTURES / "config" / "openclaw.json"
    made = session([READ] * 13, agent="builder")
    assert replay(made, ruleset="2026.6", config=config).marks == [
        "warning generic_repeat 10",
        "block generic_repeat 12",
    ]


def test_marks_that_are_so_pass() -> None:
    replayed = replay(NOTES, ruleset="2026.9")
    replayed.assert_marks(*MARKS)
    replayed.assert_marks(
        "warning generic_repeat", "block generic_repeat", "block generic_repeat", "run end generic_repeat 21"
    )
    replayed.assert_marks({"kind": "warning", "tool": "read"}, *MARKS[1:])
    replayed.assert_marks(
        none={"detector": "ping_pong"},
        at_least=[{"kind": "block", "times": 2}],
        at_most=[{"kind": "block", "times": 2}],
        first={"kind": "warning", "batch": 10},
        outcomes={"outcome": "run_end"},
        not_reached={"calls": 4, "tokens": {"value": 44000, "within": "5%"}},
        counts={"sessions": 1, "calls": 26, "problems": 0},
    )
    replay(FIXTURES / "clean").assert_marks()
    replay(FIXTURES / "clean").assert_marks(none=True)


def failure(*marks: Any, **assertions: Any) -> str:
    with pytest.raises(AssertionError) as error:
        replay(NOTES, ruleset="2026.9").assert_marks(*marks, **assertions)
    return str(error.value)


@pytest.mark.parametrize(
    ("marks", "assertions", "told"),
    [
        ((), {}, "unexpected: warning generic_repeat"),
        ((), {"none": True}, "unexpected: warning generic_repeat"),
        (MARKS[:3], {}, "unexpected: run end generic_repeat"),
        ([*MARKS, MARKS[3]], {}, "exact: mark 5 is missing"),
        (["warning generic_repeat 11", *MARKS[1:]], {}, "exact: mark 1 is another one"),
        ((), {"at_least": [{"kind": "block", "times": 3}]}, "at_least: 2 marks instead of 3"),
        ((), {"at_most": [{"kind": "block", "times": 1}]}, "at_most: 2 marks instead of 1"),
        ((), {"first": {"batch": 9}}, "first: the first mark is another one"),
        ((), {"outcomes": {"outcome": "completed"}}, "outcomes: run 0 came to another end"),
        ((), {"not_reached": {"calls": 5}}, "not_reached: 4 calls"),
        ((), {"counts": {"calls": 27}}, "the transcript has 26 calls, not 27"),
        (MARKS, {"counts": {"calls": 27}}, "the transcript has 26 calls, not 27"),
    ],
)
def test_what_is_not_so_fails_and_says_it(marks: Any, assertions: dict[str, Any], told: str) -> None:
    message = failure(*marks, **assertions)
    assert message.startswith(told)
    assert "\n  expected  " in message
    assert "\n  found     " in message


def test_a_failure_tells_the_engines_reason_and_the_timeline() -> None:
    message = failure(none=True)
    assert "  why       read was called 10 times with the same arguments; from 10 on the engine warns" in message
    assert '#0   read {"path":' in message
    assert "● warning generic_repeat" in message


@pytest.mark.parametrize(
    ("marks", "assertions", "told"),
    [
        (["wrning generic_repeat 10"], {}, "must be one of warning"),
        (["generic_repeat"], {}, 'must be a mark such as block generic_repeat 20, not "generic_repeat"'),
        ([7], {}, "must be a mark such as"),
        (["block generic_repeat 20; drop"], {}, "must be a mark such as"),
        ([], {"at_lest": []}, 'unknown key "at_lest"; did you mean "at_least"?'),
        ([], {"none": False}, '"none"'),
        ([], {"none": None}, "what is None asserts nothing"),
        ([], {"counts": {"calls": None}}, "what is None asserts nothing"),
        (MARKS, {"exact": []}, "given twice"),
    ],
)
def test_what_is_no_assertion_is_refused(marks: list[Any], assertions: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=r"^assert_marks: ") as error:
        replay(session([READ])).assert_marks(*marks, **assertions)
    assert told in str(error.value)
    assert error.value.__cause__ is None


def test_a_replay_of_nothing_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        replay(tmp_path / "gone.jsonl")
    with pytest.raises(InputError, match="no session was found"):
        replay(tmp_path)
    with pytest.raises(InputError, match="nothing to replay"):
        replay([])
    with pytest.raises(InputError, match="of no format"):
        replay([{"hello": "world"}])
    with pytest.raises(InputError, match="no session was found in <memory>"):
        replay([{"time": "2026-09-01T10:00:00Z", "level": "info", "message": "hello"}], input_format="openclaw-log")


def test_what_cannot_be_replayed_is_named() -> None:
    with pytest.raises(UsageError, match="int is no event"):
        replay([7])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"str is no entry \(number 2"):
        replay([{"type": "session"}, "x"])
    with pytest.raises(UsageError, match="begin with a SessionStarted, not with a Turn"):
        replay([Turn("1", Where()), UserMessage("1", Where())])
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        replay([{"type": {1, 2}}])
    with pytest.raises(UsageError, match='no format "nonsense"'):
        replay([{"type": "session"}], input_format="nonsense")


def test_names_of_a_session_cannot_act_on_the_terminal() -> None:
    replayed = replay(session([("\x1b[2Jread", {"path": "a"}, "b")] * 11, name="\x1b]0;x\x07"))
    with pytest.raises(AssertionError) as error:
        replayed.assert_marks()
    assert "\x1b" not in str(error.value)
    assert r"\x1b[2Jread" in str(error.value)
