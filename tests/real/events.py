"""The same counts as :mod:`tests.real.counts`, taken from the events that a reader of loopscan gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loopscan.events import (
    Compaction,
    Event,
    Fate,
    Problem,
    Result,
    RunEnded,
    SessionStarted,
    Turn,
    UnknownToolStopped,
    UserMessage,
)
from loopscan.transcripts.reader import HEAD_BYTES, Reader, Source, readers, recognise
from tests.real.counts import FORMATS, Counts, Tokens
from tests.transcripts.checks import account, check

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
REAL = SHARED / "real"

#: Which reader the files of each folder are for.
READERS = {name: name for name in FORMATS} | {"openclaw": "openclaw-jsonl"}


def reader_of(path: Path) -> Reader | None:
    """Return the reader that loopscan picks for a file by its first bytes."""
    with path.open("rb") as stream:
        return recognise(stream.read(HEAD_BYTES), str(path))


def expected_reader(path: Path) -> Reader | None:
    """Return the reader that a file is for, ``None`` where loopscan has none yet."""
    return readers().get(READERS[path.parent.name])


@dataclass
class Seen:
    """What the events of one source say."""

    sessions: list[str] = field(default_factory=list)
    users: int = 0
    runs: int = 0
    responses: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    lost: int = 0
    orphans: int = 0
    errors: int = 0
    compactions: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost: float = 0.0
    times: list[float] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def see(events: Iterable[Event]) -> Seen:
    """Count events."""
    seen = Seen()
    for event in events:
        match event:
            case SessionStarted():
                seen.sessions.append(event.session)
            case UserMessage():
                seen.users += 1
            case RunEnded():
                seen.runs += 1
            case Compaction():
                seen.compactions += 1
            case Problem():
                seen.problems.append(event)
            case Result():
                seen.errors += event.outcome.is_error
            case Turn():
                _turn(seen, event)
            case UnknownToolStopped():
                seen.responses += 1
                _spent(seen, event.usage)
            case _:
                pass
        where = getattr(event, "where", None)
        if where is not None and where.time is not None:
            seen.times.append(where.time)
    return seen


def _turn(seen: Seen, turn: Turn) -> None:
    seen.responses += turn.stored
    _spent(seen, turn.usage)
    for call in turn.calls:
        seen.calls[call.tool] += 1
        seen.answered += call.fate is not Fate.LOST
        seen.lost += call.fate is Fate.LOST
    for absent in turn.absent:
        stored = absent.position is not None
        seen.calls[absent.tool] += stored
        seen.answered += stored
        seen.orphans += not stored
    seen.calls = +seen.calls


def _spent(seen: Seen, usage: Any) -> None:
    seen.tokens.add(usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total)
    seen.cost += usage.cost_usd


def read(path: Path, reader: Reader) -> Seen:
    """Return what the reader says of a file; its events keep every promise, and every entry is accounted for.

    Entries are lines, or the elements of an array. What the entries of an object are, its reader's own tests say.
    """
    source = Source.of_file(path)
    events = list(reader.read(source))
    check(events)
    assert source.bytes == path.stat().st_size
    if ".jsonl" in path.name:
        account(source)
    elif isinstance(document := json.loads(path.read_bytes()), list):
        account(source, len(document))
    return see(events)


#: What Cline calls a tool, by the kind of the entry that holds the call.
CLINE = {"command": "execute_command"}

#: The commands of SWE-agent's own interface; any other word at the start of an action is run by its shell.
SWE_AGENT = {
    *("open", "goto", "scroll_up", "scroll_down", "create", "edit"),
    *("search_dir", "search_file", "find_file", "submit", "bash"),
}


def by_tool(raw: Counts, seen: Seen) -> tuple[Any, Any]:
    """Return the calls by the tool that ran them: the shell, where the record has the command's first word alone.

    Where the record describes what was done in words, only how many calls each description has can be compared.
    """
    if any(" " in name for name in raw.calls):
        return sorted(raw.calls.values()), sorted(seen.calls.values())
    calls: Counter[str] = Counter()
    for name, number in raw.calls.items():
        if raw.format == "swe-agent" and name not in SWE_AGENT:
            name = "bash"
        calls[CLINE.get(name, name) if raw.format == "cline-ui" else name] += number
    return dict(calls), dict(seen.calls)


#: What nobody can tell where the ids of entries are placeholders: what repeats what, and what belongs together.
VAGUE = {"user turns", "runs", "responses", "compactions"}


def unmatched(raw: Counts, seen: Seen) -> list[str]:
    """Return the recorded session ids that are not in the names of the sessions seen, each in one of its own."""
    names = list(seen.sessions)
    missing = []
    for wanted in sorted((session for session in raw.sessions if session is not None), key=len, reverse=True):
        found = min((name for name in names if wanted in name), key=len, default=None)
        if found is None:
            missing.append(wanted)
        else:
            names.remove(found)
    return missing


def differences(raw: Counts, seen: Seen) -> dict[str, tuple[Any, Any]]:
    """Return what the raw file and the events say differently: each name with both values, the file's first."""
    asked, called = by_tool(raw, seen)
    orphaned = sum("orphan" in problem.kind for problem in seen.problems)
    one: dict[str, Any] = {
        "sessions": len(raw.sessions),
        "unmatched session ids": [],
        "user turns": raw.users,
        "runs": raw.runs,
        "responses": raw.responses,
        "calls": asked,
        "answered": raw.answered,
        "lost": raw.lost,
        "orphans": raw.orphans,
        "errors": raw.errors + raw.failed,
        "compactions": raw.compactions,
        "tokens": asdict(raw.tokens),
        "cost": round(raw.cost, 9),
    }
    other: dict[str, Any] = {
        "sessions": len(seen.sessions),
        "unmatched session ids": unmatched(raw, seen),
        "user turns": seen.users,
        "runs": seen.runs,
        "responses": seen.responses,
        "calls": called,
        "answered": seen.answered,
        "lost": seen.lost,
        "orphans": seen.orphans + orphaned,
        "errors": seen.errors,
        "compactions": seen.compactions,
        "tokens": asdict(seen.tokens),
        "cost": round(seen.cost, 9),
    }
    vague = VAGUE if raw.reused else set()
    if raw.format.startswith("openclaw"):
        # What the live engine saw as an error is not what is flagged; see the reader's own tests.
        vague = vague | {"errors"}
    return {name: (one[name], other[name]) for name in one if one[name] != other[name] and name not in vague}
