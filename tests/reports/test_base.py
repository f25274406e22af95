"""Formats are found by name, and files appear complete or not at all."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loopscan.errors import UsageError
from loopscan.report import Report
from loopscan.reports import Options, Target, base, load, names, parse_target, prepare, write_all
from tests.reports import samples


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def write_to(path: str, format_: str = "json", **options: Any) -> None:
    write_all(samples.one_warning(), prepare([Target(format_, path)]), Options(**options))


def plug_in(monkeypatch: pytest.MonkeyPatch, load_it: Callable[[], object]) -> None:
    entry = SimpleNamespace(value="package.module", load=load_it)
    monkeypatch.setattr(base, "_entry_points", lambda: {"mine": entry})


class TestFormats:
    def test_every_format_has_the_same_signature(self) -> None:
        for name in names():
            reporter = load(name)
            assert isinstance(reporter.BINARY, bool)
            assert callable(reporter.write)

    def test_an_unknown_one_names_the_nearest(self) -> None:
        with pytest.raises(UsageError, match='no format "jsn"; did you mean json'):
            load("jsn")
        with pytest.raises(UsageError, match=r'no format "\\x1b"; known: text, json, jsonl'):
            load("\x1b")

    def test_other_packages_add_formats(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def write(report: Report, out: Any, options: Options) -> None:
            out.write(f"{report.version} {options.verbose}")

        plug_in(monkeypatch, lambda: SimpleNamespace(BINARY=False, write=write))
        assert names()[-1] == "mine"
        out = io.StringIO()
        write_all(samples.one_warning(), prepare([Target("mine")]), Options(verbose=True), stdout=out)
        assert out.getvalue() == "0.1.0 True"

    def test_a_broken_package_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> object:
            raise RuntimeError("\x1b[31mno")

        plug_in(monkeypatch, fail)
        with pytest.raises(UsageError, match=r"cannot be loaded: RuntimeError: \\x1b\[31mno"):
            load("mine")
        plug_in(monkeypatch, lambda: object())
        with pytest.raises(UsageError, match=r"package.module has no write\(\)"):
            load("mine")

    def test_importing_the_formats_loads_nothing_heavy(self) -> None:
        code = (
            "import sys, loopscan.reports, loopscan.reports.base as b; [b.load(n) for n in b.FORMATS];"
            "print([m for m in ('rich', 'polars', 'jinja2') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n"


class TestTargets:
    def test_format_and_file(self) -> None:
        assert parse_target("json=a=b.json") == Target("json", "a=b.json")
        assert parse_target("json=-") == Target("json", "-")

    @pytest.mark.parametrize("text", ["", "json", "json=", "=file", "\x1b"])
    def test_anything_else_is_wrong(self, text: str) -> None:
        with pytest.raises(UsageError, match="is no FORMAT=FILE"):
            parse_target(text)

    def test_what_cannot_be_written_is_found_out_first(self, tmp_path: Path) -> None:
        file = str(tmp_path / "report.json")
        with pytest.raises(UsageError, match=r"the folder .*nowhere does not exist"):
            prepare([Target("json", str(tmp_path / "nowhere" / "report.json"))])
        with pytest.raises(UsageError, match="is a folder"):
            prepare([Target("json", str(tmp_path))])
        with pytest.raises(UsageError, match="more than one report"):
            prepare([Target("json", file), Target("text", str(tmp_path / "." / "report.json"))])
        with pytest.raises(UsageError, match="standard output is named for more than one"):
            prepare([Target("json"), Target("text")])


class TestFiles:
    def test_several_at_once(self, tmp_path: Path) -> None:
        out = io.StringIO()
        targets = [
            Target("text"),
            Target("json", str(tmp_path / "a.json")),
            Target("jsonl", str(tmp_path / "b.jsonl")),
        ]
        write_all(samples.one_warning(), prepare(targets), Options(), stdout=out)
        assert out.getvalue().startswith("loopscan 0.1.0")
        assert (tmp_path / "a.json").read_bytes().endswith(b"}\n")
        assert (tmp_path / "b.jsonl").read_bytes().count(b"\n") == 1

    def test_text_in_a_file_is_utf8_and_plain(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        write_to(str(tmp_path / "report.txt"), "text")
        text = (tmp_path / "report.txt").read_bytes().decode()
        assert "×10" in text
        assert "\x1b" not in text
        assert "\r" not in text

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_a_report_that_fails_leaves_what_was_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
    ) -> None:
        def write(report: Report, out: Any, options: Options) -> None:
            out.write(b"half")
            raise error

        plug_in(monkeypatch, lambda: SimpleNamespace(BINARY=True, write=write))
        file = tmp_path / "report"
        file.write_text("before")
        for path in (file, tmp_path / "new"):
            with pytest.raises(error):
                write_to(str(path), "mine")
        assert [entry.name for entry in tmp_path.iterdir()] == ["report"]
        assert file.read_text() == "before"

    def test_permissions_are_those_of_a_new_file_or_of_the_old_one(self, tmp_path: Path) -> None:
        new, old = tmp_path / "new", tmp_path / "old"
        old.touch(mode=0o640)
        old.chmod(0o640)
        other = tmp_path / "other"
        other.touch()
        write_to(str(new))
        write_to(str(old))
        assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
        assert stat.S_IMODE(old.stat().st_mode) == 0o640

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "file")
        write_to(str(tmp_path / "link"))
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_bytes().startswith(b"{")

    def test_a_device_is_written_to_not_replaced(self) -> None:
        write_to(os.devnull)
        assert not Path(os.devnull).is_file()

    def test_a_file_that_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", full)
        with pytest.raises(UsageError, match=r"cannot write .*report.json: No space left on device"):
            write_to(str(tmp_path / "report.json"))
        assert not list(tmp_path.iterdir())


class TestStandardOutput:
    def test_formats_for_machines_are_utf8_whatever_the_terminal_takes(self) -> None:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii")
        write_all(samples.hostile(), prepare([Target("json")]), Options(), stdout=out)
        assert "שלום" in raw.getvalue().decode()

    def test_a_text_stream_without_bytes_below_it(self) -> None:
        out = io.StringIO()
        write_all(samples.one_warning(), prepare([Target("jsonl")]), Options(), stdout=out)
        assert out.getvalue().startswith('{"source":')

    def test_a_byte_stream(self) -> None:
        raw = io.BytesIO()
        write_all(samples.one_warning(), prepare([Target("text")]), Options(), stdout=raw)
        assert raw.getvalue().decode().startswith("loopscan 0.1.0")

    def test_a_closed_pipe_is_left_to_the_caller(self) -> None:
        class Closed(io.StringIO):
            def write(self, _: str) -> int:
                raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            write_all(samples.one_warning(), prepare([Target("text")]), Options(), stdout=Closed())
