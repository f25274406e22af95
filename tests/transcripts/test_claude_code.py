"""Session files of Claude Code and its stream-json: who speaks, what results mean, which lines count once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan import replay
from loopscan.engine.outcomes import judge
from loopscan.events import (
    Call,
    Compaction,
    Ending,
    Event,
    Fate,
    Outcome,
    Problem,
    Result,
    RunEnded,
    SessionResumed,
    SessionStarted,
    Turn,
    UserMessage,
)
from loopscan.rulesets import RULESETS
from loopscan.transcripts.claude_code import ClaudeCodeReader, feed
from loopscan.transcripts.claude_code.results import TOOLS, read_result
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.reader import HEAD_BYTES, Confidence, Source, recognise
from tests.transcripts.checks import account, check, of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "claude-code"
READER = ClaudeCodeReader()
USAGE = {
    "input_tokens": 3,
    "output_tokens": 10,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 20,
}


def source_of(data: bytes, name: str = "s.jsonl", ledger: Ledger | None = None) -> Source:
    return Source(name, lambda: io.BytesIO(data), ledger=ledger)


def read_source(source: Source) -> list[Event]:
    events = list(READER.read(source))
    check(events)
    account(source)
    return events


def encoded(lines: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def call(identity: str | None, tool: str = "Read", **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "name": tool, "input": arguments or {"file_path": "/a"}}
    return block if identity is None else {**block, "id": identity}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def answer(identity: str | None, content: Any = "ok", **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "content": content, **fields}
    return block if identity is None else {**block, "tool_use_id": identity}


class Session:
    """A session file in the making: every line hangs below the one before, a second later."""

    def __init__(self, session: str = "s", **fields: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.fields = {"sessionId": session, "isSidechain": False, "version": "2.1.19", **fields}
        self.messages = 0

    def line(self, kind: str, **fields: Any) -> dict[str, Any]:
        number = len(self.lines) + 1
        parent = self.lines[-1].get("uuid") if self.lines else None
        line = {"parentUuid": parent, **self.fields, "type": kind, "uuid": f"u{number}"}
        line["timestamp"] = f"2026-03-01T10:00:{number % 60:02}.000Z"
        line.update(fields)
        self.lines.append(line)
        return line

    def user(self, content: Any = "do it", **fields: Any) -> dict[str, Any]:
        return self.line("user", message={"role": "user", "content": content}, **fields)

    def part(self, *blocks: dict[str, Any], named: str | None = None, usage: Any = USAGE, **fields: Any) -> None:
        """Append a line of the model's latest message."""
        message = {"role": "assistant", "model": "claude-x", "content": list(blocks), "usage": usage}
        message["id"] = named or f"m{self.messages}"
        self.line("assistant", message={**message, **fields.pop("message", {})}, **fields)

    def model(self, *blocks: dict[str, Any], **fields: Any) -> None:
        """Append a message of the model, a line for each block."""
        self.messages += 1
        for block in blocks:
            self.part(block, **fields)

    def result(self, identity: str | None, content: Any = "ok", parts: Any = None, **fields: Any) -> None:
        known = {} if parts is None else {"toolUseResult": parts}
        self.user([answer(identity, content, **fields)], **known)

    def read(self, name: str = "s.jsonl") -> list[Event]:
        return read_source(source_of(encoded(self.lines), name))


def fates(events: list[Event]) -> list[list[Fate]]:
    return [[each.fate for each in turn.calls] for turn in of(Turn, events)]


def endings(events: list[Event]) -> list[Ending]:
    return [each.ending for each in of(RunEnded, events)]


# --- messages and their results


def test_lines_of_one_message_are_one_turn_and_its_usage_counts_once() -> None:
    session = Session()
    session.user()
    session.model({"type": "thinking", "thinking": "hm"}, usage={**USAGE, "output_tokens": 1})
    session.part(says("both"))
    session.part(call("a"))
    session.part(call("b"), usage={**USAGE, "output_tokens": 12}, message={"stop_reason": "tool_use"})
    session.line("progress", data={"type": "hook_progress"})
    session.result("b")
    session.result("a")
    session.model(says("done"), message={"stop_reason": "end_turn"})
    events = session.read()
    first, last = of(Turn, events)
    assert [each.id for each in first.calls] == ["a", "b"]
    assert first.usage.total == 3 + 12 + 100 + 20
    assert (first.usage.cache_read, first.usage.cache_write) == (100, 20)
    assert (first.stop_reason, first.model) == ("tool_use", "claude-x")
    assert (last.calls, last.stop_reason) == ((), "end_turn")
    assert [(each.index, each.where.entry) for each in of(Result, events)] == [(1, "u7"), (0, "u8")]
    assert endings(events) == [Ending.COMPLETED]


