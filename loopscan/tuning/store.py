"""Profiles in a file: one row a session, in parquet, so that many machines can do the first pass.

A row holds no content of a transcript: names of sources, sessions, agents, models, tools and runs, times, sizes, and
numbers that say what equals what within the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import orjson

from loopscan.errors import InputError, UsageError
from loopscan.modes import Arm, ScopeRule
from loopscan.sanitize import clean
from loopscan.tuning.profiles import Basis, SessionProfile, Spent, UnitProfile
from loopscan.tuning.steps import written
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


def write(path: str, basis: Basis, sessions: Iterable[SessionProfile]) -> None:
    """Write profiles to a file, which appears when it is complete. Raises :class:`UsageError` if it cannot be."""
    import polars as pl

    counts = {each.name: pl.Float64 if each.name == "cost_usd" else pl.Int64 for each in fields(Spent)}
    schema: dict[str, Any] = {
        **dict.fromkeys(("schema", "ruleset", "scope", "arm", "source", "session", "agent", "model"), pl.String),
        "started": pl.Float64,
        "ended": pl.Float64,
        "runs": pl.Int64,
        **counts,
        "torn": pl.Int64,
        "run_numbers": pl.String,
        "units": pl.List(pl.String),
        "unit_runs": pl.List(pl.List(pl.String)),
    }
    rows = [
        {
            "schema": SCHEMA,
            "ruleset": basis.ruleset,
            "scope": basis.scope.value,
            "arm": basis.arm.value,
            **{name: _written(getattr(each, name)) for name in ("source", "session", "agent", "model")},
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
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if not rows:  # a file without rows still says what it is
        frame = pl.DataFrame({name: [] for name in schema}, schema=schema)
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
        for session in made:
            key = (session.session, session.agent, session.started, session.ended, session.units, *_spent(session))
            if key in seen:
                repeated += 1
                continue
            seen.add(key)
            sessions.append(session)
    return Stored(basis or Basis("latest"), sessions, repeated)


def _told(basis: Basis) -> str:
    return f"ruleset {basis.ruleset}, scope {basis.scope.value}, arm {basis.arm.value}"


def _written(text: str | None) -> str | None:
    return None if text is None else written(text)


def _spent(session: SessionProfile) -> tuple[object, ...]:
    return tuple(asdict(session.spent).values())


def _read_one(path: str) -> tuple[Basis | None, list[SessionProfile]]:
    import polars as pl

    hint = "make it with loopscan tune --profiles-out"
    try:
        frame = pl.read_parquet(Path(path).read_bytes())
        if "schema" not in frame.columns:
            raise InputError(path, f"is no file of profiles; {hint}")
        names = set(frame.get_column("schema").to_list())
        if not names <= {SCHEMA}:
            raise InputError(path, f"holds profiles of another version of loopscan ({SCHEMA} is known); {hint}")
        rows = frame.to_dicts()
        bases = {Basis(row["ruleset"], ScopeRule(row["scope"]), Arm(row["arm"])) for row in rows}
        if len(bases) > 1:
            raise InputError(path, f"holds profiles that were not made alike; {hint}")
        return (bases.pop() if bases else None), [_session(row) for row in rows]
    except OSError as error:
        raise InputError(path, error.strerror or "cannot be read") from error
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        raise InputError(path, f"is no complete file of profiles; {hint}") from error


def _session(row: dict[str, Any]) -> SessionProfile:
    units = tuple(
        UnitProfile(steps.encode(), tuple(runs))
        for steps, runs in zip(row["units"] or (), row["unit_runs"] or (), strict=True)
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
        orjson.loads(row["run_numbers"]),
        units,
        row["torn"],
    )
