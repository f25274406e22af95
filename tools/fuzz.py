"""Damage the fixtures again and again and read them: ``python tools/fuzz.py --count 100000 --seed 1``.

What must hold is in ``tests/fuzz/subject.py``; CI tries the first few seeds of each fixture.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.fuzz.subject import Subject, fixtures


def main() -> int:
    """Try out the seeds and print what failed; the exit code is 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many damaged transcripts to try")
    parser.add_argument("--seed", type=int, default=1_000, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args()
    subjects = fixtures()
    rounds = -(-chosen.count // len(subjects))
    work = [(fixture, chosen.seed + number) for number in range(rounds) for fixture in subjects][: chosen.count]
    began = time.monotonic()
    failed: Counter[str] = Counter()
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for done, (subject, fault) in enumerate(pool.map(_try_out, work, chunksize=50), 1):
            if fault is not None:
                where = fault.strip().splitlines()
                failed[where[-1]] += 1
                if failed[where[-1]] <= 3:
                    print(f"{subject[0].name} seed {subject[1]}\n{fault}", flush=True)
            if done % 5000 == 0:
                print(f"{done} tried, {failed.total()} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(work)} damaged transcripts of {len(subjects)} fixtures: {failed.total()} failed")
    for message, count in failed.most_common(20):
        print(f"{count:6} {message[:200]}")
    return 1 if failed else 0


def _try_out(subject: tuple[Path, int]) -> tuple[tuple[Path, int], str | None]:
    with tempfile.TemporaryDirectory() as folder:
        try:
            Subject(*subject).try_out(Path(folder))
        except Exception:  # noqa: BLE001 - whatever it is, it is what we look for
            return subject, traceback.format_exc(limit=-6)
    return subject, None


if __name__ == "__main__":
    sys.exit(main())