def test_a_result_between_the_lines_of_a_message_does_not_part_them() -> None:
    session = Session()
    session.user()
    session.model(call("a"))
    session.result("a")
    session.part(call("b"))
    session.result("b")
    events = session.read()
    assert fates(events) == [[Fate.RAN, Fate.RAN]]
    assert of(Turn, events)[0].usage.total == 133


def test_several_results_in_one_line_each_find_their_call() -> None:
    session = Session()
    session.user()
    session.model(call("a"), call("b", "Grep"), call("c", "Bash", command="ls"))
    blocks = [answer("c", [says("three")]), answer("a", "one"), answer("b", [says("t"), says("wo")])]
    session.user(blocks, toolUseResult={"stdout": "of no single one"})
    events = session.read()
    texts = [each.outcome.result["content"][0]["text"] for each in of(Result, events)]
    assert texts == ["three", "one", "t\nwo"]
    assert [each.index for each in of(Result, events)] == [2, 0, 1]


def test_calls_and_results_without_ids_are_paired_in_order() -> None:
    session = Session()
    session.model(call(None, "bash", command="ls"))
    session.result(None, "x", {"stdout": "a", "stderr": ""}, is_error=None)
    (result,) = of(Result, session.read())
    assert result.outcome.result["details"]["aggregated"] == "a"


def test_a_call_that_the_file_does_not_answer_is_lost() -> None:
    session = Session()
    session.user()
    session.model(call("a"), call("b"))
    session.result("a")
    events = session.read()
    assert fates(events) == [[Fate.RAN, Fate.LOST]]
    assert endings(events) == [Ending.INTERRUPTED]


def test_a_failed_model_call_is_a_failed_turn_and_other_texts_of_the_program_are_none() -> None:
    session = Session()
    session.user()
    synthetic = {"model": "<synthetic>", "usage": {"input_tokens": 0}}
    session.model(says("API Error: 529"), message=synthetic, isApiErrorMessage=True)
    session.model(says("API Error: 500"), message=synthetic)
    session.model(says("gone"), message=synthetic, error="server_error")
    session.model(says("half a"), isAbortedMidStream=True)
    session.model(says("No response requested."), message=synthetic)
    events = session.read()
    assert [turn.failed for turn in of(Turn, events)] == [True] * 4
    assert [turn.model for turn in of(Turn, events)] == [None, None, None, "claude-x"]
    assert endings(events) == [Ending.INTERRUPTED]


def test_the_cost_of_a_response_is_taken_where_it_is_recorded() -> None:
    session = Session()
    session.model(says("a"), costUSD=0.25)
    assert of(Turn, session.read())[0].usage.cost_usd == 0.25


def test_the_description_of_a_command_is_its_title() -> None:
    session = Session()
    session.model(call("a", "Bash", command="ls", description="List"), call("b", "Task", description="stays"))
    source = source_of(encoded(session.lines))
    (turn,) = of(Turn, read_source(source))
    assert [each.arguments for each in turn.calls] == [{"command": "ls", "title": "List"}, {"description": "stays"}]
    assert source.normalised == {"command-title": 1}


# --- what results mean


def reading(tool: str | None, content: Any, parts: Any = None, **fields: Any) -> Any:
    return read_result(tool, answer("x", content, **fields), parts)


def details(outcome: Outcome | None) -> Any:
    assert outcome is not None
    assert isinstance(outcome.result, dict)
    return outcome.result.get("details")


@pytest.mark.parametrize(
    ("content", "parts", "expected"),
    [
        ("a\nb", {"stdout": "a", "stderr": "b"}, {"status": "completed", "exitCode": 0, "aggregated": "a\nb"}),
        ("ok", None, {"status": "completed", "exitCode": 0, "aggregated": "ok"}),
        ("", {"stdout": "", "stderr": ""}, {"status": "completed", "exitCode": 0, "aggregated": ""}),
        (
            "",
            {"stdout": "", "returnCodeInterpretation": "No matches found"},
            {"status": "completed", "aggregated": ""},
        ),
        ("a", {"stdout": "a", "interrupted": True}, {"status": "failed", "aggregated": "a"}),
        ("in the background", {"stdout": "a", "backgroundTaskId": "b1"}, {"status": "running", "tail": "a"}),
        ("Command running in background with ID: b1. More", None, {"status": "running", "tail": ""}),
    ],
)
def test_a_command_that_is_no_error_has_the_details_of_exec(content: str, parts: Any, expected: Any) -> None:
    for tool in ("Bash", "PowerShell"):
        assert details(reading(tool, content, parts).outcome) == expected


