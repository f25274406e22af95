"""What Codex CLI records: calls, outcomes, responses and what they cost, runs, and history that is replayed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.engine.outcomes import judge
from loopscan.events import (
    Compaction,
    Ending,
    Event,
    Fate,
    Outcome,
    Problem,
    Result,
    RunEnded,
    SessionStarted,
    Turn,
    UserMessage,
)
from loopscan.replayer import replay
from loopscan.rulesets import RULESETS
from loopscan.transcripts.codex import CodexReader, CodexStreamReader
from loopscan.transcripts.codex.outputs import DURATION, HEADER, POLL, TIMEOUT, meaning_of
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.reader import Confidence, Reader, Source, traits_of
from tests.transcripts.build import fates, source_of
from tests.transcripts.checks import account, check, of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
REAL = Path(__file__).resolve().parents[2].parent / "shared" / "real"


class Rollout:
    """A rollout in the making; every method appends one line."""

    def __init__(self, session: str | None = "s1", **meta: Any) -> None:
        self.lines: list[Any] = []
        self.total = 0
        if session is not None:
            self.line("session_meta", {"id": session, "cli_version": "0.104.0", **meta})

    def line(self, kind: str, payload: Any) -> Rollout:
        minute, second = divmod(len(self.lines), 60)
        self.lines.append(
            {"timestamp": f"2026-03-01T10:{minute % 60:02}:{second:02}.000Z", "type": kind, "payload": payload}
        )
        return self

    def item(self, kind: str, **fields: Any) -> Rollout:
        return self.line("response_item", {"type": kind, **fields})

    def event(self, kind: str, **fields: Any) -> Rollout:
        return self.line("event_msg", {"type": kind, **fields})

    def says(self, role: str, text: str) -> Rollout:
        return self.item("message", role=role, content=[{"type": "input_text", "text": text}])

    def user(self, text: str = "do it") -> Rollout:
        return self.says("user", text).event("user_message", message=text)

    def call(self, identity: str | None, tool: str = "shell", arguments: Any = '{"command":["ls"]}') -> Rollout:
        return self.item("function_call", name=tool, arguments=arguments, call_id=identity)

    def output(self, identity: str | None, output: Any = "ok") -> Rollout:
        return self.item("function_call_output", call_id=identity, output=output)

    def tokens(self, used: int, *, again: bool = False) -> Rollout:
        self.total += 0 if again else used
        last = {"input_tokens": used - 3, "cached_input_tokens": 2, "output_tokens": 3, "total_tokens": used}
        return self.event(
            "token_count", info={"total_token_usage": {"total_tokens": self.total}, "last_token_usage": last}
        )

    def bytes(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)

    def read(self, **options: Any) -> list[Event]:
        return read(self.bytes(), **options)[0]


def read(
    data: bytes, reader: Reader | None = None, name: str = "r.jsonl", **options: Any
) -> tuple[list[Event], Source]:
    """Read a source from bytes, and check what holds for every stream."""
    source = source_of(data, name, **options)
    events = list((reader or CodexReader()).read(source))
    check(events)
    account(source)
    return events, source


def stream(*lines: dict[str, Any]) -> list[Event]:
    return read(b"".join(json.dumps(line).encode() + b"\n" for line in lines), CodexStreamReader())[0]


def calls(events: list[Event]) -> list[list[str]]:
    return [[call.tool for call in turn.calls] for turn in of(Turn, events)]


def totals(events: list[Event]) -> list[int]:
    return [turn.usage.total for turn in of(Turn, events)]


def header(output: str, *, chunk: str = "0a1b2c", wall: float = 0.25, how: str = "Process exited with code 0") -> str:
    return f"Chunk ID: {chunk}\nWall time: {wall:.4f} seconds\n{how}\nOriginal token count: 7\nOutput:\n{output}"


def wrapped(output: str, code: int, duration: float) -> str:
    return json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": duration}})


def identity(outcome: Outcome | None, tool: str = "exec") -> object:
    assert outcome is not None
    return judge(tool, {}, outcome, RULESETS["2026.9"]).identity


# --- responses and what they cost


def test_calls_in_a_row_are_one_message_and_what_follows_an_output_is_the_next() -> None:
    rollout = Rollout().user().item("reasoning", summary=[]).says("assistant", "both").call("a").call("b")
    rollout.output("b").output("a").item("reasoning", summary=[]).call("c").output("c").says("assistant", "done")
    events = rollout.read()
    assert calls(events) == [["shell", "shell"], ["shell"], []]
    assert [each.index for each in of(Result, events)] == [1, 0, 0]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.COMPLETED]


@pytest.mark.parametrize("order", ["before the outputs", "before the items", "after the outputs"])
def test_a_count_of_tokens_is_of_its_own_response_wherever_the_version_puts_it(order: str) -> None:
    rollout = Rollout().user().event("token_count", info=None)
    for number, used in enumerate((100, 120, 150)):
        identity = f"c{number}"
        rollout.event("agent_reasoning", text="…")
        if order == "before the items":
            rollout.tokens(used).item("reasoning", summary=[]).call(identity).output(identity)
        elif order == "before the outputs":
            rollout.item("reasoning", summary=[]).call(identity).tokens(used).output(identity)
        else:
            rollout.call(identity).output(identity).tokens(used)
        rollout.line("turn_context", {"model": "m"}).tokens(used, again=True)
    rollout.event("agent_message", message="done")
    if order == "before the items":
        rollout.tokens(170).item("reasoning", summary=[]).says("assistant", "done")
    else:
        rollout.says("assistant", "done").tokens(170)
    events = rollout.read()
    assert calls(events) == [["shell"], ["shell"], ["shell"], []]
    assert totals(events) == [100, 120, 150, 170]
    usage = of(Turn, events)[0].usage
    assert (usage.input, usage.cache_read, usage.output) == (95, 2, 3)
    assert [turn.model for turn in of(Turn, events)] == [None, "m", "m", "m"]


def test_two_messages_without_calls_are_two_responses_if_a_count_of_tokens_stands_between_them() -> None:
    rollout = Rollout().user().says("assistant", "one").says("assistant", "still one").tokens(10)
    rollout.says("assistant", "two").tokens(11)
    assert totals(rollout.read()) == [10, 11]


def test_a_response_that_left_nothing_but_its_cost_failed() -> None:
    rollout = Rollout().user().call("a").tokens(10).output("a").event("agent_reasoning", text="…").tokens(20)
    events = rollout.event("turn_aborted", reason="interrupted").read()
    assert totals(events) == [10, 20]
    assert [turn.failed for turn in of(Turn, events)] == [False, True]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.INTERRUPTED]


def test_what_a_summary_cost_is_not_the_cost_of_the_response_after_it() -> None:
    rollout = Rollout().user().call("a").tokens(10).output("a").line("compacted", {"message": "…"}).tokens(500)
    events = rollout.call("b").tokens(20).output("b").read()
    assert totals(events) == [10, 20]


# --- user input and runs


def test_user_input_that_is_recorded_twice_counts_once_and_context_in_the_users_name_not_at_all() -> None:
    rollout = Rollout().says("user", "# AGENTS.md instructions for /srv\n…").says("user", "<unheard_of_context>x</…>")
    rollout.user("first").says("assistant", "ok").says("user", "<unheard_of_context>y</…>").user("second")
    events = rollout.says("assistant", "ok").read()
    assert len(of(UserMessage, events)) == 2
    assert [turn.run for turn in of(Turn, events)] == ["#1", "#2"]


def test_without_events_the_items_tell_what_the_user_said() -> None:
    rollout = Rollout().says("user", "<environment_context>…").says("user", "real").says("assistant", "ok")
    rollout.says("user", "<subagent_notification>…").says("user", "more").call("a").output("a")
    events = rollout.says("user", "<turn_aborted>\nThe user interrupted…").read()
    assert [each.where.line for each in of(UserMessage, events)] == [3, 6]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.COMPLETED, Ending.INTERRUPTED]


def test_input_while_a_turn_goes_on_is_steering_and_turns_are_runs() -> None:
    rollout = Rollout().event("task_started", turn_id="t1").user().call("a").output("a").user("and that")
    rollout.says("assistant", "ok").event("task_complete", turn_id="t1")
    rollout.event("task_started", turn_id="t2").user().says("assistant", "ok")
    rollout.event("task_started", turn_id="t3").user().event("turn_aborted", reason="interrupted")
    events = rollout.read()
    assert [(each.run_id, each.steering) for each in of(UserMessage, events)] == [
        ("t1", False),
        ("t1", True),
        ("t2", False),
        ("t3", False),
    ]
    # The second turn never ended on record.
    endings = [Ending.COMPLETED, Ending.INTERRUPTED, Ending.INTERRUPTED]
    assert [each.ending for each in of(RunEnded, events)] == endings


def test_a_turn_without_input_is_a_run_of_its_own() -> None:
    rollout = Rollout().event("task_started", turn_id="t1").user().says("assistant", "ok").event("task_complete")
    events = rollout.event("task_started", turn_id="t2").call("a").output("a").event("task_complete").read()
    assert [(turn.run, turn.run_id) for turn in of(Turn, events)] == [("#1", "t1"), ("#2", "t2")]


@pytest.mark.parametrize("then", ["call", "user"])
def test_a_compaction_is_one_however_often_it_is_recorded(then: str) -> None:
    rollout = Rollout().user().call("a").output("a").item("compaction", encrypted_content="…")
    rollout.line("compacted", {"message": "…"}).event("context_compacted")
    rollout = rollout.user() if then == "user" else rollout
    events = rollout.call("b").output("b").line("compacted", {"message": "…"}).read()
    assert [each.in_run for each in of(Compaction, events)] == [then == "call", False]


# --- calls


def test_arguments_are_what_the_model_wrote() -> None:
    rollout = (
        Rollout().user().call("a", "t", '{"b": [1, 2.5], "a": null}').call("b", "t", '{"cut": ').call("c", "t", "")
    )
    rollout.item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="d")
    rollout.item("local_shell_call", id="e", action={"type": "exec", "command": ["ls"]})
    rollout.item("tool_search_call", call_id="f", execution="client", arguments={"query": "x"})
    (turn,) = of(Turn, rollout.read())
    assert [(call.tool, call.arguments, call.id) for call in turn.calls] == [
        ("t", {"b": [1, 2.5], "a": None}, "a"),
        ("t", '{"cut": ', "b"),
        ("t", "", "c"),
        ("apply_patch", "*** Begin Patch", "d"),
        ("local_shell", {"type": "exec", "command": ["ls"]}, "e"),
        ("tool_search", {"query": "x"}, "f"),
    ]


def test_what_the_provider_ran_is_part_of_the_response_and_no_call() -> None:
    rollout = Rollout().user().item("web_search_call", status="completed", action={"type": "search"}).call("a")
    events = rollout.output("a").item("image_generation_call").read()
    assert fates(events) == [Fate.RAN]
    assert len(of(Turn, events)) == 2
    assert not of(Problem, events)


def test_typing_nothing_into_a_command_is_a_poll() -> None:
    rollout = Rollout().user()
    for number, typed in enumerate(
        ('{"session_id":7,"chars":""}', '{"session_id":7}', '{"session_id":7,"chars":"y"}', "{")
    ):
        rollout.call(str(number), "write_stdin", typed).output(
            str(number), header("", how="Process running with session ID 7")
        )
    events = rollout.read()
    assert calls(events) == [[POLL], [POLL], ["write_stdin"], ["write_stdin"]]
    assert traits_of(CodexReader()).tools[POLL] == "command_status"
    first, second, *_ = of(Result, events)
    assert identity(first.outcome, "command_status") == identity(second.outcome, "command_status")


def test_a_namespace_is_part_of_the_name_of_a_tool() -> None:
    rollout = Rollout().user()
    for number, namespace in enumerate(("mcp__maps", "mcp__maps__", "functions", None)):
        rollout.item("function_call", name="find", namespace=namespace, arguments="{}", call_id=str(number))
    assert calls(rollout.read()) == [["mcp__maps__find", "mcp__maps__find", "find", "find"]]


# --- outcomes

RUNNING = "Process running with session ID 4"


@pytest.mark.parametrize(
    ("output", "details"),
    [
        (wrapped("out\n", 0, 0.3), {"status": "completed", "aggregated": "out\n", "exitCode": 0}),
        (wrapped("out\n", 2, 0.3), {"status": "failed", "aggregated": "out\n", "exitCode": 2}),
        (header("out\n"), {"status": "completed", "aggregated": "out\n", "exitCode": 0}),
        (header("out", how="Process exited with code -1"), {"status": "failed", "aggregated": "out", "exitCode": -1}),
        (
            "Exit code: 1\nWall time: 0 seconds\nOutput:\nno\n",
            {"status": "failed", "aggregated": "no\n", "exitCode": 1},
        ),
        (header("so far", how=RUNNING), {"status": "running", "tail": "so far"}),
        ("Script completed\nWall time 0.1 seconds\nOutput:\nx", {"status": "completed", "aggregated": "x"}),
        ("Script running with cell ID 3\nWall time 9.0 seconds\nOutput:\n", {"status": "running", "tail": ""}),
        (
            wrapped("command timed out after 10012 milliseconds\npart", 124, 10.0),
            {"status": "failed", "aggregated": "command timed out\npart", "exitCode": 124, "timedOut": True},
        ),
        ({"content": "out", "success": True}, {"status": "completed", "aggregated": "out"}),
        ([{"type": "input_text", "text": "out"}], {"status": "completed", "aggregated": "out"}),
        ("plain", {"status": "completed", "aggregated": "plain"}),
        (None, {"status": "completed", "aggregated": ""}),
    ],
)
def test_outputs_of_commands_are_those_of_openclaw(output: Any, details: Any) -> None:
    outcome = meaning_of(output, "shell").outcome
    assert outcome is not None
    assert isinstance(outcome.result, dict)
    assert outcome.result["details"] == details
    assert outcome.is_error is (details["status"] == "failed")


@pytest.mark.parametrize(
    ("output", "fate", "error"),
    [
        ("exec command rejected by user", Fate.RAN, True),
        ("This action was rejected due to unacceptable risk.\nReason: …", Fate.RAN, True),
        ("failed in sandbox LinuxSeccomp with execution error: Denied", Fate.RAN, True),
        ({"content": "no such place", "success": False}, Fate.RAN, True),
        ("failed to parse function arguments: missing field `command`", Fate.REJECTED, True),
        ("aborted by user after 3.2s", Fate.LOST, False),
        ("Wall time: 3.2 seconds\naborted by user", Fate.LOST, False),
        ("aborted", Fate.LOST, False),
        ("it aborted by user error", Fate.RAN, False),
    ],
)
def test_what_became_of_a_call_is_told_by_what_codex_says(output: Any, fate: Fate, error: bool) -> None:
    events = Rollout().user().call("a").output("a", output).read()
    assert fates(events) == [fate]
    assert [each.outcome.error is not None for each in of(Result, events)] == (
        [error] if fate is not Fate.LOST else []
    )


def test_a_tool_that_is_not_offered_is_absent_only_if_the_error_names_it() -> None:
    rollout = Rollout().user().call("a", "frobnicate").output("a", "unsupported call: frobnicate")
    rollout.call("b", "shell").output("b", "unsupported call: of a function in line 3")
    rollout.item("custom_tool_call", name="knit", input="x", call_id="c")
    rollout.item("custom_tool_call_output", call_id="c", output="unsupported custom tool call: knit")
    events = rollout.read()
    assert [[each.tool for each in turn.absent] for turn in of(Turn, events)] == [["frobnicate"], [], ["knit"]]
    assert fates(events) == [Fate.RAN]


def test_each_normaliser_takes_out_what_changes_and_is_counted() -> None:
    rollout = Rollout().user()
    for number in range(3):
        rollout.call(f"a{number}").output(f"a{number}", header("same", chunk=f"{number:06}", wall=number))
        rollout.call(f"b{number}").output(f"b{number}", wrapped("same", 0, number))
        late = f"command timed out after {1000 + number} milliseconds\n"
        rollout.call(f"c{number}").output(f"c{number}", wrapped(late, 124, number))
    events, source = read(rollout.bytes())
    assert source.normalised == Counter({HEADER: 3, DURATION: 6, TIMEOUT: 3})
    assert set(source.normalised) <= set(traits_of(CodexReader()).normalisers)
    assert len({identity(each.outcome) for each in of(Result, events)}) == 2


@given(texts=st.lists(st.text(), min_size=2, max_size=2), codes=st.tuples(st.integers(-9, 255), st.integers(-9, 255)))
def test_outcomes_are_equal_if_and_only_if_text_and_exit_code_are(texts: list[str], codes: tuple[int, int]) -> None:
    for form in (wrapped, lambda text, code, _: header(text, how=f"Process exited with code {code}")):
        first, second = (
            identity(meaning_of(form(text, code, wall), "shell").outcome)
            for text, code, wall in zip(texts, codes, (0.1, 2.0), strict=True)
        )
        same = codes[0] == codes[1] and texts[0].strip() == texts[1].strip()
        # White space around a text does not count for OpenClaw, which trims what JavaScript takes for white space.
        if same:
            assert texts[0] != texts[1] or first == second
        elif all(text.isascii() for text in texts):
            assert first != second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"content": "x", "extra": 1}, {"content": "x", "extra": 2}),
        ([{"type": "chart", "data": 1}], [{"type": "chart", "data": 2}]),
        (1, 2),
        (
            '{"output": "x", "metadata": {"exit_code": 0, "host": "a"}}',
            '{"output": "x", "metadata": {"exit_code": 0}}',
        ),
        ("Chunk ID: 1\nOutput:\nx", "Chunk ID: 2\nOutput:\nx"),
    ],
)
def test_what_is_not_surely_of_codex_is_left_as_it_is(one: Any, other: Any) -> None:
    assert identity(meaning_of(one, "lookup").outcome, "lookup") != identity(
        meaning_of(other, "lookup").outcome, "lookup"
    )


def test_an_image_stands_beside_the_text_and_a_cut_output_is_lossy() -> None:
    picture = {"type": "input_image", "image_url": "data:…"}
    outcome = meaning_of([{"type": "input_text", "text": "seen"}, picture], "view_image").outcome
    assert outcome is not None
    assert outcome.result == {"content": [{"type": "text", "text": "seen"}, picture]}
    cut = meaning_of(header("head…90 tokens truncated…tail"), "shell").outcome
    assert cut is not None
    assert cut.lossy


# --- sessions


def test_before_0_30_lines_were_items() -> None:
    lines = [
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        *(
            line["payload"]
            for line in Rollout(None).says("user", "go").call("a").output("a", wrapped("x", 1, 1)).lines
        ),
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    events, source = read(data)
    assert of(SessionStarted, events)[0].session == "old"
    assert (len(of(UserMessage, events)), fates(events), of(Problem, events)) == (1, [Fate.RAN], [])
    assert source.unused == Counter(state=1)
    assert CodexReader().recognise(data, "x") is Confidence.SURE
    assert CodexReader().family(data, "x") == {"old"}


def test_a_file_without_a_header_is_named_after_its_file() -> None:
    name = "a/rollout-2026-03-01T10-00-00-0195a000-0000-7000-8000-00000000000a.jsonl"
    events, _ = read(Rollout(None).user().says("assistant", "ok").bytes(), name=name)
    assert of(SessionStarted, events)[0].session == "0195a000-0000-7000-8000-00000000000a"
    assert [each.kind for each in of(Problem, events)] == ["no-header"]


def test_the_name_of_a_sub_agent_shows_its_parent() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "boss", "depth": 1}}}
    rollout = Rollout("child", source=source).event("user_message", message="look").says("assistant", "seen")
    assert of(SessionStarted, rollout.read())[0].session == "boss/child"
    assert CodexReader().family(rollout.bytes(), "x") == {"boss", "child"}


def test_joined_files_are_sessions_of_their_own_and_a_header_again_is_none() -> None:
    first = Rollout("one").user().says("assistant", "ok").line("session_meta", {"id": "one"}).user()
    events, _ = read(first.bytes() + Rollout("two").user().says("assistant", "ok").bytes())
    assert [each.session for each in of(SessionStarted, events)] == ["one", "two"]
    assert len(of(UserMessage, events)) == 3


def parent() -> Rollout:
    return Rollout("p").user("go on").call("a").tokens(10).output("a").user("go on").call("b").tokens(9).output("b")


def fork(**meta: Any) -> Rollout:
    """Return a session that begins with all of its parent's history, written anew, and goes on in the same words."""
    rollout = Rollout("f", **meta)
    for line in parent().lines:
        rollout.line(line["type"], line["payload"])
    return rollout.user("go on").call("c").output("c")


