"""Every answer of a sweep is that of a real replay in enforce mode with those thresholds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import SessionEnded, SessionEvent, SessionStarted, Where
from loopscan.marks import Kind, Mark
from loopscan.modes import Mode, ScopeRule
from loopscan.report import SessionReport
from loopscan.rulesets import RULESETS, ruleset
from loopscan.sessions import Options, SessionReplay
from loopscan.tuning.courses import Judge
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.settings import Grid, Setting
from loopscan.tuning.steps import play
from loopscan.tuning.sweep import Sweeper
from tests.tuning.sessions import sessions

AXES: dict[str, tuple[Any, ...]] = {
    "enabled": (False, None, True),
    "history_size": (6, 30),
    "warning": (5, 7),
    "critical": (6, 8, 12),
    "breaker": (7, 9, 14),
    "unknown_tool": (5, 8),
    "generic_repeat": (True, False),
    "known_poll": (True, False),
    "ping_pong": (True, False),
    "guard_window": (2, 3),
}


def replayed(events: list[SessionEvent], options: Options) -> SessionReport:
    """Replay events as the command does."""
    replay = SessionReplay("s.jsonl", SessionStarted("s", Where(0)), options)
    for event in events:
        replay.feed(event)
    return replay.finish(SessionEnded(Where(0)))


def profile_of(events: list[SessionEvent], name: str, scope: ScopeRule) -> SessionProfile:
    policy = Setting().policy(ruleset(name))
    profile = replayed(events, Options(policy, mode=Mode.OBSERVE, scope=scope, previews=False, profiles=True)).profile
    assert profile is not None
    return profile


def told(mark: Mark) -> tuple[object, ...]:
    """Return what has to agree of a mark that is no warning: all but the threshold that it names."""
    known = (mark.run, mark.kind, mark.detector, mark.level, mark.batch, mark.call, mark.tool, mark.paired_tool)
    return (*known, mark.count, mark.lossy, mark.blocked_calls, mark.where.line, mark.where.time)


@pytest.mark.parametrize("name", RULESETS)
@settings(max_examples=25)
@given(data=st.data(), events=sessions(), scope=st.sampled_from(ScopeRule))
def test_every_setting_comes_to_what_a_replay_with_it_comes_to(
    name: str, data: st.DataObject, events: list[SessionEvent], scope: ScopeRule
) -> None:
    rules, basis = ruleset(name), Basis(name, scope)
    grid = Grid(AXES)
    sweeper = Sweeper(grid, rules, basis)
    profile = profile_of(events, name, scope)
    chosen = data.draw(st.lists(st.integers(0, len(grid.settings) - 1), min_size=3, max_size=3, unique=True))
    answered: dict[int, list[Any]] = {place: [] for place in chosen}
    for unit in profile.units:
        for path, covered in sweeper.courses(list(play(unit.read()))):
            for place in set(covered.tolist()) & answered.keys():
                answered[place].append((path, *path.warnings(grid.settings[place].policy(rules))))
    answers = sweeper.session(profile)
    answers.judge(Judge())
    for place, units in answered.items():
        assert len(units) == len(profile.units)
        report = replayed(events, Options(grid.settings[place].policy(rules), scope=scope, previews=False))
        marks = [mark for _, mark in report.marks()]
        stepping = sorted((told(mark) for mark in marks if mark.kind is not Kind.WARNING), key=repr)
        assert sorted((told(mark) for path, _, _ in units for mark in path.marks), key=repr) == stepping
        warned = Counter((m.run, m.detector, m.count, m.call, m.tool) for m in marks if m.kind is Kind.WARNING)
        assert sum(len(emitted) for _, emitted, _ in units) == warned.total()
        assert Counter(
            (seen.run, found.detector, found.count) for _, emitted, _ in units for seen, found in emitted
        ) == Counter((run, detector, count) for run, detector, count, _, _ in warned.elements())
        assert sum(suppressed for _, _, suppressed in units) == sum(run.suppressed_warnings for run in report.runs)
        not_reached = {key: run.not_reached for path, _, _ in units for key, run in path.runs.items()}
        numbers = profile.run_numbers
        assert {numbers[key]: saved for key, saved in not_reached.items() if saved.calls or saved.responses} == {
            run.run: run.not_reached for run in report.runs if run.not_reached.calls or run.not_reached.responses
        }
        assert sum(int(unit.warnings[place]) for unit in answers.units) == warned.total()
