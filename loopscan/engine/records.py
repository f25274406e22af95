"""One entry of the history."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Record:
    """One call in the history."""

    tool: str
    signature: bytes
    run_id: str | None
    """The run whose scope it belongs to; ``None`` is a scope of its own."""
    position: int = -1
    """Its number within the scope, counted from 0."""
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
