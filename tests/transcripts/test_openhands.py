"""OpenHands events of the SDK, of the classic application and of converted trajectories: calls, outcomes, runs."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan import replay
from loopscan.events import (
    Compaction,
    Ending,
    Event,
    Fate,
    Pause,
    Problem,
    Result,
    RunEnded,
    SessionStarted,
    Turn,
    UserMessage,
)
from loopscan.transcripts.completions import Meter, completion_usage
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.openhands import OpenHandsReader
from loopscan.transcripts.reader import HEAD_BYTES, Confidence, Source
from tests.transcripts.checks import account, check, of

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "openhands"
REAL = ROOT.parent / "shared" / "real"


class Story:
    """Events in the making; every method appends one a second later."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def sdk(self, kind: str, source: str = "environment", **fields: Any) -> str:
        identity = f"e{len(self.events)}"
        time = f"2026-06-01T12:00:{len(self.events):02d}"
        self.events.append({"id": identity, "timestamp": time, "source": source, "kind": kind, **fields})
        return identity

    def asks(self, call: str, tool: str = "terminal", response: str | None = None, **fields: Any) -> str:
        written = json.dumps({"command": "ls", "summary": f"try {call}", "security_risk": "LOW"})
        asked = {"id": call, "name": tool, "arguments": written}
        action = {"kind": "TerminalAction", "command": "ls"}
        made = {"action": action, "tool_name": tool, "tool_call_id": call, "tool_call": asked, **fields}
        return self.sdk("ActionEvent", "agent", llm_response_id=response or f"r-{call}", **made)

    def sees(self, call: str | None, text: str = "ok", tool: str = "terminal", **observed: Any) -> str:
        observation = {"kind": "TerminalObservation", "content": [{"type": "text", "text": text}], **observed}
        return self.sdk("ObservationEvent", tool_name=tool, tool_call_id=call, observation=observation)

    def says(self, by: str, role: str = "user") -> str:
        return self.sdk("MessageEvent", by, llm_message={"role": role, "content": [{"type": "text", "text": "…"}]})

    def state(self, key: str, value: Any) -> str:
        return self.sdk("ConversationStateUpdateEvent", key=key, value=value)

    def classic(self, **fields: Any) -> int:
        identity = len(self.events)
        time = f"2025-06-01T12:00:{identity:02d}"
        self.events.append({"id": identity, "timestamp": time, "source": "agent", **fields})
        return identity

    def acts(self, action: str = "run", source: str = "agent", metadata: Any = None, **args: Any) -> int:
        beside = {} if metadata is None else {"tool_call_metadata": metadata}
        return self.classic(action=action, args=args or {"command": "ls", "thought": "…"}, source=source, **beside)

    def observes(self, cause: int, kind: str = "run", content: str = "ok", **extras: Any) -> int:
        return self.classic(observation=kind, cause=cause, content=content, extras=extras)

    def read(self, name: str = "pond.jsonl", ledger: Ledger | None = None) -> tuple[list[Event], Source]:
        return read("".join(json.dumps(each) + "\n" for each in self.events).encode(), name, ledger=ledger)


def read(data: bytes, name: str = "pond.jsonl", **options: Any) -> tuple[list[Event], Source]:
    source = Source(name, lambda: io.BytesIO(data), **options)
    events = list(OpenHandsReader().read(source))
    check(events)
    return events, source


def calls(events: list[Event]) -> list[tuple[str, Any]]:
    return [(call.tool, call.arguments) for turn in of(Turn, events) for call in turn.calls]


def fates(events: list[Event]) -> list[Fate]:
    return [call.fate for turn in of(Turn, events) for call in turn.calls]


def details(events: list[Event]) -> list[Any]:
    return [(each.outcome.result or {}).get("details") for each in of(Result, events)]


def endings(events: list[Event]) -> list[Ending]:
    return [each.ending for each in of(RunEnded, events)]


def names(events: list[Event]) -> list[str]:
    return [each.session for each in of(SessionStarted, events)]


# --- the SDK


