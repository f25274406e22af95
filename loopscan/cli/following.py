"""``loopscan replay --follow``: each mark as it happens, until somebody interrupts."""

from __future__ import annotations

import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from loopscan.cli.terminal import say, wide_console
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
    with _Interrupts(at_once=any(str(path) == "-" for path in planned.paths)) as interrupts:
        said = False
        while not (interrupts.came() or follower.finished):
            for row in interrupts.reading(follower.look()):
                printed(row)
                marks += 1
            if not said and not interrupts.came() and not follower.finished:
                said = True
                if follower.hopeless:
                    break  # the report says what is wrong
                for complaint in follower.complaints:
                    say(f"not yet: {complaint}")
                still = f" ({follower.still} packed or remote ones are read once)" if follower.still else ""
                say(f"following {counted(follower.sources, 'source')}{still}; interrupt to end")
            if _is_unread():
                raise BrokenPipeError
            interrupts.sleep()
        if interrupts.came():
            follower.give_up_streams()
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
        from loopscan.reports.rows import mark_line

        out = wide_console()

        def text(row: dict[str, Any]) -> None:
            out.print(mark_line(row))
            sys.stdout.flush()

        return text
    raise UsageError(f"--follow prints text or jsonl, not {format_}: write other formats to a file with -o")


def _is_unread() -> bool:
    """Say whether nobody reads standard output any more: else that would show at the next mark alone."""
    try:
        poller = select.poll()
        poller.register(sys.stdout.fileno(), 0)
    except (AttributeError, OSError, ValueError):  # not on this system, or no such stream
        return False
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0))


class _Interrupts:
    """Notes interrupts, so that what is going on ends in good order; the second one acts at once.

    Reading standard input may take any time: there (``at_once``) the first one breaks the reading off.
    """

    def __init__(self, *, at_once: bool) -> None:
        self._caught = False
        self._at_once = at_once
        self._reading = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interrupts:
        self._before = {number: signal.signal(number, self._catch) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def reading(self, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield ``rows`` until somebody interrupts."""
        try:
            while not self._caught:
                self._reading = True
                row = next(rows, None)
                self._reading = False
                if row is None:
                    return
                yield row
        except KeyboardInterrupt:
            return
        finally:
            self._reading = False

    def came(self) -> bool:
        """Say whether somebody interrupted."""
        return self._caught

    def sleep(self) -> None:
        """Wait until it is time to look again, or somebody interrupts."""
        until = time.monotonic() + EVERY
        while time.monotonic() < until and not self._caught:
            time.sleep(_SLICE)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        again, self._caught = self._caught, True
        if again or (self._at_once and self._reading):
            raise KeyboardInterrupt
