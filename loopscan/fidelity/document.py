"""The JSON document of a verification, ``loopscan.verify/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from loopscan.report import source_dict

if TYPE_CHECKING:
    from loopscan.fidelity.verify import Disagreement, Fidelity, Tally

SCHEMA: Final = "loopscan.verify/1"


def document(found: Fidelity) -> dict[str, Any]:
    """Return the document."""
    guess = found.guess()
    return {
        "schema": SCHEMA,
        "version": found.version,
        "asked": found.asked,
        "score": found.tally.score,
        "tally": _tally(found.tally),
        "sessions": found.sessions,
        "judged": found.judged,
        "silent": found.silent,
        "elsewhere": found.elsewhere,
        "used": dict(sorted(found.used.items())),
        "by_ruleset": {name: {"score": tally.score, **_tally(tally)} for name, tally in found.by_ruleset.items()},
        "guess": {"rulesets": guess[0], "score": guess[1]} if guess is not None else None,
        "disagreements": [_disagreement(each) for each in found.disagreements],
        "sources": [source_dict(source) for source in found.sources],
    }


def _tally(tally: Tally) -> dict[str, int]:
    return {
        "agreed": tally.agreed,
        "only_recorded": tally.only_recorded,
        "only_replayed": tally.only_replayed,
        "not_reached": tally.not_reached,
    }


def _disagreement(each: Disagreement) -> dict[str, Any]:
    recorded, mark = each.recorded, each.mark
    return {
        "source": each.source,
        "session": each.session,
        "agent": each.agent,
        "ruleset": each.ruleset,
        "run": each.run,
        "recorded": {
            "kind": recorded.kind,
            "detector": recorded.detector,
            "count": recorded.count,
            "tool": recorded.tool,
            "tool_call_id": recorded.tool_call_id,
            "line": recorded.where.line,
        }
        if recorded is not None
        else None,
        "replayed": {
            "kind": mark.kind.value,
            "detector": mark.detector.value,
            "count": mark.count,
            "tool": mark.tool,
            "tool_call_id": mark.tool_call_id,
            "line": mark.where.line,
        }
        if mark is not None
        else None,
        "cause": each.cause.value,
        "why": each.why,
    }
