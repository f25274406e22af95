"""One mark in one line, for people who watch."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from loopscan.marks import Kind, Level
from loopscan.reports.console import safe
from loopscan.reports.phrases import KINDS
from loopscan.sanitize import clean

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {Level.INFO: "cyan", Level.WARNING: "yellow", Level.CRITICAL: "red"}
_TOOL = 40
_SESSION = 60
_MESSAGE = 400


def mark_line(row: dict[str, Any]) -> Text:
    """Return a row of the report as a line: when, what, on which tool, where, and the sentence."""
    from rich.text import Text

    style = _STYLES[Level(row["level"])]
    line = Text()
    if row["time"] is not None:
        line.append(f"{datetime.fromisoformat(row['time']):%H:%M:%S} ", "dim")
    line.append(KINDS[Kind(row["kind"])], f"bold {style}")
    line.append(f" {row['detector']}", style)
    if row["count"] is not None:
        line.append(f" · count {row['count']}")
    if row["tool"] is not None:
        line.append(" · ")
        line.append_text(safe(row["tool"], limit=_TOOL))
    line.append(" · session ")
    line.append_text(safe(row["session"], limit=_SESSION))
    line.append(f" · run {row['run']}, batch {row['batch']}", "dim")
    if row["message"]:
        line.append(" · ")
        line.append(clean(row["message"], _MESSAGE), "dim")
    return line
