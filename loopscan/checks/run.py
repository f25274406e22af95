"""Checks made: each transcript replayed by itself, compared, and, where it differs, told so that one sees why."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from loopscan.checks.compare import Difference, compare, damage, runs_of
from loopscan.checks.marks import snapshot_of
from loopscan.checks.tasks import DEFAULT_RULESET, Task
from loopscan.errors import LoopscanError
from loopscan.findings import Case, Finding, Place, Severity, Status
from loopscan.fingerprints import digest
from loopscan.pool import in_order
from loopscan.replayer import Plan, carry_out, plan
from loopscan.report import Report
from loopscan.sanitize import clean

#: How many checks a process takes at a time: enough to make handing them over cheap.
_AT_ONCE: Final = 8
#: How many differences of one check are told in full.
MOST_TOLD: Final = 20
#: What a replay is called with, by the name of the setting.
_KEYWORDS: Final = {
    "ruleset": "ruleset",
    "config": "config",
    "agent": "agent",
    "set": "overrides",
    "mode": "mode",
    "scope": "scope",
    "arm": "arm",
    "tool_map": "tool_map",
    "input_format": "input_format",
}

#: Exit codes, the gravest last: failed, input that could not be read, an expectation that makes no sense.
FAILED, UNREADABLE, SENSELESS = 1, 3, 2


@dataclass(frozen=True, slots=True)
class Checked:
    """One check that was made."""

    task: Task
    case: Case
    differences: tuple[Difference, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """``sessions``, ``runs``, ``calls`` and ``marks`` of the transcript, and ``problems`` if there are any."""
    snapshot: Mapping[str, Any] | None = None
    """What a snapshot would say now, where the file's own says something else, or nothing yet."""
    code: int = 0
    """The exit code that this check alone would have."""
    notes: tuple[str, ...] = ()
    """What is to be known beside, a line each."""


def run(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    previews: bool = True,
    update: bool = False,
    debug: bool = False,
) -> Iterator[Checked]:
    """Make every check, in their order, in up to ``jobs`` processes, and yield what came of it.

    ``previews`` shows shortened, masked arguments in timelines; with ``update`` a stale snapshot does not fail;
    ``debug`` lets unforeseen exceptions through.
    """
    work = _Check(previews, update, debug)
    return in_order(tasks, work, work.killed, jobs, at_once=_AT_ONCE)


@dataclass(frozen=True, slots=True)
class _Check:
    """Makes one check; goes to other processes."""

    previews: bool
    update: bool
    debug: bool

    def __call__(self, task: Task) -> Checked:
        unsaid = task.fault is not None and task.fault.rule == "no_expectation"
        if task.fault is not None and not (unsaid and (task.snapshots or task.skip is not None)):
            return failed(task, task.fault.rule, task.fault.sentence)
        if task.skip is not None:
            return Checked(task, _case(task, Status.SKIPPED, task.skip))
        try:
            report = carry_out(planned(task, previews=False), debug=self.debug)
        except LoopscanError as error:
            if self.debug:
                raise
            return failed(task, "bad_expectation", clean(str(error)), SENSELESS, Status.ERROR)
        idle = (*_without_effect(report, task), *_unused_lines(report, task))
        complaints = report.complaints()
        if complaints or not (report.sessions or _expects_none(task)):
            what = complaints[0] if complaints else f"{clean(task.transcript)}: no session was found in it"
            return unreadable(task, what)
        now = snapshot_of(report)
        counts = {**now, "marks": len(now["marks"])}
        differences = compare(report, None if self.update else task.snapshot, task.expect)
        same = task.snapshot is not None and not compare(report, task.snapshot, None)
        stale = now if task.snapshots and not same else None
        if task.fault is not None and not self.update:
            return replace(failed(task, task.fault.rule, task.fault.sentence), counts=counts, snapshot=stale)
        if not differences:
            return Checked(task, _case(task, Status.PASSED), (), counts, stale, notes=idle)
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        reason, text = differences[0].sentence + more, self._told(task, differences)
        case = _case(task, Status.FAILED, reason, text, tuple(_findings(task, differences)))
        return Checked(task, case, tuple(differences), counts, stale, FAILED, idle)

    def killed(self, task: Task) -> Checked:
        """Return what is said of a check whose process was killed."""
        what = f"{clean(task.transcript)}: the process that replayed it was killed (out of memory?)"
        return unreadable(task, what)

    def _told(self, task: Task, differences: list[Difference]) -> str:
        """Return the differences, and the timelines around them."""
        again = planned(task, previews=self.previews)
        options = replace(again.options, expected=_expected(differences))
        report = carry_out(replace(again, options=options), debug=self.debug)
        return told(differences, report, previews=self.previews)


def _without_effect(report: Report, task: Task) -> tuple[str, ...]:
    """Return which settings of the check do nothing: the ruleset has fixed numbers, or there is no such agent."""
    asked = {*task.settings.get("set", {}), *({"agent"} if "agent" in task.settings else ())}
    where = f"{clean(task.file)}:{task.spot.line}: " if task.file is not None else ""
    notes = [note for note in report.policy.notes if note.kind == "ignored" and note.field in asked]
    return tuple(f"{where}{re.sub('^argument: overrides[.]', 'set ', note.message)}" for note in notes)


def _unused_lines(report: Report, task: Task) -> tuple[str, ...]:
    """Return which lines could not be used, where the check does not say itself how many that may be."""
    counts = task.expect.counts if task.expect is not None else None
    if not report.problems or task.snapshot is not None or (counts is not None and counts.problems is not None):
        return ()
    return (f"{damage(report)}; counts: {{problems: 0}} makes that a failure",)


