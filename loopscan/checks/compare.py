"""A replay against what it must meet: every difference, with what was expected, what was found, and why."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from loopscan.checks.marks import (
    FoundMark,
    Row,
    changes,
    expected_rows,
    found_marks,
    pattern_words,
    sizes,
    title,
    words,
)
from loopscan.checks.reasons import why_found, why_missing, why_none_meets
from loopscan.checks.schema import AtLeast, AtMost, Counts, Expect, First, NotReached, Pattern, RunIs, Snapshot
from loopscan.marks import Level
from loopscan.report import Report, RunReport, SessionReport
from loopscan.reports.phrases import counted
from loopscan.sanitize import clean
from loopscan.sanitize import name as shown

#: How many changes of a mark its headline tells, and how many damaged lines a reason.
_CHANGES: Final = 4
_DAMAGE: Final = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as expected."""

    rule: str
    """``unexpected_mark``, ``missing_mark``, ``changed_mark`` or ``failed_assertion``."""
    about: str
    """The mark in a few words, or the assertion: what stays the same while numbers change."""
    sentence: str
    """What is wrong, in one line."""
    expected: str | None = None
    found: str | None = None
    why: str | None = None
    """The engine's reason for what was found, or why it has none."""
    session: str | None = None
    run: int | None = None
    batch: int | None = None
    """Of a mark: the one at which it is, or was expected."""
    source: str | None = None
    """The transcript that the session is in."""
    line: int | None = None
    """In the source, where that is known."""


def compare(report: Report, snapshot: Snapshot | None, expect: Expect | None) -> list[Difference]:
    """Return how ``report`` differs from a snapshot and from assertions; nothing if it meets both."""
    found = found_marks(report)
    differences: list[Difference] = []
    if snapshot is not None:
        differences += _counts(report, snapshot)
        places = {session.session: place for place, session in enumerate(report.sessions)}
        differences += sorted(
            _snapshot(expected_rows(snapshot), found, report),
            key=lambda each: (places.get(each.session or "", len(places)), each.run or 0, each.batch or 0),
        )
    if expect is not None:
        differences += _assertions(expect, found, report)
    return differences


# -- snapshots ----------------------------------------------------------------------------------


def _snapshot(expected: list[Row], found: list[FoundMark], report: Report) -> Iterator[Difference]:
    """Pair equal marks, then those of the same kind and detector in the same run, in their order."""
    left = Counter(_key(row) for row in expected)
    extra: list[FoundMark] = []
    for mark in found:
        if left[key := _key(mark.row)] > 0:
            left[key] -= 1
        else:
            extra.append(mark)
    lacking: list[Row] = []
    for row in reversed(expected):  # the last ones of equal marks are those that are missing
        if left[key := _key(row)] > 0:
            left[key] -= 1
            lacking.append(row)
    lacking.reverse()
    if not extra and not lacking:
        if [_key(row) for row in expected] != [_key(mark.row) for mark in found]:
            yield Difference("changed_mark", "order", "the marks are the same, but in another order")
        return
    twins = _twins(lacking, extra)
    for row in lacking:
        twin = twins.get(id(row))
        yield _missing(row, report) if twin is None else _changed(row, twin, report)
    paired = {id(twin) for twin in twins.values()}
    for mark in extra:
        if id(mark) not in paired:
            yield _unexpected(mark, report)


def _twins(lacking: list[Row], extra: list[FoundMark]) -> dict[int, FoundMark]:
    """Return, by the identity of a missing mark, the one that took its place: the next of its loop in that run."""
    waiting: dict[Hashable, deque[FoundMark]] = defaultdict(deque)
    for mark in extra:
        waiting[_loop(mark.row)].append(mark)
    return {id(row): waiting[_loop(row)].popleft() for row in lacking if waiting[_loop(row)]}


def _key(row: Row) -> Hashable:
    return tuple(sorted(row.items()))


def _loop(row: Row) -> Hashable:
    return row["session"], row["run"], row["kind"], row["detector"], row.get("signature")