@pytest.mark.parametrize("meta", [{}, {"forked_from_id": "p"}])
def test_the_history_of_a_fork_counts_once_if_its_parent_was_read(meta: dict[str, str]) -> None:
    ledger = Ledger()
    first, _ = read(parent().bytes(), name="p", ledger=ledger)
    second, source = read(fork(**meta).bytes(), name="f", ledger=ledger)
    assert len(fates(first)) == 2
    assert [call.id for turn in of(Turn, second) for call in turn.calls] == ["c"]
    assert len(of(UserMessage, second)) == 1
    assert source.copies["p"] == len(parent().lines) - 1
    assert CodexReader().family(fork(**meta).bytes(), "f") == {"f", "p"}


def test_a_fork_of_a_fork_begins_with_the_history_of_both() -> None:
    ledger = Ledger()
    read(parent().bytes(), name="p", ledger=ledger)
    read(fork().bytes(), name="f", ledger=ledger)
    rollout = Rollout("g", forked_from_id="f")
    for line in fork().lines:
        rollout.line(line["type"], line["payload"])
    events, source = read(rollout.user("go on").call("d").output("d").bytes(), name="g", ledger=ledger)
    assert [call.id for turn in of(Turn, events) for call in turn.calls] == ["d"]
    assert set(source.copies) == {"p", "f"}


