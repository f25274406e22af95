"""``html`` of ``loopscan tune``: one offline page with curves, and the same in tables where no script runs.

Texts are made clean as for other formats, then escaped by the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO, Final

from loopscan.report import complaints
from loopscan.reports.base import Options
from loopscan.reports.page import embedded, render
from loopscan.reports.phrases import counted, number
from loopscan.reports.plain import lines, sentence, title
from loopscan.reports.tuning import words
from loopscan.reports.tuning.tables import COLUMNS, Shown, left_out, shown, thinned
from loopscan.tuning.labels import explained
from loopscan.tuning.report import Figures, IncidentRow, Part, TuningReport

BINARY = True

#: How many settings the page holds beside those that are shown at once, and how many incidents.
_SETTINGS: Final = 1000
_INCIDENTS: Final = 1000
_STYLES: Final = ("uplot/uPlot.min.css", "page.css", "tune.css")
_SCRIPTS: Final = ("uplot/uPlot.iife.min.js", "tune.js")


def write(report: TuningReport, out: BinaryIO, options: Options) -> None:
    """Write the page in UTF-8."""
    out.write(document(report).encode())


def document(report: TuningReport) -> str:
    """Return the page."""
    whole = replace(report.whole, candidates=tuple(thinned(report.whole.candidates, _SETTINGS)))
    first, every = shown(report.whole), shown(whole, every=True)
    taken = {each.candidate.number for each in first}
    rest = [each for each in every if each.candidate.number not in taken]
    every = sorted([*first, *rest], key=lambda each: each.order)
    basis = report.basis
    return render(
        "tune.html",
        styles=_STYLES,
        scripts=_SCRIPTS,
        made=title(
            f"loopscan {report.version} · ruleset {basis.ruleset} · scope {basis.scope.value}"
            f" · compactions arm the guard: {basis.arm.value}"
        ),
        upper_bound=words.UPPER_BOUND,
        columns=COLUMNS,
        whole=_part(report, report.whole),
        parts=[_part(report, part) for part in report.parts],
        made_with=_clean(words.made_with(report)),
        advice=[sentence(line) for line in report.advice],
        decisions=[
            ("all" if each.agent is None else title(each.agent), words.decision(each), sentence(each.reason))
            for each in report.decisions
        ],
        block="\n".join(lines(report.block.rstrip())),
        shown=[_setting(each) for each in first],
        rest=[_setting(each) for each in rest],
        more=counted(len(rest), "more setting"),
        left_out=left_out(report, report.whole, every),
        curve=[
            {
                "setting": f"critical {number(setting.critical)}",
                "roles": "",
                "recommended": False,
                "cells": _cells(made),
            }
            for setting, made in report.curve()
        ],
        agreement=_agreement(report),
        rules=[(label.value, words.outcome(rule), told) for label, rule, told in explained()],
        incidents=[_row(row) for row in report.incidents[:_INCIDENTS]],
        incidents_told=_incidents_told(report.incidents),
        notes=[sentence(note) for note in report.notes],
        problems=[sentence(problem) for problem in complaints(report.sources, report.skipped)],
        data=embedded(_data(report, every)),
    )


def _clean(rows: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    return [(name, sentence(value)) for name, value in rows]


def _cells(figures: Figures) -> list[str]:
    return [column.cell(figures) for column in COLUMNS]


def _setting(row: Shown) -> dict[str, Any]:
    return {
        "setting": row.setting,
        "roles": ", ".join(row.roles),
        "recommended": row.recommended,
        "cells": _cells(row.candidate.figures),
    }


def _part(report: TuningReport, part: Part) -> dict[str, Any]:
    trusted = None
    if part.stability is not None:
        told, others = words.stability(part, part.stability)
        trusted = {"told": told, "others": others}
    held_out = []
    for each in part.held_out:
        told, rows = words.held_out(each)
        held_out.append({"name": title(each.name), "told": sentence(told), "rows": rows})
    return {
        "name": title(part.name or ""),
        "verdict": words.verdict(part.chosen),
        "recommended": part.chosen.candidate is not None,
        "reason": sentence(part.chosen.reason),
        "evidence": _clean(words.evidence(report, part)),
        "read": _clean(words.read(part)),
        "shown": [_setting(each) for each in shown(part)],
        "held_out": held_out,
        "stability": trusted,
        "flips": [
            {
                "moved": words.flip(each)[0],
                "becomes": words.flip(each)[1],
                "place": sentence(words.place(each.incident)),
                "where": words.where(each.incident),
                "what": sentence(words.what(each.incident)),
                "judged": sentence(words.judged(each.incident)),
                "explain": sentence(words.explaining(each.incident)),
            }
            for each in part.flips
        ],
    }


def _row(row: IncidentRow) -> tuple[str, ...]:
    return (
        sentence(row.incident),
        sentence(words.place(row)),
        words.where(row),
        sentence(words.what(row)),
        sentence(words.judged(row)),
    )


def _incidents_told(rows: Sequence[IncidentRow]) -> str:
    if len(rows) <= _INCIDENTS:
        return counted(len(rows), "incident")
    return f"the first {number(_INCIDENTS)} of {counted(len(rows), 'incident')}; -o json=FILE has all"


def _agreement(report: TuningReport) -> dict[str, Any] | None:
    if report.agreement is None:
        return None
    head, rows = words.agreement_table(report.agreement)
    return {"told": words.agreement(report.agreement), "head": head, "rows": rows}


def _data(report: TuningReport, rows: Sequence[Shown]) -> dict[str, Any]:
    """Return what the curves are drawn of. Nothing in it comes from a transcript."""
    curve = report.curve()
    saves = [_saved(figures) for _, figures in curve]
    chosen, in_force = report.whole.chosen.candidate, report.whole.in_force
    numbers = [row.candidate.number for row in rows]
    best = numbers.index(chosen.number) if chosen is not None else None
    now = numbers.index(in_force.number)
    return {
        "curve": {
            "critical": [setting.critical for setting, _ in curve],
            "rate": [figures.false_rate for _, figures in curve],
            "low": [None if figures.false_rate is None else figures.false_interval[0] for _, figures in curve],
            "high": [None if figures.false_rate is None else figures.false_interval[1] for _, figures in curve],
            "caught": [figures.caught for _, figures in curve],
            "missed": [figures.missed for _, figures in curve],
            "warnings": [figures.warnings_per_1000_calls for _, figures in curve],
            "saved": {unit: [each[unit] for each in saves] for unit in ("calls", "tokens", "dollars", "minutes")},
        },
        "marks": {
            "in_force": in_force.setting.critical if in_force.setting.enabled is True else None,
            "recommended": None if chosen is None else chosen.setting.critical,
        },
        "candidates": [
            {
                "setting": row.setting,
                "roles": f"({', '.join(row.roles)})" if row.roles else "",
                "cells": _cells(row.candidate.figures),
                "rate": row.candidate.figures.false_rate,
                "front": row.candidate.on_front,
                "saved": _saved(row.candidate.figures),
            }
            for row in rows
        ],
        "columns": [{"head": each.head, "about": each.about, "saved": each.saved} for each in COLUMNS],
        "start": now if best is None else best,
        "in_force": now,
        "recommended": best,
    }


def _saved(figures: Figures) -> dict[str, float]:
    saved = figures.saved
    return {
        "calls": saved.calls,
        "tokens": saved.tokens,
        "dollars": saved.cost_usd,
        "minutes": saved.seconds / 60,
    }