def test_actions_of_one_response_are_one_turn_and_observations_find_them_by_call() -> None:
    story = Story()
    story.says("user")
    story.asks("a", response="r")
    story.asks("b", response="r")
    story.sees("b", "no", exit_code=1)
    story.sees("a", exit_code=0)
    story.asks("c")
    events, source = story.read()
    account(source)
    assert [len(turn.calls) for turn in of(Turn, events)] == [2, 1]
    assert fates(events) == [Fate.RAN, Fate.RAN, Fate.LOST]
    assert [each.index for each in of(Result, events)] == [1, 0]
    assert details(events)[0] == {"status": "failed", "aggregated": "no", "exitCode": 1}


def test_arguments_are_those_that_ran_and_else_those_that_were_written_without_the_notes_beside_them() -> None:
    story = Story()
    for call in "ab":
        story.asks(call)
        story.asks(f"{call}2", action=None)
    events, source = story.read()
    assert calls(events) == [("terminal", {"command": "ls"})] * 4
    assert source.normalised == {"action-notes": 2}


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ({"exit_code": 0}, {"status": "completed", "aggregated": "ok", "exitCode": 0}),
        ({"exit_code": None, "metadata": {"exit_code": 3}}, {"status": "failed", "aggregated": "ok", "exitCode": 3}),
        ({"exit_code": -1, "metadata": {"exit_code": -1}}, {"status": "running", "tail": "ok"}),
        ({"exit_code": None, "metadata": {"exit_code": -1}, "is_error": True}, None),
        ({"exit_code": None}, {"status": "completed", "aggregated": "ok"}),
        ({}, None),
    ],
)
def test_commands_are_over_or_still_running_or_were_refused(observed: dict[str, Any], expected: Any) -> None:
    story = Story()
    story.asks("a")
    story.sees("a", **observed)
    assert details(story.read()[0]) == [expected]


def test_lines_below_an_output_are_taken_off_and_the_exit_code_in_them_is_kept() -> None:
    folder = "[Current working directory: /pond]"
    python = "[Python interpreter: /bin/python]"
    story = Story()
    for call, (text, code) in enumerate(
        [
            ("a\n[The command completed with exit code 0.]", None),
            (f"a\n{folder}\n{python}\n[Command finished with exit code 0]", 0),
            (f"{folder}\n[Command 17 finished with exit code 2]", None),
            ("[The command completed with exit code 130. CTRL+C was sent.]", 130),
            ("a\n[Command finished with exit code 0] or so", 0),
        ]
    ):
        story.asks(str(call))
        story.sees(str(call), text, exit_code=code)
    events, source = story.read()
    assert [(each["aggregated"], each["exitCode"]) for each in details(events)] == [
        ("a", 0),
        (f"a\n{folder}", 0),
        ("", 2),
        ("", 130),
        ("a\n[Command finished with exit code 0] or so", 0),
    ]
    assert source.normalised == {"command-footer": 4}


def test_errors_of_the_agent_are_absent_tools_rejected_arguments_or_thrown() -> None:
    story = Story()
    texts = ["Tool 'swim' not found. Available: [dive]", "Error validating args {} for tool 'terminal'", "It broke."]
    for call, error in enumerate(texts):
        story.asks(str(call), "swim" if call == 0 else "terminal", action=None)
        story.sdk("AgentErrorEvent", "agent", tool_name="terminal", tool_call_id=str(call), error=error)
    events, _ = story.read()
    (absent,) = [each for turn in of(Turn, events) for each in turn.absent]
    assert absent.tool == "swim"
    assert fates(events) == [Fate.REJECTED, Fate.RAN]
    assert [each.outcome.error for each in of(Result, events)] == texts[1:]


def test_what_the_user_refuses_did_not_run_and_what_a_hook_blocks_is_told_to_the_model() -> None:
    story = Story()
    for call, by in (("a", "user"), ("b", "hook")):
        story.asks(call)
        story.sdk("UserRejectObservation", tool_call_id=call, rejection_reason="no", rejection_source=by)
    assert fates(story.read()[0]) == [Fate.NOT_RUN, Fate.RAN]


def test_an_observation_without_text_is_what_its_fields_say() -> None:
    story = Story()
    story.asks("a")
    story.sees("a", "", tasks=[1])
    story.asks("b")
    story.sees("b", "", error="broke")
    events, _ = story.read()
    assert details(events)[0] == {"content": [{"type": "text", "text": ""}], "tasks": [1]}
    assert [each.outcome.is_error for each in of(Result, events)] == [False, True]


