"""``junit``: test results in XML, as Jenkins and most other servers read them.

A suite a transcript, a test case a session (or check). Valid against the schema of Jenkins' xUnit plugin
(``junit-10.xsd``), which knows neither a place of a test case nor anything of a passed one but its output. There are
no times in it: the same input gives the same bytes.
"""

from __future__ import annotations

from typing import BinaryIO
from xml.etree import ElementTree

from loopscan.findings import Case, Findings, Status
from loopscan.reports.base import Options, Subject
from loopscan.reports.cases import findings_of, gravest_first, groups, story, unsaid
from loopscan.reports.plain import path, sentence, title

BINARY = True

_TAGS = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}


def write(subject: Subject, out: BinaryIO, options: Options) -> None:
    r"""Write all cases as one XML document in UTF-8, with a newline at its end.

    Clean text holds no character that XML cannot: those show as escapes such as ``\x1b``.
    """
    findings = findings_of(subject, options)
    stray = unsaid(findings)
    root = ElementTree.Element("testsuites", name=f"loopscan {findings.command}")
    for group, cases in groups(findings).items():
        root.append(_suite(group, cases))
    if stray:
        suite = _counted("loopscan", len(stray), 0, len(stray), 0)
        for error in stray:
            case = ElementTree.SubElement(suite, "testcase", name=sentence(error), classname="loopscan")
            ElementTree.SubElement(case, "error", message=sentence(error))
        root.append(suite)
    root.set("tests", str(len(findings.cases) + len(stray)))
    root.set("failures", str(findings.count(Status.FAILED)))
    root.set("errors", str(findings.count(Status.ERROR) + len(stray)))
    if len(root):
        root[0].insert(0, _properties(findings))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(out, encoding="utf-8", xml_declaration=True)
    out.write(b"\n")


def _suite(group: str, cases: list[Case]) -> ElementTree.Element:
    counts = [sum(case.status is status for case in cases) for status in _TAGS]
    suite = _counted(title(group), len(cases), *counts)
    suite.set("file", path(group))
    for case in cases:
        suite.append(_case(case))
    return suite


def _counted(name: str, tests: int, failures: int, errors: int, skipped: int) -> ElementTree.Element:
    return ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(tests),
        failures=str(failures),
        errors=str(errors),
        skipped=str(skipped),
    )


def _properties(findings: Findings) -> ElementTree.Element:
    """Return the version and the facts; the schema has no place for them but a suite, so the first one has them."""
    properties = ElementTree.Element("properties")
    for name, value in (("version", findings.version), *findings.facts):
        ElementTree.SubElement(properties, "property", name=title(name), value=sentence(value))
    return properties


def _case(case: Case) -> ElementTree.Element:
    element = ElementTree.Element("testcase", name=title(case.name), classname=title(case.group))
    told = "\n".join(story(case))
    if case.status is Status.PASSED:
        if case.findings:
            ElementTree.SubElement(element, "system-out").text = told
        return element
    outcome = ElementTree.SubElement(element, _TAGS[case.status])
    if case.reason is not None:
        outcome.set("message", sentence(case.reason))
    gravest = gravest_first(finding for finding in case.findings if finding.suppressed is None)
    if gravest and case.status is not Status.SKIPPED:
        outcome.set("type", gravest[0].rule)
    outcome.text = told
    return element
