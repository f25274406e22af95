"""The incremental streaks answer exactly as a plain walk over the history does."""

from __future__ import annotations

from itertools import count, islice
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopscan.engine.history import History
from loopscan.engine.outcomes import Judged
from loopscan.engine.records import Record

from . import reference
from .reference import Past

RUNS = (None, "r", "s")
CALLS = (("exec", b"e1"), ("exec", b"e2"), ("exec", b"e3"), ("read", b"r1"), ("read", b"r2"))
X, Y = b"x", b"y"
NUMBERS = count()  # no two calls that are passed over share one
REJECTION = Judged(Y, no_progress=True)
OUTCOMES = (
    REJECTION,
    Judged(X),
    Judged(Y),
    Judged(X, no_progress=True, unknown_tool="a"),
    Judged(X, no_progress=True, unknown_tool="b"),
    Judged(X, no_progress=True),
    Judged(Y, no_progress=True),
    Judged(X, failure=b"f"),
    Judged(Y, failure=b"f"),
    Judged(Y, failure=b"g"),
    Judged(None),
    Judged(None, veto=True),
    None,
)

call = st.integers(0, len(CALLS) - 1)
# (run, call, what becomes of it): an outcome's number, -1 a veto, -2 nothing yet
append = st.tuples(st.integers(0, len(RUNS) - 1), call, st.integers(-2, len(OUTCOMES) - 1))
# settle one that waits: (which, outcome)
settle = st.tuples(st.integers(0, 9), st.integers(0, len(OUTCOMES) - 1))
# A narrow alphabet makes long streaks, a wide one makes breaks.
narrow = st.tuples(st.just(1), st.sampled_from((0, 1)), st.sampled_from((-2, -1, 0, 7, 7, 8)))
churning = st.tuples(st.just(1), st.sampled_from((3, 4)), st.sampled_from((-2, 5, 5, 5, 6)))
# calls that are passed over: (run, how many)
passing = st.tuples(st.just("pass over"), st.integers(0, len(RUNS) - 1), st.sampled_from((1, 1, 2, 3, 9)), st.just(0))
operation = st.one_of(append, append, settle, narrow, narrow, churning, churning, passing)


def apply(operations: list[tuple[Any, ...]], size: int) -> tuple[History, list[Past]]:
    """Build the same history twice: with the incremental streaks, and as a plain list."""
    history, plain = History(size), list[Past]()
    waiting: list[tuple[Record, Past]] = []
    for op in operations:
        if len(op) == 3:
            run, (tool, signature), became = RUNS[op[0]], CALLS[op[1]], op[2]
            past = Past(tool, signature, run, veto=became == -1)
            record = history.append(tool, signature, run, veto=became == -1)
            plain.append(past)
            del plain[:-size]
            if became == -2:
                waiting.append((record, past))
            elif became >= 0:
                decide(history, plain, size, record, past, OUTCOMES[became])
        elif len(op) == 4:
            _, place, calls, _ = op
            history.pass_over(RUNS[place], calls)
            plain += (Past("", b"other %d" % number, RUNS[place]) for number in islice(NUMBERS, calls))
            del plain[:-size]
        elif waiting:
            record, past = waiting.pop(op[0] % len(waiting))
            decide(history, plain, size, record, past, OUTCOMES[op[1]])
    return history, plain


def decide(history: History, plain: list[Past], size: int, record: Record, past: Past, judged: Judged | None) -> None:
    history.settle(record, judged, passed_over=judged is REJECTION)
    if judged is None:
        return
    if not any(each is past for each in plain):  # dropped from the history: the outcome makes a new record
        if judged.identity is None and not judged.veto:
            return
        past = Past(past.tool, past.signature, past.run)
        plain.append(past)
        del plain[:-size]
    past.passed_over = judged is REJECTION
    past.outcome, past.no_progress, past.failure = judged.identity, judged.no_progress, judged.failure
    past.unknown_tool, past.veto = judged.unknown_tool, judged.veto


