"""Histories whose outcomes are missing, late, or come after the call was dropped, for history.mjs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from cases import DENIED, config, failed, threw, told

_CALLS: tuple[tuple[tuple[str, Any], ...], ...] = (
    (("exec", {"c": 1}), ("exec", {"c": 2}), ("exec", {"c": 3})),
    (("read", {"p": 1}), ("read", {"p": 2})),
    (("lookup", {"q": 1}), ("lookup", {"q": 2}), ("lookup", {"q": 3}), ("read", {"p": 1})),
    (("exec", {"c": 1}), ("read", {"p": 1})),
    (("process", {"action": "poll"}), ("exec", {"c": 1})),
    (("call", {"n": 1}), ("call", {"n": 2})),
)


def histories(release: str, seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` histories for a release; the same seed gives the same ones."""
    rng = random.Random(f"history {release} {seed}")
    for number in range(count):
        block = {**config(rng, release), "enabled": True}
        yield {"id": f"{release}-history-{seed}-{number}", "config": block, "steps": _steps(rng)}


def _steps(rng: random.Random) -> list[dict[str, Any]]:
    calls = rng.choice(_CALLS)
    runs = rng.choice([["r"], ["r", "s"], [None], [None, "r"]])
    missing, late, odd = rng.choice([0, 0.05, 0.2]), rng.choice([0, 0.1, 0.4]), rng.choice([0, 0.03, 0.1])
    steps: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for number in range(rng.choice([25, 45, 70])):
        tool, args = calls[number % len(calls)] if rng.random() < 0.8 else rng.choice(calls)
        run = runs[0] if rng.random() < 0.85 else rng.choice(runs)
        call = {"tool": tool, "args": args, "run": run}
        steps += ({"ask": call}, {"call": {"id": f"h{number}", **call}})
        outcome = {"outcome": {"id": f"h{number}", **_outcome(rng, tool, odd)}}
        fate = rng.random()
        if fate >= missing + late:
            steps.append(outcome)
        elif fate >= missing:
            waiting.append(outcome)
        while waiting and rng.random() < 0.3:
            steps.append(waiting.pop(rng.randrange(len(waiting))))
    return steps


def _outcome(rng: random.Random, tool: str, odd: float) -> dict[str, Any]:
    if rng.random() < odd:
        return rng.choice([threw("odd"), told("odd"), DENIED])
    return {
        "exec": failed(f"pid {rng.randint(1, 99)} died"),
        "lookup": threw("none"),
        "call": threw("unknown tool: zap"),
    }.get(tool, told("same"))
