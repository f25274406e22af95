"""Pages of documentation, taken apart: their sections, and the blocks of code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKING = ROOT / "docs" / "checking.md"


@dataclass(frozen=True)
class Block:
    """A block of code."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that a first line such as ``# tests/test_x.py`` says this is."""
        found = re.match(r"# (\S+\.\w+)\n", self.text)
        return found[1] if found else None

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each command of a console, with the lines shown of its output."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield command, lines


def blocks(text: str) -> list[Block]:
    """Return the blocks of code of a page, or a part of it, in order."""
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def sections(page: Path) -> dict[str, str]:
    """Return what stands below each heading of the second level."""
    parts = re.split(r"^## (.*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def shown_file(name: str) -> str:
    """Return a file that ``docs/checking.md`` shows."""
    (found,) = (block.text for block in blocks(CHECKING.read_text(encoding="utf-8")) if block.file == name)
    return found
