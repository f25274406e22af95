"""Values out of records that nobody vouches for: a value of the wrong type is as good as none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TypeAlias

import orjson

from loopscan.events import Json

Object: TypeAlias = dict[str, Json]

#: The end of the year 9999: later times are garbage.
_LAST_SECOND = 253_402_300_799


def string(value: Json) -> str | None:
    """Return ``value`` if it is a string with something in it."""
    return value if isinstance(value, str) and value else None


def mapping(value: Json) -> Object:
    """Return ``value`` if it is an object, an empty one if it is not."""
    return value if isinstance(value, dict) else {}


def array(value: Json) -> list[Json]:
    """Return ``value`` if it is an array, an empty one if it is not."""
    return value if isinstance(value, list) else []


def identifier(value: Json) -> str | None:
    """Return an id as a string: ids are strings, and whole numbers where somebody wrote their own file."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if -(1 << 64) < value < (1 << 64) else None
    return string(value)


def number(value: Json) -> float | None:
    """Return a finite number, ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    result = float(value) if isinstance(value, float) or abs(value) < 1 << 64 else float("inf")
    return result if abs(result) < float("inf") else None


def whole(value: Json) -> int | None:
    """Return a number that is whole, ``None`` for anything else."""
    found = number(value)
    return int(found) if found is not None and found.is_integer() else None


def tokens(value: Json) -> int:
    """Return a count of tokens; 0 for what is missing or no sensible number."""
    found = number(value)
    return int(found) if found is not None and 0 < found < 1 << 63 else 0


def dollars(value: Json) -> float:
    """Return a price; 0 for what is missing or no sensible number."""
    found = number(value)
    return found if found is not None and found > 0 else 0.0


def seconds(value: Json) -> float | None:
    """Read a time, in seconds: an ISO string (UTC if it names no zone) or milliseconds since the epoch."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            found = moment.timestamp()
        except (ValueError, OverflowError):
            return None
    else:
        milliseconds = number(value)
        if milliseconds is None:
            return None
        found = milliseconds / 1000
    return found if 0 <= found <= _LAST_SECOND else None


def text_of(content: Json) -> str:
    """Return the text of a message's content: the texts of its blocks, joined by newlines, or the string itself."""
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in array(content) if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def written(value: Json) -> str:
    """Return ``value`` as JSON, the same for values that are equal but for the order of keys."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # lone surrogates, wide integers
        pass
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        return "nested too deeply to compare"
