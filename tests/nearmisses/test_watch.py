"""Blind spots are found and told by their tightest relaxation; work that gets on stays silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Outcome, SessionEnded, SessionEvent, SessionStarted, Where
from loopscan.nearmisses.watch import NearMiss, Relaxation
from loopscan.nearmisses.words import cost_of, place_of, sentence_of
from loopscan.rulesets import RULESETS
from loopscan.sessions import Options, SessionReplay
from tests.explaining.build import options
from tests.tuning.build import Told, error, failing, text
from tests.tuning.sessions import sessions

Telling = Callable[[Told, int], Any]


def misses(events: list[SessionEvent], rules: str = "2026.9", **settings: Any) -> list[NearMiss]:
    asked = options(rules, **settings)
    replaying = SessionReplay(
        "s", SessionStarted("s", Where()), Options(asked.policy, mode=asked.mode, scope=asked.scope, near_misses=True)
    )
    for event in events:
        replaying.feed(event)
    found = replaying.finish(SessionEnded(Where())).near_misses
    assert found is not None
    return found


def told(times: int, one: Telling) -> list[SessionEvent]:
    made = Told().user()
    for number in range(times):
        one(made, number)
    return made.events


NOISY = (7, 3, 9, 1, 8, 2)

FOUND: dict[str, tuple[Telling, Relaxation, int]] = {
    "a poll whose answer holds the time": (
        lambda made, n: made.turn(("process", {"action": "poll"}, f"running, 10:{n:02}:00")), Relaxation.OUTCOMES, 24,
    ),
    "a status with numbers that go up and down": (
        lambda made, n: made.call("status", "job", f"load {NOISY[n % 6]}"), Relaxation.OUTCOMES, 24,
    ),
    "an error with a temporary path": (
        lambda made, n: made.call("build", "all", error(f"cannot open /tmp/x{n}/out")), Relaxation.OUTCOMES, 24,
    ),
    "edits that fail alike": (
        lambda made, n: made.turn(("edit", {"path": "a", "old": f"x{'y' * n}"}, error("no such text"))),
        Relaxation.SAME_ERROR,
        24,
    ),
    "messages with fresh keys": (
        lambda made, n: made.turn(("post", {"key": f"{n:08x}-1111-4222-8333-123456789abc"}, "sent")),
        Relaxation.ARGUMENTS,
        24,
    ),
    "a cycle of three calls": (lambda made, n: made.call("abc"[n % 3], came="abc"[n % 3]), Relaxation.CYCLE, 24),
    "a cycle of eight calls": (lambda made, n: made.call("abcdefgh"[n % 8], came="x"), Relaxation.CYCLE, 24),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_a_blind_spot_is_told_of_once(name: str) -> None:
    one, relaxation, calls = FOUND[name]
    (found,) = misses(told(24, one))
    assert (found.relaxation, found.calls, found.first_call, found.last_call) == (relaxation, calls, 0, 23)
    assert found.tokens == 165 * (24 - 20)
    assert found.period == {"a cycle of three calls": 3, "a cycle of eight calls": 8}.get(name, 1)


@pytest.mark.parametrize("name", FOUND)
def test_fewer_calls_than_the_engine_blocks_at_are_none(name: str) -> None:
    assert misses(told(19, FOUND[name][0])) == []


SILENT: dict[str, Telling] = {
    "paging": lambda made, n: made.turn(("list", {"offset": n * 50}, f"items {n * 50} to {n * 50 + 49}")),
    "paging with a cursor": lambda made, n: made.turn(("list", {"cursor": f"{n:x}" * 9}, f"items from {n * 10}")),
    "work over a list": lambda made, n: made.turn(("read", {"path": f"file{n}.txt"}, f"text {'x' * n}")),
    "work over numbered files": lambda made, n: made.turn(("convert", {"path": f"img{n}.png"}, "done")),
    "a poll that progresses": lambda made, n: made.turn(("process", {"action": "poll"}, f"{n * 4} % done")),
    "a poll that counts down": lambda made, n: made.turn(
        ("process", {"action": "poll"}, f"{30 - n} left, 10:00:{n:02}")
    ),
    "a log that grows": lambda made, n: made.call("read", "log", "line\n" * (n + 1)),
    "tests that fail otherwise": lambda made, n: made.turn(("exec", {"command": f"t {n}"}, failing("t", "x" * n))),
    "different words": lambda made, n: made.call("ask", "it", "answer " + "abcdefghijklmnopqrstuvwxyz"[n]),
    "a loop that the engine sees": lambda made, n: made.call(),
    "a ping-pong that the engine sees": lambda made, n: made.call("ab"[n % 2], came="x"),
}


@pytest.mark.parametrize("rules", RULESETS)
@pytest.mark.parametrize("name", SILENT)
def test_what_gets_on_or_is_seen_is_silent(name: str, rules: str) -> None:
    assert misses(told(26, SILENT[name]), rules) == []


def test_a_heartbeat_over_runs_is_told_of_once() -> None:
    made = Told()
    for number in range(14):
        made.user(f"r{number}").call("exec", "beat", "ok", times=2, run=f"r{number}").done(f"r{number}")
    (found,) = misses(made.events)
    assert (found.relaxation, found.tools, found.run) == (Relaxation.ONE_SCOPE, ("exec",), 10)


def test_the_sentences_say_what_would_have_to_be_the_same() -> None:
    for one, relaxation, _ in FOUND.values():
        (found,) = misses(told(24, one))
        words = sentence_of(found)
        assert "24" in words
        assert {"outcomes": "each result is new", "same_error": "with other arguments", "cycle": "calls a round"}.get(
            relaxation.value, "arguments alike"
        ) in words
        assert place_of(found) == "run 0, calls 0–23"
        assert cost_of(found) == "660 tokens, $0.04 from there on, at most"


@settings(max_examples=20)
@given(sessions(), st.sampled_from(list(RULESETS)))
def test_any_session_is_looked_at_and_the_marks_stay_the_same(events: list[SessionEvent], rules: str) -> None:
    asked = options(rules, **({"criticalThreshold": 6, "warningThreshold": 5} if rules == "2026.6" else {}))
    plain = SessionReplay("s", SessionStarted("s", Where()), asked)
    near = SessionReplay("s", SessionStarted("s", Where()), Options(asked.policy, near_misses=True))
    assert [plain.feed(event) for event in events] == [near.feed(event) for event in events]
    found = near.finish(SessionEnded(Where())).near_misses
    assert found is not None
    for each in found:
        assert each.calls >= asked.policy.critical
        assert each.tokens >= 0
        assert sentence_of(each)


def _naive(sequence: list[int], least: int) -> bool:
    """Say whether three to eight different things take turns for so many steps, found by looking at every stretch."""
    for period in range(3, 9):
        length = max(least, 3 * period)
        for start in range(len(sequence) - length + 1):
            stretch = sequence[start : start + length]
            if all(stretch[at] == stretch[at - period] for at in range(period, length)) and not any(
                period % shorter == 0 and all(stretch[at] == stretch[at - shorter] for at in range(shorter, length))
                for shorter in range(1, period)
            ):
                return True
    return False


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 3), max_size=6),
    st.lists(st.integers(0, 3), min_size=1, max_size=9),
    st.integers(1, 12),
    st.lists(st.integers(0, 3), max_size=6),
)
def test_cycles_are_those_that_a_naive_search_finds(
    before: list[int], turn: list[int], rounds: int, after: list[int]
) -> None:
    sequence = before + turn * rounds + after
    made = Told().user()
    for number in sequence:
        made.call("tool", f"{number}", text(f"{'x' * number}"))
    found = [each for each in misses(made.events, enabled=False) if each.relaxation is Relaxation.CYCLE]
    assert bool(found) == _naive(sequence, 20)


def test_an_outcome_without_identity_is_passed_over() -> None:
    denied = Outcome({"content": [], "details": {"status": "blocked", "deniedReason": "tool-loop"}})
    assert misses(told(30, lambda made, n: made.call(came=denied)), enabled=False) == []
