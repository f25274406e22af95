"""A tuning report in the form of the schema ``loopscan.tune/1``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from loopscan.report import iso_time, source_dict
from loopscan.tuning.columns import setting_row
from loopscan.tuning.report import (
    SCHEMA,
    Agreement,
    Candidate,
    Chosen,
    Figures,
    Flip,
    HeldOut,
    IncidentRow,
    Part,
    Savings,
    Stability,
    TuningReport,
)

#: Digits after the point of rates, and of dollars and seconds.
_RATE, _COST, _SECONDS = 6, 6, 3


def document(report: TuningReport) -> dict[str, Any]:
    """Return the report as JSON objects; the settings of the sweep are in it where they differ, as candidates."""
    return {
        "schema": SCHEMA,
        "version": report.version,
        "ruleset": report.basis.ruleset,
        "scope": report.basis.scope.value,
        "arm": report.basis.arm.value,
        "configurable": report.configurable,
        "max_false_block": report.max_false_block,
        "confidence": report.confidence,
        "cost_ratio": report.cost_ratio,
        "holdout": report.holdout,
        "priced": report.priced,
        "settings": report.settings,
        "sources": [source_dict(source) for source in report.sources],
        "skipped": [{"path": file.path, "reason": str(file.reason)} for file in report.skipped],
        "whole": _part(report.whole),
        "parts": [_part(part) for part in report.parts],
        "curve": [
            {"setting": setting_row(setting), "figures": _figures(figures)} for setting, figures in report.curve()
        ],
        "decisions": [
            {"agent": each.agent, "changes": dict(each.changes), "reason": each.reason} for each in report.decisions
        ],
        "block": report.block,
        "advice": list(report.advice),
        "incidents": [_incident(row) for row in report.incidents],
        "agreement": _agreement(report.agreement),
        "notes": list(report.notes),
        "problems": sum(source.problem_count for source in report.sources),
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "sessions": part.sessions,
        "runs": part.runs,
        "calls": part.calls,
        "started": iso_time(part.started),
        "ended": iso_time(part.ended),
        "at_risk": part.at_risk,
        "incidents": dict(part.incidents),
        "in_force": _candidate(part.in_force),
        "off": _candidate(part.off),
        "candidates": [_candidate(each) for each in part.candidates],
        "chosen": _chosen(part.chosen),
        "held_out": [_held_out(each) for each in part.held_out],
        "stability": _stability(part.stability),
        "flips": [_flip(each) for each in part.flips],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "number": candidate.number,
        "setting": setting_row(candidate.setting),
        "same": candidate.same,
        "changes": dict(candidate.changes),
        "figures": _figures(candidate.figures),
        "on_front": candidate.on_front,
        "passes": candidate.passes,
        "p_value": candidate.p_value,
        "upper_bound": _rate(candidate.upper_bound),
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "caught": figures.caught,
        "missed": figures.missed,
        "false_blocks": figures.false_blocks,
        "spared": figures.spared,
        "unknown_blocked": figures.unknown_blocked,
        "not_reached": figures.not_reached,
        "interventions": figures.interventions,
        "warnings": figures.warnings,
        "warnings_per_1000_calls": round(figures.warnings_per_1000_calls, _SECONDS),
        "lead": _rounded("lead", figures.lead),
        "at_risk": figures.at_risk,
        "false_sessions": figures.false_sessions,
        "false_rate": _rate(figures.false_rate),
        "false_interval": [round(bound, _RATE) for bound in figures.false_interval],
        "saved": _savings(figures.saved),
    }


def _savings(saved: Savings) -> dict[str, Any]:
    return {name: _rounded(name, value) for name, value in asdict(saved).items()}


def _chosen(chosen: Chosen) -> dict[str, Any]:
    return {
        "verdict": chosen.verdict.value,
        "candidate": None if chosen.candidate is None else _candidate(chosen.candidate),
        "by_cost": chosen.by_cost,
        "sessions_needed": chosen.sessions_needed,
        "sessions_more": chosen.sessions_more,
        "reason": chosen.reason,
    }


def _held_out(held_out: HeldOut) -> dict[str, Any]:
    return {
        "name": held_out.name,
        "chosen": _chosen(held_out.chosen),
        "before": None if held_out.before is None else _figures(held_out.before),
        "after": None if held_out.after is None else _figures(held_out.after),
        "sessions": list(held_out.sessions),
    }


def _stability(stability: Stability | None) -> dict[str, Any] | None:
    if stability is None:
        return None
    others = [{"setting": setting_row(setting), "share": _rate(share)} for setting, share in stability.others]
    return {
        "rounds": stability.rounds,
        "same": _rate(stability.same),
        "none": _rate(stability.none),
        "others": others,
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "field": flip.field,
        "value": flip.value,
        "incident": _incident(flip.incident),
        "before": flip.before,
        "after": flip.after,
    }


def _incident(row: IncidentRow) -> dict[str, Any]:
    return {
        "incident": row.incident,
        "source": row.source,
        "session": row.session,
        "run": row.run,
        "agent": row.agent,
        "model": row.model,
        "loops": [loop.value for loop in row.loops],
        "tools": list(row.tools),
        "calls": row.calls,
        "first_line": row.first_line,
        "last_line": row.last_line,
        "first_call": row.first_call,
        "last_call": row.last_call,
        "started": iso_time(row.started),
        "ended": iso_time(row.ended),
        "label": row.label.value,
        "rule": row.rule,
        "rule_label": row.rule_label.value,
    }


def _agreement(agreement: Agreement | None) -> dict[str, Any] | None:
    if agreement is None:
        return None
    return {
        "given": agreement.given,
        "unmatched": agreement.unmatched,
        "kappa": _rate(agreement.kappa),
        "interval": None if agreement.interval is None else [round(bound, _RATE) for bound in agreement.interval],
        "table": {label: dict(row) for label, row in agreement.table.items()},
    }


def _rate(value: float | None) -> float | None:
    return None if value is None else round(value, _RATE)


def _rounded(name: str, value: bool | int | float | None) -> bool | int | float | None:
    """Return a figure with the digits that mean something."""
    if not isinstance(value, float):
        return value
    return round(value, _SECONDS if name.endswith(("seconds", "lead", "calls")) else _COST)
