"""``json``: the whole report in the form of its schema, such as ``loopscan.replay/1``."""

from __future__ import annotations

from typing import Any, BinaryIO, Protocol

from loopscan.reports.base import Options
from loopscan.reports.encode import encode

BINARY = True


class Documented(Protocol):
    """A report that says itself what its document is."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        ...


def write(report: Documented, out: BinaryIO, options: Options) -> None:
    """Write ``report`` as one indented JSON document in UTF-8, with a newline at its end.

    What transcripts name (tools, ids) is kept, but no character is written raw that could act on a
    terminal: it is harmless to look at.
    """
    out.write(encode(report.to_dict(), indent=True))
