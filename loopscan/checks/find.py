"""From the paths that people name to the checks that are to be made."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loopscan.checks.document import Document, read
from loopscan.checks.folders import (
    ENDINGS,
    FOLDER_FILES,
    FolderFile,
    FolderFiles,
    files_below,
    is_expectation,
    is_file,
    is_folder,
)
from loopscan.checks.mistakes import TOP, Mistake, Mistakes
from loopscan.checks.schema import Benign, Check, Expect, ExpectFile, GlobCheck, Settings, load, merged
from loopscan.checks.tasks import DEFAULT_RULESET, BenignFolder, Fault, Task, joined, label, placed
from loopscan.errors import InputError
from loopscan.findings import Names
from loopscan.rulesets import ruleset_meets
from loopscan.sanitize import clean
from loopscan.transcripts.discover import discover


@dataclass(slots=True)
class Found:
    """What there is to do, in the order of the paths as named, sorted within a folder."""

    tasks: list[Task] = field(default_factory=list)
    benign: list[BenignFolder] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    """What is wrong with files of expectations."""
    missing: list[str] = field(default_factory=list)
    """Paths that were named and are not there, a line each."""
    notes: list[str] = field(default_factory=list)
    """What is to be known beside, a line each."""
    untold: int = 0
    """How many transcripts of the folders nothing is said of."""


def find(
    paths: Iterable[str], *, over: Settings | None = None, strict: bool = False, looked: Looked | None = None
) -> Found:
    """Find the checks of ``paths``: transcripts, expectation files, or folders of both.

    ``over`` are settings that go over what the files say. With ``strict`` each transcript in a folder that nothing
    is said of is a failing task; one that was named is so always. What is wrong with a file is told in
    :attr:`Found.mistakes`, and all others count. Who looks for the files of one folder one by one gives ``looked``.
    """
    search = _Search(over, strict, looked or Looked())
    for path in paths:
        search.path(path)
    return search.finish()


@dataclass(frozen=True, slots=True)
class _Names:
    """What lies in a folder."""

    all: frozenset[str]
    by_base: dict[str, list[str]]
    """Names, but for those of expectations, by each base that they may be meant by; sorted."""

    @classmethod
    def of(cls, folder: Path) -> _Names:
        names = sorted(entry.name for entry in folder.iterdir())
        by_base: dict[str, list[str]] = {}
        for name in names:
            for base in _bases(name):
                by_base.setdefault(base, []).append(name)
        return cls(frozenset(names), by_base)

    def meant_by(self, folder: Path, base: str) -> list[str]:
        """Return what an expectation named ``base`` may be about: the file of that name, else files, else folders.

        A session's file often has a folder beside it that is called like it.
        """
        found = self.by_base.get(base, [])
        files = [name for name in found if is_file(folder / name)]
        return [base] if base in files else files or found


@dataclass(slots=True)
class Looked:
    """What is known of a folder already, so that many searches in it cost no more than one."""

    files: FolderFiles = field(default_factory=FolderFiles)
    names: dict[Path, _Names] = field(default_factory=dict)


class _Search:
    def __init__(self, over: Settings | None, strict: bool, looked: Looked) -> None:
        self._over = over
        self._strict = strict
        self._found = Found()
        self._files = looked.files
        self._folders: list[str] = []
        self._met: set[object] = set()
        """Files of expectations by their real path, and what globs of which file met: all count once."""
        self._told: set[str] = set()
        """Transcripts that some task is about, by their real path."""
        self._listed = looked.names
        self._below: dict[Path, list[Path]] = {}
        """Files below a folder, as far as they were looked for."""

    def path(self, name: str) -> None:
        """Take in one path that was named."""
        path = Path(name)
        try:
            if not name:
                self._found.missing.append("an empty path was named")
            elif is_folder(path):
                self._folder(path)
            elif not is_file(path):
                what = "is no file" if path.exists() else "no such file or folder"
                self._found.missing.append(f"{clean(name)}: {what}")
            elif path.name in FOLDER_FILES:
                self._folder(path.parent)
            elif path.name.endswith(ENDINGS):
                self._expectation(path)
            else:
                self._transcript(path)
        except ValueError:
            self._found.missing.append(f"{clean(name)}: no path of this system")
        except OSError as error:
            self._found.missing.append(f"{clean(name)}: {error.strerror or 'input/output error'}")

    def finish(self) -> Found:
        """Return what was found."""
        if self._folders:
            self._look_for_untold()
        found = self._found
        found.mistakes += self._files.mistakes
        told: dict[object, Mistake] = {}
        for each in found.mistakes:
            told.setdefault((os.path.realpath(each.path), each.spot, each.what), each)
        found.mistakes = list(told.values())
        names = Names()
        found.tasks = [replace(task, name=names.unique(task.transcript, task.name)) for task in found.tasks]
        return found

    def _folder(self, folder: Path) -> None:
        self._folders.append(str(folder))
        for file in self._files.above(folder):
            if file.folder != folder:
                self._globs(file, folder)
        for at, folders, names in os.walk(folder, onerror=self._unread):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            here = Path(at)
            self._found.notes += [
                f"{clean(str(here / name))} is a link to a folder, and not followed"
                for name in folders
                if (here / name).is_symlink()
            ]
            if own := self._files.of(here):
                self._globs(own, here)
            for name in sorted(names):
                if name.endswith(ENDINGS):
                    self._expectation(here / name)
                elif (here / name).is_symlink() and not is_file(here / name):
                    self._found.notes.append(f"{clean(str(here / name))} is a link to no file, and passed over")
                elif _is_misspelt(name):
                    self._found.notes.append(
                        f"{clean(str(here / name))} is not read: is it to be a file of expectations?"
                    )

    def _unread(self, error: OSError) -> None:
        self._found.missing.append(f"{clean(str(error.filename))}: {error.strerror or 'input/output error'}")

    def _transcript(self, path: Path) -> None:
        names = self._named(path.parent).all
        beside = [base + ending for base in _bases(path.name) for ending in ENDINGS if base + ending in names]
        said = [self._expectation(path.parent / name, only=path) for name in beside]
        for file in self._files.above(path.parent):
            self._globs(file, path)
        real = os.path.realpath(path)
        if not any(said) and real not in self._told:
            self._add([self._untold(path)])

    def _add(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._found.tasks.append(task)
            self._told.update(map(os.path.realpath, task.paths))

    # -- transcripts that nothing is said of

    def _untold(self, path: Path) -> Task:
        settings = self._resolved(path.parent)
        settings.pop("skip", None)
        settings.pop("requires", None)
        fault = Fault("no_expectation", "nothing says what this transcript must meet")
        return Task(str(path), (str(path),), label(settings), settings, snapshots=True, fault=fault)

    def _look_for_untold(self) -> None:
        """Look for transcripts of the folders that no task is about: with ``strict`` each is a failing one."""
        told = self._told | {os.path.realpath(each.folder) for each in self._found.benign}
        untold: list[Path] = []

        def unread(error: InputError) -> None:
            if self._strict:
                self._found.missing.append(str(error))

        def is_told(path: Path) -> bool:
            real = Path(os.path.realpath(path))
            return not told.isdisjoint(map(str, (real, *real.parents)))

        there = [path for folder in self._folders for path in self._files_in(Path(folder)) if not is_told(path)]
        if not there:
            return  # looking into files takes time
        found = discover(self._folders, on_error=unread)
        sources = found.sources
        if self._strict:
            self._found.missing += [f"{clean(file.path)}: {file.reason}" for file in found.skipped if file.unread]
        links = [path for path in there if path.is_symlink()]
        sources += discover(links, on_error=lambda error: None).sources  # in a folder they are not followed
        seen = set(map(os.path.realpath, there))
        for source in sources:
            path = _file_of(source.source.name)
            counts = is_folder(path) or os.path.realpath(path) in seen  # not what lies in a hidden folder
            if counts and not is_told(path) and not self._ignored(path):
                told.add(os.path.realpath(path))
                untold.append(path)
        self._found.untold = len(untold)
        if self._strict:
            self._add(map(self._untold, untold))
        elif untold and self._found.tasks:
            what = "1 transcript has" if len(untold) == 1 else f"{len(untold)} transcripts have"
            self._found.notes.append(f"{what} no expectation; --strict makes that a failure")

    def _ignored(self, path: Path) -> bool:
        return any(file.ignores(path) for file in self._files.above(path.parent))

    # -- files of expectations

    def _expectation(self, path: Path, only: Path | None = None) -> bool:
        """Add the checks that one file asks for, and say whether it is (or may be) about the transcript ``only``."""
        try:
            document = read(path, str(path))
            file = load(ExpectFile, document)
            transcripts = self._transcripts_of(path, file, document)
            if only is not None and os.path.realpath(only) not in map(os.path.realpath, transcripts):
                return False
            if self._first(*map(os.path.realpath, [str(path), str(path.parent), *transcripts])):
                self._add(list(self._tasks(path, file, document, transcripts)))
        except Mistakes as error:
            if self._first("mistakes", os.path.realpath(path)):
                self._found.mistakes += error.found
        except OSError as error:
            what = f"what it names cannot be looked for: {error.strerror or 'input/output error'}"
            self._found.mistakes.append(Mistake(str(path), None, what))
        return True

    def _tasks(
        self, path: Path, file: ExpectFile, document: Document, transcripts: tuple[str, ...]
    ) -> Iterator[Task]:
        if file.checks is not None and file.snapshot is not None:
            what = 'a "snapshot" beside "checks" belongs to none of them: move it into the one that it is of'
            raise document.error(document.spot(("snapshot",), key=True), what)
        gone = [name for name in transcripts if not (is_file(name) or is_folder(name))]
        for within, check in _checks_of(file):
            layers = [placed(each, path.parent) for each in ([file, check] if within else [file])]
            settings = self._resolved(path.parent, *layers)
            expect = _joined(file.expect, check.expect if within else None)
            snapshots = "snapshot" in check.model_fields_set or expect is None
            skip = self._skip(settings)
            fault = None
            if gone:
                fault = Fault("unreadable_transcript", self._gone(Path(gone[0]), named=file.transcript is not None))
            elif check.snapshot is None and snapshots:
                what = (
                    "its snapshot is empty" if expect is not None else "it says nothing that the transcript must meet"
                )
                fault = Fault("no_expectation", f"{what}; --update writes one")
            yield Task(
                transcripts[0],
                transcripts,
                check.name or label(settings),
                settings,
                check.snapshot,
                expect,
                str(path),
                document.spot(within),
                within,
                snapshots,
                skip,
                fault,
            )

    def _transcripts_of(self, path: Path, file: ExpectFile, document: Document) -> tuple[str, ...]:
        """Return what a file of expectations is about: what it names, or what lies beside it under its name."""
        if file.transcript is not None:
            return tuple(joined(path.parent, name) for name in file.transcript)
        base = next(path.name.removesuffix(ending) for ending in ENDINGS if path.name.endswith(ending))
        beside = self._named(path.parent).meant_by(path.parent, base)
        if len(beside) > 1:  # notes, say, beside the transcript that they are about
            found = discover([path.parent / name for name in beside], on_error=lambda error: None).sources
            files = dict.fromkeys(_file_of(each.source.name).name for each in found)
            beside = list(files) if len(files) == 1 else beside
        if len(beside) > 1:
            several = ", ".join(clean(name, 60) for name in beside[:3])
            raise document.error(TOP, f'several files are called so ({several}): say which by "transcript"')
        return (str(path.parent / (beside[0] if beside else base)),)

    def _gone(self, path: Path, *, named: bool) -> str:
        """Return that a transcript is not there, and which one may be meant."""
        beside = self._named(path.parent).by_base if is_folder(path.parent) else {}
        close = difflib.get_close_matches(path.name, beside, 1, 0.7)
        hint = f"; is {clean(beside[close[0]][0], 60)} meant?" if close else ""
        if named:
            return f"there is no transcript {clean(str(path))}{hint}"
        remedy = 'rename this file, or name the transcript by "transcript"'
        return f"there is no transcript {clean(path.name)} beside it{hint}; {remedy}"

    def _named(self, folder: Path) -> _Names:
        if folder not in self._listed:
            self._listed[folder] = _Names.of(folder)
        return self._listed[folder]

    # -- files that count for a folder

    def _files_in(self, folder: Path) -> list[Path]:
        if folder not in self._below:
            self._below[folder] = [Path(folder, *parts) for parts in files_below(folder)]
        return self._below[folder]

    def _globs(self, file: FolderFile, under: Path) -> None:
        """Add what a file that counts for a folder says, as far as it is of what lies ``under`` a path."""
        for number, check in enumerate(file.file.checks or ()):
            self._add(self._globbed(file, number, check, under))
        for number, benign in enumerate(file.file.benign or ()):
            folder = joined(file.folder, benign.folder)
            if (under == file.folder or _lies(folder, under)) and self._first(file, "benign", number):
                self._found.benign.append(self._benign(folder, benign, file))

    def _globbed(self, file: FolderFile, number: int, check: GlobCheck, under: Path) -> Iterator[Task]:
        within: tuple[object, ...] = ("checks", number)
        spot = file.document.spot(within)
        candidates = [under] if is_file(under) else self._files_in(under)
        met = [path for path in candidates if file.meets(path, check.transcripts, check.exclude)]
        for path in met:
            if not self._first(file, number, os.path.realpath(path)):
                continue
            settings = self._resolved(path.parent, file.place(check))
            skip = self._skip(settings)
            name = check.name or label(settings)
            yield Task(
                str(path),
                (str(path),),
                name,
                settings,
                None,
                check.expect,
                file.document.path,
                spot,
                within,
                skip=skip,
                fault=None if check.expect.asserts() else Fault("bad_expectation", "it asserts nothing"),
            )
        if not met and under == file.folder and self._first(file, number, None):
            patterns = ", ".join(clean(pattern, 80) for pattern in check.transcripts)
            fault = Fault("unreadable_transcript", f"no file meets {patterns}")
            name = check.name or f"checks {number + 1}"
            yield Task(
                file.document.path, (), name, {}, None, check.expect, file.document.path, spot, within, fault=fault
            )

    def _benign(self, folder: str, benign: Benign, file: FolderFile) -> BenignFolder:
        settings = self._resolved(file.folder, file.place(benign))
        settings.pop("skip", None)
        settings.pop("requires", None)
        return BenignFolder(folder, benign.max_warnings, settings, file.document.path)

    def _first(self, *what: object) -> bool:
        """Tell whether this is met for the first time."""
        key = tuple(str(each.document.path) if isinstance(each, FolderFile) else each for each in what)
        new = key not in self._met
        self._met.add(key)
        return new

    # -- settings

    def _resolved(self, folder: Path, *layers: Settings) -> dict[str, Any]:
        return merged(*self._files.defaults(folder), *layers, self._over)

    @staticmethod
    def _skip(settings: dict[str, Any]) -> str | None:
        """Return why a check is not made now, and take what says so out of its settings."""
        skip: str | None = settings.pop("skip", None)
        requires = settings.pop("requires", None)
        if requires is None:
            return skip
        ruleset = settings.get("ruleset", DEFAULT_RULESET)
        met = ruleset_meets(ruleset, requires.ruleset)
        return skip if met else skip or f"requires ruleset {requires.ruleset}, this is {ruleset}"


def _is_misspelt(name: str) -> bool:
    """Tell whether a name is nearly one that is read."""
    return bool(
        re.search(r"\.expec\w*\.(ya?ml|json)$|^loopscan\.check\w*\.(ya?ml|json)$", name)
    ) and not is_expectation(name)


def _bases(name: str) -> list[str]:
    """Return the names, without endings, by which a file may be meant: ``a.b.c``, ``a`` and ``a.b`` for ``a.b.c``."""
    if is_expectation(name):
        return []
    return [name, *(name[: dot.start()] for dot in re.finditer(r"\.", name) if dot.start())]


def _checks_of(file: ExpectFile) -> Iterator[tuple[tuple[object, ...], Check]]:
    """Yield each check with its path in the file: those that are listed, else the file itself."""
    if file.checks is None:
        yield (), file
        return
    for number, check in enumerate(file.checks):
        yield ("checks", number), check


def _joined(outer: Expect | None, own: Expect | None) -> Expect | None:
    """Return the assertions of a check: what it says itself goes over what stands above all checks."""
    joined = outer if own is None else own
    if outer is not None and own is not None:
        joined = outer.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})
    return joined if joined is not None and joined.asserts() else None


def _lies(path: str, under: Path) -> bool:
    """Tell whether ``path`` is ``under``, or lies in it."""
    real, top = Path(os.path.realpath(path)), Path(os.path.realpath(under))
    return top == real or top in real.parents


def _file_of(source: str) -> Path:
    """Return the file that a source is, or lies in: ``logs.tar`` for ``logs.tar!agents/1.jsonl``."""
    cuts = [cut.start() for cut in re.finditer("!", source)] + [len(source)]
    return next((path for cut in cuts if is_file(path := Path(source[:cut]))), Path(source))
