"""``csv`` of ``loopscan tune``: every setting that was tried, a row each."""

from __future__ import annotations

from typing import BinaryIO

from loopscan.reports.base import Options
from loopscan.reports.tuning.frame import frame
from loopscan.tuning.report import TuningReport

BINARY = True


def write(report: TuningReport, out: BinaryIO, options: Options) -> None:
    """Write the sweep with a line of column names, in UTF-8.

    No cell holds text, so that none can be a formula; rates have all the digits they have.
    """
    out.write(frame(report).write_csv().encode())