def test_an_observation_that_names_only_its_action_finds_the_call() -> None:
    story = Story()
    action = story.asks("a")
    story.sdk("ObservationEvent", action_id=action, observation={"content": "x"})
    assert fates(story.read()[0]) == [Fate.RAN]


def test_runs_begin_with_the_user_and_end_as_the_agent_ends_them() -> None:
    story = Story()
    story.says("user")
    story.asks("a", "finish")
    story.sees("a", tool="finish")
    story.says("user")
    story.says("environment")  # A nudge of the harness.
    story.says("agent", "assistant")
    story.says("user")
    story.asks("b")
    story.sees("b")
    story.sdk("ConversationErrorEvent", code="MaxIterationsReached", detail="…")
    events, source = story.read()
    account(source)
    assert endings(events) == [Ending.COMPLETED, Ending.COMPLETED, Ending.INTERRUPTED]
    assert [each.steering for each in of(UserMessage, events)] == [False] * 3
    assert source.unused == {"MessageEvent": 1}


def test_user_input_while_the_agent_is_at_work_steers_it() -> None:
    story = Story()
    story.says("user")
    story.state("execution_status", "running")
    story.asks("a")
    story.sees("a")
    story.says("user")
    story.says("agent", "assistant")
    story.state("execution_status", "finished")
    story.says("user")
    events, _ = story.read()
    assert [each.steering for each in of(UserMessage, events)] == [False, True, False]
    assert len(endings(events)) == 2


def test_a_condensation_is_a_compaction_within_the_run_that_goes_on() -> None:
    story = Story()
    story.says("user")
    story.asks("a")
    story.sees("a")
    story.sdk("Condensation", summary="…", forgotten_event_ids=[])
    story.asks("b")
    story.says("agent", "assistant")
    story.sdk("Condensation", summary="…", forgotten_event_ids=[])
    events, _ = story.read()
    assert [each.in_run for each in of(Compaction, events)] == [True, False]


def test_running_totals_are_what_each_response_added_to_them() -> None:
    def totals(prompt: int, cost: float) -> dict[str, Any]:
        spent = {"prompt_tokens": prompt, "completion_tokens": 10, "cache_read_tokens": 5}
        metrics = {"model_name": "m", "accumulated_cost": cost, "accumulated_token_usage": spent}
        return {"usage_to_metrics": {"default": metrics, "condenser": {}}}

    story = Story()
    story.state("stats", totals(100, 0.5))
    story.state("stats", totals(100, 0.5))
    story.asks("a", response="r")
    story.asks("b", response="r")
    story.state("full_state", {"stats": totals(300, 0.75)})
    story.asks("c")
    story.asks("d")
    events, _ = story.read()
    usages = [turn.usage for turn in of(Turn, events)]
    assert [usage.total for usage in usages] == [110, 200, 0]
    assert [usage.cost_usd for usage in usages] == [0.5, 0.25, 0]
    assert (usages[0].input, usages[0].cache_read, usages[0].output) == (95, 5, 10)
    assert {turn.model for turn in of(Turn, events)} == {"m"}


def test_calls_behind_the_agent_client_protocol_count_once_when_they_are_over() -> None:
    story = Story()
    beginning = {"tool_call_id": "a", "title": "Read pond", "tool_kind": "read", "raw_input": {"path": "pond"}}
    for status in ("pending", "completed", "completed"):
        story.sdk("ACPToolCallEvent", "agent", status=status, raw_output="fish", **beginning)
    nested = {**beginning, "tool_call_id": "b", "parent_tool_call_id": "a", "raw_input": None}
    story.sdk("ACPToolCallEvent", "agent", status="failed", raw_output={"x": 1}, **nested)
    events, source = story.read()
    account(source)
    assert calls(events) == [("read", {"path": "pond"}), ("read", {"title": "Read pond"})]
    assert [each.outcome.is_error for each in of(Result, events)] == [False, True]
    assert names(events) == ["pond", "pond/a"]


# --- the classic application


