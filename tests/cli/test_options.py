"""What people write after the options that say how to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.cli.options import parse_size, parse_tool_map
from loopscan.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("64MiB", 64 << 20),
        ("64 mib", 64 << 20),
        ("2G", 2 * 10**9),
        ("1.5k", 1500),
        ("16GiB", 16 << 30),
        ("3B", 3),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size("--max-line", text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1XB", "i", "1iB", "64 Mi B", "nan", "1e9", "0.0001", "9" * 40])
def test_what_is_no_size_is_refused_with_the_name_of_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--max-line must be a size such as 64MiB"):
        parse_size("--max-line", text)


@given(tool=st.text(min_size=1), name=st.text(min_size=1).filter(lambda name: "=" not in name))
def test_the_last_equals_sign_parts_a_tool_from_its_name(tool: str, name: str) -> None:
    assert parse_tool_map([f"{tool}={name}"]) == {tool: name}
    assert parse_tool_map([f"{tool}="]) == {tool: tool}


@pytest.mark.parametrize("pair", ["", "Bash", "=exec"])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="TOOL=NAME"):
        parse_tool_map([pair])
