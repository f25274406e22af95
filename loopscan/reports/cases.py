"""From a replay's report to findings: one case a session, a finding a mark; what is no report says itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from loopscan.failing import fails
from loopscan.findings import Case, Finding, Findings, Names, Place, Severity, Status
from loopscan.fingerprints import Content, digest, fingerprints
from loopscan.marks import Kind, Level, Mark
from loopscan.report import Report, RunReport, SessionReport, Totals
from loopscan.reports.base import Options, Subject
from loopscan.reports.phrases import KINDS, UPPER_BOUND, counted, saved
from loopscan.reports.plain import lines, path, sentence, title
from loopscan.reports.text import timeline_text
from loopscan.sanitize import inert

#: The name of the case that says that a source could not be read.
READING = "reading"

_SEVERITIES = {Level.INFO: Severity.NOTE, Level.WARNING: Severity.WARNING, Level.CRITICAL: Severity.ERROR}


def findings_of(subject: Subject, options: Options, *, texts: bool = True) -> Findings:
    """Return all cases of ``subject``: of a replay's report, or of what has findings itself.

    Without ``texts`` the timelines of a report, which take most of the time, are not drawn.
    """
    if isinstance(subject, Report):
        return _Replayed(subject, options, texts=texts).findings()
    return subject.findings(options)


def unsaid(findings: Findings) -> list[str]:
    """Return the errors that no case tells of."""
    said = {case.reason for case in findings.cases}
    said.update(finding.message for case in findings.cases for finding in case.findings)
    return [error for error in findings.errors if error not in said]


def groups(findings: Findings) -> dict[str, list[Case]]:
    """Return the cases by their group, both in order of appearance."""
    grouped: dict[str, list[Case]] = {}
    for case in findings.cases:
        grouped.setdefault(case.group, []).append(case)
    return grouped


def counting(findings: Findings) -> Iterator[Finding]:
    """Yield the findings that are not suppressed."""
    return (finding for case in findings.cases for finding in case.findings if finding.suppressed is None)


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return ``findings`` with errors before warnings before notes, else in their order."""
    order = [Severity.ERROR, Severity.WARNING, Severity.NOTE]
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def story(case: Case) -> list[str]:
    """Return what there is to read of a case on clean lines: its text, else where its findings are that count."""
    return [inert(line) for line in (lines(case.text) if case.text else _told(case.findings))]


def _told(findings: Iterable[Finding]) -> list[str]:
    return [
        f"{where(finding.place)}: {sentence(finding.message)}" for finding in findings if finding.suppressed is None
    ]


def place_of(case: Case) -> str:
    """Return the transcript of a case, and where to look: in it, or in what says what it must meet."""
    at = where(case.place)
    return at if case.place.path == case.group else f"{path(case.group)} ({at})"


def where(place: Place) -> str:
    """Return a place as ``path:line``."""
    return path(place.path) if place.line is None else f"{path(place.path)}:{place.line}"


class _Replayed:
    """The cases of one replay."""

    def __init__(self, report: Report, options: Options, *, texts: bool) -> None:
        self._report = report
        self._options = options
        self._texts = texts
        self._seen: Counter[Content] = Counter()
        self._names = Names()

    def findings(self) -> Findings:
        """Return them all, in the order of the report, what could not be read last."""
        report = self._report
        cases = [self._session(session) for session in report.sessions]
        cases += [self._unread(source.path, source.complaints()) for source in report.sources if source.failures]
        cases += [self._unread(file.path, [f"{file.path}: {file.reason}"]) for file in report.skipped if file.unread]
        facts = tuple(_facts(report, report.count()))
        return Findings("replay", report.version, facts, tuple(cases), tuple(report.complaints()))

    def _session(self, session: SessionReport) -> Case:
        marks = list(session.marks())
        prints = fingerprints(session.session, (mark for _, mark in marks), self._seen)
        failing = [mark for _, mark in marks if fails(mark.kind, self._options.fail_on)]
        reason = None
        if failing:
            words = _made(Counter(mark.kind for mark in failing))
            reason = f"{words} at or above --fail-on {self._options.fail_on.value}"
        findings = tuple(
            self._finding(session, run, mark, fingerprint)
            for (run, mark), fingerprint in zip(marks, prints, strict=True)
        )
        text = ""
        if self._texts and (marks or session.recorded):
            text = "\n".join([*_told(findings), "", timeline_text(session, session.runs, self._options)]).lstrip("\n")
        return Case(
            group=session.source,
            name=self._names.unique(session.source, session.session),
            status=Status.FAILED if failing else Status.PASSED,
            place=_place(session, failing[0]) if failing else Place(session.source),
            reason=reason,
            text=text,
            findings=findings,
        )

    def _finding(self, session: SessionReport, run: RunReport, mark: Mark, fingerprint: str) -> Finding:
        where = f"session {title(session.session)}, run {run.run}, batch {mark.batch}"
        what = mark.message or f"{mark.detector.value} made this mark"
        lossy = "; lossy: what was compared is only partly on record" if mark.lossy else ""
        return Finding(
            rule=mark.detector.value,
            severity=_SEVERITIES[mark.level],
            message=f"{KINDS[mark.kind]}: {what} ({where}{lossy})",
            place=_place(session, mark),
            fingerprint=fingerprint,
        )

    def _unread(self, path: str, complaints: list[str]) -> Case:
        return Case(
            group=path,
            name=self._names.unique(path, READING),
            status=Status.ERROR,
            place=Place(path),
            reason=complaints[0],
            text="\n".join(complaints),
            findings=tuple(
                Finding(
                    "unreadable_transcript",
                    Severity.ERROR,
                    complaint,
                    Place(path),
                    digest(READING, path, complaint, number),
                )
                for number, complaint in enumerate(complaints)
            ),
        )


def _place(session: SessionReport, mark: Mark) -> Place:
    return Place(session.source, mark.where.line or None)


def _made(marks: Counter[Kind]) -> str:
    """Return how many marks of each kind there are, in words."""
    plural = {Kind.GUARD_ARMED: "guards armed"}
    return ", ".join(counted(marks[kind], KINDS[kind], plural.get(kind)) for kind in Kind if marks[kind])


def _facts(report: Report, totals: Totals) -> Iterator[tuple[str, str]]:
    ruleset = report.policy.ruleset
    yield "ruleset", f"{ruleset.name} ({ruleset.covers})"
    yield "mode", report.mode
    yield "scope", report.scope
    yield (
        "read",
        ", ".join(
            (
                counted(totals.sessions, "session"),
                counted(totals.runs, "run"),
                counted(totals.calls, "call"),
                counted(len(report.sources), "source"),
                counted(report.problems, "problem"),
            )
        ),
    )
    yield "marks", _made(totals.marks) or "none"
    if totals.not_reached.calls or totals.not_reached.tokens:
        yield "not reached", f"{saved(totals.not_reached)} ({UPPER_BOUND})"
    for note in report.silenced:
        yield "silenced", note.message