def test_actions_and_what_they_cause_are_calls_and_results() -> None:
    story = Story()
    story.acts("message", "user", content="go")
    one = story.acts("run", command="ls", thought="So.", blocking=False)
    story.observes(one, content="no", metadata={"exit_code": 1})
    two = story.acts("think", thought="Hm.")
    story.observes(two, "think", "noted")
    three = story.acts("read", path="a")
    story.observes(three, "error", "no such file")
    events, source = story.read()
    account(source)
    assert calls(events) == [("run", {"command": "ls"}), ("think", {"thought": "Hm."}), ("read", {"path": "a"})]
    assert details(events)[:2] == [{"status": "failed", "aggregated": "no", "exitCode": 1}, None]
    assert of(Result, events)[2].outcome.error == "no such file"


def test_calls_of_one_response_are_one_turn_that_costs_what_the_response_says() -> None:
    def metadata(call: str, response: str = "r") -> dict[str, Any]:
        usage = {"prompt_tokens": 20, "completion_tokens": 2}
        answer = {"id": response, "model": "m", "usage": usage}
        return {"function_name": "execute_bash", "tool_call_id": call, "model_response": answer}

    story = Story()
    one, two = (story.acts(metadata=metadata(call)) for call in "ab")
    story.observes(two, exit_code=0)
    story.observes(one, "user_rejected", "no")
    story.acts("finish", metadata=metadata("c", "s"), outputs={})
    events, _ = story.read()
    assert [(len(turn.calls), turn.usage.total) for turn in of(Turn, events)] == [(2, 22), (0, 22)]
    assert fates(events) == [Fate.NOT_RUN, Fate.RAN]
    assert endings(events) == [Ending.COMPLETED]
    assert calls(events) == [("execute_bash", {"command": "ls"})] * 2


def test_a_tool_of_another_server_is_named_and_called_as_that_server_knows_it() -> None:
    story = Story()
    story.observes(story.acts("call_tool_mcp", name="fish", arguments={"n": 1}), "mcp", "one")
    assert calls(story.read()[0]) == [("fish", {"n": 1})]


def test_what_is_not_of_the_model_is_passed_over() -> None:
    story = Story()
    story.observes(story.acts("run", "user"), content="typed by the user")
    for action in ("recall", "system", "change_agent_state", "null"):
        story.acts(action, "agent", content="")
    story.observes(1, "null", "")
    story.observes(99, "recall", "")
    events, source = story.read()
    account(source)
    assert not events
    assert not source.used


def test_states_say_how_a_run_ended_and_whether_input_came_into_it() -> None:
    story = Story()
    story.acts("message", "user", content="go")
    story.observes(0, "agent_state_changed", agent_state="running")
    story.observes(story.acts(), exit_code=0)
    story.acts("message", "user", content="also")
    story.observes(story.acts(), exit_code=0)
    story.observes(0, "agent_state_changed", agent_state="error")
    story.acts("message", "user", content="again")
    events, _ = story.read()
    assert [each.steering for each in of(UserMessage, events)] == [False, True, False]
    assert endings(events) == [Ending.INTERRUPTED, Ending.INTERRUPTED]


def test_what_an_agent_does_that_another_one_delegates_to_is_a_session_of_its_own() -> None:
    story = Story()
    story.acts("message", "user", content="go")
    given = story.acts("delegate", agent="Diver", inputs={"task": "dive"})
    story.observes(story.acts(), exit_code=0)
    inner = story.acts("delegate", agent="Fish", inputs={})
    story.acts("read", path="a")
    story.observes(inner, "delegate", "found")
    story.acts("finish", outputs={})
    story.observes(given, "delegate", "done")
    story.acts("finish", outputs={})
    events, _ = story.read()
    assert names(events) == ["pond", "pond/delegate-1", "pond/delegate-2"]
    assert [each.agent for each in of(SessionStarted, events)] == [None, "Diver", "Fish"]
    assert sorted(fates(events)) == [Fate.LOST, Fate.RAN, Fate.RAN, Fate.RAN]
    assert not of(Problem, events)


def test_a_delegate_that_never_comes_back_leaves_its_call_without_an_outcome() -> None:
    story = Story()
    story.acts("delegate", agent="Diver", inputs={})
    story.acts("run")
    events, _ = story.read()
    assert fates(events) == [Fate.LOST, Fate.LOST]


