"""Sessions of any shape, for properties: loops, parallel calls, interleaved runs, compactions, absent tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import strategies as st

from loopscan.events import (
    AbsentCall,
    Call,
    Compaction,
    Ending,
    Fate,
    Outcome,
    Result,
    RunEnded,
    SessionEvent,
    Turn,
    UnknownToolStopped,
    Usage,
    UserMessage,
    Where,
)

#: Calls, by what they ask for: few, so that they repeat.
CALLS = (
    ("read", {"path": "notes.md"}),
    ("exec", {"command": "make"}),
    ("exec", {"command": "ssh host"}),
    ("process", {"action": "poll", "id": 1}),
    ("wait", {"id": 1}),
    ("write", {"path": "out.txt"}),
    ("message", {"action": "send", "text": "hello"}),
    ("widget", {"n": 1}),
)


def _text(body: str, **details: object) -> Outcome:
    return Outcome(result={"content": [{"type": "text", "text": body}], "details": dict(details)})


OUTCOMES = (
    _text("the same"),
    _text("the same"),
    _text("another"),
    _text("broke", status="failed", exitCode=2, aggregated="no such host"),
    _text("broke", status="failed", exitCode=2, aggregated="no such host after 3 s"),
    _text("unchanged", changed=False),
    Outcome(error="Unknown tool: widget", is_error=True),
    Outcome(error="boom", is_error=True),
    Outcome(result={"content": [], "details": {}}, lossy=True),
)


@dataclass
class Made:
    """A session while it is made."""

    events: list[SessionEvent] = field(default_factory=list)
    line: int = 0

    def where(self) -> Where:
        self.line += 1
        return Where(self.line, f"e{self.line}", 1000.0 + 2 * self.line)


@st.composite
def sessions(draw: st.DrawFn) -> list[SessionEvent]:
    """Draw the events of one session: up to three runs, one after the other or interleaved, with loops in them."""
    made = Made()
    runs = draw(st.integers(1, 3))
    interleaved = draw(st.booleans())
    ids = [draw(st.sampled_from((None, f"id{number}"))) for number in range(runs)]
    pending = [_run(draw, made, f"r{number}", ids[number]) for number in range(runs)]
    while pending:
        at = draw(st.integers(0, len(pending) - 1)) if interleaved else 0
        if next(pending[at], None) is None:
            pending.pop(at)
    return made.events


def _run(draw: st.DrawFn, made: Made, key: str, run_id: str | None) -> Iterator[bool]:
    """Make one run, a stretch of repetitions at a time."""
    made.events.append(UserMessage(key, made.where(), run_id))
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(("same", "same", "swing", "mixed", "absent")))
        length = draw(st.integers(1, 14))
        if shape == "absent":
            for _ in range(length):
                _absent(draw, made, key, run_id)
        else:
            pool = draw(st.lists(st.sampled_from(range(len(CALLS))), min_size=2, max_size=3))
            outcomes = draw(st.lists(st.sampled_from(range(len(OUTCOMES))), min_size=3, max_size=3))
            for number in range(length):
                _turn(draw, made, key, run_id, shape, number, pool, outcomes)
        yield True
        if draw(st.integers(0, 3)) == 0:
            _aside(draw, made, key)
    made.events.append(RunEnded(key, made.where(), draw(st.sampled_from(Ending)), unanswered=draw(st.booleans())))
    yield True


def _turn(
    draw: st.DrawFn,
    made: Made,
    key: str,
    run_id: str | None,
    shape: str,
    number: int,
    pool: list[int],
    came: list[int],
) -> None:
    chosen = {"same": pool[0], "swing": pool[number % 2]}.get(shape)
    if chosen is None:
        chosen = draw(st.sampled_from(pool))
    asked = [chosen] * draw(st.sampled_from((1, 1, 1, 2, 3)))
    if draw(st.integers(0, 4)) == 0:
        asked.append(draw(st.sampled_from(range(len(CALLS)))))
    odd = draw(st.integers(0, 11)) == 0
    fates = [draw(st.sampled_from(Fate)) if odd else Fate.RAN for _ in asked]
    calls = tuple(
        Call(CALLS[which][0], dict(CALLS[which][1]), f"c{made.line}-{place}", fate)
        for place, (which, fate) in enumerate(zip(asked, fates, strict=True))
    )
    usage = Usage(100, 10, 50, 5, 165, 0.01)
    absent = (AbsentCall("gone", "Tool gone not found", position=len(calls), arguments={}),) if odd else ()
    made.events.append(Turn(key, made.where(), calls, absent, run_id=run_id, model="m", usage=usage))
    order = [place for place, fate in enumerate(fates) if fate in (Fate.RAN, Fate.REJECTED)]
    if draw(st.integers(0, 4)) == 0:
        order = draw(st.permutations(order))
    for place in order:
        which = came[asked[place] % len(came)]
        if draw(st.integers(0, 15)) == 0:
            which = draw(st.sampled_from(range(len(OUTCOMES))))
        outcome = OUTCOMES[which]
        if fates[place] is Fate.REJECTED:
            outcome = Outcome(error="Validation failed for tool", is_error=True)
        made.events.append(Result(key, made.where(), place, outcome))


def _absent(draw: st.DrawFn, made: Made, key: str, run_id: str | None) -> None:
    tool = draw(st.sampled_from(("gone", "gone", "gone", "lost")))
    stored = draw(st.booleans())
    call = AbsentCall(tool, f"Tool {tool} not found", position=0 if stored else None, arguments={"a": 1})
    made.events.append(Turn(key, made.where(), (), (call,), stored=stored, run_id=run_id))


def _aside(draw: st.DrawFn, made: Made, key: str) -> None:
    match draw(st.integers(0, 4)):
        case 0:
            made.events.append(Compaction(key, made.where(), in_run=True, from_hook=True))
        case 1:
            made.events.append(UserMessage(key, made.where(), steering=True))
        case 2:
            made.events.append(UserMessage(key, made.where(), retry=True))
        case 3:
            made.events.append(UnknownToolStopped(key, made.where(), "gone"))
        case _:
            made.events.append(Turn(key, made.where(), usage=Usage(total=7), stop_reason="stop"))
