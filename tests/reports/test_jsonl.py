"""``jsonl`` is one mark a line, the same marks as in ``json``."""

from __future__ import annotations

import io
import json

import jsonschema
import pytest

from loopscan.reports import Options, load
from tests.reports import samples
from tests.reports.test_json import schema


def lines(name: str) -> list[str]:
    out = io.BytesIO()
    load("jsonl").write(samples.SAMPLES[name](), out, Options())
    text = out.getvalue().decode()
    assert text == "" or text.endswith("\n")
    return text.split("\n")[:-1]


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_a_line_is_a_mark_with_its_source(name: str) -> None:
    made = samples.SAMPLES[name]().to_dict()
    marks = [
        {"source": session["source"], **mark}
        for session in made["sessions"]
        for run in session["runs"]
        for mark in run["marks"]
    ]
    assert [json.loads(line) for line in lines(name)] == marks


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_a_line_is_valid(name: str) -> None:
    row = {**schema(), "$ref": "#/$defs/row"}
    for keyword in ("properties", "required", "type"):
        del row[keyword]
    validator = jsonschema.Draft202012Validator(row)
    for line in lines(name):
        validator.validate(json.loads(line))


def test_without_marks_there_is_nothing() -> None:
    assert lines("all_clean") == []
