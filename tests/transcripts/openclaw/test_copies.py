"""Entries that were appended again as a new branch count once; ids that repeat along a line are new calls."""

from __future__ import annotations

from typing import Any

import pytest

from loopscan.events import Compaction, Ending, Event, Fate, Problem, Result, RunEnded, Turn, UserMessage
from loopscan.transcripts.ledger import Ledger
from loopscan.transcripts.openclaw import OpenClawReader
from tests.transcripts.build import Transcript, call, check, fates, of, source_of


def read(made: Transcript) -> tuple[list[Event], int]:
    source = source_of(made.bytes())
    events = list(OpenClawReader().read(source))
    check(events)
    return events, source.copies.total()


def tail(made: Transcript, *, below: str, text: str) -> None:
    """Append the entries from the first result on once more, with the result truncated, as 2026.6 does."""
    made.result("c1", text, below=below)
    made.asks(call("c2"))
    made.result("c2", "two")


def started() -> tuple[Transcript, str]:
    made = Transcript()
    made.user("go")
    asked = made.asks(call("c1", path="big.txt"))
    made.result("c1", "x" * 100)
    made.asks(call("c2"))
    made.result("c2", "two")
    return made, asked


def test_a_tail_that_was_appended_again_counts_once_and_the_run_goes_on_after_it() -> None:
    made, asked = started()
    tail(made, below=asked, text="x [truncated]")
    made.asks(call("c3"))
    made.result("c3", "three")
    made.says()
    events, copies = read(made)
    assert copies == 3
    assert [turn.calls[0].id for turn in of(Turn, events)[:-1]] == ["c1", "c2", "c3"]
    assert fates(events) == [Fate.RAN] * 3
    assert of(Result, events)[0].outcome.result["content"][0]["text"] == "x" * 100
    assert {ended.run for ended in of(RunEnded, events)} == {"#1"}
    assert not of(Problem, events)


def test_a_tail_that_was_appended_a_third_time_counts_once_too() -> None:
    made, asked = started()
    tail(made, below=asked, text="x [truncated]")
    tail(made, below=asked, text="x")
    events, copies = read(made)
    assert copies == 6
    assert len(of(Result, events)) == 2


def test_the_first_new_call_in_a_branch_ends_the_copy() -> None:
    """What follows it is new even if it repeats ids."""
    made, asked = started()
    made.result("c1", "x", below=asked)
    made.asks(call("c2", path="other.txt"))
    made.result("c2", "new")
    made.asks(call("c1", path="big.txt"))
    made.result("c1")
    events, copies = read(made)
    assert copies == 1
    assert [turn.calls[0].id for turn in of(Turn, events)] == ["c1", "c2", "c2", "c1"]
    assert fates(events) == [Fate.RAN] * 4


def test_a_copy_may_hold_user_messages_texts_and_compactions() -> None:
    """They are copies if the same message was there before: text and time are the same."""
    made = Transcript()
    base = made.user("one")
    made.asks(call("c1"))
    made.result("c1", "x" * 100)
    made.says("done one")
    made.user("two")
    made.asks(call("c2"))
    made.result("c2")
    made.compaction("so far")
    copied = made.lines[2:9]
    parent, number = base, 100
    for line in copied:
        own = line.split(b'"id": "')[1].split(b'"')[0]
        above = line.split(b'"parentId": "')[1].split(b'"')[0]
        new = b'"id": "n%d"' % number
        line = line.replace(b'"id": "' + own + b'", "parentId"', new + b', "parentId"')
        made.raw(line.replace(b'"parentId": "' + above + b'"', b'"parentId": "' + parent.encode() + b'"'))
        parent, number = f"n{number}", number + 1
    made.parent = parent
    made.asks(call("c3"))
    made.result("c3")
    made.says()
    events, copies = read(made)
    assert copies == 7
    assert [(user.run, user.retry) for user in of(UserMessage, events)] == [("#1", False), ("#2", False)]
    assert [(turn.run, len(turn.calls)) for turn in of(Turn, events)] == [
        ("#1", 1),
        ("#1", 0),
        ("#2", 1),
        ("#2", 1),
        ("#2", 0),
    ]
    assert [(found.run, found.in_run) for found in of(Compaction, events)] == [("#2", True)]


