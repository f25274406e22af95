"""``docs/checking.md`` is true: whoever follows it from top to bottom, in one folder, sees what it shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from loopscan.checks.schema import CHECKS, EXPECT, ChecksFile, ExpectFile, json_schema
from tests.pages import CHECKING, Block, blocks, sections
from tests.scripts import BIN, ROOT, run

PAGE = CHECKING.read_text(encoding="utf-8")


class Reader:
    """Somebody who does what the page says, in a shell that keeps its working folder."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self._notes = at.with_name(f"{at.name}.pwd")
        path = run(["sh", "-c", "echo $PATH"], at).stdout.strip()
        self._environment = {"PATH": f"{BIN}:{path}", "NOTES": str(self._notes)}

    def follow(self, block: Block) -> None:
        """Run the commands of a console, or write a file."""
        if block.language == "console":
            for command, lines in block.commands():
                self._prints(command, lines)
        else:
            assert block.file is not None, "name the file in a first line, so that it is written and used"
            file = self.at / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")

    def _prints(self, command: str, lines: list[str]) -> None:
        """Assert that a command prints these lines, or such as begin so, in this order; nothing if none is shown."""
        done = run(["sh", "-c", f'{{ {command}\n}} 2>&1; pwd > "$NOTES"'], self.at, **self._environment)
        self.at = Path(self._notes.read_text(encoding="utf-8").strip())
        assert lines or not done.stdout, f"{command}: prints\n{done.stdout}"
        printed = iter(done.stdout.splitlines())
        for line in lines:
            assert any(each.startswith(line) for each in printed), (
                f"{command}: {line!r} is not in, or not in order:\n{done.stdout}"
            )


def test_it_can_be_followed_from_top_to_bottom_in_one_folder(tmp_path: Path) -> None:
    copy = tmp_path / "loopscan"
    copy.mkdir()
    (copy / "fixtures").symlink_to(ROOT / "fixtures")
    reader = Reader(copy)
    for block in blocks(PAGE):
        reader.follow(block)
    assert reader.at == tmp_path / "loops"


def test_the_line_for_editors_leads_to_the_schema(tmp_path: Path) -> None:
    prints, uses = (block for block in blocks(PAGE) if "expect.schema.json" in block.text)
    reader = Reader(tmp_path)
    reader.follow(prints)
    reader.follow(uses)
    assert uses.file is not None
    expectation = tmp_path / uses.file
    (named,) = re.findall(r"^# yaml-language-server: \$schema=(.*)$", uses.text, re.MULTILINE)
    check = [str(BIN / "check-jsonschema"), "--schemafile", str(expectation.parent / named), str(expectation)]
    assert run(check, tmp_path).returncode == 0
    expectation.write_text(uses.text.replace("first:", "frist:"), encoding="utf-8")
    assert run(check, tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("beside", "name", "expectation"),
    [
        ([], "x.jsonl", "x.expect.yaml"),
        ([], "x.jsonl.deleted.2026-10-05T08-12-03.000Z", "x.jsonl.deleted.2026-10-05T08-12-03.000Z.expect.yaml"),
        (["x.jsonl.deleted.2026-10-05T08-12-03.000Z"], "x.jsonl", "x.jsonl.expect.yaml"),
    ],
)
def test_copies_have_expectations_of_their_whole_name(
    beside: list[str], name: str, expectation: str, tmp_path: Path
) -> None:
    for each in (*beside, name):
        shutil.copy(ROOT / "fixtures" / "detectors" / "two-files.jsonl", tmp_path / each)
    done = run([str(BIN / "loopscan"), "check", name, "--update"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert {each.name for each in tmp_path.glob("*.expect.yaml")} == {expectation}
    assert run([str(BIN / "loopscan"), "check", name], tmp_path).stdout == "1 check: 1 passed\n"


def test_placeholders_are_explained_before_they_are_used() -> None:
    introduction, *examples = sections(CHECKING)["Hooks and CI"].split("\n### ")
    assert len(examples) == 3
    for placeholder in ("git.example/loopscan/loopscan", "`loopscan/loopscan`", "v0.1.0"):
        assert placeholder in introduction
        before, _, _ = PAGE.partition(introduction)
        assert placeholder.strip("`") not in before
    for example in examples:
        (block,) = blocks(example)
        assert len(block.text.splitlines()) <= 11, "the name of the file and ten lines"


def test_every_key_of_the_schemas_is_explained() -> None:
    keys: set[str] = set()
    for schema in (json_schema(ExpectFile, EXPECT), json_schema(ChecksFile, CHECKS)):
        for part in (schema, *schema["$defs"].values()):
            keys |= part.get("properties", {}).keys()
    assert len(keys) > 40
    for key in sorted(keys):
        assert f"`{key}`" in PAGE or f"{key}:" in PAGE, key


def test_the_heading_for_baselines_is_there() -> None:
    assert "Logs that are not clean yet" in sections(CHECKING)
