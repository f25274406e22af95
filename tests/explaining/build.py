"""Explains sessions that are told as events, without a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopscan.configfile import load_policy
from loopscan.engine.session import SessionEngine
from loopscan.events import SessionEnded, SessionEvent, SessionStarted, Where
from loopscan.explaining.wanted import Wanted
from loopscan.explaining.watcher import Explained, Watcher
from loopscan.marks import Mark
from loopscan.modes import Mode, ScopeRule
from loopscan.sessions import Options, SessionReplay


def options(
    rules: str = "2026.9", *, mode: Mode = Mode.ENFORCE, scope: ScopeRule = ScopeRule.RUN, **settings: Any
) -> Options:
    """Return the options of a replay; ``settings`` are fields of the configuration, ``_`` standing for a dot."""
    overrides = {name.replace("_", "."): value for name, value in settings.items()}
    return Options(load_policy(rules, overrides=overrides), mode=mode, scope=scope)


def explained(
    events: Sequence[SessionEvent], asked: Options, wanted: Wanted | None = None
) -> tuple[list[Explained], list[Mark]]:
    """Return the answers for a session, and the marks that its replay makes."""
    watchers: list[Watcher] = []

    def observing(started: SessionStarted, engine: SessionEngine) -> Watcher:
        watchers.append(Watcher("s.jsonl", started, engine, asked, wanted or Wanted()))
        return watchers[0]

    replaying = SessionReplay("s.jsonl", SessionStarted("s", Where()), asked, observing)
    marks = [mark for event in events for mark in replaying.feed(event)]
    replaying.finish(SessionEnded(Where()))
    return list(watchers[0].explained()), marks
