"""How often the promise about false blocks is kept, and how often there is a recommendation, by simulation.

From the repository's folder: python -m benchmarks.promise
"""

from __future__ import annotations

from tests.statistics.corpora import Outcome, populations, simulate

CORPORA = 10_000
SESSIONS = (20, 60, 100, 200, 500)
MAX_RATE = 0.05
CONFIDENCE = 0.95

EXPLANATION = """
promise broken   the recommended setting blocks falsely more often than that; to be no more than 1 - confidence
any wrong        some setting was let through that does; to be no more than that, either
lowest rate      how often the promise is broken by taking the lowest observed rate, of what saves something
observed rate    ... by taking what saves most at an observed rate that is low enough
tested alone     ... by taking what saves most and passes an exact test of its own, one of many
recommended      how often there is a recommendation at all
saved            on average, of what the best setting saves that keeps the promise; - where none does
"""

HEAD = (
    f"{'':34} {'sessions':>8}  {'promise':>8} {'any':>7}  {'lowest':>7} {'observed':>8} {'tested':>7}"
    f"  {'recom-':>7} {'':>7}\n"
    f"{'population':34} {'at risk':>8}  {'broken':>8} {'wrong':>7}  {'rate':>7} {'rate':>8} {'alone':>7}"
    f"  {'mended':>7} {'saved':>7}"
)


def row(outcome: Outcome) -> str:
    """Return one line of the table."""
    return (
        f"{outcome.population:34} {outcome.sessions:>8}  {outcome.broken:>8.2%} {outcome.any_wrong:>7.2%}"
        f"  {outcome.lowest_broken:>7.1%} {outcome.observed_broken:>8.1%} {outcome.each_broken:>7.1%}"
        f"  {outcome.recommended:>7.1%} {'-' if outcome.saved is None else format(outcome.saved, '.0%'):>7}"
    )


def main() -> None:
    """Print a table, a line for each population and number of sessions."""
    print(f"No more than {MAX_RATE:.0%} false blocks, at {CONFIDENCE:.0%} confidence; {CORPORA:,} corpora a line.")
    print(EXPLANATION)
    print(HEAD)
    for population in populations(MAX_RATE):
        for sessions in SESSIONS:
            print(row(simulate(population, sessions, CORPORA, MAX_RATE, CONFIDENCE)))


if __name__ == "__main__":
    main()
