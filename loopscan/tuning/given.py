"""Labels that people give: a file of them, by session, run or incident."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from loopscan.errors import UsageError
from loopscan.sanitize import clean
from loopscan.tuning.incidents import Incident
from loopscan.tuning.labels import Label
from loopscan.tuning.parquet import read_frame
from loopscan.tuning.profiles import SessionProfile

#: What a cell may begin with that a spreadsheet takes for a formula.
FORMULA: Final = "=+-@\t\r"
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
#: The columns that a file of labels may have; others are ignored, so that an export can be edited and given back.
COLUMNS: Final = ("incident", "session", "run", "label")


def name_of(profile: SessionProfile, incident: Incident) -> str:
    """Return the name of an incident: session, run and first call, which stay as long as the record does."""
    first = incident.calls[0]
    place = f"{first.call}" if first.call >= 0 else f"batch-{first.batch}"
    return f"{profile.session}/{profile.run_numbers[first.run]}/{place}"


@dataclass(slots=True)
class GivenLabels:
    """Labels by incident, by run of a session, and by session: the closest one counts.

    Names are compared as they are shown, since that is how an export may write them.
    """

    incidents: dict[str, Label] = field(default_factory=dict)
    runs: dict[tuple[str, int], Label] = field(default_factory=dict)
    sessions: dict[str, Label] = field(default_factory=dict)
    used: set[object] = field(default_factory=set)
    """What was looked up and found."""

    def __call__(self, profile: SessionProfile, unit: int, incident: Incident) -> Label | None:
        """Return the label that was given to an incident."""
        name, session = clean(name_of(profile, incident)), clean(profile.session)
        run = (session, profile.run_numbers[incident.run])
        keys: tuple[object, ...] = (name, run, session)
        labels = (self.incidents.get(name), self.runs.get(run), self.sessions.get(session))
        found = [(place, label) for place, label in enumerate(labels) if label is not None]
        self.used.update((place, keys[place]) for place, _ in found)
        return found[0][1] if found else None

    @property
    def unmatched(self) -> int:
        """How many labels were given to nothing that is here."""
        return len(self.incidents) + len(self.runs) + len(self.sessions) - len(self.used)


def read_labels(path: str) -> GivenLabels:
    """Return the labels in a file of CSV, JSON lines or parquet.

    Each row has a ``label`` (stuck, productive or unknown) and says what it is of: ``incident``, or ``session`` and
    ``run`` (counted from 0), or ``session`` alone. Rows with an empty label are passed over. Raises
    :class:`UsageError` with the line for a row that makes no sense.
    """
    shown = clean(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"--labels {shown}: {error.strerror or 'cannot be read'}") from error
    found = GivenLabels()
    for line, row in _parquet_rows(shown, data) if data[:4] == b"PAR1" else _rows(shown, data):
        label = str(row.get("label") or "").strip().lower()
        if not label:
            continue
        if label not in set(Label):
            raise UsageError(
                f"--labels {shown}:{line}: label must be stuck, productive or unknown, not {clean(label, 40)!r}"
            )
        _take(found, row, Label(label), f"--labels {shown}:{line}")
    return found


def _take(found: GivenLabels, row: Mapping[str, object], label: Label, place: str) -> None:
    incident, session, run = (_plain(row.get(name)) for name in COLUMNS[:3])
    if incident:
        found.incidents[incident] = label
    elif session and run:
        if not _NUMBER.fullmatch(run):
            raise UsageError(f"{place}: run must be its number, counted from 0, not {clean(run, 40)!r}")
        found.runs[session, int(run)] = label
    elif session:
        found.sessions[session] = label
    else:
        raise UsageError(f"{place}: names neither an incident nor a session")


def _plain(value: object) -> str:
    """Return a cell as it is shown, before the export made sure that no spreadsheet takes it for a formula."""
    text = "" if value is None else str(value)
    return clean(text[1:] if text[:1] == "'" and text[1:2] in {*FORMULA} else text)


def _parquet_rows(shown: str, data: bytes) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each row with its number."""
    try:
        frame = read_frame(data)
    except ValueError as error:
        raise UsageError(f"--labels {shown}: is no complete parquet file") from error
    _needs_label(shown, frame.columns)
    yield from enumerate(frame.select(name for name in COLUMNS if name in frame.columns).to_dicts(), 1)


def _needs_label(shown: str, columns: Sequence[str]) -> None:
    if "label" not in columns:
        raise UsageError(f"--labels {shown}:1: there is no column label; needed: label, and incident or session")


def _rows(shown: str, data: bytes) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each row with its line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--labels {shown}: is no text in UTF-8") from error
    if text.lstrip()[:1] == "{":
        for line, written in enumerate(text.split("\n"), 1):
            if not written.strip():
                continue
            try:
                value = orjson.loads(written)
            except ValueError as error:
                raise UsageError(f"--labels {shown}:{line}: is no JSON") from error
            if not isinstance(value, dict):
                raise UsageError(f"--labels {shown}:{line}: must be an object with session or incident, and label")
            yield line, value
        return
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        _needs_label(shown, rows.fieldnames or ())
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise UsageError(f"--labels {shown}:{rows.line_num + 1}: {clean(str(error), 80)}") from error
