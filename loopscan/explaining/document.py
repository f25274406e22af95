"""The JSON document of an explanation, ``loopscan.explain/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopscan.explaining.looks import Look
from loopscan.explaining.repetitions import labelled
from loopscan.explaining.watcher import Explained
from loopscan.explaining.words import answer_of, strip
from loopscan.report import iso_time, source_dict
from loopscan.sanitize import name, preview

if TYPE_CHECKING:
    from loopscan.explaining.explain import Explanation

SCHEMA: Final = "loopscan.explain/1"
#: Characters of a preview.
SHOWN: Final = 400


def document(found: Explanation) -> dict[str, Any]:
    """Return the document."""
    return {
        "schema": SCHEMA,
        "version": found.version,
        "ruleset": found.options.policy.ruleset.name,
        "mode": found.options.mode.value,
        "scope": found.options.scope.value,
        "config": found.settings(),
        "sources": [source_dict(source) for source in found.sources],
        "answers": [_answer(answer, found) for answer in found.answers],
        "runs": found.runs,
    }


def _answer(answer: Explained, found: Explanation) -> dict[str, Any]:
    policy = found.options.policy_of(answer.agent)
    mark = answer.mark
    return {
        "answer": answer_of(answer, policy),
        "source": answer.source,
        "session": answer.session,
        "agent": answer.agent,
        "run": answer.run,
        "run_id": answer.run_id,
        "mark": {
            "kind": mark.kind.value,
            "detector": mark.detector.value,
            "count": mark.count,
            "threshold": mark.threshold,
            "batch": mark.batch,
            "call": mark.call,
            "lossy": mark.lossy,
        }
        if mark is not None
        else None,
        "silence": answer.silence.to_dict() if answer.silence is not None else None,
        "call": _look(answer.look) if answer.look is not None else None,
    }


def left_out(look: Look) -> list[str]:
    """Return the arguments that are no part of a call's identity."""
    if isinstance(look.asked, dict) and isinstance(look.compared_arguments, dict):
        return [name(key, 40) for key in look.asked if key not in look.compared_arguments]
    return []


def _look(look: Look) -> dict[str, Any]:
    outcome = look.outcome
    return {
        "batch": look.batch,
        "call": look.call,
        "tool": look.tool,
        "tool_call_id": look.tool_call_id,
        "entry": look.entry,
        "line": look.line,
        "time": iso_time(look.time),
        "arguments": {
            "identity": look.signature.hex()[:12],
            "compared": preview(look.compared_arguments, SHOWN),
            "left_out": left_out(look),
        },
        "outcome": {
            "identity": look.outcome_identity.hex()[:12] if look.outcome_identity is not None else None,
            "compared": preview(labelled(outcome.value), SHOWN),
            "no_progress": outcome.no_progress,
            "failure": preview(labelled(outcome.failure), SHOWN) if outcome.failure is not None else None,
            "unknown_tool": outcome.unknown_tool,
            "lossy": look.lossy,
        }
        if outcome is not None
        else None,
        "history": {
            "room": look.room,
            "records": [cell.value for cell in look.cells],
            "strip": strip(look.cells, look.room),
        },
        "rules": [rule.to_dict() for rule in look.rules],
        "warning": {"bucket": look.bucket, "highest_bucket": look.highest_bucket, "suppressed": look.suppressed}
        if look.bucket is not None
        else None,
        "guards": look.guards.to_dict(),
        "criticals_before": look.criticals,
    }
