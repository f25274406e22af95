"""``loopscan check``: exit codes, what goes where, and reports that are valid."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from lxml import etree
from typer.testing import CliRunner

from loopscan.cli.main import app
from loopscan.cli.schema import SCHEMAS, load
from loopscan.errors import LoopscanError
from tests.checks.files import CLEAN, FIXTURES, LOOP, put
from tests.reports import test_junit, test_sarif

MEETS = "ruleset: 2026.9\nexpect: {outcomes: {outcome: run_end}}\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / ".git").mkdir()


def run(*args: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run ``loopscan check`` and return the exit code, standard output and standard error."""
    made = CliRunner().invoke(app, ["check", *args], env=env)
    if isinstance(made.exception, LoopscanError):  # the entry point says it in one line
        return made.exception.exit_code, made.stdout, f"{made.stderr}loopscan: error: {made.exception}\n"
    if made.exception is not None and not isinstance(made.exception, SystemExit):
        raise made.exception
    return made.exit_code, made.stdout, made.stderr


def test_the_folder_is_checked_by_default(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS)
    assert run() == (0, "1 check: 1 passed\n", "")
    assert run("-v")[1].startswith("PASSED  a.jsonl [2026.9]  a.expect.yaml:1\n")


def test_a_failure_says_what_where_and_why(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="ruleset: 2026.9\nexpect: {at_most: [{kind: block, times: 1}]}")
    code, out, err = run("a.jsonl")
    assert (code, err) == (1, "")
    assert out.splitlines()[:7] == [
        "FAILED  a.jsonl [2026.9]  a.expect.yaml:1",
        "  at_most: 2 marks instead of 1",
        "    expected  at most 1: block",
        "    found     2; the first beyond is block generic_repeat · count 21 · threshold 20 · read · run 0, batch"
        " 21, call 21 · 1 blocked",
        "    at        a.jsonl:48",
        "    why       read was called 21 times with the same arguments and the same outcome; from 20 on the engine"
        " blocks",
        "",
    ]
    assert out.endswith("\n1 check: 1 failed\n")


def test_what_is_wrong_goes_to_standard_error_a_line_each(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="exect: {}", b_jsonl=LOOP, b_expect_yaml=MEETS)
    code, out, err = run(".", "gone")
    assert code == 2
    assert err.splitlines() == [
        'loopscan: error: a.expect.yaml:1:1: unknown key "exect"; did you mean "expect"?',
        "loopscan: error: gone: no such file or folder",
        "loopscan: 1 transcript has no expectation; --strict makes that a failure",
    ]
    assert out.splitlines()[0] == "ERROR  a.expect.yaml [expectations]"
    assert out.splitlines()[-1] == "2 checks: 1 passed, 1 error"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["gone"], 3),
        (["gone", "--skip-errors"], 3),  # nothing was checked
        (["."], 3),
        ([".", "--allow-empty"], 0),
        (["a.jsonl"], 1),
        (["--strict"], 1),
        (["--only", "x"], 1),
        (["--ruleset", "2027"], 2),
        (["--set", "warnThreshold=2"], 2),
        (["--set", "warningThreshold=1.5"], 2),
        (["--set", "warningThreshold=null"], 2),
        (["--max-warnings", "-1"], 2),
        (["--max-warnings", "1"], 2),
        (["--baseline", "b.json", "--max-warnings", "1"], 2),
        (["--baseline", "b.json"], 2),
        (["--benign", ""], 2),
        ([""], 3),
        (["--baseline", "b.json", "--only", "x"], 2),
        (["--format", "csv"], 2),
        (["--job-summary"], 2),
    ],
)
def test_the_exit_code(args: list[str], code: int, tmp_path: Path) -> None:
    if {"a.jsonl", "--strict", "--only", "--set"} & set(args):
        put(tmp_path, a_jsonl=LOOP)
    if {"--only", "--set"} & set(args):
        put(tmp_path, a_expect_yaml=MEETS)
    found, _, err = run(*args)
    assert found == code
    assert "Traceback" not in err


@pytest.mark.parametrize(("value", "code"), [("true", 2), ("1", 2), ("yes", 2), ("", 0), ("false", 0), ("0", 0)])
def test_update_is_refused_in_ci(value: str, code: int, tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP)
    found, _, err = run("a.jsonl", "--update", env={"CI": value})
    assert found == code
    assert (tmp_path / "a.expect.yaml").exists() == (code == 0)
    assert ("refused in CI" in err) == (code == 2)


