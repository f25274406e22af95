"""The library function: many transcripts to one report, in order, whatever happens to one of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import loopscan
from loopscan.transcripts.openclaw import OpenClawReader
from tests.transcripts.build import Transcript, call

USAGE = {"input": 90, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 100, "cost": {"total": 0.25}}


def looping(times: int, *, session: str = "s1", **fields: Any) -> Transcript:
    """Return a transcript of one run with one call over and over, one second an entry."""
    made = Transcript(session=session)
    made.user()
    for number in range(times):
        made.asks(call(f"c{number}"), usage=USAGE, model="some-model", **fields)
        made.result(f"c{number}", "the same")
    made.says(usage=USAGE)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, times in (("b", 30), ("a", 12), ("c", 3)):
        (tmp_path / f"{name}.jsonl").write_bytes(looping(times, session=f"session {name}").bytes())
    return tmp_path


def test_the_public_surface_is_what_it_says() -> None:
    assert all(hasattr(loopscan, name) for name in loopscan.__all__)
    assert callable(loopscan.replay)


def test_a_folder_is_replayed_in_sorted_order(folder: Path) -> None:
    report = loopscan.replay(folder, ruleset="2026.9")
    assert [session.session for session in report.sessions] == ["session a", "session b", "session c"]
    assert [len(list(session.marks())) for session in report.sessions] == [1, 4, 0]
    assert [source.calls for source in report.sources] == [12, 30, 3]


def test_paths_are_replayed_as_named(folder: Path) -> None:
    report = loopscan.replay([folder / "c.jsonl", str(folder / "a.jsonl")], ruleset="2026.9")
    assert [Path(source.path).name for source in report.sources] == ["c.jsonl", "a.jsonl"]


def test_the_number_of_processes_changes_nothing(folder: Path) -> None:
    one = loopscan.replay([folder, folder / "gone"], ruleset="2026.9").to_dict()
    assert loopscan.replay([folder, folder / "gone"], ruleset="2026.9", jobs=3).to_dict() == one


def test_what_would_not_have_been_reached_is_counted_to_the_unit(folder: Path) -> None:
    report = loopscan.replay(folder / "b.jsonl", ruleset="2026.9")
    (session,) = report.sessions
    (run,) = session.runs
    assert (run.outcome, run.calls, run.batches, run.blocked_calls) == ("run_end", 30, 30, 2)
    # 22 calls were reached, the last of them vetoed; 8 messages with a call and the final text were not.
    # The run ended with the 22nd message, and the final text came 18 s after that.
    assert run.not_reached.to_dict() == {
        "calls": 8,
        "tokens": 900,
        "cost_usd": 2.25,
        "seconds": 18.0,
        "responses": 9,
        "responses_without_usage": 0,
    }
    assert (session.model, session.calls) == ("some-model", 30)
    assert report.to_dict()["totals"]["not_reached"]["calls"] == 8


def test_nothing_is_saved_by_observing(folder: Path) -> None:
    report = loopscan.replay(folder / "b.jsonl", ruleset="2026.9", mode="observe")
    (run,) = report.sessions[0].runs
    assert (run.outcome, run.not_reached.calls, run.blocked_calls) == ("completed", 0, 0)
    assert [mark.kind.value for mark in run.marks[:4]] == ["warning", "block", "block", "run_end"]


def test_one_scope_for_the_session(tmp_path: Path) -> None:
    made = Transcript()
    for number in range(6):
        made.user(f"prompt {number}")
        for each in range(2):
            made.asks(call(f"c{number}{each}"))
            made.result(f"c{number}{each}", "the same")
        made.says()
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    assert loopscan.replay(path, ruleset="2026.9").count().marks.total() == 0
    assert loopscan.replay(path, ruleset="2026.9", scope="session").count().marks.total() == 1


def test_a_configuration_is_obeyed_and_overrides_go_over_it(folder: Path) -> None:
    block = {"enabled": True, "warningThreshold": 11, "criticalThreshold": 12}
    report = loopscan.replay(folder / "b.jsonl", ruleset="2026.6", config=block)
    (run,) = report.sessions[0].runs
    assert (run.marks[0].kind, run.marks[0].count) == ("warning", 11)
    assert {(mark.kind, mark.count) for mark in run.marks[1:]} == {("block", 12)}
    off = loopscan.replay(folder / "b.jsonl", ruleset="2026.6", config=block, overrides={"enabled": False})
    assert off.count().marks.total() == 0
    assert [note.kind for note in off.policy.notes] == ["silenced"]


AGENTS = {
    "tools": {"loopDetection": {"enabled": True}},
    "agents": {"list": [{"id": "Scribe", "tools": {"loopDetection": {"enabled": False}}}, {"id": "main"}]},
}


def test_each_session_is_judged_with_its_own_agents_block(tmp_path: Path) -> None:
    for agent in ("main", "scribe", "other"):
        folder = tmp_path / "agents" / agent / "sessions"
        folder.mkdir(parents=True)
        (folder / "s.jsonl").write_bytes(looping(12, session=agent).bytes())
    report = loopscan.replay(tmp_path, ruleset="2026.6", config=AGENTS)
    assert {session.agent: len(list(session.marks())) for session in report.sessions} == {
        "main": 1,
        "other": 1,
        "scribe": 0,
    }
    assert list(report.agents) == ["scribe"]
    assert [note.kind for note in report.silenced] == ["silenced"]
    assert report.to_dict()["agents"]["scribe"]["values"]["enabled"]["value"] is False
    forced = loopscan.replay(tmp_path, ruleset="2026.6", config=AGENTS, agent="scribe")
    assert forced.count().marks.total() == 0
    assert forced.agents == {}


def test_responses_without_usage_are_counted(tmp_path: Path) -> None:
    made = Transcript()
    made.user()
    for number in range(30):
        made.asks(call(f"c{number}"), **({"usage": USAGE} if number == 25 else {}))
        made.result(f"c{number}", "the same")
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    (run,) = loopscan.replay(path, ruleset="2026.9").sessions[0].runs
    saved = run.not_reached
    assert (saved.tokens, saved.responses, saved.responses_without_usage) == (100, 8, 7)


def test_a_report_shows_itself_in_one_line(folder: Path) -> None:
    assert repr(loopscan.replay(folder, ruleset="2026.9")) == (
        "<Report: 3 sessions, 45 calls, 2 warning, 2 block, 1 run_end>"
    )


def test_what_cannot_be_read_does_not_stop_the_others(folder: Path) -> None:
    (folder / "notes.jsonl").write_text("no transcript\n")
    report = loopscan.replay([folder / "gone.jsonl", folder / "notes.jsonl", folder / "a.jsonl"], ruleset="2026.9")
    assert [bool(source.failures) for source in report.sources] == [True, True, False]
    assert report.count().sessions == 1
    assert report.problems == 2


def test_a_fault_of_ours_is_a_failure_of_that_source_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = OpenClawReader.read

    def faulty(self: OpenClawReader, source: Any) -> Any:
        for number, event in enumerate(read(self, source)):
            if number == 5 and source.name.endswith("b.jsonl"):
                raise ZeroDivisionError
            yield event

    monkeypatch.setattr(OpenClawReader, "read", faulty)
    report = loopscan.replay(folder, ruleset="2026.9")
    assert [[problem.kind for problem in source.failures] for source in report.sources] == [
        [],
        ["internal-error"],
        [],
    ]
    assert [session.session for session in report.sessions] == ["session a", "session b", "session c"]
    with pytest.raises(ZeroDivisionError):
        loopscan.replay(folder, ruleset="2026.9", debug=True)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("tool", ["sessions_send", "computer", "exec", "memory_search", "process", "read"])
def test_depth_is_no_reason_to_lose_a_session(tmp_path: Path, tool: str) -> None:
    deep = nested(700)
    details = {"status": "x", "telemetry": 1, "results": deep, "x": deep}
    details["result"] = {"observation": {"kind": "window", "elements": deep}}
    made = Transcript()
    made.user()
    for number in range(12):
        made.asks(call(f"c{number}", tool, action="send", x=deep))
        made.result(f"c{number}", "same", tool=tool, details=details)
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    for ruleset in ("2026.6", "2026.9", "latest"):
        report = loopscan.replay(path, ruleset=ruleset)
        assert (report.problems, report.count().calls, report.count().marks.total()) == (0, 12, 1)


def test_any_name_of_a_tool_can_be_shown(tmp_path: Path) -> None:
    made = Transcript()
    made.user()
    made.absent("c1", "\ud800")
    made.asks(call("c2", "\udfff"))
    made.result("c2", tool="\udfff")
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    report = loopscan.replay(path)
    assert (report.problems, report.count().calls) == (0, 1)


def test_a_worker_that_is_killed_takes_its_source_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = OpenClawReader.read

    def deadly(self: OpenClawReader, source: Any) -> Any:
        if source.name.endswith("b.jsonl"):
            os._exit(9)
        return read(self, source)

    monkeypatch.setattr(OpenClawReader, "read", deadly)  # workers are forked, so they have it too
    report = loopscan.replay(folder, ruleset="2026.9", jobs=2)
    assert [[problem.kind for problem in source.failures] for source in report.sources] == [
        [],
        ["internal-error"],
        [],
    ]
    assert [session.session for session in report.sessions] == ["session a", "session c"]


def test_progress_is_told_of_every_source(folder: Path) -> None:
    told: list[tuple[str, int]] = []
    loopscan.replay(folder, progress=lambda source, of: told.append((Path(source.path).name, of)))
    assert told == [("a.jsonl", 3), ("b.jsonl", 3), ("c.jsonl", 3)]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "maybe"},
        {"scope": "all"},
        {"arm": "sometimes"},
        {"jobs": 0},
        {"ruleset": "2025.1"},
        {"overrides": {"x": 1}},
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises((loopscan.UsageError, loopscan.ConfigError)):
        loopscan.replay(tmp_path / "not there", **options)


def test_the_table_of_marks_has_a_row_a_mark(folder: Path) -> None:
    report = loopscan.replay(folder, ruleset="2026.9")
    table = report.to_polars()
    assert table.height == 5
    assert table["kind"].to_list() == ["warning", "warning", "block", "block", "run_end"]
    assert table.columns == list(next(report.rows()))
    empty = loopscan.replay(folder / "c.jsonl").to_polars()
    assert (empty.height, empty.schema) == (0, table.schema)


def test_problems_are_all_counted_and_the_first_thousand_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(looping(2).bytes() + b"{broken\n" * 1500)
    report = loopscan.replay(path)
    (source,) = report.sources
    assert (report.problems, len(source.problems)) == (1500, 1000)
    assert source.problems[0].line == 8


def test_the_report_says_how_it_was_judged(folder: Path) -> None:
    report = loopscan.replay(folder, mode="observe", scope="session", arm="never")
    assert (report.mode, report.scope, report.arm) == ("observe", "session", "never")
