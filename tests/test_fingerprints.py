"""A fingerprint says what a mark is about, and which of the equal ones it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Where
from loopscan.fingerprints import Content, content, digest
from loopscan.fingerprints import fingerprints as counted_on
from loopscan.marks import Detector, Kind, Level, Mark
from tests.checks.baseline.made import hostile, mark, marks


def fingerprints(session: str, found: list[Mark]) -> list[str]:
    """Return the fingerprints of the first part of a session."""
    return counted_on(session, found, Counter())


def test_equal_marks_in_parts_of_a_session_are_told_apart() -> None:
    seen: Counter[Content] = Counter()
    parts = counted_on("s-1", [mark()], seen) + counted_on("s-1", [mark()], seen)
    assert parts == fingerprints("s-1", [mark(), mark()])


def test_they_never_change_from_one_version_to_the_next() -> None:
    """Others keep them: an alert would be closed and opened anew."""
    assert fingerprints("s-1", [mark(), mark()]) == [
        "a33a2acc39158df82c57144b1696c815",
        "a727d768463446dccf208b877201ed91",
    ]


def test_equal_marks_are_told_apart_by_their_order() -> None:
    first, second = fingerprints("s-1", [mark(), mark()])
    assert first != second
    assert fingerprints("s-1", [mark(), mark(Kind.BLOCK), mark()])[::2] == [first, second]


@given(marks(), st.integers(0, 99), hostile)
def test_no_place_is_part_of_it(found: Mark, number: int, text: str) -> None:
    moved = replace(
        found,
        run=text,
        batch=number,
        call=number,
        tool_call_id=text,
        where=Where(number, text, 1.5),
        message=text,
        threshold=number,
        lossy=True,
        blocked_calls=number,
    )
    assert fingerprints("s-1", [moved]) == fingerprints("s-1", [found])


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": Kind.BLOCK},
        {"detector": Detector.PING_PONG},
        {"level": Level.CRITICAL},
        {"count": 20},
        {"count": None},
        {"tool": "exec"},
        {"paired_tool": "read"},
        {"signature": "0000"},
        {"outcome": None},
    ],
    ids=lambda changed: "-".join(changed),
)
def test_all_of_the_content_is_part_of_it(changed: dict[str, object]) -> None:
    other = replace(mark(), **changed)  # type: ignore[arg-type]
    assert content("s-1", other) != content("s-1", mark())
    assert fingerprints("s-1", [other]) != fingerprints("s-1", [mark()])
    assert fingerprints("s-2", [mark()]) != fingerprints("s-1", [mark()])


@given(st.lists(hostile | st.integers() | st.none(), max_size=4), st.lists(hostile | st.none(), max_size=4))
def test_digests_are_equal_for_the_same_parts_alone(parts: list[str | int | None], others: list[str | None]) -> None:
    assert (digest(*parts) == digest(*others)) == (parts == others)
