"""What ``loopscan check`` does: find the checks, make them, and rewrite snapshots if that is asked."""

from __future__ import annotations

import difflib
import fnmatch
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loopscan.checks.benign import check_benign
from loopscan.checks.document import read
from loopscan.checks.find import find
from loopscan.checks.last import failed_last_time, remember
from loopscan.checks.marks import written
from loopscan.checks.mistakes import Mistake, Mistakes
from loopscan.checks.report import CheckReport
from loopscan.checks.run import FAILED, UNREADABLE, Checked, failed, run
from loopscan.checks.schema import Settings
from loopscan.checks.tasks import BenignFolder, Task
from loopscan.checks.update import MOST_COMPARED, expectation_beside, new_file, rewritten
from loopscan.errors import UsageError
from loopscan.findings import Status
from loopscan.sanitize import clean
from loopscan.wholefile import whole_file

#: Called with each check that was made, and how many there are.
Progress = Callable[[Checked, int], None]


def check(
    paths: Sequence[str],
    *,
    over: Settings | None = None,
    benign: Iterable[BenignFolder] = (),
    only: Sequence[str] = (),
    rerun: bool = False,
    strict: bool = False,
    update: bool = False,
    diff: bool = False,
    allow_empty: bool = False,
    jobs: int = 1,
    previews: bool = True,
    progress: Progress | None = None,
    debug: bool = False,
) -> CheckReport:
    """Make the checks of ``paths`` (see :func:`~loopscan.checks.find.find`) and of ``benign`` folders.

    ``over`` are settings that go over what files say. Of all checks those count whose id meets one of ``only``
    (wildcards, or a part of it), and with ``rerun`` those that failed last time, if any did. ``strict`` makes a
    transcript without expectation a failure. ``update`` writes snapshots where they differ or are missing, ``diff``
    tells what it would write. That there is nothing to check is a failure, unless ``allow_empty``. ``jobs`` is the
    number of processes; it changes nothing in the report.

    What is wrong with one file or path is in the report, and everything else is still checked. Raises
    :class:`UsageError` where ``update`` and ``over`` contradict each other.
    """
    found = find(paths, over=over, strict=strict)
    folders = list({folder.key: folder for folder in (*found.benign, *benign)}.values())
    report = CheckReport(mistakes=found.mistakes, missing=found.missing)
    known = len(found.tasks) + len(folders)
    tasks = [task for task in found.tasks if _chosen(task.id, only)]
    folders = [folder for folder in folders if _chosen(folder.folder, only)]
    before = _before(report, needed=rerun)
    if rerun:
        tasks, folders = _again(tasks, folders, before, report)
    if update and over is not None and over.model_fields_set:
        _refuse_contradiction(tasks)
    for checked in run(tasks, jobs=jobs, previews=previews, update=update, debug=debug):
        report.checked.append(checked)
        if progress:
            progress(checked, len(tasks))
    for folder in folders:
        report.checked += check_benign(folder, jobs=jobs, previews=previews, debug=debug)
    if update or diff:
        _write_snapshots(report, over, update=update)
    if update and any(each.task.expect is not None and each.code == FAILED for each in report.checked):
        report.notes.append("assertions are written by hand, and --update leaves them: it rewrites snapshots alone")
    report.notes += dict.fromkeys(note for each in report.checked for note in each.notes)
    report.notes += found.notes
    try:
        remember(report.checked, before)
    except UsageError as error:
        report.notes.append(f"{error}: --rerun will not know what failed")
    if not (report.checked or report.mistakes or report.missing or allow_empty):
        report.checked.append(_nothing(known, found.untold, paths, only))
    return report


def _chosen(name: str, only: Sequence[str]) -> bool:
    """Tell whether a check is meant: a pattern is a part of its name, or meets it, or its last part; case is one."""
    names = (name.lower(), name.rpartition("/")[2].lower())
    wanted = [pattern.lower() for pattern in only]
    return not only or any(
        pattern in names[0] or any(fnmatch.fnmatchcase(each, pattern) for each in names) for pattern in wanted
    )


def _before(report: CheckReport, *, needed: bool) -> frozenset[str]:
    """Return which checks failed last time; what cannot be read matters only where it is ``needed``."""
    try:
        return failed_last_time()
    except UsageError as error:
        if needed:
            raise
        report.notes.append(f"{error}")
        return frozenset()


