"""Parquet files that may be damaged: whatever is wrong with one is a :class:`ValueError`, and no more is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars


def read_frame(data: bytes) -> polars.DataFrame:
    """Return the table in the bytes of a parquet file. Raises :class:`ValueError` for what is none, or not whole."""
    import polars as pl

    try:
        with _silence():
            return pl.read_parquet(data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError("is no complete parquet file") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Keep standard error from what the parser's own panics print there, whatever is done with them."""
    if sys.stderr is None:
        yield
        return
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
