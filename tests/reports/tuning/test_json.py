"""``json`` of ``loopscan tune`` keeps to the published schema, and is harmless to look at."""

from __future__ import annotations

import json
import unicodedata
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from loopscan.policy import FIELDS
from loopscan.tuning.incidents import Loop
from loopscan.tuning.labels import Label
from loopscan.tuning.report import TuningReport, Verdict
from tests.reports.tuning import samples
from tests.reports.tuning.samples import report, reports, written

SCHEMA: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "tune-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_every_sample_is_valid(name: str) -> None:
    VALIDATOR.validate(json.loads(written("json", samples.SAMPLES[name]())))


@settings(max_examples=10, deadline=None)
@given(made=reports())
def test_any_report_is_valid_and_harmless(made: TuningReport) -> None:
    text = written("json", made).decode()
    VALIDATOR.validate(json.loads(text))
    assert {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}} == {"\n"}


def test_the_schema_is_one_and_describes_every_field() -> None:
    VALIDATOR.check_schema(SCHEMA)
    for name, definition in [("report", SCHEMA), *SCHEMA["$defs"].items()]:
        assert definition["description"], name
        for field, described in definition["properties"].items() if "properties" in definition else ():
            assert described.get("description") or "$ref" in described, f"{name}.{field}"


def test_the_schema_knows_all_that_a_report_holds() -> None:
    met: set[str] = set()

    def compare(value: Any, described: dict[str, Any], path: str) -> None:
        for one in described.get("anyOf", ()):
            if "$ref" in one:
                described = one
        if "$ref" in described:
            met.add(described["$ref"].rpartition("/")[2])
            described = SCHEMA["$defs"][described["$ref"].rpartition("/")[2]]
        if isinstance(value, list):
            for item in value:
                compare(item, described["items"], path)
        elif isinstance(value, dict) and "properties" in described:
            for key, item in value.items():
                assert key in described["properties"], f"{path}.{key}"
                compare(item, described["properties"][key], f"{path}.{key}")

    for sample in samples.SAMPLES.values():
        compare(sample().to_dict(), SCHEMA, "report")
    assert met == set(SCHEMA["$defs"])


def test_the_schema_lists_every_verdict_label_loop_and_field() -> None:
    definitions = SCHEMA["$defs"]
    assert set(definitions["chosen"]["properties"]["verdict"]["enum"]) == set(Verdict)
    assert set(definitions["label"]["enum"]) == set(Label)
    assert set(definitions["incident"]["properties"]["loops"]["items"]["enum"]) == set(Loop)
    assert tuple(definitions["setting"]["properties"]) == FIELDS


def test_what_breaks_the_contract_is_not_valid() -> None:
    made = json.loads(written("json", report()))
    del made["whole"]["in_force"]["figures"]["false_rate"]
    made["decisions"][0]["changes"]["critical"] = 3
    made["whole"]["off"]["figures"]["saved"]["calls"] = 1.5
    made["added_later"] = True
    assert sorted(error.json_path for error in VALIDATOR.iter_errors(made)) == [
        "$.decisions[0].changes",
        "$.whole.in_force.figures",
        "$.whole.off.figures.saved.calls",
    ]


def test_the_figures_are_all_there() -> None:
    made = json.loads(written("json", report()))
    assert made["schema"] == "loopscan.tune/1"
    assert (made["ruleset"], made["scope"], made["arm"]) == ("2026.6", "run", "auto")
    best = made["whole"]["chosen"]["candidate"]
    assert best["changes"] == {"criticalThreshold": 15, "globalCircuitBreakerThreshold": 20}
    assert best["setting"]["criticalThreshold"] == 15
    assert best["figures"]["saved"] == {
        "calls": 90,
        "responses": 85,
        "input_tokens": 45_000,
        "output_tokens": 2_000,
        "cache_read_tokens": 100_000,
        "cache_write_tokens": 500,
        "tokens": 147_500,
        "cost_usd": 1.875,
        "seconds": 452.5,
    }
    assert made["whole"]["started"] == "2026-09-01T10:00:00.000Z"
    assert [point["setting"]["criticalThreshold"] for point in made["curve"]] == [8, 10, 12, 15, 20, 25, 30, 40, 60]
    assert made["whole"]["stability"]["others"][0]["share"] == 0.13
    assert made["agreement"]["table"]["stuck"] == {"stuck": 3, "productive": 1, "unknown": 0}
