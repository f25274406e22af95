"""Files of expectations are read with the place of everything, and mean what YAML 1.2 says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.checks.document import Spot, WrittenFloat, parse, read
from loopscan.errors import ConfigError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


def value(text: str) -> Any:
    return parse(text, "x.yaml").value


def fault(text: str, *, json: bool = False) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, "x.yaml", json=json)
    return str(caught.value)


def test_a_number_keeps_how_it_was_written() -> None:
    version = value("ruleset: 2026.10")["ruleset"]
    assert isinstance(version, WrittenFloat)
    assert version.written == "2026.10"
    assert value("call: 007")["call"] == 7


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("~", None),
        ("null", None),
        ("", None),
        ("12:30:45", "12:30:45"),
        ("2026-10-05", "2026-10-05"),
        ('"12"', "12"),
        ("'true'", "true"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text: str, meant: object) -> None:
    found = value(f"a: {text}")["a"]
    assert found == meant
    assert isinstance(found, type(meant))


def test_every_value_and_key_knows_its_place() -> None:
    document = parse("a: 1\nb:\n  - c: 2\n  - {d: 3,\n     e: 4}\n", "x.yaml")
    assert document.spot(("b", 1, "e")) == Spot(5, 9)
    assert document.spot(("b", 1, "e"), key=True) == Spot(5, 6)
    assert document.spot(("b", 1, "missing")) == Spot(4, 5)  # the nearest that is there
    assert document.spot(()) == Spot(1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", 'x.yaml:2:1: "a" stands here twice'),
        ("? [1]\n: 2\n", "x.yaml:1:3: a key must be a word"),
        ("a: !!python/object:x {}\n", "x.yaml:1:4: has the type"),
        ("a: !mine 3\n", "x.yaml:1:4: has the type"),
        ("a: [1\n", "x.yaml:2:1: "),
        ("a: 1\n---\nb: 2\n", "x.yaml:2:1: "),
        ("a: \x07\n", "x.yaml: "),
        ("[" * 60 + "]" * 60, "is nested too deeply"),
        ("{" * 3000, "x.yaml"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_place(text: str, said: str) -> None:
    message = fault(text)
    assert said in message
    assert "\n" not in message


def test_an_alias_of_itself_is_nested_too_deeply() -> None:
    assert "nested too deeply" in fault("a: &a [*a]\n")


@given(JSON, st.booleans())
def test_json_is_read_as_json(data: Any, ascii_only: bool) -> None:
    text = json.dumps({"a": data}, ensure_ascii=ascii_only)
    if not ascii_only and not all(char.isprintable() for char in text):
        return  # YAML wants such characters escaped
    assert parse(text, "x.json", json=True).value == {"a": data}


def test_tabs_indent_json() -> None:
    assert parse('{\n\t"a":\t1\n}', "x.json", json=True).value == {"a": 1}


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read(tmp_path / "x.yaml", "x.yaml").value == {"a": 1, "b": 2}


def test_what_is_no_text_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"x\.yaml:2:1: is not UTF-8 text"):
        read(tmp_path / "x.yaml", "x.yaml")


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.yaml: cannot be read: No such file"):
        read(tmp_path / "x.yaml", "x.yaml")


def test_aliases_that_come_to_very_much_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "comes to too many values" in fault("\n".join(lines))
