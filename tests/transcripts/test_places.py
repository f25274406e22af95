"""Files are opened without waiting for anybody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopscan.transcripts.places import open_file


def test_a_file_is_opened_at_its_start(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with open_file(path) as stream:
        assert stream.read() == b"content"


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="not a regular file"):
            open_file(path)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "gone")
