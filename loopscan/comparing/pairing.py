"""The marks of one run under two policies, side by side: which are the same, and what became of the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loopscan.marks import Level, Mark


class Kind(StrEnum):
    """What became of a mark."""

    GAINED = "gained"
    LOST = "lost"
    MOVED = "moved"
    """The same loop is stepped into, or warned of, by the same detector at another call."""
    CHANGED = "changed"
    """What comes of a loop, or the detector that finds it, is another one."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two marks that belong together, or one that has no other."""

    kind: Kind | None
    """``None``: nothing changed."""
    a: Mark | None
    b: Mark | None

    @property
    def mark(self) -> Mark:
        """The mark to tell of: that of ``b``, unless it has none."""
        found = self.b or self.a
        if found is None:
            raise ValueError("a pair of nothing")
        return found


def paired(a: Iterable[Mark], b: Iterable[Mark]) -> list[Pair]:
    """Return the marks of one run under two policies in pairs, ordered by their place in the run.

    Marks that merely arm a guard are left out. Those that agree in call, kind and detector are the same, whatever
    they count; then those of one loop (by signature, else by tool and call) belong together, in their order.
    """
    left, right = [mark for mark in a if _counts(mark)], [mark for mark in b if _counts(mark)]
    made: list[Pair] = []
    for kind, key in _STEPS:
        pairs, left, right = _met(left, right, key)
        made += (Pair(kind, one, other) for one, other in pairs)
    made += (Pair(Kind.LOST, mark, None) for mark in left)
    made += (Pair(Kind.GAINED, None, mark) for mark in right)
    return sorted(made, key=_place)


def _counts(mark: Mark) -> bool:
    return mark.level is not Level.INFO


def _place(pair: Pair) -> tuple[int, int, str]:
    marks = [mark for mark in (pair.a, pair.b) if mark is not None]
    batch, call = min((mark.batch, -1 if mark.call is None else mark.call) for mark in marks)
    return batch, call, min(mark.kind.value for mark in marks)


_STEPS: Sequence[tuple[Kind | None, Callable[[Mark], Hashable]]] = (
    (None, lambda mark: (mark.kind, mark.detector, mark.batch, mark.call)),
    (Kind.MOVED, lambda mark: (mark.kind, mark.detector, mark.signature or mark.tool)),
    (Kind.CHANGED, lambda mark: (mark.batch, mark.call)),
    (Kind.CHANGED, lambda mark: mark.signature or mark.tool),
)


def _met(
    left: Sequence[Mark], right: Sequence[Mark], key: Callable[[Mark], Hashable]
) -> tuple[list[tuple[Mark, Mark]], list[Mark], list[Mark]]:
    """Pair marks with equal keys in their order; return the pairs, and what is left of both sides."""
    waiting: dict[Hashable, list[Mark]] = {}
    for mark in right:
        waiting.setdefault(key(mark), []).append(mark)
    pairs: list[tuple[Mark, Mark]] = []
    rest: list[Mark] = []
    for mark in left:
        found = waiting.get(key(mark))
        if found:
            pairs.append((mark, found.pop(0)))
        else:
            rest.append(mark)
    taken = {id(other) for _, other in pairs}
    return pairs, rest, [mark for mark in right if id(mark) not in taken]
