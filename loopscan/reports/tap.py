"""``tap``: the Test Anything Protocol, version 14, with YAML diagnostics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from loopscan.findings import Case, Finding, Findings, Status
from loopscan.reports.base import Options, Subject
from loopscan.reports.cases import findings_of, unsaid
from loopscan.reports.plain import lines, path, sentence, title

BINARY = True


def write(subject: Subject, out: BinaryIO, options: Options) -> None:
    """Write a test point in UTF-8 for each case, and for each error that no case tells of.

    What failed or could not be carried out has a YAML block that says why; so has a passed case with findings.
    """
    for line in _document(findings_of(subject, options)):
        out.write(f"{line}\n".encode())


def _document(findings: Findings) -> Iterator[str]:
    stray = unsaid(findings)
    points = len(findings.cases) + len(stray)
    yield "TAP version 14"
    yield f"1..{points}" if points else "1..0 # there is no case"
    for fact, value in (("version", findings.version), *findings.facts):
        yield f"# {title(fact)}: {sentence(value)}"
    for number, case in enumerate(findings.cases, 1):
        yield from _point(number, case)
    for number, error in enumerate(stray, len(findings.cases) + 1):
        yield f"not ok {number} - {_escaped(sentence(error))}"


def _point(number: int, case: Case) -> Iterator[str]:
    held = case.status in {Status.PASSED, Status.SKIPPED}
    line = f"{'ok' if held else 'not ok'} {number} - {_escaped(f'{path(case.group)}: {title(case.name)}')}"
    if case.status is Status.SKIPPED:
        reason = f" {_escaped(sentence(case.reason))}" if case.reason else ""
        yield f"{line} # SKIP{reason}"
        return
    yield line
    if case.status is Status.PASSED and not case.findings:
        return
    yield "  ---"
    if case.reason is not None:
        yield f"  message: {_scalar(sentence(case.reason))}"
    yield f"  severity: {'none' if held else 'error' if case.status is Status.ERROR else 'fail'}"
    yield "  at:"
    yield f"    file: {_scalar(path(case.place.path))}"
    if case.place.line is not None:
        yield f"    line: {case.place.line}"
    if case.findings:
        yield "  findings:"
        for finding in case.findings:
            yield from _diagnostic(finding)
    if case.text:
        yield "  text:"
        for each in lines(case.text):
            yield f"    - {_scalar(each)}"
    yield "  ..."


def _diagnostic(finding: Finding) -> Iterator[str]:
    yield f"    - rule: {_scalar(finding.rule)}"
    yield f"      severity: {finding.severity.value}"
    yield f"      message: {_scalar(sentence(finding.message))}"
    yield f"      file: {_scalar(path(finding.place.path))}"
    if finding.place.line is not None:
        yield f"      line: {finding.place.line}"
    if finding.suppressed is not None:
        yield f"      suppressed: {_scalar(sentence(finding.suppressed))}"


def _scalar(text: str) -> str:
    """Return clean text as a scalar of YAML: a string of JSON is one."""
    return json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    """Return clean text so that nothing in it starts a directive."""
    return text.replace("\\", "\\\\").replace("#", "\\#")
