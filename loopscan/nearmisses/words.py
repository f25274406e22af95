"""Near misses in sentences: blind spots of the engine, no verdicts. What names tools is for the formats to clean."""

from __future__ import annotations

from typing import Final

from loopscan.nearmisses.watch import NearMiss, Relaxation
from loopscan.reports.phrases import counted, money, number

_HOW: Final = {
    Relaxation.OUTCOMES: (
        "came back alike {calls} times but for times, ids and numbers that go nowhere: to the engine each result is "
        "new"
    ),
    Relaxation.ONE_SCOPE: (
        "repeats over several runs, {calls} times by then: each run is looked at by itself (--scope session sees it)"
    ),
    Relaxation.SAME_ERROR: "failed alike {calls} times with other arguments: to the engine these are other calls",
    Relaxation.ARGUMENTS: (
        "was called {calls} times with arguments alike but for times, ids and numbers that go nowhere, and came back "
        "alike: to the engine these are other calls"
    ),
    Relaxation.CYCLE: "took turns, {period} calls a round, for {calls} calls: the engine looks for one call, or two",
}


def sentence_of(miss: NearMiss) -> str:
    """Return what there is to say of a near miss."""
    how = _HOW[miss.relaxation].format(calls=number(miss.calls), period=miss.period)
    return f"{' and '.join(miss.tools)} {how}"


def cost_of(miss: NearMiss) -> str:
    """Return what it cost from where the engine would have stepped in, or nothing."""
    parts = [counted(miss.tokens, "token")] if miss.tokens else []
    if miss.cost_usd:
        parts.append(money(miss.cost_usd))
    return f"{', '.join(parts)} from there on, at most" if parts else ""


def place_of(miss: NearMiss) -> str:
    """Return where it is within its source."""
    calls = f", calls {miss.first_call}–{miss.last_call}" if miss.first_call >= 0 <= miss.last_call else ""
    return f"run {miss.run}{calls}"
