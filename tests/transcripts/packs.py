"""Packs bytes in every way, and reads what discovery found."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from loopscan.transcripts.discover import Discovery, Found, discover
from loopscan.transcripts.openclaw import OpenClawReader
from tests.transcripts.build import Transcript

ONLY = {"openclaw-jsonl": OpenClawReader()}


def session(name: str = "s1", messages: int = 1) -> bytes:
    """A transcript."""
    made = Transcript(session=name)
    for number in range(messages):
        made.message("user", content=f"question {number} of {name}")
    return made.bytes()


def gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def zst(data: bytes, *, checksum: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(data)


def tar(members: Mapping[str, bytes] | Iterable[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as archive:
        for name, data in members.items() if isinstance(members, Mapping) else members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return made.getvalue()


def find(*paths: Any, **options: Any) -> Discovery:
    """Discover with one reader, whatever others there are."""
    return discover(paths, among=ONLY, **options)


def names(found: Discovery, root: Path | None = None) -> list[str]:
    """The names of what was found, without the folder that it is in."""
    return [_short(each.source.name, root) for each in found.sources]


def reasons(found: Discovery, root: Path | None = None) -> dict[str, str]:
    """Why what was skipped was."""
    return {_short(each.path, root): each.reason for each in found.skipped}


def content(found: Found) -> bytes:
    """All bytes of a source."""
    with found.source.open() as stream:
        return b"".join(iter(lambda: stream.read(50_000), b""))


def _short(name: str, root: Path | None) -> str:
    return name if root is None else name.removeprefix(f"{root}/")