def test_the_history_of_a_fork_is_all_that_is_known_of_it_if_its_parent_was_not_read() -> None:
    assert len(fates(fork().read(ledger=Ledger()))) == 3


def test_a_copy_of_a_file_counts_once_and_what_it_has_more_is_kept() -> None:
    ledger = Ledger()
    read(parent().bytes(), name="p", ledger=ledger)
    events, source = read(parent().user("go on").call("z").output("z").bytes(), name="q", ledger=ledger)
    assert [call.id for turn in of(Turn, events) for call in turn.calls] == ["z"]
    assert source.copies == Counter(p=len(parent().lines) - 1)


# --- the stream of codex exec --json

THREAD = {"type": "thread.started", "thread_id": "t"}
TURN = {"type": "turn.started"}


def shown(kind: str, identity: str, of: str = "command_execution", **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": {"id": identity, "type": of, **fields}}


def ran(identity: str, output: str = "", code: int | None = 0, **fields: Any) -> dict[str, Any]:
    status = "failed" if code else "completed"
    return shown(
        "completed", identity, command="ls", aggregated_output=output, exit_code=code, **{"status": status, **fields}
    )


def test_commands_of_a_stream_that_run_at_the_same_time_are_one_message() -> None:
    events = stream(
        *(THREAD, TURN, shown("started", "1", command="ls"), shown("started", "2", command="ls")),
        *(ran("2", "b", 1), ran("1", "a"), shown("started", "3", command="ls"), ran("3"), ran("4")),
        *(shown("completed", "5", "agent_message", text="done"), {"type": "turn.completed", "usage": {}}),
    )
    assert calls(events) == [["command_execution"] * 2, ["command_execution"], ["command_execution"], []]
    assert [each.index for each in of(Result, events)] == [1, 0, 0, 0]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.COMPLETED]
    assert traits_of(CodexStreamReader()).tools["command_execution"] == "exec"


