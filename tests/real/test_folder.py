"""All recorded sessions at once: nothing is lost, nothing counts twice, and the answer is always the same."""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path

import pytest

import loopscan
from loopscan.report import Report
from loopscan.transcripts.reader import readers
from tests.real.counts import Counts, count, openai_conversation, openclaw_entries, recordings
from tests.real.events import READERS, REAL

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="the recorded sessions are not here")

FILES = list(recordings(REAL))


@functools.cache
def replayed() -> Report:
    return loopscan.replay(REAL)


@functools.cache
def counted() -> dict[Path, Counts]:
    return {path: count(path) for path in FILES}


def complete() -> None:
    missing = set(READERS.values()) - set(readers())
    if missing:
        pytest.skip(f"no reader {', '.join(sorted(missing))} yet")


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_same_folder_gives_the_same_report(jobs: int) -> None:
    """Whatever the number of processes, and every time."""
    assert loopscan.replay(REAL, jobs=jobs).to_dict() == replayed().to_dict()


def test_no_file_is_lost() -> None:
    """Each is a source or was skipped for a reason that is told, and none is both."""
    report = replayed()
    read = Counter([source.path for source in report.sources] + [file.path for file in report.skipped])
    assert read == Counter(str(path) for path in FILES)
    assert all(file.reason for file in report.skipped)


def test_every_recording_is_a_source() -> None:
    complete()
    assert {source.path for source in replayed().sources} == {str(path) for path in FILES}
    assert not [source.failures for source in replayed().sources if source.failures]


def copies() -> set[Path]:
    """Return the files that hold nothing but what others do.

    That is told by the recorded ids of sessions and entries; a log of a request, or what Cline showed of a task, is
    a copy where a longer one begins with all of it.
    """
    given: dict[tuple[str, str], Path] = {}
    found = set()
    for path in FILES:
        if path.parent.name == "openclaw":
            entries = openclaw_entries(path).keys()
            if entries <= given.keys():
                found.add(path)
            given |= dict.fromkeys(entries - given.keys(), path)
    begun = {path: openai_conversation(path) for path in FILES if path.parent.name == "openai-messages"}
    begun |= {path: json.loads(path.read_text()) for path in FILES if path.parent.name == "cline-ui"}
    for path, messages in begun.items():
        longer = (other for other in begun.values() if len(other) > len(messages))
        if any(other[: len(messages)] == messages for other in longer):
            found.add(path)
    sessions = {session for session, _ in given}
    told_better = (path for path in FILES if path.parent.name == "openclaw-trajectory")
    return found | {path for path in told_better if sessions.issuperset(counted()[path].sessions)}


def test_what_several_files_hold_counts_once() -> None:
    """The totals are the sums of the raw counts over the files that are no copies of others."""
    complete()
    totals = replayed().count()
    once = [counts for path, counts in counted().items() if path not in copies()]
    assert copies()
    assert totals.sessions == sum(len(counts.sessions) for counts in once)
    assert totals.runs == sum(counts.runs for counts in once)
    assert totals.calls == sum(counts.calls.total() for counts in once)


def test_each_source_is_reported_with_its_own_sessions_and_calls() -> None:
    sources = {Path(source.path): source for source in replayed().sources}
    whole = set(sources) - copies()
    assert {path.name: (sources[path].sessions, sources[path].calls) for path in whole} == {
        path.name: (len(counted()[path].sessions), counted()[path].calls.total()) for path in whole
    }
    repeated = copies() & set(sources)
    assert all(sources[path].calls == 0 for path in repeated)
    assert all(sum(sources[path].copies.values()) for path in repeated)
