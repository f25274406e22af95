"""What the engine compares of a record: everything else of a session's content it never looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loopscan.engine.names import compared_arguments, is_known_poll, signature, tool_name
from loopscan.engine.outcomes import Judged, error_identity, judge
from loopscan.events import AbsentCall, Call, Json, Outcome
from loopscan.rulesets import Ruleset


@dataclass(frozen=True, slots=True)
class Identified:
    """One call by the engine's names."""

    tool: str
    arguments: Json
    """What is compared of them."""
    signature: bytes
    known_poll: bool


class Identifier(Protocol):
    """Says what a call or an outcome is to the engine. Identities are compared with each other alone."""

    def call(self, call: Call | AbsentCall) -> Identified:
        """Return what is compared of a call."""
        ...

    def tool(self, name: str) -> str:
        """Return the name that the engine goes by for a tool."""
        ...

    def outcome(self, tool: str, call: Call, outcome: Outcome) -> Judged:
        """Return what is kept of the outcome of ``call`` to ``tool``, the name that the engine goes by."""
        ...

    def absence(self, call: AbsentCall) -> bytes:
        """Return the identity of the error that a call to an absent tool came back with."""
        ...


class Once:
    """Asks another identifier once for each thing that is asked for several times about the same event."""

    def __init__(self, identifier: Identifier) -> None:
        self._identifier = identifier
        self._calls: dict[int, Identified] = {}
        self._outcome: tuple[Outcome, Call, Judged] | None = None

    def forget(self) -> None:
        """Forget what was asked for: another event comes."""
        self._calls.clear()

    def call(self, call: Call | AbsentCall) -> Identified:
        """Return what is compared of a call."""
        found = self._calls.get(id(call))
        if found is None:
            found = self._calls[id(call)] = self._identifier.call(call)
        return found

    def tool(self, name: str) -> str:
        """Return the name that the engine goes by for a tool."""
        return self._identifier.tool(name)

    def outcome(self, tool: str, call: Call, outcome: Outcome) -> Judged:
        """Return what is kept of the outcome of ``call`` to ``tool``, the name that the engine goes by."""
        latest = self._outcome
        if latest is None or latest[0] is not outcome or latest[1] is not call:
            latest = self._outcome = (outcome, call, self._identifier.outcome(tool, call, outcome))
        return latest[2]

    def absence(self, call: AbsentCall) -> bytes:
        """Return the identity of the error that a call to an absent tool came back with."""
        return self._identifier.absence(call)


class ByContent:
    """Identifies what is on record by its content, as the releases of a ruleset do."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset

    def call(self, call: Call | AbsentCall) -> Identified:
        """Return what is compared of a call."""
        tool = tool_name(call.tool, self._ruleset)
        arguments = compared_arguments(tool, call.arguments, self._ruleset)
        poll = is_known_poll(tool, call.arguments, self._ruleset)
        return Identified(tool, arguments, signature(tool, arguments), poll)

    def tool(self, name: str) -> str:
        """Return the name that the engine goes by for a tool."""
        return tool_name(name, self._ruleset)

    def outcome(self, tool: str, call: Call, outcome: Outcome) -> Judged:
        """Return what is kept of the outcome of ``call`` to ``tool``, the name that the engine goes by."""
        return judge(tool, call.arguments, outcome, self._ruleset)

    def absence(self, call: AbsentCall) -> bytes:
        """Return the identity of the error that a call to an absent tool came back with."""
        return error_identity(call.error, self._ruleset)