def test_a_stream_tells_what_became_of_its_commands() -> None:
    events = stream(
        *(THREAD, TURN, ran("1", "rejected", -1, status="declined"), ran("2", "so far", None, status="in_progress")),
        *(ran("3", "no", 1), shown("started", "4", command="ls"), {"type": "turn.failed", "error": {}}),
    )
    assert fates(events) == [Fate.RAN, Fate.RAN, Fate.RAN, Fate.LOST]
    denied, going, failed = (each.outcome for each in of(Result, events))
    assert denied.error == "rejected"
    assert going.result["details"] == {"status": "running", "tail": "so far"}
    assert failed.result["details"] == {"status": "failed", "aggregated": "no", "exitCode": 1}
    assert [each.ending for each in of(RunEnded, events)] == [Ending.INTERRUPTED]


def test_other_items_of_a_stream_are_calls_where_the_model_called_a_tool() -> None:
    result = {"content": [{"type": "text", "text": "dry"}], "structured_content": {"rain": 0}}
    events = stream(
        *(
            THREAD,
            TURN,
            shown("completed", "1", "web_search", query="x"),
            shown("completed", "2", "error", message="x"),
        ),
        shown("completed", "3", "mcp_tool_call", server="sky", tool="now", arguments={"at": 1}, result=result),
        shown("completed", "4", "mcp_tool_call", server="sky", tool="now", error={"message": "down"}),
        shown("completed", "5", "collab_tool_call", tool="wait", receiver_thread_ids=["k"], status="completed"),
        *(shown("started", "6", "todo_list", items=[]), shown("updated", "6", "todo_list", items=[1])),
        shown("completed", "6", "todo_list", items=[1]),
    )
    assert calls(events) == [["mcp__sky__now"], ["mcp__sky__now"], ["wait"], ["todo_list"], ["todo_list"]]
    assert [each.outcome.error for each in of(Result, events)] == [None, "down", None, None, None]


