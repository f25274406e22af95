"""What a result says of the world: that a call succeeded, wrote a file, or delivered a message."""

from __future__ import annotations

from typing import Final

from loopscan.engine.outcomes import Judged
from loopscan.events import Json, Outcome

#: Tools that write files, by the names that the engine's rules know.
WRITERS: Final = frozenset(
    {"write", "edit", "apply_patch", "multiedit", "notebookedit", "create", "write_file", "replace",
     "str_replace_editor", "newfilecreated", "editedexistingfile"}
)  # fmt: skip
#: Tools that send something to somebody.
SENDERS: Final = frozenset({"message", "sessions_send", "conversations_send", "conversations_turn"})

_SENDING: Final = frozenset(
    {"send", "broadcast", "reply", "thread-reply", "sendwitheffect", "sendattachment", "upload-file"}
)
_NO_SUCCESS: Final = frozenset(
    {"failed", "error", "blocked", "denied", "timeout", "timed_out", "cancelled", "aborted", "approval-pending",
     "approval-unavailable"}
)  # fmt: skip


def succeeded(outcome: Outcome) -> bool:
    """Say whether an outcome is a success as far as it tells: no error, no failed status, no exit code but 0."""
    if outcome.error is not None or outcome.is_error:
        return False
    details = outcome.result.get("details") if isinstance(outcome.result, dict) else None
    if not isinstance(details, dict):
        return True
    status, code = details.get("status"), details.get("exitCode")
    if isinstance(status, str) and status.lower() in _NO_SUCCESS:
        return False
    if details.get("timedOut") is True or details.get("ok") is False or details.get("success") is False:
        return False
    return not isinstance(code, int | float) or isinstance(code, bool) or code == 0


def wrote(tool: str, judged: Judged) -> bool:
    """Say whether a successful call wrote a file. One that the engine counts as no progress changed nothing."""
    return tool in WRITERS and not judged.no_progress


def delivered(tool: str, arguments: Json) -> bool:
    """Say whether a successful call delivered a message."""
    if tool not in SENDERS:
        return False
    action = arguments.get("action") if isinstance(arguments, dict) else None
    return tool != "message" or not isinstance(action, str) or action.lower() in _SENDING
