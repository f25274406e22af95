"""Work on many sources, in one process or several, with the answers in the order of the sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from loopscan.errors import InputError
from loopscan.transcripts.discover import Discovery, Found
from loopscan.transcripts.ledger import Ledger

_CHUNK_BYTES = 1 << 20
_Answer_co = TypeVar("_Answer_co", covariant=True)
_Answer = TypeVar("_Answer")
_Task = TypeVar("_Task")
#: Makes a pool of so many processes, each of which is handed the work once, however many tasks there are.
PoolOf: TypeAlias = Callable[[int, Callable[[Any], Any]], ProcessPoolExecutor]


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
    before the others (see :func:`belief`), and share a ledger. Sources that cannot leave this process are worked on
    here.
    """
    waiting: dict[int, _Answer] = {}
    following = 0
    for members, answers in _families(found.sources, work, partial(_pool, found.start_method), jobs):
        waiting.update(zip(members, answers, strict=True))
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def families(found: Sequence[Found]) -> list[list[int]]:
    """Return the places of the sources, those that may hold the same session together, ordered by first place."""
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
    return list(groups.values())


def belief(found: Found) -> tuple[int, int, int]:
    """Return what orders the sources of a family, the one that is to be believed first having the lowest.

    The rank of its reader, then its length, then its kind: the longest record may hold what the others lost, and of
    equal ones the live file is the better. What is packed is unpacked to know how long it is.
    """
    reader, kind = found.rank
    return reader, -_length(found), kind


def _length(found: Found) -> int:
    """Return how many bytes a source has, as far as it can be read; 0 for what can be read only once."""
    size = 0
    with suppress(OSError, InputError):
        if found.source.path is not None:
            return found.source.path.stat().st_size
        if found.source.pieces is not None:
            return found.source.pieces.size()
        if not found.here:
            with found.source.open() as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    size += len(chunk)
    return size


def _families(
    found: Sequence[Found], work: Work[_Answer], pool_of: PoolOf, jobs: int
) -> Iterator[tuple[list[int], list[_Answer]]]:
    groups = families(found)
    members = [[found[place] for place in group] for group in groups]
    yield from zip(
        groups,
        in_order(
            members,
            partial(_work_on_family, work=work),
            lambda family: [work.killed(each) for each in family],
            jobs,
            pool_of=pool_of,
            here=lambda family: any(each.here for each in family),
        ),
        strict=True,
    )


def in_order(
    tasks: Sequence[_Task],
    work: Callable[[_Task], _Answer],
    killed: Callable[[_Task], _Answer],
    jobs: int,
    *,
    pool_of: PoolOf | None = None,
    here: Callable[[_Task], bool] = lambda task: False,
    at_once: int = 1,
) -> Iterator[_Answer]:
    """Yield what ``work`` makes of each task, in their order, in up to ``jobs`` processes.

    Tasks that are to be done ``here`` are done in this process. Where a process was killed, the tasks that are left
    get a process of their own each, and ``killed`` answers for one that loses it again. A process takes up to
    ``at_once`` tasks at a time, and fewer where some would be left without.
    """
    apart = [not here(task) for task in tasks]
    workers = min(jobs, sum(apart))
    if workers <= 1:
        yield from map(work, tasks)
        return
    make = pool_of or partial(_pool, None)
    finished = 0
    try:
        with make(workers, work) as pool:
            away = (task for task, leaves in zip(tasks, apart, strict=True) if leaves)
            answers = pool.map(
                cast(Callable[[_Task], _Answer], _do),
                away,
                chunksize=max(1, min(at_once, sum(apart) // (4 * workers))),
            )
            for task, leaves in zip(tasks, apart, strict=True):
                yield next(answers) if leaves else work(task)
                finished += 1
    except BrokenProcessPool:
        for task, leaves in zip(tasks[finished:], apart[finished:], strict=True):
            yield _in_a_process_of_its_own(task, work, killed, make) if leaves else work(task)


def _work_on_family(family: Iterable[Found], work: Work[_Answer]) -> list[_Answer]:
    family = list(family)
    if len(family) == 1:
        return [work(family[0])]
    ledger = Ledger()
    answers: dict[int, _Answer] = {}
    ranks = [belief(each) for each in family]
    for place in sorted(range(len(family)), key=lambda place: (ranks[place], place)):
        family[place].source.ledger = ledger
        answers[place] = work(family[place])
    return [answers[place] for place in range(len(family))]


def _pool(start_method: str | None, workers: int, work: Callable[[Any], Any]) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context(start_method), _take_on, (work,))


class _Worker:
    """What a process of a pool was handed."""

    work: Callable[[object], object]


def _take_on(work: Callable[[object], object]) -> None:
    _Worker.work = work


def _do(task: object) -> object:
    return _Worker.work(task)


def _in_a_process_of_its_own(
    task: _Task,
    work: Callable[[_Task], _Answer],
    killed: Callable[[_Task], _Answer],
    pool_of: PoolOf,
) -> _Answer:
    """Do one task in a process of its own, since a process that had others as well was killed."""
    try:
        with pool_of(1, work) as pool:
            return pool.submit(cast(Callable[[_Task], _Answer], _do), task).result()
    except BrokenProcessPool:
        return killed(task)
