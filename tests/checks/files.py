"""Folders of transcripts and expectations, made for a test."""

from __future__ import annotations

import shutil
from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: Under 2026.9: a warning at call 10, blocks at 20 and 21, and the end of the run.
LOOP = FIXTURES / "detectors" / "read-notes.jsonl"
#: No mark under any ruleset.
CLEAN = FIXTURES / "clean" / "paging.jsonl"
FAILING = FIXTURES / "detectors" / "failing-build.jsonl"


def put(folder: Path, **files: str | Path) -> None:
    """Write files into a folder: ``a__b_jsonl`` is ``a/b.jsonl``; a path stands for a copy of that file."""
    for name, content in files.items():
        base, _, ending = name.replace("__", "/").rpartition("_")
        path = folder / f"{base.replace('_', '.')}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, path)
        else:
            path.write_text(content, encoding="utf-8")