def _missing(row: Row, report: Report) -> Difference:
    there = any(session.session == row["session"] for session in report.sessions)
    return Difference(
        "missing_mark",
        title(row),
        f"missing: {title(row)}",
        expected=words(row) if there else f"{words(row)} · session {shown(row['session'], 60)}",
        found="no such mark",
        why=why_missing(row, report),
        session=row["session"],
        run=row["run"],
        batch=row["batch"],
    )


def _unexpected(mark: FoundMark, report: Report) -> Difference:
    what = title(mark.row)
    return _at(mark, report, "unexpected_mark", what, f"unexpected: {what}", "no such mark", words(mark.row))


def _changed(row: Row, mark: FoundMark, report: Report) -> Difference:
    changed = list(changes(row, mark.row))
    expected, found = words(row), words(mark.row)
    if expected == found:  # what differs is not among what is shown of a mark
        expected = " · ".join([expected, *(f"{name} {before}" for name, before, _ in changed)])
        found = " · ".join([found, *(f"{name} {after}" for name, _, after in changed)])
    told = ", ".join(f"{name} {before} → {after}" for name, before, after in changed[:_CHANGES])
    return _at(mark, report, "changed_mark", title(row), f"changed: {title(row)}: {told}", expected, found)


def _at(
    mark: FoundMark, report: Report, rule: str, about: str, sentence: str, expected: str, found: str
) -> Difference:
    """Return a difference that is seen at a mark of the replay."""
    return Difference(
        rule,
        about,
        sentence,
        expected,
        found,
        why_found(mark, report),
        mark.session.session,
        mark.run.run,
        mark.mark.batch,
        mark.session.source,
        mark.mark.where.line or None,
    )


# -- assertions ---------------------------------------------------------------------------------


def _assertions(expect: Expect, found: list[FoundMark], report: Report) -> Iterator[Difference]:
    if expect.counts is not None:
        yield from _counts(report, expect.counts)
    if expect.exact is not None:
        yield from _exact(expect.exact, found, report)
    for pattern in expect.none or ():
        yield from _none(pattern, found, report)
    for least in expect.at_least or ():
        yield from _at_least(least, found, report)
    for most in expect.at_most or ():
        yield from _at_most(most, found, report)
    if expect.first is not None:
        yield from _first(expect.first, found, report)
    for run in expect.outcomes or ():
        yield from _outcomes(run, report)
    if expect.not_reached is not None:
        yield from _figures(expect.not_reached, report)


def _exact(patterns: list[Pattern], found: list[FoundMark], report: Report) -> Iterator[Difference]:
    for number, (pattern, mark) in enumerate(zip(patterns, found, strict=False), 1):
        if not mark.meets(pattern):
            sentence = f"exact: mark {number} is another one"
            yield _at(mark, report, "changed_mark", "exact", sentence, pattern_words(pattern), words(mark.row))
    for number, pattern in enumerate(patterns[len(found) :], len(found) + 1):
        sentence = f"exact: mark {number} is missing"
        why = why_none_meets(pattern, report)
        yield Difference("missing_mark", "exact", sentence, pattern_words(pattern), "no further mark", why)
    for mark in found[len(patterns) :]:
        yield _unexpected(mark, report)


def _none(pattern: Pattern, found: list[FoundMark], report: Report) -> Iterator[Difference]:
    for mark in found:
        if mark.meets(pattern):
            yield _unexpected(mark, report)


def _at_least(least: AtLeast, found: list[FoundMark], report: Report) -> Iterator[Difference]:
    count = sum(mark.meets(least) for mark in found)
    if count < least.times:
        yield Difference(
            "failed_assertion",
            "at_least",
            f"at_least: {counted(count, 'mark')} instead of {least.times}",
            f"at least {least.times}: {pattern_words(least)}",
            str(count),
            why_none_meets(least, report) if not count else None,
        )