def test_a_command_that_failed_has_its_exit_code_and_its_output_alone() -> None:
    outcome = reading("Bash", "Exit code 2\nno such page", "Error: Exit code 2\nno such page", is_error=True).outcome
    assert details(outcome) == {"status": "failed", "exitCode": 2, "aggregated": "no such page"}
    assert outcome.is_error
    slow = reading("Bash", "Exit code 143\nCommand timed out after 2m 0s so far", is_error=True).outcome
    assert details(slow)["timedOut"] is True
    assert details(slow)["exitCode"] == 143
    empty = reading("Bash", "Exit code 1", is_error=True).outcome
    assert details(empty) == {"status": "failed", "exitCode": 1, "aggregated": ""}


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was rejected", Fate.NOT_RUN),
        ("The user doesn't want to take this action right now. STOP", Fate.NOT_RUN),
        ("[Request interrupted by user for tool use]", Fate.NOT_RUN),
        ("<tool_use_error>Cancelled: parallel tool call Bash(ls) errored</tool_use_error>", Fate.NOT_RUN),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", Fate.NOT_RUN),
        ("[Tool result missing due to internal error]", Fate.LOST),
        ("<tool_use_error>InputValidationError: Read failed</tool_use_error>", Fate.REJECTED),
        ("InputValidationError: [\n", Fate.REJECTED),
        ("<tool_use_error>File does not exist.</tool_use_error>", Fate.RAN),
        ("Permission to use Read has been denied.", Fate.RAN),
    ],
)
def test_an_error_tells_whether_the_call_ran(text: str, fate: Fate) -> None:
    found = reading("Read", text, "Error: whatever", is_error=True)
    assert (found.fate, found.absent) == (fate, None)
    plain = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    wanted = Outcome(error=plain, is_error=True) if fate in (Fate.RAN, Fate.REJECTED) else None
    assert found.outcome == wanted


def test_a_refusal_is_told_by_the_richer_copy_too() -> None:
    assert reading("Edit", "no", "User rejected tool use", is_error=True).fate is Fate.NOT_RUN
    block = answer("x", "no", is_error=True)
    assert read_result("Edit", block, {"is_error": True}, "user-rejected").fate is Fate.NOT_RUN
    assert read_result("Edit", block, {"is_error": True}, "policy").fate is Fate.RAN


def test_a_command_that_never_had_an_exit_code_threw() -> None:
    outcome = reading("Bash", "PreToolUse:Bash hook error: denied", is_error=True).outcome
    assert outcome == Outcome(error="PreToolUse:Bash hook error: denied", is_error=True)
    # No other tool speaks of exit codes of its own.
    assert reading("mcp__shell__run", "Exit code 1\nx", is_error=True).outcome.error == "Exit code 1\nx"


def test_a_tool_that_does_not_exist_is_absent() -> None:
    session = Session()
    session.user()
    session.model(call("a"), call("b", "Frobnicate"), call("c"))
    session.result("b", "<tool_use_error>Error: No such tool available: Frobnicate</tool_use_error>", is_error=True)
    session.result("a")
    session.result("c")
    (turn,) = of(Turn, session.read())
    assert [each.id for each in turn.calls] == ["a", "c"]
    assert [(each.tool, each.position) for each in turn.absent] == [("Frobnicate", 1)]
    assert turn.absent[0].error == "Error: No such tool available: Frobnicate"


def test_a_write_that_changed_nothing_is_no_progress() -> None:
    same = {"type": "update", "originalFile": "a\n", "content": "a\n"}
    other = {"type": "update", "originalFile": "b\n", "content": "a\n"}
    text = "The file /a has been updated successfully."
    rules = RULESETS["2026.9"]
    assert judge("write", {}, reading("Write", text, same).outcome, rules).no_progress
    assert not judge("write", {}, reading("Write", text, other).outcome, rules).no_progress
    assert details(reading("Write", text, {"type": "create", "content": "a"}).outcome) == {"changed": True}
    assert details(reading("Write", text).outcome) is None
    # An edit that says the same has no such rule.
    assert details(reading("Edit", text, same).outcome) is None


def test_what_is_no_text_has_the_text_it_has() -> None:
    content = [
        {"type": "tool_reference", "tool_name": "Monitor"},
        {"type": "image"},
        {"type": "text", "content": "x"},
    ]
    outcome = reading("ToolSearch", content).outcome
    assert outcome.result["content"] == [says("Monitor\nx")]


# --- what is taken out of results


def test_the_time_of_a_poll_is_taken_out_and_nothing_else() -> None:
    polls = [f"<status>running</status>\n\n<timestamp>2026-03-01T10:00:0{n}.000Z</timestamp>" for n in range(2)]
    first, second = (reading("BashOutput", text) for text in polls)
    assert first.outcome == second.outcome
    assert first.normalised == ("poll-time",)
    assert reading("BashOutput", polls[0] + "<stdout>\nmore\n</stdout>").outcome != first.outcome
    assert reading("Read", polls[0]).outcome != reading("Read", polls[1]).outcome


def test_appended_reminders_are_taken_out_but_not_what_is_nothing_else() -> None:
    reminder = "<system-reminder>\nBe brief.\n</system-reminder>"
    plain = reading("Read", "1→a")
    reminded = reading("Read", f"1→a\n\n{reminder}\n{reminder}\n")
    assert reminded.outcome == plain.outcome
    assert (plain.normalised, reminded.normalised) == ((), ("system-reminder",))
    for text in (reminder, f"{reminder}\n1→a", "a </system-reminder>"):
        assert reading("Read", text).normalised == ()


