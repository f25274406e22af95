"""The README is true: its commands run as printed and print what it shows, and its files exist."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "fixtures" / "README.md"]


def examples() -> list[tuple[str, list[str]]]:
    """Return each command of the README's console blocks, with the lines shown of its output."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            found.append((command, lines))
    return found


@pytest.mark.parametrize(("command", "lines"), examples(), ids=lambda value: str(value)[:60])
def test_a_command_prints_what_the_readme_shows(command: str, lines: list[str]) -> None:
    program, *arguments = shlex.split(command)
    assert program == "loopscan"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "loopscan", *arguments],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    printed = iter(done.stdout.splitlines())
    for line in lines:
        assert any(each.startswith(line) for each in printed), f"not printed, or not in this order: {line}"


def test_the_library_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "warning" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def words(picture: str) -> list[str]:
    """Return the text of an SVG of a terminal, whatever pieces it was drawn in."""
    return html.unescape("".join(re.findall(r">([^<>]*)</text>", picture))).split()


def test_the_picture_is_the_real_output() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    import picture

    kept = (ROOT / "docs" / "replay.svg").read_text(encoding="utf-8")
    assert words(picture.draw()) == words(kept), "run: python tools/picture.py"
    assert "generic_repeat" in words(kept)
