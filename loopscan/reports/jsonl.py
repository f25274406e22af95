"""``jsonl``: one mark a line, for programs that read as they go."""

from __future__ import annotations

from typing import BinaryIO

from loopscan.report import Report
from loopscan.reports.base import Options
from loopscan.reports.encode import encode

BINARY = True


def write(report: Report, out: BinaryIO, options: Options) -> None:
    """Write every mark of ``report`` as one line of JSON in UTF-8, with its source; nothing if there is no mark."""
    for row in report.rows():
        out.write(encode(row))
