"""Every row of the tables in ``fixtures/README.md`` is true, and they leave nothing out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loopscan import replay
from loopscan.checks.folders import is_expectation
from loopscan.configfile import parse_settings
from loopscan.marks import Detector, Kind, Mark
from loopscan.report import Report
from loopscan.rulesets import RULESETS
from loopscan.transcripts.reader import readers

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file())
#: Everything but this folder's README, configurations, profiles, expectations, and the shapes that explain answers.
TRANSCRIPTS = [
    name
    for name in (path.relative_to(FIXTURES).as_posix() for path in FILES)
    if name != "README.md"
    and not name.startswith(("config/", "tuning/", "shapes/"))
    and not is_expectation(Path(name).name)
]
SHAPES = [f"shapes/{path.name}" for path in FILES if path.parent.name == "shapes"]
#: Those in the form of OpenClaw's session files.
SESSION_FILES = [
    *(name for name in TRANSCRIPTS if name.split("/")[0] not in readers()),
    *SHAPES,
]
NOTHING = "nothing"


def table(heading: str) -> Iterator[list[str]]:
    """Yield the rows of the table below a heading, each as its cells; an empty first cell is as above."""
    text = (FIXTURES / "README.md").read_text(encoding="utf-8")
    _, _, section = text.partition(f"## {heading}\n")
    first = ""
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        first = cells[0].strip("`") or first
        yield [first, *cells[1:]]


@dataclass(frozen=True)
class Row:
    """One fixture under one ruleset."""

    file: str
    calls: str
    ruleset: str
    options: str
    marks: tuple[str, ...]
    keywords: dict[str, Any] = field(compare=False)

    @property
    def name(self) -> str:
        return " ".join([self.file, self.ruleset, self.options]).strip()


def rows() -> Iterator[Row]:
    for file, _, calls, how, marks in (*table("What must fire"), *table("Other formats")):
        names, _, options = how.partition("`")
        options = options.rstrip("`")
        wanted = tuple(spread(marks))
        for name in RULESETS if names.strip() == "any" else names.split(","):
            yield Row(file, calls, name.strip(), options, wanted, keywords_of(options))


def spread(marks: str) -> Iterator[str]:
    """Yield each mark that the table names: ``a ×3 · b`` is ``a``, ``a``, ``a``, ``b``."""
    if marks == NOTHING:
        return
    for mark in marks.split(" · "):
        what, _, times = mark.partition(" ×")
        yield from [what] * int(times or 1)


def keywords_of(options: str) -> dict[str, Any]:
    """Return the options of the command as arguments of the function."""
    words = iter(shlex.split(options))
    found: dict[str, Any] = {}
    settings: list[str] = []
    for option in words:
        value = next(words)
        if option == "--set":
            settings.append(value)
        elif option == "--config":
            found["config"] = ROOT / value
        else:
            assert option in ("--agent", "--mode", "--scope", "--arm"), option
            found[option.removeprefix("--")] = value
    if settings:
        found["overrides"] = parse_settings(settings)
    return found


def shown(mark: Mark) -> str:
    """Return a mark as the table writes it."""
    words = [mark.kind.value, mark.detector.value]
    if mark.count is not None:
        words.append(str(mark.count))
    if mark.kind is Kind.BLOCK and mark.blocked_calls > 1:
        words.append(f"({mark.blocked_calls} calls)")
    if mark.lossy:
        words.append("(lossy)")
    return " ".join(words)


def marks_of(report: Report) -> list[Mark]:
    return [mark for session in report.sessions for _, mark in session.marks()]


ROWS = list(rows())


@cache
def replayed(file: str, ruleset: str = "latest") -> Report:
    return replay(FIXTURES / file, ruleset=ruleset)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_the_table_says_fires_and_nothing_else(row: Row) -> None:
    report = replay(FIXTURES / row.file, ruleset=row.ruleset, **row.keywords)
    assert tuple(shown(mark) for mark in marks_of(report)) == row.marks


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.calls and row.ruleset == "latest"], ids=lambda row: row.file
)
def test_calls_and_runs_are_those_of_the_table(row: Row) -> None:
    totals = replayed(row.file).count()
    assert f"{totals.calls} / {totals.runs}" == row.calls


def test_every_fixture_has_a_row_for_every_ruleset() -> None:
    plain = {(row.file, row.ruleset) for row in ROWS if not row.options}
    assert plain == {(file, ruleset) for file in TRANSCRIPTS for ruleset in RULESETS}
    assert {row.file for row in ROWS if row.calls} == set(TRANSCRIPTS)


def test_no_row_is_there_twice() -> None:
    names = [row.name for row in ROWS]
    assert sorted(names) == sorted(set(names))


def test_every_kind_and_every_detector_fires_somewhere() -> None:
    words = {word for row in ROWS for mark in row.marks for word in mark.split()}
    assert words >= {kind.value for kind in Kind} | {detector.value for detector in Detector}


@pytest.mark.parametrize("ruleset", RULESETS)
@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("scope", ["run", "session"])
def test_clean_sessions_have_no_mark_whatever_the_rules(ruleset: str, mode: str, scope: str) -> None:
    report = replay(FIXTURES / "clean", ruleset=ruleset, mode=mode, scope=scope)
    assert len(report.sessions) == len([file for file in TRANSCRIPTS if file.startswith("clean/")])
    assert marks_of(report) == []
    assert report.count().suppressed_warnings == 0


@pytest.mark.parametrize("file", TRANSCRIPTS)
def test_only_the_problems_of_the_table_are_found(file: str) -> None:
    listed = [(int(line), kind) for name, line, kind in table("Problems") if name == file]
    found = [(problem.line, problem.kind) for source in replayed(file).sources for problem in source.problems]
    assert found == listed
    assert replayed(file).problems == len(listed)


def test_problems_are_listed_for_files_that_are_there() -> None:
    assert {file for file, _, _ in table("Problems")} <= set(TRANSCRIPTS)


@pytest.mark.parametrize("file", TRANSCRIPTS)
def test_what_the_live_engine_left_is_reported_and_agrees(file: str) -> None:
    listed = [
        (ruleset, verdicts)
        for name, ruleset, verdicts in table("What the live engine left on record")
        if name == file
    ]
    ruleset, verdicts = listed[0] if listed else ("latest", "")
    report = replayed(file, ruleset)
    found = [recorded for session in report.sessions for recorded in session.recorded]
    written = [verdict.kind + (f" {verdict.count}" if verdict.count is not None else "") for verdict in found]
    assert " · ".join(written) == verdicts
    assert report.count().recorded_agreeing == len(found)


def test_configurations_are_listed_and_not_taken_for_transcripts() -> None:
    files = sorted(path.relative_to(FIXTURES).as_posix() for path in (FIXTURES / "config").iterdir())
    assert sorted(file for file, _ in table("Configurations")) == files
    report = replay(FIXTURES)
    read = sorted((*TRANSCRIPTS, *SHAPES), key=lambda name: name.split("/"))
    assert [source.path for source in report.sources] == [str(FIXTURES / name) for name in read]
    assert not any(source.failures for source in report.sources)


def test_each_folder_of_a_format_is_read_by_its_reader() -> None:
    for source in replay(FIXTURES).sources:
        folder = Path(source.path).relative_to(FIXTURES).parts[0]
        expected = folder if folder in readers() else "openclaw-jsonl"
        assert source.format == ("cline-ui" if source.path.endswith("ui_messages.json") else expected)
    assert {name.split("/")[0] for name in TRANSCRIPTS} >= set(readers()) - {"openclaw-jsonl"}


def test_copies_and_logs_beside_their_sessions_add_nothing() -> None:
    """The whole folder has the sessions of the single files but for those that others hold, and no verdict twice."""
    report = replay(FIXTURES, ruleset="2026.6")
    copies = {source.path.removeprefix(f"{FIXTURES}/"): sum(source.copies.values()) for source in report.sources}
    assert {name: count for name, count in copies.items() if count} == {
        "claude-code/resumed-guide.jsonl": 28,
        "cline/1788336000000/ui_messages.json": 93,
        "gemini/failing-tests.jsonl": 23,
        "openai-messages/weather-requests.jsonl": 3,
        "openclaw-backup/agents/clerk/tables/transcript_events.jsonl": 56,
        "sessions/copied-tail.jsonl": 8,
    }
    recorded = [verdict.kind for session in report.sessions for verdict in session.recorded if verdict.run == ""]
    assert recorded == ["warning"], "only the warning is not in the session file itself"
    assert not report.elsewhere


@pytest.mark.parametrize(
    "file", sorted({row.file for row in ROWS if any("_end" in m or "_stop" in m for m in row.marks)})
)
def test_runs_that_end_early_say_what_was_not_reached(file: str) -> None:
    live = {name for name, _, _ in table("What the live engine left on record")}
    for ruleset in RULESETS:
        report = replayed(file, ruleset)
        ended = any(mark.kind in (Kind.RUN_END, Kind.ERROR_STREAK_END) for mark in marks_of(report))
        if ended and file in SESSION_FILES and file not in live:
            saved = report.count().not_reached
            assert saved.tokens > 0
            assert saved.cost_usd > 0
            assert saved.seconds > 0


def entries(file: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of a transcript that can be read."""
    for line in (FIXTURES / file).read_text(encoding="utf-8").split("\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


@pytest.mark.parametrize("file", SESSION_FILES)
def test_a_fixture_is_plain_lines_of_json(file: str) -> None:
    data = (FIXTURES / file).read_bytes()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", data)
    assert data.startswith(b'{"type":"session","version":')
    assert data.endswith(b"\n") == (not file.startswith("hostile/"))


@pytest.mark.parametrize("file", SESSION_FILES)
def test_identifiers_and_run_ids_are_those_of_the_style(file: str) -> None:
    header, *rest = entries(file)
    length = {3: 8, 4: 36}[header["version"]]
    assert all(len(entry["id"]) == length for entry in rest)
    known: set[str | None] = {None}
    for entry in rest:
        assert entry["parentId"] in known
        assert entry["id"] not in known
        known.add(entry["id"])
        message = entry.get("message", {})
        own = message.get("role") in ("assistant", "toolResult") and header["version"] == 4
        assert ("runId" in message.get("__openclaw", {})) == own


@pytest.mark.parametrize("file", SESSION_FILES)
def test_model_responses_have_tokens_and_a_price(file: str) -> None:
    messages = [entry["message"] for entry in entries(file) if "message" in entry]
    responses = [message for message in messages if message["role"] == "assistant" and "responseId" in message]
    assert responses
    for message in responses:
        usage = message["usage"]
        parts = [usage[part] for part in ("input", "output", "cacheRead", "cacheWrite")]
        assert usage["totalTokens"] == sum(parts) > 0
        assert usage["cost"]["total"] > 0