def test_the_answer_of_a_sub_agent_has_no_handle() -> None:
    def text(agent: str, spent: int) -> str:
        return f"Found.\nagentId: {agent} (for resuming)\n<usage>total_tokens: {spent}\nduration_ms: 1</usage>"

    one, two = reading("Task", text("a11f", 5)), reading("Agent", [says(text("b22e", 6))], {"agentId": "b22e"})
    assert one.outcome == two.outcome
    assert one.normalised == ("agent-handle",)
    assert reading("Task", text("a11f", 5).replace("Found", "Lost")).outcome != one.outcome
    assert reading("Grep", text("a11f", 5)).normalised == ()


def test_an_output_that_was_too_long_is_known_in_part() -> None:
    def text(path: str) -> str:
        return f"<persisted-output>\nOutput too large (40KB). Full output saved to: {path}\n\nPreview:\nab"

    one, two = reading("Bash", text("/t/1.txt")), reading("Bash", text("/t/2.txt"))
    assert one.outcome == two.outcome
    assert one.outcome.lossy
    assert one.normalised == ("output-path",)
    full = reading("Bash", text("/t/1.txt"), {"stdout": "abc", "stderr": "", "persistedOutputPath": "/t/1.txt"})
    assert (details(full.outcome)["aggregated"], full.outcome.lossy) == ("abc", True)


@given(st.text("ab<>/\n ", max_size=30), st.text("ab<>/\n ", max_size=30))
def test_outputs_of_a_poll_that_differ_stay_different(one: str, two: str) -> None:
    def judged(output: str, second: int) -> Any:
        text = f"<stdout>\n{output}\n</stdout>\n\n<timestamp>2026-03-01T10:00:{second:02}Z</timestamp>"
        return judge("command_status", {}, reading("BashOutput", text).outcome, RULESETS["latest"]).identity

    assert (judged(one, 1) == judged(two, 2)) == (one == two)


def test_each_normaliser_is_named_and_counted() -> None:
    session = Session()
    session.model(call("a", "BashOutput", bash_id="b"), call("b"))
    session.result("a", "<timestamp>10:00</timestamp>")
    session.result("b", "x\n<system-reminder>y</system-reminder>")
    source = source_of(encoded(session.lines))
    read_source(source)
    assert source.normalised == {"poll-time": 1, "system-reminder": 1}
    assert source.normalised.keys() <= READER.traits.normalisers.keys()


# --- runs


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        ("Caveat: The messages below were generated by the user while running local commands. Wait", {}),
        ("<local-command-stdout>ok</local-command-stdout>", {}),
        ("<system-reminder>Be brief.</system-reminder>", {}),
        ([says("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>")], {}),
        ("Stop hook feedback", {"isMeta": True}),
        ("Stop hook feedback", {"isSynthetic": True}),
        ([], {}),
    ],
)
def test_what_is_written_in_the_users_name_opens_no_run(content: Any, flags: dict[str, Any]) -> None:
    session = Session()
    session.user()
    session.model(call("a"))
    session.result("a")
    session.user(content, **flags)
    session.model(says("done"))
    events = session.read()
    assert len(of(UserMessage, events)) == len(of(RunEnded, events)) == 1


@pytest.mark.parametrize(
    "content",
    [
        "again",
        [says("<ide_opened_file>a.md</ide_opened_file>"), says("again")],
        [{"type": "image", "source": {}}],
        "<system-reminder>Be brief.</system-reminder>\nagain",
    ],
)
def test_what_the_user_wrote_opens_a_run(content: Any) -> None:
    session = Session()
    session.user()
    session.model(says("done"))
    session.user(content)
    session.model(says("done"))
    events = session.read()
    assert [each.where.line for each in of(UserMessage, events)] == [1, 3]
    assert endings(events) == [Ending.COMPLETED] * 2


def test_a_command_opens_a_run_if_the_model_answers_it() -> None:
    session = Session()
    session.user("<command-name>/model</command-name>")
    session.user("<local-command-stdout>Set</local-command-stdout>")
    session.user("go")
    session.model(says("done"))
    session.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    session.user([says("Review the page.")], isMeta=True)
    session.model(call("a"))
    session.user("<task-notification><task-id>b1</task-id></task-notification>")
    session.result("a")
    session.model(says("done"))
    session.user("<task-notification><task-id>b2</task-id></task-notification>")
    session.model(says("noted"))
    session.user("<command-name>/exit</command-name>")
    events = session.read()
    assert [each.where.line for each in of(UserMessage, events)] == [3, 5, 11]
    assert not [each for each in of(UserMessage, events) if each.steering]
    assert fates(events) == [[], [Fate.RAN], [], []]


