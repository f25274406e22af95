"""Marks of one run under two policies: each belongs to one pair, and both directions tell the same."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.comparing.pairing import Kind, paired
from loopscan.events import SessionEvent
from loopscan.marks import Detector, Level, Mark
from loopscan.marks import Kind as MarkKind
from loopscan.rulesets import RULESETS
from tests.explaining.build import explained, options
from tests.tuning.sessions import sessions

MIRRORED = {Kind.GAINED: Kind.LOST, Kind.LOST: Kind.GAINED}


def mark(kind: MarkKind = MarkKind.BLOCK, call: int = 20, signature: str = "a", **more: object) -> Mark:
    level = Level.WARNING if kind is MarkKind.WARNING else Level.CRITICAL
    fields = {"detector": Detector.GENERIC_REPEAT, "count": call, "threshold": 20, "tool": "read", **more}
    return Mark("r", kind, level=level, batch=call, call=call, signature=signature, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ([mark()], [mark()], [None]),
        ([mark()], [mark(count=25, threshold=25)], [None]),
        ([mark()], [], [Kind.LOST]),
        ([], [mark()], [Kind.GAINED]),
        ([mark(call=20)], [mark(call=12)], [Kind.MOVED]),
        ([mark(MarkKind.WARNING, 10)], [mark(MarkKind.BLOCK, 10)], [Kind.CHANGED]),
        ([mark(call=20)], [mark(call=20, detector=Detector.GLOBAL_CIRCUIT_BREAKER)], [Kind.CHANGED]),
        ([mark(call=20)], [mark(call=22, kind=MarkKind.RUN_END)], [Kind.CHANGED]),
        (
            [mark(signature="a")],
            [mark(signature="b", call=21, detector=Detector.PING_PONG)],
            [Kind.LOST, Kind.GAINED],
        ),
        ([mark(call=20), mark(call=21)], [mark(call=21), mark(call=22)], [Kind.MOVED, None]),
    ],
)
def test_what_becomes_of_a_mark(a: list[Mark], b: list[Mark], kinds: list[Kind | None]) -> None:
    assert [pair.kind for pair in paired(a, b)] == kinds


def test_what_merely_arms_a_guard_is_no_mark_of_a_loop() -> None:
    armed = Mark("r", MarkKind.GUARD_ARMED, Detector.COMPACTION_LOOP, Level.INFO, None, 3, 0)
    assert paired([armed], []) == []


@settings(max_examples=25)
@given(sessions(), st.sampled_from(list(RULESETS)), st.sampled_from(list(RULESETS)))
def test_both_directions_tell_the_same_and_every_mark_is_in_one_pair(
    events: list[SessionEvent], one: str, other: str
) -> None:
    a, b = explained(events, options(one))[1], explained(events, options(other))[1]
    a, b = [[each for each in marks if each.run == "r"] for marks in (a, b)]
    there, back = paired(a, b), paired(b, a)
    counted = [each for each in (*a, *b) if each.level is not Level.INFO]
    told = [each for pair in there for each in (pair.a, pair.b) if each is not None]
    assert Counter(map(id, told)) == Counter(map(id, counted))
    mirrored = Counter(MIRRORED.get(pair.kind, pair.kind) if pair.kind else None for pair in back)
    assert Counter(pair.kind for pair in there) == mirrored
    kinds = Counter(pair.kind for pair in there)
    loud = [sum(each.level is not Level.INFO for each in marks) for marks in (a, b)]
    assert kinds[Kind.GAINED] - kinds[Kind.LOST] == loud[1] - loud[0]
    assert all(pair.kind is None for pair in paired(a, a))
