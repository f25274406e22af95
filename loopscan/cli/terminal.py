"""What the commands say beside their report: one line at a time, on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

#: The exit code of an interrupted run.
INTERRUPTED = 130


def say(message: str) -> None:
    """Print one line on standard error; whatever ``message`` quotes cannot act on the terminal."""
    from loopscan.sanitize import clean

    if sys.stderr is None:  # closed: there is nowhere to say it
        return
    with suppress(OSError):  # full: likewise, and the exit code must stay what it is
        print(f"loopscan: {clean(message)}", file=sys.stderr, flush=True)  # noqa: T201


def quiet_stdout() -> None:
    """Point standard output nowhere, so that nothing more is said into a pipe that its reader has closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
