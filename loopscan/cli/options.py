"""Options that several commands have, so that they read and behave alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from loopscan.errors import UsageError
from loopscan.modes import Arm, ScopeRule


class Format(StrEnum):
    """What commands can print that have no report of their own formats."""

    TEXT = "text"
    JSON = "json"


PrintFormat = Annotated[Format, typer.Option("--format", help="What to print.")]
RulesetName = Annotated[
    str, typer.Option("--ruleset", help="Which releases decide: 2026.6, 2026.9 or latest.", metavar="NAME")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="openclaw.json, or its tools.loopDetection block (JSON5).",
        metavar="FILE",
        readable=False,  # who reads it says what is wrong with it
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Override one field: enabled=true, or with 2026.6 warningThreshold=8.", metavar="NAME=VALUE"
    ),
]
NoConfig = Annotated[
    bool,
    typer.Option("--no-config", help="Do not use the configuration that lies in a folder of OpenClaw."),
]
Scope = Annotated[
    ScopeRule, typer.Option(help="Look back over the run, or over the whole session as without run ids.")
]
Arming = Annotated[Arm, typer.Option(help="When a compaction within a run arms the post-compaction guard.")]
ToolMap = Annotated[
    list[str] | None,
    typer.Option("--tool-map", help="Judge a tool as the one that OpenClaw calls NAME.", metavar="TOOL=NAME"),
]
InputFormat = Annotated[
    str | None,
    typer.Option("--input-format", help="Read everything as this format; see loopscan formats.", metavar="NAME"),
]
MaxLine = Annotated[
    str, typer.Option("--max-line", help="Skip longer lines and elements, such as 64MiB.", metavar="SIZE")
]
MaxExpanded = Annotated[
    str,
    typer.Option("--max-expanded", help="Stop reading what grows beyond this when decompressed.", metavar="SIZE"),
]
Jobs = Annotated[int, typer.Option(help="Processes to work with.", min=1, metavar="N")]
SkipErrors = Annotated[
    bool, typer.Option("--skip-errors", help="Do not exit with 3 for input that could not be read.")
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Do not exit with 3 for want of a transcript.")]
NoPreviews = Annotated[bool, typer.Option("--no-previews", help="Leave out the (masked) arguments of calls.")]
Outputs = Annotated[
    list[str] | None,
    typer.Option("--output", "-o", help="Write a report to a file as well; repeatable.", metavar="FORMAT=FILE"),
]
JobSummary = Annotated[
    bool,
    typer.Option("--job-summary", help="Append the markdown report to the file that GITHUB_STEP_SUMMARY names."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
Paths = Annotated[
    list[str],
    typer.Argument(
        help="Transcripts, folders, archives, wildcards, @LIST, - for standard input, s3:// and the like.",
        metavar="PATHS...",
    ),
]

#: The defaults of the two limits, as one would write them.
MAX_LINE = "64MiB"
MAX_EXPANDED = "16GiB"

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {f"{unit}i": 1 << (10 * power) for power, unit in enumerate("kmgt", 1)}
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?)\s*(?P<unit>[kmgt]?i?)b?", re.IGNORECASE)


def parse_size(option: str, text: str) -> int:
    """Return a size in bytes, such as ``64MiB``, ``2G`` or ``4096``; ``option`` is what the user is told of.

    Raises :class:`UsageError` for what is no size, or none at all.
    """
    found = _SIZE.fullmatch(text.strip())
    unit = found["unit"].lower() if found else None
    size = round(float(found["number"]) * _UNITS[unit]) if found and unit in _UNITS else 0
    if size < 1:
        raise UsageError(f"{option} must be a size such as 64MiB, 2G or 4096, not {text!r}")
    return size


def parse_tool_map(pairs: Iterable[str]) -> dict[str, str]:
    """Return what ``--tool-map TOOL=NAME`` asks for; an empty name stands for the tool's own.

    Raises :class:`UsageError` for what is not of that form.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        tool, separator, name = pair.rpartition("=")
        if not separator or not tool:
            raise UsageError(f"--tool-map must be TOOL=NAME, such as Bash=exec, not {pair!r}")
        found[tool] = name or tool
    return found
