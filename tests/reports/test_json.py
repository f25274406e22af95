"""``json`` keeps to the published schema, and is harmless to look at."""

from __future__ import annotations

import io
import json
import unicodedata
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.marks import Detector, Kind, Level
from loopscan.report import Report
from loopscan.reports import Options, load
from loopscan.reports.encode import encode
from tests.reports import samples


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "replay-1.schema.json").read_text("utf-8"))
    return found


def document(report: Report) -> str:
    out = io.BytesIO()
    load("json").write(report, out, Options())
    return out.getvalue().decode()


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_report_is_valid(name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(json.loads(document(samples.SAMPLES[name]())))


def test_the_schema_is_one_and_describes_every_field() -> None:
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    for name, definition in [("report", made), *made["$defs"].items()]:
        assert definition["description"], name
        for field, described in definition["properties"].items() if "properties" in definition else ():
            assert described.get("description") or "$ref" in described, f"{name}.{field}"


def test_the_schema_knows_all_that_a_report_holds() -> None:
    made = schema()

    def compare(value: Any, described: dict[str, Any], path: str) -> None:
        if "$ref" in described:
            described = made["$defs"][described["$ref"].rpartition("/")[2]]
        if isinstance(value, list):
            for item in value:
                compare(item, described["items"], path)
        elif isinstance(value, dict) and "properties" in described:
            for key, item in value.items():
                assert key in described["properties"], f"{path}.{key}"
                compare(item, described["properties"][key], f"{path}.{key}")

    for sample in samples.SAMPLES.values():
        compare(sample().to_dict(), made, "report")


def test_the_schema_lists_every_kind_level_and_detector() -> None:
    mark = schema()["$defs"]["mark"]["properties"]
    assert set(mark["kind"]["enum"]) == set(Kind)
    assert set(mark["level"]["enum"]) == set(Level)
    assert set(mark["detector"]["enum"]) == set(Detector)
    assert set(schema()["$defs"]["totals"]["properties"]["marks"]["required"]) == set(Kind)


def test_what_breaks_the_contract_is_not_valid() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    made = json.loads(document(samples.block_and_end()))
    del made["sessions"][0]["runs"][0]["marks"][0]["signature"]
    made["totals"]["marks"]["warning"] = "1"
    made["added_later"] = True
    assert sorted(error.json_path for error in validator.iter_errors(made)) == [
        "$.sessions[0].runs[0].marks[0]",
        "$.totals.marks.warning",
    ]


def test_it_is_indented_ends_with_a_newline_and_never_varies() -> None:
    text = document(samples.one_warning())
    assert text.startswith('{\n  "schema": "loopscan.replay/1",\n  "version": "0.1.0",\n')
    assert text.endswith("\n}\n")
    assert text == document(samples.one_warning())


def test_nothing_raw_and_nothing_lost() -> None:
    made = samples.hostile()
    text = document(made)
    raw = {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}}
    assert raw == {"\n"}
    tools = [row["runs"][0]["marks"][0]["tool"] for row in json.loads(text)["sessions"]]
    assert tools == list(samples.HOSTILE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@given(json_values, st.booleans())
def test_encoding_is_exact_whatever_the_value(value: object, indent: bool) -> None:
    encoded = encode(value, indent=indent)
    assert encoded.endswith(b"\n")
    assert json.loads(encoded) == value


@given(st.recursive(st.none() | st.integers(0, 9), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_values_that_need_the_slow_way_look_like_the_others(value: object) -> None:
    fast = encode([value, "x"], indent=True).decode()
    slow = encode([value, "\ud800"], indent=True).decode()
    assert slow == fast[: -len('"x"\n]\n')] + '"\\ud800"\n]\n'


def test_numbers_that_are_none_in_json_are_null() -> None:
    assert encode([float("nan"), float("inf")]) == b"[null,null]\n"
    assert encode([float("nan"), 2**70]) == b"[null,1180591620717411303424]\n"
