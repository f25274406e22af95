"""The pytest plugin: each check of an expectation file is a test, and tests get the fixture ``loopscan``.

pytest loads this module at every start, wherever loopscan is installed: it imports nothing that is not needed to see
that a file is none of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from loopscan.checks.find import Looked
    from loopscan.checks.tasks import BenignFolder, Task

#: The option in pytest's configuration.
OPTION: Final = "loopscan_collect"
#: What it may say.
CHOICES: Final = ("auto", "all", "none")
#: What is known of folders already.
_LOOKED: Final = pytest.StashKey[dict[Path, "Looked"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addini(
        OPTION,
        "which *.expect.yaml and loopscan.checks.yaml are tests: auto (those that are plainly loopscan's: see"
        " docs/checking.md), all, or none",
        default="auto",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a value of the option that is none."""
    if (value := config.getini(OPTION)) not in CHOICES:
        raise pytest.UsageError(f"{OPTION} must be one of {', '.join(CHOICES)}, not {value!r}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files of expectations, and those that count for a folder."""
    name = file_path.name
    if ".expect." not in name and not name.startswith("loopscan.checks."):
        return None
    choice = parent.config.getini(OPTION)
    if choice == "none":
        return None
    from loopscan.checks.folders import FOLDER_FILES, is_expectation

    if not is_expectation(name):
        return None
    kind = FolderChecks if name in FOLDER_FILES else Expectations
    collector: _File = kind.from_parent(parent, path=file_path)
    collector.surely = choice == "all" or parent.session.isinitpath(file_path)
    return collector


class _File(pytest.File):
    """A file with checks."""

    surely = False
    """Whether it is loopscan's whatever it says."""

    def _mistakes(self, lines: list[str]) -> Iterator[MistakesItem]:
        """Yield a test that fails by what is wrong with the file; none if there is nothing."""
        # An error of collection would keep pytest from running anything else.
        if lines:
            item: MistakesItem = MistakesItem.from_parent(self, name=_one_line(self.path.name))
            item.lines = lines
            yield item

    def _item(self, task: Task, name: str) -> CheckItem:
        item: CheckItem = CheckItem.from_parent(self, name=_one_line(name))
        item.task = task
        if task.skip is not None:
            item.add_marker(pytest.mark.skip(reason=_one_line(task.skip)))
        return item


class Expectations(_File):
    """``x.expect.yaml``: a test for each of its checks."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the checks, or one that fails by mistakes in the file, or in one that counts for its folder."""
        from loopscan.checks.find import Looked, find

        looked = self.config.stash.setdefault(_LOOKED, {}).setdefault(self.path.parent, Looked())
        found = find([str(self.path)], looked=looked)
        if not (self.surely or any(_asserts(task) for task in found.tasks) or _has_transcript(self.path)):
            return
        if wrong := [*map(str, found.mistakes), *found.missing]:
            yield from self._mistakes(wrong)
            return
        for task in found.tasks:
            yield self._item(task, task.name)


class FolderChecks(_File):
    """``loopscan.checks.yaml``: a test for each transcript that its patterns meet, and for each benign folder."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the checks that this file itself asks for, and one that fails by mistakes in it."""
        from loopscan.checks.document import read
        from loopscan.checks.find import find
        from loopscan.checks.mistakes import Mistakes
        from loopscan.checks.schema import ChecksFile, load

        try:
            says = load(ChecksFile, read(self.path, str(self.path)))
        except Mistakes as error:
            yield from self._mistakes(list(map(str, error.found)))
            return
        if not says.checks and not says.benign:
            return
        found = find([str(self.path)])
        yield from self._mistakes([str(each) for each in found.mistakes if each.path == str(self.path)])
        for task in found.tasks:
            if task.file == str(self.path):
                yield self._item(task, f"{os.path.relpath(task.transcript, self.path.parent)} [{task.name}]")
        for folder in found.benign:
            if folder.file == str(self.path):
                name = f"benign {os.path.relpath(folder.folder, self.path.parent)}"
                item: BenignItem = BenignItem.from_parent(self, name=_one_line(name))
                item.folder = folder
                yield item


class MistakesItem(pytest.Item):
    """A file of which no check can be made as it says."""

    lines: list[str]

    def runtest(self) -> None:
        """Fail by what is wrong, each with its place."""
        pytest.fail("\n".join(self.lines), pytrace=False)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return the file."""
        return self.path, None, self.name


class CheckItem(pytest.Item):
    """One check of a transcript."""

    task: Task

    def runtest(self) -> None:
        """Make the check, and fail as ``loopscan check`` does."""
        from loopscan.checks.run import run

        _judge(run([self.task]))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the check stands in its file, and what it is called as a whole."""
        transcript = Path(self.task.transcript).name
        # Not the end of the test's id: pytest writes the dots in that as colons.
        return self.path, self.task.spot.line - 1, _one_line(f"check of {transcript} [{self.task.name}]")


class BenignItem(pytest.Item):
    """A folder of sessions in which nothing may be blocked."""

    folder: BenignFolder

    def runtest(self) -> None:
        """Replay the folder, and fail by every false alarm in it."""
        from loopscan.checks.benign import check_benign

        _judge(check_benign(self.folder))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return the file that names the folder."""
        return self.path, 0, _one_line(f"check of folder {self.folder.folder}")


@pytest.fixture(scope="session")
def loopscan() -> ModuleType:
    """Replay sessions and assert on their marks: the module ``loopscan.testing``.

    ``loopscan.replay(path_or_events, ruleset="2026.9").assert_marks("warning generic_repeat 10")``
    """
    from loopscan import testing

    return testing


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say of two lists of marks that should be equal where they differ, and why."""
    testing = sys.modules.get("loopscan.testing")
    if testing is None or op != "==":
        return None
    if isinstance(left, testing.Marks):
        found, expected, heading = left, right, "the marks are not those on the right:"
    elif isinstance(right, testing.Marks):
        found, expected, heading = right, left, "the marks are not those on the left:"
    else:
        return None
    explained = found.explain(expected) if isinstance(expected, list | tuple) else []
    return [heading, *explained] if explained else None


def _asserts(task: Task) -> bool:
    return task.snapshot is not None or task.expect is not None


def _has_transcript(path: Path) -> bool:
    """Tell whether beside a file of expectations lies what it would be about: a transcript of the same name."""
    from loopscan.checks.folders import ENDINGS, is_expectation
    from loopscan.transcripts.discover import discover

    base = next(path.name.removesuffix(ending) for ending in ENDINGS if path.name.endswith(ending))
    beside = [each for each in path.parent.iterdir() if each.name == base or each.name.startswith(f"{base}.")]
    files = sorted(each for each in beside if not is_expectation(each.name))
    return bool(discover(files, on_error=lambda error: None).sources)  # what is no transcript is the answer


def _judge(made: Any) -> None:  # noqa: ANN401
    """Fail with what people read of the checks that failed."""
    from loopscan.findings import Status
    from loopscan.reports.checks import told
    from loopscan.reports.plain import lines

    failed = [each.case for each in made if each.case.status in {Status.FAILED, Status.ERROR}]
    if failed:
        pytest.fail("\n\n".join("\n".join(lines("\n".join(told(case)))) for case in failed), pytrace=False)


def _one_line(text: str) -> str:
    from loopscan.sanitize import clean

    return clean(text)
