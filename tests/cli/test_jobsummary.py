"""``--job-summary``: appended to what is there, within what GitHub takes, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscan.cli.jobsummary import VARIABLE, append_summary, summary_file
from loopscan.errors import UsageError
from loopscan.failing import FailOn
from loopscan.findings import Status
from loopscan.reports import Options
from loopscan.reports.markdown import LIMIT
from tests.cli.test_replay import run
from tests.reports import samples
from tests.reports.subjects import Checked, case, findings
from tests.test_replayer import looping


def test_it_is_appended_and_says_what_fails(tmp_path: Path) -> None:
    transcript, file = tmp_path / "loop.jsonl", tmp_path / "summary.md"
    transcript.write_bytes(looping(30).bytes())
    file.write_text("# before\n")
    done = run(
        "replay",
        transcript,
        "--ruleset",
        "2026.9",
        "--fail-on",
        "end",
        "--job-summary",
        "-q",
        **{VARIABLE: str(file)},
    )
    assert done.returncode == 1
    assert "## loopscan" not in done.stdout
    text = file.read_text("utf-8")
    assert text.startswith("# before\n")
    assert "## loopscan replay: 1 of 1 case failed\n" in text


def test_without_the_variable_it_is_wrong_usage_before_anything_is_read(tmp_path: Path) -> None:
    done = run("replay", tmp_path / "gone", "--job-summary", **{VARIABLE: ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert VARIABLE in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_file_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "new.md"))
    append_summary(samples.one_warning(), summary_file(), Options(fail_on=FailOn.WARNING))
    assert (tmp_path / "new.md").read_text("utf-8").startswith("## loopscan replay: 1 of 1 case failed\n")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UsageError, match=VARIABLE):
        summary_file()


def test_a_file_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"cannot write the file that {VARIABLE} names: "):
        append_summary(samples.one_warning(), tmp_path, Options())


def test_what_is_there_already_counts_towards_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * (LIMIT - 20_000) + b"\n\n")
    many = findings(*(case(str(at), Status.FAILED, text="x" * 1000) for at in range(100)))
    append_summary(Checked(many), file, Options())
    assert LIMIT - 3000 < file.stat().st_size <= LIMIT
    assert "left out" in file.read_text("utf-8")


def test_a_summary_that_is_full_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "summary.md"
    file.write_bytes(b"x" * LIMIT)
    append_summary(samples.one_warning(), file, Options())
    assert file.stat().st_size == LIMIT
    assert "the job summary is full" in capsys.readouterr().err