def test_an_interruption_ends_the_run() -> None:
    session = Session()
    session.user()
    session.model(call("a", "Bash", command="sleep 9"), call("b"))
    session.result(
        "a", "The user doesn't want to proceed with this tool use.", "User rejected tool use", is_error=True
    )
    session.user([says("[Request interrupted by user for tool use]")])
    session.user("go on")
    session.model(says("done"))
    events = session.read()
    assert fates(events) == [[Fate.NOT_RUN, Fate.LOST], []]
    assert endings(events) == [Ending.INTERRUPTED, Ending.COMPLETED]


def test_text_beside_results_is_steering_or_an_interruption() -> None:
    session = Session()
    session.user()
    session.model(call("a"))
    session.user([answer("a"), says("and hurry"), says("<system-reminder>x</system-reminder>")])
    session.model(call("b"))
    session.user([answer("b"), says("<system-reminder>x</system-reminder>")])
    session.model(call("c"))
    session.user([answer("c"), says("[Request interrupted by user]")])
    events = session.read()
    assert [(each.where.line, each.steering) for each in of(UserMessage, events)] == [(1, False), (3, True)]
    assert endings(events) == [Ending.INTERRUPTED]
    assert of(RunEnded, events)[0].where.line == 7


def test_what_the_user_wrote_while_the_model_was_at_work_is_steering() -> None:
    session = Session()
    session.user()
    session.model(call("a"))
    session.result("a")
    session.line("queue-operation", operation="enqueue", content="hurry")
    for prompt, mode in (("hurry", "prompt"), ("<task-notification>", "task-notification"), ("x", "bash")):
        session.line("attachment", attachment={"type": "queued_command", "prompt": prompt, "commandMode": mode})
    session.line("attachment", attachment={"type": "task_reminder"})
    session.model(says("done"))
    events = session.read()
    assert [(each.where.line, each.steering) for each in of(UserMessage, events)] == [(1, False), (5, True)]
    assert endings(events) == [Ending.COMPLETED]


# --- compaction


def compacting(trigger: str | None, *, busy: bool, summary: bool = True) -> list[Compaction]:
    session = Session()
    session.user()
    session.model(call("a"))
    session.result("a")
    if not busy:
        session.model(says("done"))
    if trigger is not None:
        session.line("system", subtype="compact_boundary", compactMetadata={"trigger": trigger})
    if summary:
        session.user("What happened so far", isCompactSummary=True)
    session.model(says("on with it"))
    events = session.read()
    assert len(of(UserMessage, events)) == 1
    return of(Compaction, events)


def test_a_compaction_counts_once_and_is_in_the_run_if_it_goes_on() -> None:
    assert [each.in_run for each in compacting("auto", busy=True)] == [True]
    assert [each.in_run for each in compacting("auto", busy=True, summary=False)] == [True]
    assert [each.in_run for each in compacting(None, busy=True)] == [True]
    assert [each.in_run for each in compacting("auto", busy=False)] == [False]
    assert [each.in_run for each in compacting("manual", busy=True)] == [False]
    assert compacting(None, busy=True, summary=False) == []


