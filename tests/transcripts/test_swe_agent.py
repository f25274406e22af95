"""SWE-agent's steps and mini-swe-agent's messages: what becomes a call, an outcome, an ending, and what does not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan import replay
from loopscan.events import Ending, Event, Fate, Problem, Result, RunEnded, SessionStarted, Turn, UserMessage
from loopscan.transcripts.reader import HEAD_BYTES, Confidence, Source
from loopscan.transcripts.swe_agent import SweAgentReader
from loopscan.transcripts.swe_agent.mini import fenced
from tests.transcripts.checks import account, check, of

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "swe-agent"
REAL = ROOT.parent / "shared" / "real"


def read(*documents: Any, name: str = "pond.traj") -> tuple[list[Event], Source]:
    """Read documents, one after the other, and check what holds for every stream."""
    data = "\n".join(json.dumps(each, indent=1) for each in documents).encode()
    source = Source(name, lambda: io.BytesIO(data))
    events = list(SweAgentReader().read(source))
    check(events)
    account(source, len(documents))
    return events, source


def step(action: Any, observation: Any = "", **fields: Any) -> dict[str, Any]:
    return {"action": action, "observation": observation, "response": "Next.", "thought": "Next.", **fields}


def document(*steps: Any, status: Any = "submitted", **fields: Any) -> dict[str, Any]:
    return {
        "environment": "main",
        "trajectory": list(steps),
        "history": [],
        "info": {"exit_status": status},
        **fields,
    }


def mini(*messages: Any, status: Any = "Submitted", **fields: Any) -> dict[str, Any]:
    info = {"mini_version": "2.0.0", "exit_status": status, **fields}
    return {"info": info, "messages": list(messages), "trajectory_format": "mini-swe-agent-1.1"}


def asks(*ids: str, **extra: Any) -> dict[str, Any]:
    calls = [{"id": each, "function": {"name": "bash", "arguments": '{"command": "ls"}'}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, "extra": extra}


def answers(call_id: str | None, output: str = "fish", code: int = 0, **extra: Any) -> dict[str, Any]:
    named = {"role": "user"} if call_id is None else {"role": "tool", "tool_call_id": call_id}
    return {**named, "content": "…", "extra": {"raw_output": output, "returncode": code, **extra}}


def calls(events: list[Event]) -> list[tuple[str, Any]]:
    return [(call.tool, call.arguments) for turn in of(Turn, events) for call in turn.calls]


def fates(events: list[Event]) -> list[Fate]:
    return [call.fate for turn in of(Turn, events) for call in turn.calls]


def details(events: list[Event]) -> list[Any]:
    return [each.outcome.result.get("details") for each in of(Result, events)]


def endings(events: list[Event]) -> list[Ending]:
    return [each.ending for each in of(RunEnded, events)]


# --- SWE-agent


def test_a_command_is_named_after_a_tool_of_swe_agent_or_is_one_of_the_shell() -> None:
    edit = "edit 3:3\nreturn 1\nend_of_edit"
    events, _ = read(document(step("open pond.py\n", "1:"), step(edit, "done"), step("cd a && open b", "x")))
    assert calls(events) == [
        ("open", {"command": "open pond.py"}),
        ("edit", {"command": edit}),
        ("bash", {"command": "cd a && open b"}),
    ]
    assert details(events) == [None, None, {"status": "completed", "aggregated": "x"}]
    assert [turn.where.entry for turn in of(Turn, events)] == [f"trajectory[{place}]" for place in range(3)]
    assert len(of(UserMessage, events)) == 1


def test_tool_calls_are_taken_for_the_action_where_a_step_has_them() -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "open", "arguments": '{"path": "a"}'}}
    damaged = {"id": "c1", "function": {"name": "open", "arguments": '{"path'}}
    steps = [step("open a", "1:", tool_calls=[asked]), step("open a", "1:", tool_calls=[damaged])]
    events, _ = read(document(*steps))
    assert calls(events) == [("open", {"path": "a"}), ("open", '{"path')]
    assert len(of(Result, events)) == 2


def test_attempts_that_swe_agent_rejected_did_not_run_and_a_response_without_a_command_is_a_text() -> None:
    rejected = step("if [ -f a", execution_time=0.0, state={})
    silent = step("rm a", execution_time=0.1, state={})
    old = step("rm a", state="{}")
    events, _ = read(document(step("", execution_time=0.0, state={}), rejected, silent, old))
    assert [len(turn.calls) for turn in of(Turn, events)] == [0, 1, 1, 1]
    assert fates(events) == [Fate.NOT_RUN, Fate.RAN, Fate.RAN]


def test_the_step_by_which_swe_agent_gives_up_is_no_response() -> None:
    said = "Exit due to cost limit"
    new = step("", "Exited (autosubmitted)", execution_time=0.0, state={})
    events, _ = read(document(step("ls", "a"), {**new, "response": said}, status="submitted (exit_cost)"))
    assert len(of(Turn, events)) == 1
    events, _ = read(document(step("ls", "a"), step("exit_context", "Exited"), status="exit_context"))
    assert len(of(Turn, events)) == 1


@pytest.mark.parametrize(
    ("status", "ending"),
    [
        *[(each, Ending.COMPLETED) for each in ("submitted", "Submitted", "exit_command", "exit_forfeit")],
        *[(each, Ending.INTERRUPTED) for each in ("submitted (exit_cost)", "exit_error", "LimitsExceeded", None, 7)],
    ],
)
def test_the_exit_status_says_how_the_run_ended(status: Any, ending: Ending) -> None:
    assert endings(read(document(step("ls", "a"), status=status))[0]) == [ending]
    assert endings(read(mini({"role": "user", "content": "go"}, asks("a"), answers("a"), status=status))[0]) == [
        ending
    ]


def test_without_a_status_a_submission_ends_the_run() -> None:
    assert endings(read({"trajectory": [step("ls", "a"), step("submit", "diff")]})[0]) == [Ending.COMPLETED]


def test_the_cost_of_the_whole_run_counts_once_and_that_of_other_runs_does_not() -> None:
    stats = {"total_cost": 99.0, "instance_cost": 0.5, "tokens_sent": 100, "tokens_received": 10}
    events, _ = read(document(step("ls", "a"), step("ls", "a"), info={"model_stats": stats}))
    assert [turn.usage.total for turn in of(Turn, events)] == [110, 0]
    assert [turn.usage.cost_usd for turn in of(Turn, events)] == [0.5, 0.0]


def test_the_marker_below_an_output_of_old_releases_becomes_its_exit_code() -> None:
    ends = "a///PROCESS-DONE:%d:PROCESS-DONE///"
    events, source = read(document(step("ls", ends % 0), step("ls", ends % 2), step("ls", ends % 0 + " more")))
    assert [each.get("exitCode") for each in details(events)] == [0, 2, None]
    assert [each["aggregated"] for each in details(events)][:2] == ["a", "a"]
    assert source.normalised == {"process-marker": 2}


def test_each_attempt_of_a_run_with_retries_is_a_session_and_the_best_counts_once() -> None:
    attempts = [document(step("ls", "a"), status="exit_cost"), document(step("ls", "b"), step("submit", ""))]
    events, _ = read({**attempts[1], "attempts": attempts})
    assert [each.session for each in of(SessionStarted, events)] == ["pond/attempt-1", "pond/attempt-2"]
    assert len(calls(events)) == 3
    assert endings(events) == [Ending.INTERRUPTED, Ending.COMPLETED]


def test_several_documents_are_several_sessions_and_other_values_are_counted() -> None:
    events, source = read(document(step("ls", "a")), {"x": 1}, document(instance_id="p-7"), document())
    assert [each.session for each in of(SessionStarted, events)] == ["pond", "p-7", "pond#3"]
    assert (source.used, source.unused) == ({"trajectory": 3}, {"other": 1})


def test_the_model_is_that_of_the_configuration() -> None:
    config = {"agent": {"model": {"name": "some-model"}}}
    for written in (config, json.dumps(config)):
        (started,) = of(SessionStarted, read(document(replay_config=written))[0])
        assert started.model == "some-model"


def test_a_document_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    data = json.dumps(document(step("ls", "a"), step("ls", "b")), indent=1).encode()
    data = data[: data.index(b'"b"')]
    source = Source("pond.traj", lambda: io.BytesIO(data))
    events = list(SweAgentReader().read(source))
    check(events)
    assert fates(events) == [Fate.RAN, Fate.LOST]
    assert endings(events) == [Ending.INTERRUPTED]
    assert [each.kind for each in of(Problem, events)] == ["truncated-document"]


# --- mini-swe-agent


def test_tool_calls_of_one_response_are_one_turn_with_the_exit_codes_beside_their_outputs() -> None:
    events, source = read(
        mini({"role": "user", "content": "go"}, asks("a", "b"), answers("b", "no", 1), answers("a"))
    )
    (turn,) = of(Turn, events)
    assert [call.fate for call in turn.calls] == [Fate.RAN, Fate.RAN]
    assert [(each.index, each.outcome.is_error) for each in of(Result, events)] == [(1, True), (0, False)]
    assert details(events)[0] == {"status": "failed", "aggregated": "no", "exitCode": 1}
    assert not source.normalised


def test_a_text_with_one_command_is_a_call_and_the_message_after_it_the_result() -> None:
    one = {"role": "assistant", "content": "So:\n```bash\nls -a\n```"}
    two = {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"}
    told = {"role": "user", "content": "<returncode>1</returncode>\n<output>\nno\n</output>"}
    complaint = {"role": "user", "content": "Give exactly one command."}
    events, source = read(mini({"role": "user", "content": "go"}, one, told, two, complaint, one))
    assert calls(events) == [("bash", {"command": "ls -a"})] * 2
    assert fates(events) == [Fate.RAN, Fate.LOST]
    assert details(events) == [{"status": "failed", "aggregated": "<output>\nno\n</output>", "exitCode": 1}]
    assert len(of(UserMessage, events)) == 1
    assert source.normalised == {"return-code": 1}


def test_calls_of_the_responses_api_are_read_too() -> None:
    asked = {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'}
    response = {"object": "response", "output": [asked], "usage": {"input_tokens": 9, "output_tokens": 1}}
    told = {"type": "function_call_output", "call_id": "a", "output": "x", "extra": {"returncode": 0}}
    events, _ = read(mini({"role": "user", "content": "go"}, response, told))
    assert (calls(events), fates(events)) == ([("bash", {"command": "ls"})], [Fate.RAN])
    assert [turn.usage.total for turn in of(Turn, events)] == [10]


def test_commands_that_were_refused_did_not_run() -> None:
    refusal = {"role": "user", "content": "Wrong.", "extra": {"interrupt_type": "FormatError"}}
    unrun = answers("b", "", -1, exception_info="action was not executed")
    events, _ = read(mini({"role": "user", "content": "go"}, asks("a"), refusal, asks("b"), unrun))
    assert fates(events) == [Fate.NOT_RUN, Fate.NOT_RUN]


def test_users_may_interrupt_type_commands_and_set_a_new_task() -> None:
    typed = {"role": "user", "content": "!", "extra": {"actions": [{"command": "ls"}]}}
    stop = {"role": "user", "content": "No.", "extra": {"interrupt_type": "UserInterruption"}}
    more = {"role": "user", "content": "Also.", "extra": {"interrupt_type": "UserNewTask"}}
    first = [{"role": "user", "content": "go"}, asks("a"), answers("a")]
    events, _ = read(mini(*first, typed, answers(None), stop, asks("b"), answers("b"), more, asks("c"), answers("c")))
    assert [each.steering for each in of(UserMessage, events)] == [False, True, True, False]
    assert not of(Problem, events)
    assert len(endings(events)) == 2


def test_what_each_response_cost_is_believed_before_what_all_did() -> None:
    spent = {"usage": {"prompt_tokens": 90, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}}
    first = [{"role": "user", "content": "go"}, asks("a", response=spent, cost=0.25), answers("a"), asks("b")]
    events, _ = read(mini(*first, model_stats={"instance_cost": 3.0}))
    one, two = (turn.usage for turn in of(Turn, events))
    assert (one.input, one.cache_read, one.output, one.total, one.cost_usd) == (30, 60, 5, 95, 0.25)
    assert two.cost_usd == 0
    events, _ = read(
        mini({"role": "user", "content": "go"}, asks("a"), asks("b"), model_stats={"instance_cost": 3.0})
    )
    assert [turn.usage.cost_usd for turn in of(Turn, events)] == [3.0, 0.0]


# --- which sources, and whatever is in them


def test_trajectories_are_recognised_and_events_of_others_are_not() -> None:
    def sure(value: Any) -> Confidence:
        return SweAgentReader().recognise(json.dumps(value).encode()[:HEAD_BYTES], "x")

    assert sure(document(step("ls", "a"))) is Confidence.SURE
    assert sure(document(step("ls", "a" * HEAD_BYTES))) is Confidence.LIKELY
    assert sure({"attempts": [document(step("ls", "a"))]}) is Confidence.SURE
    assert sure(mini(asks("a"))) is Confidence.SURE
    assert sure(document()) is Confidence.LIKELY
    for other in ({"messages": [asks("a")]}, {"trajectory": [{"action": "run", "args": {}, "source": "agent"}]}):
        assert sure(other) is Confidence.NO
    for other in ([], {}, [1], {"trajectory": 3}, {"trajectory": [3]}, {"info": 1, "attempts": 2}):
        assert sure(other) is Confidence.NO


def test_no_other_recorded_format_is_taken_for_a_trajectory() -> None:
    if not REAL.is_dir():
        pytest.skip("the recorded sessions are not here")
    for path in sorted(REAL.glob("*/*")):
        found = SweAgentReader().recognise(path.read_bytes()[:HEAD_BYTES], str(path))
        assert (found is not Confidence.NO) == (path.parent.name == "swe-agent"), path


@pytest.mark.parametrize("path", sorted((REAL / "swe-agent").glob("*")), ids=lambda path: path.name)
def test_a_recorded_trajectory_is_read_whole(path: Path) -> None:
    """As many calls, results, tokens and dollars as the raw JSON holds."""
    source = Source.of_file(path)
    events = list(SweAgentReader().read(source))
    check(events)
    assert not of(Problem, events)
    raw = json.loads(path.read_text())
    stats = raw["info"].get("model_stats") or {}
    turns = of(Turn, events)
    if "messages" in raw:
        said = [each for each in raw["messages"] if each["role"] == "assistant"]
        assert len(turns) == len(said)
        assert len(of(Result, events)) == sum(each["role"] == "tool" for each in raw["messages"])
        used = [each["extra"]["response"]["usage"]["total_tokens"] for each in said]
        assert [turn.usage.total for turn in turns] == used
    else:
        assert [next(iter(turn.calls)).arguments["command"] for turn in turns] == [
            each["action"].strip() for each in raw["trajectory"]
        ]
        assert len(of(Result, events)) == len(raw["trajectory"])
        sent = stats.get("tokens_sent", 0) + stats.get("tokens_received", 0)
        assert sum(turn.usage.total for turn in turns) == sent
    assert sum(turn.usage.cost_usd for turn in turns) == pytest.approx(stats.get("instance_cost", 0))


@pytest.mark.parametrize(
    ("file", "marks"),
    [
        ("lint-loop.traj", ["warning 10", "block 20", "block 21", "run_end 21"]),
        ("gate-check.traj.json", ["warning 10", "block 20", "block 21", "run_end 21"]),
        ("rows-fixed.traj", []),
    ],
)
def test_a_fixture_makes_the_marks_that_its_story_says(file: str, marks: list[str]) -> None:
    report = replay([FIXTURES / file], ruleset="2026.9")
    (session,) = report.sessions
    assert [f"{mark.kind.value} {mark.count}" for run in session.runs for mark in run.marks] == marks


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FULL = [
    document(
        step("ls", "a", tool_calls=[{"id": "a", "function": {"name": "open", "arguments": "{}"}}], state={}),
        step("", "", execution_time=0.0, state={}),
        info={"model_stats": {"instance_cost": 1.0, "tokens_sent": 5, "tokens_received": 5}},
    ),
    {"attempts": [document(step("ls", "a")), document(step("submit", ""))]},
    mini(
        {"role": "user", "content": "go"},
        asks("a", "b", actions=[{"command": "ls"}], cost=0.5, response={"usage": {"prompt_tokens": 3}}),
        answers("b", timestamp=1e9),
        {"role": "assistant", "content": "```bash\nls\n```"},
        answers(None, exception_info="late"),
        {"role": "user", "content": "no", "extra": {"interrupt_type": "FormatError"}},
        {"object": "response", "output": [{"type": "function_call", "name": "bash", "call_id": "a"}]},
        {"type": "function_call_output", "call_id": "a", "output": [{"text": "x"}]},
    ),
]


def spoilt(value: Any, draw: Any) -> Any:
    """Return ``value`` with anything in place of some of its parts."""
    if draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    if isinstance(value, dict):
        return {key: spoilt(each, draw) for key, each in value.items()}
    return [spoilt(each, draw) for each in value] if isinstance(value, list) else value


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_stands_in_a_field_the_events_hold_what_readers_promise(data: st.DataObject) -> None:
    value = spoilt(data.draw(st.sampled_from(FULL)), data.draw)
    text = json.dumps(value).replace("Infinity", "1e400").encode()
    assert SweAgentReader().recognise(text, "x") in Confidence
    source = Source("x", lambda: io.BytesIO(text))
    check(list(SweAgentReader().read(source)))
    # Elements of an array are values by themselves; anything else is one.
    account(source, len(value) if isinstance(value, list) else 1)


@given(head=st.binary(max_size=200))
def test_any_bytes_can_be_looked_at(head: bytes) -> None:
    assert SweAgentReader().recognise(head, "x") in Confidence
    assert SweAgentReader().family(head, "x") == frozenset()


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Look:\n```bash\nls -l\n```\n", "ls -l"),
        ("```mswea_bash_command  \nls\nwc x\n```", "ls\nwc x"),
        ("```bash\n\n```", ""),
        ("```bash\nls\n```\n```bash\nwc\n```", None),
        ("```bash\nls", None),
        ("```python\nls\n```", None),
        ("```bash\nx" * 1000, None),
    ],
)
def test_a_command_is_what_stands_in_the_only_fence(text: str, command: str | None) -> None:
    assert fenced(text) == command