def test_the_prompt_again_after_a_copied_tail_is_a_retry() -> None:
    made, asked = started()
    tail(made, below=asked, text="x [truncated]")
    made.user("go")
    made.asks(call("c3"))
    made.result("c3")
    events, copies = read(made)
    assert copies == 3
    assert [(user.run, user.retry) for user in of(UserMessage, events)] == [("#1", False), ("#1", True)]


def test_the_same_prompt_after_a_copied_tail_of_a_run_that_was_done_is_a_new_run() -> None:
    made, asked = started()
    made.says()
    tail(made, below=asked, text="x [truncated]")
    made.user("go")
    made.says()
    events, _ = read(made)
    assert [(user.run, user.retry) for user in of(UserMessage, events)] == [("#1", False), ("#2", False)]


def test_a_new_user_message_in_a_branch_ends_the_copy() -> None:
    """Else a provider that numbers calls from 0 would lose the calls of the next run."""
    made = Transcript()
    base = made.user("one")
    for _ in range(2):
        made.asks(call("read:0"))
        made.result("read:0")
    made.says()
    made.user("two", below=base)
    made.asks(call("read:0"))
    made.result("read:0")
    events, copies = read(made)
    assert copies == 0
    assert fates(events) == [Fate.RAN] * 3


def test_a_call_that_was_made_before_the_branching_point_is_no_original() -> None:
    made = Transcript()
    made.user("one")
    made.asks(call("read:0"))
    made.result("read:0")
    base = made.says("thinking")
    made.says("a stray note")
    made.asks(call("read:0"), below=base)
    made.result("read:0")
    events, copies = read(made)
    assert copies == 0
    assert len(of(Result, events)) == 2


def test_a_first_result_in_a_branch_is_no_copy_though_its_call_is() -> None:
    made = Transcript()
    base = made.user("go")
    made.asks(call("c1"))
    made.asks(call("c1"), below=base)
    made.result("c1")
    events, copies = read(made)
    assert copies == 1
    assert fates(events) == [Fate.RAN]


def test_a_parent_that_is_not_in_the_record_begins_no_branch() -> None:
    """The line that it names may be one that could not be read."""
    made = Transcript()
    made.user("one")
    made.asks(call("read:0"))
    made.result("read:0")
    made.asks(call("read:0"), below="gone")
    made.result("read:0")
    events, copies = read(made)
    assert copies == 0
    assert fates(events) == [Fate.RAN] * 2


def test_entries_that_another_source_gave_are_left_out() -> None:
    made, _ = started()
    made.asks(call("c3"))
    made.result("c3")
    ledger = Ledger()
    for number in range(1, 6):
        assert ledger.entry("live.jsonl", "s1", f"e{number}") is None

    source = source_of(made.bytes(), ledger=ledger)
    events = list(OpenClawReader().read(source))
    check(events)
    assert source.copies == {"live.jsonl": 5}
    assert [turn.calls[0].id for turn in of(Turn, events)] == ["c3"]
    assert ledger.entry("third.jsonl", "s1", "e7") == source.name


def test_arguments_that_are_nested_deeply_or_hold_lone_surrogates_can_be_compared() -> None:
    deep: object = 1
    for _ in range(600):
        deep = [deep]
    made = Transcript()
    made.user()
    made.asks(call("c1", deep=deep), call("c2", text="\ud800"))
    events, _ = read(made)
    assert len(of(Turn, events)[0].calls) == 2


