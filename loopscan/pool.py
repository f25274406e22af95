"""Work on many sources, in one process or several, with the answers in the order of the sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from typing import Protocol, TypeVar

from loopscan.transcripts.discover import Discovery, Found
from loopscan.transcripts.ledger import Ledger

_Answer_co = TypeVar("_Answer_co", covariant=True)
_Answer = TypeVar("_Answer")


class Work(Protocol[_Answer_co]):
    """What is done with one source; it goes to other processes."""

    def __call__(self, found: Found) -> _Answer_co:
        """Read the source and return the answer."""
        ...

    def killed(self, found: Found) -> _Answer_co:
        """Return the answer for a source whose process was killed while it read it."""
        ...


def work_on(found: Discovery, work: Work[_Answer], jobs: int) -> Iterator[_Answer]:
    """Yield what ``work`` makes of each source, in the order of ``found``, whatever ``jobs`` is.

    Sources that may hold the same session are worked on in one process, the one that is to be believed first
    before the others, and share a ledger. Sources that cannot leave this process are worked on here.
    """
    waiting: dict[int, _Answer] = {}
    following = 0
    for members, answers in _families(found.sources, work, partial(_pool, found.start_method), jobs):
        waiting.update(zip(members, answers, strict=True))
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def families(found: Sequence[Found]) -> list[list[int]]:
    """Return the places of the sources, those that may hold the same session together, ordered by first place.

    Within a family the source that is to be believed first comes first; see :func:`belief`.
    """
    parent = list(range(len(found)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[str, int] = {}
    for place, each in enumerate(found):
        for token in each.family:
            parent[root(place)] = root(first.setdefault(token, place))
    groups: dict[int, list[int]] = {}
    for place in range(len(found)):
        groups.setdefault(root(place), []).append(place)
    return [
        sorted(group, key=lambda place: (belief(found[place]), place)) if len(group) > 1 else group
        for group in groups.values()
    ]


def belief(found: Found) -> tuple[tuple[int, int], int]:
    """Return what orders the sources of a family: by rank, and then, as far as it is known, the longest first."""
    size = 0
    if found.source.path is not None:
        with suppress(OSError):
            size = found.source.path.stat().st_size
    return found.rank, -size


def _families(
    found: Sequence[Found], work: Work[_Answer], pool_of: Callable[[int], ProcessPoolExecutor], jobs: int
) -> Iterator[tuple[list[int], list[_Answer]]]:
    groups = families(found)
    one = partial(_work_on_family, work=work)
    members = [[found[place] for place in group] for group in groups]
    apart = [not any(each.here for each in family) for family in members]
    workers = min(jobs, sum(apart))
    if workers <= 1:
        yield from zip(groups, map(one, members), strict=True)
        return
    finished = 0
    try:
        with pool_of(workers) as pool:
            answers = pool.map(one, (family for family, away in zip(members, apart, strict=True) if away))
            for group, family, away in zip(groups, members, apart, strict=True):
                yield group, next(answers) if away else one(family)
                finished += 1
    except BrokenProcessPool:
        for group, family, away in zip(groups[finished:], members[finished:], apart[finished:], strict=True):
            yield group, _in_a_process_of_its_own(family, work, pool_of) if away else one(family)


def _work_on_family(family: Iterable[Found], work: Work[_Answer]) -> list[_Answer]:
    family = list(family)
    if len(family) > 1:
        ledger = Ledger()
        for each in family:
            each.source.ledger = ledger
    return [work(each) for each in family]


def _pool(start_method: str | None, workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context(start_method))


def _in_a_process_of_its_own(
    family: list[Found], work: Work[_Answer], pool_of: Callable[[int], ProcessPoolExecutor]
) -> list[_Answer]:
    """Work on one family in a process of its own, since a process that had others as well was killed."""
    try:
        with pool_of(1) as pool:
            return pool.submit(_work_on_family, family, work).result()
    except BrokenProcessPool:
        return [work.killed(each) for each in family]
