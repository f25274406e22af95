"""``csv`` and ``parquet`` of ``loopscan tune`` hold every setting that was tried, as numbers."""

from __future__ import annotations

import csv
import io
import re

import polars as pl
import pytest

from loopscan.policy import FIELDS
from tests.reports.tuning.samples import NASTIEST, empty, report, written

CELL = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?|true|false|")


def test_a_row_for_each_setting_with_its_rates() -> None:
    made = report()
    rows = list(csv.DictReader(io.StringIO(written("csv", made).decode())))
    assert len(rows) == len(made.whole.candidates)
    assert list(rows[0])[: len(FIELDS)] == list(FIELDS)
    (row,) = (
        row for row in rows if row["criticalThreshold"] == "15" and row["globalCircuitBreakerThreshold"] == "20"
    )
    assert (row["caught"], row["missed"], row["saved_calls"], row["saved_usd"]) == ("5", "2", "90", "1.875")
    assert float(row["lead"]) == pytest.approx(18.2)
    assert float(row["warnings_per_1000_calls"]) == pytest.approx(1000 * 30 / 25_480)
    assert (row["at_risk"], row["false_sessions"], float(row["false_rate"])) == ("40", "0", 0)
    assert float(row["false_rate_high"]) == pytest.approx(1 - 0.025 ** (1 / 40))
    assert rows[0]["enabled"] == "false"
    assert rows[0]["lead"] == "", "the mean of nothing is missing"


def test_no_cell_is_text() -> None:
    _, *rows = csv.reader(io.StringIO(written("csv", NASTIEST).decode()))
    assert rows
    assert all(CELL.fullmatch(cell) for row in rows for cell in row)


def test_parquet_holds_the_same_with_types() -> None:
    made = report()
    table = pl.read_parquet(io.BytesIO(written("parquet", made)))
    read = pl.read_csv(io.BytesIO(written("csv", made)), schema=table.schema)
    assert table.equals(read)
    assert table.schema["enabled"] == pl.Boolean
    assert table.schema["criticalThreshold"] == pl.Int64
    assert table.schema["false_rate"] == pl.Float64


def test_nothing_tried_makes_an_empty_table() -> None:
    assert written("csv", empty()).strip() == b""
    assert pl.read_parquet(io.BytesIO(written("parquet", empty()))).is_empty()
