"""The pre-commit hook: it runs when something changes that a check may rest on, from a clone of this repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.pages import shown_file
from tests.scripts import BIN, ROOT, checkout, run, sessions

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
(HOOK,) = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Project:
    """A repository that uses the hook, from a clone of ``origin``."""

    def __init__(self, folder: Path, origin: Path, *, language: str | None) -> None:
        self.folder = folder
        folder.mkdir()
        self._home = folder.parent / "home"
        for repository in (origin, folder):
            self.git("init", "--quiet", "--initial-branch=main", at=repository)
        self.git("add", ".", at=origin)
        self.git("commit", "--quiet", "--message=all", at=origin)
        hook: dict[str, object] = {"id": HOOK["id"], "args": ["sessions"]}
        if language is not None:
            hook["language"] = language
        revision = self.git("rev-parse", "HEAD", at=origin).strip()
        config = {"repos": [{"repo": str(origin), "rev": revision, "hooks": [hook]}]}
        (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
        done = run(["git", *who, *arguments], at or self.folder, HOME=str(self._home))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self) -> subprocess.CompletedProcess[str]:
        """Run the hooks on all that changed, and commit it without asking them again."""
        self.git("add", ".")
        done = self.pre_commit("run")
        self.git("commit", "--quiet", "--message=some")
        return done

    def pre_commit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(
            [sys.executable, "-m", "pre_commit", *arguments, "--color=never"],
            self.folder,
            HOME=str(self._home),
            PRE_COMMIT_HOME=str(self._home / "cache"),
            PATH=f"{BIN}:{run(['sh', '-c', 'echo $PATH'], self.folder).stdout.strip()}",
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose hook runs the loopscan that is installed here."""
    origin = tmp_path / "loopscan"
    origin.mkdir()
    shutil.copy(MANIFEST, origin)
    return Project(tmp_path / "project", origin, language="system")


@needs_git
def test_it_passes_fails_and_is_skipped_as_what_changed_asks_for(project: Project) -> None:
    sessions(project.folder / "sessions", right=True)
    passed = project.commit()
    assert passed.returncode == 0
    assert re.search(r"loopscan check\.+Passed", passed.stdout)

    (project.folder / "notes.md").write_text("nothing of ours", encoding="utf-8")
    skipped = project.commit()
    assert re.search(r"loopscan check\.+\(no files to check\)Skipped", skipped.stdout)

    sessions(project.folder / "sessions", right=False)
    failed = project.commit()
    assert failed.returncode == 1
    assert re.search(r"loopscan check\.+Failed", failed.stdout)
    assert "first: the first mark is another one" in failed.stdout


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("sessions/a.jsonl", True),
        ("sessions/a.expect.yaml", True),
        ("sessions/a.expect.yml", True),
        ("sessions/a.expect.json", True),
        ("loopscan.checks.yaml", True),
        ("openclaw.json", True),
        ("night.tar.gz", True),
        ("a.jsonl.zst", True),
        ("agents/clerk/agent/openclaw-agent.sqlite", True),
        ("run.traj", True),
        ("gateway.log", True),
        ("a.jsonl.reset.2026-10-05T08-12-03.000Z", True),
        ("README.md", False),
        ("src/a.py", False),
        ("a.jsonl.py", False),
        ("jsonl", False),
    ],
)
def test_it_runs_for_what_a_check_may_rest_on(name: str, runs: bool) -> None:
    assert bool(re.search(HOOK["files"], name)) == runs


def test_the_manifest_and_the_example_are_valid(tmp_path: Path) -> None:
    example = tmp_path / ".pre-commit-config.yaml"
    example.write_text(shown_file(".pre-commit-config.yaml"), encoding="utf-8")
    for what, file in (("validate-manifest", MANIFEST), ("validate-config", example)):
        done = run([sys.executable, "-m", "pre_commit", what, str(file)], tmp_path)
        assert done.returncode == 0, done.stdout
    (repository,) = yaml.safe_load(example.read_text(encoding="utf-8"))["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == [HOOK["id"]]


@needs_git
@pytest.mark.install
def test_it_installs_itself_from_a_clone(tmp_path: Path, registry: None) -> None:
    project = Project(tmp_path / "project", checkout(tmp_path / "loopscan"), language=None)
    sessions(project.folder / "sessions", right=False)
    failed = project.commit()
    assert failed.returncode == 1
    assert "first: the first mark is another one" in failed.stdout
    sessions(project.folder / "sessions", right=True)
    assert project.commit().returncode == 0
