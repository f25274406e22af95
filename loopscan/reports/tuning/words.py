"""What a tuning report says, in words that are alike in every format. Nothing here is made safe: formats do that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Final

from loopscan.reports.phrases import counted, duration, money, number, span
from loopscan.tuning.columns import setting_row
from loopscan.tuning.labels import Label
from loopscan.tuning.report import (
    Agreement,
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
)
from loopscan.tuning.settings import Setting

#: Said wherever savings are shown.
UPPER_BOUND: Final = "upper bound: the model might have recovered"
#: Stands for what is not known.
NOT_KNOWN: Final = "–"

_FIELDS: Final[Mapping[str, str]] = {
    "enabled": "enabled",
    "historySize": "history",
    "warningThreshold": "warning",
    "criticalThreshold": "critical",
    "globalCircuitBreakerThreshold": "breaker",
    "unknownToolThreshold": "unknown tool",
    "detectors.genericRepeat": "generic_repeat",
    "detectors.knownPollNoProgress": "known_poll_no_progress",
    "detectors.pingPong": "ping_pong",
    "postCompactionGuard.windowSize": "guard window",
}
_ENABLED: Final = {True: "enabled", False: "disabled", None: "enabled unset"}


def percent(share: float | None) -> str:
    """Return a share as a percentage with at most one digit after the point; 0 % and 100 % are exactly that."""
    if share is None:
        return NOT_KNOWN
    value = share * 100
    if 0 < value < 0.05:
        return "<0.1 %"
    if 99.95 <= value < 100:
        return ">99.9 %"
    return f"{value:.1f}".removesuffix(".0") + " %"


def interval(bounds: tuple[float, float]) -> str:
    """Return the bounds of a rate, such as ``1.8–42.8 %``."""
    low, high = (percent(bound).removesuffix(" %") for bound in bounds)
    return f"{low}–{high} %"


def rate(figures: Figures) -> str:
    """Return a false-block rate with what it is made of and its interval."""
    if figures.false_rate is None:
        return "no session at risk"
    sessions = f"{number(figures.false_sessions)} of {counted(figures.at_risk, 'session')} at risk"
    return f"{sessions}, {percent(figures.false_rate)} ({interval(figures.false_interval)})"


def change(field: str, value: bool | int | None) -> str:
    """Return one changed field, such as ``critical 15`` or ``ping_pong off``."""
    if field == "enabled":
        return _ENABLED[value if value is None else bool(value)]
    words = _FIELDS.get(field, field)
    if isinstance(value, bool):
        return f"{words} {'on' if value else 'off'}"
    return f"{words} {NOT_KNOWN if value is None else number(value)}"


def changes(fields: Mapping[str, bool | int | None]) -> str:
    """Return changed fields, such as ``critical 15, breaker 20``; nothing for none."""
    return ", ".join(change(field, value) for field, value in fields.items())


def setting(whole: Setting) -> str:
    """Return a setting with all that means something: thresholds if it is enabled, switches if they are off."""
    row = setting_row(whole)
    if whole.enabled is not True:
        names = ("enabled",) if whole.enabled is False else ("enabled", "postCompactionGuard.windowSize")
        return changes({name: row[name] for name in names})
    return changes({name: value for name, value in row.items() if name == "enabled" or value is not True})


def saved(savings: Savings) -> str:
    """Return what would be saved: calls, tokens with those read from a cache apart, dollars, minutes."""
    parts = [counted(savings.calls, "call")]
    if savings.tokens:
        cached = f" ({number(savings.cache_read_tokens)} of them cached)" if savings.cache_read_tokens else ""
        parts.append(counted(savings.tokens, "token") + cached)
    if savings.cost_usd > 0:
        parts.append(money(savings.cost_usd))
    if savings.seconds >= 1:
        parts.append(duration(savings.seconds))
    return ", ".join(parts)


def lead(figures: Figures) -> str:
    """Return the mean lead in calls."""
    return NOT_KNOWN if figures.lead is None else f"{figures.lead:.1f}"


def minutes(seconds: float) -> str:
    """Return minutes with one digit after the point."""
    return f"{seconds / 60:,.1f}"


def labels(counts: Mapping[str, int]) -> str:
    """Return incidents by label, those that nobody can judge always among them."""
    total = sum(counts.values())
    by_label = " · ".join(f"{number(counts.get(label, 0))} {label}" for label in Label)
    return f"{counted(total, 'incident')}: {by_label}"


def read(part: Part) -> Iterator[tuple[str, str]]:
    """Yield what was read, a name and a sentence each."""
    yield (
        "sessions",
        f"{counted(part.sessions, 'session')} · {counted(part.runs, 'run')} · {counted(part.calls, 'call')}",
    )
    yield "time", span(part.started, part.ended) or "not on record"
    yield "incidents", labels(part.incidents)
    yield "at risk", f"{counted(part.at_risk, 'session')} of {number(part.sessions)} can be judged"


def made_with(report: TuningReport) -> Iterator[tuple[str, str]]:
    """Yield what was tried, and under what."""
    courses = counted(len(report.whole.candidates), "different course of events", "different courses of events")
    yield "tried", f"{counted(report.settings, 'setting')}, {courses}"
    yield "in force", setting(report.whole.in_force.setting)
    if not report.configurable:
        words = f"ruleset {report.basis.ruleset} fixes the thresholds and reads enabled alone"
        yield "what-if", f"{words}: other thresholds are a what-if"
    yield "prices", report.priced


def verdict(chosen: Chosen) -> str:
    """Return what comes of choosing: the setting that is recommended, or that there is none; the reason says why."""
    if chosen.candidate is None:
        return "no recommendation"
    return changes(chosen.candidate.changes) or "what is in force"


def evidence(report: TuningReport, part: Part) -> Iterator[tuple[str, str]]:
    """Yield what a recommendation or a refusal rests on, and what is promised."""
    chosen = part.chosen
    sessions = f"{counted(part.at_risk, 'session')} at risk"
    if chosen.sessions_needed is not None:
        more = "with no further false block" if chosen.sessions_more else "without a false block"
        sessions += f"; the promise needs {number(chosen.sessions_needed)} {more}"
    yield "evidence", sessions
    if chosen.sessions_more:
        yield (
            "more",
            f"about {counted(chosen.sessions_more, 'more session')} of all kinds, if as many are at risk as now",
        )
    elif chosen.candidate is None and chosen.sessions_needed is not None and chosen.sessions_more is None:
        yield "more", "how many more sessions that takes cannot be told"
    if chosen.candidate is None:
        return
    figures = chosen.candidate.figures
    if figures.at_risk != part.at_risk:
        yield (
            "chosen on",
            f"{counted(figures.at_risk, 'session')} at risk: the other ones are held out, or tell nothing of it",
        )
    yield "incidents", caught(figures)
    yield "false", f"{counted(figures.false_blocks, 'false block')} in {rate(figures)}"
    yield "saves", f"{saved(figures.saved)} ({UPPER_BOUND})"
    if chosen.by_cost:
        ratio = "" if report.cost_ratio is None else f" of {report.cost_ratio:g}"
        yield "promise", f"none: chosen by the cost ratio{ratio}"
        return
    words = f"false-block rate at most {percent(report.max_false_block)} with confidence {percent(report.confidence)}"
    words += ", corrected for choosing among settings"
    if chosen.candidate.upper_bound is not None:
        words += f"; upper bound {percent(chosen.candidate.upper_bound)}"
    if chosen.candidate.p_value is not None:
        words += f"; p {chosen.candidate.p_value:.2g}"
    yield "promise", words


def caught(figures: Figures) -> str:
    """Return how many stuck incidents are caught, with the unknown ones."""
    words = f"{number(figures.caught)} of {number(figures.caught + figures.missed)} stuck caught"
    words += f" · {number(figures.unknown_blocked)} unknown blocked"
    if figures.not_reached:
        words += f" · {number(figures.not_reached)} not reached"
    return words


#: The rows of a comparison: what is compared, and how it is told.
_COMPARED: Final = (
    ("stuck caught", lambda figures: f"{number(figures.caught)} of {number(figures.caught + figures.missed)}"),
    ("false blocks", lambda figures: number(figures.false_blocks)),
    ("false-block rate", rate),
    ("unknown blocked", lambda figures: number(figures.unknown_blocked)),
    ("warnings per 1,000 calls", lambda figures: f"{figures.warnings_per_1000_calls:,.1f}"),
    ("lead in calls", lead),
    (f"saved ({UPPER_BOUND})", lambda figures: saved(figures.saved)),
)


def held_out(each: HeldOut) -> tuple[str, list[tuple[str, str, str]]]:
    """Return what was held out in a sentence, and the figures side by side: name, before, after."""
    chosen_on, left = each.sessions
    words = f"chosen on {counted(chosen_on, 'session')}, held out {number(left)}: {verdict(each.chosen)}"
    if each.chosen.candidate is None:
        words += f"; {each.chosen.reason}" if each.chosen.reason else ""
    if each.before is None and each.after is None:
        return words, []

    def told(figures: Figures | None, row: int) -> str:
        return NOT_KNOWN if figures is None else _COMPARED[row][1](figures)

    return words, [(name, told(each.before, row), told(each.after, row)) for row, (name, _) in enumerate(_COMPARED)]


def stability(part: Part, found: Stability) -> tuple[str, list[str]]:
    """Return how often the same was chosen, and what else was: what that changes of what is in force."""
    redraws = counted(found.rounds, "redraw")
    if part.chosen.candidate is None:
        words = f"no recommendation in {percent(found.none)} of {redraws}"
    else:
        words = f"the same choice in {percent(found.same)} of {redraws}"
        words += f", none in {percent(found.none)}" if found.none else ""
    in_force = part.in_force.setting
    others = ((changes(other.changes(in_force)) or "what is in force", share) for other, share in found.others)
    return words, [f"{percent(share)}: {other}" for other, share in others]


def place(row: IncidentRow) -> str:
    """Return where an incident begins: ``source:line``."""
    return f"{row.source}:{row.first_line}"


def where(row: IncidentRow) -> str:
    """Return its run and calls."""
    if row.first_call < 0:
        return f"run {row.run}"
    return f"run {row.run}, calls {row.first_call}–{row.last_call}"


def explaining(row: IncidentRow) -> str:
    """Return the command that explains the last call of an incident, not clean yet."""
    call = f":{row.last_call}" if row.last_call >= 0 else ""
    return f"loopscan explain {quote(row.source + call)} --session {quote(row.session)} --run {row.run}"


def what(row: IncidentRow) -> str:
    """Return what repeats in an incident."""
    loops = " and ".join(outcome(loop) for loop in row.loops)
    return f"{loops} of {', '.join(row.tools)}, {counted(row.calls, 'call')}"


def judged(row: IncidentRow) -> str:
    """Return its label with the rule that gave it."""
    words = f"{row.label.value} ({outcome(row.rule)})"
    return words if row.label is row.rule_label else f"{words}; the rules say {row.rule_label.value}"


def outcome(value: str) -> str:
    """Return an identifier in words."""
    return value.replace("_", " ")


def flip(each: Flip) -> tuple[str, str]:
    """Return the threshold as moved, and what becomes of the incident."""
    return change(each.field, each.value), f"{outcome(each.before)} → {outcome(each.after)}"


def decision(each: Decision) -> str:
    """Return what to do."""
    return changes(each.changes) or "leave as it is"


def agreement(found: Agreement) -> str:
    """Return how rules and given labels agree."""
    kappa = "not defined" if found.kappa is None else f"{found.kappa:.2f}"
    if found.interval is not None:
        kappa += f" ({found.interval[0]:.2f} to {found.interval[1]:.2f})"
    words = f"{counted(found.given, 'given label')}, Cohen's kappa {kappa}"
    if found.unmatched:
        words += f"; {counted(found.unmatched, 'line of the file means', 'lines of the file mean')} no incident"
    return words


def agreement_table(found: Agreement) -> tuple[list[str], list[list[str]]]:
    """Return the counts by rule label and given label: the head, then a row for each rule label."""
    given = [label for label in Label if any(label in row for row in found.table.values())] or list(Label)
    head = ["the rules say", *(f"given {label.value}" for label in given)]
    rows = [[rule, *(number(row.get(label, 0)) for label in given)] for rule, row in found.table.items()]
    return head, rows
