"""The command line as a whole: version, help, and what is not loaded for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import loopscan


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "loopscan", *arguments], capture_output=True, text=True, check=False)


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"loopscan {loopscan.__version__}\n")


@pytest.mark.parametrize("arguments", [("--help",), ("replay", "--help"), ("config", "show", "--help")])
def test_help(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage" in done.stdout


def test_no_arguments_print_the_help_and_exit_with_2() -> None:
    assert run().returncode == 2


def test_an_unknown_command_exits_with_2() -> None:
    done = run("reply")
    assert done.returncode == 2
    assert "reply" in done.stderr


def test_help_loads_nothing_heavy() -> None:
    heavy = (
        "polars",
        "rich.progress",
        "rich.table",
        "json5",
        "orjson",
        "xxhash",
        "loopscan.engine",
        "loopscan.report",
    )
    script = f"import sys, loopscan.cli.main; print([m for m in sys.modules if m.startswith({heavy!r})])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