def test_changes_whose_patch_is_not_in_the_stream_are_never_the_same_call() -> None:
    changes = [{"path": "a", "kind": "update"}]
    events = stream(THREAD, TURN, *(shown("completed", str(n), "file_change", changes=changes) for n in range(3)))
    arguments = [json.dumps(call.arguments) for turn in of(Turn, events) for call in turn.calls]
    assert len(set(arguments)) == 3


def test_a_stream_whose_rollout_was_read_is_a_copy_of_it() -> None:
    ledger = Ledger()
    data = b"".join(json.dumps(line).encode() + b"\n" for line in (THREAD, TURN, ran("1")))
    alone, _ = read(data, CodexStreamReader(), "s", ledger=Ledger())
    assert len(fates(alone)) == 1
    read(Rollout("t").user().call("a").output("a").bytes(), name="r", ledger=ledger)
    events, source = read(data, CodexStreamReader(), "s", ledger=ledger)
    assert not of(Turn, events)
    assert source.copies == Counter(r=3)
    assert CodexStreamReader().family(data, "s") == {"t"}
    assert traits_of(CodexStreamReader()).rank > traits_of(CodexReader()).rank


def test_a_stream_without_its_start_is_named_after_its_source_and_one_that_was_resumed_goes_on() -> None:
    events = stream(TURN, ran("1"))
    assert of(SessionStarted, events)[0].session == "r.jsonl"
    assert [each.kind for each in of(Problem, events)] == ["no-header"]
    events = stream(THREAD, TURN, ran("1"), THREAD, TURN, ran("1"), {**THREAD, "thread_id": "u"}, TURN)
    assert [each.session for each in of(SessionStarted, events)] == ["t", "u"]
    assert fates(events) == [Fate.RAN, Fate.RAN]


