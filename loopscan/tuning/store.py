"""Profiles in a file: one row a session, in parquet, so that many machines can do the first pass.

A row holds no content of a transcript: names of sources, sessions, agents, models, tools and runs, times, sizes, and
numbers that say what equals what within the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import orjson
import xxhash

from loopscan.errors import InputError, UsageError
from loopscan.modes import Arm, ScopeRule
from loopscan.rulesets import ruleset
from loopscan.sanitize import clean
from loopscan.tuning.parquet import read_frame
from loopscan.tuning.profiles import Basis, SessionProfile, Spent, UnitProfile
from loopscan.tuning.steps import LENGTHS
from loopscan.wholefile import whole_file

SCHEMA: Final = "loopscan.profiles/1"
SUFFIX: Final = ".parquet"


@dataclass(frozen=True, slots=True)
class Stored:
    """The profiles of one or several files."""

    basis: Basis
    sessions: list[SessionProfile]
    repeated: int = 0
    """Sessions that were left out, since another file has them."""


def _schema() -> dict[str, Any]:
    """Return the columns of a file of profiles, and the type of each."""
    import polars as pl

    return {
        **dict.fromkeys(("schema", "ruleset", "scope", "arm", "tool_map"), pl.String),
        **dict.fromkeys(("source", "session", "agent", "model"), pl.String),
        "started": pl.Float64,
        "ended": pl.Float64,
        "runs": pl.Int64,
        **{each.name: pl.Float64 if each.name == "cost_usd" else pl.Int64 for each in fields(Spent)},
        "torn": pl.Int64,
        "run_numbers": pl.String,
        "units": pl.List(pl.String),
        "unit_runs": pl.List(pl.List(pl.String)),
        "digest": pl.String,
    }


def write(path: str, basis: Basis, sessions: Iterable[SessionProfile]) -> None:
    """Write profiles to a file, which appears when it is complete. Raises :class:`UsageError` if it cannot be."""
    import polars as pl

    rows = [
        {
            "schema": SCHEMA,
            "ruleset": basis.ruleset,
            "scope": basis.scope.value,
            "arm": basis.arm.value,
            "tool_map": orjson.dumps(basis.tool_map).decode(),
            **{name: getattr(each, name) for name in ("source", "session", "agent", "model")},
            "started": each.started,
            "ended": each.ended,
            "runs": each.runs,
            **asdict(each.spent),
            "torn": each.torn,
            "run_numbers": orjson.dumps(each.run_numbers).decode(),
            "units": [unit.steps.decode() for unit in each.units],
            "unit_runs": [list(unit.runs) for unit in each.units],
        }
        for each in sessions
    ]
    for row in rows:
        row["digest"] = _digest(row)
    schema = _schema()
    frame = pl.DataFrame(rows or {name: [] for name in schema}, schema=schema)
    with whole_file(path) as out:
        frame.write_parquet(out)


def read(paths: Sequence[str]) -> Stored:
    """Return the profiles of several files together, as one pass over all their sources would have made them.

    See :func:`together` for sessions that several files hold. Raises :class:`InputError` for what is no file of
    profiles, and :class:`UsageError` for profiles that were not made alike.
    """
    basis: Basis | None = None
    first = ""
    groups: list[list[SessionProfile]] = []
    for path in paths:
        found, made = _read_one(path)
        if found is not None and basis is not None and found != basis:
            raise UsageError(
                f"{clean(path)} ({clean(str(found))}) and {clean(first)} ({clean(str(basis))}) cannot be put "
                "together: make them with the same options"
            )
        if basis is None and found is not None:
            basis, first = found, path
        groups.append(made)
    sessions, repeated = together(groups)
    return Stored(basis or Basis("latest"), sessions, repeated)


def together(groups: Sequence[Sequence[SessionProfile]]) -> tuple[list[SessionProfile], int]:
    """Return the sessions of several passes together, and how many were left out since another pass has them.

    A session is known by its id, agent and start: of several records the one with most calls counts, else the first.
    What one pass alone has several times stays, since it told those apart itself.
    """
    kept: list[list[SessionProfile]] = []
    known: dict[tuple[object, ...], tuple[int, int]] = {}
    left_out = 0
    for number, group in enumerate(groups):
        mine: dict[tuple[object, ...], list[SessionProfile]] = {}
        for session in group:
            mine.setdefault((session.session, session.agent, session.started), []).append(session)
        kept.append([])
        for key, some in mine.items():
            calls = sum(session.spent.calls for session in some)
            before = known.get(key)
            if before is not None and calls <= before[1]:
                left_out += len(some)
                continue
            if before is not None:
                longer = [each for each in kept[before[0]] if (each.session, each.agent, each.started) != key]
                left_out += len(kept[before[0]]) - len(longer)
                kept[before[0]] = longer
            known[key] = (number, calls)
            kept[number] += some
    places = {id(session): place for place, session in enumerate(each for group in groups for each in group)}
    return sorted((each for group in kept for each in group), key=lambda each: places[id(each)]), left_out


def _digest(row: Mapping[str, Any]) -> str:
    """Return what tells that a row is as it was written."""
    named = {name: value for name, value in row.items() if name != "digest"}
    return xxhash.xxh3_128_hexdigest(orjson.dumps(named, option=orjson.OPT_SORT_KEYS))


def _read_one(path: str) -> tuple[Basis | None, list[SessionProfile]]:
    import polars as pl

    try:
        frame = read_frame(Path(path).read_bytes())
        if "schema" not in frame.columns:
            raise _wrong(path, "is no file of profiles")
        if not set(frame.get_column("schema").to_list()) <= {SCHEMA}:
            raise _wrong(path, f"holds profiles of another version of loopscan ({SCHEMA} is known)")
        schema = _schema()
        known = frame.select(list(schema))
        if dict(known.schema) != schema or known.drop(*_MAY_BE_MISSING).null_count().sum_horizontal().sum():
            raise ValueError("a column is of another kind, or has gaps")
        bases: set[Basis] = set()
        sessions: list[SessionProfile] = []
        for row in (row for some in known.iter_slices(_AT_ONCE) for row in some.to_dicts()):
            if row["digest"] != _digest(row):
                raise ValueError("a row is not as it was written")
            bases.add(_basis(row))
            sessions.append(_session(row))
        if len(bases) > 1:
            raise _wrong(path, "holds profiles that were not made alike")
        return (bases.pop() if bases else None), sessions
    except OSError as error:
        raise InputError(f"{clean(path)}: {error.strerror or 'cannot be read'}", path) from error
    except (pl.exceptions.PolarsError, UsageError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise _wrong(path, "is no complete file of profiles") from error


def _wrong(path: str, what: str) -> InputError:
    return InputError(f"{clean(path)}: {what}; make it with loopscan tune --profiles-out", path)


def _basis(row: Mapping[str, Any]) -> Basis:
    renamed = tuple((tool, name) for tool, name in orjson.loads(row["tool_map"]))
    return Basis(ruleset(row["ruleset"]).name, ScopeRule(row["scope"]), Arm(row["arm"]), renamed)


def _session(row: dict[str, Any]) -> SessionProfile:
    """Return the profile in a row. Raises a :class:`ValueError` or the like where its parts do not fit together."""
    numbers = orjson.loads(row["run_numbers"])
    units = tuple(
        _unit(UnitProfile.of(steps.encode(), runs), numbers)
        for steps, runs in zip(row["units"], row["unit_runs"], strict=True)
    )
    return SessionProfile(
        row["source"],
        row["session"],
        row["agent"],
        row["model"],
        row["started"],
        row["ended"],
        row["runs"],
        Spent(**{each.name: row[each.name] for each in fields(Spent)}),
        numbers,
        units,
        row["torn"],
    )


def _unit(unit: UnitProfile, numbers: Mapping[str, int]) -> UnitProfile:
    """Return a unit if its steps look like some, and are of its runs."""
    runs = set(unit.runs)
    if not runs <= numbers.keys():
        raise ValueError("a run has no number")
    for step in unit.read():
        if len(step) != LENGTHS[step[0]] or step[1] not in runs:
            raise ValueError("a step is not what it says")
    return unit


#: As many rows are unpacked at the same time.
_AT_ONCE: Final = 256
#: What a row may do without.
_MAY_BE_MISSING: Final = ("agent", "model", "started", "ended")
