"""The command: exit codes, streams, several outputs, and nothing printed raw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from loopscan.reports.base import FORMATS
from tests.test_replayer import looping
from tests.transcripts.build import Transcript, call

SECRET = "sk-test-0123456789abcdefghijABCDEFGHIJ"
HOSTILE = "\x1b[31mred\x1b[0m \u202egnp.exe\u202c [bold red]markup[/] <script>alert(1)</script> \x07\x9b2J\r\n"


def run(*arguments: str | Path, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "loopscan", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
    )


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "loop.jsonl"
    path.write_bytes(looping(30).bytes())
    return path


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "clean.jsonl"
    path.write_bytes(looping(3, session="clean").bytes())
    return path


def test_a_report_goes_to_standard_output_and_nothing_else_does(loop: Path) -> None:
    done = run("replay", loop, "--ruleset", "2026.9")
    assert (done.returncode, done.stderr) == (0, "")
    assert "generic_repeat" in done.stdout


@pytest.mark.parametrize(
    ("fail_on", "looping_code", "clean_code"), [("never", 0, 0), ("warning", 1, 0), ("block", 1, 0), ("end", 1, 0)]
)
def test_findings_exit_with_1_if_asked(
    loop: Path, clean: Path, fail_on: str, looping_code: int, clean_code: int
) -> None:
    assert run("replay", loop, "--ruleset", "2026.9", "--fail-on", fail_on).returncode == looping_code
    assert run("replay", clean, "--ruleset", "2026.9", "--fail-on", fail_on).returncode == clean_code


def test_fail_on_counts_what_is_at_or_above(loop: Path, tmp_path: Path) -> None:
    warned = tmp_path / "warned.jsonl"
    warned.write_bytes(looping(12, session="warned").bytes())
    assert run("replay", warned, "--ruleset", "2026.9", "--fail-on", "warning").returncode == 1
    assert run("replay", warned, "--ruleset", "2026.9", "--fail-on", "block").returncode == 0
    # 2026.6 blocks and never ends a run
    assert run("replay", loop, "--ruleset", "2026.6", "--fail-on", "block").returncode == 1
    assert run("replay", loop, "--ruleset", "2026.6", "--fail-on", "end").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--ruleset", "1999.1"),
        ("--set", "warningTreshold=8"),
        ("--set", "warningThreshold"),
        ("--mode", "maybe"),
        ("--format", "yaml"),
        ("-o", "json"),
        ("-o", "json=no/such/folder/report.json"),
        ("--config", "not there.json"),
        ("--nonsense",),
    ],
)
def test_wrong_usage_exits_with_2_and_one_clear_line(loop: Path, arguments: tuple[str, ...]) -> None:
    done = run("replay", loop, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_a_misspelt_field_names_the_nearest_known_one(loop: Path) -> None:
    done = run("replay", loop, "--set", "warningTreshold=8")
    assert "warningThreshold" in done.stderr
    assert done.stderr.count("\n") == 1


def test_unreadable_input_exits_with_3_and_everything_else_is_processed(loop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("hello")
    arguments = ("replay", tmp_path / "gone", other, loop, "--ruleset", "2026.9", "--format", "json")
    done = run(*arguments)
    assert done.returncode == 3
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["loopscan", "loopscan"]
    assert "gone" in done.stderr
    report = json.loads(done.stdout)
    assert report["totals"]["marks"]["block"] == 2
    assert [source["format"] for source in report["sources"]] == ["unreadable", "unreadable", "openclaw-jsonl"]
    assert run(*arguments, "--skip-errors").returncode == 0
    assert run(*arguments, "--skip-errors", "--fail-on", "block").returncode == 1


def test_every_format_can_be_asked_for_and_says_what_fails(loop: Path, clean: Path, tmp_path: Path) -> None:
    outputs = [f"--output={name}={tmp_path / name}" for name in FORMATS]
    done = run("replay", loop, clean, tmp_path / "gone", "--ruleset", "2026.9", "--fail-on", "block", *outputs)
    assert done.returncode == 3
    junit = ElementTree.parse(tmp_path / "junit").getroot()
    assert [junit.get(count) for count in ("tests", "failures", "errors")] == ["3", "1", "1"]
    tap = (tmp_path / "tap").read_text("utf-8")
    assert [line[:8] for line in tap.splitlines() if "ok " in line[:7]] == [
        "not ok 1",
        "ok 2 - " + str(clean)[0],
        "not ok 3",
    ]
    (sarif,) = json.loads((tmp_path / "sarif").read_text("utf-8"))["runs"]
    assert [result["level"] for result in sarif["results"]] == ["warning", "error", "error", "error", "error"]
    for name in FORMATS:
        again = run(
            "replay", loop, clean, tmp_path / "gone", "--ruleset", "2026.9", "--fail-on", "block", "--format", name
        )
        if name != "text":
            assert again.stdout == (tmp_path / name).read_text("utf-8")


def test_a_report_in_utf_8_whatever_the_locale(loop: Path) -> None:
    for name in ("tap", "markdown", "github"):
        done = run("replay", loop, "--ruleset", "2026.9", "--format", name, PYTHONUTF8="0", LC_ALL="C")
        assert done.returncode == 0, done.stderr
        assert ("×10" in done.stdout) is (name != "github")


def test_a_name_that_no_file_can_have_is_unreadable_input(clean: Path) -> None:
    done = run("replay", "a" * 300, clean)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "1 session" in done.stdout
    assert run("replay", clean, "-o", f"json={'a' * 300}").returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors as a shell does")
@pytest.mark.parametrize(("closed", "code"), [("1>&-", 2), ("2>&-", 3)])
def test_a_closed_stream_does_not_change_what_an_exit_code_means(tmp_path: Path, closed: str, code: int) -> None:
    command = f'"{sys.executable}" -m loopscan replay "{tmp_path}/gone" {closed}'
    assert subprocess.run(command, shell=True, capture_output=True, check=False).returncode == code


def test_no_transcript_exits_with_3_unless_allowed(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run("replay", empty)
    assert done.returncode == 3
    assert "no transcript found" in done.stderr
    assert run("replay", empty, "--allow-empty").returncode == 0


def test_several_reports_at_once(loop: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    lines = tmp_path / "marks.jsonl"
    done = run("replay", loop, "--ruleset", "2026.9", "-o", f"json={target}", "-o", f"jsonl={lines}")
    assert "generic_repeat" in done.stdout
    assert json.loads(target.read_text())["schema"] == "loopscan.replay/1"
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["warning", "block", "block", "run_end"]
    assert {row["source"] for row in rows} == {str(loop)}
    again = tmp_path / "again.json"
    run("replay", loop, "--ruleset", "2026.9", "-o", f"json={again}", "--quiet")
    assert again.read_bytes() == target.read_bytes()


def test_what_silences_the_detectors_is_said_where_nobody_reads_the_text(loop: Path, tmp_path: Path) -> None:
    off = tmp_path / "off.json"
    off.write_text("{ tools: { loopDetection: { enabled: false } } }")
    for options in (("--format", "json"), ("--fail-on", "warning")):
        done = run("replay", loop, "--config", off, *options)
        assert done.returncode == 0
        assert done.stderr.startswith("loopscan: detectors are silenced: ")
    assert run("replay", loop, "--config", off).stderr == ""


def test_a_failure_says_what_it_is_about(loop: Path) -> None:
    done = run("replay", loop, "--ruleset", "2026.9", "--fail-on", "block", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "loopscan: 3 marks at or above --fail-on block\n")


def test_no_transcript_says_what_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    done = run("replay", tmp_path)
    assert "2 files skipped: " in done.stderr
    assert "of no known format" in done.stderr


def test_two_reports_for_standard_output_are_refused(loop: Path) -> None:
    assert run("replay", loop, "--format", "json", "-o", "jsonl=-").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_full_disk_is_no_fault_of_ours(loop: Path, format_: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "loopscan", "replay", str(loop), "--format", format_]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left" in done.stderr
    assert run("replay", loop, "-o", "json=/dev/full").returncode == 2


@pytest.mark.skipif(not Path("/dev/stderr").exists(), reason="needs /dev/stderr")
def test_a_report_can_go_to_a_pipe(loop: Path) -> None:
    done = run("replay", loop, "-o", "jsonl=/dev/stderr", "--ruleset", "2026.9")
    assert len(done.stderr.splitlines()) == 4


def test_a_quiet_run_still_writes_whole_reports(loop: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    run("replay", loop, "--quiet", "-o", f"text={target}", "--ruleset", "2026.9")
    assert "Session s1" in target.read_text(encoding="utf-8")


def test_an_output_named_for_standard_output_takes_the_place_of_the_text(loop: Path) -> None:
    assert json.loads(run("replay", loop, "-o", "json=-").stdout)["totals"]["sessions"] == 1


def test_quiet_prints_the_summary_alone_and_verbose_every_session(loop: Path, clean: Path) -> None:
    quiet = run("replay", loop, clean, "--quiet", "--ruleset", "2026.9").stdout
    usual = run("replay", loop, clean, "--ruleset", "2026.9").stdout
    verbose = run("replay", loop, clean, "--verbose", "--ruleset", "2026.9").stdout
    assert "Session s1" not in quiet
    assert "Session s1" in usual
    assert "Sessions without marks" not in usual
    assert "Sessions without marks\nclean " in verbose


def hostile(folder: Path) -> Path:
    made = Transcript(session=f"s {HOSTILE}")
    made.user(HOSTILE)
    for number in range(25):
        made.asks(
            call(f"c{number} {HOSTILE}", f"read {HOSTILE}", api_key=SECRET, query=f"token={SECRET}", path=HOSTILE)
        )
        made.result(f"c{number} {HOSTILE}", HOSTILE, tool=f"read {HOSTILE}")
    made.raw(b'{"type":"message", broken \x1b[2J ' + SECRET.encode() + b"\n")
    path = folder / "bad\x1b[31m \u202e[bold]name.jsonl"
    path.write_bytes(made.bytes() + b'{"half')
    return path


@pytest.mark.parametrize(
    ("format_", "options"),
    [*((format_, ()) for format_ in FORMATS), *(("text", (option,)) for option in ("--no-previews", "--verbose"))],
)
def test_nothing_of_a_transcript_is_printed_raw(tmp_path: Path, format_: str, options: tuple[str, ...]) -> None:
    done = run("replay", hostile(tmp_path), "--format", format_, "--ruleset", "2026.9", *options)
    assert done.returncode == 0
    for stream in (done.stdout, done.stderr):
        assert not [char for char in stream if char != "\n" and (not char.isprintable() or char in "\u202e\u202c")]
        assert SECRET not in stream
    if format_ == "text":
        assert "[bold red]markup[/]" in done.stdout  # shown, not obeyed


def test_errors_do_not_print_raw_either(tmp_path: Path) -> None:
    done = run("replay", tmp_path / "gone\x1b[31m\u202e\n[bold]")
    assert done.returncode == 3
    assert all(char.isprintable() or char == "\n" for char in done.stderr)


def test_previews_are_masked_or_left_out(tmp_path: Path) -> None:
    path = hostile(tmp_path)
    assert "api_key" in run("replay", path, "--ruleset", "2026.9").stdout
    assert "api_key" not in run("replay", path, "--ruleset", "2026.9", "--no-previews").stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    made = Transcript()
    for prompt in range(400):
        made.user(f"prompt {prompt}")
        for number in range(12):
            made.asks(call(f"c{prompt}_{number}"))
            made.result(f"c{prompt}_{number}", "the same")
    path = tmp_path / "long.jsonl"
    path.write_bytes(made.bytes())
    command = [sys.executable, "-m", "loopscan", "replay", str(path), "--ruleset", "2026.9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_an_interrupted_run_exits_with_130_and_says_how_far_it_got(
    loop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    import loopscan.replayer
    from loopscan.cli.main import app

    def interrupted(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loopscan.replayer, "carry_out", interrupted)
    done = CliRunner().invoke(app, ["replay", str(loop)])
    assert done.exit_code == 130
    assert "interrupted after 0 sources" in done.stderr


def test_an_unforeseen_fault_is_one_line_and_debug_shows_the_traceback(loop: Path) -> None:
    patch = "import sys, loopscan.report; loopscan.report.Report.count = lambda self: 1 / 0; "
    script = patch + "from loopscan.cli.main import run; sys.argv[0] = 'loopscan'; run()"
    command = [sys.executable, "-c", script, "replay", str(loop)]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stderr.count("\n")) == (70, 1)
    assert "--debug" in plain.stderr
    shown = subprocess.run([*command, "--debug"], capture_output=True, text=True, check=False)
    assert "Traceback" in shown.stderr
