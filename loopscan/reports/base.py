"""What a format is, where formats are found, and the one place that writes report files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, TextIO, TypeAlias, Union, cast

from loopscan.errors import UsageError
from loopscan.failing import FailOn
from loopscan.findings import Findings
from loopscan.report import Report
from loopscan.sanitize import clean
from loopscan.wholefile import whole_file

if TYPE_CHECKING:
    from loopscan.comparing.compare import Comparison
    from loopscan.tuning.report import TuningReport

#: Formats that come with loopscan: name and module. Modules are imported when they are asked for.
FORMATS: Final[dict[str, str]] = {
    "text": "loopscan.reports.text",
    "json": "loopscan.reports.json",
    "jsonl": "loopscan.reports.jsonl",
    "junit": "loopscan.reports.junit",
    "sarif": "loopscan.reports.sarif",
    "github": "loopscan.reports.github",
    "gitlab": "loopscan.reports.gitlab",
    "tap": "loopscan.reports.tap",
    "markdown": "loopscan.reports.markdown",
}
#: Formats of ``loopscan check``: those that are written from findings, and its own text and JSON.
CHECK_FORMATS: Final[dict[str, str]] = {
    "text": "loopscan.reports.checks",
    **{name: module for name, module in FORMATS.items() if name not in {"text", "jsonl"}},
}
#: Formats of ``loopscan tune``, all of a :class:`~loopscan.tuning.report.TuningReport`.
TUNE_FORMATS: Final[dict[str, str]] = {
    "text": "loopscan.reports.tuning.text",
    "json": "loopscan.reports.json",
    "csv": "loopscan.reports.tuning.csv",
    "parquet": "loopscan.reports.tuning.parquet",
    "markdown": "loopscan.reports.tuning.markdown",
    "html": "loopscan.reports.tuning.html",
}
#: Formats of ``loopscan compare``, all of a :class:`~loopscan.comparing.compare.Comparison`.
COMPARE_FORMATS: Final[dict[str, str]] = {
    "text": "loopscan.reports.comparing.text",
    "json": "loopscan.reports.json",
    "markdown": "loopscan.reports.comparing.markdown",
    "html": "loopscan.reports.comparing.html",
}
#: Other packages add formats under this entry point: name = module (or object) that is a :class:`Reporter`.
ENTRY_POINTS: Final = "loopscan.reports"
#: The file name that stands for standard output.
STDOUT: Final = "-"


@dataclass(frozen=True, slots=True)
class Options:
    """How a report is to look. Formats for machines ignore what does not concern them."""

    previews: bool = True
    """Show shortened, masked arguments."""
    verbose: bool = False
    """Every session and every problem, also those that are summed up otherwise."""
    quiet: bool = False
    """The summary alone; reports in files are always whole."""
    color: bool | None = None
    """``None``: where the output is a terminal and ``NO_COLOR`` is not set."""
    width: int | None = None
    """Columns; ``None``: those of the terminal, or 100 where there is none."""
    fail_on: FailOn = FailOn.NEVER
    """Which marks make a session a case that failed."""


class HasFindings(Protocol):
    """What is no replay's report, and says itself what is to be reported, such as the outcome of a check."""

    def findings(self, options: Options) -> Findings:
        """Return all cases, told as ``options`` want."""
        ...


#: What a report is written of. Formats made for a replay's report alone (text, json, jsonl) take no other subject.
Subject = Report | HasFindings
#: What :func:`write_all` takes, together with formats that are made for it.
Reported: TypeAlias = Union[Subject, "TuningReport", "Comparison"]


class Reporter(Protocol):
    """One format: a module, or any object, with these two names."""

    BINARY: bool
    """``write`` gets a stream of bytes. Text formats get a text stream in the encoding of the terminal or UTF-8."""
    write: Callable[[Any, Any, Options], None]
    """``write(subject, out, options)`` writes the whole report. It neither closes nor flushes ``out``."""


@dataclass(frozen=True, slots=True)
class Target:
    """One report to write: a format and a file, ``-`` for standard output."""

    format: str
    path: str = STDOUT


def names() -> list[str]:
    """Return the names of all formats, those of other packages included, loopscan's own first."""
    return [*FORMATS, *sorted(name for name in _entry_points() if name not in FORMATS)]


