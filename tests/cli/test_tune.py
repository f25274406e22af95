"""``loopscan tune``: exit codes, streams, files, and one line for whatever makes no sense."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import json5
import pytest
from typer.testing import CliRunner, Result

from loopscan.cli.main import app
from loopscan.errors import LoopscanError
from loopscan.tuning import sweep
from tests.test_replayer import USAGE
from tests.transcripts.build import Transcript, call

FEW = (
    *("criticalThreshold=6,10", "globalCircuitBreakerThreshold=30", "warningThreshold=5", "unknownToolThreshold=10"),
    *("historySize=30", "detectors.genericRepeat=true", "detectors.knownPollNoProgress=true"),
    "detectors.pingPong=true",
)
#: Few settings, so that tests are fast.
NIGHTS = Path(__file__).parents[2] / "fixtures" / "tuning" / "nights.parquet"
SMALL = tuple(part for each in FEW for part in ("--try", each))
LOOSE = ("--max-false-block", "20%", "--confidence", "90%", "--holdout", "0")


def transcript(session: str, calls: int = 14, *, productive: bool = False) -> bytes:
    """Return a session that hangs until it is aborted, or that gets on in the end."""
    made = Transcript(session=session)
    made.user()
    for number in range(calls):
        made.asks(call(f"c{number}"), usage=USAGE, model="some-model")
        made.result(f"c{number}", "the same")
    if productive:
        made.asks(call("last"), usage=USAGE, model="some-model")
        made.result("last", "at last")
        made.says(usage=USAGE)
    else:
        made.says("", stop="aborted", usage=USAGE)
    return made.bytes()


def invoke(*arguments: str | Path) -> Result:
    """Run the command in this process; an error that the user is told of counts with its exit code."""
    result = CliRunner().invoke(app, ["tune", *map(str, arguments)])
    if isinstance(result.exception, LoopscanError):
        result.exit_code = result.exception.exit_code
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    command = [sys.executable, "-m", "loopscan", "tune", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, env=environment
    )


def told(*arguments: str | Path) -> dict[str, Any]:
    """Return the JSON report."""
    result = invoke(*arguments, *SMALL, "--ruleset", "2026.6", "--no-config", "--format", "json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with 15 sessions that hang."""
    made = tmp_path / "sessions"
    made.mkdir()
    for number in range(15):
        (made / f"{number:02}.jsonl").write_bytes(transcript(f"s{number:02}"))
    return made


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Return a folder with one session that hangs and one that gets on."""
    made = tmp_path / "pair"
    made.mkdir()
    (made / "a.jsonl").write_bytes(transcript("a"))
    (made / "b.jsonl").write_bytes(transcript("b", 8, productive=True))
    return made


def test_a_report_goes_to_standard_output_and_nothing_else_does(pair: Path) -> None:
    done = run(pair, *SMALL, "--ruleset", "2026.6", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "loopscan.tune/1"
    assert document["whole"]["incidents"] == {"stuck": 1, "productive": 1, "unknown": 0}


def test_that_nothing_can_be_recommended_is_no_failure(pair: Path) -> None:
    assert told(pair)["whole"]["chosen"]["verdict"] == "too_few_sessions"


def test_where_there_is_no_session_the_exit_code_is_3(tmp_path: Path) -> None:
    result = invoke(tmp_path, "--format", "json")
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1
    assert "error: " in result.stderr
    allowed = invoke(tmp_path, "--format", "json", "--allow-empty")
    assert (allowed.exit_code, json.loads(allowed.stdout)["whole"]["sessions"]) == (0, 0)


def test_what_cannot_be_read_exits_with_3_and_the_rest_is_told(pair: Path, tmp_path: Path) -> None:
    arguments = (pair, tmp_path / "gone.jsonl", tmp_path / "gone.parquet", "--format", "json", *SMALL)
    result = invoke(*arguments)
    assert result.exit_code == 3
    assert [line for line in result.stderr.splitlines() if "gone.jsonl" in line]
    assert [line for line in result.stderr.splitlines() if "gone.parquet: No such file or directory" in line]
    assert json.loads(result.stdout)["whole"]["sessions"] == 2
    assert invoke(*arguments, "--skip-errors").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name transcripts, folders or profiles to tune by"),
        (
            ("x", "--max-false-block", "5"),
            "--max-false-block must be a rate such as 5% or 0.05, from 0.0001% to 99.9999%",
        ),
        (("x", "--max-false-block", "0"), "--max-false-block must be a rate"),
        (("x", "--max-false-block", "nan"), "--max-false-block must be a rate"),
        (("x", "--confidence", "100%"), "--confidence must be a rate"),
        (("x", "--holdout", "1"), "--holdout must be a share such as 0.3, 0 for none, or agent"),
        (("x", "--holdout", "-1%"), "--holdout must be a share"),
        (("x", "--holdout", "nan"), "--holdout must be a share"),
        (("x", "--cost-ratio", "-1"), "--cost-ratio must be a number of missed sessions, from 0 to 1000000"),
        (("x", "--cost-ratio", "nan"), "--cost-ratio must be a number of missed sessions, from 0 to 1000000"),
        (("x", "--try", "criticalThreshold"), "--try must be NAME=VALUES, such as"),
        (("x", "--try", "critical=5"), "--try: there is no field 'critical'; "),
        (("x", "--labels", "gone.csv"), "--labels gone.csv: No such file or directory"),
        (("x", "--prices", "gone.csv"), "--prices gone.csv: No such file or directory"),
        (("x", "--export-incidents", "out.txt"), "--export-incidents out.txt: the name must end in"),
        (("x", "--profiles-out", "out.csv"), "--profiles-out out.csv: the name must end in .parquet"),
        (("x", "--format", "sarif"), 'there is no format "sarif"'),
        (("x", "--ruleset", "1"), "there is no ruleset '1'"),
    ],
)
def test_wrong_options_exit_with_2_and_one_line(arguments: Sequence[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    text = str(result.exception) if isinstance(result.exception, LoopscanError) else result.stderr
    assert message in text
    assert "\n" not in text.strip()
    assert result.stdout == ""


def test_the_rules_of_labelling_are_listed_without_any_input() -> None:
    result = invoke("--explain-labels")
    assert result.exit_code == 0
    head, *rules = result.stdout.splitlines()
    assert head.startswith("A loop is labelled from the call on at which a setting would step in")
    assert len(rules) == 14
    assert rules[0].split()[:2] == ["unknown", "live_engine_stepped_in"]


def same(document: dict[str, Any]) -> dict[str, Any]:
    """Return what does not say where sessions were read from, or that they came from profiles."""
    return {name: value for name, value in document.items() if name not in {"sources", "notes"}}


def test_profiles_of_several_files_come_to_what_one_run_comes_to(folder: Path, tmp_path: Path) -> None:
    older, newer, both = (tmp_path / f"{name}.parquet" for name in ("older", "newer", "both"))
    files = sorted(folder.iterdir())
    told(*files[:8], "--profiles-out", older)
    told(*files[8:], "--profiles-out", newer)
    whole = told(*files, "--profiles-out", both)
    assert same(told(older, newer)) == same(told(both)) == same(whole)
    assert same(told(*files[:8], newer)) == same(whole)
    arguments = (*SMALL, "--ruleset", "2026.6", "--format", "json")
    one, other = (invoke(*paths, *arguments) for paths in ((older, newer), (both,)))
    assert one.stdout == other.stdout


def test_profiles_of_other_options_exit_with_2(pair: Path, tmp_path: Path) -> None:
    told(pair, "--profiles-out", tmp_path / "p.parquet")
    result = invoke(tmp_path / "p.parquet", "--ruleset", "latest", "--format", "json")
    assert result.exit_code == 2
    assert "the profiles are of ruleset 2026.6, scope run, arm auto: say the same with" in str(result.exception)


def test_files_of_profiles_that_were_not_made_alike_exit_with_2(pair: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "p.parquet", tmp_path / "q.parquet"
    told(pair / "a.jsonl", "--profiles-out", first)
    told(pair / "b.jsonl", "--scope", "session", "--profiles-out", second)
    assert invoke(first, second, "--ruleset", "2026.6").exit_code == 2


def test_a_damaged_file_of_profiles_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1")
    result = invoke(tmp_path / "p.parquet", "--format", "json")
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert "p.parquet: is no complete file of profiles; make it with loopscan tune --profiles-out" in line


def test_incidents_are_exported_labelled_and_given_back(pair: Path, tmp_path: Path) -> None:
    path = tmp_path / "incidents.jsonl"
    told(pair, "--export-incidents", path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["incident"], row["rule_label"]) for row in rows] == [("a/0/0", "stuck"), ("b/0/0", "productive")]
    path.write_text("".join(json.dumps({**row, "label": "stuck"}) + "\n" for row in rows))
    document = told(pair, "--labels", path)
    assert document["whole"]["incidents"] == {"stuck": 2, "productive": 0, "unknown": 0}
    assert document["agreement"]["given"] == 2
    assert document["agreement"]["table"]["productive"]["stuck"] == 1


def test_prices_are_for_what_has_no_cost_on_record(tmp_path: Path) -> None:
    priced = transcript("a").replace(b'"cost": {"total": 0.25}', b'"cost": {}')
    (tmp_path / "a.jsonl").write_bytes(priced)
    (tmp_path / "prices.json").write_text('{"some": {"input": 1000000, "output": 0}}')
    arguments = (tmp_path / "a.jsonl", *SMALL, "--ruleset", "2026.6", "--format", "json")
    document = json.loads(invoke(*arguments, "--prices", tmp_path / "prices.json").stdout)
    saved = max(each["figures"]["saved"]["cost_usd"] for each in document["whole"]["candidates"])
    # Blocked at the seventh call, which is paid for already; 7 responses of 90 tokens follow.
    assert saved == 7 * 90
    assert document["priced"] == "as recorded, else by the prices given"
    plain = json.loads(invoke(*arguments).stdout)
    assert max(each["figures"]["saved"]["cost_usd"] for each in plain["whole"]["candidates"]) == 0


def test_the_number_of_processes_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "_AT_ONCE", 4)
    arguments = (folder, *SMALL, *LOOSE, "--ruleset", "2026.6", "--format", "json")
    one, two = invoke(*arguments), invoke(*arguments, "--jobs", "2")
    assert (one.exit_code, two.exit_code) == (0, 0)
    assert one.stdout == two.stdout


def test_what_is_recommended_is_merged_into_a_configuration_whose_comments_stay(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text("{\n  // mine\n  tools: { loopDetection: { enabled: true, warningThreshold: 5 } },\n}\n")
    arguments = (folder, *SMALL, *LOOSE, "--ruleset", "2026.6", "--config", config, "--format", "json")
    result = invoke(*arguments, "--write", config)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["whole"]["chosen"]["verdict"] == "recommended"
    assert document["whole"]["chosen"]["candidate"]["changes"]["criticalThreshold"] == 6
    written = config.read_text()
    assert "// mine" in written
    assert json5.loads(written)["tools"]["loopDetection"]["criticalThreshold"] == 6
    assert json5.loads(written)["tools"]["loopDetection"]["warningThreshold"] == 5
    assert "+" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("openclaw.json is written")
    again = invoke(*arguments, "--write", config)
    assert again.exit_code == 0
    assert config.read_text() == written


def test_where_nothing_is_recommended_the_configuration_stays(pair: Path, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text("{}")
    result = invoke(pair, *SMALL, "--ruleset", "2026.6", "--format", "json", "--write", config)
    assert result.exit_code == 0
    assert config.read_text() == "{}"
    assert "stays as it is: nothing is recommended to be changed" in result.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"tools": {"$include": "x.json"}}'])
def test_a_configuration_that_cannot_be_merged_into_is_told_of_and_stays(
    folder: Path, tmp_path: Path, text: str
) -> None:
    config = tmp_path / "mine.json"
    config.write_text(text)
    arguments = (folder / "00.jsonl", *SMALL, "--ruleset", "2026.6", "--format", "json", "--cost-ratio", "1")
    result = invoke(*arguments, "--holdout", "0", "--write", config)
    assert result.exit_code == 2
    assert "mine.json" in str(result.exception)
    assert config.read_text() == text


def test_a_configuration_that_is_not_there_becomes_one(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "new.json"
    arguments = (folder / "00.jsonl", *SMALL, "--ruleset", "2026.6", "--format", "json", "--cost-ratio", "1")
    result = invoke(*arguments, "--holdout", "0", "--write", config)
    assert result.exit_code == 0
    assert json5.loads(config.read_text())["tools"]["loopDetection"]["criticalThreshold"] == 6


def test_an_interrupted_run_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    pipe, out = tmp_path / "slow.jsonl", tmp_path / "p.parquet"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "loopscan", "tune", str(pipe), "--profiles-out", str(out), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with pipe.open("wb"):  # opens once the command reads
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert (process.returncode, stdout) == (130, "")
    assert "interrupted after 0 sources; nothing was tuned" in stderr
    assert not out.exists()


def test_a_folder_and_its_own_profiles_count_once(folder: Path, tmp_path: Path) -> None:
    profiles = tmp_path / "p.parquet"
    alone = told(folder, "--profiles-out", profiles)
    both = told(folder, profiles)
    assert both["whole"] == alone["whole"]
    assert any("left out: in the sources or other profiles, too" in note for note in both["notes"])


def test_what_is_written_to_is_what_is_in_force(pair: Path, tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text('{"tools": {"loopDetection": {"enabled": true, "criticalThreshold": 33}}}')
    arguments = (pair, *SMALL, "--ruleset", "2026.6", "--format", "json")
    inside = json.loads(invoke(*arguments, "--write", config).stdout)["whole"]["in_force"]
    assert inside["setting"]["criticalThreshold"] == 33


def test_agents_with_a_block_of_their_own_are_told_of(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text(
        '{"agents": {"list": [{"id": "builder", "tools": {"loopDetection": {"criticalThreshold": 12}}}]},'
        ' "tools": {"loopDetection": {"enabled": true}}}'
    )
    document = told_with(config)
    assert any(note.startswith("agent builder has a block of its own") for note in document["notes"])


def told_with(config: Path) -> dict[str, Any]:
    """Return what is told of the nights that the documentation tunes by, under a configuration."""
    result = invoke(NIGHTS, *SMALL, "--config", config, "--format", "json")
    assert result.exit_code == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_profiles_say_which_ruleset_they_are_of() -> None:
    result = invoke(NIGHTS, *SMALL, "--format", "json")
    assert json.loads(result.stdout)["ruleset"] == "2026.6"


def test_labels_that_mean_nothing_here_are_told_of(pair: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("session,label\nnobody,stuck\n")
    result = invoke(pair, *SMALL, "--ruleset", "2026.6", "--quiet", "--labels", labels)
    assert "1 line of --labels means no incident of five calls or more that is here" in result.stderr