def test_update_shows_what_it_changed(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=CLEAN)
    code, out, err = run("a.jsonl", "--update", "--ruleset", "2026.9")
    assert (code, err) == (0, "loopscan: wrote a.expect.yaml\n")
    assert '+ruleset: "2026.9"' in out.splitlines()
    assert run() == (0, "1 check: 1 passed\n", "")


def test_benign_folders_from_the_command_line(tmp_path: Path) -> None:
    put(tmp_path, good__a_jsonl=CLEAN, bad__b_jsonl=LOOP)
    assert run("--benign", "good")[:2] == (0, "2 checks: 2 passed\n")
    code, out, _ = run("--benign", "bad", "--max-warnings", "5", "--ruleset", "2026.9")
    assert code == 1
    assert "false alarm on a benign session: block generic_repeat" in out


def test_a_baseline_lets_known_marks_pass_and_new_ones_fail(tmp_path: Path) -> None:
    put(tmp_path, logs__a_jsonl=LOOP)
    code, out, err = run("--baseline", "b.json", "--update", "logs")
    assert (code, err) == (0, "loopscan: wrote b.json\n")
    assert "the baseline knows 4 marks of 1 session with 26 calls" in out
    assert run("--baseline", "b.json", "logs")[0] == 0
    put(tmp_path, logs__c_jsonl=FIXTURES / "detectors" / "export-poll.jsonl")
    code, out, _ = run("--baseline", "b.json", "logs")
    assert code == 1
    assert "● block known_poll_no_progress" in out
    assert "baseline: 4 new marks, 4 in the baseline\n" in out
    (tmp_path / "logs" / "a.jsonl").unlink()
    code, out, err = run("--baseline", "b.json", "--update", "logs")
    assert code == 0
    assert "4 marks taken in" in out
    assert "4 marks dropped" in out


def test_a_baseline_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path, logs__a_jsonl=LOOP)
    os.mkfifo(tmp_path / "b.json")
    code, _, err = run("--baseline", "b.json", "logs")
    assert (code, err) == (2, "loopscan: error: cannot read the baseline b.json: not a regular file\n")


def test_a_baseline_that_is_not_rewritten_is_said(tmp_path: Path) -> None:
    put(tmp_path, logs__a_jsonl=LOOP)
    run("--baseline", "b.json", "--update", "logs")
    code, out, _ = run("--baseline", "b.json", "--update", "logs", "gone")
    assert code == 3
    assert "updated: not written, since not everything could be read\n" in out


def test_what_is_wrong_with_options_names_them_as_they_are_written(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS)
    assert "--max-warnings is about" in run("--baseline", "b.json", "--max-warnings", "1")[2]
    _, _, err = run("--set", "warningThreshold=1.5", "--set", "criticalThreshold=null")
    assert err == (
        "loopscan: error: --set warningThreshold, criticalThreshold: must be true, false or a whole number here\n"
    )


def test_one_reason_of_many_checks_is_said_once(tmp_path: Path) -> None:
    for name in "abc":
        put(tmp_path, **{f"{name}_jsonl": LOOP, f"{name}_expect_yaml": "config: gone.json\nexpect: {none: true}"})
    code, _, err = run("-q")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert err.endswith("(and so for 2 more checks)\n")


def test_only_that_meets_no_benign_folder_is_said(tmp_path: Path) -> None:
    put(tmp_path, good__a_jsonl=CLEAN)
    code, _, err = run("--benign", "good", "--only", "zzz")
    assert code == 1
    assert "none of 1 checks meets --only zzz" in err


def test_a_baseline_is_not_met_by_nothing(tmp_path: Path) -> None:
    put(tmp_path, logs__a_jsonl=LOOP)
    run("--baseline", "b.json", "--update", "logs")
    (tmp_path / "logs" / "a.jsonl").unlink()
    assert run("--baseline", "b.json", "logs", "--allow-empty")[0] == 1
    assert run("--baseline", "b.json", "logs")[0] == 1
    assert run("--baseline", "new.json", "gone", "--update", "--skip-errors")[0] == 3
    assert not (tmp_path / "new.json").exists()


