"""``ci/gitlab.yml``: its script is run as GitLab runs it, and leaves the reports that it promises."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.pages import shown_file
from tests.scripts import BIN, ROOT, check_schema, checkout, run, sessions

TEMPLATE = ROOT / "ci" / "gitlab.yml"
WHO = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
JOB = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))["loopscan"]


def carry_out(folder: Path, part: str = "script", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a part of the job in ``folder``, in the plainest of shells."""
    script = folder.parent / "script.sh"
    script.write_text("\n".join(JOB[part]), encoding="utf-8")
    return run(
        ["sh", "-e", str(script)], folder, CI="true", CI_PROJECT_DIR=str(folder), **JOB["variables"] | variables
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which loopscan is installed already."""
    installed = tmp_path / "project" / ".loopscan" / "bin"
    installed.mkdir(parents=True)
    (installed / "loopscan").symlink_to(BIN / "loopscan")
    return tmp_path / "project"


def test_it_follows_the_schema_and_so_does_the_example(tmp_path: Path) -> None:
    check_schema("vendor.gitlab-ci", TEMPLATE)
    example = tmp_path / "example.yml"
    example.write_text(shown_file(".gitlab-ci.yml"), encoding="utf-8")
    check_schema("vendor.gitlab-ci", example)


def test_the_example_sets_variables_that_there_are() -> None:
    assert set(yaml.safe_load(shown_file(".gitlab-ci.yml"))["loopscan"]["variables"]) <= set(JOB["variables"])


def test_sessions_that_meet_their_expectations_pass(project: Path) -> None:
    sessions(project / "sessions", right=True)
    done = carry_out(project)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 check: 1 passed" in done.stdout


def test_sessions_that_do_not_fail_and_the_reports_say_so(project: Path) -> None:
    sessions(project / "night sessions", right=False)
    sessions(project / "other", right=False)
    done = carry_out(project, LOOPSCAN_PATHS="night sessions", LOOPSCAN_ARGS="--ruleset\n2026.9\n")
    assert done.returncode == 1
    assert "first: the first mark is another one" in done.stdout
    reports = {name: project / file for name, file in JOB["artifacts"]["reports"].items()}
    assert len(list(ElementTree.parse(reports["junit"]).iter("failure"))) == 1
    assert len(json.loads(reports["codequality"].read_bytes())) == 1


@pytest.mark.parametrize(
    "text", ["$(touch pwned)", "`touch pwned`", '"; touch pwned; "', "END\ntouch pwned\n", "; touch pwned #"]
)
def test_no_variable_is_run(text: str, project: Path) -> None:
    done = carry_out(project, LOOPSCAN_PATHS=text, LOOPSCAN_ARGS=text)
    assert done.returncode == 3
    assert not list(project.rglob("pwned"))


def test_a_path_is_never_an_option(project: Path) -> None:
    done = carry_out(project, LOOPSCAN_PATHS="--help")
    assert done.returncode == 3
    assert "--help: no such file or folder" in done.stderr


def test_nothing_is_installed_that_nobody_named(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    done = carry_out(tmp_path / "project", "before_script")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("loopscan: set LOOPSCAN_PACKAGE to what pip is to install, such as git+https://")
    assert not any((tmp_path / "project").iterdir())


def test_the_image_has_git_for_a_package_of_a_repository() -> None:
    assert shown_file(".gitlab-ci.yml").count("LOOPSCAN_PACKAGE: git+https://") == 1
    # The image of this name without a suffix is made from one with git; those called slim and alpine are not.
    assert re.fullmatch(r"python:3\.\d+", JOB["image"])


@pytest.mark.install
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_it_installs_the_package_that_is_named(tmp_path: Path, registry: None) -> None:
    """A repository, as in the job that is shown; the tests of the action install from a folder."""
    (tmp_path / "project").mkdir()
    package = checkout(tmp_path / "loopscan")
    for arguments in (["init", "--quiet"], ["add", "."], [*WHO, "commit", "--quiet", "--message=all"]):
        made = run(["git", *arguments], tmp_path / "loopscan")
        assert made.returncode == 0, made.stderr
    assert run(["git", "tag", "v0.1.0"], tmp_path / "loopscan").returncode == 0
    package_of_tag = f"git+file://{package}@v0.1.0"
    installed = carry_out(tmp_path / "project", "before_script", LOOPSCAN_PACKAGE=package_of_tag)
    assert installed.returncode == 0, installed.stderr
    sessions(tmp_path / "project", right=True)
    done = carry_out(tmp_path / "project")
    assert "1 check: 1 passed" in done.stdout
