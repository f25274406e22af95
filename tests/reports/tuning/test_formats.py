"""Formats of ``loopscan tune`` are found by name, written to files, and cost what they use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loopscan.errors import UsageError
from loopscan.reports.base import TUNE_FORMATS, Options, Target, load, prepare, write_all
from tests.reports.tuning.samples import report


def test_importing_the_formats_loads_nothing_heavy() -> None:
    code = (
        "import sys, loopscan.reports.base as b; [b.load(n, b.TUNE_FORMATS) for n in b.TUNE_FORMATS];"
        "print([m for m in ('rich', 'polars', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_all_of_them_go_into_files_at_once(tmp_path: Path) -> None:
    targets = [Target(name, str(tmp_path / f"report.{name}")) for name in TUNE_FORMATS]
    write_all(report(), prepare(targets, TUNE_FORMATS), Options())
    begin = {name: (tmp_path / f"report.{name}").read_bytes()[:16] for name in TUNE_FORMATS}
    assert begin == {
        "text": b"loopscan 0.2.0 \xc2",
        "json": b'{\n  "schema": "l',
        "csv": b"enabled,historyS",
        "parquet": begin["parquet"],
        "markdown": b"## loopscan tune",
        "html": b"<!DOCTYPE html>\n",
    }
    assert begin["parquet"][:4] == b"PAR1"


def test_formats_of_other_commands_are_none_of_it() -> None:
    with pytest.raises(UsageError, match="known: text, json, csv, parquet, markdown, html"):
        load("sarif", TUNE_FORMATS)
