"""How far record and replay agree, as text: the answer first, then every disagreement with its likely cause."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Final, TextIO

from loopscan.fidelity.verify import Disagreement, Fidelity
from loopscan.reports.base import Options
from loopscan.reports.console import console, fields, grid, heading, print_parts, safe
from loopscan.reports.phrases import counted, kind_words, number

#: So many disagreements are told of unless all are asked for.
MOST: Final = 20
#: So few verdicts are little to go by.
FEW: Final = 5
_LINE: Final = 300


def headline(found: Fidelity) -> str:
    """Return the answer in one line."""
    tally = found.tally
    score = tally.score
    if score is None:
        return f"nothing to compare: no verdict of a live engine is on record in {counted(found.sessions, 'session')}"
    every = tally.agreed + tally.only_recorded + tally.only_replayed
    few = f", which is little to go by: fewer than {FEW}" if every < FEW else ""
    return (
        f"{_share(score)} agree: {number(tally.agreed)} of {counted(every, 'verdict')} in "
        f"{counted(found.judged, 'session')} with any on record{few}"
    )


def write(found: Fidelity, out: TextIO, options: Options) -> None:
    """Write the answer; with ``quiet`` without the single disagreements, with ``verbose`` all of them."""
    to = console(out, width=options.width, color=options.color)
    to.print(safe(headline(found), "bold"))
    table = fields()
    for label, words in _facts(found):
        table.add_row(safe(label), safe(words))
    to.print(table)
    if options.quiet or not found.disagreements:
        return
    causes = Counter(each.cause.value for each in found.disagreements)
    print_parts(to, [heading("Likely causes"), *(safe(f"{name}  {number(n)}") for name, n in causes.most_common())])
    rows = grid({}, {"ratio": 1})
    groups = [list(group) for _, group in groupby(found.disagreements, _alike)]
    for each, *more in groups if options.verbose else groups[:MOST]:
        what = _what(each) + (f", and {counted(len(more), 'more', 'more')} like it" if more else "")
        side = "only recorded" if each.recorded else "only replayed"
        rows.add_row(safe(side, "bold"), safe(what, limit=_LINE))
        rows.add_row(safe(""), safe(_where(each), "dim", _LINE))
        rows.add_row(safe(""), safe(f"{each.cause.value}: {each.why}", limit=_LINE))
    print_parts(to, [heading("Disagreements"), rows])
    rest = len(groups) - MOST
    if rest > 0 and not options.verbose:
        to.print(safe(f"… and {counted(rest, 'more disagreement')}; --verbose shows all", "dim"))


def _alike(each: Disagreement) -> tuple[object, ...]:
    """Return what is told of once: the same of one run, for the same reason."""
    told = (each.recorded.kind, each.recorded.detector) if each.recorded else (each.mark and each.mark.detector,)
    return (each.source, each.session, each.run, *told, each.cause, each.why)


def _facts(found: Fidelity) -> list[tuple[str, str]]:
    tally = found.tally
    made = []
    if found.used:
        used = ", ".join(f"{name} for {counted(count, 'session')}" for name, count in sorted(found.used.items()))
        made.append(("ruleset", used if found.asked is None else f"{found.asked}, as asked for"))
    scores = [
        f"{name} {'–' if tally.score is None else _share(tally.score)}" for name, tally in found.by_ruleset.items()
    ]
    made.append(("by ruleset", ", ".join(scores)))
    if tally.only_recorded:
        made.append(("recorded", f"{counted(tally.only_recorded, 'verdict')} that the replay has not"))
    if tally.only_replayed:
        made.append(("replayed", f"{counted(tally.only_replayed, 'intervention')} that the record has not"))
    if tally.not_reached:
        made.append(("not reached", f"{counted(tally.not_reached, 'verdict')} after the replay had ended the run"))
    if found.silent:
        words = "without any verdict on record, in which the replay steps in: detection may have been off"
        made.append(("silent", f"{counted(found.silent, 'session')} {words}"))
    if found.elsewhere:
        made.append(("elsewhere", f"{counted(found.elsewhere, 'recorded verdict')} of sessions that are not here"))
    return made


def guess_line(found: Fidelity) -> str:
    """Return which ruleset agrees best, in one line."""
    guess = found.guess()
    if guess is None:
        return "no ruleset can be guessed: no verdict of a live engine is on record"
    names, score = guess
    others = [f"{name} {_share(tally.score or 0.0)}" for name, tally in found.by_ruleset.items() if name not in names]
    tie = ", which tie" if len(names) > 1 else ""
    rest = f"; {', '.join(others)}" if others else ""
    return f"{' and '.join(names)}{tie}: {_share(score)} agree{rest}"


def _share(score: float) -> str:
    """Return a share in percent; 100 % only if it is all."""
    percent = min(99.9, round(100 * score, 1)) if score < 1 else 100
    return f"{percent:g} %"


def _what(each: Disagreement) -> str:
    recorded, mark = each.recorded, each.mark
    if recorded is not None:
        parts = [kind_words(recorded.kind), recorded.detector, recorded.tool]
        count = recorded.count
    elif mark is not None:
        parts, count = [kind_words(mark.kind.value), mark.detector.value, mark.tool], mark.count
    else:
        return ""
    told = " ".join(part for part in parts if part)
    return told if count is None else f"{told}, count {count}"


def _where(each: Disagreement) -> str:
    line = each.recorded.where.line if each.recorded is not None else each.mark.where.line if each.mark else 0
    place = f"{each.source}:{line}" if line else each.source
    run = f"run {each.run} of " if each.run is not None else ""
    return f"{place} · {run}{each.session} · ruleset {each.ruleset}"
