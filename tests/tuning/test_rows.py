"""Incidents for review: rows that a spreadsheet takes for text, and labels that come back as they were filled in."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from loopscan.errors import UsageError
from loopscan.rulesets import ruleset
from loopscan.tuning.courses import Judge
from loopscan.tuning.given import GivenLabels, read_labels
from loopscan.tuning.labels import Label
from loopscan.tuning.report import IncidentRow
from loopscan.tuning.rows import agreement_of, export, export_format, rows
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.sweep import SessionAnswers, Sweeper, answer
from tests.tuning.build import Told, productive, stuck

NAMES = ("=1+1", "@sum", "'quoted'", "-5", 's"x,\ny', "plain", "\u202eodd", "+1", "\ttab")


def answered(*told: Told, judge: Judge | None = None) -> list[SessionAnswers]:
    grid = Grid.of([Setting(), Setting(enabled=False)])
    profiles = [each.profile() for each in told]
    return answer(profiles, Sweeper(grid, ruleset("latest"), told[0].basis()), judge or Judge())


def corpus() -> list[Told]:
    """Return sessions with odd names, stuck and productive in turn."""
    return [
        (productive if number % 2 else stuck)(name, agent=name, source=f"{name}.jsonl")
        for number, name in enumerate(NAMES)
    ]


def found(judge: Judge | None = None) -> list[IncidentRow]:
    judge = judge or Judge()
    return list(rows(answered(*corpus(), judge=judge), judge))


def test_a_row_says_what_there_is_to_know_of_an_incident() -> None:
    told = Told("s1", agent="main").user().call("list", "dir", "files").call(times=6).broke_off()
    (row,) = rows(answered(told), Judge())
    assert row == IncidentRow(
        "s1/0/1", "s.jsonl", "s1", 0, "main", "m", row.loops, ("read",), 6, 4, 14, 1, 6, 1008.0, 1028.0,
        Label.STUCK, "run_aborted", Label.STUCK,
    )  # fmt: skip
    assert [loop.value for loop in row.loops] == ["same_call"]


def test_incidents_that_are_too_short_for_any_setting_are_no_rows() -> None:
    assert list(rows(answered(Told().call(times=4).broke_off()), Judge())) == []


@pytest.mark.parametrize("end", [".csv", ".jsonl", ".parquet"])
def test_what_is_exported_and_filled_in_is_what_is_given_back(tmp_path: Path, end: str) -> None:
    path, back = tmp_path / f"incidents{end}", tmp_path / "back"
    export(str(path), found())
    wanted = {name: list(Label)[number % 3] for number, name in enumerate(NAMES)}
    text = path.read_text("utf-8") if end != ".parquet" else ""
    match end:
        case ".csv":
            read = list(csv.DictReader(io.StringIO(text, newline="")))
            for row, label in zip(read, wanted.values(), strict=True):
                row["label"] = label.value
            out = io.StringIO(newline="")
            writer = csv.DictWriter(out, list(read[0]))
            writer.writeheader()
            writer.writerows(read)
            back.write_text(out.getvalue(), "utf-8", newline="")
        case ".jsonl":
            lines = [json.loads(line) for line in text.splitlines()]
            filled = [{**row, "label": label} for row, label in zip(lines, wanted.values(), strict=True)]
            back.write_text("".join(json.dumps(row) + "\n" for row in filled), "utf-8")
        case _:
            frame = pl.read_parquet(path).with_columns(label=pl.Series([label.value for label in wanted.values()]))
            back = tmp_path / "back.parquet"
            frame.write_parquet(back)
    labels = read_labels(str(back))
    judge = Judge(given=labels)
    assert {row.session: row.label for row in found(judge)} == wanted
    assert {row.rule for row in found(judge)} == {"given"}
    assert labels.unmatched == 0


@pytest.mark.parametrize("end", [".csv", ".jsonl", ".parquet"])
def test_labels_that_nobody_gave_are_empty_and_are_passed_over_when_given_back(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"incidents{end}"
    export(str(path), found())
    labels = read_labels(str(path))
    assert (labels.incidents, labels.runs, labels.sessions) == ({}, {}, {})


@pytest.mark.parametrize("end", [".csv", ".jsonl", ".parquet"])
def test_labels_that_somebody_gave_are_exported_again(tmp_path: Path, end: str) -> None:
    path = tmp_path / f"incidents{end}"
    judge = Judge(given=GivenLabels(sessions={"=1+1": Label.UNKNOWN, "plain": Label.STUCK}))
    export(str(path), found(judge))
    labels = read_labels(str(path))
    assert labels.incidents == {"=1+1/0/0": Label.UNKNOWN, "plain/0/0": Label.STUCK}


def test_no_cell_is_taken_for_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "incidents.csv"
    export(str(path), found())
    for row in csv.reader(io.StringIO(path.read_text("utf-8"), newline="")):
        assert not [cell for cell in row if cell[:1] in {*"=+@-\t\r"} and cell[1:2] not in {*"0123456789"}]
        assert not [cell for cell in row if cell[:1] in {*"=+@\t\r"}]


def test_no_cell_acts_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "incidents.csv"
    export(str(path), found())
    assert [char for char in path.read_text("utf-8") if not char.isprintable() and char != "\n"] == []


def test_an_export_without_incidents_has_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "incidents.csv"
    export(str(path), [])
    assert path.read_text().startswith("incident,label,rule_label,rule,source,session,run,")
    assert read_labels(str(path)).incidents == {}


def test_halves_of_characters_are_spelt_out(tmp_path: Path) -> None:
    told = stuck("s\ud800", agent="\ud800")
    export(str(tmp_path / "incidents.jsonl"), list(rows(answered(told), Judge())))
    row = json.loads((tmp_path / "incidents.jsonl").read_text())
    assert (row["session"], row["agent"]) == ("s\\ud800", "\\ud800")


@pytest.mark.parametrize("name", ["incidents", "incidents.txt", "incidents.csv.gz"])
def test_the_end_of_the_name_says_the_format(name: str) -> None:
    with pytest.raises(UsageError, match=r"--export-incidents .*: the name must end in \.csv, \.jsonl, \.parquet"):
        export_format(name)


def test_the_end_of_the_name_may_be_in_capitals() -> None:
    assert export_format("INCIDENTS.CSV") == ".csv"


def test_agreement_is_of_what_rules_and_people_say_of_the_same_incidents() -> None:
    given = GivenLabels(
        sessions={"=1+1": Label.STUCK, "@sum": Label.PRODUCTIVE, "-5": Label.STUCK, "gone": Label.STUCK}
    )
    judge = Judge(given=given)
    agreed = agreement_of(found(judge), given, 0.95)
    assert (agreed.given, agreed.unmatched) == (3, 1)
    assert agreed.table["stuck"] == {"stuck": 1, "productive": 0, "unknown": 0}
    assert agreed.table["productive"] == {"stuck": 1, "productive": 1, "unknown": 0}
    # Two of three agree; by chance 1/3 * 2/3 + 2/3 * 1/3 would.
    assert agreed.kappa == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert agreed.interval is not None


def test_without_labels_there_is_no_agreement() -> None:
    agreed = agreement_of(found(), GivenLabels(), 0.95)
    assert (agreed.given, agreed.kappa, agreed.interval) == (0, None, None)
