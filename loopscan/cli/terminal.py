"""What the commands say beside their report: one line at a time, on standard error."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from loopscan.transcripts.discover import Skipped

_Done = TypeVar("_Done")

#: The exit code of an interrupted run.
INTERRUPTED = 130
#: The exit code for input that could not be read, or for want of any.
NO_INPUT = 3


def say(message: str) -> None:
    """Print one line on standard error; whatever ``message`` quotes cannot act on the terminal."""
    from loopscan.sanitize import clean, inert

    if sys.stderr is None:  # closed: there is nowhere to say it
        return
    with suppress(OSError):  # full: likewise, and the exit code must stay what it is
        print(inert(f"loopscan: {clean(message)}"), file=sys.stderr, flush=True)  # noqa: T201


def wide_console() -> Console:
    """Return a console on standard output; a pipe has no width: what is folded there cannot be searched or copied."""
    from loopscan.reports.console import console

    return console(sys.stdout, width=None if sys.stdout.isatty() else 10_000)


def print_json(document: object) -> None:
    """Print a JSON document on standard output, in UTF-8 whatever the locale, harmless to look at."""
    from loopscan.reports.encode import encode

    sys.stdout.flush()
    sys.stdout.buffer.write(encode(document, indent=True))
    sys.stdout.flush()


def quiet_stdout() -> None:
    """Point standard output nowhere, so that nothing more is said into a pipe that its reader has closed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def nothing_found(skipped: Sequence[Skipped], sources: int, advice: str, input_format: str | None) -> str:
    """Return the line that says that there was no transcript, and what there was.

    ``advice`` says where to learn more of sources without a session, unless they were read as one ``input_format``.
    """
    if sources:
        read = "read"
        if input_format is not None:
            read, advice = f"read as {input_format}", "without --input-format the format is told by the content"
        what = f"source was {read} and holds" if sources == 1 else f"sources were {read} and hold"
        return f"error: {sources} {what} no session; {advice}, --allow-empty lets it pass"
    reasons = Counter(file.reason for file in skipped)
    words = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common(3))
    looked = f" ({len(skipped)} files skipped: {words})" if words else ""
    return f"error: no transcript found{looked}; name session files or their folders, or use --allow-empty"


@contextmanager
def progress_of(
    doing: str, done: list[_Done], *, shown: bool, what: str = "sources"
) -> Iterator[Callable[[_Done, int], None]]:
    """Yield what is to be called with each thing that is done, and how many there are; draws a bar on a terminal."""
    if not (shown and sys.stderr is not None and sys.stderr.isatty()):
        yield lambda each, of: done.append(each)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(doing),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def advance(each: _Done, of: int) -> None:
            done.append(each)
            bar.update(task, completed=len(done), total=of)

        yield advance
