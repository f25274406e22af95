"""What the commands say beside their report: one line at a time, on standard error."""

from __future__ import annotations

import os
import sys


def say(message: str) -> None:
    """Print one line on standard error; whatever ``message`` quotes cannot act on the terminal."""
    from loopscan.sanitize import clean

    print(f"loopscan: {clean(message)}", file=sys.stderr)  # noqa: T201


def quiet_stdout() -> None:
    """Point standard output nowhere, so that nothing more is said into a pipe that its reader has closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
