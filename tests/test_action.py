"""``action.yml``: its steps are run as GitHub runs them, whatever is given for inputs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.pages import shown_file
from tests.scripts import BIN, ROOT, check_schema, checkout, run, sessions

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
INSTALL, CHECK = "Install loopscan", "Check the sessions"


def carry_out(step: str, folder: Path, **values: str) -> subprocess.CompletedProcess[str]:
    """Run a step of the action in ``folder/work``, with ``values`` for what its variables are taken from."""
    (folder / "work").mkdir(exist_ok=True)
    script = folder / "step.sh"
    script.write_text(STEPS[step]["run"], encoding="utf-8")
    defaults = {f"inputs.{name}": str(what["default"]) for name, what in ACTION["inputs"].items()}
    known = {**defaults, "steps.install.outputs.command": str(BIN / "loopscan"), **values}
    own = {}
    for name, value in STEPS[step].get("env", {}).items():
        found = re.fullmatch(r"\$\{\{ (\S+) \}\}", value)
        assert found is not None, value
        own[name] = known[found[1]]
    return run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        folder / "work",
        CI="true",
        GITHUB_ACTIONS="true",
        GITHUB_ACTION_PATH=str(folder / "action"),
        GITHUB_OUTPUT=str(folder / "output"),
        GITHUB_STEP_SUMMARY=str(folder / "summary.md"),
        RUNNER_TEMP=str(folder / "temp"),
        **own,
    )


def inputs(**values: str) -> dict[str, str]:
    return {f"inputs.{name.replace('_', '-')}": value for name, value in values.items()}


def test_it_follows_the_schema_of_actions_and_the_example_that_of_workflows(tmp_path: Path) -> None:
    check_schema("vendor.github-actions", ROOT / "action.yml")
    workflow = tmp_path / "loops.yml"
    workflow.write_text(shown_file(".github/workflows/loops.yml"), encoding="utf-8")
    check_schema("vendor.github-workflows", workflow)


def test_the_example_gives_inputs_that_there_are() -> None:
    workflow = yaml.safe_load(shown_file(".github/workflows/loops.yml"))
    (uses,) = (step for job in workflow["jobs"].values() for step in job["steps"] if "loopscan" in step["uses"])
    assert set(uses["with"]) <= set(ACTION["inputs"])


def test_no_expression_stands_in_a_script_and_other_actions_are_pinned() -> None:
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")
        assert "uses" not in step or re.search(r"@[0-9a-f]{40}$", step["uses"])
    used = {
        value for step in STEPS.values() for value in (*step.get("env", {}).values(), *step.get("with", {}).values())
    }
    assert {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]} <= used


def test_sessions_that_meet_their_expectations_pass(tmp_path: Path) -> None:
    sessions(tmp_path / "work" / "sessions", right=True)
    done = carry_out(CHECK, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "loopscan check: 0 errors" in done.stdout
    assert "1 passed" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_sessions_that_do_not_fail_with_annotations_a_summary_and_sarif(tmp_path: Path) -> None:
    sessions(tmp_path / "work" / "night sessions", right=False)
    sessions(tmp_path / "work" / "other", right=False)
    done = carry_out(CHECK, tmp_path, **inputs(paths="night sessions\n", sarif="loops of.sarif", args="--verbose"))
    assert done.returncode == 1
    (annotation,) = (line for line in done.stdout.splitlines() if line.startswith("::error "))
    assert "file=night sessions/notes." in annotation
    assert "1 failed" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    sarif = json.loads((tmp_path / "work" / "loops of.sarif").read_bytes())
    assert len(sarif["runs"][0]["results"]) == 1


def test_annotations_and_the_summary_can_be_left_out(tmp_path: Path) -> None:
    sessions(tmp_path / "work", right=False)
    done = carry_out(CHECK, tmp_path, **inputs(annotations="false", job_summary="false"))
    assert done.returncode == 1
    assert "first: the first mark is another one" in done.stdout
    assert "::error" not in done.stdout
    assert not (tmp_path / "summary.md").exists()


def test_each_line_is_one_argument(tmp_path: Path) -> None:
    sessions(tmp_path / "work" / "a b", right=True)
    sessions(tmp_path / "work" / "c", right=True)
    arguments = "--ruleset\n2026.6\n\n--only\n2026.6"
    done = carry_out(CHECK, tmp_path, **inputs(paths="a b\n\nc", args=arguments, annotations="false"))
    assert done.returncode == 0
    assert "2 checks: 2 passed" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "$(touch pwned)",
        "`touch pwned`",
        '"; touch pwned; "',
        "'; touch pwned; '",
        "x\ntouch pwned\n",
        "; touch pwned #",
        "a[$(touch pwned)]",
    ],
)
def test_no_input_is_run(text: str, tmp_path: Path) -> None:
    done = carry_out(CHECK, tmp_path, **inputs(**dict.fromkeys(ACTION["inputs"], text)))
    assert done.returncode in {2, 3}
    assert not list(tmp_path.rglob("pwned"))


def test_a_path_is_never_an_option(tmp_path: Path) -> None:
    sessions(tmp_path / "work", right=True)
    done = carry_out(CHECK, tmp_path, **inputs(paths="--update\n--help", annotations="false"))
    assert done.returncode == 3
    assert "--help: no such file or folder" in done.stderr


@pytest.mark.install
def test_it_installs_loopscan_from_its_own_folder_and_checks(tmp_path: Path, registry: None) -> None:
    checkout(tmp_path / "action")
    sessions(tmp_path / "work", right=False)
    installed = carry_out(INSTALL, tmp_path)
    assert installed.returncode == 0, installed.stderr
    name, _, command = (tmp_path / "output").read_text(encoding="utf-8").strip().partition("=")
    assert name == "command"
    assert Path(command).is_relative_to(tmp_path / "temp")
    done = carry_out(CHECK, tmp_path, **{"steps.install.outputs.command": command})
    assert done.returncode == 1
    assert "::error " in done.stdout
