"""Findings that no replay made: any text at all in every place, for properties of the formats."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from loopscan.findings import RULES, Case, Finding, Findings, Place, Severity, Status
from loopscan.reports import Options, load

SCHEMAS = Path(__file__).parents[1] / "schemas"

NASTY = (
    "]]>",
    "<![CDATA[",
    "&#0;<a href='x'>",
    "</failure></testcase>",
    "<script>alert(1)</script>",
    "<!-- -->",
    "::error file=x::y",
    "::stop-commands::z",
    "##[error]no",
    "%0A::warning::no",
    "\n::error::no",
    "\r\nok 1 - no",
    "\n  ...\nBail out!",
    "# SKIP no",
    "\\# TODO no\\",
    "``` \n",
    "````",
    "`",
    "\n```\n# no\n",
    "| no | \\| |",
    "@somebody #1 GH-2 :smile:",
    "[no](http://example.org) ![no](x.png)",
    "www.example.org a@example.org https://example.org/",
    "</summary></details>",
    "\n\n<details>",
    "{0} {{1}}",
    "[a\\](b) \\](c)",
    "\x1b[31m\x00\x07\x9b",
    "\u202egnp.exe\u2066",
    "\ud800",
    "\udcff",
    "\ufffe\uffff\U000e0041",
    "e" + "\u0301" * 9,
    " ",
    "",
    "a" * 2000,
)
TEXT = st.lists(
    st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=()), max_size=12)), max_size=4
).map("".join)
NAMED_PATHS = st.sampled_from(
    (
        "-",
        "sessions/a b.jsonl",
        "./here.jsonl",
        "../there.jsonl",
        "/var/log/ü.jsonl",
        "//host/share",
        "C:\\x\\y.jsonl",
        "night.tar.gz/agents/main/s:1.jsonl",
        "s3://bucket/key with space#1?x",
        "https://example.org:8080/a%20b",
        "https://[::1]:80/x",
        "https://user:hunter2hunter2@example.org/x",
        "javascript:alert(1)",
        "a:b/c",
    )
)
PLACES = st.builds(Place, NAMED_PATHS | TEXT, st.none() | st.integers(1, 10**6))
FINDINGS = st.builds(
    Finding,
    rule=st.sampled_from(sorted(RULES)),
    severity=st.sampled_from(Severity),
    message=TEXT,
    place=PLACES,
    fingerprint=st.sampled_from(("ab" * 32, "cd" * 32)),
    suppressed=st.none() | TEXT,
)
CASES = st.builds(
    Case,
    group=NAMED_PATHS | TEXT,
    name=TEXT,
    status=st.sampled_from(Status),
    place=PLACES,
    reason=st.none() | TEXT,
    text=TEXT,
    findings=st.lists(FINDINGS, max_size=2).map(tuple),
)
SUBJECTS = st.builds(
    Findings,
    command=st.sampled_from(("replay", "check")),
    version=st.just("0.1.0"),
    facts=st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
    cases=st.lists(CASES, max_size=3).map(tuple),
    errors=st.lists(TEXT, max_size=2).map(tuple),
)

#: Every nasty text in every place at once.
NASTIEST = Findings(
    "check",
    "0.1.0",
    tuple((text, text) for text in NASTY),
    tuple(
        Case(
            text,
            text,
            status,
            Place(text, 1),
            text,
            text,
            (Finding("ping_pong", Severity.NOTE, text, Place(text), "ab"),),
        )
        for text in NASTY
        for status in Status
    ),
    ("an error", "::error::of its own # SKIP"),
)


@dataclass
class Checked:
    """What is no report, and has findings."""

    found: Findings

    def findings(self, options: Options) -> Findings:
        return self.found


def written(format_: str, subject: object, **options: Any) -> bytes:
    """Return what a format makes of a report, or of findings."""
    out = io.BytesIO()
    load(format_).write(Checked(subject) if isinstance(subject, Findings) else subject, out, Options(**options))
    return out.getvalue()


def case(name: str = "one", status: Status = Status.PASSED, **fields: Any) -> Case:
    """Return a case of the transcript ``s.jsonl``."""
    return Case(**{"group": "s.jsonl", "name": name, "status": status, "place": Place("s.jsonl"), **fields})


def finding(message: str = "it loops", **fields: Any) -> Finding:
    """Return an error of the rule ``generic_repeat`` in line 3 of ``s.jsonl``."""
    values: dict[str, Any] = {
        "rule": "generic_repeat",
        "severity": Severity.ERROR,
        "message": message,
        "place": Place("s.jsonl", 3),
        "fingerprint": "ab" * 32,
    }
    return Finding(**{**values, **fields})


def findings(*cases: Case, errors: tuple[str, ...] = ()) -> Findings:
    """Return findings of a check with these cases."""
    return Findings("check", "0.1.0", (("ruleset", "2026.9"),), cases, errors)
