"""``text`` of ``loopscan tune``: what a person reads on a terminal, and just as well through a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from loopscan.reports.base import Options
from loopscan.reports.console import console, fields, grid, heading, print_parts, safe
from loopscan.reports.phrases import counted, number
from loopscan.reports.sources import problems, skipped
from loopscan.reports.tuning import words
from loopscan.reports.tuning.bars import bar, scale
from loopscan.reports.tuning.tables import COLUMNS, Column, Shown, left_out, shown, thinned
from loopscan.tuning.report import Chosen, IncidentRow, Part, TuningReport

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

BINARY = False

#: Below it a table of settings becomes a list; from the wide one on, one table holds all figures.
_TABLE, _WIDE = 90, 150
#: Columns that the setting takes at most in a table, a name in a heading, and characters of places and sentences.
_SETTING, _NAME, _PLACE, _SENTENCE = 34, 60, 300, 600
_CURVE_ROWS: Final = 20
_FLIPS: Final = 12
_ROLE_STYLES: Final = {"recommended": "bold green", "in force": "bold", "off": "dim"}


def write(report: TuningReport, out: TextIO, options: Options) -> None:
    """Write ``report`` for people; ``quiet``: what is chosen and what to do alone; ``verbose``: all of everything."""
    to = console(out, width=options.width, color=options.color)
    basis = report.basis
    to.print(
        safe(
            f"loopscan {report.version} · tune · ruleset {basis.ruleset}"
            f" · scope {basis.scope.value} · compactions arm the guard: {basis.arm.value}",
            "bold",
        )
    )
    if options.quiet:
        print_parts(to, _choices(report))
        print_parts(to, _decisions(report))
        print_parts(to, _block(report))
        return
    print_parts(to, _read(report))
    print_parts(to, _settings(report, report.whole, to.width, every=options.verbose))
    print_parts(to, _curve(report, to.width))
    print_parts(to, _choice(report, report.whole, "Recommendation"))
    print_parts(to, _checked(report.whole))
    print_parts(to, _flips(report.whole, every=options.verbose))
    for part in report.parts:
        _print_part(to, report, part, options)
    print_parts(to, _decisions(report))
    print_parts(to, _block(report))
    print_parts(to, _agreement(report))
    if options.verbose:
        print_parts(to, _incidents(report.incidents))
    print_parts(to, _notes(report))
    print_parts(to, problems(report.sources, verbose=options.verbose))
    if options.verbose:
        print_parts(to, skipped(report.skipped))


def _rows(rows: Iterable[tuple[str, str]]) -> Table:
    table = fields()
    for name, sentence in rows:
        table.add_row(name, safe(sentence, limit=_SENTENCE))
    return table


def _read(report: TuningReport) -> Iterator[RenderableType]:
    yield heading("Read")
    table = _rows(words.read(report.whole))
    unread = sum(bool(source.failures) for source in report.sources) + sum(file.unread for file in report.skipped)
    if unread:
        table.add_row("unread", safe(f"{counted(unread, 'source')} not read, or not to the end", "bold red"))
    for name, sentence in words.made_with(report):
        table.add_row(name, safe(sentence, limit=_SENTENCE))
    yield table


# -- settings -----------------------------------------------------------------------------------


def _settings(report: TuningReport, part: Part, width: int, *, every: bool) -> Iterator[RenderableType]:
    rows = shown(part, every=every)
    yield heading("Settings, from the most lenient to the strictest")
    own = [column for column in COLUMNS if not column.saved]
    saving = [column for column in COLUMNS if column.saved]
    title = f"would be saved ({words.UPPER_BOUND})"
    if width < _TABLE:
        yield safe(f"What they save is an {words.UPPER_BOUND}.", "dim")
        for row in rows:
            yield _listed(row)
    elif width < _WIDE:
        yield _table(rows, own)
        yield safe("")
        yield safe(f"What {title}", "bold")
        yield _table(rows, saving)
    else:
        yield _table(rows, own + saving)
        yield safe(f"calls, tokens, cached, dollars and minutes: what {title}", "dim")
    rest = left_out(report, part, rows)
    if rest:
        yield safe(rest, "dim")


def _table(rows: Sequence[Shown], columns: Sequence[Column]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("setting", overflow="fold", max_width=_SETTING)
    for column in columns:
        table.add_column(column.head, justify="right", overflow="fold")
    for row in rows:
        cells = (safe(column.cell(row.candidate.figures)) for column in columns)
        table.add_row(_named(row), *cells)
    return table


def _named(row: Shown) -> Text:
    """Return a setting with its roles."""
    style = next((style for role, style in _ROLE_STYLES.items() if role in row.roles), "")
    line = safe(row.setting, style)
    if roles := [role for role in row.roles if role not in {"in force", "off"} or row.setting != _said(role)]:
        line.append(f" ({', '.join(roles)})", "not bold dim")
    return line


def _said(role: str) -> str:
    """Return what a setting of this role is called where its changes say as much."""
    return "as in force" if role == "in force" else "disabled"


def _listed(row: Shown) -> Text:
    """Return a setting with its figures in sentences."""
    figures = row.candidate.figures
    told = [
        words.caught(figures),
        f"{counted(figures.false_blocks, 'false block')}: {words.rate(figures)}",
        f"{figures.warnings_per_1000_calls:,.1f} warnings per 1,000 calls · lead {words.lead(figures)} calls",
        f"saves at most {words.saved(figures.saved)}",
    ]
    line = _named(row)
    for sentence in told:
        line.append(f"\n  {sentence}", "not bold default")
    return line


# -- the curve ----------------------------------------------------------------------------------


def _curve(report: TuningReport, width: int) -> Iterator[RenderableType]:
    """Yield what the critical threshold alone changes, a row for each: calls saved, false-block rate."""
    from rich.table import Table

    rows = thinned(report.curve(), _CURVE_ROWS)
    if not rows:
        return
    yield heading("The critical threshold alone")
    chosen = report.whole.chosen.candidate
    marks = {report.whole.in_force.setting.critical: "in force"}
    if chosen is not None:
        marks[chosen.setting.critical] = "recommended"
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("critical", justify="right", overflow="fold")
    for head in ("calls saved, at most", "false-block rate", ""):
        table.add_column(head, overflow="fold")
    room = max(4, min(30, (width - 52) // 2))
    most = scale(figures.saved.calls for _, figures in rows)
    worst = scale(figures.false_rate for _, figures in rows)
    for setting, figures in rows:
        calls, share = figures.saved.calls, figures.false_rate
        saves = bar(calls / most, room) if calls else ""
        fails = bar(share / worst, room) if share else ""
        table.add_row(
            safe(number(setting.critical)),
            safe(f"{saves} {number(calls)}".strip(), "green"),
            safe(f"{fails} {words.percent(share)}".strip(), "red" if share else ""),
            safe(marks.get(setting.critical, ""), "dim"),
        )
    yield table


# -- the choice ---------------------------------------------------------------------------------


def _choice(report: TuningReport, part: Part, title: str) -> Iterator[RenderableType]:
    yield heading(title)
    yield _verdict(part.chosen)
    if part.chosen.reason:
        yield safe(part.chosen.reason, limit=_SENTENCE)
    yield _rows(words.evidence(report, part))
    if part.name is None:
        for line in report.advice:
            yield safe(line, limit=_SENTENCE)


def _verdict(chosen: Chosen) -> Text:
    return safe(words.verdict(chosen), "bold yellow" if chosen.candidate is None else "bold green")


def _choices(report: TuningReport) -> Iterator[RenderableType]:
    """Yield what is recommended or refused for all sessions and each part."""
    yield from _choice(report, report.whole, "Recommendation")
    for part in report.parts:
        line = heading("")
        line.append_text(safe(part.name or "", "bold", _NAME))
        line.append(": ")
        line.append_text(_verdict(part.chosen))
        yield line
        yield safe(part.chosen.reason, limit=_SENTENCE)


def _checked(part: Part) -> Iterator[RenderableType]:
    """Yield how the choice fares on sessions held out, and how stable it is."""
    if not part.held_out and part.stability is None:
        return
    yield heading("How far it can be trusted")
    for each in part.held_out:
        sentence, rows = words.held_out(each)
        line = safe(each.name, "bold", _NAME)
        line.append(": ")
        line.append_text(safe(sentence, limit=_SENTENCE))
        yield line
        if rows:
            table = grid({"min_width": 16, "style": "dim"}, {"ratio": 1}, {"ratio": 1})
            table.add_row(safe(""), safe("chosen on", "dim"), safe("held out", "dim"))
            for row in rows:
                table.add_row(*map(safe, row))
            yield table
    if part.stability is not None:
        sentence, others = words.stability(part, part.stability)
        yield safe(f"stability: {sentence}")
        for other in others:
            yield safe(f"  {other}", "dim")


def _flips(part: Part, *, every: bool) -> Iterator[RenderableType]:
    """Yield the incidents that fare otherwise if a threshold moves by one."""
    if not part.flips:
        return
    yield heading("Incidents near it: what moves with one threshold by one")
    flips = part.flips if every else part.flips[:_FLIPS]
    for each in flips:
        moved, becomes = words.flip(each)
        line = safe(f"{moved}: {becomes}", "bold")
        line.append_text(_incident(each.incident))
        line.append("\n  ")
        line.append_text(safe(words.explaining(each.incident), "not bold dim", 2 * _PLACE))
        yield line
    rest = len(part.flips) - len(flips)
    if rest:
        yield safe(f"… and {counted(rest, 'more incident')}; --verbose shows all", "dim")


def _incident(row: IncidentRow) -> Text:
    """Return where an incident is and what, in lines of their own."""
    from rich.text import Text

    line = Text()
    line.append("\n  ")
    line.append_text(safe(words.place(row), "not bold default", _PLACE))
    line.append(f" · {words.where(row)}", "not bold dim")
    line.append("\n  ")
    line.append_text(safe(f"{words.what(row)} · {words.judged(row)}", "not bold dim", _PLACE))
    return line


def _print_part(to: Console, report: TuningReport, part: Part, options: Options) -> None:
    to.print()
    to.print(safe(part.name or "", "bold reverse", _NAME))
    to.print(_rows(words.read(part)))
    if options.verbose:
        print_parts(to, _settings(report, part, to.width, every=True))
    print_parts(to, _choice(report, part, "Recommendation"))
    print_parts(to, _checked(part))
    if options.verbose:
        print_parts(to, _flips(part, every=True))


# -- what to do ---------------------------------------------------------------------------------


def _decisions(report: TuningReport) -> Iterator[RenderableType]:
    if not report.decisions:
        return
    yield heading("What to do")
    for each in report.decisions:
        line = safe("all agents" if each.agent is None else f"agent {each.agent}", "bold", _NAME)
        line.append(": ")
        line.append(words.decision(each), "bold green" if each.changes else "")
        if each.reason:
            line.append("\n  ")
            line.append_text(safe(each.reason, "not bold default", _SENTENCE))
        yield line


def _block(report: TuningReport) -> Iterator[RenderableType]:
    if not report.block:
        return
    yield heading("To put into the configuration")
    for line in report.block.splitlines():
        yield safe(line)


def _agreement(report: TuningReport) -> Iterator[RenderableType]:
    if report.agreement is None:
        return
    yield heading("Rules and given labels")
    yield safe(words.agreement(report.agreement))
    head, rows = words.agreement_table(report.agreement)
    counts: list[dict[str, object]] = [{"justify": "right"} for _ in head[1:]]
    table = grid({"style": "dim"}, *counts)
    table.add_row(*(safe(cell, "dim") for cell in head))
    for row in rows:
        table.add_row(*map(safe, row))
    yield table


def _incidents(rows: Sequence[IncidentRow]) -> Iterator[RenderableType]:
    if not rows:
        return
    yield heading("Incidents")
    for row in rows:
        line = safe(row.incident, "bold", _PLACE)
        line.append_text(_incident(row))
        yield line


def _notes(report: TuningReport) -> Iterator[RenderableType]:
    if not report.notes:
        return
    yield heading("Notes")
    for note in report.notes:
        yield safe(note, limit=_SENTENCE)
