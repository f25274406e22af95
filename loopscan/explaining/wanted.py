"""Which call is asked about: ``PATH:CALL``, and what the options say."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loopscan.errors import UsageError

_CALL: Final = re.compile(r"(?P<path>.+):(?P<batch>#?)(?P<number>[0-9]{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked about; ``None`` stands for any."""

    call: int | None = None
    """The number of a call within its run, counted from 0."""
    batch: int | None = None
    """The number of a message with calls within its run, counted from 0, as a timeline shows it."""
    entry: str | None = None
    """The transcript's own id of the entry with the message."""
    tool_call: str | None = None
    session: str | None = None
    run: str | None = None
    """Its number within the session, counted from 0, or its run id."""

    @property
    def one_call(self) -> bool:
        """Whether calls are asked about, not whole runs."""
        return any(each is not None for each in (self.call, self.batch, self.entry, self.tool_call))

    def is_session(self, session: str) -> bool:
        """Whether a session is asked about."""
        return self.session is None or self.session == session

    def is_run(self, number: int, run_id: str | None) -> bool:
        """Whether a run is asked about."""
        return self.run is None or self.run in (str(number), run_id)

    def is_call(self, call: int, batch: int, entry: str | None, tool_call: str | None) -> bool:
        """Whether a call of such a run is asked about by itself."""
        asked = ((self.call, call), (self.batch, batch), (self.entry, entry), (self.tool_call, tool_call))
        return self.one_call and all(mine is None or mine == its for mine, its in asked)

    def may_be_call(self, call: int | None, batch: int, tool_call: str | None) -> bool:
        """Whether a call may be the one, of which its run and its entry are not looked at."""
        asked = ((self.call, call), (self.batch, batch), (self.tool_call, tool_call))
        return all(mine is None or mine == its for mine, its in asked)

    def words(self) -> str:
        """Return what is asked for, for a message."""
        said = {
            "call": self.call,
            "message": self.batch,
            "entry": self.entry,
            "tool call": self.tool_call,
            "session": self.session,
            "run": self.run,
        }
        return ", ".join(f"{what} {value}" for what, value in said.items() if value is not None)


def addressed(path: str, wanted: Wanted) -> tuple[str, Wanted]:
    """Return a path without the call that it may name at its end, as ``:20`` or ``:#20``, and what is asked about.

    A file of that very name goes before. Raises :class:`UsageError` for two calls.
    """
    found = _CALL.fullmatch(path)
    if found is None or Path(path).exists():
        return path, wanted
    if wanted.one_call:
        raise UsageError("name one call: at the end of the path, or by --entry or --tool-call")
    number = int(found["number"])
    named = replace(wanted, batch=number) if found["batch"] else replace(wanted, call=number)
    return found["path"], named
