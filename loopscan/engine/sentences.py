"""What a mark says to people: one sentence each, in our own words."""

from __future__ import annotations

from loopscan.engine.detectors import Verdict
from loopscan.marks import Detector, Kind

#: Longer names of tools are cut in sentences, in characters.
LONGEST_NAME = 60


def of(kind: Kind, found: Verdict, tool: str) -> str:
    """Return the sentence for a warning, a block or a run end."""
    what = _what(found, _short(tool))
    if kind is Kind.WARNING:
        return f"{what}; from {found.threshold} on the engine warns"
    if kind is Kind.RUN_END:
        return "the second critical loop of this run: the run ends here"
    return f"{what}; from {found.threshold} on the engine blocks"


def _what(found: Verdict, tool: str) -> str:
    count = found.count
    match found.detector:
        case Detector.UNKNOWN_TOOL_REPEAT:
            return f"{tool} answered {count} times in a row that a tool does not exist"
        case _ if found.across:
            return f"{count} {tool} commands in a row failed alike, whatever their arguments"
        case Detector.GLOBAL_CIRCUIT_BREAKER:
            return f"{tool} made no progress {count} times, whatever detector is on"
        case Detector.KNOWN_POLL_NO_PROGRESS:
            return f"{tool} polled {count} times and the answer never changed"
        case Detector.PING_PONG:
            other = _short(found.paired_tool or tool)
            pair = f"{tool} and {other}" if other != tool else f"two calls of {tool}"
            return f"{pair} alternated over {count} calls"
        case Detector.ARGUMENT_CHURN:
            return f"{tool} made no progress {count} times in a row over the same few arguments"
        case _ if found.level.value == "warning":
            return f"{tool} was called {count} times with the same arguments"
        case _:
            return f"{tool} was called {count} times with the same arguments and the same outcome"


def _short(tool: str) -> str:
    """Return a tool's name at a length that a sentence can carry."""
    return tool if len(tool) <= LONGEST_NAME else f"{tool[: LONGEST_NAME - 1]}…"


def error_streak(tool: str, count: int, *, arguments_known: bool) -> str:
    """Return the sentence for a run end by identical errors."""
    same = (
        "the same arguments and the same error"
        if arguments_known
        else "the same error (its arguments are not stored)"
    )
    return f"{_short(tool)} failed {count} times in a row with {same}: the run ends here"


def unknown_tool_stop(tool: str, attempts: int) -> str:
    """Return the sentence for calls taken out because their tool does not exist."""
    if attempts == 1:
        return f"a message asked for {_short(tool)}, which does not exist: its calls are taken out"
    return f"{attempts} messages in a row asked for {_short(tool)}, which does not exist: the calls are taken out"


def guard_armed(window: int) -> str:
    """Return the sentence for the arming of the post-compaction guard."""
    return f"compaction within the run: the next {window} outcomes are watched"


def compaction_abort(tool: str, window: int) -> str:
    """Return the sentence for an abort by the post-compaction guard."""
    return f"after the compaction {_short(tool)} came back with the same outcome {window} times: the run is aborted"
