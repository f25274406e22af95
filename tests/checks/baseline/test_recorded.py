"""Recorded sessions against a baseline made of them: wherever they lie, in whatever order, nothing is new or gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import loopscan
from loopscan.checks.baseline.data import updated
from loopscan.checks.baseline.file import load, write
from loopscan.checks.baseline.ratchet import judge
from tests.checks.baseline.made import TODAY

SHARED = Path(__file__).resolve().parents[4] / "shared"

pytestmark = pytest.mark.skipif(not (SHARED / "recorded").is_dir(), reason="no recordings beside the checkout")


@pytest.mark.parametrize("ruleset", ["2026.6", "2026.9"])
def test_a_copy_elsewhere_read_backwards_by_two_processes_is_the_same(tmp_path: Path, ruleset: str) -> None:
    known = updated(loopscan.replay(SHARED / "recorded", ruleset=ruleset, find_config=False), None, TODAY)
    assert known.marks
    write(known, tmp_path / "b.json")
    copies = shutil.copytree(SHARED / "recorded", tmp_path / "copy")
    folders = sorted(copies.iterdir(), reverse=True)
    report = loopscan.replay([folder for folder in folders if folder.is_dir()], ruleset=ruleset, jobs=2)
    judged = judge(report, load(tmp_path / "b.json"), TODAY)
    assert not judged.gone
    assert judged.gone_sessions == judged.shorter == ()
    assert {each.standing.value for session in judged.sessions for each in session.marks} == {"known"}
