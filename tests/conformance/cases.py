"""Scripted cases of the published releases, and how to put them to our engine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loopscan.engine.detectors import Proposal, decide, measure
from loopscan.engine.history import History
from loopscan.engine.names import compared_arguments, is_known_poll, signature, tool_name
from loopscan.engine.outcomes import judge
from loopscan.engine.records import Record
from loopscan.engine.session import SessionEngine
from loopscan.events import Call, Compaction, Fate, Outcome, Result, Turn, UserMessage, Where
from loopscan.marks import Kind, Mark
from loopscan.modes import ScopeRule
from loopscan.policy import Layer, Policy, resolve
from loopscan.rulesets import ruleset

Row = tuple[Any, ...]


def load(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the cases of a compressed file, one JSON object a line."""
    with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as lines:
        for line in lines:
            yield json.loads(line)


def policy_of(case: dict[str, Any]) -> Policy:
    """Return the policy of a case: its raw block under the ruleset of its release."""
    return resolve(ruleset(case["release"]), block=Layer(case["config"], "argument"))


def marks_of(case: dict[str, Any]) -> list[list[Row]]:
    """Replay a case; return per run its marks as rows that compare with :func:`expected`."""
    runs = case["runs"]
    nameless = [run["run"] is None for run in runs]
    assert all(nameless) or not any(nameless), "a case is either with run ids or without"
    engine = SessionEngine(policy_of(case), scope=ScopeRule.SESSION if all(nameless) else ScopeRule.RUN)
    rows: list[list[Row]] = []
    for number, run in enumerate(runs):
        key = f"run {number}"
        marks: list[tuple[int, Mark]] = []
        engine.feed(UserMessage(key, Where(), run_id=run["run"]))
        for index, batch in enumerate(run["batches"]):
            if batch == "compaction":
                engine.feed(Compaction(key, Where(), in_run=True, from_hook=True))
                continue
            calls = tuple(
                Call(c["tool"], c["args"], c["id"], Fate.RAN if c["outcome"] is not None else Fate.LOST)
                for c in batch
            )
            marks += [(index, mark) for mark in engine.feed(Turn(key, Where(), calls, run_id=run["run"]))]
            for place, call in enumerate(batch):
                if call["outcome"] is not None:
                    outcome = Outcome(result=call["outcome"].get("result"), error=call["outcome"].get("error"))
                    result = Result(key, Where(), place, outcome)
                    marks += [(index, mark) for mark in engine.feed(result)]
        rows.append([_row(index, mark) for index, mark in marks])
    return rows


def _row(index: int, mark: Mark) -> Row:
    return (mark.kind.value, mark.detector.value, mark.count, mark.tool, mark.paired_tool, index)


def expected(case: dict[str, Any]) -> list[list[Row]]:
    """Return per run the marks that the real engine made."""
    names = {"warn": Kind.WARNING.value, "block": Kind.BLOCK.value}
    rows: list[list[Row]] = []
    for run in case["expect"]["runs"]:
        made: list[Row] = [
            (names[a["action"]], a["detector"], a["count"], a["tool"], a.get("paired"), a["batch"])
            for a in run["actions"]
        ]
        if run["ended"] == "critical_loop":
            last = made[-1]
            made.append((Kind.RUN_END.value, *last[1:]))
        if "aborted" in run:
            a = run["aborted"]
            abort = (
                Kind.COMPACTION_ABORT.value,
                "compaction_loop_persisted",
                a["count"],
                a["tool"],
                None,
                a["batch"],
            )
            made.append(abort)
        rows.append(made)
    return rows


def verdicts_of(case: dict[str, Any]) -> list[dict[str, Any] | None]:
    """Replay the steps of a history; return the verdict at each ``ask`` as the packages' own function words it."""
    policy = policy_of(case)
    rules = policy.ruleset
    history = History(policy.history_size)
    calls: dict[str, tuple[Record, str, Any]] = {}
    answers: list[dict[str, Any] | None] = []
    for step in case["steps"]:
        if "outcome" in step:
            came = step["outcome"]
            record, tool, arguments = calls[came["id"]]
            outcome = Outcome(result=came.get("result"), error=came.get("error"))
            history.settle(record, judge(tool, arguments, outcome, rules))
            continue
        asked = step.get("ask") or step["call"]
        tool = tool_name(asked["tool"], rules)
        of_call = signature(tool, compared_arguments(tool, asked["args"], rules))
        if "call" in step:
            calls[asked["id"]] = (history.append(tool, of_call, asked["run"]), tool, asked["args"])
            continue
        scope = history.scope(asked["run"])
        proposal = Proposal(tool, of_call, is_known_poll(tool, asked["args"], rules))
        found = decide(measure(proposal, scope, scope.projection(), rules), policy)
        answers.append(
            found
            and {
                "detector": found.detector.value,
                "level": found.level.value,
                "count": found.count,
                **({"paired": found.paired_tool} if found.paired_tool else {}),
            }
        )
    return answers
