"""A judged report as cases with findings: one case a session, and two for what the baseline itself asks."""

from __future__ import annotations

from collections.abc import Iterator

from loopscan.checks.baseline import words
from loopscan.checks.baseline.ratchet import Judged, JudgedMark, JudgedSession, Standing
from loopscan.findings import Case, Finding, Names, Place, Severity, Status
from loopscan.fingerprints import digest
from loopscan.marks import Kind
from loopscan.reports.phrases import counted, kind_words

_SUPPRESSED = "in the baseline"


def cases(judged: Judged, path: str) -> tuple[Case, ...]:
    """Return the cases of a report that was held against the baseline in the file ``path``, as it was named.

    A session fails for its new marks alone; the others are findings that are suppressed. What was checked less, and
    settings that differ, fail in cases of the baseline.
    """
    names = Names()
    made = [_session(session, names.unique(session.source, session.session)) for session in judged.sessions]
    made.append(_of_baseline(path, "as much as before", "checked_less", words.less(judged)))
    made.append(_of_baseline(path, "the same settings", "other_settings", words.settings(judged.settings)))
    return tuple(made)


def _session(session: JudgedSession, name: str) -> Case:
    new = [each for each in session.marks if each.standing is Standing.NEW]
    return Case(
        session.source,
        name,
        Status.FAILED if new else Status.PASSED,
        _place(session, new[0]) if new else Place(session.source),
        f"{counted(len(new), 'mark')} not in the baseline" if new else None,
        "\n".join(map(_line, new)),
        tuple(_finding(session, each) for each in session.marks),
    )


def _finding(session: JudgedSession, judged: JudgedMark) -> Finding:
    mark = judged.mark
    severity = Severity.WARNING if mark.kind is Kind.WARNING else Severity.ERROR
    suppressed = judged.ignore.reason if judged.ignore else None
    if judged.standing is Standing.KNOWN:
        suppressed = _SUPPRESSED
    place = _place(session, judged)
    return Finding(mark.detector.value, severity, mark.message, place, judged.fingerprint, suppressed)


def _place(session: JudgedSession, judged: JudgedMark) -> Place:
    return Place(session.source, judged.mark.where.line or None)


def _line(judged: JudgedMark) -> str:
    mark = judged.mark
    where = f"line {mark.where.line}" if mark.where.line else f"batch {mark.batch}"
    return f"{where}: {kind_words(mark.kind)} by {mark.detector.value}: {mark.message}"


def _of_baseline(path: str, name: str, rule: str, sentences: Iterator[str]) -> Case:
    place = Place(path)
    found = tuple(Finding(rule, Severity.ERROR, each, place, digest(rule, each)) for each in sentences)
    status = Status.FAILED if found else Status.PASSED
    text = "\n".join(each.message for each in found)
    reason = found[0].message if len(found) == 1 else counted(len(found), "reason")
    return Case(path, name, status, place, reason if found else None, text, found)
