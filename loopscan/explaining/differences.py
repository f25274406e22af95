"""The differing part of two values: the shortest path to it, and in texts the span."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from loopscan.events import Json
from loopscan.masking import mask
from loopscan.sanitize import clean, preview

#: At most so many differing places are counted.
MOST_PLACES: Final = 1000
#: So much of a text is looked at, and kept of it to be looked at.
LONGEST_TEXT: Final = 20_000
#: Characters on both sides of a span, and of a span itself.
_CONTEXT: Final = 24
_LONGEST_SPAN: Final = 60
_MISSING: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values differ; every text is masked and ready to print."""

    path: str
    """Such as ``details.items[3].updatedAt``; empty for the whole."""
    before: str
    after: str
    places: int
    """How many places differ, :data:`MOST_PLACES` at most."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"path": self.path, "before": self.before, "after": self.after, "places": self.places}


def cut(value: Json) -> Json:
    """Return a value of bounded size: of each text the first :data:`LONGEST_TEXT` characters."""
    match value:
        case str():
            return value[:LONGEST_TEXT]
        case list():
            return [cut(each) for each in value[:MOST_PLACES]]
        case dict():
            return {key: cut(each) for key, each in list(value.items())[:MOST_PLACES]}
        case _:
            return value


def difference(before: Json, after: Json) -> Difference | None:
    """Return the differing place with the shortest path, the first of several; ``None`` for equal values."""
    found = []
    for place in _places(before, after):
        found.append(place)
        if len(found) == MOST_PLACES:
            break
    if not found:
        return None
    path, left, right = min(found, key=lambda place: len(place[0]))
    shown = _shown(left, right)
    return Difference(_written(path), *shown, len(found))


_Path = tuple[str | int, ...]


def _places(before: Json, after: Json) -> Iterator[tuple[_Path, Json, Json]]:
    """Yield every place in which two values differ, however deep they are."""
    waiting: list[tuple[_Path, Json, Json]] = [((), before, after)]
    while waiting:
        path, left, right = waiting.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            keys = [*left, *(key for key in right if key not in left)]
            inside = [((*path, key), left.get(key, _MISSING), right.get(key, _MISSING)) for key in keys]
            waiting += reversed(inside)
        elif isinstance(left, list) and isinstance(right, list):
            pairs = enumerate(zip_longest(left, right, fillvalue=_MISSING))
            waiting += reversed([((*path, place), one, other) for place, (one, other) in pairs])
        elif type(left) is not type(right) or left != right:
            yield path, left, right


def _written(path: _Path) -> str:
    pieces = [f"[{step}]" if isinstance(step, int) else f".{clean(step, 40)}" for step in path]
    return "".join(pieces).removeprefix(".")


def _shown(left: Json, right: Json) -> tuple[str, str]:
    """Return both sides of a place, ready to print."""
    if isinstance(left, str) and isinstance(right, str):
        return _spans(mask(left[:LONGEST_TEXT]), mask(right[:LONGEST_TEXT]))
    return _value(left), _value(right)


def _value(value: Json) -> str:
    return "(missing)" if value is _MISSING else preview(value, 2 * _LONGEST_SPAN)


def _spans(left: str, right: str) -> tuple[str, str]:
    """Return what differs of two texts, with a little of what is around it."""
    if left == right:
        return "(differs in what is hidden or cut)", "(differs in what is hidden or cut)"
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    return _span(left, start, end), _span(right, start, end)


def _common(left: str, right: str) -> int:
    """Return how many characters two texts begin with alike."""
    alike = (place for place, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
    return next(alike, min(len(left), len(right)))


def _span(text: str, start: int, end: int) -> str:
    stop = len(text) - end
    first, last = max(0, start - _CONTEXT), min(len(text), stop + _CONTEXT)
    middle = clean(text[start:stop], _LONGEST_SPAN)
    before, after = clean(text[first:start]), clean(text[stop:last])
    return f"{'…' if first else ''}{before}{middle}{after}{'…' if last < len(text) else ''}"
