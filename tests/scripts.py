"""Scripts of CI, run as CI runs them: in a shell of its own, with nothing but the environment that it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Where the commands of this environment lie.
BIN = Path(sys.executable).parent
#: What an installation needs of a checkout.
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "loopscan", ".pre-commit-hooks.yaml")


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; it is killed if it takes minutes."""
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", **environment}
    for name, value in os.environ.items():
        if name.startswith("PIP_"):
            given.setdefault(name, value)
    return subprocess.run(
        command, cwd=folder, env=given, capture_output=True, encoding="utf-8", timeout=240, check=False
    )


def check_schema(schema: str, file: Path) -> None:
    """Assert that a file follows a schema that check-jsonschema ships."""
    done = run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)], file.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def checkout(folder: Path) -> Path:
    """Copy what an installation needs into ``folder``, and return that."""
    folder.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def transcripts(name: str, folder: Path) -> None:
    """Copy a folder of the fixtures without what is said of them there."""
    shutil.copytree(
        ROOT / "fixtures" / name, folder, ignore=shutil.ignore_patterns("*.expect.*", "loopscan.checks.*")
    )


def sessions(folder: Path, *, right: bool) -> None:
    """Write a transcript and an expectation that it meets, or does not."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "fixtures" / "detectors" / "read-notes.jsonl", folder / "notes.jsonl")
    count = 10 if right else 11
    (folder / "notes.expect.yaml").write_text(
        f"ruleset: '2026.9'\nexpect:\n  first: {{kind: warning, count: {count}}}\n", encoding="utf-8"
    )