def _again(
    tasks: list[Task], folders: list[BenignFolder], before: frozenset[str], report: CheckReport
) -> tuple[list[Task], list[BenignFolder]]:
    """Return the checks and benign folders that failed last time; all of them if none did."""
    failed = [task for task in tasks if task.key in before]
    again = [folder for folder in folders if folder.key in before]
    if not failed and not again:
        report.facts["last time"] = "nothing failed: all checks are made"
        return tasks, folders
    words = f"{len(failed)} of {len(tasks)} checks failed"
    report.facts["last time"] = words + (f", and {len(again)} of {len(folders)} benign folders" if again else "")
    return failed, again


def _refuse_contradiction(tasks: Iterable[Task]) -> None:
    for task in tasks:
        if task.file is not None and task.snapshots:
            raise UsageError(
                f"--update writes what {clean(task.file)} asks for by itself: leave out the options that go over its"
                " settings, or name transcripts that have no expectation yet"
            )


def _nothing(known: int, untold: int, paths: Sequence[str], only: Sequence[str]) -> Checked:
    """Return the failure of a command that had nothing to check, of ``known`` checks and benign folders."""
    where = ", ".join(clean(path, 80) for path in paths[:3])
    task = Task(paths[0] if paths else ".", (), "nothing to check", {})
    rule, code = "no_expectation", FAILED
    if known:
        what = f"none of {known} checks meets --only {' '.join(only)}; -v lists them all"
    elif untold:
        what = f"nothing says what the transcripts in {where} must meet: --strict --update writes snapshots"
    else:
        what = f"no transcript and no expectation found in {where}"
        rule, code = "unreadable_transcript", UNREADABLE
    return failed(task, rule, f"{what}; --allow-empty lets it pass", code, Status.ERROR)


# -- snapshots ----------------------------------------------------------------------------------


def _write_snapshots(report: CheckReport, over: Settings | None, *, update: bool) -> None:
    """Write the snapshots that differ into their files, or only tell the difference."""
    by_file: dict[str, list[int]] = {}
    names: dict[str, str] = {}
    for place, checked in enumerate(report.checked):
        if checked.snapshot is not None and checked.task.snapshots:
            try:
                file = checked.task.file or str(expectation_beside(Path(checked.task.transcript)))
            except UsageError as error:
                report.mistakes.append(Mistake(checked.task.transcript, None, str(error)))
                continue
            by_file.setdefault(os.path.realpath(file), []).append(place)
            names.setdefault(os.path.realpath(file), file)
    for real, places in by_file.items():
        file, made = names[real], [report.checked[place] for place in places]
        try:
            if len({each.task.within for each in made}) < len(made):
                raise UsageError("is shared by several transcripts, which have snapshots of their own: copy the file")
            old, new = _texts(file, made, over)
            report.diffs[file] = _diff(file, old, new)
            if not update:
                continue
            with whole_file(file) as stream:
                stream.write(new.encode())
        except Mistakes as error:
            report.mistakes += error.found
            continue
        except UsageError as error:
            report.mistakes.append(Mistake(file, None, str(error)))
            continue
        report.updated.append(file)
        for place in places:
            report.checked[place] = _written(report.checked[place])


def _texts(file: str, checked: list[Checked], over: Settings | None) -> tuple[str, str]:
    """Return what a file says, and what it is to say."""
    if checked[0].task.file is None:
        settings = {} if over is None else _plain(over, Path(file).parent)
        return "", new_file(checked[0].task, written(checked[0].snapshot or {}), settings)
    document = read(Path(file), file)
    old = document.text
    for each in checked:
        document = rewritten(document, each.task.within, written(each.snapshot or {}))
    return old, document.text


def _plain(settings: Settings, folder: Path) -> dict[str, Any]:
    """Return settings as a file in ``folder`` says them."""
    plain = settings.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    if "config" in plain:
        plain["config"] = Path(os.path.relpath(plain["config"], folder)).as_posix()
    return plain


def _written(checked: Checked) -> Checked:
    """Return a check whose snapshot was written."""
    if checked.case.status is not Status.PASSED:
        return checked
    return replace(checked, case=replace(checked.case, reason="snapshot written"))


def _diff(file: str, old: str, new: str) -> str:
    if old.count("\n") * new.count("\n") > MOST_COMPARED:
        return f"{old.count(chr(10)):,} lines before and {new.count(chr(10)):,} after are too many to compare"
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{file}", f"b/{file}", lineterm="")
    return "\n".join(clean(line) for line in lines)
