"""Findings: what a replay or a check has to report, case by case, before anybody formats it for machines.

JUnit, SARIF, TAP, annotations and job summaries differ in form only: they are all written from :class:`Findings`.
Names of tools and sessions in here are as the transcripts have them; reports neutralise them on the way out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from loopscan.marks import Detector


class Status(StrEnum):
    """How a case came out."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """It could not be carried out: input that could not be read, a file that makes no sense."""
    SKIPPED = "skipped"


class Severity(StrEnum):
    """How grave a finding is; arming a guard is a note, a warning a warning, all else an error."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look."""

    path: str
    """A file as it was named, or as it was found in a folder that was."""
    line: int | None = None
    """Counts from 1; ``None`` where the file has no lines, or for the file as a whole."""

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to report."""

    rule: str
    """A key of :data:`RULES`."""
    severity: Severity
    message: str
    """One sentence, or two."""
    place: Place
    fingerprint: str
    """Digest in hex of what the finding is about; it stays when lines move."""
    suppressed: str | None = None
    """Why it does not count: it is in the baseline, or ignored for this reason."""


@dataclass(frozen=True, slots=True)
class Case:
    """A session that was replayed, or one check of a transcript."""

    group: str
    """The transcript."""
    name: str
    """The session, or the check; unique within its group."""
    status: Status
    place: Place
    reason: str | None = None
    """In one line why it failed, could not be carried out, or was skipped."""
    text: str = ""
    """What a person wants to read then: plain lines, such as a timeline."""
    findings: tuple[Finding, ...] = ()


class Names:
    """Gives each case a name that is unique within its group."""

    def __init__(self) -> None:
        self._times: Counter[tuple[str, str]] = Counter()

    def unique(self, group: str, name: str) -> str:
        """Return ``name``, with a number where the group has one of that name."""
        chosen = name
        self._times[group, name] += 1
        while chosen != name or self._times[group, name] > 1:
            chosen = f"{name} ({self._times[group, name]})"
            if not self._times[group, chosen]:
                self._times[group, chosen] = 1
                break
            self._times[group, name] += 1
        return chosen


@dataclass(frozen=True, slots=True)
class Findings:
    """All cases of one command."""

    command: str
    """``replay`` or ``check``."""
    version: str
    facts: tuple[tuple[str, str], ...]
    """What a summary says first, such as ``("ruleset", "2026.9")``: names and words."""
    cases: tuple[Case, ...] = ()
    errors: tuple[str, ...] = ()
    """What could not be read, or makes no sense, a line each; cases may say the same of themselves."""

    def count(self, status: Status) -> int:
        """Return how many cases came out so."""
        return sum(case.status is status for case in self.cases)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is to be known of a kind of finding."""

    id: str
    title: str
    """A few words."""
    help: str
    """What it means and what to do about it."""
    severity: Severity = field(default=Severity.ERROR)
    """The gravest that such findings are."""


def _rule(id_: str, title: str, help_: str, severity: Severity = Severity.ERROR) -> tuple[str, Rule]:
    return id_, Rule(id_, title, help_, severity)


#: Every rule by its id: one a detector, and those of ``loopscan check``.
RULES: Final[dict[str, Rule]] = dict(
    (
        _rule(
            Detector.GENERIC_REPEAT,
            "The same call over and over",
            "A tool was called again and again with the same arguments, which makes a warning; a block takes the same"
            " outcome each time, too (or commands that fail alike, whatever their arguments). Look at what the model"
            " was waiting for, and whether the result can say so.",
        ),
        _rule(
            Detector.UNKNOWN_TOOL_REPEAT,
            "Calls of a tool that does not exist",
            "A tool answered time after time that the tool it was asked for does not exist. Offer that tool, or tell"
            " the model what there is instead.",
        ),
        _rule(
            Detector.KNOWN_POLL_NO_PROGRESS,
            "Polling without progress",
            "A poll came back unchanged time after time. Let it wait longer, or let the result say when to ask"
            " again.",
        ),
        _rule(
            Detector.GLOBAL_CIRCUIT_BREAKER,
            "The global circuit breaker",
            "One call without progress reached the threshold at which the engine stops it whatever it is.",
        ),
        _rule(
            Detector.PING_PONG,
            "Two calls that take turns",
            "Two calls took turns, which makes a warning; a block takes the same outcomes each time, too. Look at"
            " what one of them was to change for the other.",
        ),
        _rule(
            Detector.ARGUMENT_CHURN,
            "The same few arguments by turns, no progress",
            "A tool was called with a few arguments by turns, and no call made any progress. The engine only warns"
            " of it.",
            Severity.WARNING,
        ),
        _rule(
            Detector.IDENTICAL_ERROR,
            "The same error in a row",
            "The same call failed with the same error three times in a row: the engine would have ended the run.",
        ),
        _rule(
            Detector.UNKNOWN_TOOL_GUARD,
            "The unknown-tool guard",
            "Message after message asked for nothing but one tool that does not exist: the calls would have been"
            " taken out, and the run would have stopped. Offer the tool, or tell the model what there is instead.",
        ),
        _rule(
            Detector.COMPACTION_LOOP,
            "A loop that outlived a compaction",
            "After a compaction the run came back with the same call and outcome until the post-compaction guard"
            " would have aborted it with compaction_loop_persisted. A note says that a compaction armed the guard.",
        ),
        _rule(
            "unexpected_mark",
            "A mark that nobody expects",
            "The replay steps in where the expectation has nothing. If that is right, loopscan check --update"
            " rewrites the snapshot.",
        ),
        _rule(
            "missing_mark",
            "An expected mark is missing",
            "The expectation has a mark that the replay does not make: another ruleset, threshold or transcript, or"
            " detectors that are off.",
        ),
        _rule(
            "changed_mark",
            "A mark has changed",
            "The replay steps in at another place, or with other numbers, than the expectation says.",
        ),
        _rule(
            "failed_assertion",
            "An assertion does not hold",
            "What an expectation says of the marks, runs or figures is not so.",
        ),
        _rule(
            "unreadable_transcript",
            "A transcript cannot be read",
            "It is missing or broken, or breaks off: what it holds was not judged, or not to its end.",
        ),
        _rule(
            "bad_expectation",
            "An expectation makes no sense",
            "The file does not follow the schema that loopscan schema expect prints.",
        ),
        _rule(
            "no_expectation",
            "A transcript without expectation",
            "Nothing says what this transcript must meet; loopscan check --update writes a snapshot beside it.",
        ),
        _rule(
            "too_many_warnings",
            "More warnings than allowed on benign sessions",
            "Warnings where nothing was wrong: false alarms. The limit says how many are borne.",
        ),
        _rule(
            "checked_less",
            "Less was checked than before",
            "The baseline knows of more sessions or calls than were found: transcripts are missing, or not read any"
            " more.",
        ),
        _rule(
            "other_settings",
            "Judged otherwise than before",
            "The baseline was made with another ruleset, mode or configuration, so that marks may be gone or new for"
            " that reason alone. Judge as it was, or run loopscan check --update to go on with the new settings.",
        ),
    )
)
