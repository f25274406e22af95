"""The file holds all of a baseline, is friendly to version control, and says where it makes no sense."""

from __future__ import annotations

import json
import tempfile
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from loopscan.checks.baseline.data import Baseline, updated
from loopscan.checks.baseline.file import NoBaselineError, load, write
from loopscan.checks.baseline.ignores import Ignore
from loopscan.errors import ConfigError, UsageError
from loopscan.marks import Detector, Kind, Level
from tests.checks.baseline.made import TODAY, baselines, mark, report, session
from tests.reports import samples

SCHEMA: dict[str, Any] = json.loads((files("loopscan") / "schemas" / "baseline-1.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def some() -> Baseline:
    found = report(session(mark(), mark(), mark(Kind.BLOCK)), session(name="s-2"))
    found.agents["main"] = samples.policy(enabled=None)
    ignore = Ignore({"tool": "exec", "source": "logs/**"}, "on it", date(2027, 1, 31), ("until", "match", "reason"))
    return replace(updated(found, None, TODAY), ignores=(ignore,))


def as_json(tmp_path: Path) -> dict[str, Any]:
    write(some(), tmp_path / "some.json")
    made: dict[str, Any] = json.loads((tmp_path / "some.json").read_text())
    return made


class TestWriting:
    @given(baselines)
    def test_what_is_loaded_is_what_was_written(self, made: Baseline) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "b.json")
            write(made, path)
            loaded = load(path)
            assert loaded == made
            assert [list(each.match) for each in loaded.ignores] == [list(each.match) for each in made.ignores]
            text = path.read_text("utf-8")
            VALIDATOR.validate(json.loads(text))
            assert {unicodedata.category(char) for char in text.replace("\n", "")}.isdisjoint({"Cc", "Cf", "Cs"})

    def test_there_is_one_mark_and_one_session_a_line(self, tmp_path: Path) -> None:
        write(some(), tmp_path / "b.json")
        lines = (tmp_path / "b.json").read_text().splitlines()
        assert [line for line in lines if '"session":' in line] == [
            '    {"session":"s-1","kind":"block","detector":"generic_repeat","level":"critical","count":10,'
            '"tool":"read","signature":"5a1e","outcome":"77c0","source":"sessions/s-1.jsonl"},',
            '    {"session":"s-1","kind":"warning","detector":"generic_repeat","level":"warning","count":10,'
            '"tool":"read","signature":"5a1e","outcome":"77c0","times":2,"source":"sessions/s-1.jsonl"}',
            '    {"session":"s-1","calls":40,"source":"sessions/s-1.jsonl"},',
            '    {"session":"s-2","calls":40,"source":"sessions/s-2.jsonl"}',
        ]

    def test_a_mark_more_is_a_line_more(self, tmp_path: Path) -> None:
        def lines(*also: Any) -> list[str]:
            found = report(session(mark(signature="2"), *also, mark(signature="7")))
            write(updated(found, None, TODAY), tmp_path / "b.json")
            return (tmp_path / "b.json").read_text().splitlines()

        before, after = lines(), lines(mark(signature="5"))
        (new,) = [line for line in after if line not in before]
        assert '"signature":"5"' in new
        assert [line for line in after if line != new] == before

    def test_ignores_keep_their_order_and_that_of_their_fields(self, tmp_path: Path) -> None:
        assert list(as_json(tmp_path)["ignores"][0].items()) == [
            ("until", "2027-01-31"),
            ("match", {"tool": "exec", "source": "logs/**"}),
            ("reason", "on it"),
        ]

    def test_the_old_one_stays_if_the_new_one_cannot_be_written(self, tmp_path: Path) -> None:
        write(some(), tmp_path / "b.json")
        before = (tmp_path / "b.json").read_bytes()
        broken = replace(some(), marks=(*some().marks, None))  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            write(broken, tmp_path / "b.json")
        assert (tmp_path / "b.json").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["b.json"]

    def test_a_folder_that_is_not_there_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"cannot write .*b\.json: No such file or directory"):
            write(some(), tmp_path / "none" / "b.json")


def changed(path: tuple[str | int, ...], value: object) -> Callable[[dict[str, Any]], object]:
    """Return what sets a field deep in the document."""

    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def without(*path: str | int) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


