"""Reports and baselines made up for the tests of baselines."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from hypothesis import strategies as st

from loopscan.checks.baseline.data import Baseline, Checked, KnownMark, KnownSession, Settings
from loopscan.checks.baseline.ignores import Ignore
from loopscan.events import Where
from loopscan.fingerprints import Content
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.report import Report, SessionReport
from tests.reports import samples

TODAY = date(2026, 11, 30)

# Two halves of one character side by side are one character to JSON: no reader gives them apart.
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
hostile = st.text(st.characters(exclude_categories=()), max_size=12).filter(lambda text: not _HALVES.search(text))
counts = st.integers(1, 40)
counting_kinds = st.sampled_from([kind for kind in Kind if kind is not Kind.GUARD_ARMED])


def mark(kind: Kind = Kind.WARNING, batch: int = 10, count: int = 10, **fields: Any) -> Mark:
    return samples.mark(kind, batch, count, **fields)


def session(*marks: Mark, name: str = "s-1", calls: int = 40, **fields: Any) -> SessionReport:
    return samples.session(samples.run(*map(samples.shown, marks), calls=calls), name=name, **fields)


def report(*sessions: SessionReport, **fields: Any) -> Report:
    return samples.report(*sessions, **fields)


@st.composite
def marks(draw: st.DrawFn) -> Mark:
    """Marks of few contents, so that equal ones are met, at any place."""
    names = st.sampled_from(["read", "exec"])
    return mark(
        draw(counting_kinds),
        draw(st.integers(0, 99)),
        draw(st.sampled_from([10, 20])),
        detector=draw(st.sampled_from([Detector.GENERIC_REPEAT, Detector.PING_PONG])),
        level=draw(st.sampled_from([Level.WARNING, Level.CRITICAL])),
        tool=draw(st.none() | names),
        paired_tool=draw(st.none() | names),
        signature=draw(st.none() | st.sampled_from(["5a1e", "0b0e"])),
        outcome=draw(st.none() | st.sampled_from(["77c0", "1c1c"])),
        where=draw(places),
        tool_call_id=draw(st.none() | hostile),
        message=draw(hostile),
    )


places = st.builds(
    Where, line=st.integers(0, 999), entry=st.none() | hostile, time=st.none() | st.floats(0, 1e9, allow_nan=False)
)


@st.composite
def sessions(draw: st.DrawFn) -> SessionReport:
    found = draw(st.lists(marks(), max_size=5))
    name = draw(st.sampled_from(["s-1", "s-2", "s-3"]))
    source = draw(st.sampled_from(["a.jsonl", "b/a.jsonl", "b/c.jsonl"]))
    return session(*found, name=name, calls=draw(counts), source=source)


reports = st.lists(sessions(), max_size=4).map(lambda found: report(*found))

_contents = st.builds(
    Content,
    hostile,
    counting_kinds,
    st.sampled_from(Detector),
    st.sampled_from(Level),
    st.none() | counts,
    *([st.none() | hostile] * 4),
)
_values = st.dictionaries(hostile, st.none() | st.booleans() | st.integers(-5, 2**40), max_size=3)
_whole = st.integers(0, 2**40)

ignores = st.builds(
    Ignore,
    st.fixed_dictionaries(
        {"tool": hostile},
        optional={"kind": counting_kinds, "count": counts, "session": hostile, "source": hostile},
    ),
    hostile.filter(str.strip),
    st.dates(),
    st.permutations(["match", "reason", "until"]).map(tuple),
)
baselines = st.builds(
    Baseline,
    hostile,
    st.builds(Settings, hostile, hostile, hostile, hostile, _values, st.dictionaries(hostile, _values, max_size=2)),
    st.builds(Checked, _whole, _whole, _whole, _whole),
    st.lists(ignores, max_size=3).map(tuple),
    st.lists(st.builds(KnownMark, _contents, counts, hostile), max_size=5, unique_by=lambda known: known.about).map(
        tuple
    ),
    st.lists(st.builds(KnownSession, hostile, _whole, hostile), max_size=5, unique_by=lambda known: known[0]).map(
        tuple
    ),
)
