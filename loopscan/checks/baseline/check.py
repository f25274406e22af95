"""What ``loopscan check --baseline`` does: replay logs, hold them against the baseline, write it anew if asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from loopscan.checks.baseline import words
from loopscan.checks.baseline.cases import cases
from loopscan.checks.baseline.data import Baseline, updated
from loopscan.checks.baseline.file import NoBaselineError, load, write
from loopscan.checks.baseline.ratchet import Judged, Standing, judge
from loopscan.checks.compare import damage
from loopscan.checks.report import CheckReport
from loopscan.checks.run import FAILED, Checked, keywords, unreadable
from loopscan.checks.schema import Settings
from loopscan.checks.tasks import Task, label
from loopscan.findings import Case, Status
from loopscan.replayer import Progress, carry_out, plan
from loopscan.report import Report
from loopscan.reports.base import Options
from loopscan.reports.sources import copied
from loopscan.reports.text import timeline_text
from loopscan.sanitize import clean


def check_baseline(
    paths: Sequence[str],
    file: Path,
    today: date,
    *,
    over: Settings | None = None,
    update: bool = False,
    skip_errors: bool = False,
    allow_empty: bool = False,
    jobs: int = 1,
    previews: bool = True,
    progress: Progress | None = None,
    debug: bool = False,
) -> CheckReport:
    """Replay ``paths`` as ``loopscan replay`` does, and hold the marks against the baseline in ``file``.

    ``over`` are the settings to replay with, ``today`` decides which ignores have expired. ``update`` writes the
    baseline (or makes it), unless something could not be read; with ``skip_errors`` that does not matter.
    Raises :class:`ConfigError` for a baseline that is missing or makes no sense, and what :func:`replay` raises.
    """
    settings = {} if over is None else over.model_dump(exclude_none=True)
    task = Task(str(file), tuple(paths), label(settings), settings)
    known = _known(file, update=update)
    report = carry_out(
        plan(paths, previews=previews, **keywords(settings)), jobs=jobs, progress=progress, debug=debug
    )
    made = CheckReport(missing=report.complaints())
    if report.found_config.path is not None:
        made.notes.append(f"judged with {report.found_config.path}, which lies in a folder that was named")
    empty = not report.sessions
    if empty and known is None and (skip_errors or not made.missing):
        if not allow_empty:
            what = f"no session was found in {', '.join(clean(path, 80) for path in paths[:3])}"
            made.checked.append(unreadable(task, what))
        return made
    if update and not empty and (skip_errors or not made.missing):
        after = updated(report, known, today)
        if after != known:
            write(after, file)
            made.updated.append(str(file))
            made.facts["updated"] = "; ".join(words.changes(known, after)) or "nothing that counts"
        known = after
    elif update:
        why = "no session was found" if empty else "not everything could be read"
        made.facts["updated"] = f"not written, since {why}"
    if known is None:
        return made
    judged = judge(report, known, today)
    if skip_errors:
        judged = replace(judged, unread=())
    made.facts["baseline"] = words.summary(judged)
    made.notes += [note for note in (damage(report), copied(report.sources)) if note]
    made.notes += list(words.remarks(judged))
    made.checked += [
        Checked(
            replace(task, transcript=case.group, name=case.name), case, code=FAILED * (case.status is Status.FAILED)
        )
        for case in _with_timelines(cases(judged, str(file)), judged, report, Options(previews=previews))
    ]
    return made


def _known(file: str | os.PathLike[str], *, update: bool) -> Baseline | None:
    """Return the baseline, or nothing where ``update`` is to make the first one."""
    try:
        return load(file)
    except NoBaselineError:
        if update:
            return None
        raise


def _with_timelines(made: Sequence[Case], judged: Judged, report: Report, options: Options) -> Iterator[Case]:
    """Yield the cases, those of sessions that fail with the timeline around their new marks."""
    sessions = zip(judged.sessions, report.sessions, strict=True)
    for case in made:
        pair = next(sessions, None)
        if pair is None or case.status is not Status.FAILED:
            yield case
            continue
        new = {id(each.mark) for each in pair[0].marks if each.standing is Standing.NEW}
        runs = [run for run in pair[1].runs if any(id(mark) in new for mark in run.marks)]
        yield replace(case, text=f"{case.text}\n\n{timeline_text(pair[1], runs, options)}")
