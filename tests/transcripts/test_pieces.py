"""A folder with a file for each event is one record; files that are none are looked into one by one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan.events import Problem, Turn
from loopscan.inspection import inspect
from loopscan.replayer import replay
from loopscan.report import Report, SourceReport
from loopscan.transcripts.discover import discover
from loopscan.transcripts.pieces import Pieces, pieces_in
from loopscan.transcripts.reader import readers

FIXTURES = Path(__file__).parents[2] / "fixtures" / "openhands"


def events() -> list[str]:
    return (FIXTURES / "cider-loop.jsonl").read_text().splitlines()


def test_a_folder_of_events_is_replayed_as_the_one_record_that_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "conversation" / "events"
    folder.mkdir(parents=True)
    for number, line in enumerate(events()):
        end = "\n" if number % 2 else ""
        (folder / f"event-{number:05}-abc.json").write_text(line + end)
    (folder.parent / "base_state.json").write_text("{}")
    report = replay(tmp_path, ruleset="2026.9")
    (source,) = report.sources
    assert (source.path, source.format, source.problems) == (str(folder), "openhands", [])
    assert source.lines == len(events())
    whole = replay(FIXTURES / "cider-loop.jsonl", ruleset="2026.9")
    assert [row["kind"] for row in report.rows()] == [row["kind"] for row in whole.rows()]
    assert report.count().calls == whole.count().calls
    assert [Path(file.path).name for file in report.skipped] == ["base_state.json"]
    assert replay(folder, ruleset="2026.9", jobs=2).count().calls == whole.count().calls


def written(folder: Path, **other: bytes | None) -> Path:
    """Write the events of the fixture into a folder, with ``other`` content of some by number (``None``: no file)."""
    folder.mkdir(parents=True)
    for number, line in enumerate(events()):
        data = other.get(f"e{number}", line.encode())
        if data is not None:
            (folder / f"event-{number:05}-abc.json").write_bytes(data)
    return folder


def lines_but(number: int, folder: Path) -> Path:
    """Write all events but one as lines."""
    left = events()
    del left[number]
    path = folder / "conversation.jsonl"
    path.write_text("".join(f"{line}\n" for line in left))
    return path


def summary(report: Report) -> list[tuple[object, ...]]:
    return [(row["kind"], row["detector"], row["batch"], row["count"]) for row in report.rows()]


@pytest.mark.parametrize("number", [0, 20])
@pytest.mark.parametrize(
    ("data", "kind", "detail"),
    [
        (b"", "empty-event", "is empty"),
        (b'{"id": "1", "timest', "truncated-last-line", "ends in the middle"),
        (b"{broken}\n", "malformed-json", "is not JSON"),
        (b"[]", "not-an-object", "no object"),
    ],
)
def test_a_damaged_event_costs_no_other_and_is_named(
    tmp_path: Path, number: int, data: bytes, kind: str, detail: str
) -> None:
    folder = written(tmp_path / "c" / "events", **{f"e{number}": data})
    report = replay(folder.parent, ruleset="2026.9")
    whole = replay(lines_but(number, tmp_path), ruleset="2026.9")
    (source,) = report.sources
    assert summary(report) == summary(whole)
    assert source.calls == whole.count().calls > 0
    assert source.lines == len(events())
    (problem,) = source.problems
    assert (problem.line, problem.kind) == (number + 1, kind)
    assert detail in problem.detail
    assert kind == "not-an-object" or problem.detail.startswith(f"event-{number:05}-abc.json")
    assert not report.unread_count()


@pytest.mark.parametrize("number", [0, 20])
def test_an_event_that_cannot_be_read_costs_no_other_and_is_an_error(tmp_path: Path, number: int) -> None:
    folder = written(tmp_path / "c" / "events")
    (found,) = discover([folder]).sources
    (folder / f"event-{number:05}-abc.json").unlink()
    report = SourceReport(found.source.name, found.reader)
    turns = 0
    for event in readers()[found.reader].read(found.source):
        turns += isinstance(event, Turn)
        if isinstance(event, Problem):
            report.add_problem(event)
    assert turns == inspect(lines_but(number, tmp_path)).total().responses
    first, last = report.problems
    assert (first.line, first.kind) == (number + 1, "unreadable-event")
    assert f"event-{number:05}-abc.json cannot be read: No such file" in first.detail
    assert report.complaints() == [
        f"{folder}: 1 of {len(events())} files of events cannot be read, the first of them event-{number:05}-abc.json"
    ]
    assert last.line == found.source.lines == len(events())


def test_an_event_that_cannot_be_looked_into_does_not_hide_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "events")

    def gone(folder: str, names: Iterable[str]) -> Pieces | None:
        found = pieces_in(folder, names)
        if found is not None:
            os.unlink(found.paths[0])  # noqa: PTH108
        return found

    monkeypatch.setattr("loopscan.transcripts.discover.pieces_in", gone)
    report = replay(folder, ruleset="2026.9")
    assert [source.format for source in report.sources] == ["openhands"]
    assert report.count().calls == inspect(lines_but(0, tmp_path)).total().calls
    assert report.unread_count() == 1


def test_events_may_be_written_over_several_lines(tmp_path: Path) -> None:
    pretty = json.dumps(json.loads(events()[20]), indent=2).encode()
    report = replay(written(tmp_path / "events", e20=pretty), ruleset="2026.9")
    assert report.sources[0].problems == []
    assert report.count().calls == replay(FIXTURES / "cider-loop.jsonl", ruleset="2026.9").count().calls


def test_an_event_over_the_limit_is_skipped(tmp_path: Path) -> None:
    long = json.dumps({**json.loads(events()[20]), "more": "x" * 100_000}).encode()
    report = replay(written(tmp_path / "events", e20=long), ruleset="2026.9", max_line=50_000)
    (problem,) = report.sources[0].problems
    assert (problem.line, problem.kind) == (21, "line-too-long")
    assert f"{len(long):,} bytes" in problem.detail


def test_files_of_which_none_is_an_event_are_not_said_to_be_parts_of_a_record(tmp_path: Path) -> None:
    (tmp_path / "event-00001-notes.json").write_text('{"notes": 1}')
    assert [file.reason for file in discover([tmp_path]).skipped] == ["of no known format"]


def test_of_copies_the_longest_is_believed_first_whether_in_lines_or_in_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{line}\n" for line in events()[:30]))
    folder = written(tmp_path / "events")
    one, other = replay(tmp_path, ruleset="2026.9").sources
    assert (one.path, one.copies) == (str(path), {str(folder): 30})
    assert (other.calls, other.copies) == (replay(folder).count().calls, {})


def test_classic_events_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    held = json.loads((FIXTURES / "trees-counted.json").read_text())
    for number, event in enumerate(held):
        (folder / f"{number}.json").write_text(json.dumps(event))
    assert (
        inspect(tmp_path).total().to_dict()["tools"]
        == inspect(FIXTURES / "trees-counted.json").total().to_dict()["tools"]
    )


def test_files_that_are_no_record_together_are_looked_into_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "event-00001-notes.json").write_text('{"notes": 1}')
    (tmp_path / "event-00002-log.json").write_bytes((FIXTURES.parent / "clean" / "paging.jsonl").read_bytes())
    found = discover([tmp_path])
    assert [each.reader for each in found.sources] == ["openclaw-jsonl"]
    assert [os.path.basename(each.path) for each in found.skipped] == ["event-00001-notes.json"]  # noqa: PTH119


def test_numbers_may_be_of_any_length(tmp_path: Path) -> None:
    names = [f"event-{number}-a.json" for number in (10**18, 2 * 10**30, 5 * 10**20)]
    found = pieces_in("c", names)
    assert found is not None
    assert found.names == (names[0], names[2], names[1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(st.integers(0, 10**6), unique=True, min_size=1))
def test_the_order_is_that_of_the_numbers_not_of_the_letters(numbers: list[int]) -> None:
    found = pieces_in("x/events", [f"{number}.json" for number in numbers])
    assert found is not None
    assert found.names == tuple(f"{number}.json" for number in sorted(numbers))
    assert found.size() == 0, "nothing is there"
    assert pieces_in("x/other", [f"{number}.json" for number in numbers]) is None
