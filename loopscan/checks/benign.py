"""Benign folders: sessions in which nothing was wrong, so that every block there is a false alarm."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from loopscan.checks.compare import damage
from loopscan.checks.marks import FoundMark, found_marks, words
from loopscan.checks.reasons import why_found
from loopscan.checks.run import FAILED, SENSELESS, Checked, failed, planned, unreadable
from loopscan.checks.tasks import BenignFolder, Task, label
from loopscan.errors import LoopscanError
from loopscan.findings import Case, Finding, Place, Severity, Status
from loopscan.fingerprints import Content, fingerprints
from loopscan.marks import Level
from loopscan.replayer import carry_out
from loopscan.report import Report, SessionReport
from loopscan.reports.phrases import counted
from loopscan.reports.sources import copied
from loopscan.sanitize import clean


def check_benign(folder: BenignFolder, *, jobs: int = 1, previews: bool = True, debug: bool = False) -> list[Checked]:
    """Replay a benign folder and return a check for each of its sessions, and one for its warnings.

    A session fails by a block or the end of a run; warnings are counted over the whole folder.
    """
    task = Task(
        folder.folder, (folder.folder,), f"benign, {label(folder.settings)}", folder.settings, part_of=folder.key
    )
    try:
        report = carry_out(planned(task, previews=previews), jobs=jobs, debug=debug)
    except LoopscanError as error:
        if debug:
            raise
        return [failed(task, "bad_expectation", clean(str(error)), SENSELESS, Status.ERROR)]
    checked = [unreadable(task, complaint) for complaint in report.complaints()]
    if not report.sessions and not checked:
        what = f"no session was found in {clean(folder.folder)}"
        return [unreadable(task, what)]
    seen: Counter[Content] = Counter()
    by_session: dict[int, list[FoundMark]] = {}
    marks = found_marks(report)
    for mark in marks:
        by_session.setdefault(id(mark.session), []).append(mark)
    checked += [
        _session(task, each, by_session.get(id(each), []), report, previews, seen) for each in report.sessions
    ]
    notes = [note for note in (damage(report), copied(report.sources), _links(folder.folder)) if note]
    if notes:
        checked[0] = replace(checked[0], notes=tuple(f"{clean(folder.folder)}: {note}" for note in notes))
    return [*checked, _warnings(task, marks, folder.max_warnings)] if report.sessions else checked


def _session(
    task: Task, session: SessionReport, marks: list[FoundMark], report: Report, previews: bool, seen: Counter[Content]
) -> Checked:
    from loopscan.reports.base import Options
    from loopscan.reports.text import timeline_text

    findings = tuple(_findings(session, marks, report, seen))
    wrong = [mark for mark in marks if mark.mark.level is Level.CRITICAL]
    name = f"{task.name}: {clean(session.session, 60)}"
    case = Case(session.source, name, Status.PASSED, Place(session.source), findings=findings)
    counts = {"sessions": 1, "runs": len(session.runs), "calls": session.calls, "marks": len(marks)}
    own = replace(task, transcript=session.source, name=name)
    if not wrong:
        return Checked(own, case, counts=counts)
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    reason = f"false alarm on a benign session: {words(wrong[0].row)}{more}"
    numbers = {mark.run.run for mark in wrong}
    ran = [run for run in session.runs if run.run in numbers]
    timeline = timeline_text(session, ran, Options(previews=previews))
    text = f"  why       {why_found(wrong[0], report)}\n\n{timeline}"
    return Checked(own, replace(case, status=Status.FAILED, reason=reason, text=text), counts=counts, code=FAILED)


def _findings(
    session: SessionReport, marks: list[FoundMark], report: Report, seen: Counter[Content]
) -> Iterator[Finding]:
    prints = fingerprints(session.session, [mark.mark for mark in marks], seen)
    for mark, fingerprint in zip(marks, prints, strict=True):
        if mark.mark.level is Level.INFO:
            continue
        severity = Severity.ERROR if mark.mark.level is Level.CRITICAL else Severity.WARNING
        place = Place(session.source, mark.mark.where.line or None)
        message = f"on a benign session: {words(mark.row)}: {why_found(mark, report)}"
        yield Finding(mark.mark.detector.value, severity, message, place, fingerprint)


def _warnings(task: Task, marks: list[FoundMark], most: int) -> Checked:
    """Return the check of the warnings of the whole folder."""
    found = [mark for mark in marks if mark.mark.level is Level.WARNING]
    own = replace(task, name=f"{task.name}: warnings")
    if len(found) <= most:
        reason = f"{len(found)} of at most {most}"
        return Checked(own, Case(own.transcript, own.name, Status.PASSED, Place(own.transcript), reason))
    text = "\n".join(f"  {clean(mark.session.source)}: {words(mark.row)}" for mark in found[:20])
    what = f"{counted(len(found), 'warning')} on benign sessions, where {most} may be"
    checked = failed(own, "too_many_warnings", what, FAILED)
    return replace(checked, case=replace(checked.case, text=text))


def _links(folder: str) -> str | None:
    """Return how many links in a folder a replay does not follow."""
    links = sum(Path(at, name).is_symlink() for at, folders, files in os.walk(folder) for name in (*folders, *files))
    return f"{counted(links, 'link')} in it {'is' if links == 1 else 'are'} not followed" if links else None