# --- converted trajectories, and whole documents


def test_a_step_of_a_converted_trajectory_is_a_call_and_what_it_came_back_with() -> None:
    def step(number: int, action: str | None, **fields: Any) -> dict[str, Any]:
        usage = {"input_tokens": 20, "output_tokens": 2, "cost": 0.5, "model": "m"}
        agent = {"thought": "…", "action": action}
        return {
            "step": number,
            "user_message": None,
            "agent": agent,
            "environment": "x",
            "step_usage": usage,
            **fields,
        }

    steps = [
        step(0, "Running command: ls", user_message="go"),
        step(1, "Running Python code interactively: 1"),
        step(2, "Diving", environment=None),
        step(3, None),
    ]
    events, source = read(json.dumps(steps, indent=1).encode(), "pond.json")
    account(source, len(steps))
    assert calls(events) == [
        ("run", {"command": "ls"}),
        ("run_ipython", {"code": "1"}),
        ("action", {"action": "Diving"}),
    ]
    assert fates(events) == [Fate.RAN, Fate.RAN, Fate.LOST]
    assert details(events) == [{"status": "completed", "aggregated": "x"}, None]
    assert [(turn.usage.total, turn.usage.cost_usd) for turn in of(Turn, events)] == [(22, 0.5)] * 4
    assert endings(events) == [Ending.COMPLETED]


def test_events_stand_in_lines_in_an_array_or_in_a_document_and_mean_the_same() -> None:
    story = Story()
    story.says("user")
    story.asks("a")
    story.sees("a", exit_code=0)
    forms = [
        "".join(json.dumps(each) + "\n" for each in story.events),
        json.dumps(story.events),
        json.dumps(story.events, indent=1),
        "[\n" + ",\n".join(json.dumps(each) for each in story.events) + "\n]",
        "".join(json.dumps(each, indent=1) for each in story.events),
        json.dumps({"events": story.events}),
        json.dumps({"instance_id": "pond", "history": [story.events[:1], story.events[1:]]}, indent=1),
    ]
    for form in forms:
        events, _ = read(form.encode())
        assert names(events) == ["pond"]
        assert [type(each).__name__ for each in events] == [
            *("SessionStarted", "UserMessage", "Turn", "Result", "RunEnded", "SessionEnded")
        ]


def test_lines_that_hold_a_conversation_each_are_sessions_named_after_their_task() -> None:
    story = Story()
    story.observes(story.acts(), exit_code=0)
    lines = [{"instance_id": each, "history": story.events} for each in ("a", "b", "b")]
    events, source = read("".join(json.dumps(each) + "\n" for each in [*lines, {"x": 1}]).encode())
    account(source)
    assert names(events) == ["a", "b", "b#3"]
    assert len(of(Result, events)) == 3
    assert (source.used, source.unused) == ({"conversation": 3}, {"other": 1})


def test_a_damaged_line_costs_no_other_wherever_it_stands() -> None:
    story = Story()
    story.says("user")
    story.asks("a")
    story.sees("a", exit_code=0)
    lines = [json.dumps(each).encode() for each in story.events]
    for place in range(len(lines) + 1):
        broken = [*lines[:place], b'{"id": "e9", "thought": [{"te', *lines[place:]]
        events, source = read(b"\n".join(broken) + b"\n")
        account(source)
        assert fates(events) == [Fate.RAN]
        assert [each.kind for each in of(Problem, events)] == ["malformed-json"]


def test_a_source_that_is_followed_pauses_and_goes_on() -> None:
    story = Story()
    story.says("user")
    story.asks("a")
    data = "".join(json.dumps(each) + "\n" for each in story.events).encode()
    source = Source("pond.jsonl", lambda: io.BytesIO(data), follow=True)
    stream = OpenHandsReader().read(source)
    assert any(isinstance(next(stream), Pause) for _ in range(4))


