"""Incidents as rows, for people to review and label, and how their labels agree with the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from loopscan.errors import UsageError
from loopscan.report import iso_time
from loopscan.sanitize import clean
from loopscan.tuning.courses import Judge
from loopscan.tuning.given import FORMULA, GivenLabels, name_of
from loopscan.tuning.incidents import Incident
from loopscan.tuning.labels import Label, label
from loopscan.tuning.profiles import LOWEST_THRESHOLD, SessionProfile
from loopscan.tuning.report import Agreement, IncidentRow
from loopscan.wholefile import whole_file

if TYPE_CHECKING:
    from loopscan.tuning.sweep import SessionAnswers

#: The formats that incidents are exported in, by the end of the file's name.
EXPORTS = (".csv", ".jsonl", ".parquet")


def earliest(incident: Incident) -> int:
    """Return the point from which an incident is labelled where no setting is meant: the fifth call, or the last."""
    orders = incident.evidence.orders
    return orders[min(LOWEST_THRESHOLD, len(orders)) - 1]


def row_of(profile: SessionProfile, unit: int, incident: Incident, judge: Judge) -> IncidentRow:
    """Return an incident as a row."""
    first, last = incident.calls[0], incident.calls[-1]
    point = earliest(incident)
    found = judge.label_at(profile, unit, incident, point)
    return IncidentRow(
        name_of(profile, incident),
        profile.source,
        profile.session,
        profile.run_numbers[incident.run],
        profile.agent,
        profile.model,
        incident.loops,
        incident.tools,
        incident.evidence.length,
        first.line,
        last.line,
        first.call,
        last.call,
        first.time,
        last.time,
        found.label,
        found.rule,
        label(incident.evidence, point).label,
    )


def rows(answers: Iterable[SessionAnswers], judge: Judge) -> Iterator[IncidentRow]:
    """Yield every incident that is long enough for some setting, in the order of the sessions."""
    for each in answers:
        for number, unit in enumerate(each.units):
            for incident in unit.incidents.incidents:
                if incident.evidence.length >= LOWEST_THRESHOLD:
                    yield row_of(each.profile, number, incident, judge)


def agreement_of(found: Sequence[IncidentRow], given: GivenLabels, confidence: float) -> Agreement:
    """Return how the labels that people gave agree with those of the rules, both seen from the earliest point."""
    from loopscan.tuning.agreement import kappa

    table = {rule.value: {one.value: 0 for one in Label} for rule in Label}
    sessions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in found:
        if row.rule == "given":
            table[row.rule_label.value][row.label.value] += 1
            sessions.setdefault((row.source, row.session), []).append((row.rule_label.value, row.label.value))
    agreed = kappa(list(sessions.values()), confidence)
    return Agreement(agreed.pairs, given.unmatched, agreed.value, agreed.interval, table)


def as_columns(row: IncidentRow) -> dict[str, Any]:
    """Return a row as plain values; ``label`` is empty unless a person gave it, so that it can be filled in."""
    return {
        "incident": row.incident,
        "label": row.label.value if row.rule == "given" else "",
        "rule_label": row.rule_label.value,
        "rule": row.rule,
        "source": row.source,
        "session": row.session,
        "run": row.run,
        "agent": row.agent,
        "model": row.model,
        "loops": " ".join(row.loops),
        "tools": " ".join(row.tools),
        "calls": row.calls,
        "first_line": row.first_line,
        "last_line": row.last_line,
        "first_call": row.first_call,
        "last_call": row.last_call,
        "started": iso_time(row.started),
        "ended": iso_time(row.ended),
    }


def export(path: str, found: Sequence[IncidentRow]) -> None:
    """Write incidents to a file of CSV, JSON lines or parquet, as the end of its name says.

    Raises :class:`UsageError` for another end, and for a file that cannot be written.
    """
    end = export_format(path)
    import polars as pl

    plain = [as_columns(row) for row in found]
    texts = ("incident", "label", "rule_label", "rule", "source", "session", "agent", "model", "loops", "tools")
    schema: dict[str, Any] = {**dict.fromkeys(texts, pl.String), "started": pl.String, "ended": pl.String}
    frame = pl.DataFrame(
        {name: [_utf8(row[name]) for row in plain] for name in _COLUMNS},
        schema={name: schema.get(name, pl.Int64) for name in _COLUMNS},
    )
    with whole_file(path) as out:
        if end == ".parquet":
            frame.write_parquet(out)
        elif end == ".jsonl":
            frame.write_ndjson(out)
        else:
            frame.with_columns(pl.col(pl.String).map_elements(_cell, return_dtype=pl.String)).write_csv(out)


def export_format(path: str) -> str:
    """Return the end of the name of a file that incidents go to. Raises :class:`UsageError` for an unknown one."""
    end = next((end for end in EXPORTS if path.lower().endswith(end)), None)
    if end is None:
        raise UsageError(f"--export-incidents {clean(path, 120)}: the name must end in {', '.join(EXPORTS)}")
    return end


_COLUMNS = (
    *("incident", "label", "rule_label", "rule", "source", "session", "run", "agent", "model", "loops", "tools"),
    *("calls", "first_line", "last_line", "first_call", "last_call", "started", "ended"),
)


def _utf8(value: object) -> object:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _cell(text: str) -> str:
    """Return text with nothing in it that a terminal acts on, and that no spreadsheet takes for a formula."""
    text = clean(text)
    return f"'{text}" if text[:1] in {*FORMULA} else text