def told(differences: Sequence[Difference], report: Report, *, previews: bool) -> str:
    """Return differences as a person reads them: each with what it rests on, then the timelines of their runs."""
    from loopscan.reports.base import Options
    from loopscan.reports.text import timeline_text

    lines: list[str] = []
    before: str | None = None
    for alike in _runs_of_alike(differences[:MOST_TOLD]):
        first = alike[0]
        lines.append(first.sentence + (f" ×{len(alike)}, to #{alike[-1].batch}" if len(alike) > 1 else ""))
        why = "as above" if first.why is not None and first.why == before else first.why
        before = first.why
        at = None if first.line is None else f"{clean(first.source or '')}:{first.line}"
        parts = (("expected", first.expected), ("found", first.found), ("at", at), ("why", why))
        lines += [f"  {name:<8}  {words}" for name, words in parts if words]
    if len(differences) > MOST_TOLD:
        lines.append(f"… and {len(differences) - MOST_TOLD} more differences")
    for session, runs in runs_of(list(differences[:MOST_TOLD]), report):
        lines += ["", f"Session {clean(session.session, 60)}"]
        lines += timeline_text(session, runs, Options(previews=previews)).splitlines()
    return "\n".join(lines)


def _runs_of_alike(differences: Sequence[Difference]) -> list[list[Difference]]:
    """Return the differences, those together that are one more mark each of a loop that nobody expects."""
    runs: list[list[Difference]] = []
    for each in differences:
        what = (each.rule, each.sentence, each.session, each.run)
        last = runs[-1][0] if runs else None
        same = last is not None and what == (last.rule, last.sentence, last.session, last.run)
        if same and each.rule == "unexpected_mark":
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _expects_none(task: Task) -> bool:
    """Tell whether a check is about a transcript that holds no session, such as a log."""
    counts = task.expect.counts if task.expect is not None else None
    return (task.snapshot is not None and not task.snapshot.sessions) or (counts is not None and counts.sessions == 0)


def planned(task: Task, *, previews: bool) -> Plan:
    """Return the replay of a task. Raises :class:`UsageError` and :class:`ConfigError` for settings without sense."""
    settings = {**task.settings, "ruleset": task.settings.get("ruleset", DEFAULT_RULESET)}
    stamp = _stamp(settings["config"]) if "config" in settings else None
    return replace(_plan(json.dumps(settings, sort_keys=True), stamp, previews), paths=list(map(Path, task.paths)))


def _stamp(path: str) -> tuple[str, int, int] | None:
    """Return what tells one state of a configuration from another; nothing where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - as often as there are checks
    except OSError:
        return None
    return os.path.realpath(path), found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _plan(settings: str, stamp: object, previews: bool) -> Plan:
    """Return a plan without paths: checks share their settings (in JSON), and the configuration in its state then."""
    return plan([], find_config=False, previews=previews, **keywords(json.loads(settings)))


def keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a check as keywords of :func:`~loopscan.replayer.plan`."""
    return {_KEYWORDS[name]: value for name, value in settings.items()}


def _expected(differences: Iterable[Difference]) -> dict[tuple[str, int], dict[int, tuple[str, ...]]]:
    """Return what was expected and is missing, by session and run, then by batch."""
    found: dict[tuple[str, int], dict[int, tuple[str, ...]]] = {}
    for each in differences:
        missing = each.rule == "missing_mark" and each.expected is not None
        if missing and each.session is not None and each.run is not None and each.batch is not None:
            batches = found.setdefault((each.session, each.run), {})
            batches[each.batch] = (*batches.get(each.batch, ()), each.expected or "")
    return found


def failed(task: Task, rule: str, sentence: str, code: int = FAILED, status: Status = Status.FAILED) -> Checked:
    """Return what is said of a check that failed as a whole, for one reason."""
    finding = Finding(rule, Severity.ERROR, sentence, _place(task), _digest(task, rule))
    return Checked(task, _case(task, status, sentence, findings=(finding,)), code=code)


def unreadable(task: Task, what: str) -> Checked:
    """Return what is said of a check whose transcript cannot be read."""
    return failed(task, "unreadable_transcript", what, UNREADABLE, Status.ERROR)


def _case(
    task: Task, status: Status, reason: str | None = None, text: str = "", findings: tuple[Finding, ...] = ()
) -> Case:
    return Case(task.transcript, task.name, status, _place(task), reason, text, findings)


def _place(task: Task) -> Place:
    return Place(task.transcript) if task.file is None else Place(task.file, task.spot.line)


def _findings(task: Task, differences: list[Difference]) -> Iterator[Finding]:
    """Yield a finding for each difference; those about the same are told apart by their order."""
    seen: Counter[tuple[str | None, ...]] = Counter()
    for each in differences:
        message = f"{each.sentence}: {each.why}" if each.why else each.sentence
        place = Place(each.source, each.line) if each.source is not None and each.line is not None else _place(task)
        about = (each.about, each.session)
        seen[each.rule, *about] += 1
        number = seen[each.rule, *about]
        yield Finding(each.rule, Severity.ERROR, message, place, _digest(task, each.rule, *about, number))


def _digest(task: Task, rule: str, *about: str | int | None) -> str:
    """Return the fingerprint of what is wrong with a check, however its transcript was named."""
    return digest("check", os.path.relpath(task.transcript or "."), task.name, rule, *about)
