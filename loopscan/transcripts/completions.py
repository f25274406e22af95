"""What a model response cost, in the words of the completion APIs, and running totals of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from loopscan.events import NO_USAGE, Json, Usage
from loopscan.transcripts.values import Object, dollars, mapping, tokens

_Combine: TypeAlias = Callable[[float, float], float]

#: How many running totals of one session are told apart; what comes beyond them is not counted.
MOST_METERS = 256


def completion_usage(usage: Json, cost: Json = None) -> Usage:
    """Return the ``usage`` of a completion, whose prompt tokens include those of the cache; 0 for what is missing.

    ``cost`` is in dollars. Both spellings are read: ``prompt_tokens`` and ``input_tokens``, ``cached_tokens`` among
    the details and ``cache_read_tokens`` beside them.
    """
    fields = mapping(usage)
    prompt = _first(fields, "prompt_tokens", "input_tokens")
    output = _first(fields, "completion_tokens", "output_tokens")
    details = mapping(fields.get("prompt_tokens_details")) or mapping(fields.get("input_tokens_details"))
    read = _first(fields, "cache_read_tokens", "cache_read_input_tokens") or tokens(details.get("cached_tokens"))
    write = _first(fields, "cache_write_tokens", "cache_creation_input_tokens")
    return Usage(
        input=max(prompt - read - write, 0),
        output=output,
        cache_read=read,
        cache_write=write,
        total=_first(fields, "total_tokens") or prompt + output,
        cost_usd=dollars(cost),
    )


class Meter:
    """Makes of running totals what was spent between them: nothing counts twice, however often a total is told."""

    def __init__(self) -> None:
        self._totals: dict[str, Usage] = {}
        self._due = NO_USAGE

    def read(self, totals: Mapping[str, Usage]) -> None:
        """Take in running totals, by what they are the total of. One that shrinks adds nothing."""
        for name, total in totals.items():
            before = self._totals.get(name, NO_USAGE)
            if name in self._totals or len(self._totals) < MOST_METERS:
                self._totals[name] = _combined(before, total, max)
                self._due = _combined(self._due, _combined(total, before, _growth), lambda one, other: one + other)

    def due(self) -> Usage:
        """Return what was spent since this was asked last."""
        due, self._due = self._due, NO_USAGE
        return due


def _first(fields: Object, *names: str) -> int:
    return next((found for name in names if (found := tokens(fields.get(name)))), 0)


def _growth(now: float, before: float) -> float:
    return max(now - before, 0)


def _combined(one: Usage, other: Usage, combine: _Combine) -> Usage:
    return Usage(
        input=int(combine(one.input, other.input)),
        output=int(combine(one.output, other.output)),
        cache_read=int(combine(one.cache_read, other.cache_read)),
        cache_write=int(combine(one.cache_write, other.cache_write)),
        total=int(combine(one.total, other.total)),
        cost_usd=float(combine(one.cost_usd, other.cost_usd)),
    )