WRONG = [
    (changed(("schema",), "loopscan.baseline/2"), 'schema is "loopscan.baseline/2", not "loopscan.baseline/1"'),
    (without("schema"), 'schema is missing, not "loopscan.baseline/1"'),
    (without("marks"), "marks is missing; add it"),
    (changed(("mark",), []), "mark: there is no such field; did you mean marks?"),
    (changed(("marks",), {}), "marks must be an array, not an object"),
    (changed(("marks", 1), "x"), 'marks[1] must be an object, not "x"'),
    (changed(("marks", 1, "kind"), "blok"), 'marks[1].kind must be a kind that counts, not "blok"; did you mean'),
    (changed(("marks", 1, "kind"), "guard_armed"), 'marks[1].kind must be a kind that counts, not "guard_armed"; wr'),
    (changed(("marks", 1, "kind"), ["block"]), "marks[1].kind must be a kind that counts, not an array; wr"),
    (changed(("marks", 1, "level"), "high"), 'marks[1].level must be a level that counts, not "high"; write one'),
    (changed(("marks", 1, "count"), 10.5), "marks[1].count must be a whole number from 1 on, not 10.5"),
    (changed(("marks", 1, "times"), 0), "marks[1].times must be a whole number from 1 on, not 0"),
    (changed(("marks", 1, "times"), True), "marks[1].times must be a whole number from 1 on, not true"),
    (changed(("marks", 1, "tool"), None), "marks[1].tool must be a text, not null"),
    (changed(("marks", 1, "line"), 4), "marks[1].line: there is no such field; "),
    (without("marks", 1, "detector"), "marks[1].detector is missing; add it"),
    (changed(("sessions", 0, "calls"), -1), "sessions[0].calls must be a whole number from 0 on, not -1"),
    (without("sessions", 0, "source"), "sessions[0].source is missing; add it"),
    (changed(("checked", "calls"), "9"), 'checked.calls must be a whole number from 0 on, not "9"'),
    (changed(("made_with", "mode"), 1), "made_with.mode must be a text, not 1"),
    (changed(("made_with", "config", "enabled"), "yes"), "made_with.config.enabled must be a whole number, true"),
    (changed(("made_with", "agents", "main"), 1), "made_with.agents.main must be an object, not 1"),
    (changed(("ignores", 0, "untill"), "x"), "ignores[0].untill: there is no such field; did you mean until?"),
    (without("ignores", 0, "until"), "ignores[0].until is missing; add it"),
    (without("ignores", 0, "reason"), "ignores[0].reason is missing; add it"),
    (changed(("ignores", 0, "reason"), " \n"), "ignores[0].reason is empty; say why these marks do not count"),
    (changed(("ignores", 0, "match"), {}), "ignores[0].match is empty and would meet every mark; name one of"),
    (changed(("ignores", 0, "match", "tol"), "x"), "ignores[0].match.tol: there is no such field; did you mean"),
    (changed(("ignores", 0, "match", "times"), 2), "ignores[0].match.times: there is no such field; "),
    (changed(("ignores", 0, "match", "detector"), "pingpong"), "must be a detector that counts, not"),
    (changed(("ignores", 0, "until"), "31.1.2027"), 'ignores[0].until must be the last day on which it holds, such'),
    (changed(("ignores", 0, "until"), "2027-02-30"), 'such as 2027-01-31, not "2027-02-30"'),
    (changed(("ignores", 0, "until"), "20270131"), 'such as 2027-01-31, not "20270131"'),
    (changed(("ignores", 0, "until"), "2027-01-31\n"), r'such as 2027-01-31, not "2027-01-31\n"'),
    (changed(("ignores", 0, "until"), 2027), "such as 2027-01-31, not 2027"),
]  # fmt: skip