def test_a_command_before_an_automatic_compaction_opens_its_run_before_it() -> None:
    session = Session()
    session.user("<command-name>/review</command-name>")
    session.line("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    session.user("What happened so far", isCompactSummary=True)
    session.model(says("done"))
    kinds = [type(each) for each in session.read()]
    assert kinds == [SessionStarted, UserMessage, Compaction, Turn, RunEnded, *kinds[-1:]]


# --- sessions


def test_side_chains_within_a_file_are_sessions_of_their_own_at_the_same_time() -> None:
    session = Session("main")
    session.user()
    session.model(call("t1", "Task"), call("t2", "Task"))
    side: dict[str, Any] = {"isSidechain": True}
    for name in ("x", "y"):
        session.user("search", **side, parentUuid=None, uuid=f"{name}1")
    for step in range(1, 3):
        for name in ("y", "x"):
            above, own = f"{name}{2 * step - 1}", f"{name}{2 * step}"
            session.part(call(f"{name}c{step}"), named=f"{name}m{step}", **side, parentUuid=above, uuid=own)
            session.user([answer(f"{name}c{step}")], **side, parentUuid=own, uuid=f"{name}{2 * step + 1}")
    session.result("t1")
    session.result("t2")
    session.model(says("done"))
    events = session.read()
    assert [each.session for each in of(SessionStarted, events)] == ["main", "main/agent-x1", "main/agent-y1"]
    assert of(SessionResumed, events)
    assert not of(Problem, events)
    assert sorted(map(tuple, fates(events))) == sorted([(Fate.RAN,)] * 4 + [(Fate.RAN, Fate.RAN), ()])


def test_sub_agents_are_named_after_the_session_that_started_them() -> None:
    agent = Session("main", isSidechain=True, agentId="a41f")
    agent.user("search")
    agent.model(says("found"))
    (started,) = of(SessionStarted, agent.read("main/subagents/agent-a41f.jsonl"))
    assert (started.session, started.version) == ("main/agent-a41f", "2.1.19")


def test_without_a_session_id_the_file_names_the_session() -> None:
    line = {"type": "user", "message": {"role": "user", "content": "hi"}}
    for path, name in (
        ("p/abc.jsonl", "abc"),
        ("p\\abc.jsonl", "abc"),
        ("p/abc/subagents/agent-1.jsonl", "abc"),
        ("-", "-"),
    ):
        (started,) = of(SessionStarted, read_source(source_of(encoded([line]), path)))
        assert started.session == name


def test_not_more_than_so_many_sessions_go_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_GOING", 2)
    lines = []
    for number, name in enumerate("abacb"):
        session = Session(name)
        session.user(uuid=f"u{number}")
        lines += session.lines
    started = [each.session for each in of(SessionStarted, read_source(source_of(encoded(lines))))]
    # b was silent when c began, so what b says later is a session again.
    assert started == ["a", "b", "c", "b"]


# --- copies


def resumed(session: Session, name: str, **fields: Any) -> Session:
    copy = Session(name)
    copy.lines = [{**line, "sessionId": name, **fields} for line in session.lines]
    return copy


def short() -> Session:
    session = Session("one")
    session.user()
    session.model(call("a"))
    session.result("a")
    session.model(says("done"))
    return session


def test_lines_that_a_file_repeats_count_once() -> None:
    session = short()
    session.lines += session.lines[:]
    source = source_of(encoded(session.lines))
    events = read_source(source)
    assert (len(of(Turn, events)), source.copies) == (2, {"s.jsonl": 4})


@pytest.mark.parametrize("forked", [False, True])
def test_lines_that_another_file_repeats_count_once_whatever_session_they_name(forked: bool) -> None:
    first = short()
    second = resumed(first, "two")
    if forked:
        for line in second.lines:
            line["forkedFrom"] = {"sessionId": "one", "messageUuid": line["uuid"]}
            line["uuid"] = f"new-{line['uuid']}"
    second.user("and more")
    second.model(says("more"))
    ledger = Ledger()
    heads = [encoded(each.lines) for each in (first, second)]
    sources = [source_of(head, name, ledger) for head, name in zip(heads, ("1.jsonl", "2.jsonl"), strict=True)]
    one, two = (read_source(source) for source in sources)
    assert (len(of(Turn, one)), len(of(Turn, two))) == (2, 1)
    assert sources[1].copies == {"1.jsonl": 4}
    assert [each.session for each in of(SessionStarted, two)] == ["two"]
    assert READER.family(heads[0], "1.jsonl") & READER.family(heads[1], "2.jsonl")


def test_ids_that_are_placeholders_make_no_copies() -> None:
    session = Session()
    session.user("a", uuid="redacted")
    session.model(call("a"), uuid="redacted")
    session.result("a")
    session.lines[-1]["uuid"] = "redacted"
    session.model(says("b"), uuid="redacted")
    session.user("c", uuid="redacted")
    source = source_of(encoded(session.lines))
    assert len(of(UserMessage, read_source(source))) == 2
    assert not source.copies


def test_a_family_is_told_by_sessions_lines_and_the_path() -> None:
    identity = "0123abcd-0000-4000-8000-00000000abcd"
    agent = Session(identity, isSidechain=True, agentId="a")
    agent.user()
    path = f"p/{identity}/subagents/agent-a.jsonl"
    snapshot = {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}
    main = READER.family(encoded([snapshot]), f"p/{identity}.jsonl")
    assert main == {identity, "u1"}
    assert READER.family(encoded(agent.lines), path) & main == {identity, "u1"}
    assert READER.family(encoded(short().lines), "p/other.jsonl").isdisjoint({identity})
    assert READER.family(b"\xff" * 50, "x") == frozenset()


def test_a_session_file_and_what_was_printed_of_the_session_count_once() -> None:
    session = short()
    printed = [
        {key: line[key] for key in ("type", "uuid", "message")} | {"session_id": "one"} for line in session.lines
    ]
    ledger = Ledger()
    first = read_source(source_of(encoded(session.lines), "1.jsonl", ledger))
    second = read_source(source_of(encoded(printed), "2.jsonl", ledger))
    assert (len(of(Turn, first)), second) == (2, [])


# --- stream-json


def streamed(subtype: str, **fields: Any) -> list[Event]:
    shared = {"session_id": "st", "parent_tool_use_id": None}
    init = {
        "type": "system",
        "subtype": "init",
        "session_id": "st",
        "model": "claude-x",
        "claude_code_version": "2.1",
    }
    spent = {"role": "assistant", "id": "m1", "usage": USAGE, "model": "claude-x"}
    lines: list[Any] = [
        init,
        {"type": "assistant", "message": {**spent, "content": [call("t", "Task")]}, **shared},
        {"type": "user", "message": {"role": "user", "content": "look"}, **shared, "parent_tool_use_id": "t"},
        {
            "type": "assistant",
            "message": {**spent, "id": "m2", "content": [call("r")]},
            **shared,
            "parent_tool_use_id": "t",
        },
        {"type": "user", "message": {"role": "user", "content": [answer("r")]}, **shared, "parent_tool_use_id": "t"},
        {"type": "user", "message": {"role": "user", "content": [answer("t")]}, "tool_use_result": {}, **shared},
        {"type": "stream_event", "event": {}, **shared},
        {"type": "assistant", "message": {**spent, "id": "m3", "content": [says("done")]}, **shared},
        {"type": "result", "subtype": subtype, "total_cost_usd": 0.5, "session_id": "st", **fields},
    ]
    return read_source(source_of(encoded(lines)))


def test_stream_json_is_read_alike() -> None:
    events = streamed("success", is_error=False)
    started = of(SessionStarted, events)
    assert [each.session for each in started] == ["st", "st/agent-t"]
    assert (started[0].model, started[0].version) == ("claude-x", "2.1")
    assert sorted(map(tuple, fates(events))) == [(), (Fate.RAN,), (Fate.RAN,)]
    assert sum(turn.usage.total for turn in of(Turn, events)) == 3 * 133
    assert endings(events) == [Ending.COMPLETED, Ending.INTERRUPTED]


def test_stream_json_says_how_the_run_ended() -> None:
    assert endings(streamed("error_max_turns", is_error=True))[0] is Ending.INTERRUPTED
    assert endings(streamed("success", is_error=True))[0] is Ending.INTERRUPTED
    # Session files have lines of the type "result" that are about something else.
    session = short()
    session.lines.append({"type": "result", "key": "v2", "agentId": "a", "result": {}})
    assert endings(session.read()) == [Ending.COMPLETED]


# --- which sources are of this format


def test_each_kind_of_file_is_recognised_by_its_content() -> None:
    session = short()
    agent = Session("main", isSidechain=True, agentId="a")
    agent.user()
    stream = {"type": "system", "subtype": "init", "session_id": "s"}
    bare = {"type": "user", "message": {"role": "user", "content": "x"}, "timestamp": "2026-03-01T10:00:00Z"}
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
    for lines, confidence in (
        (session.lines, Confidence.SURE),
        (agent.lines, Confidence.SURE),
        ([stream], Confidence.SURE),
        ([snapshot], Confidence.SURE),
        ([{"type": "summary", "summary": "x", "leafUuid": "u"}], Confidence.SURE),
        ([bare], Confidence.LIKELY),
        ([{"type": "mode", "mode": "x", "sessionId": "s"}], Confidence.LIKELY),
        ([{"type": "summary", "text": "x"}], Confidence.NO),
        ([{"type": "user", "content": "x", "id": "1"}], Confidence.NO),
        ([{"type": "session", "id": "s", "version": 3}], Confidence.NO),
        ([{"type": "message", "message": {"role": "user"}, "parentId": None}], Confidence.NO),
        ([{"role": "user", "content": "x"}], Confidence.NO),
    ):
        head = encoded(lines)
        assert READER.recognise(head, "-") is confidence
        if confidence:
            assert recognise(head, "-") is not None
            assert recognise(head, "-").name == "claude-code"  # type: ignore[union-attr]


def test_a_first_line_that_is_longer_than_the_head_is_recognised() -> None:
    session = Session()
    session.user([{"type": "image", "source": {"data": "A" * HEAD_BYTES}}])
    assert READER.recognise(encoded(session.lines)[:HEAD_BYTES], "-") is Confidence.SURE


@given(st.binary(max_size=200))
def test_recognition_and_family_never_raise(head: bytes) -> None:
    READER.recognise(head, "a/b")
    READER.family(head, "a/b")


# --- what is damaged


def test_what_cannot_be_used_is_a_problem_and_the_rest_is_read() -> None:
    session = Session()
    session.user()
    session.line("assistant", message={"role": "assistant", "content": 7})
    session.line("user", message="none")
    session.model({"type": "tool_use", "id": "a", "input": {}})
    session.result("a")
    session.result("a")
    session.result("nobody's")
    session.line("something new", uuid=None)
    session.lines.append({"no": "type"})
    data = encoded(session.lines) + b"{broken\n[1]\n"
    source = source_of(data)
    problems = of(Problem, read_source(source))
    assert [(each.line, each.kind) for each in problems] == [
        (2, "damaged-message"),
        (3, "damaged-message"),
        (4, "damaged-call"),
        (6, "duplicate-result"),
        (7, "orphan-result"),
        (10, "malformed-json"),
        (11, "not-an-object"),
    ]
    assert source.unused["something new"] == source.unused["untyped"] == 1


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud800")
_json = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
_blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_use", "tool_result", "text", "thinking"]) | _json},
    optional={
        "id": st.sampled_from(["a", "b"]) | _json,
        "tool_use_id": st.sampled_from(["a", "b"]) | _json,
        "name": st.sampled_from(["Bash", "Write", "Task", "BashOutput"]) | _json,
        "input": st.just({"description": "x"}) | _json,
        "content": st.sampled_from(["Exit code 1\n", "<tool_use_error>", "agentId: abcd (", "<persisted-output>"])
        | _json,
        "text": st.sampled_from(["<command-name>", "[Request interrupted by user]", "hi"]) | _json,
        "is_error": st.booleans() | _json,
    },
)
_lines = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system", "attachment", "result", "progress"]) | _json},
    optional={
        "message": st.fixed_dictionaries(
            {"content": st.lists(_blocks | _json, max_size=3) | _json},
            optional={
                "id": st.sampled_from(["m", "n"]) | _json,
                "model": st.just("<synthetic>") | _json,
                "usage": st.dictionaries(st.sampled_from(list(USAGE)), _json, max_size=4) | _json,
            },
        )
        | _json,
        "uuid": st.sampled_from(["1", "2", "3", "4", "5"]) | _json,
        "parentUuid": st.sampled_from(["1", "2", "3"]) | _json,
        "sessionId": st.sampled_from(["s", "t"]) | _json,
        "agentId": st.just("a") | _json,
        "isSidechain": st.booleans() | _json,
        "isMeta": st.booleans(),
        "isCompactSummary": st.booleans(),
        "subtype": st.sampled_from(["compact_boundary", "init", "success"]) | _json,
        "compactMetadata": st.just({"trigger": "manual"}) | _json,
        "attachment": st.just({"type": "queued_command", "prompt": "x"}) | _json,
        "toolUseResult": st.just({"stdout": "x", "agentId": "abcd"}) | _json,
        "toolDenialKind": _json,
        "timestamp": st.sampled_from(["2026-03-01T10:00:00Z", "1999"]) | _json,
        "error": _json,
        "forkedFrom": _json,
    },
)