def load(name: str, among: Mapping[str, str] = FORMATS) -> Reporter:
    """Return the format called ``name`` of those of a replay, or ``among`` those of another command.

    Raises :class:`UsageError` if there is none, or if the package that provides it does not work.
    """
    if name in among:
        return cast(Reporter, import_module(among[name]))
    plugins = _entry_points() if among is FORMATS else {}
    if name not in plugins:
        known = names() if among is FORMATS else list(among)
        close = get_close_matches(name[:80], known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise UsageError(f'there is no format "{clean(name, 80)}"; {hint}')
    try:
        reporter = plugins[name].load()
    except Exception as error:
        reason = clean(f"{type(error).__name__}: {error}", 200)
        raise UsageError(f"format {name} comes from a package that cannot be loaded: {reason}") from error
    if not callable(getattr(reporter, "write", None)) or not isinstance(getattr(reporter, "BINARY", None), bool):
        raise UsageError(f"format {name}: {clean(plugins[name].value, 80)} has no write() or no BINARY")
    return cast(Reporter, reporter)


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def parse_target(text: str) -> Target:
    """Return the target that ``-o FORMAT=FILE`` names. Raises :class:`UsageError` if it is not of that form."""
    name, separator, path = text.partition("=")
    if not separator or not name or not path:
        raise UsageError(
            f'"{clean(text, 120)}" is no FORMAT=FILE; for instance json=report.json, or json=- for stdout'
        )
    return Target(name, path)


@dataclass(frozen=True, slots=True)
class Output:
    """A target that has been checked, with its format loaded."""

    target: Target
    reporter: Reporter


def asked_for(format_: str | None, outputs: Iterable[str]) -> list[Target]:
    """Return what ``--format`` and ``-o FORMAT=FILE`` ask for, standard output first: text unless they say otherwise.

    Raises :class:`UsageError` for what is not of that form.
    """
    targets = [parse_target(output) for output in outputs]
    if format_ is not None or not any(target.path == STDOUT for target in targets):
        targets.insert(0, Target(format_ or "text"))
    return targets


def prepare(targets: Iterable[Target], among: Mapping[str, str] = FORMATS) -> tuple[Output, ...]:
    """Load every format and check every file, so that nothing is computed for a report that cannot be written.

    Raises :class:`UsageError` for a format that does not exist, a file whose folder does not, a
    folder in place of a file, and a file (or standard output) that is named twice.
    """
    outputs: list[Output] = []
    taken: set[str] = set()
    for target in targets:
        reporter = load(target.format, among)
        shown = _shown(target.path)
        place = target.path
        if target.path != STDOUT:
            path = Path(target.path)
            try:
                if path.is_dir():
                    raise UsageError(f"{shown} is a folder; name a file in it")
                if not path.parent.is_dir():
                    raise UsageError(f"cannot write {shown}: the folder {_shown(str(path.parent))} does not exist")
            except OSError as error:
                raise UsageError(f"cannot write {shown}: {error.strerror or 'input/output error'}") from error
            place = os.path.realpath(path)
        if place in taken:
            what = "standard output" if target.path == STDOUT else shown
            raise UsageError(f"{what} is named for more than one report")
        taken.add(place)
        outputs.append(Output(target, reporter))
    return tuple(outputs)


def write_all(
    subject: Reported, outputs: Iterable[Output], options: Options, *, stdout: TextIO | BinaryIO | None = None
) -> None:
    """Write the report of ``subject`` to every output, files first, standard output (``stdout`` in its place) last.

    A file appears under its name when it is complete, or not at all: what was there before stays
    until then. Raises :class:`UsageError` for a file that cannot be written.
    """
    ordered = sorted(outputs, key=lambda output: output.target.path == STDOUT)
    for output in ordered:
        if output.target.path == STDOUT:
            _write_stream(subject, output.reporter, options, sys.stdout if stdout is None else stdout)
        else:
            plain = replace(options, color=bool(options.color), quiet=False)
            with whole_file(output.target.path) as raw:
                _write_stream(subject, output.reporter, plain, raw)


def _write_stream(subject: Reported, reporter: Reporter, options: Options, stream: TextIO | BinaryIO) -> None:
    """Write one report to ``stream``, of bytes or of text, whichever the format wants."""
    binary: Any = getattr(stream, "buffer", None)
    if _is_text(stream):
        if not reporter.BINARY:
            reporter.write(subject, stream, options)
        elif binary is not None:
            stream.flush()
            reporter.write(subject, binary, options)
        else:
            reporter.write(subject, _Decoding(cast(TextIO, stream)), options)
    elif reporter.BINARY:
        reporter.write(subject, stream, options)
    else:
        text = TextIOWrapper(cast(BinaryIO, stream), encoding="utf-8", newline="\n")
        try:
            reporter.write(subject, text, options)
        finally:
            text.detach()
    stream.flush()


def _is_text(stream: TextIO | BinaryIO) -> bool:
    from io import TextIOBase

    return isinstance(stream, TextIOBase) or hasattr(stream, "encoding")


class _Decoding:
    """Lets a format that writes UTF-8 write to a text stream that has no bytes below it, such as ``StringIO``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(data.decode())
        return len(data)


def _shown(path: str) -> str:
    return clean(path, 120)
