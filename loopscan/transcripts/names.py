"""Names of sources, taken apart."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[/\\!]")


def pieces_of(name: str) -> list[str]:
    """Return the folders and the file that a source is named after, of either system, within archives or not.

    ``logs.tar!agents/a/1.jsonl`` gives ``["logs.tar", "agents", "a", "1.jsonl"]``.
    """
    return _SEPARATORS.split(name)