def test_events_that_were_given_before_are_copies() -> None:
    story = Story()
    story.says("user")
    story.asks("a")
    story.sees("a", exit_code=0)
    ledger = Ledger()
    story.read("one.jsonl", ledger)
    story.asks("b")
    story.events += story.events[1:3]
    events, source = story.read("two.jsonl", ledger)
    account(source)
    assert calls(events) == [("terminal", {"command": "ls"})]
    assert source.copies == {"one.jsonl": 3, "two.jsonl": 2}
    assert OpenHandsReader().family(json.dumps(story.events[0]).encode(), "x") == {
        "e0 2026-06-01T12:00:00 MessageEvent  "
    }


# --- what was spent


def test_a_meter_counts_no_growth_twice_and_no_shrinking() -> None:
    meter = Meter()
    for total in (5, 5, 3, 9):
        meter.read({"a": completion_usage({"prompt_tokens": total})})
    assert meter.due().total == 9
    assert meter.due().total == 0
    meter.read({"a": completion_usage({"prompt_tokens": 10}), "b": completion_usage({"prompt_tokens": 1})})
    assert meter.due().total == 2


@given(totals=st.lists(st.integers(0, 100)))
def test_what_a_meter_says_adds_up_to_the_largest_total(totals: list[int]) -> None:
    meter = Meter()
    said = 0
    for total in totals:
        meter.read({"a": completion_usage({"completion_tokens": total})})
        said += meter.due().output
    assert said == max(totals, default=0)


# --- which sources, and whatever is in them


def recognised(value: Any, name: str = "x") -> Confidence:
    return OpenHandsReader().recognise(json.dumps(value).encode()[:HEAD_BYTES], name)


def test_events_are_recognised_and_files_that_hold_one_of_a_folder_are_left_alone() -> None:
    story = Story()
    story.says("user")
    story.acts()
    story.observes(1)
    for value in (*story.events, story.events, {"history": story.events}, {"history": [story.events]}):
        assert recognised(value) is Confidence.SURE
    assert recognised(story.events[0], "c/events/event-00000-e0.json") is Confidence.NO
    assert recognised(story.events[1], "c/events/1.json") is Confidence.NO
    for other in (
        [],
        {},
        [[]],
        {"kind": "Event"},
        {"events": 1},
        {"trajectory": [{"action": "ls", "observation": ""}]},
    ):
        assert recognised(other) is Confidence.NO


def test_no_other_recorded_format_is_taken_for_events() -> None:
    if not REAL.is_dir():
        pytest.skip("the recorded sessions are not here")
    for path in sorted(REAL.glob("*/*")):
        found = OpenHandsReader().recognise(path.read_bytes()[:HEAD_BYTES], str(path))
        assert (found is not Confidence.NO) == (path.parent.name == "openhands"), path


@pytest.mark.parametrize("path", sorted((REAL / "openhands").glob("*.json")), ids=lambda path: path.name)
def test_a_recorded_trajectory_of_steps_is_read_whole(path: Path) -> None:
    source = Source.of_file(path)
    events = list(OpenHandsReader().read(source))
    check(events)
    steps = json.loads(path.read_text())
    account(source, len(steps))
    assert not of(Problem, events)
    assert len(of(Turn, events)) == len(steps)
    assert len(calls(events)) == sum(each["agent"]["action"] is not None for each in steps)
    assert len(of(Result, events)) == sum(each["environment"] is not None for each in steps)
    assert sum(turn.usage.cost_usd for turn in of(Turn, events)) == pytest.approx(
        steps[-1]["accumulated_usage"]["accumulated_cost"]
    )


@pytest.mark.parametrize("path", sorted((REAL / "openhands").glob("*.jsonl")), ids=lambda path: path.name)
def test_recorded_events_of_the_sdk_are_read_whole(path: Path) -> None:
    source = Source.of_file(path)
    events = list(OpenHandsReader().read(source))
    check(events)
    account(source)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    asked = {each["tool_call_id"] for each in lines if each["kind"] == "ActionEvent"}
    told = [each["tool_call_id"] for each in lines if each["kind"] == "ObservationEvent"]
    assert len(calls(events)) == len(asked)
    assert len(of(Result, events)) == sum(each in asked for each in told)
    # Their actions are missing in the file.
    assert [each.kind for each in of(Problem, events)] == ["orphan-result"] * sum(each not in asked for each in told)
    metrics = [each["value"]["usage_to_metrics"] for each in lines if isinstance(each.get("value"), dict)]
    spent = [use["accumulated_token_usage"] for use in metrics[-1].values()] if metrics else []
    assert sum(turn.usage.total for turn in of(Turn, events)) == sum(
        use["prompt_tokens"] + use["completion_tokens"] for use in spent
    )


