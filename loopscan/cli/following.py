"""``loopscan replay --follow``: each mark as it happens, until somebody interrupts."""

from __future__ import annotations

import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from loopscan.cli.terminal import quiet_stdout, say, wide_console
from loopscan.errors import UsageError

if TYPE_CHECKING:
    from loopscan.replayer import Plan
    from loopscan.report import Report

#: Between two looks, in seconds.
EVERY = 1.0
_SLICE = 0.05


def follow_until_interrupted(planned: Plan, format_: str, *, debug: bool) -> Report:
    """Print the marks of what is written as it is written; return the report of it all in the end.

    That is when somebody interrupts, when nobody reads the marks any more, or when all that is read was streams
    and they have ended. Raises :class:`UsageError` if the format cannot be printed mark by mark.
    """
    from loopscan.following import Follower
    from loopscan.reports.phrases import counted

    out = _Output(_printer(format_))
    with _Interrupts() as interrupts:

        def is_over() -> bool:
            return interrupts.came or out.is_unread()

        follower = Follower(planned, debug=debug, given_up=is_over)
        said = False
        while not (is_over() or follower.finished):
            out.print(follower.look())
            if not said and not is_over() and not follower.finished:
                said = True
                if follower.hopeless:
                    break  # the report says what is wrong
                for complaint in follower.complaints:
                    say(f"not yet: {complaint}")
                still = f" ({follower.still} packed or remote ones are read once)" if follower.still else ""
                say(f"following {counted(follower.sources, 'source')}{still}; interrupt to end")
            until = time.monotonic() + EVERY
            while time.monotonic() < until and not is_over():
                time.sleep(_SLICE)
        out.print(follower.finish())
    report = follower.report()
    for complaint in follower.gone:
        say(f"not any more: {complaint}; what was read of it is in the report")
    say(
        f"followed {counted(len(report.sources), 'source')} with {counted(len(report.sessions), 'session')}:"
        f" {counted(out.marks, 'mark')}"
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


class _Output:
    """Prints marks as long as somebody reads them."""

    def __init__(self, printed: Callable[[dict[str, Any]], None]) -> None:
        self.marks = 0
        """How many there were, printed or not."""
        self._printed = printed
        self._unread = False

    def print(self, rows: Iterable[dict[str, Any]]) -> None:
        """Print a mark for each row."""
        for row in rows:
            self.marks += 1
            if self._unread:
                continue
            try:
                self._printed(row)
            except BrokenPipeError:
                self._give_up()

    def is_unread(self) -> bool:
        """Say whether nobody reads standard output any more: else that would show at the next mark alone."""
        if not self._unread:
            try:
                poller = select.poll()
                poller.register(sys.stdout.fileno(), 0)
            except (AttributeError, OSError, ValueError):  # not on this system, or no such stream
                return False
            if any(event & (select.POLLERR | select.POLLHUP) for _, event in poller.poll(0)):
                self._give_up()
        return self._unread

    def _give_up(self) -> None:
        self._unread = True
        quiet_stdout()


class _Interrupts:
    """Notes interrupts, so that what is going on ends in good order; the second one acts at once."""

    def __init__(self) -> None:
        self.came = False
        """Somebody interrupted."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interrupts:
        self._before = {number: signal.signal(number, self._catch) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        again, self.came = self.came, True
        if again:
            raise KeyboardInterrupt
