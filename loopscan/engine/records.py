"""One entry of the history."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Record:
    """One call in the history, or several that are passed over."""

    tool: str
    signature: bytes
    run_id: str | None
    """The run whose scope it belongs to; ``None`` is a scope of its own."""
    position: int = -1
    """Its number within the scope, counted from 0; that of the last call, if it stands for several."""
    calls: int = 1
    """How many calls it stands for: more than one only where they are passed over."""
    settled: bool = False
    """Its outcome is known, or it is known that none will come."""
    outcome: bytes | None = None
    no_progress: bool = False
    failure: bytes | None = None
    unknown_tool: str | None = None
    veto: bool = False
    passed_over: bool = False
    """The exec-failure tail steps over it (a rejection by argument validation)."""
    evicted: bool = False
