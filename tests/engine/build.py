"""A session in a few words: plays turns through the engine and collects the marks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loopscan.engine.session import SessionEngine
from loopscan.events import (
    AbsentCall,
    Call,
    Compaction,
    Ending,
    Fate,
    Outcome,
    Result,
    RunEnded,
    Turn,
    UnknownToolStopped,
    UserMessage,
    Where,
)
from loopscan.marks import Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.policy import Layer, Policy, resolve
from loopscan.rulesets import ruleset

#: What a call came to: a result's text, a whole outcome, or what became of it instead.
Came = str | Outcome | Fate


def policy(name: str = "latest", **fields: object) -> Policy:
    """Return the policy of a ruleset with the detectors on and some fields set."""
    return resolve(ruleset(name), block=Layer({"enabled": True, **fields}, "argument"))


def text(body: str, **details: Any) -> Outcome:
    """Return a result with one text and details."""
    return Outcome(result={"content": [{"type": "text", "text": body}], "details": details})


def error(body: str) -> Outcome:
    """Return a thrown error."""
    return Outcome(error=body, is_error=True)


def rejected(body: str) -> tuple[Fate, Outcome]:
    """Return a rejection by argument validation."""
    return Fate.REJECTED, error(body)


@dataclass
class Play:
    """One session in play."""

    policy: Policy
    mode: Mode = Mode.ENFORCE
    scope: ScopeRule = ScopeRule.RUN
    arm: Arm = Arm.AUTO
    marks: list[Mark] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = SessionEngine(self.policy, mode=self.mode, scope=self.scope, arm=self.arm)
        self.line = 0

    def _feed(self, event: Any) -> None:
        self.marks += self.engine.feed(event)

    def _where(self) -> Where:
        self.line += 1
        return Where(line=self.line, entry=f"e{self.line}", time=float(self.line))

    def user(self, run: str = "r", *, steering: bool = False, retry: bool = False) -> None:
        """Play a user message."""
        self._feed(UserMessage(run, self._where(), steering=steering, retry=retry))

    def turn(self, *calls: tuple[Any, ...], run: str = "r", order: list[int] | None = None) -> None:
        """Play an assistant message: ``(tool, arguments, what came of it)``; results come in ``order``."""
        made: list[Call] = []
        outcomes: list[Outcome | None] = []
        for number, (tool, arguments, came) in enumerate(calls):
            fate, outcome = (
                came if isinstance(came, tuple) else (came, None) if isinstance(came, Fate) else (Fate.RAN, came)
            )
            made.append(Call(tool, arguments, f"c{self.line}_{number}", fate))
            outcomes.append(text(outcome) if isinstance(outcome, str) else outcome)
        where = self._where()
        self._feed(Turn(run, where, tuple(made)))
        for index in order if order is not None else range(len(made)):
            outcome = outcomes[index]
            if outcome is not None:
                self._feed(Result(run=run, where=self._where(), index=index, outcome=outcome))

    def call(self, tool: str, arguments: Any, came: Any, *, times: int = 1, run: str = "r") -> None:
        """Play one call a message, ``times`` in a row."""
        for _ in range(times):
            self.turn((tool, arguments, came), run=run)

    def say(self, run: str = "r") -> None:
        """Play an assistant message without calls."""
        self._feed(Turn(run, self._where(), stop_reason="stop"))

    def absent(self, *tools: str, run: str = "r", stored: bool = False) -> None:
        """Play a message that asks for tools that do not exist."""
        absent = tuple(
            AbsentCall(tool, f"Tool {tool} not found", position=place if stored else None)
            for place, tool in enumerate(tools)
        )
        self._feed(Turn(run, self._where(), absent=absent, stored=stored))

    def rewritten(self, tool: str, run: str = "r") -> None:
        """Play what the live unknown-tool guard left in place of a message."""
        self._feed(UnknownToolStopped(run, self._where(), tool))

    def compact(self, run: str | None = "r", *, in_run: bool = True, from_hook: bool | None = True) -> None:
        """Play a compaction."""
        self._feed(Compaction(run, self._where(), in_run=in_run, from_hook=from_hook))

    def end(self, run: str = "r", *, unanswered: bool = False) -> None:
        """Play the end of a run."""
        self._feed(RunEnded(run, self._where(), Ending.INTERRUPTED if unanswered else Ending.COMPLETED, unanswered))

    def seen(self) -> list[tuple[Any, ...]]:
        """Return the marks as ``(kind, detector, count, batch)``."""
        return [(m.kind.value, m.detector.value, m.count, m.batch) for m in self.marks]
