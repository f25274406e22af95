"""Tasks of Cline: both records of a task, each call once, without what only the user is shown."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import (
    Compaction,
    Ending,
    Event,
    Fate,
    Result,
    RunEnded,
    SessionStarted,
    Turn,
    Usage,
    UserMessage,
)
from loopscan.replayer import replay
from loopscan.transcripts.cline import ClineReader, ClineUiReader
from loopscan.transcripts.cline.answers import answers_in
from loopscan.transcripts.cline.markup import calls_in
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.reader import Confidence, Source
from tests.transcripts.checks import account, check, of

#: Detection as it is without any setting; no configuration of this machine.
ON = {"enabled": True}
FIXTURES = Path(__file__).parents[2] / "fixtures"
TASK = FIXTURES / "cline" / "1788336000000"
REAL = Path(__file__).parents[3] / "shared" / "real" / "cline-ui"
READERS: dict[str, Any] = {"api": ClineReader(), "ui": ClineUiReader()}
NAMES = {"api": "api_conversation_history.json", "ui": "ui_messages.json"}


def read(kind: str, messages: list[Any], name: str | None = None, **options: Any) -> tuple[list[Event], Source]:
    data = json.dumps(messages, indent=1).encode()
    source = Source(name or f"tasks/t1/{NAMES[kind]}", lambda: io.BytesIO(data), **options)
    events = list(READERS[kind].read(source))
    check(events)
    account(source, len(messages))
    assert set(source.normalised) <= set(READERS[kind].traits.normalisers)
    return events, source


def environment(now: object) -> str:
    return f"<environment_details>\n# Current Time\n{now}\n</environment_details>"


def fates(events: list[Event]) -> list[list[Fate]]:
    return [[call.fate for call in turn.calls] for turn in of(Turn, events)]


def outcomes(events: list[Event]) -> list[Any]:
    return [each.outcome for each in of(Result, events)]


# --- the conversation with the model


def user(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts], **fields}


def model(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}], **fields}


START = user("<task>\ngo\n</task>", environment(0))
READ = "I look.\n<read_file>\n<path>a.md</path>\n</read_file>"
COMMAND = "<execute_command>\n<command>make</command>\n</execute_command>"


def asked(answer: str, *more: str, call: str = READ) -> list[Event]:
    return read("api", [START, model(call), user(answer, *more)])[0]


def test_calls_in_the_text_and_their_answers_are_told_without_the_state_of_the_editor() -> None:
    events, source = read(
        "api",
        [
            START,
            model(READ, ts=1_780_000_000_000),
            user("[read_file for 'a.md'] Result:", "red\n\nblue", environment(1)),
            model("<attempt_completion>\n<result>done</result>\n</attempt_completion>"),
        ],
    )
    (turn, last) = of(Turn, events)
    assert [(call.tool, call.arguments, call.fate) for call in turn.calls] == [
        ("read_file", {"path": "a.md"}, Fate.RAN)
    ]
    assert turn.where.time == 1_780_000_000
    assert not last.calls
    assert outcomes(events)[0].result["content"] == [{"type": "text", "text": "red\n\nblue"}]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.COMPLETED]
    assert source.normalised == {"environment-details": 2}
    assert [each.session for each in of(SessionStarted, events)] == ["t1"]


def test_blocks_apart_and_one_text_mean_the_same() -> None:
    apart = asked("[read_file for 'a.md'] Result:", "red", environment(1))
    together = asked(f"[read_file for 'a.md'] Result:\n\nred\n\n{environment(2)}")
    assert outcomes(apart) == outcomes(together)


def test_a_reminder_of_the_list_of_steps_is_no_part_of_the_answer() -> None:
    reminder = (
        "\n\t# TODO LIST UPDATE REQUIRED - You MUST include the task_progress parameter in your NEXT tool call.\n3"
    )
    with_it = asked("[read_file for 'a.md'] Result:", "red", reminder, environment(1))
    assert outcomes(with_it) == outcomes(asked("[read_file for 'a.md'] Result:", "red", environment(1)))
    quoted = "see # task_progress RECOMMENDED in a.md"
    assert outcomes(asked("[read_file for 'a.md'] Result:", quoted))[0].result["content"][0]["text"] == quoted


@pytest.mark.parametrize(
    ("answer", "fate", "error"),
    [
        ("The user denied this operation.", Fate.NOT_RUN, None),
        ('{"status":"denied","message":"no"}', Fate.NOT_RUN, None),
        ("The tool execution failed with the following error:\n<error>\ngone\n</error>", Fate.RAN, "gone"),
        ('{"status":"error","message":"failed","error":"gone"}', Fate.RAN, "gone"),
        (
            "The tool execution failed with the following error:\n<error>\n"
            "Missing value for required parameter 'path'. Retry.\n</error>",
            Fate.REJECTED,
            "Missing value for required parameter 'path'. Retry.",
        ),
        ('{"status":"open"}', Fate.RAN, None),
    ],
)
def test_what_became_of_a_call_is_told_by_its_answer(answer: str, fate: Fate, error: str | None) -> None:
    events = asked("[read_file for 'a.md'] Result:", answer)
    assert fates(events) == [[fate]]
    assert [each.error for each in outcomes(events)] == ([] if fate is Fate.NOT_RUN else [error])


@pytest.mark.parametrize(
    ("answer", "details"),
    [
        ("Command executed.\nOutput:\nok", {"status": "completed", "aggregated": "ok"}),
        ("Command executed.", {"status": "completed", "aggregated": "Command executed."}),
        (
            "Command executed in terminal within '/a'. Exit code: 2\nOutput:\nExit code: 7",
            {"status": "failed", "aggregated": "Exit code: 7", "exitCode": 2},
        ),
        (
            "Command is still running in the user's terminal.\nHere's the output so far:\nup\n\n"
            "You will be updated on the terminal status and new output in the future.",
            {"status": "running", "tail": "up"},
        ),
    ],
)
def test_the_answer_of_a_command_is_that_of_exec(answer: str, details: Any) -> None:
    (outcome,) = outcomes(asked("[execute_command for 'make'] Result:", answer, call=COMMAND))
    assert outcome.result["details"] == details
    assert outcome.is_error == (details["status"] == "failed")


def test_several_calls_in_one_message_have_their_answers_in_order() -> None:
    both = f"{READ}\n{COMMAND}"
    answer = ["[read_file for 'a.md'] Result:", "red", "[execute_command for 'make'] Result:", "Command executed."]
    assert fates(asked(*answer, call=both)) == [[Fate.RAN, Fate.RAN]]
    skipped = (
        "Tool [execute_command] was not executed because a tool has already been used in this message. Only one."
    )
    events = asked(*answer[:2], skipped, call=both)
    assert fates(events) == [[Fate.RAN, Fate.NOT_RUN]]
    assert outcomes(events)[0].result["content"][0]["text"] == "red"


def test_an_answer_that_looks_like_another_header_stays_whole() -> None:
    text = "red\n\n[read_file for 'b.md'] Result:\n\nblue"
    (outcome,) = outcomes(asked("[read_file for 'a.md'] Result:", text))
    assert outcome.result["content"][0]["text"] == text


def test_native_calls_and_results_go_by_id() -> None:
    uses = [
        {"type": "tool_use", "id": "x", "name": "read_file", "input": {"path": "a", "task_progress": "- [ ] 1"}},
        {"type": "tool_use", "id": "y", "name": "attempt_completion", "input": {"result": "done"}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "y", "content": "<feedback>\nmore\n</feedback>"},
        {"type": "tool_result", "tool_use_id": "x", "content": "gone", "is_error": True},
    ]
    metrics = {"tokens": {"prompt": 9, "completion": 2, "cached": 5}, "cost": 0.5}
    events, source = read(
        "api",
        [
            START,
            {"role": "assistant", "content": uses, "metrics": metrics, "modelInfo": {"modelId": "m"}},
            {"role": "user", "content": [*results, {"type": "text", "text": environment(1)}]},
        ],
    )
    (turn,) = of(Turn, events)
    assert [(call.arguments, call.fate) for call in turn.calls] == [({"path": "a"}, Fate.RAN)]
    assert (turn.usage, turn.model) == (Usage(9, 2, 5, 0, 16, 0.5), "m")
    assert [each.error for each in outcomes(events)] == ["gone"]
    assert [each.steering for each in of(UserMessage, events)] == [False, True]
    assert source.normalised["progress-list"] == 1


def test_what_the_user_says_is_new_input_or_steers_while_calls_wait() -> None:
    question = "<ask_followup_question>\n<question>which?</question>\n</ask_followup_question>"
    answered, _ = read(
        "api",
        [START, model(question), user("[ask_followup_question for 'which?'] Result:", "<answer>\nred\n</answer>")],
    )
    assert [each.steering for each in of(UserMessage, answered)] == [False, False]
    denied = asked(
        "[read_file for 'a.md'] Result:",
        "The user denied this operation and provided the following feedback:\n<feedback>\nno\n</feedback>",
    )
    assert [each.steering for each in of(UserMessage, denied)] == [False, True]
    assert fates(denied) == [[Fate.NOT_RUN]]


def test_what_cline_says_in_the_name_of_the_user_opens_no_run() -> None:
    scolded, source = read("api", [START, model("hm"), user("[ERROR] You did not use a tool in your response!")])
    assert len(of(UserMessage, scolded)) == 1
    assert source.unused == {"user": 1}


def test_a_task_that_was_interrupted_ends_its_run_and_its_open_calls_are_lost() -> None:
    events, _ = read("api", [START, model(READ), user("[TASK RESUMPTION] go on"), model("ok")])
    assert fates(events) == [[Fate.LOST], []]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.INTERRUPTED, Ending.COMPLETED]
    assert len(of(UserMessage, events)) == 2


@pytest.mark.parametrize(
    "summary",
    [
        [model("<summarize_task>\n<context>c</context>\n</summarize_task>"), user("[summarize_task] Result:", "c")],
        [model("so far", isSummary=True)],
        [user("cut", isTruncationMarker=True)],
    ],
)
def test_a_summary_is_a_compaction_within_the_run(summary: list[Any]) -> None:
    before = [START, model(READ), user("[read_file for 'a.md'] Result:", "red")]
    events, _ = read("api", [*before, *summary, model(READ)])
    assert len(of(Compaction, events)) == 1
    assert [len(turn.calls) for turn in of(Turn, events) if turn.calls] == [1, 1]


def test_markup_is_read_as_the_model_wrote_it() -> None:
    text = (
        "<thinking>x</thinking><write_to_file>\n<path>a.xml</path>\n<content>\n<b>\n</content> x</b>\n</content>\n"
        "</write_to_file><div></div><read_file><path>cut"
    )
    (call,) = calls_in(text)
    assert call.parameters == {"path": "a.xml", "content": "<b>\n</content> x</b>"}


@given(text=st.lists(st.sampled_from(["<read_file>", "</read_file>", "<path>", "</path>", "<content>", "x", "\n\n"])))
def test_any_markup_gives_calls_that_were_closed(text: list[str]) -> None:
    assert len(calls_in("".join(text))) <= text.count("</read_file>")


@given(
    text=st.lists(st.sampled_from(["[read_file for 'a'] Result:", "[Tool]\n", "] Result:", "[x", "\n\n", "y"])),
    count=st.integers(0, 3),
)
def test_no_more_answers_are_found_than_calls(text: list[str], count: int) -> None:
    whole = "".join(text)
    answers = answers_in(whole, count)
    assert len(answers) <= count
    assert all(answer in whole for answer in answers)


# --- what the user was shown


def shown(kind: str, text: Any = "", *, ask: bool = False, **fields: Any) -> dict[str, Any]:
    written = text if isinstance(text, str) else json.dumps(text)
    way = "ask" if ask else "say"
    return {"ts": 1_780_000_000_000, "type": way, way: kind, "text": written, **fields}


def request(text: str = "", **fields: Any) -> dict[str, Any]:
    usage = {"tokensIn": 3, "tokensOut": 2, "cacheReads": 4, "cacheWrites": 1, "cost": 0.25}
    return shown("api_req_started", {"request": f"{text}\n\n{environment(text)}", **usage, **fields})


FIRST = [shown("text", "go"), request("<task>\ngo\n</task>")]
TOOL = {"tool": "readFile", "path": "a.md", "content": "/x/a.md"}
ANSWER = "[read_file for 'a.md'] Result:\n\nred"


def test_each_request_is_a_response_with_usage_whose_calls_the_next_one_answers() -> None:
    events, _ = read(
        "ui",
        [*FIRST, shown("text", "I look"), shown("tool", TOOL), request(ANSWER), shown("completion_result", "done")],
    )
    (turn, last) = of(Turn, events)
    assert [(call.tool, call.arguments) for call in turn.calls] == [("readFile", {"path": "a.md"})]
    assert turn.usage == last.usage == Usage(3, 2, 4, 1, 10, 0.25)
    assert outcomes(events)[0].result["content"][0]["text"] == "red"
    assert [each.ending for each in of(RunEnded, events)] == [Ending.COMPLETED]


def test_a_question_and_the_statement_after_it_are_one_call_and_what_is_partial_is_none() -> None:
    twice = [shown("tool", TOOL, ask=True, partial=True), shown("tool", TOOL, ask=True), shown("tool", TOOL)]
    events, source = read("ui", [*FIRST, *twice, request(ANSWER)])
    assert fates(events) == [[Fate.RAN], []]
    assert source.unused == {"tool": 2}
    parallel, _ = read("ui", [*FIRST, shown("tool", TOOL), shown("tool", TOOL), request(f"{ANSWER}\n\n{ANSWER}")])
    assert fates(parallel) == [[Fate.RAN, Fate.RAN], []]


def test_a_command_is_one_call_whether_it_was_asked_for_or_not() -> None:
    answer = "[execute_command for 'make'] Result:\n\nCommand executed.\nOutput:\nok"
    for way in (
        [shown("command", "makeREQ_APP", ask=True), shown("command", "make")],
        [shown("command", "make", ask=True)],
        [shown("command", "make")],
    ):
        events, _ = read(
            "ui", [*FIRST, *way, shown("command_output", "o"), shown("command_output", "k"), request(answer)]
        )
        assert [call.arguments for turn in of(Turn, events) for call in turn.calls] == [{"command": "make"}]
        assert outcomes(events)[0].result["details"] == {"status": "completed", "aggregated": "ok"}


def test_what_was_shown_of_an_outcome_counts_where_no_request_follows() -> None:
    server = {"serverName": "wind", "toolName": "forecast", "arguments": "{}"}
    events, _ = read(
        "ui", [*FIRST, shown("use_mcp_server", server, ask=True), shown("mcp_server_response", "breeze")]
    )
    assert outcomes(events)[0].result["content"][0]["text"] == "breeze"
    listed, _ = read("ui", [*FIRST, shown("tool", {"tool": "listFilesTopLevel", "path": ".", "content": "a.md"})])
    assert outcomes(listed)[0].result["content"][0]["text"] == "a.md"
    assert [call.arguments for turn in of(Turn, listed) for call in turn.calls] == [{"path": "."}]
    assert fates(read("ui", [*FIRST, shown("tool", TOOL)])[0]) == [[Fate.LOST]]


def test_feedback_is_new_input_and_steers_while_a_call_waits() -> None:
    done, _ = read("ui", [*FIRST, shown("completion_result", "x"), shown("user_feedback", "more"), request()])
    assert [each.steering for each in of(UserMessage, done)] == [False, False]
    waiting, _ = read("ui", [*FIRST, shown("tool", TOOL), shown("user_feedback", "quick"), request(ANSWER)])
    assert [each.steering for each in of(UserMessage, waiting)] == [False, True]


@pytest.mark.parametrize("said", [[], [shown("user_feedback", "go on")]])
def test_a_task_that_is_taken_up_again_begins_a_run(said: list[Any]) -> None:
    events, _ = read(
        "ui", [*FIRST, shown("tool", TOOL), shown("resume_task", ask=True), *said, request("[TASK RESUMPTION] x")]
    )
    assert len(of(UserMessage, events)) == 2
    assert [each.ending for each in of(RunEnded, events)] == [Ending.INTERRUPTED, Ending.COMPLETED]


def test_condensing_and_cutting_the_context_are_compactions() -> None:
    went_on = [shown("tool", TOOL), request(ANSWER, tokensIn=1), shown("tool", TOOL)]
    condensed, _ = read("ui", [*FIRST, shown("tool", TOOL), shown("condense_context"), request(ANSWER)])
    assert [each.in_run for each in of(Compaction, condensed)] == [True]
    cut = [{**each, "conversationHistoryDeletedRange": [2, 5]} for each in went_on]
    events, _ = read("ui", [*FIRST, *went_on[:1], request(ANSWER), *cut])
    assert len(of(Compaction, events)) == 1


def test_a_response_that_was_cancelled_ran_only_what_was_answered() -> None:
    cancelled = request("x", cancelReason="user_cancelled")
    events, _ = read("ui", [shown("text", "go"), cancelled, shown("tool", TOOL)])
    assert fates(events) == [[Fate.NOT_RUN]]
    assert [each.ending for each in of(RunEnded, events)] == [Ending.INTERRUPTED]


# --- one task, two records


def test_both_records_of_a_task_count_once_and_the_conversation_goes_before() -> None:
    files = {kind: TASK / name for kind, name in NAMES.items()}
    assert READERS["api"].traits.rank < READERS["ui"].traits.rank
    families = {READERS[kind].family(b"", str(path)) for kind, path in files.items()}
    assert families == {frozenset({"cline:1788336000000"})}
    ledger = Ledger()
    events, calls = [], []
    for kind, path in files.items():
        source = Source(str(path), lambda path=path: path.open("rb"), ledger=ledger)  # type: ignore[misc]
        events = list(READERS[kind].read(source))
        check(events)
        calls.append(sum(len(turn.calls) for turn in of(Turn, events)))
    assert calls == [22, 0]
    assert not events
    assert source.copies == {str(files["api"]): len(json.loads(files["ui"].read_bytes()))}


def test_the_two_records_of_a_task_say_the_same_calls_and_outcomes() -> None:
    told = []
    for kind, name in NAMES.items():
        events = list(READERS[kind].read(Source.of_file(TASK / name)))
        told.append((fates(events), outcomes(events), len(of(UserMessage, events)), len(of(RunEnded, events))))
    assert told[0] == told[1]


def test_files_that_are_not_in_the_folder_of_a_task_are_no_family() -> None:
    assert READERS["ui"].family(b"", "x/a.json") == frozenset()
    assert READERS["ui"].family(b"", "x/one/ui_messages.json") != READERS["ui"].family(b"", "y/one/ui_messages.json")
    digits = [READERS["ui"].family(b"", f"{place}/1780000000000/ui_messages.json.gz") for place in "xy"]
    assert digits[0] == digits[1]


@pytest.mark.parametrize(
    ("head", "name", "api", "ui"),
    [
        (json.dumps([START]).encode(), "x", True, False),
        (json.dumps([{"role": "user", "content": "<task>\n" + "long" * 99}])[:99].encode(), "x", True, False),
        (json.dumps([user("hello"), model(READ)]).encode(), "x", False, False),
        (json.dumps([user("hello"), model(READ)]).encode(), "t/api_conversation_history.json", True, False),
        (json.dumps(FIRST, indent=2).encode(), "x", False, True),
        (json.dumps(FIRST)[:60].encode(), "x", False, True),
        (json.dumps([{"ts": 1, "type": "say"}]).encode(), "x", False, False),
        (json.dumps([{"type": "say", "say": "text"}]).encode(), "ui_messages.json", False, False),
        (b"[1, 2]", "ui_messages.json", False, False),
        (b"", "x", False, False),
        (b"\xff[{", "x", False, False),
    ],
)
def test_both_are_recognised_by_their_content(head: bytes, name: str, api: bool, ui: bool) -> None:
    assert READERS["api"].recognise(head, name) is (Confidence.SURE if api else Confidence.NO)
    assert READERS["ui"].recognise(head, name) is (Confidence.SURE if ui else Confidence.NO)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
TEXTS = st.sampled_from(
    [READ, COMMAND, ANSWER, environment(1), "[TASK RESUMPTION]", json.dumps(TOOL), json.dumps({"request": ANSWER})]
) | st.text(max_size=5)
BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "tool_use", "tool_result"]) | ANY},
        optional={"text": TEXTS | ANY, "id": ANY, "name": ANY, "tool_use_id": ANY, "content": ANY, "input": ANY},
    )
    | ANY,
    max_size=3,
)
KINDS = st.sampled_from(
    [
        "text",
        "api_req_started",
        "tool",
        "command",
        "command_output",
        "use_mcp_server",
        "user_feedback",
        "resume_task",
        "completion_result",
        "condense_context",
        "browser_action",
        "followup",
        "api_req_finished",
    ]
)
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant"]) | ANY,
        "content": TEXTS | BLOCKS | ANY,
        "type": st.sampled_from(["say", "ask"]) | ANY,
        "say": KINDS | ANY,
        "ask": KINDS | ANY,
        "text": TEXTS | ANY,
        "ts": ANY,
        "partial": ANY,
        "conversationHistoryDeletedRange": ANY,
        "metrics": st.fixed_dictionaries({"tokens": ANY}) | ANY,
    },
)


@settings(max_examples=150, deadline=None)
@given(entries=st.lists(ENTRIES, max_size=8), kind=st.sampled_from(["api", "ui"]))
def test_whatever_is_in_the_messages_every_promise_is_kept(entries: list[Any], kind: str) -> None:
    data = re.sub(rb"(NaN|-?Infinity)", b"1e999", json.dumps(entries).encode())
    source = Source("t/ui_messages.json", lambda: io.BytesIO(data), ledger=Ledger())
    READERS[kind].recognise(data, source.name)
    check(list(READERS[kind].read(source)))
    account(source, len(entries))


def test_deep_nesting_and_lone_surrogates_do_no_harm() -> None:
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    use = b'{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "t", "input": %s}]}' % deep
    result = b'{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [%s]}]}' % deep
    data = b"[%s, %s, %s]" % (use, result, json.dumps(model("\ud800" + READ)).encode())
    events = list(READERS["api"].read(Source("x", lambda: io.BytesIO(data))))
    check(events)
    assert fates(events) == [[Fate.RAN], [Fate.LOST]]
    tool = json.dumps(b'{"tool": "t\\ud800", "x": %s}'.replace(b"%s", deep).decode()).encode()
    shown_ = b'{"ts": 1, "type": "say", "say": "tool", "text": %s}' % tool
    events, _ = read("ui", [*FIRST, json.loads(shown_), request(ANSWER)])
    assert fates(events) == [[Fate.RAN], []]


def test_the_loop_of_the_fixture_is_found_in_both_records_and_the_clean_one_has_none() -> None:
    for name in NAMES.values():
        (session,) = replay(TASK / name, ruleset="2026.9", config=ON).sessions
        marks = [(mark.kind, mark.count) for run in session.runs for mark in run.marks]
        assert marks == [("warning", 10), ("block", 20), ("block", 21), ("run_end", 21)]
    (clean,) = replay(FIXTURES / "cline-ui" / "kites.json", ruleset="2026.9", config=ON).sessions
    assert (clean.calls, len(clean.runs), [mark for run in clean.runs for mark in run.marks]) == (4, 3, [])


@pytest.mark.skipif(not REAL.is_dir(), reason="no recorded sessions here")
def test_every_call_and_its_cost_of_recorded_tasks_is_there() -> None:
    kinds = {"tool", "command", "use_mcp_server", "load_mcp_documentation"}
    for path in sorted(REAL.glob("*.json")):
        messages = json.loads(path.read_bytes())
        events = list(ClineUiReader().read(Source.of_file(path)))
        check(events)
        turns = of(Turn, events)
        shown_ = [each for each in messages if (each.get("say") or each.get("ask")) in kinds]
        assert sum(len(turn.calls) for turn in turns) == len(of(Result, events)) == len(shown_)
        paid = [json.loads(each["text"]) for each in messages if each.get("say") == "api_req_started"]
        assert len(turns) == len(paid)
        assert sum(turn.usage.cost_usd for turn in turns) == pytest.approx(sum(each["cost"] for each in paid))
