"""Recorded sessions of every format: the readers see exactly what the raw JSON holds.

The counts come from :mod:`tests.real.counts`, which shares no code with the readers. Where the recordings are not at
hand, or a reader is not, these tests are skipped.
"""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path

import pytest

from loopscan.transcripts.reader import Reader
from tests.real.counts import Counts, count, recordings
from tests.real.events import READERS, REAL, Seen, differences, expected_reader, read, reader_of

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="the recorded sessions are not here")

FILES = list(recordings(REAL))


@functools.cache
def counted(path: Path) -> Counts:
    return count(path)


def wanted(path: Path) -> Reader:
    reader = expected_reader(path)
    if reader is None:
        pytest.skip(f"no reader {READERS[path.parent.name]} yet")
    return reader


@functools.cache
def seen_in(path: Path) -> Seen:
    return read(path, wanted(path))


def test_every_folder_of_recordings_is_counted() -> None:
    assert {path for path in REAL.rglob("*") if path.is_file()} == set(FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_recognised_by_the_reader_of_its_format(path: Path) -> None:
    reader = wanted(path)
    assert reader_of(path) is reader


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_reader_sees_what_the_raw_file_holds(path: Path) -> None:
    """Sessions, runs, responses, calls by tool, outcomes, compactions, tokens and cost are equal."""
    assert differences(counted(path), seen_in(path)) == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_reader_has_no_problem_with_a_file_but_those_it_has(path: Path) -> None:
    raw, seen = counted(path), seen_in(path)
    found = Counter(problem.kind for problem in seen.problems)
    assert found.pop("orphan-result", 0) <= raw.orphans
    if raw.format == "openclaw-trajectory":
        # Its transcript may hold more than it shows; the calls that it only names are told.
        details = [problem.detail for problem in seen.problems if problem.kind == "partial-record"]
        assert found.pop("partial-record") == len(details) == 1
        assert not raw.named or str(raw.named.total()) in details[0]
    assert found == Counter()
    if raw.first is not None and raw.last is not None:
        assert [time for time in seen.times if not raw.first <= time <= raw.last] == []