# --- recognition


def test_the_two_formats_are_told_by_their_content() -> None:
    rollout, events = Rollout().user().bytes(), json.dumps(THREAD).encode()
    readers: tuple[Reader, ...] = (CodexReader(), CodexStreamReader())
    assert [each.recognise(rollout, "x") for each in readers] == [Confidence.SURE, Confidence.NO]
    assert [each.recognise(events, "x") for each in readers] == [Confidence.NO, Confidence.SURE]
    long = Rollout(base_instructions={"text": "x" * 99}).bytes()
    assert CodexReader().recognise(long[:120], "x") is Confidence.SURE
    assert CodexReader().family(long[:120], "x") == {"s1"}


@pytest.mark.parametrize(
    "line",
    [
        {"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-01T10:00:00Z"},
        {
            "type": "message",
            "id": "m",
            "timestamp": "2026-03-01T10:00:00Z",
            "message": {"role": "user", "content": []},
        },
        {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "x"}},
        {"type": "response_item", "payload": "x"},
        {"id": "1", "timestamp": 3},
        {"id": "1", "type": "function_call", "arguments": "{}"},
        [1],
    ],
)
def test_other_formats_are_not_claimed(line: Any) -> None:
    data = json.dumps(line).encode() + b"\n"
    assert CodexReader().recognise(data, "rollout-x.jsonl") is Confidence.NO
    assert CodexStreamReader().recognise(data, "x") is Confidence.NO


