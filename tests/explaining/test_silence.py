"""The reason that is named is the real one: shapes of loops that people report as not detected, each told anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from loopscan.events import Call, Compaction, Fate, Result, Turn, Where
from loopscan.explaining.shadows import Reason
from loopscan.explaining.silence import Silence
from tests.explaining.build import explained, options
from tests.tuning.build import Told, error, failing, text

Telling = Callable[[Told], Any]


@dataclass(frozen=True)
class Shape:
    """A session, what it is judged with, and the answer."""

    tell: Telling
    reason: Reason
    begins: str
    """How the first line begins."""
    rules: str = "2026.9"
    settings: dict[str, Any] = field(default_factory=dict)


def each(times: int, one: Callable[[Told, int], Any]) -> Telling:
    """Return what tells of something so many times, each time with its number."""

    def tell(told: Told) -> None:
        for number in range(times):
            one(told, number)

    return tell


def poll(told: Told, came: Any, **more: Any) -> Told:
    return told.turn(("process", {"action": "poll", "sessionId": "job", **more}, came))


def run_by_run(told: Told, number: int) -> None:
    told.user(f"r{number}").call("exec", "heartbeat", "ok", times=2, run=f"r{number}").done(f"r{number}")


def parallel(told: Told, number: int) -> None:
    told.turn(("read", {"of": "notes"}, "same"), ("read", {"of": f"other {number}"}, f"text {number}"))


def mailed(told: Told, number: int) -> None:
    arguments = {"action": "send", "text": "done", "idempotencyKey": f"{number:08x}-1111-4222-8333-123456789abc"}
    told.turn(("message", arguments, text("sent", messageId=f"m{number}")))


SHAPES: dict[str, Shape] = {
    "a poll whose answer never changes, with detection off": Shape(
        lambda told: (
            poll(told, text("waiting", status="running"))
            and [poll(told, text("waiting", status="running")) for _ in range(30)]
        ),
        Reason.DETECTION_OFF,
        "detection is off (argument, overrides.enabled): with it on, process would have been blocked at call 20",
        settings={"enabled": False},
    ),
    "a poll whose answer holds the time": Shape(
        each(30, lambda told, n: poll(told, f"still running at 10:00:{n:02}")),
        Reason.RESULT_CHANGED,
        "result changed: process was called 30 times with the same arguments, and came back otherwise than before 29 "
        "times, in text",
    ),
    "a status with elapsed seconds in its details": Shape(
        each(30, lambda told, n: told.call("status", "job", text("busy", elapsed=n))),
        Reason.RESULT_CHANGED,
        "result changed: status was called 30 times with the same arguments, and came back otherwise than before 29 "
        "times, in details.elapsed",
    ),
    "a result with a request id": Shape(
        each(25, lambda told, n: told.call("fetch", "page", f"503, request {n:06x}a")),
        Reason.RESULT_CHANGED,
        "result changed: fetch was called 25 times",
    ),
    "an error with a temporary path": Shape(
        each(25, lambda told, n: told.call("build", "all", error(f"cannot open /tmp/tmp{n:04}xy/out"))),
        Reason.RESULT_CHANGED,
        "result changed: build was called 25 times with the same arguments, and came back otherwise than before 24 "
        "times, in error",
    ),
    "a log that grows": Shape(
        each(25, lambda told, n: told.call("read", "log", "line\n" * (n + 1))),
        Reason.RESULT_CHANGED,
        "result changed: read was called 25 times",
    ),
    "two results in turn": Shape(
        each(40, lambda told, n: told.call(came=f"state {n % 2}")),
        Reason.RESULT_CHANGED,
        "result changed: read was called 40 times",
    ),
    "messages with fresh keys": Shape(
        each(25, mailed), Reason.ARGUMENTS_CHANGED, "arguments changed: 25 calls of message came to the same"
    ),
    "a nonce in the arguments": Shape(
        each(25, lambda told, n: told.turn(("search", {"query": "cats", "nonce": n}, "nothing found"))),
        Reason.ARGUMENTS_CHANGED,
        "arguments changed: 25 calls of search came to the same, but their arguments differed, in nonce",
    ),
    "commands that fail alike with other arguments": Shape(
        each(25, lambda told, n: told.turn(("exec", {"command": f"ssh host{n}"}, failing("ssh", "no route")))),
        Reason.ARGUMENTS_CHANGED,
        "arguments changed: 25 calls of exec came to the same, but their arguments differed, in command",
        rules="2026.6",
    ),
    "edits that fail alike with other texts": Shape(
        each(25, lambda told, n: told.turn(("edit", {"path": "a", "old": f"x{n}"}, error("no such text")))),
        Reason.ARGUMENTS_CHANGED,
        "arguments changed: 25 calls of edit came to the same, but their arguments differed, in old",
    ),
    "a heartbeat over many runs": Shape(
        each(14, run_by_run),
        Reason.SPLIT_BY_RUNS,
        "split by runs: each run is looked at by itself, and exec repeats over 14 of them; as one scope it would "
        "have been blocked at call 0 of run 11",
    ),
    "few heartbeats over runs": Shape(
        each(6, run_by_run),
        Reason.SPLIT_BY_RUNS,
        "split by runs: each run is looked at by itself, and exec repeats over 6 of them; as one scope it would have "
        "been warned of",
    ),
    "a loop with one other call between": Shape(
        each(25, lambda told, n: told.call().call("list", f"d{n}", f"{n}")),
        Reason.DILUTED,
        "diluted by other calls: 20 calls that count reach back over 40 records, and the history holds 30",
    ),
    "a loop with two other calls between": Shape(
        each(25, lambda told, n: told.call().call("list", f"d{n}", f"{n}").call("list", f"e{n}", f"{n}")),
        Reason.DILUTED,
        "diluted by other calls: 20 calls that count reach back over 60 records, and the history holds 30",
    ),
    "a loop far apart, too short to be blocked": Shape(
        each(12, lambda told, n: [told.call(), *(told.call("list", f"{n} {at}", f"{n} {at}") for at in "abcde")]),
        Reason.DILUTED,
        "diluted by other calls: 10 calls that count reach back over 60 records, and the history holds 30",
    ),
    "three calls with other arguments that fail alike": Shape(
        each(3, lambda told, n: told.turn(("read", {"of": f"file {n}"}, error("no such file")))),
        Reason.NOTHING_REPEATS,
        "nothing repeats",
        rules="latest",
    ),
    "a cycle of three calls": Shape(
        each(25, lambda told, n: told.call("a", came="1").call("b", came="2").call("c", came="3")),
        Reason.DILUTED,
        "diluted by other calls: 20 calls that count reach back over 60 records",
    ),
    "a cycle of four calls": Shape(
        each(25, lambda told, n: [told.call(tool, came=tool) for tool in "abcd"]),
        Reason.DILUTED,
        "diluted by other calls: 20 calls that count reach back over 80 records",
    ),
    "parallel calls that take the room": Shape(
        each(25, parallel), Reason.DILUTED, "diluted by other calls: 20 calls that count reach back over 40 records"
    ),
    "arguments that fail validation": Shape(
        each(25, lambda told, n: told.turn(("exec", {"cmd": "ls"}, (Fate.REJECTED, error("command is required"))))),
        Reason.REJECTED,
        "rejected before recording: 25 calls of exec failed the validation of their arguments, and ruleset 2026.9 "
        "does not record those",
    ),
    "outcomes that are not on record": Shape(
        each(25, lambda told, n: told.turn(("read", {"of": "notes"}, Fate.LOST))),
        Reason.NO_OUTCOME,
        "no outcome recorded: of 25 calls of read with the same arguments the record has no outcome for 25",
    ),
    "a poll with its detector off": Shape(
        each(25, lambda told, n: poll(told, "waiting")),
        Reason.DETECTOR_OFF,
        "detectors.knownPollNoProgress is off (argument, overrides.detectors.knownPollNoProgress): with it on, "
        "process would have been blocked at call 20",
        rules="2026.6",
        settings={"detectors_knownPollNoProgress": False},
    ),
    "a ping-pong with its detector off": Shape(
        each(15, lambda told, n: told.call("a", came="1").call("b", came="2")),
        Reason.DETECTOR_OFF,
        "detectors.pingPong is off (argument, overrides.detectors.pingPong): with it on, b would have been "
        "blocked at call 19",
        rules="2026.6",
        settings={"detectors_pingPong": False},
    ),
    "a ping-pong of which one side changes": Shape(
        each(15, lambda told, n: told.call("a", came="1").call("b", came=f"{n}")),
        Reason.RESULT_CHANGED,
        "result changed: b was called 15 times",
    ),
    "thresholds that were raised": Shape(
        each(25, lambda told, n: told.call()),
        Reason.BELOW_THRESHOLD,
        "below the threshold: read came back alike 25 times in a row (of 25 calls with the same arguments); from 40 "
        "on it is blocked, 15 more",
        rules="2026.6",
        settings={"warningThreshold": 30, "criticalThreshold": 40, "globalCircuitBreakerThreshold": 50},
    ),
    "a short loop": Shape(
        each(7, lambda told, n: told.call()),
        Reason.BELOW_THRESHOLD,
        "below the threshold: read came back alike 7 times in a row (of 7 calls with the same arguments)",
    ),
    "a short loop whose result changes": Shape(
        each(8, lambda told, n: told.call(came=f"{n} done")),
        Reason.BELOW_THRESHOLD,
        "below the threshold, and its result changed: read was called 8 times",
    ),
    "two absent tools in turn": Shape(
        each(20, lambda told, n: told.absent(f"tool{n % 2}")),
        Reason.BELOW_THRESHOLD,
        "below the threshold: tool0, which does not exist, was asked for 10 times",
    ),
    "a compaction with a loop that changes": Shape(
        lambda told: (
            told.call(came="one", times=3).compact() and each(5, lambda told, n: told.call(came=f"{n}"))(told)
        ),
        Reason.RESULT_CHANGED,
        "result changed: read was called 8 times",
    ),
    "a compaction with other calls after it": Shape(
        lambda told: told.call(times=3).compact().call("a").call("b").call("c").call("d"),
        Reason.GUARD_NOT_MET,
        "the post-compaction guard was armed and did not abort: the next 3 outcomes were not those of one and the "
        "same call",
    ),
    "a compaction that 2026.6 does not take for its own": Shape(
        lambda told: told.call(times=3).add(Compaction("r", told.where(), in_run=True)).call(times=5),
        Reason.GUARD_NOT_ARMED,
        "the compaction did not arm the guard: ruleset 2026.6 arms it on the runner's own recovery alone",
        rules="2026.6",
    ),
    "a command under ever new titles": Shape(
        each(12, lambda told, n: told.turn(("exec", {"command": "df", "title": f"look {'i' * n}"}, "full"))),
        Reason.BELOW_THRESHOLD,
        "below the threshold, and its arguments changed: 12 calls of exec came to the same, but their arguments "
        "differed, in title",
    ),
    "work over a list": Shape(
        each(40, lambda told, n: told.call("read", f"file {n}", f"text {'x' * n}")),
        Reason.NOTHING_REPEATS,
        "nothing repeats: no call was made three times",
    ),
    "paging": Shape(
        each(40, lambda told, n: told.turn(("list", {"offset": n * 50}, f"page {'x' * n}"))),
        Reason.NOTHING_REPEATS,
        "nothing repeats",
    ),
}


def silence_in(shape: Shape) -> Silence:
    told = Told()
    told.user()
    shape.tell(told)
    answers, _ = explained(told.events, options(shape.rules, **shape.settings))
    silences = [answer.silence for answer in answers if answer.silence is not None]
    return max(silences, key=lambda found: (found.reason is not Reason.NOTHING_REPEATS, found.calls))


@pytest.mark.parametrize("name", SHAPES)
def test_the_first_line_names_the_real_reason(name: str) -> None:
    shape = SHAPES[name]
    found = silence_in(shape)
    assert (found.reason, found.first_line[: len(shape.begins)]) == (shape.reason, shape.begins)


def test_the_differing_part_stands_side_by_side() -> None:
    found = silence_in(SHAPES["a status with elapsed seconds in its details"])
    assert dict(found.details) == {"arguments": '{"of":"job"}', "call 28": "28", "call 29": "29"}
    assert found.difference is not None
    assert found.difference.path == "details.elapsed"


def test_a_warning_hidden_block_is_told_of() -> None:
    told = Told().user()
    for number in range(20):
        told.call("a", came="1").call("b", came=f"{number}")
    told.call("a", came="1").call("b", came="last")
    answers, _ = explained(told.events, options("2026.6", historySize=60))
    (answer,) = answers
    assert answer.mark is not None
    assert answer.silence is not None
    assert answer.silence.reason is Reason.HIDDEN
    assert answer.silence.first_line.startswith("hidden by a higher rule: calls that alternate are a ping-pong first")


def test_results_that_are_recorded_in_part_are_told_of() -> None:
    told = Told().user()
    for number in range(25):
        call = Call("read", {"of": "notes"}, f"c{number}")
        told.add(Turn("r", told.where(), (call,)))
        came = text(f"{number}")
        told.add(Result("r", Where(told.line), 0, type(came)(came.result, lossy=True)))
    answers, _ = explained(told.events, options())
    (found,) = [answer.silence for answer in answers]
    assert found is not None
    assert ("lossy", "25 results are recorded only in part: the live engine may have seen more") in found.details
