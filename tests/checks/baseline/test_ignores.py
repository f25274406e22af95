"""An ignore is about the marks that fit all of its fields, up to and with its date."""

from __future__ import annotations

from datetime import date

import pytest

from loopscan.checks.baseline.ignores import Ignore
from loopscan.fingerprints import content
from tests.checks.baseline.made import mark

DAY = date(2027, 1, 31)


def covers(match: dict[str, str | int], path: str = "logs/a/s-1.jsonl") -> bool:
    return Ignore(match, "on it", DAY).covers(content("s-1", mark()), path)


def test_it_holds_on_its_last_day_and_no_longer() -> None:
    ignore = Ignore({"tool": "read"}, "on it", DAY)
    assert ignore.holds(date(2027, 1, 31))
    assert not ignore.holds(date(2027, 2, 1))


def test_every_field_must_fit() -> None:
    assert covers({"tool": "read", "kind": "warning", "detector": "generic_repeat", "level": "warning", "count": 10})
    assert covers({"session": "s-1", "signature": "5a1e", "outcome": "77c0"})
    assert not covers({"tool": "read", "kind": "block"})
    assert not covers({"count": 11})
    assert not covers({"paired_tool": "read"})
    assert not covers({"tool": "read", "source": "other.jsonl"})


@pytest.mark.parametrize("pattern", ["s-1.jsonl", "*.jsonl", "a/*.jsonl", "logs/*/s-?.jsonl", "logs/**", "**"])
@pytest.mark.parametrize("folder", ["", "/home/me/.openclaw/", "../", "C:\\work\\", "s3://bucket/"])
def test_a_pattern_is_met_by_the_end_of_a_path_however_its_folder_was_named(pattern: str, folder: str) -> None:
    assert covers({"source": pattern}, f"{folder}logs/a/s-1.jsonl")


@pytest.mark.parametrize("pattern", ["s-1", "1.jsonl", "logs/*.jsonl", "/logs/a/s-1.jsonl", "a", "a/**/b.jsonl", ""])
def test_a_part_of_a_name_or_of_a_path_does_not_meet_it(pattern: str) -> None:
    assert not covers({"source": pattern}, "work/logs/a/s-1.jsonl")
