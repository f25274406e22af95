"""numpy and scipy are loaded by loopscan.tuning alone."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded(program: str) -> set[str]:
    """Return which of the two a program has loaded in a fresh interpreter."""
    listing = "\nimport sys\nprint('loaded:', *sorted({'numpy', 'scipy'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", program + listing], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "program",
    [
        "import loopscan",
        "import loopscan.tuning",
        "import loopscan.testing",
        "import loopscan.cli.main",
        "from typer.testing import CliRunner\n"
        "from loopscan.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0",
    ],
)
def test_what_does_not_tune_loads_neither(program: str) -> None:
    assert loaded(program) == set()


def test_what_tunes_loads_both() -> None:
    assert loaded("import loopscan.tuning.intervals") == {"numpy", "scipy"}
