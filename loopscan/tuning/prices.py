"""Dollars: as recorded, or else by a table of prices that the user gives."""

from __future__ import annotations

import csv
import io
import math
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from loopscan.errors import UsageError
from loopscan.sanitize import clean

#: What a price is of, in the order in which usage is kept.
KINDS: Final = ("input", "output", "cache_read", "cache_write")
_PER: Final = 1_000_000
#: The model that stands for all that are not named.
ANY_MODEL: Final = "*"


@dataclass(slots=True)
class Prices:
    """Dollars per million tokens, by model."""

    table: Mapping[str, Sequence[float]]
    """For each model the prices of :data:`KINDS`."""
    unpriced: set[str] = field(default_factory=set)
    """Models that were met and have no price."""

    def __call__(self, model: str | None, usage: Sequence[float]) -> float:
        """Return the dollars of a response: as recorded, or by the table where none are."""
        if usage[5]:
            return float(usage[5])
        prices = self._of(model or "")
        if prices is None:
            self.unpriced.add(model or "")
            return 0.0
        return sum(price * tokens for price, tokens in zip(prices, usage, strict=False)) / _PER

    def _of(self, model: str) -> Sequence[float] | None:
        """Return the prices of a model: its own, those of the longest name that it begins with, or those of any."""
        found = self.table.get(model)
        if found is None:
            begins = [name for name in self.table if name != ANY_MODEL and model.startswith(name)]
            found = self.table[max(begins, key=len)] if begins else self.table.get(ANY_MODEL)
        return found


def read_prices(path: str) -> Prices:
    """Return the prices in a file of JSON or CSV.

    JSON: ``{"model": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}``; CSV: a header
    ``model,input,output,cache_read,cache_write`` and a line a model; all in dollars per million tokens. A price of
    the cache that is missing is that of the input. Raises :class:`UsageError` for what is neither.
    """
    shown = clean(path)
    try:
        data = Path(path).read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise UsageError(f"--prices {shown}: {error.strerror or 'cannot be read'}") from error
    try:
        rows = _json_rows(data) if data.lstrip()[:1] == b"{" else _csv_rows(data.decode())
    except (ValueError, csv.Error) as error:
        raise UsageError(f"--prices {shown}: is neither JSON nor CSV of prices: {clean(str(error), 120)}") from error
    table = {model: _prices(shown, model, row) for model, row in rows.items()}
    if not table:
        raise UsageError(f"--prices {shown}: names no model")
    return Prices(table)


def _json_rows(data: bytes) -> dict[str, Mapping[str, object]]:
    found = orjson.loads(data)
    return {model: row if isinstance(row, dict) else {} for model, row in found.items()}


def _csv_rows(text: str) -> dict[str, Mapping[str, object]]:
    rows = csv.DictReader(io.StringIO(text))
    if "model" not in (rows.fieldnames or ()):
        raise ValueError("there is no column model")
    found: dict[str, Mapping[str, object]] = {}
    for row in rows:
        model = row["model"]
        if not model:
            raise ValueError(f"line {rows.line_num} names no model")
        if model in found:
            raise ValueError(f"line {rows.line_num} names {model} twice")
        found[model] = {name: value for name, value in row.items() if value}
    return found


def _prices(shown: str, model: str, row: Mapping[str, object]) -> list[float]:
    prices: list[float] = []
    for kind in KINDS:
        value = row.get(kind, row.get("input") if kind.startswith("cache") else None)
        try:
            price = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
        except ValueError:
            price = math.nan
        if not 0 <= price < math.inf:
            raise UsageError(f"--prices {shown}: {clean(model, 60)}: {kind} must be dollars per million tokens")
        prices.append(price)
    return prices