# --- whatever the input is

JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
IDS = st.sampled_from(["a", "b", "p", 1, None])
TEXTS = st.sampled_from(
    [
        "x",
        "aborted",
        "unsupported call: shell",
        "<turn_aborted>",
        header("y", how=RUNNING),
        wrapped("z", 1, 0.1),
        "\ud800",
    ]
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": IDS | JUNK,
    "call_id": IDS | JUNK,
    "turn_id": IDS | JUNK,
    "name": st.sampled_from(["shell", "write_stdin", "t"]) | JUNK,
    "arguments": st.sampled_from(["{}", '{"chars":""}', "{"]) | JUNK,
    "role": st.sampled_from(["user", "assistant", "developer"]) | JUNK,
    "content": TEXTS | JUNK,
    "output": TEXTS | JUNK,
    "info": st.integers(1, 3).map(
        lambda n: {"last_token_usage": {"total_tokens": n}, "total_token_usage": {"input_tokens": n}}
    )
    | JUNK,
    "model": JUNK,
    "forked_from_id": IDS,
    "source": st.just({"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}) | JUNK,
}
ITEM_TYPES = [
    *("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
    *("local_shell_call", "web_search_call", "tool_search_call", "tool_search_output", "compaction", "who_knows"),
]
EVENT_TYPES = [
    *("user_message", "token_count", "task_started", "task_complete", "turn_aborted", "context_compacted"),
    *("agent_message", "agent_reasoning", "who_knows"),
]


def object_with(kinds: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.sampled_from(kinds) | JUNK}, optional=FIELDS)


PAYLOADS = {
    "response_item": object_with(ITEM_TYPES) | JUNK,
    "event_msg": object_with(EVENT_TYPES) | JUNK,
    "session_meta": st.fixed_dictionaries({}, optional=FIELDS) | JUNK,
    "turn_context": st.fixed_dictionaries({}, optional=FIELDS) | JUNK,
    "compacted": JUNK,
    "who_knows": JUNK,
}
LINE = st.one_of(
    *(
        st.fixed_dictionaries(
            {"type": st.just(kind), "timestamp": st.just("2026-03-01T10:00:00Z") | JUNK, "payload": payload}
        )
        for kind, payload in PAYLOADS.items()
    ),
    object_with(ITEM_TYPES),
    JUNK,
)
STREAM_LINE = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["item.started", "item.updated", "item.completed"]),
            "item": st.fixed_dictionaries(
                {
                    "id": IDS,
                    "type": st.sampled_from(
                        [
                            "command_execution",
                            "file_change",
                            "mcp_tool_call",
                            "collab_tool_call",
                            "todo_list",
                            "reasoning",
                        ]
                    ),
                },
                optional=dict.fromkeys(("command", "status", "changes", "result", "error", "exit_code"), JUNK),
            )
            | JUNK,
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["thread.started", "turn.started", "turn.completed", "turn.failed"]),
            "thread_id": IDS,
        }
    ),
    JUNK,
)


