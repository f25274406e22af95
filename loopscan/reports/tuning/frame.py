"""The sweep as a table of polars, which is imported when a table is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loopscan.tuning.columns import type_of
from loopscan.tuning.report import TuningReport

if TYPE_CHECKING:
    import polars


def frame(report: TuningReport) -> polars.DataFrame:
    """Return one row for each setting that was tried: its configuration fields, then its figures with rates.

    All values are numbers, true, false or missing: an ``enabled`` that is missing is not set.
    """
    import polars as pl

    types: dict[type, Any] = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64}
    columns = report.table()
    return pl.DataFrame(columns, schema={name: types[type_of(name)] for name in columns})
