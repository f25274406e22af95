"""Tuning reports built by hand, and any at all, with any text in every place that a transcript fills."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from loopscan.events import Problem
from loopscan.modes import Arm, ScopeRule
from loopscan.report import READ_ERROR, SourceReport
from loopscan.reports.base import TUNE_FORMATS, Options, load
from loopscan.transcripts.discover import Skipped
from loopscan.tuning.columns import setting_row
from loopscan.tuning.courses import METRICS
from loopscan.tuning.incidents import Loop
from loopscan.tuning.labels import Label
from loopscan.tuning.profiles import Basis
from loopscan.tuning.report import (
    Agreement,
    Candidate,
    Chosen,
    Decision,
    Figures,
    Flip,
    HeldOut,
    IncidentRow,
    Part,
    Savings,
    Stability,
    TuningReport,
    Verdict,
)
from loopscan.tuning.settings import Setting
from tests.reports.subjects import NASTY, TEXT

START = 1_788_256_800.0  # 2026-09-01 10:00:00 UTC
IN_FORCE = Setting()
OFF = Setting(enabled=False)
BEST = Setting(critical=15, breaker=20)


def figures(caught: int = 5, false: int = 1, **fields: Any) -> Figures:
    values: dict[str, Any] = {
        "caught": caught,
        "missed": 7 - caught,
        "false_blocks": false,
        "spared": 9 - false,
        "unknown_blocked": 2,
        "not_reached": 1,
        "interventions": caught + false + 2,
        "warnings": 30,
        "warnings_per_1000_calls": 12.345,
        "lead": 18.25 if caught else None,
        "at_risk": 40,
        "false_sessions": false,
        "false_rate": false / 40,
        "false_interval": (max(0.0, false / 40 - 0.02), min(1.0, false / 40 + 0.1)),
        "saved": Savings(
            calls=caught * 18,
            responses=caught * 17,
            input_tokens=caught * 9_000,
            output_tokens=caught * 400,
            cache_read_tokens=caught * 20_000,
            cache_write_tokens=caught * 100,
            tokens=caught * 29_500,
            cost_usd=caught * 0.375,
            seconds=caught * 90.5,
        ),
    }
    return Figures(**{**values, **fields})


def candidate(number: int, setting: Setting, made: Figures | None = None, **fields: Any) -> Candidate:
    return Candidate(number, setting, 3, setting.changes(IN_FORCE), made or figures(), **fields)


def incident(name: str = "s-1/0/4", **fields: Any) -> IncidentRow:
    values: dict[str, Any] = {
        "incident": name,
        "source": "agents/main/sessions/s-1.jsonl",
        "session": "s-1",
        "run": 0,
        "agent": "main",
        "model": "gpt-5",
        "loops": (Loop.SAME_CALL,),
        "tools": ("read",),
        "calls": 23,
        "first_line": 14,
        "last_line": 61,
        "first_call": 4,
        "last_call": 26,
        "started": START,
        "ended": START + 95,
        "label": Label.STUCK,
        "rule": "run_aborted",
        "rule_label": Label.STUCK,
    }
    return IncidentRow(**{**values, **fields})


def sweep_of(candidates: Iterable[Candidate]) -> dict[str, list[Any]]:
    """Return the sweep of the settings of candidates."""
    columns: dict[str, list[Any]] = {}
    for each in candidates:
        made, saved = each.figures, each.figures.saved
        spent = {"usd": saved.cost_usd, "seconds": saved.seconds, "calls": saved.calls, "responses": saved.responses}
        spent |= {"input": saved.input_tokens, "output": saved.output_tokens, "tokens": saved.tokens}
        spent |= {"cache_read": saved.cache_read_tokens, "cache_write": saved.cache_write_tokens}
        row: dict[str, Any] = setting_row(each.setting)
        for name in METRICS:
            row[name] = spent[name.removeprefix("saved_")] if name.startswith("saved_") else getattr(made, name)
        row["lead"] = round((made.lead or 0) * made.caught)
        row |= {"false_sessions": made.false_sessions, "at_risk": made.at_risk}
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


_CRITICALS = (8, 10, 12, 15, 20, 25, 30, 40, 60)


def _candidates() -> tuple[Candidate, ...]:
    found = [
        candidate(0, OFF, figures(0, 0, warnings=0, warnings_per_1000_calls=0.0, interventions=0), on_front=True)
    ]
    for place, critical in enumerate(reversed(_CRITICALS)):
        for second, breaker in enumerate((critical + 5, critical + 40)):
            setting = Setting(critical=critical, breaker=breaker, warning=min(10, critical - 1))
            if critical == 15 and not second:
                setting = BEST
            caught, false = min(7, place), max(0, place - 5) + second
            found.append(
                candidate(
                    len(found),
                    setting,
                    figures(caught, false),
                    on_front=not second,
                    passes=place <= 5,
                    p_value=0.01 * (place + 1),
                    upper_bound=0.01 * (place + 1),
                )
            )
    return tuple(found)


def part(name: str | None = None, **fields: Any) -> Part:
    candidates = _candidates()
    best = next(each for each in candidates if each.setting == BEST)
    in_force = next(each for each in candidates if each.setting.enabled and each.setting.critical == 20)
    in_force = replace(in_force, setting=IN_FORCE, changes={})
    values: dict[str, Any] = {
        "name": name,
        "sessions": 120,
        "runs": 310,
        "calls": 25_480,
        "started": START,
        "ended": START + 86_400 * 30,
        "at_risk": 40,
        "incidents": {"stuck": 7, "productive": 9, "unknown": 12},
        "in_force": in_force,
        "off": candidates[0],
        "candidates": tuple(in_force if each.number == in_force.number else each for each in candidates),
        "chosen": Chosen(Verdict.RECOMMENDED, best, False, 36, 0, "It saves most of what keeps the promise."),
        "held_out": (
            HeldOut(
                "the newest 30 %",
                Chosen(Verdict.RECOMMENDED, best, False, 36, 0, "It saves most of what keeps the promise."),
                figures(4, 0),
                figures(1, 1, at_risk=12, false_rate=1 / 12, false_interval=(0.0021, 0.3848)),
                (84, 36),
            ),
        ),
        "stability": Stability(200, 0.82, 0.05, ((Setting(critical=12, breaker=20), 0.13),)),
        "flips": (
            Flip("criticalThreshold", 16, incident(), "caught", "missed"),
            Flip(
                "criticalThreshold",
                14,
                incident("s-2/1/0", label=Label.PRODUCTIVE, rule="file_written", rule_label=Label.UNKNOWN),
                "spared",
                "false_block",
            ),
        ),
    }
    return Part(**{**values, **fields})


def report(**fields: Any) -> TuningReport:
    whole = fields.pop("whole", None) or part()
    values: dict[str, Any] = {
        "version": "0.2.0",
        "basis": Basis("2026.6"),
        "configurable": True,
        "max_false_block": 0.1,
        "confidence": 0.95,
        "cost_ratio": None,
        "holdout": 0.3,
        "settings": 1234,
        "whole": whole,
        "parts": (part("main"),),
        "decisions": (
            Decision(None, {"criticalThreshold": 15, "globalCircuitBreakerThreshold": 20}, "It keeps the promise."),
            Decision("ops", {}, "Too few sessions of this agent."),
        ),
        "block": "{\n  tools: {\n    loopDetection: {\n      criticalThreshold: 15,\n    },\n  },\n}\n",
        "advice": ("Use the release of June for the thresholds to count.",),
        "incidents": (incident(), incident("s-3/0/0", label=Label.UNKNOWN, rule="gave_up", rule_label=Label.UNKNOWN)),
        "agreement": Agreement(
            6,
            1,
            0.71,
            (0.4, 0.95),
            {"stuck": {"stuck": 3, "productive": 1, "unknown": 0}, "productive": {"productive": 2}},
        ),
        "sources": [SourceReport("agents/main/sessions/s-1.jsonl", "openclaw", 4096, 90, 1, 23)],
        "notes": ("Three sessions were recorded under another ruleset.",),
        "sweep": sweep_of(whole.candidates),
    }
    return TuningReport(**{**values, **fields})


def refused(**fields: Any) -> TuningReport:
    """Return a report that recommends nothing."""
    chosen = Chosen(Verdict.TOO_FEW_SESSIONS, None, False, 59, None, "Three sessions at risk are too few.")
    whole = part(chosen=chosen, held_out=(), stability=None, flips=(), at_risk=3)
    values = {"whole": whole, "parts": (), "decisions": (), "block": "", "advice": (), "agreement": None}
    return report(**{**values, **fields})


def empty() -> TuningReport:
    """Return a report of nothing at all."""
    none = figures(
        0,
        0,
        missed=0,
        spared=0,
        unknown_blocked=0,
        not_reached=0,
        interventions=0,
        warnings=0,
        warnings_per_1000_calls=0.0,
        at_risk=0,
        false_rate=None,
        false_interval=(0.0, 1.0),
    )
    whole = part(
        sessions=0,
        runs=0,
        calls=0,
        started=None,
        ended=None,
        at_risk=0,
        incidents={},
        in_force=candidate(1, IN_FORCE, none),
        off=candidate(0, OFF, none),
        candidates=(),
        chosen=Chosen(Verdict.NO_INCIDENTS, None, False, None, None, "There is no incident."),
        held_out=(),
        stability=None,
        flips=(),
    )
    return refused(whole=whole, incidents=(), sources=[], notes=(), sweep={})


def hostile(text: str) -> TuningReport:
    """Return a report with ``text`` wherever a transcript, or what people write, can put some."""
    nasty = incident(text, source=text, session=text, agent=text, model=text, tools=(text, "read"), rule=text)
    flips = (Flip("criticalThreshold", 16, nasty, "caught", "missed"),)
    held_out = (HeldOut(text, Chosen(Verdict.NOTHING_TO_SAVE, None, False, 3, 4, text), None, figures(), (1, 2)),)
    few = tuple(each for each in part().candidates if each.setting in {OFF, BEST})
    chosen = replace(part().chosen, reason=text)
    source = SourceReport(
        text, "openclaw", problems=[Problem(3, READ_ERROR, text)], problem_count=1, tools={text: text}
    )
    return report(
        whole=part(candidates=few, flips=flips, held_out=held_out, chosen=chosen),
        parts=(part(text, candidates=few, flips=flips, held_out=held_out, chosen=chosen),),
        decisions=(Decision(text, {"criticalThreshold": 15}, text), Decision(text, {}, text)),
        block=f"{{\n  // {text}\n}}\n",
        advice=(text,),
        incidents=(nasty,),
        sources=[source],
        skipped=(Skipped(text, text),),
        notes=(text,),
        priced=text,
    )


SWEEP = sweep_of(_candidates())
#: All nasty texts one after the other.
NASTIEST = hostile("".join(NASTY[:-1]) + "=1+1")
SAMPLES = {"whole": report, "refused": refused, "empty": empty, "hostile": lambda: NASTIEST}

_COUNT = st.integers(0, 10**6)
_SHARE = st.floats(0, 1)
_TIME = st.none() | st.floats(0, 4e9)
_SAVINGS = st.builds(
    Savings,
    *([_COUNT] * 7),
    st.floats(0, 1e6),
    st.floats(0, 1e8),
)
_FIGURES = st.builds(
    Figures,
    *([_COUNT] * 8),
    st.floats(0, 1000),
    st.none() | st.floats(0, 1e4),
    _COUNT,
    _COUNT,
    st.none() | _SHARE,
    st.tuples(_SHARE, _SHARE),
    _SAVINGS,
)
SETTINGS = st.builds(
    Setting,
    st.sampled_from((True, True, False, None)),
    *([st.integers(1, 1000)] * 5),
    *([st.booleans()] * 3),
    st.integers(1, 9),
)


@st.composite
def _candidates_of(draw: st.DrawFn) -> Candidate:
    setting = draw(SETTINGS)
    return Candidate(
        draw(st.integers(0, 99)),
        setting,
        draw(st.integers(1, 50)),
        setting.changes(IN_FORCE),
        draw(_FIGURES),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.none() | _SHARE),
        draw(st.none() | _SHARE),
    )


_CANDIDATES = _candidates_of()
_CHOSEN = st.builds(
    Chosen,
    st.sampled_from(Verdict),
    st.none() | _CANDIDATES,
    st.booleans(),
    st.none() | _COUNT,
    st.none() | _COUNT,
    TEXT,
)
_LABELS = st.sampled_from(Label)
_INCIDENTS = st.builds(
    IncidentRow,
    TEXT,
    TEXT,
    TEXT,
    _COUNT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.lists(st.sampled_from(Loop), min_size=1, max_size=2).map(tuple),
    st.lists(TEXT, max_size=2).map(tuple),
    _COUNT,
    _COUNT,
    _COUNT,
    st.integers(-1, 10**6),
    st.integers(-1, 10**6),
    _TIME,
    _TIME,
    _LABELS,
    st.sampled_from(("given", "run_aborted")),
    _LABELS,
)
_HELD_OUT = st.builds(HeldOut, TEXT, _CHOSEN, st.none() | _FIGURES, st.none() | _FIGURES, st.tuples(_COUNT, _COUNT))
_STABILITY = st.builds(
    Stability, _COUNT, _SHARE, _SHARE, st.lists(st.tuples(SETTINGS, _SHARE), max_size=2).map(tuple)
)
_OUTCOMES = st.sampled_from(("caught", "missed", "false_block", "spared", "unknown_blocked", "not_reached"))
_FIELDS = st.sampled_from(("warningThreshold", "criticalThreshold", "globalCircuitBreakerThreshold"))


def _parts(name: st.SearchStrategy[str | None]) -> st.SearchStrategy[Part]:
    return st.builds(
        Part,
        name,
        _COUNT,
        _COUNT,
        _COUNT,
        _TIME,
        _TIME,
        _COUNT,
        st.dictionaries(_LABELS.map(str), _COUNT),
        _CANDIDATES,
        _CANDIDATES,
        st.lists(_CANDIDATES, max_size=4, unique_by=lambda each: each.number).map(tuple),
        _CHOSEN,
        st.lists(_HELD_OUT, max_size=1).map(tuple),
        st.none() | _STABILITY,
        st.lists(st.builds(Flip, _FIELDS, _COUNT, _INCIDENTS, _OUTCOMES, _OUTCOMES), max_size=2).map(tuple),
    )


_AGREEMENTS = st.builds(
    Agreement,
    _COUNT,
    _COUNT,
    st.none() | st.floats(-1, 1),
    st.none() | st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    st.dictionaries(_LABELS.map(str), st.dictionaries(_LABELS.map(str), _COUNT)),
)
_CHANGES = st.tuples(SETTINGS, SETTINGS).map(lambda pair: pair[0].changes(pair[1]))


@st.composite
def reports(draw: st.DrawFn) -> TuningReport:
    """Return any report at all."""
    whole = draw(_parts(st.none()))
    return TuningReport(
        "0.2.0",
        Basis("2026.6", draw(st.sampled_from(ScopeRule)), draw(st.sampled_from(Arm))),
        draw(st.booleans()),
        draw(_SHARE),
        draw(st.sampled_from((0.5, 0.9, 0.95, 0.999))),
        draw(st.none() | st.floats(0, 100)),
        draw(_SHARE),
        draw(_COUNT),
        whole,
        tuple(draw(st.lists(_parts(TEXT), max_size=1))),
        tuple(draw(st.lists(st.builds(Decision, st.none() | TEXT, _CHANGES, TEXT), max_size=2))),
        draw(TEXT),
        tuple(draw(st.lists(TEXT, max_size=2))),
        tuple(draw(st.lists(_INCIDENTS, max_size=2))),
        draw(st.none() | _AGREEMENTS),
        draw(TEXT),
        [SourceReport(draw(TEXT), "openclaw")],
        tuple(draw(st.lists(st.builds(Skipped, TEXT, TEXT), max_size=1))),
        tuple(draw(st.lists(TEXT, max_size=2))),
        draw(st.sampled_from((SWEEP, {}))),
    )


def written(format_: str, made: TuningReport, **options: Any) -> bytes:
    """Return what a format of ``loopscan tune`` makes of a report."""
    reporter = load(format_, TUNE_FORMATS)
    out = io.BytesIO()
    if reporter.BINARY:
        reporter.write(made, out, Options(**options))
        return out.getvalue()
    text = io.StringIO()
    reporter.write(made, text, Options(**options))
    return text.getvalue().encode("utf-8", "surrogatepass")