def test_new_calls_after_a_copied_tail_count_though_a_provider_reuses_ids() -> None:
    """A copy repeats each original once, and in their order: what comes after the last one is new."""
    made = Transcript()
    base = made.user("go")
    for _ in range(3):
        made.asks(call("read:0"))
        made.result("read:0")
    made.parent = base
    for _ in range(5):
        made.asks(call("read:0"))
        made.result("read:0")
    events, copies = read(made)
    assert copies == 6
    assert len(of(Result, events)) == 5


def test_entries_without_an_id_are_known_by_what_they_say() -> None:
    made = Transcript(version=None)
    for text in ("one", "two"):
        made.user(text)
        made.asks(call("c", text=text))
        made.result("c")
    ledger = Ledger()
    first, second = (source_of(made.bytes(), name, ledger=ledger) for name in ("s1.jsonl", "s1.jsonl.bak-1"))
    assert len(of(Turn, list(OpenClawReader().read(first)))) == 2
    assert not of(Turn, list(OpenClawReader().read(second)))
    assert second.copies == {"s1.jsonl": 6}


SPENT = {"input": 2, "output": 100, "cacheRead": 9000, "cacheWrite": 900, "totalTokens": 10_002, "cost": {"total": 0}}


def yielded(text: str = "Waiting for both.", *, below: str = "user", **changes: Any) -> Transcript:
    """A run that yields to others, what came in meanwhile, and the text that closes it, with ``changes``."""
    made = Transcript()
    made.user("research it")
    waits = [{"type": "text", "text": "Waiting for both."}, call("y1", "sessions_yield")]
    made.message("assistant", waits, stopReason="toolUse", api="messages", responseId="r1", usage=SPENT)
    made.result("y1", tool="sessions_yield")
    if below == "user":
        made.user("the first one is done")
    made.entry("custom_message", customType="openclaw.sessions_yield", content="", display=False)
    usage = {**SPENT, "input": 4, "output": 300}  # that of the whole run, but for the total
    made.says(text, **{"api": "cli", "usage": usage, **changes})
    made.says("Both are done.", api="messages", responseId="r2", usage=SPENT)
    return made


@pytest.mark.parametrize("below", ["user", "result"])
def test_the_text_that_closes_a_run_once_more_is_no_response_and_costs_nothing(below: str) -> None:
    made = yielded(below=below)
    made.user("thanks")
    events, copies = read(made)
    assert copies == 1
    assert [turn.usage.total for turn in of(Turn, events)] == [10_002, 10_002]
    assert [turn.usage.output for turn in of(Turn, events)] == [100, 100]
    assert of(RunEnded, events)[0].ending is Ending.COMPLETED


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Something else.", {}),
        ("Waiting for both.", {"api": "messages"}),
        ("Waiting for both.", {"responseId": "r9"}),
        ("Waiting for both.", {"usage": {**SPENT, "totalTokens": 10_003}}),
        ("Waiting for both.", {"usage": {**SPENT, "cost": {"total": 0.01}}}),
    ],
)
def test_a_message_that_differs_in_anything_that_tells_is_a_response(text: str, changes: dict[str, Any]) -> None:
    events, copies = read(yielded(text, **changes))
    assert copies == 0
    assert len(of(Turn, events)) == 3


def test_responses_of_a_model_that_is_run_by_its_command_line_all_count() -> None:
    """They are of the same api, and may say and cost the same."""
    made = Transcript()
    for _ in range(3):
        made.user("poll")
        made.says("Nothing to do.", api="cli", usage=SPENT)
    events, copies = read(made)
    assert copies == 0
    assert len(of(Turn, events)) == 3


def test_a_closing_text_is_one_in_a_copy_of_which_everything_else_was_given() -> None:
    ledger = Ledger()
    made = yielded()
    sources = [source_of(made.bytes(), name, ledger=ledger) for name in ("live.jsonl", "copy.jsonl")]
    first, second = (list(OpenClawReader().read(source)) for source in sources)
    assert len(of(Turn, first)) == 2
    assert not of(Turn, second)
    assert sources[1].copies == {"live.jsonl": 6, "copy.jsonl": 1}
