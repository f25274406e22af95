"""What answering many settings costs: made sessions, profiled once, then swept; in ratios to replaying them.

From the repository's folder: python -m benchmarks.tuning --calls 1000000 --loops 0.01
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from loopscan.events import SessionEnded, Where
from loopscan.modes import Mode
from loopscan.rulesets import Ruleset, ruleset
from loopscan.sessions import Options, SessionReplay
from loopscan.tuning import store
from loopscan.tuning.courses import Judge
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.settings import Grid, Setting, axes_for
from loopscan.tuning.sweep import Sweeper, answer
from loopscan.tuning.totals import Totals
from tests.statistics.made import Made, corpus

_Found = TypeVar("_Found")
TRIED = (
    "warningThreshold=5,6,8,10,12,15,18,20",
    "criticalThreshold=8,10,12,15,18,20,25,30,40,50,60",
    "unknownToolThreshold=5,10,15,20",
)
"""What is tried besides the usual, so that there are more than 10,000 settings."""
SAMPLE = 4
"""As many settings are replayed for real, on a tenth of the sessions each."""


def spent(work: Callable[[], _Found]) -> tuple[_Found, float, float]:
    """Return what ``work`` returns, and the seconds of processor time, child processes included, and of the clock."""
    before, start = os.times(), time.perf_counter()
    found = work()
    after, end = os.times(), time.perf_counter()
    return found, sum(after[:4]) - sum(before[:4]), end - start


def replay(sessions: Iterable[Made], options: Options) -> list[SessionProfile]:
    """Replay sessions, and return their profiles if that is what the options ask for."""
    profiles = []
    for made in sessions:
        replaying = SessionReplay(f"{made.name}.jsonl", made.started, options)
        for event in made.events:
            replaying.feed(event)
        profile = replaying.finish(SessionEnded(Where())).profile
        if profile is not None:
            profiles.append(profile)
    return profiles


def profiled(calls: int, share: float, rules: Ruleset, seed: int) -> tuple[list[SessionProfile], dict[str, float]]:
    """Make sessions and profile them, a few at a time, and return the profiles and what was measured."""
    policy = Setting().policy(rules)
    profiling = Options(policy, mode=Mode.OBSERVE, previews=False, profiles=True)
    observing = Options(policy, mode=Mode.OBSERVE, previews=False)
    random, grid = Random(seed), Grid(axes_for(rules, [Setting()], TRIED))
    enforcing = [Options(random.choice(grid.settings).policy(rules), previews=False) for _ in range(SAMPLE)]
    measured = dict.fromkeys(("sessions", "calls", "looping", "profiling", "observing", "replaying"), 0.0)
    profiles: list[SessionProfile] = []
    group: list[Made] = []

    def take() -> None:
        measured["sessions"] += len(group)
        measured["calls"] += sum(made.calls for made in group)
        measured["looping"] += sum(made.looping for made in group)
        found, cpu, _ = spent(partial(replay, group, profiling))
        profiles.extend(found)
        measured["profiling"] += cpu
        measured["observing"] += 10 * spent(partial(replay, group[::10], observing))[1]
        for options in enforcing:
            measured["replaying"] += 10 * spent(partial(replay, group[::10], options))[1] / SAMPLE
        group.clear()

    for made in corpus(calls, share, seed):
        group.append(made)
        if len(group) >= 500:
            take()
    if group:
        take()
    return profiles, measured


def sweep(profiles: Sequence[SessionProfile], sweeper: Sweeper, jobs: int, naive: float | None) -> None:
    """Answer all settings on profiles, and print what that took."""
    settings = len(sweeper.grid.settings)
    answers, cpu, clock = spent(lambda: answer(profiles, sweeper, Judge(), jobs=jobs))
    totals, summing, _ = spent(lambda: Totals(answers, profiles, settings))
    courses = sum(len(unit.courses) for each in answers for unit in each.units)
    print(f"sweep, {jobs} process{'es' if jobs > 1 else '  '} {cpu:8.1f} s processor, {clock:.1f} s clock", end="")
    print(f"; sums {summing:.1f} s; {courses:,} courses, {totals.at_risk:,} sessions at risk")
    if naive is not None:
        print(f"                   {naive * settings / cpu:8,.0f} times as fast as {settings:,} replays")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--loops", type=float, default=0.01, help="the share of calls that are in loops")
    parser.add_argument("--ruleset", default="2026.6")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--keep", help="a file of profiles: read if it is there, else written")
    asked = parser.parse_args()
    rules = ruleset(asked.ruleset)
    basis = Basis(rules.name)
    naive = None
    if asked.keep and Path(asked.keep).exists():
        profiles = store.read([asked.keep]).sessions
    else:
        profiles, seen = profiled(asked.calls, asked.loops, rules, asked.seed)
        naive = seen["replaying"]
        print(f"{seen['calls']:,.0f} calls in {seen['sessions']:,.0f} sessions, ", end="")
        print(f"{seen['looping'] / seen['calls']:.1%} of them in loops; ruleset {rules.name}")
        each = 1e6 / seen["calls"]
        print(
            f"plain replay       {seen['observing'] * each:8.1f} us a call (observed), {naive * each:.1f} (enforced)"
        )
        ratio = seen["profiling"] / seen["observing"]
        print(f"profiling          {seen['profiling'] * each:8.1f} us a call, {ratio:.2f} times the observed replay")
        with tempfile.TemporaryDirectory() as folder:
            path = asked.keep or str(Path(folder) / "profiles.parquet")
            _, cpu, _ = spent(lambda: store.write(path, basis, profiles))
            size = Path(path).stat().st_size
            print(f"profiles           {size * each / 1e6:8.1f} MB per million calls, written in {cpu:.1f} s")
            _, cpu, _ = spent(lambda: store.read([path]))
            print(f"                            read in {cpu:.1f} s")
    units = sum(len(profile.units) for profile in profiles)
    kept = sum(profile.spent.calls for profile in profiles if profile.units)
    grid = Grid(axes_for(rules, [Setting()], TRIED))
    settings = len(grid.settings)
    print(f"kept               {units:8,} units, in sessions with {kept:,} calls; {settings:,} settings")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory so far      {memory:8.0f} MB")
    for jobs in asked.jobs:
        sweep(profiles, Sweeper(grid, rules, basis), jobs, naive)
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(f"memory at most     {peak:8.0f} MB in one process")


if __name__ == "__main__":
    main()
