"""Damaged transcripts: everything that is left is read, nothing is lost silently, nobody else is affected.

The same can be done by hand with many more seeds: ``python tools/fuzz.py --count 100000``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.subject import Subject, fixtures

SEEDS = 12


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda path: "/".join(path.parts[-2:]))
def test_a_damaged_transcript_is_read_as_far_as_it_goes(tmp_path: Path, fixture: Path) -> None:
    for seed in range(SEEDS):
        try:
            Subject(fixture, seed).try_out(tmp_path)
        except Exception as error:
            error.add_note(f"fixture {fixture.name}, seed {seed}")
            raise
