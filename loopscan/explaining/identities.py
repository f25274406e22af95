"""Looser identities: what would count as the same if the engine looked at less."""

from __future__ import annotations

import re
from typing import Final

from loopscan.engine.canonical import identity
from loopscan.engine.identify import ByContent, Identified
from loopscan.engine.outcomes import Judged, compared
from loopscan.events import AbsentCall, Call, Json, Outcome
from loopscan.rulesets import Ruleset

_ANY: Final = b"any"
#: What changes from call to call without a change of substance, in the order in which it is masked.
_PASSING: Final = (
    re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    re.compile(r"(?<![\w])(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}(?![\w])"),
    re.compile(r"[0-9]+"),
)
_LONGEST: Final = 100_000


class EqualOutcomes(ByContent):
    """All that comes back is the same."""

    def outcome(self, tool: str, call: Call, outcome: Outcome) -> Judged:
        """Return the one outcome that there is, where there is any."""
        found = super().outcome(tool, call, outcome)
        if found.identity is None:
            return found
        return Judged(_ANY, found.no_progress, _ANY if found.failure is not None else None, found.unknown_tool)


class EqualArguments(ByContent):
    """All calls of one tool are the same call."""

    def call(self, call: Call | AbsentCall) -> Identified:
        """Return the call, known by its tool alone."""
        found = super().call(call)
        return Identified(found.tool, None, identity([found.tool]), found.known_poll)


class Masked(ByContent):
    """Numbers and random ids are the same, in arguments and in what comes back."""

    def __init__(self, ruleset: Ruleset) -> None:
        super().__init__(ruleset)
        self._rules = ruleset

    def call(self, call: Call | AbsentCall) -> Identified:
        """Return the call with its arguments masked."""
        found = super().call(call)
        return Identified(found.tool, None, identity([found.tool, masked(found.arguments)]), found.known_poll)

    def outcome(self, tool: str, call: Call, outcome: Outcome) -> Judged:
        """Return the outcome, masked."""
        found = compared(tool, call.arguments, outcome, self._rules)
        if found.value is None:
            return super().outcome(tool, call, outcome)
        failure = None if found.failure is None else identity(masked(found.failure))
        return Judged(identity(masked(found.value)), found.no_progress, failure, found.unknown_tool, found.veto)


def masked(value: Json) -> Json:
    """Return a value with numbers and random ids made alike, in texts too, at every depth."""
    if isinstance(value, str):
        text = value[:_LONGEST]
        for pattern in _PASSING:
            text = pattern.sub("#", text)
        return text
    if isinstance(value, list):
        return [masked(each) for each in value]
    if isinstance(value, dict):
        return {key: masked(each) for key, each in value.items()}
    return 0 if isinstance(value, int | float) and not isinstance(value, bool) else value
