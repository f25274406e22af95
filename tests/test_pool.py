"""Sources that may hold the same session are worked on together; answers keep the order of the sources."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from loopscan.pool import families, work_on
from loopscan.transcripts.discover import Discovery, Found
from loopscan.transcripts.reader import Source

TOKENS = st.frozensets(st.sampled_from("abcdef"), max_size=2)


def source(name: str, family: frozenset[str] = frozenset(), rank: int = 0, *, here: bool = False) -> Found:
    return Found(Source(name, partial(io.BytesIO, b"")), "none", family, (rank,), here)


@dataclass(frozen=True)
class Given:
    """What each source is told of an entry that all hold."""

    def __call__(self, found: Found) -> tuple[str, str | None]:
        held = found.source.is_copy("s", "e")
        return found.source.name, next(iter(found.source.copies)) if held else None

    def killed(self, found: Found) -> tuple[str, str | None]:
        return found.source.name, "killed"


@given(shared=st.lists(st.tuples(TOKENS, st.integers(0, 2)), max_size=12))
def test_families_are_those_that_share_something_however_indirectly(shared: list[tuple[frozenset[str], int]]) -> None:
    found = [source(str(place), family, rank) for place, (family, rank) in enumerate(shared)]
    groups = families(found)
    assert sorted(place for group in groups for place in group) == list(range(len(found)))
    assert [min(group) for group in groups] == sorted(min(group) for group in groups)
    for group in groups:
        assert [(found[place].rank, place) for place in group] == sorted(
            (found[place].rank, place) for place in group
        )
    home = {place: number for number, group in enumerate(groups) for place in group}
    for one, (family, _) in enumerate(shared):
        for other, (tokens, _) in enumerate(shared):
            if family & tokens:
                assert home[one] == home[other]
    for number, group in enumerate(groups):  # nothing that they are is in another group
        tokens = frozenset().union(*(shared[place][0] for place in group))
        assert not any(shared[place][0] & tokens for place in home if home[place] != number)


def test_the_first_by_rank_gives_what_all_of_a_family_hold_and_strangers_give_their_own() -> None:
    found = [
        source("copy", frozenset("x"), 1),
        source("alone"),
        source("live", frozenset("x"), 0),
        source("other", frozenset("y"), 0, here=True),
    ]
    expected = [("copy", "live"), ("alone", None), ("live", None), ("other", None)]
    for jobs in (1, 3):
        assert list(work_on(Discovery(found), Given(), jobs)) == expected