@settings(max_examples=1500, deadline=None)
@given(st.lists(operation, max_size=60), st.integers(1, 25), st.lists(call, max_size=4), st.sampled_from(RUNS))
@example([(1, 0, 7)] * 3 + [(1, 1, 7)] + [(1, 0, -1)] * 2 + [(1, 1, 7)] * 2, 25, [0, 0], "r")
@example([(1, 3, -2), (1, 3, -2), (1, 3, 1), (1, 1), (0, 1)], 25, [], "r")
def test_every_streak_equals_its_plain_walk(
    operations: list[tuple[Any, ...]], size: int, siblings: list[int], run: str | None
) -> None:
    history, plain = apply(operations, size)
    scope = history.scope(run)
    ahead = scope.projection()
    earlier = [CALLS[sibling] for sibling in siblings]
    for tool, signature in earlier:
        ahead.add(tool, signature)
    records = reference.scope_of(plain, run, earlier)
    for tool, signature in CALLS:
        own = reference.no_progress(records, signature)
        failing = reference.exec_tail(records, signature) if tool == "exec" else 0
        assert scope.no_progress(signature, ahead) == own
        assert scope.exec_failures(tool, signature, ahead) == failing
        assert scope.recent(signature, ahead) == reference.recent(records, signature)
        assert scope.unknown_tool(tool, ahead) == reference.unknown_tool(records, tool)
        assert scope.ping_pong(signature, ahead)[:3] == reference.ping_pong(records, signature)
        assert scope.churn(tool, signature, ahead) == reference.churn(records, tool, signature)
    assert len(history) == len(plain)


@settings(max_examples=300, deadline=None)
@given(st.lists(operation, max_size=80), st.integers(1, 10))
def test_what_leaves_the_history_leaves_memory(operations: list[tuple[Any, ...]], size: int) -> None:
    history, plain = apply(operations, size)
    for run in RUNS:
        scope = history.scope(run)
        held = [past for past in plain if past.run == run]
        assert scope.held == len(held) == sum(record.calls for record in scope.records)
        assert set(scope._lanes) == {past.signature for past in held if past.tool}


# --- streaks, step by step in a short history


TWO_CALLS = {"read": (("read", b"1"), ("ls", b"2")), "exec": (("exec", b"1"), ("exec", b"2"))}
#: What becomes of a record: a veto, nothing yet, or an outcome; few of them, so that streaks meet and break.
BECAME = {
    "read": ("veto", "veto", "later", Judged(b"x"), Judged(b"x"), Judged(b"x"), Judged(b"y"), Judged(None)),
    "exec": ("veto", "later", *[Judged(b"x", failure=b"f")] * 3, Judged(b"y", failure=b"f"), Judged(b"z")),
    "churn": ("later", *[Judged(b"x", no_progress=True)] * 9, Judged(b"y", no_progress=True)),
    "lost": ("later", "veto", Judged(b"x", no_progress=True, unknown_tool="a"), Judged(b"x", no_progress=True)),
}

LATE = (Judged(b"x"), Judged(b"x"), Judged(b"y"), Judged(None, veto=True))


@settings(max_examples=500)
@given(
    st.sampled_from(["read", "exec"]),
    st.sampled_from(list(BECAME)),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 23)), min_size=12, max_size=40),
)
def test_streaks_equal_their_plain_walks_at_every_step(
    tools: str, outcomes: str, size: int, steps: list[tuple[int, int]]
) -> None:
    """A short history evicts at every step, mostly two calls in turn: what a long one seldom meets."""
    history, plain = History(size), list[Past]()
    waiting: list[tuple[Record, Past]] = []
    for number, (which, what) in enumerate(steps):
        tool, signature = TWO_CALLS[tools][number % 2 if which > 3 else which % 2]
        became = BECAME[outcomes][what % len(BECAME[outcomes])]
        past = Past(tool, signature, "r", veto=became == "veto")
        record = history.append(tool, signature, "r", veto=became == "veto")
        plain.append(past)
        del plain[:-size]
        if became == "later":
            waiting.append((record, past))
        elif isinstance(became, Judged):
            decide(history, plain, size, record, past, became)
        if waiting and which > 8:
            decide(history, plain, size, *waiting.pop(what % len(waiting)), LATE[what % len(LATE)])
        scope = history.scope("r")
        ahead = scope.projection()
        for tool, signature in TWO_CALLS[tools]:
            assert scope.no_progress(signature, ahead) == reference.no_progress(plain, signature)
            failing = reference.exec_tail(plain, signature) if tool == "exec" else 0
            assert scope.exec_failures(tool, signature, ahead) == failing
            assert scope.unknown_tool(tool, ahead) == reference.unknown_tool(plain, tool)
            assert scope.ping_pong(signature, ahead)[:3] == reference.ping_pong(plain, signature)
            assert scope.churn(tool, signature, ahead) == reference.churn(plain, tool, signature)
