"""The JSON document of a comparison, ``loopscan.compare/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopscan.comparing.pairing import Kind
from loopscan.marks import Mark
from loopscan.report import RunReport, config_dict, source_dict

if TYPE_CHECKING:
    from loopscan.comparing.compare import Change, Comparison, RunChange

SCHEMA: Final = "loopscan.compare/1"


def document(found: Comparison) -> dict[str, Any]:
    """Return the document."""
    return {
        "schema": SCHEMA,
        "version": found.version,
        "sides": [
            {
                "label": label,
                "ruleset": options.policy.ruleset.name,
                "mode": options.mode.value,
                "scope": options.scope.value,
                "config": config_dict(options.policy),
                "totals": totals.to_dict(),
            }
            for label, options, totals in zip(found.labels, found.options, found.totals, strict=True)
        ],
        "sessions": found.sessions,
        "differing": [
            {"sides": [one, other], "sessions": found.differing[one, other]}
            for one in range(len(found.labels))
            for other in range(one + 1, len(found.labels))
        ],
        "counts": {kind.value: found.count(kind) for kind in Kind},
        **{
            f"by_{what}": {
                name: {kind.value: counts[kind] for kind in Kind} for name, counts in found.by(what).items()
            }
            for what in ("detector", "tool", "agent")
        },
        "changes": [_change(change) for change in found.changes],
        "runs": [_run(change) for change in found.runs],
        "sources": [source_dict(source) for source in found.sources],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "source": change.source,
        "session": change.session,
        "agent": change.agent,
        "run": change.run,
        "a": _mark(change.pair.a),
        "b": _mark(change.pair.b),
    }


def _mark(mark: Mark | None) -> dict[str, Any] | None:
    if mark is None:
        return None
    return {
        "kind": mark.kind.value,
        "detector": mark.detector.value,
        "level": mark.level.value,
        "count": mark.count,
        "threshold": mark.threshold,
        "batch": mark.batch,
        "call": mark.call,
        "tool": mark.tool,
        "line": mark.where.line,
        "tool_call_id": mark.tool_call_id,
        "lossy": mark.lossy,
        "message": mark.message,
    }


def _run(change: RunChange) -> dict[str, Any]:
    return {
        "source": change.source,
        "session": change.session,
        "agent": change.agent,
        "run": change.run,
        "a": _end(change.a),
        "b": _end(change.b),
    }


def _end(run: RunReport) -> dict[str, Any]:
    return {"outcome": run.outcome, "not_reached": run.not_reached.to_dict()}
