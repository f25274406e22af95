"""Files named ``loopscan.checks.yaml``: what counts for the folder that they lie in, and for those in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopscan.checks.document import Document, read
from loopscan.checks.mistakes import Mistake, Mistakes
from loopscan.checks.schema import ChecksFile, Settings, load
from loopscan.checks.tasks import placed
from loopscan.transcripts.patterns import meets

#: How the files of expectations end, the one that loopscan writes first.
ENDINGS: Final = (".expect.yaml", ".expect.yml", ".expect.json")
#: What the file is called that counts for a whole folder.
FOLDER_FILES: Final = ("loopscan.checks.yaml", "loopscan.checks.yml", "loopscan.checks.json")


def is_file(path: str | Path) -> bool:
    """Tell whether there is a file (a link to one counts); not so where that cannot even be looked for."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises where a folder is closed or a name too long


def is_folder(path: str | Path) -> bool:
    """Tell whether there is a folder, as :func:`is_file` does."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def is_expectation(name: str) -> bool:
    """Tell whether a file of this name says what transcripts must meet, and is none itself."""
    return name.endswith(ENDINGS) or name in FOLDER_FILES


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file that counts for a folder."""

    folder: Path
    file: ChecksFile
    document: Document

    def place(self, settings: Settings) -> Settings:
        """Return settings of this file with paths from where the command runs."""
        return placed(settings, self.folder)

    def meets(self, path: Path, patterns: list[str], exclude: list[str] | None) -> bool:
        """Tell whether a file meets one of ``patterns``, which count from the folder, and none of ``exclude``."""
        parts = Path(os.path.relpath(path, self.folder)).parts
        return _meets_any(parts, patterns) and not _meets_any(parts, exclude)

    def ignores(self, path: Path) -> bool:
        """Tell whether a transcript needs no expectation."""
        parts = Path(os.path.relpath(path, self.folder)).parts
        return _meets_any(parts, self.file.ignore)


def _meets_any(parts: tuple[str, ...], patterns: list[str] | None) -> bool:
    return any(meets(parts, pattern.split("/")) for pattern in patterns or ())


def files_below(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the files below a folder but those of expectations, each as its names from there, sorted.

    Folders whose names begin with a dot are left out, and links to folders are not followed.
    """
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        above = Path(at).relative_to(folder).parts
        for name in sorted(files):
            if not is_expectation(name) and is_file(Path(at, name)):
                yield (*above, name)


class FolderFiles:
    """The files that count for folders; each is read once."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        """What is wrong with them."""
        self._above: dict[Path, tuple[FolderFile, ...]] = {}

    def above(self, folder: Path) -> tuple[FolderFile, ...]:
        """Return the files that count for ``folder``, its own last, the outermost first.

        Looks up to the folder of a repository (where ``.git`` is), or to a file that says ``root: true``.
        """
        if folder not in self._above:
            own = self._read(folder)
            absolute = folder.absolute()
            top = (own is not None and own.file.root) or (folder / ".git").exists() or absolute.parent == absolute
            parent = folder.parent if folder.name not in {"", ".."} else Path(os.path.normpath(absolute)).parent
            outer = () if top else self.above(parent)
            self._above[folder] = outer if own is None else (*outer, own)
        return self._above[folder]

    def of(self, folder: Path) -> FolderFile | None:
        """Return the file that lies in ``folder`` itself."""
        found = self.above(folder)
        return found[-1] if found and found[-1].folder == folder else None

    def defaults(self, folder: Path) -> list[Settings]:
        """Return the settings that count for ``folder``, the nearest last."""
        return [each.place(each.file.defaults) for each in self.above(folder) if each.file.defaults is not None]

    def _read(self, folder: Path) -> FolderFile | None:
        there = [folder / name for name in FOLDER_FILES if os.path.lexists(folder / name)]
        if not there:
            return None
        path, *others = there
        if others:
            what = f"lies beside {path.name}, and one of them is to count: move it into that one"
            self.mistakes.append(Mistake(str(others[0]), None, what))
        try:
            document = read(path, str(path))
            return FolderFile(folder, load(ChecksFile, document), document)
        except Mistakes as error:
            self.mistakes += error.found
        return None
