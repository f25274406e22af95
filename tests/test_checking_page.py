"""``docs/checking.md`` is true: the files of each section are written, and its commands print what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscan.checks.schema import _ALL_KEYS, Settings
from tests.pages import CHECKING, blocks, sections
from tests.scripts import BIN, run, transcripts

SECTIONS = sections(CHECKING)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the page speaks of."""
    transcripts("detectors", tmp_path / "sessions")
    transcripts("clean", tmp_path / "clean")
    return tmp_path


@pytest.mark.parametrize("heading", [heading for heading, text in SECTIONS.items() if "```console" in text])
def test_a_section_runs_as_it_is_shown(heading: str, folder: Path) -> None:
    for block in blocks(SECTIONS[heading]):
        if block.language == "console":
            for command, lines in block.commands():
                prints(command, lines, folder)
        else:
            assert block.file is not None, "name the file in a first line, so that it is written and used"
            (folder / block.file).parent.mkdir(exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")


def prints(command: str, lines: list[str], folder: Path) -> None:
    """Assert that a command prints these lines, or lines that begin so, in this order."""
    path = f"{BIN}:{run(['sh', '-c', 'echo $PATH'], folder).stdout.strip()}"
    done = run(["sh", "-c", f"{{ {command}\n}} 2>&1"], folder, PATH=path)
    printed = iter(done.stdout.splitlines())
    for line in lines:
        assert any(each.startswith(line) for each in printed), f"{line!r} is not in, or not in order:\n{done.stdout}"


def test_every_key_of_the_schemas_is_explained() -> None:
    page = CHECKING.read_text(encoding="utf-8")
    for key in sorted(_ALL_KEYS | set(Settings.model_fields)):
        assert f"`{key}`" in page or f"{key}:" in page, key


def test_the_heading_for_baselines_is_there() -> None:
    assert "Logs that are not clean yet" in SECTIONS
