"""A console for text that nobody may interpret: no markup, no emoji codes, no highlighting, no encoding errors.

Rich is imported when a console is made.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO, cast

from loopscan.sanitize import inert, name

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.style import StyleType
    from rich.table import Table
    from rich.text import Text

#: Columns where the output is no terminal.
PLAIN_WIDTH = 100
_NARROWEST = 40
# What our own signs become in encodings that lack them.
_ASCII = {
    "…": "...",
    "×": "x",
    "·": "-",
    "–": "-",
    "—": "-",
    "─": "-",
    "━": "=",
    "│": "|",
    "┌": "+",
    "└": "+",
    "●": "*",
    "○": "o",
    "✗": "x",
    "→": "->",
    "≥": ">=",
    "’": "'",
    "█": "#",
    "▌": "=",
    "−": "-",
}


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode() for char in bad), error.end


codecs.register_error("loopscan.ascii", _replace)


class _Writable:
    """A text stream that writes what its encoding can hold, and no spaces at the ends of lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = _usable(getattr(stream, "encoding", None))

    def write(self, text: str) -> int:
        """Write ``text``, characters that the encoding lacks replaced."""
        lines = "\n".join(inert(line.rstrip(" ")) for line in text.split("\n"))
        self._stream.write(lines.encode(self.encoding, "loopscan.ascii").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Tell whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the stream's descriptor."""
        return self._stream.fileno()


def _usable(encoding: str | None) -> str:
    try:
        return codecs.lookup(encoding or "utf-8").name
    except LookupError:
        return "ascii"


def console(out: TextIO, *, width: int | None = None, color: bool | None = None) -> Console:
    """Return a console that writes to ``out``.

    Without ``width`` it is as wide as the terminal, or 100 columns where ``out`` is none. Without
    ``color`` there are colours on a terminal unless ``NO_COLOR`` is set. Print only
    :class:`rich.text.Text` made by :func:`safe` or of words of our own.
    """
    if width is None and not out.isatty():
        width = PLAIN_WIDTH
    made = _console_class()(
        file=cast(TextIO, _Writable(out)),
        width=width,
        force_terminal=color,
        no_color=True if color is False else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
    if made.width < _NARROWEST:
        made.width = _NARROWEST
    return made


def _console_class() -> type[Console]:
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            # Rich would redirect standard output and leave; whoever called decides what it means.
            raise

    return PlainConsole


def safe(text: str, style: StyleType = "", limit: int | None = None) -> Text:
    """Return ``text``, which may come from a transcript, as a rich text that shows it and nothing else.

    It takes at most ``limit`` columns. What is unmistakably a key is hidden, whatever it is the name of.
    """
    from rich.cells import cell_len
    from rich.text import Text

    shown = name(text, limit)
    if limit is not None and not shown.isascii() and (width := cell_len(shown)) > limit:
        shown = name(text, limit * limit // width)
    return Text(shown, style=style)


def grid(*columns: dict[str, object], padding: int = 2) -> Table:
    """Return a table without lines, with a column for each of the options given; what is too long is folded."""
    from rich.table import Table

    made = Table.grid(padding=(0, padding, 0, 0))
    for column in columns:
        made.add_column(overflow="fold", **column)  # type: ignore[arg-type]
    return made


def fields() -> Table:
    """Return a table of names, dim, and what is to say of each."""
    return grid({"min_width": 11, "no_wrap": True, "style": "dim"}, {"ratio": 1})


def heading(text: str) -> Text:
    """Return ``text`` as the heading of a part."""
    return safe(text, "bold")


def print_parts(to: Console, parts: Iterable[RenderableType]) -> None:
    """Print ``parts``, if there are any, after an empty line."""
    first = True
    for part in parts:
        if first:
            to.print()
            first = False
        to.print(part)