@settings(max_examples=120, deadline=None)
@given(lines=st.lists(LINE, max_size=25), shared=st.booleans())
def test_whatever_a_rollout_holds_nothing_is_lost_silently(lines: list[Any], shared: bool) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    ledger = Ledger() if shared else None
    first, source = read(data, name="one/r.jsonl", ledger=ledger)
    stored = sum(turn.stored_calls for turn in of(Turn, first))
    asked = {"function_call", "custom_tool_call", "local_shell_call"}
    kinds = source.used + source.unused
    assert stored >= sum(count for kind, count in kinds.items() if kind.removeprefix("response_item ") in asked)
    assert CodexReader().recognise(data, "x") in Confidence
    CodexReader().family(data, "x")
    if shared:
        # A copy gives no call again.
        second, _ = read(data, name="two/r.jsonl", ledger=ledger)
        assert not any(turn.calls for turn in of(Turn, second))


@settings(max_examples=80, deadline=None)
@given(lines=st.lists(STREAM_LINE, max_size=20))
def test_whatever_a_stream_holds_nothing_is_lost_silently(lines: list[Any]) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    read(data, CodexStreamReader(), ledger=Ledger())
    assert CodexStreamReader().recognise(data, "x") in Confidence
    CodexStreamReader().family(data, "x")


def test_nesting_that_is_too_deep_to_compare_stops_nothing() -> None:
    deep: Any = "x"
    for _ in range(800):
        deep = {"a": [deep]} if isinstance(deep, str) else [deep]
    rollout = Rollout(source=deep).user().call("a", arguments=deep).output("a", deep).line("turn_context", deep)
    rollout.event("token_count", info={"last_token_usage": deep, "total_token_usage": deep})
    rollout.lines[-1]["timestamp"] = deep
    assert fates(rollout.read(ledger=Ledger())) == [Fate.RAN]


# --- fixtures and recordings


@pytest.mark.parametrize(
    ("file", "calls", "marks"),
    [
        (
            "codex/same-check.jsonl",
            22,
            ["generic_repeat 10", "generic_repeat 20", "generic_repeat 21", "generic_repeat 21"],
        ),
        (
            "codex/silent-export.jsonl",
            23,
            [f"known_poll_no_progress {count}" for count in (10, 20, 21, 21)],
        ),
        (
            "codex/before-0.30.jsonl",
            22,
            ["generic_repeat 10", "generic_repeat 20", "generic_repeat 21", "generic_repeat 21"],
        ),
        ("codex/clean-valve.jsonl", 8, []),
        ("codex-exec/pump-log.jsonl", 23, [f"generic_repeat {count}" for count in (10, 20, 21, 21)]),
        ("codex-exec/clean-pumps.jsonl", 30, []),
    ],
)
def test_loops_of_the_fixtures_end_and_clean_ones_do_not(file: str, calls: int, marks: list[str]) -> None:
    report = replay(FIXTURES / file, ruleset="2026.9")
    (session,) = report.sessions
    assert session.calls == calls
    assert [f"{mark.detector} {mark.count}" for run in session.runs for mark in run.marks] == marks
    assert report.sources[0].format == file.split("/")[0]


@pytest.mark.skipif(not (REAL / "codex").is_dir(), reason="the recorded sessions are not here")
def test_recorded_rollouts_are_read_call_by_call_and_every_count_of_tokens_once() -> None:
    for path in sorted((REAL / "codex").iterdir()):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        items = [line["payload"] for line in lines if line["type"] == "response_item"]
        spent: dict[str, int] = {}
        for line in lines:
            info = line["payload"].get("info")
            if line["payload"].get("type") == "token_count" and info:
                spent[json.dumps(info["total_token_usage"])] = info["last_token_usage"]["total_tokens"]
        events, _ = read(path.read_bytes(), name=path.name)
        turns = of(Turn, events)
        assert not of(Problem, events)
        assert [call.id for turn in turns for call in turn.calls] == [
            each["call_id"] for each in items if each["type"] in ("function_call", "custom_tool_call")
        ]
        assert len(of(Result, events)) == sum(each["type"].endswith("_output") for each in items)
        assert [usage for usage in totals(events) if usage] == list(spent.values())
        assert CodexReader().recognise(path.read_bytes()[: 1 << 16], path.name) is Confidence.SURE


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded sessions are not here")
def test_recordings_of_other_formats_are_not_claimed() -> None:
    others = [path for path in REAL.glob("*/*") if path.is_file() and path.parent.name != "codex"]
    assert others
    for path in others:
        with path.open("rb") as file:
            head = file.read(1 << 16)
        assert CodexReader().recognise(head, path.name) is Confidence.NO
        assert CodexStreamReader().recognise(head, path.name) is Confidence.NO
