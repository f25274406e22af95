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

from loopscan.errors import InputError, UsageError
from loopscan.modes import Arm, ScopeRule
from loopscan.rulesets import ruleset
from loopscan.sanitize import clean
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
    """Sessions that several files hold alike; each counts once."""


def _schema() -> dict[str, Any]:
    """Return the columns of a file of profiles, and the type of each."""
    import polars as pl

    return {
        **dict.fromkeys(("schema", "ruleset", "scope", "arm", "source", "session", "agent", "model"), pl.String),
        "started": pl.Float64,
        "ended": pl.Float64,
        "runs": pl.Int64,
        **{each.name: pl.Float64 if each.name == "cost_usd" else pl.Int64 for each in fields(Spent)},
        "torn": pl.Int64,
        "run_numbers": pl.String,
        "units": pl.List(pl.String),
        "unit_runs": pl.List(pl.List(pl.String)),
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
    schema = _schema()
    frame = pl.DataFrame(rows or {name: [] for name in schema}, schema=schema)
    with whole_file(path) as out:
        frame.write_parquet(out)


def read(paths: Sequence[str]) -> Stored:
    """Return the profiles of several files together, as one pass over all their sources would have made them.

    A session that several files hold alike counts once. Raises :class:`InputError` for what is no file of profiles,
    and :class:`UsageError` for profiles that were not made alike.
    """
    basis: Basis | None = None
    first = ""
    sessions: list[SessionProfile] = []
    seen: set[tuple[object, ...]] = set()
    repeated = 0
    for path in paths:
        found, made = _read_one(path)
        if found is not None and basis is not None and found != basis:
            raise UsageError(
                f"{clean(path)} ({_told(found)}) and {clean(first)} ({_told(basis)}) cannot be put together: "
                "make them with the same options"
            )
        if basis is None and found is not None:
            basis, first = found, path
        earlier = frozenset(seen)
        for session in made:
            key = (session.session, session.agent, session.started, session.ended, session.units, *_spent(session))
            if key in earlier:
                repeated += 1
                continue
            seen.add(key)
            sessions.append(session)
    return Stored(basis or Basis("latest"), sessions, repeated)


def _told(basis: Basis) -> str:
    return f"ruleset {basis.ruleset}, scope {basis.scope.value}, arm {basis.arm.value}"


def _spent(session: SessionProfile) -> tuple[object, ...]:
    return tuple(asdict(session.spent).values())


def _read_one(path: str) -> tuple[Basis | None, list[SessionProfile]]:
    import polars as pl

    try:
        frame = pl.read_parquet(Path(path).read_bytes())
        if "schema" not in frame.columns:
            raise _wrong(path, "is no file of profiles")
        if not set(frame.get_column("schema").to_list()) <= {SCHEMA}:
            raise _wrong(path, f"holds profiles of another version of loopscan ({SCHEMA} is known)")
        schema = _schema()
        known = frame.select(list(schema))
        if dict(known.schema) != schema or known.drop(*_MAY_BE_MISSING).null_count().sum_horizontal().sum():
            raise ValueError("a column is of another kind, or has gaps")
        rows = known.to_dicts()
        bases = {Basis(ruleset(row["ruleset"]).name, ScopeRule(row["scope"]), Arm(row["arm"])) for row in rows}
        if len(bases) > 1:
            raise _wrong(path, "holds profiles that were not made alike")
        return (bases.pop() if bases else None), [_session(row) for row in rows]
    except OSError as error:
        raise InputError(f"{clean(path)}: {error.strerror or 'cannot be read'}", path) from error
    except (pl.exceptions.PolarsError, UsageError, LookupError, TypeError, ValueError) as error:
        raise _wrong(path, "is no complete file of profiles") from error


def _wrong(path: str, what: str) -> InputError:
    return InputError(f"{clean(path)}: {what}; make it with loopscan tune --profiles-out", path)


def _session(row: dict[str, Any]) -> SessionProfile:
    """Return the profile in a row. Raises a :class:`ValueError` or the like where its parts do not fit together."""
    numbers = orjson.loads(row["run_numbers"])
    units = tuple(
        _unit(UnitProfile(steps.encode(), tuple(runs)), numbers)
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


#: What a row may do without.
_MAY_BE_MISSING: Final = ("agent", "model", "started", "ended")