def test_an_update_from_nothing_is_held_against_the_baseline(tmp_path: Path) -> None:
    put(tmp_path, logs__a_jsonl=LOOP)
    run("--baseline", "b.json", "--update", "logs")
    (tmp_path / "logs" / "a.jsonl").unlink()
    code, out, _ = run("--baseline", "b.json", "--update", "logs", "--allow-empty")
    assert code == 1
    assert "updated: not written, since no session was found\n" in out


@pytest.mark.parametrize("name", ["text", "markdown", "tap", "junit"])
def test_no_line_is_a_command_of_a_runner(name: str, tmp_path: Path) -> None:
    (tmp_path / "::error::q.expect.yaml").write_text("foo: 1")
    (tmp_path / "::warning::##[error]p.jsonl").write_text("{")
    (tmp_path / "::warning::##[error]p.expect.yaml").write_text("expect: {none: true}")
    _, out, err = run("--format", name)
    for line in (out + err).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line or name != "text"


def test_a_baseline_is_not_written_from_what_could_not_be_read(tmp_path: Path) -> None:
    put(tmp_path, logs__a_jsonl=LOOP)
    code, out, err = run("--baseline", "b.json", "--update", "logs", "gone")
    assert code == 3
    assert not (tmp_path / "b.json").exists()
    assert "not written" in out
    assert "gone: no such file or folder" in err
    assert run("--baseline", "b.json", "--update", "logs", "gone", "--skip-errors")[0] == 0


def test_every_format_says_which_checks_failed(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}", b_jsonl=LOOP, b_expect_yaml=MEETS)
    put(tmp_path, c_jsonl=LOOP, c_expect_yaml="skip: later\nexpect: {none: true}")
    summary = tmp_path / "summary.md"
    formats = ("json", "junit", "sarif", "gitlab", "tap", "markdown", "github", "text")
    outputs = [word for name in formats for word in ("-o", f"{name}={name}.out")]
    code, _, _ = run(*outputs, "--job-summary", env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert code == 1
    said = {name: (tmp_path / f"{name}.out").read_text(encoding="utf-8") for name in formats}
    data = json.loads(said["json"])
    jsonschema.validate(data, load("check"))
    assert data["totals"] == {"checks": 3, "passed": 1, "failed": 1, "error": 0, "skipped": 1}
    test_junit.schema().assertValid(etree.fromstring(said["junit"].encode()))
    test_sarif.validator().validate(json.loads(said["sarif"]))
    suite = ElementTree.fromstring(said["junit"])
    cases = {
        (case.get("classname"), case.get("name")): [child.tag for child in case] for case in suite.iter("testcase")
    }
    assert sorted(len(tags) for tags in cases.values()) == [0, 1, 1]
    (result, *_) = json.loads(said["sarif"])["runs"][0]["results"]
    assert result["ruleId"] == "unexpected_mark"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a.jsonl"
    assert json.loads(said["gitlab"])[0]["location"]["path"] == "a.jsonl"
    assert said["github"].startswith("::error file=a.jsonl,line=")
    assert "# SKIP later" in said["tap"]
    assert "not ok 1" in said["tap"]
    assert "a.jsonl" in said["markdown"]
    assert summary.read_text(encoding="utf-8") == said["markdown"]
    assert said["text"].startswith("FAILED  a.jsonl [latest]")


def test_the_json_of_a_damaged_transcript_follows_the_schema(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP.read_text(encoding="utf-8") + "{broken\n", a_expect_yaml=MEETS)
    code, out, _ = run("--format", "json")
    data = json.loads(out)
    jsonschema.validate(data, load("check"))
    assert (code, data["checks"][0]["counts"]["problems"]) == (0, 1)


def test_nothing_of_a_hostile_transcript_is_printed_raw(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=FIXTURES / "hostile" / "escapes.jsonl", a_expect_yaml="expect: {none: true}")
    for name in ("text", "json", "junit", "sarif", "gitlab", "tap", "markdown", "github"):
        code, out, err = run("--format", name)
        assert code == 1
        assert not set("\x1b\x07\x9b\u202e") & set(out + err)
        assert all(not line.startswith("::") or name == "github" for line in out.splitlines())


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_every_schema_is_printed_and_valid(name: str) -> None:
    made = CliRunner().invoke(app, ["schema", name])
    assert made.exit_code == 0
    schema = json.loads(made.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"].startswith("urn:loopscan:")


def test_a_schema_that_does_not_exist_is_said() -> None:
    made = CliRunner().invoke(app, ["schema", "expct"])
    assert "did you mean expect?" in str(made.exception)
