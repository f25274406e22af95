"""What all checks of one command came to, as data."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from loopscan._version import __version__
from loopscan.checks.mistakes import Mistake
from loopscan.checks.run import FAILED, SENSELESS, UNREADABLE, Checked
from loopscan.findings import Case, Finding, Findings, Place, Severity, Status
from loopscan.fingerprints import digest

SCHEMA: Final = "loopscan.check/1"


@dataclass(slots=True)
class CheckReport:
    """Everything that was checked, and what stood in the way."""

    checked: list[Checked] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    """What is wrong with files of expectations."""
    missing: list[str] = field(default_factory=list)
    """Paths that were named and are not there, or could not be looked into, a line each."""
    updated: list[str] = field(default_factory=list)
    """Files that were rewritten."""
    diffs: dict[str, str] = field(default_factory=dict)
    """By file: what ``--update`` would change, or did, as a unified diff."""
    facts: dict[str, str] = field(default_factory=dict)
    """What a summary says besides, by name."""
    notes: list[str] = field(default_factory=list)
    """What is to be known beside, and fails nothing, a line each."""

    @property
    def cases(self) -> list[Case]:
        """Every check as reports show it, then every file of expectations that makes no sense."""
        files: dict[str, list[Mistake]] = {}
        for mistake in self.mistakes:
            files.setdefault(mistake.path, []).append(mistake)
        return [*(checked.case for checked in self.checked), *(_mistaken(*each) for each in files.items())]

    @property
    def errors(self) -> list[Case]:
        """Checks that could not be made."""
        return [checked.case for checked in self.checked if checked.case.status is Status.ERROR]

    def count(self) -> Counter[Status]:
        """Return how many checks came out how."""
        return Counter(case.status for case in self.cases)

    def exit_code(self, *, skip_errors: bool = False) -> int:
        """Return 0 if all is well; else 2 for files that make no sense, 3 for what cannot be read, 1 for failures.

        ``skip_errors`` lets what cannot be read pass, if anything was checked at all.
        """
        codes = {checked.code for checked in self.checked}
        if self.mistakes or SENSELESS in codes:
            return SENSELESS
        made = any(each.code != UNREADABLE and each.case.status is not Status.SKIPPED for each in self.checked)
        if (self.missing or UNREADABLE in codes) and not (skip_errors and made):
            return UNREADABLE
        return FAILED if FAILED in codes else 0

    def findings(self, options: object = None) -> Findings:
        """Return the same in the form that reports for machines are written from."""
        facts = tuple((name, words) for name, words in (*self.facts.items(), ("checks", self.summary())))
        return Findings("check", __version__, facts, tuple(self.cases), tuple(self.missing))

    def summary(self) -> str:
        """Return how many checks came out how, in words."""
        count = self.count()
        return ", ".join(f"{count[status]} {status.value}" for status in Status if count[status]) or "none"

    def to_dict(self) -> dict[str, Any]:
        """Return the report in the form of the schema ``loopscan.check/1``."""
        count = self.count()
        return {
            "schema": SCHEMA,
            "version": __version__,
            "checks": [_checked(checked) for checked in self.checked],
            "mistakes": [str(mistake) for mistake in self.mistakes],
            "missing": self.missing,
            "updated": self.updated,
            "facts": self.facts,
            "notes": self.notes,
            "totals": {"checks": count.total(), **{status.value: count[status] for status in Status}},
        }


def _mistaken(path: str, mistakes: list[Mistake]) -> Case:
    """Return the case of a file that makes no sense."""
    findings = tuple(
        Finding(
            "bad_expectation",
            Severity.ERROR,
            mistake.what,
            Place(path, mistake.spot.line if mistake.spot is not None else None),
            digest("mistake", os.path.relpath(path), mistake.what, number),
        )
        for number, mistake in enumerate(mistakes)
    )
    text = "\n".join(map(str, mistakes))
    return Case(path, "expectations", Status.ERROR, findings[0].place, str(mistakes[0]), text, findings)


def _checked(checked: Checked) -> dict[str, Any]:
    task, case = checked.task, checked.case
    return {
        "transcript": task.transcript,
        "name": task.name,
        "status": case.status.value,
        "reason": case.reason,
        "file": task.file,
        "line": task.spot.line if task.file is not None else None,
        "settings": dict(sorted(task.settings.items())),
        "counts": dict(checked.counts),
        "differences": [
            {
                "rule": each.rule,
                "sentence": each.sentence,
                "expected": each.expected,
                "found": each.found,
                "why": each.why,
                "session": each.session,
                "run": each.run,
                "source": each.source,
                "line": each.line,
            }
            for each in checked.differences
        ],
        "findings": [_finding(finding) for finding in case.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "path": finding.place.path,
        "line": finding.place.line,
        "fingerprint": finding.fingerprint,
        "suppressed": finding.suppressed,
    }
