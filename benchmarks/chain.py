"""How often the promise is kept from sessions to choice, and what the figures of held-out sessions are worth.

Sessions are made with what their loops truly are, profiled and swept; corpora are drawn from them.
From the repository's folder: python -m benchmarks.chain
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loopscan.tuning.labels import Label
from tests.statistics.chain import CERTAIN, GRID, GROUPS, Outcome, Pool, demand_of, outcome, populations

EACH = 100
"""Sessions of every group."""
CORPORA = 10_000
SESSIONS = (60, 100, 200, 400, 800)
MAX_RATE = 0.05
CONFIDENCE = 0.95

EXPLANATION = """
at risk          sessions that the choice is made on and that can be judged, on average
promise broken   the recommended setting blocks falsely more often by the labels: no more than 1 - confidence
any wrong        some setting was let through that does; no more than that, either
truly            the recommended setting does so by what the loops truly are: promised only where labels are right
recommended      how often there is a recommendation at all
saved            on average, of what the best setting saves that keeps the promise; - where none does
held out         the held-out rate of false blocks less the exact one, in points: nothing but chance
in sample        the same of the sessions that the choice was made on: it flatters
"""
HEAD = (
    f"{'':28} {'':>8} {'at':>6}  {'promise':>8} {'any':>7} {'':>7}  {'recom-':>7} {'':>6}  {'held':>14} {'in':>14}\n"
    f"{'population':28} {'sessions':>8} {'risk':>6}  {'broken':>8} {'wrong':>7} {'truly':>7}  {'mended':>7} "
    f"{'saved':>6}  {'out':>14} {'sample':>14}"
)


def row(found: Outcome) -> str:
    """Return one line of the table."""
    return (
        f"{found.population:28} {found.sessions:>8} {found.at_risk:>6.1f}  {found.broken:>8.2%}"
        f" {found.any_wrong:>7.2%} {found.truly_broken:>7.2%}  {found.recommended:>7.1%}"
        f" {'-' if found.saved is None else format(found.saved, '.0%'):>6}"
        f"  {_apart(found.held_out):>14} {_apart(found.in_sample):>14}"
    )


def _apart(figures: tuple[float, float]) -> str:
    mean, error = figures
    return f"{100 * mean:+.2f} ± {100 * error:.2f}" if error else "-"


def labels(pool: Pool) -> None:
    """Print how often the labels of the rules are the true ones, by group."""
    counted = Counter(pool.labels)
    print(f"\n{'incidents of sessions where it':28} {'':>8} {'right':>7} {'wrong':>7} {'unknown':>7}")
    for group in GROUPS:
        found = {pair: count for pair, count in counted.items() if pair[0] == group}
        if found:
            total = sum(found.values())
            right = sum(count for (_, ruled, true), count in found.items() if ruled is true)
            unknown = sum(count for (_, ruled, _), count in found.items() if ruled is Label.UNKNOWN)
            told = " ".join(f"{each / total:>7.0%}" for each in (right, total - right - unknown, unknown))
            print(f"{group:28} {total:>8} {told}{'' if group in CERTAIN else '  (the record misleads)'}")


def show(pool: Pool, corpora: int, sizes: Sequence[int]) -> None:
    """Print the tables."""
    print(
        f"No more than {MAX_RATE:.0%} false blocks, at {CONFIDENCE:.0%} confidence; {corpora:,} corpora a line, ",
        end="",
    )
    print(f"of {len(pool.profiles):,} made sessions; {len(GRID.settings)} settings.")
    labels(pool)
    print(EXPLANATION)
    print(HEAD)
    for population in populations(pool, MAX_RATE):
        for sessions in sizes:
            print(row(outcome(population, sessions, corpora, demand_of(MAX_RATE, CONFIDENCE), seed=sessions)))


if __name__ == "__main__":
    show(Pool(EACH, seed=20260301), CORPORA, SESSIONS)
