"""``sarif``: the Static Analysis Results Interchange Format, version 2.1.0, as code scanning reads it."""

from __future__ import annotations

import re
from typing import Any, BinaryIO, Final

from loopscan.findings import RULES, Case, Finding, Findings, Rule, Severity, Status
from loopscan.reports.base import Options, Subject
from loopscan.reports.cases import findings_of
from loopscan.reports.encode import encode
from loopscan.reports.plain import sentence, title, uri

BINARY = True

#: GitHub refuses a run with more results.
MOST_RESULTS: Final = 25_000

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
# What GitHub calls the severity of a problem that is none of security.
_PROBLEM = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}
_INDEX = {rule: index for index, rule in enumerate(RULES)}
_PLACEHOLDER = re.compile(r"\{\d+\}")


def write(subject: Subject, out: BinaryIO, options: Options) -> None:
    """Write all findings as one indented SARIF document in UTF-8, with a newline at its end.

    Of more than :data:`MOST_RESULTS` findings the gravest are written, and a notification says how many are missing.
    """
    findings = findings_of(subject, options, texts=False)
    found = [(case, finding) for case in findings.cases for finding in case.findings]
    notifications = [_notification("error", error) for error in findings.errors]
    if len(found) > MOST_RESULTS:
        left_out = len(found) - MOST_RESULTS
        found = _gravest(found)
        words = f"{left_out} results are left out, the lightest ones: a run may have {MOST_RESULTS}"
        notifications.append(_notification("warning", words))
    suppressing = any(finding.suppressed is not None for _, finding in found)
    run = {
        "tool": {"driver": _driver(findings)},
        "automationDetails": {"id": f"loopscan/{findings.command}/"},
        "invocations": [
            {
                "executionSuccessful": not (findings.errors or findings.count(Status.ERROR)),
                "toolExecutionNotifications": notifications,
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(case, finding, suppressing=suppressing) for case, finding in found],
    }
    out.write(encode({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=True))


def _gravest(found: list[tuple[Case, Finding]]) -> list[tuple[Case, Finding]]:
    """Return as many as may be written, those that count and are gravest, in their order."""
    ranked = sorted(
        range(len(found)),
        key=lambda at: (found[at][1].suppressed is not None, _ORDER.index(found[at][1].severity)),
    )
    return [found[at] for at in sorted(ranked[:MOST_RESULTS])]


def _driver(findings: Findings) -> dict[str, Any]:
    return {"name": "loopscan", "version": findings.version, "rules": [_rule(rule) for rule in RULES.values()]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.help},
        "help": {"text": rule.help},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {
            "tags": ["loop-detection"],
            "precision": "high",
            "problem.severity": _PROBLEM[rule.severity],
        },
    }


def _result(case: Case, finding: Finding, *, suppressing: bool) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": uri(finding.place.path), "uriBaseId": "%SRCROOT%"}}
    if ":" in place["artifactLocation"]["uri"].partition("/")[0]:  # absolute: there is nothing to resolve it by
        del place["artifactLocation"]["uriBaseId"]
    if finding.place.line is not None:
        place["region"] = {"startLine": finding.place.line}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": _INDEX[finding.rule],
        "level": finding.severity.value,
        "message": {"text": _literal(sentence(finding.message))},
        "locations": [{"physicalLocation": place, "logicalLocations": [{"name": title(case.name)}]}],
        "partialFingerprints": {
            # The one that GitHub knows a result by; it would make one of the line's content else.
            "primaryLocationLineHash": f"{finding.fingerprint}:1",
            "loopscan/v1": finding.fingerprint,
        },
    }
    if suppressing:  # where one result says whether it is suppressed, all have to
        result["suppressions"] = [] if finding.suppressed is None else [_suppression(finding.suppressed)]
    return result


def _suppression(reason: str) -> dict[str, Any]:
    """Return a suppression: baselines and ignored findings are kept beside the transcripts, never in them."""
    return {"kind": "external", "status": "accepted", "justification": sentence(reason)}


def _notification(level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": _literal(sentence(text))}}


def _literal(text: str) -> str:
    """Return ``text`` so that nothing in it is an embedded link or a placeholder (SARIF 3.11.5 and 3.11.6)."""
    if "](" in text:
        text = re.sub(r"[\\\[\]]", r"\\\g<0>", text)
    if _PLACEHOLDER.search(text):
        text = text.replace("{", "{{").replace("}", "}}")
    return text
