"""How session files are recognised: by content."""

from __future__ import annotations

import json

import pytest

from loopscan.events import Problem, Turn, UserMessage
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.openclaw.reader import agent_of, session_of
from loopscan.transcripts.reader import Confidence
from tests.transcripts.build import Transcript
from tests.transcripts.checks import of


def confidence(*lines: object) -> Confidence:
    head = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return OpenClawReader().recognise(head + b"\n", "x.txt")


def test_a_header_is_recognised_in_every_version() -> None:
    for version in (None, 2, 3, 4):
        assert OpenClawReader().recognise(Transcript(version=version).bytes(), "x") is Confidence.SURE


def test_entries_are_recognised_without_a_header_and_behind_damaged_lines() -> None:
    made = Transcript(session=None)
    made.user()
    assert confidence(b"\xef\xbb\xbf", b"{broken", b"", made.lines[0]) is Confidence.SURE


def test_entries_without_a_message_are_likely() -> None:
    made = Transcript(session=None)
    made.compaction()
    assert confidence(made.lines[0]) is Confidence.LIKELY


def test_a_message_longer_than_the_head_is_likely() -> None:
    made = Transcript(session=None)
    made.user("x" * 1000)
    assert confidence(made.lines[0][:300]) is Confidence.LIKELY


@pytest.mark.parametrize(
    "line",
    [
        {"traceSchema": "openclaw-trajectory", "type": "session.started", "sessionId": "x", "ts": "t"},
        {
            "type": "user",
            "uuid": "u",
            "parentUuid": None,
            "sessionId": "s",
            "timestamp": "t",
            "message": {"role": "user"},
        },
        {"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}},
        {"type": "message", "role": "user", "content": []},
        {"role": "user", "content": "x"},
        {"type": "system", "subtype": "init", "session_id": "x"},
        {"type": "session", "id": None},
        [],
        7,
        b"# a text",
        b"",
    ],
)
def test_other_formats_are_not_recognised(line: object) -> None:
    assert confidence(line) is Confidence.NO


@pytest.mark.parametrize(
    ("path", "agent"),
    [
        ("/home/me/.openclaw/agents/main/sessions/x.jsonl", "main"),
        ("agents/a b/sessions/x.jsonl.reset.1", "a b"),
        ("C:\\u\\agents\\coder\\sessions\\x.jsonl", "coder"),
        ("/agents/one/sessions/agents/two/sessions/x.jsonl", "two"),
        ("/agents/one/x.jsonl", None),
        ("/myagents/one/sessions/x.jsonl", None),
        ("x.jsonl", None),
    ],
)
def test_the_agent_is_read_from_the_path(path: str, agent: str | None) -> None:
    assert agent_of(path) == agent


@pytest.mark.parametrize(
    ("path", "session"),
    [
        ("/a/abc.jsonl", "abc"),
        ("abc.jsonl.deleted.2026-02-17T04-05-12.450Z", "abc"),
        ("abc.checkpoint.00-0.jsonl", "abc"),
        ("abc-topic-7.jsonl", "abc-topic-7"),
        (".jsonl", ".jsonl"),
        ("plain", "plain"),
    ],
)
def test_a_file_names_its_session(path: str, session: str) -> None:
    assert session_of(path) == session


def test_entries_of_another_format_are_no_messages_and_their_calls_are_not_lost_silently() -> None:
    """As where somebody joined files of two programs."""
    made = Transcript()
    made.user()
    made.says()
    block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    made.json({"type": "assistant", "uuid": "u1", "message": {"role": "assistant", "content": [block]}})
    made.json({"type": "user", "uuid": "u2", "message": {"role": "user", "content": "text alone"}})
    events = made.read()
    assert [(each.line, each.kind) for each in of(Problem, events)] == [(4, "malformed-entry")]
    assert len(of(Turn, events)) == 1
    assert len(of(UserMessage, events)) == 1
