"""A session to tune by in a few words: says what happens, and gives its events, steps, profile and incidents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loopscan.engine.identify import ByContent
from loopscan.events import (
    AbsentCall,
    Call,
    Compaction,
    Ending,
    Fate,
    Outcome,
    Recorded,
    Result,
    RunEnded,
    SessionEvent,
    SessionStarted,
    Turn,
    UnknownToolStopped,
    Usage,
    UserMessage,
    Where,
)
from loopscan.modes import ScopeRule
from loopscan.rulesets import ruleset
from loopscan.tuning.incidents import Incident, Incidents, scan
from loopscan.tuning.profiles import Basis, ProfileBuilder, SessionProfile
from loopscan.tuning.settings import Setting
from loopscan.tuning.steps import Recorder, Step

#: What one response costs unless it is said otherwise.
USAGE = Usage(100, 10, 50, 5, 165, 0.01)


def text(body: str, **details: Any) -> Outcome:
    """Return a result with one text and details."""
    return Outcome(result={"content": [{"type": "text", "text": body}], "details": details})


def failing(command: str, message: str) -> Outcome:
    """Return the result of a command that failed."""
    return text(f"{command}: {message}", status="failed", exitCode=2, aggregated=message)


def error(body: str) -> Outcome:
    """Return a thrown error."""
    return Outcome(error=body, is_error=True)


@dataclass
class Told:
    """A session as it is told. Every entry is a line and comes two seconds after the one before it."""

    session: str = "s"
    agent: str | None = None
    model: str | None = "m"
    start: float = 1000.0
    source: str = "s.jsonl"
    rules: str = "latest"
    scope: ScopeRule = ScopeRule.RUN
    usage: Usage = USAGE
    events: list[SessionEvent] = field(default_factory=list)
    line: int = 0

    def where(self) -> Where:
        """Return the next place."""
        self.line += 1
        return Where(self.line, f"e{self.line}", self.start + 2 * self.line)

    def add(self, event: SessionEvent) -> Told:
        """Add any event."""
        self.events.append(event)
        return self

    def user(self, run: str = "r", *, steering: bool = False) -> Told:
        """Tell of a user message."""
        return self.add(UserMessage(run, self.where(), steering=steering))

    def turn(
        self, *calls: tuple[Any, ...], run: str = "r", order: list[int] | None = None, stop: str | None = "toolUse"
    ) -> Told:
        """Tell of a message with calls: ``(tool, arguments, what came of it)``; ``None`` came: not on record."""
        made, outcomes = [], []
        for number, (tool, arguments, came) in enumerate(calls):
            fate = came if isinstance(came, Fate) else Fate.RAN
            if isinstance(came, tuple):
                fate, came = came
            made.append(Call(tool, arguments, f"c{self.line}-{number}", fate))
            outcomes.append(text(came) if isinstance(came, str) and not isinstance(came, Fate) else came)
        self.add(Turn(run, self.where(), tuple(made), model=self.model, stop_reason=stop, usage=self.usage))
        for index in order if order is not None else range(len(made)):
            if isinstance(outcomes[index], Outcome):
                self.add(Result(run, self.where(), index, outcomes[index]))
        return self

    def call(
        self, tool: str = "read", arguments: Any = "notes", came: Any = "the same", *, times: int = 1, run: str = "r"
    ) -> Told:
        """Tell of one call a message, ``times`` in a row."""
        for _ in range(times):
            self.turn((tool, {"of": arguments}, came), run=run)
        return self

    def say(self, run: str = "r", *, stop: str = "stop", failed: bool = False) -> Told:
        """Tell of a message without calls."""
        return self.add(Turn(run, self.where(), model=self.model, stop_reason=stop, usage=self.usage, failed=failed))

    def absent(self, *tools: str, run: str = "r", stored: bool = False) -> Told:
        """Tell of a message that asks for tools that do not exist."""
        absent = tuple(
            AbsentCall(tool, f"Tool {tool} not found", position=place if stored else None)
            for place, tool in enumerate(tools)
        )
        return self.add(Turn(run, self.where(), absent=absent, stored=stored, model=self.model, usage=self.usage))

    def stopped(self, tool: str, run: str = "r") -> Told:
        """Tell of what the live unknown-tool guard left in place of a message."""
        return self.add(UnknownToolStopped(run, self.where(), tool))

    def verdict(self, kind: str = "block", run: str = "r") -> Told:
        """Tell of a verdict of the live engine."""
        return self.add(Recorded(run, self.where(), kind))

    def compact(self, run: str = "r") -> Told:
        """Tell of a compaction within the run."""
        return self.add(Compaction(run, self.where(), in_run=True, from_hook=True))

    def end(self, run: str = "r", *, ending: Ending = Ending.INTERRUPTED) -> Told:
        """Tell of the end of a run."""
        return self.add(RunEnded(run, self.where(), ending))

    def done(self, run: str = "r") -> Told:
        """Tell of a last word and of the end of a run whose work is done."""
        return self.say(run).end(run, ending=Ending.COMPLETED)

    def broke_off(self, stop: str = "aborted", run: str = "r") -> Told:
        """Tell of a run that broke off, for the reason that its last message names."""
        return self.say(run, stop=stop, failed=True).end(run)

    def basis(self) -> Basis:
        """Return what the profile depends on."""
        return Basis(ruleset(self.rules).name, self.scope)

    def profile(self) -> SessionProfile:
        """Return the profile of the session."""
        started = SessionStarted(self.session, Where(0, None, self.start), self.agent, self.model)
        builder = ProfileBuilder(self.source, started, self.basis(), ByContent(ruleset(self.rules)))
        for event in self.events:
            builder.feed(event)
        return builder.finish(Where(self.line))

    def steps(self) -> list[Step]:
        """Return the steps of all events as if they were one unit."""
        recorder = Recorder(ByContent(ruleset(self.rules)))
        return [step for event in self.events if (step := recorder.step(event)) is not None]

    def incidents(self, *followed: str) -> Incidents:
        """Return the incidents of all events as if they were one unit; ``followed`` are runs others came after."""
        return scan(self.steps(), ruleset(self.rules), self.scope, frozenset(followed))

    def incident(self, *followed: str) -> Incident:
        """Return the one incident that there is."""
        (found,) = self.incidents(*followed).incidents
        return found


def stuck(session: str, calls: int = 40, **fields: Any) -> Told:
    """Return a session that hangs in one loop until it is aborted."""
    return Told(session, **fields).user().call(times=calls).broke_off()


def productive(session: str, calls: int = 12, **fields: Any) -> Told:
    """Return a session whose loop comes to something in the end."""
    return Told(session, **fields).user().call(times=calls).call(came="at last").done()


def setting(**fields: Any) -> Setting:
    """Return a setting with some fields."""
    return Setting(**fields)
