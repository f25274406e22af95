"""JSON as the reports write it: fast where it can be, exact and harmless always."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import orjson

from loopscan.sanitize import escape_json


def encode(value: Any, *, indent: bool = False) -> bytes:  # noqa: ANN401 - any JSON value
    """Return ``value`` as JSON in UTF-8 with a newline at its end.

    Characters that could act on a terminal are escaped, lone surrogates included; a number that is
    not finite is ``null``. Integers of any size are written out.
    """
    option = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        document = orjson.dumps(value, option=option).decode()
    except TypeError:  # lone surrogates, integers beyond 64 bits
        separators = (",", ": ") if indent else (",", ":")
        document = json.dumps(
            _finite(value), ensure_ascii=False, indent=2 if indent else None, separators=separators, allow_nan=False
        )
        document += "\n"
    return escape_json(document).encode()


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