def _at_most(most: AtMost, found: list[FoundMark], report: Report) -> Iterator[Difference]:
    met = [mark for mark in found if mark.meets(most)]
    if len(met) > most.times:
        over = met[most.times]
        yield _at(
            over,
            report,
            "failed_assertion",
            "at_most",
            f"at_most: {counted(len(met), 'mark')} instead of {most.times}",
            f"at most {most.times}: {pattern_words(most)}",
            f"{len(met)}; the first beyond is {words(over.row)}",
        )


def _first(first: First, found: list[FoundMark], report: Report) -> Iterator[Difference]:
    def counts(mark: FoundMark) -> bool:
        return mark.mark.level is not Level.INFO if first.of is None else mark.meets(first.of)

    mark = next((mark for mark in found if counts(mark)), None)
    if mark is None:
        sentence = "first: there is no such mark"
        why = why_none_meets(first, report)
        yield Difference("failed_assertion", "first", sentence, pattern_words(first), "no such mark", why)
    elif not mark.meets(first):
        sentence = "first: the first mark is another one"
        yield _at(mark, report, "failed_assertion", "first", sentence, pattern_words(first), words(mark.row))


def _outcomes(wanted: RunIs, report: Report) -> Iterator[Difference]:
    met = 0
    for session in report.sessions:
        if wanted.session is not None and session.session not in wanted.session:
            continue
        for run in session.runs:
            if wanted.run is not None and run.run != wanted.run:
                continue
            met += 1
            if run.outcome not in wanted.outcome:
                end = next((mark for mark in reversed(run.marks) if mark.kind == run.outcome), None)
                yield Difference(
                    "failed_assertion",
                    "outcomes",
                    f"outcomes: run {run.run} came to another end",
                    " or ".join(wanted.outcome),
                    run.outcome,
                    shown(end.message, 400) if end is not None else None,
                    session.session,
                    run.run,
                    source=session.source,
                    line=end.where.line or None if end is not None else None,
                )
    if not met:
        sentence = "outcomes: there is no such run"
        yield Difference("failed_assertion", "outcomes", sentence, " or ".join(wanted.outcome), "no run")


def _figures(wanted: NotReached, report: Report) -> Iterator[Difference]:
    found = report.count().not_reached.to_dict()
    for name in NotReached.model_fields:
        figure = getattr(wanted, name)
        if figure is not None and abs(found[name] - figure.value) > figure.slack():
            within = f" within {figure.within}" if figure.within is not None else ""
            yield Difference(
                "failed_assertion",
                f"not_reached {name}",
                f"not_reached: {found[name]:,} {name}",
                f"{name} {figure.value:,.10g}{within}",
                f"{name} {found[name]:,}",
            )


def _counts(report: Report, wanted: Counts | Snapshot) -> Iterator[Difference]:
    found = {**sizes(report), "problems": report.problems}
    why = damage(report) or "the transcript is another one, or it is read in another way"
    for name, count in found.items():
        expected: int | None = getattr(wanted, name, None)
        if expected is not None and expected != count:
            yield Difference(
                "failed_assertion",
                f"counts {name}",
                f"the transcript has {counted(count, name[:-1])}, not {expected}",
                f"{name} {expected}",
                f"{name} {count}",
                why,
            )


def damage(report: Report) -> str | None:
    """Return the first problems with the lines of the transcript."""
    problems = [(source.path, problem) for source in report.sources for problem in source.problems]
    if not problems:
        return None
    told = [f"{clean(path)}:{problem.line}: {clean(problem.kind)}" for path, problem in problems[:_DAMAGE]]
    more = len(problems) - len(told)
    return f"problems with the record: {', '.join(told)}" + (f" and {more} more" if more else "")


def runs_of(differences: list[Difference], report: Report) -> Iterator[tuple[SessionReport, list[RunReport]]]:
    """Yield the sessions that differences are about, in order, each with its runs that they are about."""
    about = {(each.session, each.run) for each in differences}
    for session in report.sessions:
        runs = [run for run in session.runs if (session.session, run.run) in about]
        if runs:
            yield session, runs
