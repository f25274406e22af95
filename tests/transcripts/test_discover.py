"""From paths to sources: what is found, in which order, and what is skipped with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopscan.errors import InputError
from loopscan.transcripts.discover import Discovery, discover
from tests.transcripts.build import Transcript


def write(path: Path, data: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(Transcript(session=path.name).bytes() if data is None else data)
    return path


def names(found: Discovery, root: Path) -> list[str]:
    return [os.path.relpath(each.source.name, root) for each in found.sources]


def reasons(found: Discovery, root: Path) -> dict[str, str]:
    return {os.path.relpath(each.path, root): each.reason for each in found.skipped}


def test_a_folder_is_walked_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.jsonl", "a/y/x.jsonl", "c.jsonl", "a.jsonl"):
        write(tmp_path / name)
    found = discover([tmp_path])
    assert names(found, tmp_path) == ["a/y/x.jsonl", "a/z.jsonl", "a.jsonl", "b.jsonl", "c.jsonl"]
    assert {each.reader for each in found.sources} == {"openclaw-jsonl"}


def test_the_order_is_that_of_the_paths_named(tmp_path: Path) -> None:
    paths = [write(tmp_path / name) for name in ("b.jsonl", "a.jsonl")]
    assert names(discover(paths), tmp_path) == ["b.jsonl", "a.jsonl"]


@pytest.mark.parametrize(
    "name",
    [
        "s.jsonl",
        "s.jsonl.reset.2026-03-22T18-18-14.056Z",
        "s.jsonl.deleted.2026-02-17T04-05-12.450Z",
        "s.jsonl.bak-123-1780000000000",
        "s.checkpoint.00000030-0000-4000-8000-000000000000.jsonl",
        "s-topic-7.jsonl",
    ],
)
def test_what_openclaw_leaves_beside_a_session_is_looked_into(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert names(discover([tmp_path]), tmp_path) == [name]


def test_what_is_no_session_is_skipped_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path / "s.trajectory.jsonl", b'{"traceSchema":"openclaw-trajectory","type":"session.started"}\n')
    write(tmp_path / "empty.jsonl", b"")
    write(tmp_path / "sessions.json", b"{}")
    write(tmp_path / "s.jsonl.lock", b"1")
    assert reasons(discover([tmp_path]), tmp_path) == {
        "empty.jsonl": "empty",
        "s.jsonl.lock": "not named like a transcript",
        "s.trajectory.jsonl": "of no known format",
        "sessions.json": "not named like a transcript",
    }


def test_a_named_file_needs_no_telling_name_but_a_known_format(tmp_path: Path) -> None:
    assert names(discover([write(tmp_path / "session.txt")]), tmp_path) == ["session.txt"]
    with pytest.raises(InputError, match=r"notes\.jsonl: of no known format \(known: openclaw-jsonl"):
        discover([write(tmp_path / "notes.jsonl", b"# notes\n")])
    with pytest.raises(InputError, match="empty"):
        discover([write(tmp_path / "none.jsonl", b"\n")])


@pytest.mark.parametrize("name", ["gone.jsonl", "gone/", "with\0nul"])
def test_a_missing_path_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        discover([tmp_path / name])


def test_errors_can_be_collected(tmp_path: Path) -> None:
    errors: list[InputError] = []
    found = discover([tmp_path / "gone", write(tmp_path / "a.jsonl")], on_error=errors.append)
    assert len(errors) == 1
    assert names(found, tmp_path) == ["a.jsonl"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").hardlink_to(path)
    found = discover([path, tmp_path, tmp_path])
    assert names(found, tmp_path) == ["a.jsonl"]
    assert set(reasons(found, tmp_path)) == {"a.jsonl", "b.jsonl"}


def test_links_in_a_folder_are_not_followed_and_cannot_loop(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/o.jsonl")
    inside = tmp_path / "inside"
    write(inside / "a.jsonl")
    (inside / "loop").symlink_to(inside, target_is_directory=True)
    (inside / "out").symlink_to(outside.parent, target_is_directory=True)
    (inside / "o.jsonl").symlink_to(outside)
    (inside / "broken.jsonl").symlink_to(tmp_path / "gone")
    found = discover([inside])
    assert names(found, inside) == ["a.jsonl"]
    assert set(reasons(found, inside)) == {"loop", "out", "o.jsonl", "broken.jsonl"}


def test_a_named_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real/a.jsonl")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert names(discover([tmp_path / "link"]), tmp_path) == ["link/a.jsonl"]
    (tmp_path / "self").symlink_to(tmp_path / "self")
    with pytest.raises(InputError, match="self: cannot be read"):
        discover([tmp_path / "self"])


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may read everything")
def test_what_may_not_be_read_is_skipped_in_a_folder_and_an_error_if_named(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl").chmod(0)
    (tmp_path / "b").mkdir(mode=0)
    assert reasons(discover([tmp_path]), tmp_path) == {
        "a.jsonl": "cannot be read: Permission denied",
        "b": "cannot be read: Permission denied",
    }
    for name in ("a.jsonl", "b"):
        with pytest.raises(InputError, match="Permission denied"):
            discover([tmp_path / name])
