"""Makes fixtures/tuning/nights.parquet: profiles of 260 invented nights, for the documentation of ``loopscan tune``.

From the repository's folder: python -m tools.nights
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from loopscan.events import SessionEnded, Where
from loopscan.modes import Mode
from loopscan.rulesets import ruleset
from loopscan.sessions import Options, SessionReplay
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.settings import Setting
from loopscan.tuning.store import write
from tests.statistics.made import Kind, Loop, Turnout, make

PATH = Path(__file__).parents[1] / "fixtures" / "tuning" / "nights.parquet"
RULESET = "2026.6"
NIGHTS = 260
_AGENTS = ("builder", "scribe")


def profiles() -> Iterator[SessionProfile]:
    """Yield the profiles: polls that finish, loops that are stuck until somebody aborts them, and plain work."""
    random = Random(20)
    options = Options(Setting().policy(ruleset(RULESET)), mode=Mode.OBSERVE, previews=False, profiles=True)
    for night in range(NIGHTS):
        made = make(f"night-{night:03}", random.getrandbits(32), random.randint(4, 20), _loops(random), repeats=False)
        started = replace(made.started, agent=random.choice(_AGENTS))
        replay = SessionReplay(f"nights/{made.name}.jsonl", started, options)
        for event in made.events:
            replay.feed(event)
        profile = replay.finish(SessionEnded(Where())).profile
        if profile is not None:
            yield profile


def _loops(random: Random) -> list[Loop]:
    what = random.random()
    if what < 0.4:
        return [Loop(Kind.POLL, random.randint(5, 13), Turnout.FINISHES)]
    if what < 0.7:
        kind = random.choice((Kind.POLL, Kind.SAME, Kind.SWING))
        return [Loop(kind, random.randint(22, 50), Turnout.ABORTED)]
    if what < 0.75:
        return [Loop(Kind.SAME, random.randint(30, 45), Turnout.GIVEN_UP)]
    return []


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    write(str(PATH), Basis(RULESET), profiles())
