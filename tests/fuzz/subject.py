"""What must hold for a damaged transcript, whatever the damage is."""

from __future__ import annotations

import io
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from loopscan.errors import InputError
from loopscan.events import Event
from loopscan.inspection import inspect
from loopscan.replayer import replay
from loopscan.report import Report
from loopscan.reports import Options, load
from loopscan.transcripts.discover import discover
from loopscan.transcripts.reader import readers
from tests.fuzz.mutate import damage
from tests.transcripts.build import Transcript, call
from tests.transcripts.checks import account, check

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: Readers for which every line is an entry; the elements of documents are counted by their own tests.
LINES = frozenset(
    {"openclaw-jsonl", "claude-code", "codex", "openclaw-trajectory", "openclaw-log", "openclaw-backup"}
)


@cache
def fixtures() -> tuple[Path, ...]:
    """Return every fixture that some reader recognises as a file of its own; shapes are all of one form."""
    found = discover([FIXTURES])
    paths = {Path(each.source.name) for each in found.sources if "!" not in each.source.name}
    paths = {path for path in paths if path.parent.name != "shapes"}
    return tuple(sorted(path for path in paths if path.is_file() and path.stat().st_size < 1 << 20))


@cache
def untouched() -> bytes:
    """Return a session with a loop, which is never damaged and lies beside those that are."""
    made = Transcript(session="untouched")
    made.user()
    for number in range(25):
        made.asks(call(f"c{number}"))
        made.result(f"c{number}")
    made.says()
    return made.bytes()


@dataclass(frozen=True)
class Subject:
    """One fixture, damaged as the seed says."""

    fixture: Path
    seed: int

    def data(self) -> bytes:
        return damage(self.fixture.read_bytes(), random.Random(f"{self.fixture.name} {self.seed}"))

    def try_out(self, folder: Path) -> None:
        """Write the damaged fixture into ``folder``, replay it, and assert what must hold.

        No exception, no fault of our own; events that keep what readers promise; no line that nobody accounts
        for; no byte in a report that acts on a terminal; and the marks of the session beside it as ever.
        """
        path = folder / self.fixture.name
        path.write_bytes(self.data())
        beside = folder / "untouched"
        beside.mkdir(exist_ok=True)
        other = beside / "untouched.jsonl"
        if not other.exists():
            other.write_bytes(untouched())
        for found in discover([path], on_error=lambda error: None).sources:
            source = found.source
            try:
                events: list[Event] = list(readers()[found.reader].read(source))
            except InputError:
                continue  # it cannot even be opened, and says so
            check(events)
            if found.reader in LINES and source.path is not None:
                account(source)
        report = replay([folder], ruleset="latest", debug=True)
        marks = [row["kind"] for row in report.rows() if row["source"] == str(other)]
        assert marks == ["warning", "block", "block", "run_end"]
        inspection = inspect(folder, debug=True)
        assert inspection.total().calls == sum(session.calls for session in report.sessions)
        self._is_harmless(report)

    def _is_harmless(self, report: Report) -> None:
        for name in ("text", "json"):
            reporter = load(name)
            out: Any = io.BytesIO() if reporter.BINARY else io.StringIO()
            reporter.write(report, out, Options(verbose=True))
            shown = out.getvalue() if isinstance(out, io.StringIO) else out.getvalue().decode()
            assert not {"\x1b", "\x07", "\x9b", "\u202e", "\x00"} & set(shown)
