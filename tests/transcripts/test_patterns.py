"""Patterns of paths meet what a shell's would."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.transcripts.patterns import expand, meets

TREE = ["a", "b.x", "sub/a", "sub/b.x", "sub/deep/a", "sub/deep/.h", ".dot/a", ".dot/.h", "[x]", "sub/sub/sub/b.x"]
PARTS = st.sampled_from(["*", "**", "?", "a", "sub", "*.x", "[ab]*", ".*", "s?b", "[!a]", "deep", "[[]x]"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: Any) -> Path:
    root: Path = tmp_path_factory.mktemp("tree")
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    return root


@given(parts=st.lists(PARTS, min_size=1, max_size=4))
def test_patterns_meet_what_those_of_the_standard_library_do(tree: Path, parts: list[str]) -> None:
    if parts[-1] == "**":
        parts = [*parts, "*"]
    pattern = "/".join([str(tree), *parts])
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207 - that of pathlib meets what is hidden, too
    expected = sorted(set(found))
    assert expand(pattern) == expected
    files = [name for name in expected if Path(name).is_file()]
    assert [f"{tree}/{name}" for name in sorted(TREE) if meets(name.split("/"), parts)] == files


@given(path=st.lists(st.text(max_size=3), max_size=6), pattern=st.lists(st.text("*?[a.]", max_size=4), max_size=8))
def test_meeting_never_fails_and_two_stars_meet_all_that_is_visible(path: list[str], pattern: list[str]) -> None:
    assert meets(path, pattern) in (True, False)
    assert meets(path, ["**"]) == (not any(name.startswith(".") for name in path))


def test_links_are_not_followed_down_and_what_cannot_be_read_meets_nothing(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "a").write_bytes(b"")
    assert expand(f"{tmp_path}/**/a") == [f"{tmp_path}/a"]
    assert expand(f"{tmp_path}/a/*") == []
    assert expand(f"{tmp_path}/gone/**/a") == []
    assert expand(f"{tmp_path}/\0/*") == []
