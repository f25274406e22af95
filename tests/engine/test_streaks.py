"""The incremental streaks answer exactly as a plain walk over the history does."""

from __future__ import annotations

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
operation = st.one_of(append, append, settle, narrow, narrow, churning, churning)


def apply(operations: list[tuple[int, ...]], size: int) -> tuple[History, list[Past]]:
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
                decide(history, record, past, OUTCOMES[became])
        elif waiting:
            record, past = waiting.pop(op[0] % len(waiting))
            decide(history, record, past, OUTCOMES[op[1]])
    return history, plain


def decide(history: History, record: Record, past: Past, judged: Judged | None) -> None:
    history.settle(record, judged, passed_over=judged is REJECTION)
    if judged:
        past.passed_over = judged is REJECTION
        past.outcome, past.no_progress, past.failure = judged.identity, judged.no_progress, judged.failure
        past.unknown_tool, past.veto = judged.unknown_tool, judged.veto


@settings(max_examples=1500, deadline=None)
@given(st.lists(operation, max_size=60), st.integers(1, 25), st.lists(call, max_size=4), st.sampled_from(RUNS))
@example([(1, 0, 7)] * 3 + [(1, 1, 7)] + [(1, 0, -1)] * 2 + [(1, 1, 7)] * 2, 25, [0, 0], "r")
@example([(1, 3, -2), (1, 3, -2), (1, 3, 1), (1, 1), (0, 1)], 25, [], "r")
def test_every_streak_equals_its_plain_walk(
    operations: list[tuple[int, ...]], size: int, siblings: list[int], run: str | None
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
def test_what_leaves_the_history_leaves_memory(operations: list[tuple[int, ...]], size: int) -> None:
    history, plain = apply(operations, size)
    for run in RUNS:
        scope = history.scope(run)
        held = [past for past in plain if past.run == run]
        assert len(scope.records) == len(held)
        assert set(scope._lanes) == {past.signature for past in held}
