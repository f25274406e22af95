"""fixtures/tuning/nights.parquet, which the documentation tunes by, holds what the tool that made it makes."""

from __future__ import annotations

from loopscan.tuning.store import read
from tools.nights import PATH, profiles


def test_the_nights_are_what_is_made() -> None:
    assert read([str(PATH)]).sessions == list(profiles())
