"""What checking costs on top of replaying: 2,000 small transcripts, as ratios to replaying them one by one.

python benchmarks/checking.py
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from loopscan.checks.check import check
from loopscan.checks.schema import Settings
from loopscan.replayer import carry_out, plan

FILES = 2000
ROUNDS = 3
FOLDERS = ("detectors", "clean", "sessions", "guards", "batches", "sends", "compaction")


def make(folder: Path) -> list[str]:
    """Fill ``folder`` with copies of the fixtures, each with a snapshot beside it, and return the transcripts."""
    fixtures = Path(__file__).parents[1] / "fixtures"
    sources = [path for name in FOLDERS for path in sorted((fixtures / name).glob("*.jsonl"))]
    made = [folder / f"s{number:05d}.jsonl" for number in range(FILES)]
    for number, path in enumerate(made):
        shutil.copyfile(sources[number % len(sources)], path)
    check([str(folder)], over=Settings(ruleset="2026.9"), strict=True, update=True)
    return [str(path) for path in made]


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of processor time, those of child processes included, and of the clock."""
    before, start = os.times(), time.perf_counter()
    work()
    after, end = os.times(), time.perf_counter()
    return sum(after[:4]) - sum(before[:4]), end - start


def main() -> None:
    """Measure by turns, and print the medians as ratios."""
    with tempfile.TemporaryDirectory() as name:
        paths = make(Path(name))

        def alone() -> None:
            for path in paths:
                carry_out(plan([path], ruleset="2026.9", find_config=False, previews=False))

        ways = {
            "replayed one by one": alone,
            "checked, 1 process": lambda: check([name]),
            "checked, 2 processes": lambda: check([name], jobs=2),
        }
        times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, work in ways.items():
                times[way].append(spent(work))
        base = [statistics.median(each) for each in zip(*times["replayed one by one"], strict=True)]
        print(f"{FILES:,} transcripts; as ratios to replaying them one by one")
        for way, found in times.items():
            cpu, clock = (statistics.median(each) for each in zip(*found, strict=True))
            print(f"{way:22} processor {cpu / base[0]:.2f}  clock {clock / base[1]:.2f}")


if __name__ == "__main__":
    main()
