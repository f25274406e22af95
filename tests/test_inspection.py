"""An inspection counts what the transcripts hold, and judges nothing."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import loopscan
from loopscan.errors import UsageError
from loopscan.inspection import Inspection, inspect
from loopscan.reports import Options
from loopscan.reports.inspection import write
from tests.transcripts.build import Transcript, call

USAGE = {"input": 90, "output": 10, "cacheRead": 5, "cacheWrite": 1, "totalTokens": 106, "cost": {"total": 0.25}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = Transcript(session="one")
    made.entry("thinking_level_change", thinkingLevel="high")
    made.user()
    made.asks(call("c1"), call("c2", "exec"), usage=USAGE, model="some-model")
    made.result("c1")
    made.result("c2", "bad", error=True)
    made.compaction()
    made.says(usage=USAGE, model="some-model")
    made.raw(b"{broken\n")
    made.user()
    made.asks(call("c3"))
    path = tmp_path / "agents" / "main" / "sessions" / "one.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(made.bytes())
    return path


def text(inspection: Inspection, **options: bool) -> str:
    out = io.StringIO()
    write(inspection, out, Options(**options))
    return out.getvalue()


def test_everything_is_counted(path: Path) -> None:
    inspection = inspect(path)
    found = inspection.to_dict()
    assert found["schema"] == "loopscan.inspect/1"
    (session,) = found["sessions"]
    assert (session["session"], session["agent"], session["runs"]) == ("one", "main", 2)
    assert session["tools"] == {"read": 2, "exec": 1}
    assert session["fates"] == {"ran": 2, "lost": 1}
    assert (session["errors"], session["responses"], session["models"]) == (1, 3, {"some-model": 2})
    assert session["compactions"] == {"in_run": 1, "all": 1}
    assert session["usage"]["tokens"] == 212
    assert session["usage"]["cost_usd"] == 0.5
    (source,) = found["sources"]
    assert source["used"] == {"compaction": 1, "message": 7, "session": 1}
    assert source["unused"] == {"thinking_level_change": 1}
    assert [problem["kind"] for problem in source["problems"]] == ["malformed-json"]
    assert found["totals"]["calls"] == found["formats"]["openclaw-jsonl"]["calls"] == 3
    assert found["problems"] == 1


def test_the_text_shows_it_all(path: Path) -> None:
    shown = text(inspect(path.parents[3]), verbose=True)
    for words in ("main 1", "2 runs with 3 model responses", "3 calls, 1 without an outcome, 1 with an error"):
        assert words in shown
    for words in ("read 2, exec 1", "1 time, 1 within a run", "$0.50", "thinking_level_change 1", "Session one"):
        assert words in shown
    assert "malformed-json" in shown
    assert "Session one" not in text(inspect(path))
    assert shown.startswith("Found\n"), "no empty line before it"


def test_the_number_of_processes_changes_nothing(path: Path) -> None:
    for number in range(3):
        path.with_name(f"{number}.jsonl").write_bytes(path.read_bytes())
    one = inspect(path.parent).to_dict()
    assert inspect(path.parent, jobs=3).to_dict() == one
    assert one["totals"]["sessions"] == 1, "four copies of one session are one session"
    with pytest.raises(UsageError):
        inspect(path, jobs=0)


def test_the_command_says_what_could_not_be_read_and_exits_with_3(path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "loopscan",
        "inspect",
        str(path),
        str(path.with_name("gone")),
        "--format",
        "json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "gone: no such file or folder" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert json.loads(ran.stdout)["totals"]["calls"] == 3
    ran = subprocess.run([*command, "--skip-errors", "--quiet"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0


def test_the_json_is_valid_against_the_published_schema(path: Path) -> None:
    schema = json.loads((Path(loopscan.__file__).parent / "schemas" / "inspect-1.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for where in (path.parent, Path(__file__).parents[1] / "fixtures"):
        jsonschema.validate(inspect(where).to_dict(), schema)


def test_hostile_names_are_shown_and_nothing_more(tmp_path: Path) -> None:
    made = Transcript(session="s\x1b[2J")
    made.user()
    made.asks(call("c", "\x1b]0;x\x07\u202e"), model="m\x1b[31m")
    path = tmp_path / "s.jsonl"
    path.write_bytes(made.bytes())
    shown = text(inspect(path), verbose=True)
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
