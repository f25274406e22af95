"""A mapping that forgets: what makes memory bounded in a session of any length."""

from __future__ import annotations

from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

#: How many of the latest entries of a session are remembered at least; twice as many at most.
REMEMBERED = 1 << 17


class Recent(Generic[_Key, _Value]):
    """Remembers at least the ``size`` keys that were set last, and at most twice as many."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._young: dict[_Key, _Value] = {}
        self._old: dict[_Key, _Value] = {}

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if len(self._young) >= self._size:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def __contains__(self, key: _Key) -> bool:
        return key in self._young or key in self._old

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key, ``None`` if it was never set or is forgotten."""
        found = self._young.get(key)
        return found if found is not None else self._old.get(key)