@pytest.mark.parametrize(
    ("file", "marks"),
    [
        ("cider-loop.jsonl", ["warning 10", "block 20", "block 21", "run_end 21"]),
        ("trees-counted.json", ["guard_armed None"]),
    ],
)
def test_a_fixture_makes_the_marks_that_its_story_says(file: str, marks: list[str]) -> None:
    report = replay([FIXTURES / file], ruleset="2026.9")
    found = [mark for session in report.sessions for run in session.runs for mark in run.marks]
    assert [f"{mark.kind.value} {mark.count}" for mark in found] == marks


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def full() -> list[Any]:
    story = Story()
    story.says("user")
    story.state("execution_status", "running")
    metrics = {"accumulated_cost": 1.0, "accumulated_token_usage": {"prompt_tokens": 5}}
    story.state("stats", {"usage_to_metrics": {"default": metrics}})
    story.asks("a", response="r")
    story.asks("b", response="r", action=None)
    story.sees("b", "x\n[Command finished with exit code 1]", exit_code=1, metadata={"exit_code": 1})
    story.sdk("AgentErrorEvent", tool_call_id="a", error="Tool 'terminal' not found")
    story.sdk("Condensation")
    story.asks("c", "finish")
    story.sees("c", tool="finish")
    story.sdk("UserRejectObservation", tool_call_id="c")
    story.sdk("ConversationErrorEvent")
    story.sdk("ACPToolCallEvent", status="completed", tool_call_id="d", parent_tool_call_id="a", raw_output=[1])
    story.acts("message", "user", content="go")
    metadata = {"function_name": "execute_bash", "tool_call_id": "e", "model_response": {"id": "r", "usage": {}}}
    story.observes(story.acts(metadata=metadata), metadata={"exit_code": -1})
    given = story.acts("delegate", agent="Diver")
    story.observes(story.acts("read", path="a"), "error", "no")
    story.observes(0, "agent_state_changed", "", agent_state="error")
    story.observes(given, "delegate", "")
    story.acts("condensation", summary="…")
    story.acts("finish", outputs={})
    story.events.append(
        {"step": 1, "user_message": "x", "agent": {"action": "Running command: ls"}, "environment": "x"}
    )
    return story.events


def spoilt(value: Any, draw: Any) -> Any:
    """Return ``value`` with anything in place of some of its parts."""
    if draw(st.integers(0, 14)) == 0:
        return draw(JSON)
    if isinstance(value, dict):
        return {key: spoilt(each, draw) for key, each in value.items()}
    return [spoilt(each, draw) for each in value] if isinstance(value, list) else value


FULL = full()
PART = st.lists(st.sampled_from(FULL), max_size=12)


@given(data=st.data(), part=PART, lines=st.booleans())
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_stands_in_a_field_the_events_hold_what_readers_promise(
    data: st.DataObject, part: list[Any], lines: bool
) -> None:
    values = [spoilt(each, data.draw) for each in part]
    written = [json.dumps(each).replace("Infinity", "1e400") for each in values]
    text = ("".join(f"{each}\n" for each in written) if lines else "[" + ",".join(written) + "]").encode()
    assert OpenHandsReader().recognise(text, "x") in Confidence
    _, source = read(text)
    if not lines:
        account(source, len(values))
    elif values and isinstance(values[0], dict):
        account(source)


@given(order=st.permutations(FULL))
@settings(max_examples=60, deadline=None)
def test_in_whatever_order_events_stand_every_call_is_told_once(order: list[Any]) -> None:
    events, source = read("".join(json.dumps(each) + "\n" for each in order).encode())
    account(source)
    asked = sum(turn.stored_calls for turn in of(Turn, events))
    assert asked == 8


@given(head=st.binary(max_size=200))
def test_any_bytes_can_be_looked_at(head: bytes) -> None:
    assert OpenHandsReader().recognise(head, "x") in Confidence
    assert isinstance(OpenHandsReader().family(head, "x"), frozenset)
