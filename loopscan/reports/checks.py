"""``text`` of ``loopscan check``: what failed, expected against found, the reason, and the timeline around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from loopscan.checks.report import CheckReport
from loopscan.findings import Case, Status
from loopscan.reports.base import Options
from loopscan.reports.console import console, safe
from loopscan.reports.phrases import counted

if TYPE_CHECKING:
    from rich.console import Console

BINARY = False

_STYLES = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.ERROR: "bold red",
    Status.SKIPPED: "yellow",
}
#: How lines of a case begin that are told apart by colour.
_LINES = {"  expected": "green", "  found": "red", "  why": "bold", "+": "green", "-": "red", "@@": "cyan"}


def write(report: CheckReport, out: TextIO, options: Options) -> None:
    """Write what failed, then how many checks came out how; with ``verbose`` every check."""
    to = console(out, width=options.width, color=options.color)
    if not options.quiet:
        for case in report.cases:
            if options.verbose or case.status in {Status.FAILED, Status.ERROR}:
                _case(to, case)
        for file, diff in report.diffs.items():
            _diff(to, file, diff)
    for name, words in report.facts.items():
        to.print(safe(f"{name}: {words}"), soft_wrap=True)
    count = report.count()
    style = "bold red" if count[Status.FAILED] or count[Status.ERROR] else "bold green" if report.checked else "bold"
    to.print(safe(f"{counted(len(report.cases), 'check')}: {report.summary()}", style))


def _case(to: Console, case: Case) -> None:
    line = safe(case.status.value.upper(), _STYLES[case.status])
    line.append_text(safe(f"  {case.group} [{case.name}]", "bold"))
    if case.place.path != case.group:
        line.append_text(safe(f"  {case.place}", "dim"))
    to.print(line, soft_wrap=True)
    for text in told(case):
        to.print(safe(f"  {text}" if text else "", _style(text)), soft_wrap=True)
    if case.text:
        to.print()


def told(case: Case) -> list[str]:
    """Return what a person reads of a case: the reason, unless the text begins with it, and the text."""
    reason = [case.reason] if case.reason and not case.text.startswith(case.reason.partition(" (and ")[0]) else []
    return [*reason, *case.text.splitlines()]


def _diff(to: Console, file: str, diff: str) -> None:
    to.print(safe(file, "bold"))
    for text in diff.splitlines():
        to.print(safe(text, _style(text)), soft_wrap=True)
    to.print()


def _style(text: str) -> str:
    return next((style for start, style in _LINES.items() if text.startswith(start)), "")