@settings(max_examples=100)
@given(st.lists(_lines, max_size=12))
def test_nothing_raises_and_every_line_is_accounted_for(lines: list[Any]) -> None:
    read_source(source_of(encoded(lines)))


# --- fixtures


@pytest.mark.parametrize(
    ("name", "ruleset", "marks"),
    [
        ("import-poll", "2026.6", ["warning", "block", "block"]),
        ("import-poll", "2026.9", ["warning", "block", "block", "run_end"]),
        ("lint-stream", "2026.6", []),
        ("lint-stream", "2026.9", ["block", "block", "run_end"]),
        ("lint-stream", "latest", ["error_streak_end"]),
        ("guide", "2026.6", []),
        ("resumed-guide", "latest", []),
        ("guide/subagents/agent-a41f9c2", "latest", []),
    ],
)
def test_a_fixture_gets_these_marks(name: str, ruleset: str, marks: list[str]) -> None:
    report = replay(FIXTURES / f"{name}.jsonl", ruleset=ruleset)
    assert [mark.kind.value for session in report.sessions for run in session.runs for mark in run.marks] == marks
    assert [source.format for source in report.sources] == ["claude-code"]


def test_the_fixture_of_a_whole_day_is_read_as_it_went() -> None:
    source = Source.of_file(FIXTURES / "guide.jsonl")
    events = read_source(source)
    assert not of(Problem, events)
    assert fates(events) == [
        [Fate.RAN] * 3,
        [Fate.RAN] * 2,
        [Fate.RAN] * 2,
        [],
        [Fate.REJECTED],
        [Fate.NOT_RUN],
        [],
        [Fate.RAN],
        [],
    ]
    assert [each.steering for each in of(UserMessage, events)] == [False, True, False, False]
    assert endings(events) == [Ending.INTERRUPTED, Ending.INTERRUPTED, Ending.COMPLETED]
    assert [each.in_run for each in of(Compaction, events)] == [True]
    assert source.normalised == {"agent-handle": 1, "command-title": 3, "system-reminder": 1}
    assert {each.tool for turn in of(Turn, events) for each in turn.calls if isinstance(each, Call)} > {
        "Bash",
        "Read",
    }


def test_a_folder_of_sessions_is_read_as_one_family() -> None:
    heads = {
        path.name: READER.family(path.read_bytes()[:HEAD_BYTES], str(path)) for path in FIXTURES.rglob("*.jsonl")
    }
    guide = heads["guide.jsonl"]
    related = {name for name, ids in heads.items() if ids & guide}
    assert related == {"guide.jsonl", "agent-a41f9c2.jsonl", "resumed-guide.jsonl"}


def test_tools_are_mapped_only_to_names_that_rules_know() -> None:
    assert set(TOOLS.values()) <= {"exec", "command_status", "read", "write", "edit"}
    assert READER.traits.tools == TOOLS
