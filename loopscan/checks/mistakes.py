"""What is wrong with a file that people write, each mistake with its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from loopscan.errors import ConfigError
from loopscan.sanitize import clean

#: How many mistakes of one file are told.
MOST: Final = 20


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A place in a file; both count from 1."""

    line: int
    column: int


#: The top of a file.
TOP: Final = Spot(1, 1)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong."""

    path: str
    """The file, as it is to be named."""
    spot: Spot | None
    """``None`` for the file as a whole."""
    what: str
    """In words: what is wrong, and what to do."""

    def __str__(self) -> str:
        place = f":{self.spot.line}:{self.spot.column}" if self.spot is not None else ""
        return f"{clean(self.path)}{place}: {self.what}"


class Mistakes(ConfigError):  # noqa: N818 - several errors in one
    """What is wrong with one file, in the order of its lines."""

    def __init__(self, found: Iterable[Mistake]) -> None:
        every = sorted(dict.fromkeys(found), key=lambda mistake: mistake.spot or TOP)
        self.found = every[:MOST]
        if len(every) > MOST:
            path, rest = every[0].path, len(every) - MOST
            self.found.append(Mistake(path, None, f"{rest} more mistakes; mend these first"))
        super().__init__("; ".join(map(str, self.found[:1])))
