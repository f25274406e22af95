"""A folder with a file for each event is one record; files that are none are looked into one by one."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan.inspection import inspect
from loopscan.replayer import replay
from loopscan.transcripts.discover import discover
from loopscan.transcripts.pieces import pieces_in

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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(st.integers(0, 10**6), unique=True, min_size=1))
def test_the_order_is_that_of_the_numbers_not_of_the_letters(numbers: list[int]) -> None:
    found = pieces_in("x/events", [f"{number}.json" for number in numbers])
    assert found is not None
    assert found.names == tuple(f"{number}.json" for number in sorted(numbers))
    assert pieces_in("x/other", [f"{number}.json" for number in numbers]) is None
