"""The streaks as plain walks back over a list: slow, and obviously what the rules say.

A history is a list of :class:`Past` records, oldest first, already cut to its size; ``run`` is the
scope. Each function takes the records of one scope with the projected vetoes of earlier siblings
appended, and the proposed call.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Past:
    """One record, as a plain walk needs it."""

    tool: str
    signature: bytes
    run: str | None = None
    outcome: bytes | None = None
    no_progress: bool = False
    failure: bytes | None = None
    unknown_tool: str | None = None
    veto: bool = False
    passed_over: bool = False


def scope_of(history: list[Past], run: str | None, ahead: list[tuple[str, bytes]]) -> list[Past]:
    """Return the records of one run, and one veto for each earlier sibling."""
    return [r for r in history if r.run == run] + [Past(tool, sig, run, veto=True) for tool, sig in ahead]


def no_progress(records: list[Past], signature: bytes) -> int:
    """Count equal newest outcomes of a signature; older vetoes only once an equal outcome lies beyond them."""
    newest = None
    count = held = 0
    for record in reversed(records):
        if record.signature != signature:
            continue
        if record.veto:
            if newest is None:
                count += 1
            else:
                held += 1
        elif record.outcome is not None:
            if newest is None:
                newest = record.outcome
                count += 1
            elif record.outcome == newest:
                count += 1 + held
                held = 0
            else:
                break
    return count


def exec_tail(records: list[Past], signature: bytes) -> int:
    """Count unbroken newest exec failures alike, whatever their arguments."""
    failure = None
    count = held = 0
    left = False
    for record in reversed(records):
        if record.tool != "exec":
            break
        if record.passed_over or (record.outcome is None and not record.veto):
            continue
        if record.veto:
            if failure is None:
                count += 1
            else:
                held += 1
            continue
        if record.failure is None:
            break
        if record.signature != signature:
            left = True
        elif left:
            break
        if failure is None:
            failure = record.failure
            count += 1
        elif record.failure == failure:
            count += 1 + held
            held = 0
        else:
            break
    return count if failure is not None else 0


def unknown_tool(records: list[Past], tool: str) -> tuple[int, str | None]:
    """Count unbroken newest records of the tool whose outcome names one unknown tool."""
    name = None
    count = 0
    for record in reversed(records):
        if record.tool != tool or record.unknown_tool is None or (name or record.unknown_tool) != record.unknown_tool:
            break
        name = record.unknown_tool
        count += 1
    return count, name


def ping_pong(records: list[Past], signature: bytes) -> tuple[int, str | None, bool]:
    """Count the alternating tail plus the proposed call; name the other tool; tell whether nothing progresses."""
    if len(records) < 2 or records[-1].signature == records[-2].signature or records[-2].signature != signature:
        return 0, None, False
    tail: list[Past] = []
    for record in reversed(records):
        if record.signature != (records[-1], records[-2])[len(tail) % 2].signature:
            break
        tail.append(record)
    evidence = all(
        len({record.outcome for record in side}) == 1 and side[0].outcome is not None
        for side in (tail[::2], tail[1::2])
    )
    return len(tail) + 1, records[-1].tool, evidence


def churn(records: list[Past], tool: str, signature: bytes) -> int:
    """Count unbroken newest records of the tool without progress over a few recurring arguments."""
    outcomes: dict[bytes, bytes] = {}
    times: dict[bytes, int] = {}
    for record in reversed(records):
        if record.tool != tool:
            break
        if record.outcome is None:
            continue
        if not record.no_progress or outcomes.setdefault(record.signature, record.outcome) != record.outcome:
            break
        times[record.signature] = times.get(record.signature, 0) + 1
    if len(times) < 2 or min(times.values()) < 3 or len(set(outcomes.values())) > 1 or signature not in times:
        return 0
    return sum(times.values())


def recent(records: list[Past], signature: bytes) -> int:
    """Count the records with the signature."""
    return sum(record.signature == signature for record in records)