class TestReading:
    def test_the_first_update_makes_a_file_that_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(
            NoBaselineError, match=r"there is no baseline .*b\.json; the same command with --update makes it"
        ):
            load(tmp_path / "b.json")

    @pytest.mark.parametrize(("change", "said"), WRONG, ids=[said for _, said in WRONG])
    def test_what_makes_no_sense_is_one_line_with_its_place(
        self, tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
    ) -> None:
        document = as_json(tmp_path)
        change(document)
        path = tmp_path / "b.json"
        path.write_text(json.dumps(document))
        with pytest.raises(ConfigError) as caught:
            load(path)
        message = str(caught.value)
        assert message.startswith(f"{path}: ")
        assert said in message
        assert message.isprintable()

    @pytest.mark.parametrize(("change", "said"), WRONG, ids=[said for _, said in WRONG])
    def test_the_schema_refuses_it_as_well(
        self, tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
    ) -> None:
        document = as_json(tmp_path)
        VALIDATOR.validate(document)
        change(document)
        checking = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
        assert not checking.is_valid(document)

    @pytest.mark.parametrize("what", ["marks", "sessions"])
    def test_what_stands_twice_is_told(self, tmp_path: Path, what: str) -> None:
        """Both sides of a merge, say: adding them up would let more through than either."""
        document = as_json(tmp_path)
        document[what].append(document[what][0] | {"source": "elsewhere"})
        (tmp_path / "b.json").write_text(json.dumps(document))
        with pytest.raises(ConfigError, match=rf"{what}\[2\] is {what}\[0\] once more; delete one of them"):
            load(tmp_path / "b.json")

    @pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> feature", "||||||| base"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_a_merge_conflict_is_named_with_its_line(self, tmp_path: Path, marker: str, end: str) -> None:
        lines = json.dumps(as_json(tmp_path), indent=2).splitlines()
        lines.insert(4, marker)
        (tmp_path / "b.json").write_bytes(end.join(lines).encode())
        with pytest.raises(ConfigError, match="line 5 is the marker of a merge conflict; settle it"):
            load(tmp_path / "b.json")

    def test_a_file_that_breaks_off_is_one_line_wherever_it_does(self, tmp_path: Path) -> None:
        write(some(), tmp_path / "b.json")
        whole = (tmp_path / "b.json").read_bytes().rstrip()
        for length in range(1, len(whole)):
            (tmp_path / "b.json").write_bytes(whole[:length])
            with pytest.raises(ConfigError, match=r"line \d+(: the file breaks off|, column \d+: not valid JSON)"):
                load(tmp_path / "b.json")

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"", "empty; restore it"),
            (b"\0\0\0\n", "empty; restore it"),
            (b"\xff", "byte 1 is no UTF-8"),
            (b"{\n  oops\n}", "line 2, column 3: not valid JSON"),
            (b"[]", "holds an array; a baseline is an object"),
            (b"[" * 100_000, "this is no baseline"),
            (b'{"schema": ' + b"9" * 5000 + b"}", "this is no baseline"),
        ],
    )  # fmt: skip
    def test_what_is_no_baseline_is_one_line(self, tmp_path: Path, data: bytes, said: str) -> None:
        (tmp_path / "b.json").write_bytes(data)
        with pytest.raises(ConfigError) as caught:
            load(tmp_path / "b.json")
        assert said in str(caught.value)

    def test_a_folder_or_a_name_that_is_none_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"cannot read the baseline .*: Is a directory"):
            load(tmp_path)
        with pytest.raises(ConfigError, match=r"cannot read the baseline a\\x00b: no valid path"):
            load("a\0b")

    def test_a_mark_at_the_start_of_the_file_does_not_hurt(self, tmp_path: Path) -> None:
        write(some(), tmp_path / "b.json")
        (tmp_path / "b.json").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "b.json").read_bytes())
        assert load(tmp_path / "b.json") == some()


class TestSchema:
    def test_it_is_one_and_describes_every_field(self) -> None:
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        for name, definition in [("baseline", SCHEMA), *SCHEMA["$defs"].items()]:
            assert definition["description"], name
            for field, described in definition.get("properties", {}).items():
                assert described.get("description") or "$ref" in described, f"{name}.{field}"

    def test_it_lists_every_kind_level_and_detector_that_counts(self) -> None:
        fields = SCHEMA["$defs"]["mark"]["properties"]
        assert set(fields["kind"]["enum"]) == set(Kind) - {Kind.GUARD_ARMED}
        assert set(fields["level"]["enum"]) == set(Level)
        assert set(fields["detector"]["enum"]) == set(Detector)
