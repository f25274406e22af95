"""Options that several commands have, so that they read and behave alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    typer.Option("--set", help="Override one field, such as warningThreshold=8.", metavar="NAME=VALUE"),
]
