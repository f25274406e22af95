"""``github``: workflow commands that annotate a run of GitHub Actions, the gravest findings first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Final

from loopscan.findings import RULES, Finding, Findings, Severity, Status
from loopscan.reports.base import Options, Subject
from loopscan.reports.cases import counting, findings_of, gravest_first, unsaid
from loopscan.reports.phrases import counted
from loopscan.reports.plain import path, sentence

BINARY = True

#: GitHub shows so many annotations of a kind a step.
SHOWN: Final = 10

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def write(subject: Subject, out: BinaryIO, options: Options) -> None:
    """Write a command for each finding that counts and each error that no case tells of, then a line that sums up.

    No text can start a command or end one: it is clean, hence of one line, and what commands use is escaped.
    """
    for line in _document(findings_of(subject, options, texts=False)):
        out.write(f"{line}\n".encode())


def _document(findings: Findings) -> Iterator[str]:
    kinds: Counter[Severity] = Counter()
    for error in unsaid(findings):
        kinds[Severity.ERROR] += 1
        yield f"::error title=loopscan {findings.command}::{_data(sentence(error))}"
    for finding in gravest_first(counting(findings)):
        kinds[finding.severity] += 1
        yield _command(finding)
    yield _summary(findings, kinds)


def _command(finding: Finding) -> str:
    properties = {"file": path(finding.place.path)}
    if finding.place.line is not None:
        properties["line"] = str(finding.place.line)
    properties["title"] = RULES[finding.rule].title
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {written}::{_data(sentence(finding.message))}"


def _summary(findings: Findings, kinds: Counter[Severity]) -> str:
    """Return what was found in our own words."""
    found = ", ".join(counted(kinds[kind], command) for kind, command in _COMMANDS.items())
    failed = counted(findings.count(Status.FAILED) + findings.count(Status.ERROR), "case")
    line = f"loopscan {findings.command}: {found}; {failed} of {len(findings.cases):,} failed"
    rest = sum(max(0, count - SHOWN) for count in kinds.values())
    if rest:
        line += f"; GitHub shows {SHOWN} annotations of a kind a step, so {rest:,} are in this log alone"
    return line


def _data(text: str) -> str:
    # The older form of commands, ##[name], is looked for anywhere in a line.
    return text.replace("##[", r"##\x5b").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
