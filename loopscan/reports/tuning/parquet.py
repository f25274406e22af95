"""``parquet`` of ``loopscan tune``: every setting that was tried, a row each."""

from __future__ import annotations

from typing import BinaryIO

from loopscan.reports.base import Options
from loopscan.reports.tuning.frame import frame
from loopscan.tuning.report import TuningReport

BINARY = True


def write(report: TuningReport, out: BinaryIO, options: Options) -> None:
    """Write the sweep: the columns of ``csv``, with their types."""
    from io import BytesIO

    held = BytesIO()  # polars wants to seek, and standard output cannot
    frame(report).write_parquet(held)
    out.write(held.getvalue())
