"""Sources that may hold the same session are worked on together; answers keep the order of the sources."""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopscan.pool import belief, families, in_order, work_on
from loopscan.transcripts.discover import Discovery, Found, discover
from loopscan.transcripts.reader import Source

TOKENS = st.frozensets(st.sampled_from("abcdef"), max_size=2)


def source(name: str, family: frozenset[str] = frozenset(), rank: int = 0, *, here: bool = False) -> Found:
    return Found(Source(name, partial(io.BytesIO, b"")), "none", family, (rank, 0), here)


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
    assert all(group == sorted(group) for group in groups)
    home = {place: number for number, group in enumerate(groups) for place in group}
    for one, (family, _) in enumerate(shared):
        for other, (tokens, _) in enumerate(shared):
            if family & tokens:
                assert home[one] == home[other]
    for number, group in enumerate(groups):  # nothing that they are is in another group
        tokens = frozenset().union(*(shared[place][0] for place in group))
        assert not any(shared[place][0] & tokens for place in home if home[place] != number)


def test_the_longest_record_is_believed_first_packed_or_not(tmp_path: Path) -> None:
    """One that was cut may have lost what another one still has."""
    short, long = b'{"a":1}\n' * 3, b'{"a":1}\n' * 4
    (tmp_path / "s.jsonl").write_bytes(short)
    (tmp_path / "s.jsonl.bak-1").write_bytes(long)
    for name, data in (("p.jsonl.gz", short), ("q.jsonl.gz", long)):
        (tmp_path / name).write_bytes(gzip.compress(data))

    def found(name: str, kind: int) -> Found:
        (each,) = discover([tmp_path / name], input_format="openclaw-jsonl").sources
        return replace(each, family=frozenset("x"), rank=(0, kind))

    for first, second in (("s.jsonl", "s.jsonl.bak-1"), ("p.jsonl.gz", "q.jsonl.gz")):
        live, copy = found(first, 0), found(second, 3)
        assert belief(copy) < belief(live)
        assert belief(replace(copy, rank=(1, 0))) > belief(live), "what its reader tells goes first"
    assert belief(found("s.jsonl", 0)) < belief(found("s.jsonl", 1)), "of equal ones the live file"


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


class Pool:
    """Does the tasks in this process, and remembers how many a process would have taken at a time."""

    def __init__(self) -> None:
        self.at_once: list[int] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, _: Any, tasks: Any, chunksize: int) -> Any:
        self.at_once.append(chunksize)
        return map(abs, tasks)


@given(st.integers(2, 200), st.integers(2, 16), st.integers(1, 8))
def test_tasks_go_together_only_where_every_process_has_some(tasks: int, jobs: int, at_once: int) -> None:
    pool: Any = Pool()
    made = in_order(range(tasks), abs, abs, jobs, pool_of=lambda workers, work: pool, at_once=at_once)
    assert list(made) == list(range(tasks))
    (taken,) = pool.at_once
    assert 1 <= taken <= at_once
    assert taken == 1 or taken * 4 * min(jobs, tasks) <= tasks
