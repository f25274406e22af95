"""``loopscan replay --follow``: each mark as it happens, until somebody interrupts."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from loopscan.cli.terminal import say
from loopscan.errors import UsageError

if TYPE_CHECKING:
    from loopscan.replayer import Plan
    from loopscan.report import Report

#: Between two looks, in seconds.
EVERY = 1.0
_SLICE = 0.05


def follow_until_interrupted(planned: Plan, format_: str, *, debug: bool) -> Report:
    """Print the marks of what is written as it is written; return the report of it all after an interrupt.

    Raises :class:`UsageError` if the format cannot be printed mark by mark.
    """
    from loopscan.following import Follower
    from loopscan.reports.phrases import counted

    printed = _printer(format_)
    follower = Follower(planned, debug=debug)
    marks = 0
    with _interrupts(at_once=any(str(path) == "-" for path in planned.paths)) as interrupted:
        said = False
        while not interrupted():
            try:
                for row in follower.look():
                    printed(row)
                    marks += 1
                    if interrupted():
                        break
            except KeyboardInterrupt:  # it came while a stream was waited for
                follower.give_up_streams()
                break
            if follower.finished:
                break
            if not said and not interrupted():
                said = True
                if follower.complaints and not follower.sources:
                    break  # the report says what is wrong
                for complaint in follower.complaints:
                    say(f"error: {complaint}")
                still = f" ({follower.still} packed or remote ones are read once)" if follower.still else ""
                say(f"following {counted(follower.sources, 'source')}{still}; interrupt to end")
            _sleep(interrupted)
        for row in follower.finish():
            printed(row)
            marks += 1
    report = follower.report()
    say(
        f"followed {counted(len(report.sources), 'source')} with {counted(len(report.sessions), 'session')}:"
        f" {counted(marks, 'mark')}"
    )
    return report


def _printer(format_: str) -> Callable[[dict[str, Any]], None]:
    if format_ == "jsonl":
        from loopscan.reports.encode import encode

        def line(row: dict[str, Any]) -> None:
            sys.stdout.buffer.write(encode(row))
            sys.stdout.flush()

        return line
    if format_ == "text":
        from loopscan.reports.console import console
        from loopscan.reports.rows import mark_line

        out = console(sys.stdout, width=None if sys.stdout.isatty() else 10_000)

        def text(row: dict[str, Any]) -> None:
            out.print(mark_line(row))
            sys.stdout.flush()

        return text
    raise UsageError(f"--follow prints text or jsonl, not {format_}: write other formats to a file with -o")


@contextmanager
def _interrupts(*, at_once: bool) -> Iterator[Callable[[], bool]]:
    """Give what tells whether somebody interrupted.

    Where standard input is read, which may take any time, and at the second time, it raises ``KeyboardInterrupt``.
    """
    caught = False

    def catch(number: int, frame: FrameType | None) -> None:
        nonlocal caught
        if caught or at_once:
            caught = True
            raise KeyboardInterrupt
        caught = True

    before = {number: signal.signal(number, catch) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sleep(interrupted: Callable[[], bool]) -> None:
    until = time.monotonic() + EVERY
    while time.monotonic() < until and not interrupted():
        time.sleep(_SLICE)
