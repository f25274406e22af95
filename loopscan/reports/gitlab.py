"""``gitlab``: a Code Quality report, which GitLab shows in merge requests."""

from __future__ import annotations

from collections import Counter
from typing import Any, BinaryIO

from loopscan.findings import Finding, Severity
from loopscan.reports.base import Options, Subject
from loopscan.reports.cases import counting, findings_of
from loopscan.reports.encode import encode
from loopscan.reports.plain import path, sentence

BINARY = True

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def write(subject: Subject, out: BinaryIO, options: Options) -> None:
    """Write the findings that count as a JSON array in UTF-8, with a newline at its end."""
    seen: Counter[str] = Counter()
    out.write(
        encode(
            [_issue(finding, seen) for finding in counting(findings_of(subject, options, texts=False))], indent=True
        )
    )


def _issue(finding: Finding, seen: Counter[str]) -> dict[str, Any]:
    """Return one finding; of equal fingerprints GitLab would show the first finding alone."""
    seen[finding.fingerprint] += 1
    again = seen[finding.fingerprint]
    return {
        "description": sentence(finding.message),
        "check_name": f"loopscan/{finding.rule}",
        "fingerprint": finding.fingerprint if again == 1 else f"{finding.fingerprint}-{again}",
        "severity": _SEVERITIES[finding.severity],
        # GitLab asks for a line even where there is none.
        "location": {"path": path(finding.place.path), "lines": {"begin": finding.place.line or 1}},
    }
