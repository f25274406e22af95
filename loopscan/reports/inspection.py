"""What an inspection found, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from loopscan.inspection import Facts, Inspection, SessionFacts, total
from loopscan.reports.base import Options
from loopscan.reports.console import console, fields, grid, heading, print_parts, safe
from loopscan.reports.phrases import counted, kind_words, money, number, span
from loopscan.reports.sources import copied, copies, problems, skipped
from loopscan.sanitize import clean
from loopscan.sanitize import name as shown_name

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_TOOL = 40
_SESSION = 60
_SOURCE = 90
_MOST_TOOLS = 12
_MOST_KINDS = 12
_MOST_REASONS = 5


def write(inspection: Inspection, out: TextIO, options: Options) -> None:
    """Write what was found: all together, format by format, and the problems; with ``verbose`` every session."""
    to = console(out, width=options.width, color=options.color)
    reports = inspection.reports
    for part in _together(inspection):
        to.print(part)
    if options.quiet:
        return
    print_parts(to, _by_format(inspection))
    print_parts(to, _entries(inspection))
    if options.verbose:
        for session in inspection.sessions:
            print_parts(to, _session(session))
    print_parts(to, problems(reports, verbose=options.verbose))
    if options.verbose:
        print_parts(to, copies(reports))
        print_parts(to, skipped(inspection.skipped))


def _together(inspection: Inspection) -> Iterator[RenderableType]:
    yield heading("Found")
    table = fields()
    unread = inspection.unread_count()
    table.add_row("sources", safe(counted(len(inspection.sources), "source")))
    if unread:
        table.add_row("unread", safe(f"{counted(unread, 'source')} not read, or not to the end", "bold red"))
    table.add_row("sessions", safe(counted(len(inspection.sessions), "session")))
    agents = Counter(session.agent for session in inspection.sessions if session.agent is not None)
    if agents:
        named = ", ".join(f"{shown_name(agent, _TOOL)} {number(count)}" for agent, count in sorted(agents.items()))
        table.add_row("of agents", safe(named))
    _add_facts(table, inspection.total())
    if inspection.logged:
        table.add_row("in logs", safe(f"{_verdicts(inspection.logged)}, which their sessions may record as well"))
    left_out = copied(inspection.reports)
    if left_out:
        table.add_row("copies", safe(left_out))
    if inspection.skipped:
        reasons = Counter(file.reason for file in inspection.skipped).most_common(_MOST_REASONS)
        words = ", ".join(f"{number(count)} {clean(reason, _SESSION)}" for reason, count in reasons)
        table.add_row("skipped", safe(f"{counted(len(inspection.skipped), 'file')}: {words}"))
    table.add_row("problems", safe(number(inspection.problems), "yellow" if inspection.problems else ""))
    yield table


def _by_format(inspection: Inspection) -> Iterator[RenderableType]:
    found = inspection.by_format()
    if not found:
        return
    yield heading("By format")
    columns = ("format", "sources", "sessions", "runs", "calls", "tokens", "problems")
    table = grid({"no_wrap": True}, *({"no_wrap": True, "justify": "right"} for _ in columns[1:]))
    table.add_row(*(safe(column, "dim") for column in columns))
    for name, sources in found.items():
        facts = total(sources)
        sessions = sum(len(source.sessions) for source in sources)
        faults = sum(source.report.problem_count for source in sources)
        counts = [number(count) for count in (len(sources), sessions, facts.runs, facts.calls, facts.tokens, faults)]
        if facts.responses and not facts.tokens:
            counts[4] = "not on record"
        table.add_row(safe(name, limit=_TOOL), *(safe(count) for count in counts))
    yield table


def _entries(inspection: Inspection) -> Iterator[RenderableType]:
    """Yield the kinds of entries of each format, those that hold nothing for the loop detection too."""
    table = grid({"no_wrap": True}, {"ratio": 1})
    for name, sources in inspection.by_format().items():
        for what, counters in (
            ("used", [source.used for source in sources]),
            ("passed over", [source.unused for source in sources]),
        ):
            kinds: Counter[str] = Counter()
            for counter in counters:
                kinds.update(counter)
            if kinds:
                table.add_row(safe(name, limit=_TOOL), safe(f"{what}: {_most(kinds, _MOST_KINDS)}"))
    if table.row_count:
        yield heading("Entries")
        yield table


def _session(session: SessionFacts) -> Iterator[RenderableType]:
    title = heading("Session ")
    title.append_text(safe(session.session, "bold", _SESSION))
    yield title
    yield safe(session.source, "dim", _SOURCE)
    table = fields()
    if session.agent is not None:
        table.add_row("agent", safe(session.agent, limit=_TOOL))
    _add_facts(table, session.facts)
    yield table


def _add_facts(table: Table, facts: Facts) -> None:
    when = span(facts.started, facts.ended)
    if when:
        table.add_row("time", safe(when))
    if facts.models:
        table.add_row("models", safe(_most(facts.models, _MOST_TOOLS)))
    table.add_row("runs", safe(f"{counted(facts.runs, 'run')} with {counted(facts.responses, 'model response')}"))
    table.add_row("calls", safe(_calls(facts)))
    if facts.tools:
        table.add_row("of tools", safe(_most(facts.tools, _MOST_TOOLS)))
    if facts.compactions:
        table.add_row(
            "compacted", safe(f"{counted(facts.compactions, 'time')}, {facts.compactions_in_run} within a run")
        )
    if facts.tokens or facts.cost_usd:
        parts = (
            (facts.input, "input"),
            (facts.output, "output"),
            (facts.cache_read, "cache read"),
            (facts.cache_write, "cache write"),
        )
        words = ", ".join(f"{number(count)} {name}" for count, name in parts if count)
        cost = f" · {money(facts.cost_usd)}" if facts.cost_usd else ""
        table.add_row("tokens", safe(f"{number(facts.tokens)}{f' ({words})' if words else ''}{cost}"))
    if facts.recorded:
        table.add_row("live", safe(f"{_verdicts(facts.recorded)} on record"))


def _verdicts(counter: Counter[str]) -> str:
    return clean(", ".join(counted(count, kind_words(kind)) for kind, count in sorted(counter.items())), 400)


_FATES = {
    "lost": "without an outcome",
    "vetoed": "vetoed by a live engine",
    "rejected": "with rejected arguments",
    "not_run": "not run",
    "absent": "to tools that do not exist",
}


def _calls(facts: Facts) -> str:
    words = [counted(facts.calls, "call")]
    words += [f"{number(facts.fates[fate])} {what}" for fate, what in _FATES.items() if facts.fates[fate]]
    if facts.errors:
        words.append(f"{number(facts.errors)} with an error")
    return ", ".join(words)


def _most(counter: Counter[str], most: int) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    named = ((shown_name(name.replace(", ", "/"), _TOOL) or "(no name)", count) for name, count in ordered[:most])
    shown = ", ".join(f"{name} {number(count)}" for name, count in named)
    rest = len(ordered) - most
    return f"{shown} and {number(rest)} more" if rest > 0 else shown
