"""Draws docs/replay.svg: the real output of ``loopscan replay`` on one of the fixtures, as a terminal shows it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

import loopscan
from loopscan.reports import text
from loopscan.reports.base import Options

ROOT = Path(__file__).parents[1]
SOURCE = "fixtures/detectors/read-notes.jsonl"
WIDTH = 100


def draw() -> str:
    """Replay the fixture and return the coloured report as SVG."""
    with contextlib.chdir(ROOT):
        report = loopscan.replay(SOURCE, ruleset="2026.9")
    coloured = io.StringIO()
    text.write(report, coloured, Options(color=True, width=WIDTH))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    command = f"$ loopscan replay {SOURCE} --ruleset 2026.9\n"
    console.print(Text(command, style="bold"), Text.from_ansi(coloured.getvalue()), sep="")
    drawn = console.export_svg(title="loopscan replay", unique_id="loopscan")
    # The fonts that rich links to are fetched from the network; every machine has a monospaced one.
    return re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


if __name__ == "__main__":
    (ROOT / "docs" / "replay.svg").write_text(draw(), encoding="utf-8")
