"""``text``: what a person reads on a terminal, and just as well through a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, TextIO

from loopscan.marks import ENDS_RUN, Kind, Level, Mark
from loopscan.policy import Policy
from loopscan.report import LiveVerdict, Report, RunReport, SessionReport, Step, Totals
from loopscan.reports.base import Options
from loopscan.reports.console import PLAIN_WIDTH, console, fields, grid, heading, print_parts, safe
from loopscan.reports.phrases import KINDS, OUTCOMES, UPPER_BOUND, clock, counted, kind_words, number, saved, span
from loopscan.reports.sources import copied, copies, judged_as, problems, skipped
from loopscan.reports.timeline import Group, LiveRecord, Row, timeline
from loopscan.sanitize import clean
from loopscan.sanitize import name as shown_name

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

BINARY = False

_FIELD = 13  # columns that the names of fields take
_TOOL = 40
_SESSION = 60
_SOURCE = 90
_PREVIEW = 80
_MESSAGE = 400
_MAIN_TOOLS = 5
_VETOED_SHOWN = 4

_LEVEL_STYLES = {Level.INFO: "cyan", Level.WARNING: "yellow", Level.CRITICAL: "red"}
_INTERVENES = ENDS_RUN | {Kind.BLOCK}


def write(report: Report, out: TextIO, options: Options) -> None:
    """Write ``report`` for people: what it was made with, a summary, then a timeline of every session with marks."""
    to = console(out, width=options.width, color=options.color)
    totals = report.count()
    for part in _header(report):
        to.print(part)
    to.print()
    for part in _summary(report, totals, to.width):
        to.print(part)
    if options.quiet:
        return
    for session in report.sessions:
        live = LiveRecord(session)
        if _is_shown(session, live):
            _print_session(to, session, live, options)
    print_parts(to, _near_misses(report))
    if options.verbose:
        print_parts(to, _quiet_sessions(report))
    print_parts(to, problems(report.sources, verbose=options.verbose))
    print_parts(to, judged_as(report.sources))
    if options.verbose:
        print_parts(to, copies(report.sources))
        print_parts(to, skipped(report.skipped))
    print_parts(to, _footer(report, totals))
    if report.advice:
        to.print(heading("Advice"))
        for line in report.advice:
            to.print(safe(line))


# -- what it was made with ----------------------------------------------------------------------


def _header(report: Report) -> Iterator[RenderableType]:
    policy = report.policy
    yield safe(
        f"loopscan {report.version} · ruleset {policy.ruleset.name} ({policy.ruleset.covers})"
        f" · mode {report.mode} · scope {report.scope}",
        "bold",
    )
    table = fields()
    table.add_row("settings", _settings(policy))
    _add_notes(table, policy)
    for agent, own in sorted(report.agents.items()):
        table.add_row(safe(f"agent {shown_name(agent, _TOOL)}"), _settings(own))
        _add_notes(table, own)
    yield table


def _add_notes(table: Table, policy: Policy) -> None:
    """Say what is odd about a configuration, what silences the detectors first; ignored fields in one row."""
    ignored = [note for note in policy.notes if note.kind == "ignored" and note.field in policy.origins]
    for note in sorted(policy.notes, key=lambda note: note.kind != "silenced"):
        if note.kind == "silenced":
            table.add_row(safe(note.kind, "bold yellow"), safe(note.message, "bold yellow"))
        elif note not in ignored or len(ignored) == 1:
            table.add_row(safe(note.kind, "yellow"), safe(note.message))
    if len(ignored) > 1:
        names = ", ".join(dict.fromkeys(note.field for note in ignored))
        words = f"{names}: ruleset {policy.ruleset.name} has fixed numbers and reads enabled alone"
        table.add_row(safe("ignored", "yellow"), safe(words))


def _settings(policy: Policy) -> Text:
    """Return the whole configuration in one line, with where it came from."""
    from rich.text import Text

    state = {True: "enabled", None: "enabled unset", False: "enabled false"}[policy.enabled]
    line = Text(state, "" if policy.enabled else "bold yellow")
    line.append(_origin(policy, "enabled", unconfigured="no configuration"), "dim")
    counts = {
        "warningThreshold": ("warning", policy.warning),
        "criticalThreshold": ("critical", policy.critical),
        "globalCircuitBreakerThreshold": ("breaker", policy.breaker),
        "unknownToolThreshold": ("unknown tool", policy.unknown_tool),
        "historySize": ("history", policy.history_size),
        "postCompactionGuard.windowSize": ("guard window", policy.guard_window),
    }
    for name, (words, value) in counts.items():
        line.append(f", {words} {value}")
        line.append(_origin(policy, name), "dim")
    switches = {
        "detectors.genericRepeat": ("generic_repeat", policy.generic_repeat),
        "detectors.knownPollNoProgress": ("known_poll_no_progress", policy.known_poll),
        "detectors.pingPong": ("ping_pong", policy.ping_pong),
    }
    for name, (words, on) in switches.items():
        if not on:
            line.append(", ")
            line.append(f"{words} off", "yellow")
            line.append(_origin(policy, name), "dim")
    if not policy.ruleset.configurable:
        line.append(" (numbers fixed by the ruleset)", "dim")
    sources = dict.fromkeys(origin.source for origin in policy.origins.values() if origin.source)
    if sources:
        line.append("; from ", "dim")
        line.append(", ".join(clean(source, _SOURCE) for source in sources), "dim")
    return line


def _origin(policy: Policy, name: str, unconfigured: str | None = None) -> str:
    """Return the kind of a value's origin in brackets, nothing for a default."""
    origin = policy.origins.get(name)
    kind = origin.kind if origin else "default"
    if kind in {"default", "fixed"}:
        # With a configuration the file is named at the end of the line.
        configured = any(other.source for other in policy.origins.values())
        return f" ({unconfigured})" if unconfigured and policy.enabled and not configured else ""
    return f" ({kind})"


# -- the summary --------------------------------------------------------------------------------


def _summary(report: Report, totals: Totals, width: int) -> Iterator[RenderableType]:
    yield heading("Summary")
    table = fields()
    read = [
        counted(totals.sessions, "session"),
        counted(totals.runs, "run"),
        counted(totals.calls, "call"),
        counted(len(report.sources), "source"),
    ]
    line = safe(" · ".join(read))
    line.append(" · ")
    line.append_text(safe(counted(report.problems, "problem"), "yellow" if report.problems else ""))
    table.add_row("read", line)
    unread = report.unread_count()
    if unread:
        table.add_row("unread", safe(f"{counted(unread, 'source')} not read, or not to the end", "bold red"))
    again = sum(file.again for file in report.skipped)
    others = len(report.skipped) - again
    words = [f"{counted(others, 'other file')} in these folders"] if others else []
    words += [f"{counted(again, 'file')} read already, under another name"] if again else []
    if words:
        table.add_row("skipped", safe(" · ".join(words)))
    left_out = copied(report.sources)
    if left_out:
        table.add_row("copies", safe(left_out))
    without = totals.sessions - totals.sessions_with_marks
    if without:
        table.add_row("clean", safe(counted(without, "session without marks", "sessions without marks")))
    if totals.marks.total():
        table.add_row("marks", _marks(totals, width))
        if totals.by_tool:
            table.add_row("on tools", _main_tools(totals))
    else:
        table.add_row("marks", safe("none; mind that detectors are silenced" if report.silenced else "none"))
    if totals.suppressed_warnings:
        held = counted(totals.suppressed_warnings, "warning")
        table.add_row("kept back", safe(f"{held} that the engine's rate limit (one in ten counts) does not let out"))
    if totals.blocked_calls:
        line = safe(counted(totals.blocked_calls, "call"))
        if not report.policy.ruleset.batch_admission:
            line.append(" (each alone: this release never ends a run, so what the model spent stays spent)", "dim")
        table.add_row("blocked", line)
    if totals.not_reached.calls or totals.not_reached.tokens:
        reached = safe(saved(totals.not_reached), "bold")
        reached.append(f" ({UPPER_BOUND})", "not bold dim")
        table.add_row("not reached", reached)
    if totals.recorded:
        table.add_row("live", _recorded_summary(totals))
    yield table


def _marks(totals: Totals, width: int) -> RenderableType:
    """Return how many marks of which kind each detector made: a table, or lines where a table is too wide."""
    from rich.text import Text

    kinds = [kind for kind in Kind if totals.marks[kind]]
    names = max(len(detector) for detector in totals.by_detector)
    if _FIELD + names + sum(2 + len(KINDS[kind]) for kind in kinds) <= width:
        return _marks_table(totals, kinds)
    lines = []
    for detector in sorted(totals.by_detector):
        made = [(totals.by_detector_and_kind[detector, kind], KINDS[kind]) for kind in kinds]
        lines.append(safe(f"{detector}: " + ", ".join(f"{number(count)} {kind}" for count, kind in made if count)))
    return Text("\n").join(lines)


def _marks_table(totals: Totals, kinds: list[Kind]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("by detector", no_wrap=True)
    for kind in kinds:
        table.add_column(KINDS[kind], justify="right", no_wrap=True)
    ordered = sorted(totals.by_detector.items(), key=lambda item: (-item[1], item[0]))
    for detector, _ in ordered:
        cells = [totals.by_detector_and_kind[detector, kind] for kind in kinds]
        table.add_row(Text(str(detector)), *(Text(number(cell) if cell else "·") for cell in cells))
    if len(ordered) > 1:
        table.add_row(Text("in all", "bold"), *(Text(number(totals.marks[kind]), "bold") for kind in kinds))
    return table


def _main_tools(totals: Totals) -> Text:
    ordered = sorted(totals.by_tool.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{shown_name(tool, _TOOL)} {number(count)}" for tool, count in ordered[:_MAIN_TOOLS]]
    rest = len(ordered) - len(shown)
    return safe(", ".join(shown) + (f" and {counted(rest, 'more tool')}" if rest else "") if shown else "none named")


def _recorded_summary(totals: Totals) -> Text:
    kinds = sorted(totals.recorded.items())
    recorded = ", ".join(counted(count, clean(kind_words(kind), _TOOL)) for kind, count in kinds)
    line = safe(f"{recorded} on record; ")
    beyond = totals.recorded_not_reached
    agreeing, total = totals.recorded_agreeing, totals.recorded.total() - beyond
    if beyond:
        line.append(f"{number(beyond)} after the replay had ended the run; ")
    if agreeing == total:
        line.append_text(safe("the replay agrees with all", "green"))
    else:
        line.append_text(safe(f"the replay agrees with {number(agreeing)} of {number(total)}", "yellow"))
        line.append(" (were they recorded under this ruleset and configuration?)", "dim")
    return line


# -- one session --------------------------------------------------------------------------------


def _is_shown(session: SessionReport, live: LiveRecord) -> bool:
    return bool(live.verdicts) or any(run.marks for run in session.runs)


def _print_session(to: Console, session: SessionReport, live: LiveRecord, options: Options) -> None:
    to.print()
    title = heading("Session ")
    title.append_text(safe(session.session, "bold", _SESSION))
    to.print(title)
    to.print(safe(session.source, "dim", to.width))
    _print_timeline(to, session, session.runs, live, options)


def timeline_text(session: SessionReport, runs: Sequence[RunReport], options: Options) -> str:
    """Return the timeline of ``runs`` of ``session`` as plain lines, the last one without a newline.

    It begins with what is known of the session; runs without marks or verdicts are counted. The text does not depend
    on the terminal: 100 columns unless ``options`` has a width, no colours.
    """
    out = StringIO()
    to = console(out, width=options.width or PLAIN_WIDTH, color=False)
    _print_timeline(to, session, runs, LiveRecord(session), options)
    return out.getvalue().rstrip("\n")


def _print_timeline(
    to: Console, session: SessionReport, runs: Sequence[RunReport], live: LiveRecord, options: Options
) -> None:
    from rich.text import Text

    named = (("agent", session.agent), ("model", session.model))
    facts = [safe(f"{name} {shown_name(value, _TOOL)}") for name, value in named if value]
    when = span(session.started, session.ended)
    if when:
        facts.append(safe(when))
    facts.append(safe(f"{counted(session.calls, 'call')} in {counted(len(session.runs), 'run')}"))
    line = Text(" · ").join(facts)
    line.stylize("dim")
    to.print(line)
    shown = [run for run in runs if run.marks or run.steps]
    for run in shown:
        _print_run(to, run, live, options)
    rest = len(runs) - len(shown)
    if rest:
        to.print(safe(f"  {counted(rest, 'other run' if shown else 'run')} without marks", "dim"))
    lonely = [verdict for verdict in live.verdicts if not _has_row(verdict, session.runs)]
    if lonely:
        lines = _timeline_grid()
        for verdict in lonely:
            lines.add_row("", safe("○", "magenta"), _recorded_line(verdict))
        to.print(lines)


def _has_row(verdict: LiveVerdict, runs: list[RunReport]) -> bool:
    """Tell whether the timelines show ``verdict``, as a row or beside its mark."""
    return verdict.mark is not None or any(step.recorded == verdict.recorded for run in runs for step in run.steps)


def _print_run(to: Console, run: RunReport, live: LiveRecord, options: Options) -> None:
    style = "red" if run.outcome not in {"completed", "interrupted"} else ""
    line = safe(f"  run {run.run} · {counted(run.calls, 'call')} in {counted(run.batches, 'batch', 'batches')} · ")
    line.append_text(safe(OUTCOMES.get(run.outcome, kind_words(run.outcome)), style))
    if run.suppressed_warnings:
        line.append(f" · {counted(run.suppressed_warnings, 'warning')} kept back")
    to.print(line)
    lines = _timeline_grid()
    saving: RunReport | None = run
    story: tuple[object, ...] | None = None
    for group in timeline(run, live):
        folded = len(group.rows) > 1
        for index, row in enumerate(group.rows):
            sign = safe("│" if index else "┌", "dim") if folded and row.step.mark is None else _sign(row)
            mark = row.step.mark
            if mark is None:
                body = _step_body(row, options)
            else:
                ends = mark.kind in ENDS_RUN
                told, story = story, (mark.kind, mark.detector, mark.signature)
                body = _mark_body(row, group, saving if ends else None, options, told=told == story)
                saving = None if ends else saving
            place = "" if row.step.kind == "elided" else f"#{row.step.batch}"
            lines.add_row(safe(place, "dim"), sign, body)
        if folded:
            lines.add_row("", safe("└", "dim"), safe(_rounds(group), "bold"))
    to.print(lines)


def _timeline_grid() -> Table:
    return grid({"min_width": 6, "justify": "right", "no_wrap": True}, {"no_wrap": True}, {"ratio": 1}, padding=1)


def _sign(row: Row) -> Text:
    if row.step.mark is not None:
        return safe("●", _LEVEL_STYLES[row.step.mark.level])
    if row.step.recorded is not None:
        return safe("○", "magenta")
    return safe("✗", "bold red") if row.step.kind == "expected" else safe("")


def _rounds(group: Group) -> str:
    return f"×{number(group.rounds)}, to #{group.last_batch}"


def _step_body(row: Row, options: Options) -> Text:
    step = row.step
    if step.kind == "elided":
        return safe(f"… {counted(row.times, 'call')} left out", "dim")
    if step.recorded is not None:
        return _recorded_line(row.live[0])
    if step.kind == "calls":
        return _call(step, row.times, options, varied=row.varied)
    if step.kind == "expected":
        return safe(f"expected here: {step.text}", "red", _MESSAGE)
    return safe(step.text or "", "dim", _MESSAGE)


_BECAME = {
    "blocked": ("blocked", "red"),
    "rejected": ("arguments rejected", "yellow"),
    "not_run": ("not run", "dim"),
    "absent": ("no such tool", "yellow"),
}


def _call(step: Step, times: int, options: Options, *, varied: bool = False) -> Text:
    line = safe(step.tool or "tool", limit=_TOOL)
    if varied:
        line.append(" with other arguments each time", "dim")
    elif step.preview and options.previews:
        line.append(" ")
        line.append_text(safe(step.preview, "dim", _PREVIEW))
    if times > 1:
        line.append(f" ×{number(times)}", "bold")
    if step.became in _BECAME:
        words, style = _BECAME[step.became]
        line.append(" · ")
        line.append(words, style)
    return line


def _mark_body(row: Row, group: Group, ended: RunReport | None, options: Options, *, told: bool) -> Text:
    """Return all that is to say at a mark.

    ``ended`` is its run where the mark is the first that ends it; ``told`` says that the mark before it
    was one of the same loop, whose sentence need not be said again.
    """
    from rich.text import Text

    mark = row.step.mark
    assert mark is not None
    style = _LEVEL_STYLES[mark.level]
    head = Text()
    head.append(KINDS[mark.kind], f"bold {style}")
    head.append(f" {mark.detector.value}", style)
    head.append(_numbers(mark))
    if mark.tool is not None:
        head.append(" · ")
        head.append_text(safe(mark.tool, limit=_TOOL))
    if mark.paired_tool not in {None, mark.tool}:
        head.append(" with ")
        head.append_text(safe(mark.paired_tool or "", limit=_TOOL))
    if mark.where.time is not None:
        head.append(f" · {clock(mark.where.time)}", "dim")
    if group.rounds > 1 and len(group.rows) == 1:
        head.append(" · ")
        head.append(_rounds(group), "bold")
    lines = [head]
    if mark.message and not told:
        lines.append(safe(mark.message, limit=_MESSAGE))
    if row.blocked or mark.blocked_calls:
        lines.append(_vetoed(row, mark, options))
    if ended is not None and _saves(ended):
        lines.append(Text.assemble(("not reached: ", "dim"), (saved(ended.not_reached), "bold")))
    if mark.lossy:
        lines.append(
            safe("lossy: what the live engine compared is only partly on record; this may be no loop", "yellow")
        )
    lines += _live(row, mark)
    return Text("\n").join(lines)


def _numbers(mark: Mark) -> str:
    if mark.count is None:
        return f" · window {mark.threshold}" if mark.threshold is not None else ""
    limit = f", threshold {mark.threshold}" if mark.threshold is not None else ""
    return f" · count {mark.count}{limit}"


def _vetoed(row: Row, mark: Mark, options: Options) -> Text:
    from rich.text import Text

    line = Text("blocked: ", "dim")
    if not row.blocked:
        line.append(counted(mark.blocked_calls, "call"), "not dim")
        return line
    shown = row.blocked[:_VETOED_SHOWN]
    calls = []
    for step in shown:
        call = safe(step.tool or "tool", "not dim", _TOOL)
        if step.preview and options.previews:
            call.append(" ")
            call.append_text(safe(step.preview, limit=_PREVIEW))
        if step.times > 1:
            call.append(f" ×{number(step.times)}", "bold")
        calls.append(call)
    line.append_text(Text(", ").join(calls))
    total = max(mark.blocked_calls, sum(step.times for step in row.blocked))
    rest = total - sum(step.times for step in shown)
    if rest > 0:
        line.append(f" and {counted(rest, 'more call')}")
    return line


def _saves(run: RunReport) -> bool:
    return bool(run.not_reached.calls or run.not_reached.tokens)


def _live(row: Row, mark: Mark) -> list[Text]:
    """Return what was recorded live of this intervention: one line if all is alike."""
    if row.unrecorded:
        return [safe("live: not on record", "magenta")]
    agreeing = [verdict for verdict in row.live if verdict.agrees]
    lines = []
    if agreeing:
        calls = f" on {counted(len(agreeing), 'call')}" if len(agreeing) > 1 else ""
        lines.append(safe(f"live: the engine did the same{calls}", "green"))
    lines += [
        safe(f"live: {_verdict_words(verdict)}, which differs", "magenta")
        for verdict in row.live
        if not verdict.agrees
    ]
    return list({line.plain: line for line in lines}.values())


def _recorded_line(verdict: LiveVerdict) -> Text:
    if verdict.agrees:
        return safe(f"live: {_verdict_words(verdict)}", "green")
    if not verdict.reached:
        return safe(f"live: {_verdict_words(verdict)}; the replay ended the run before", "dim")
    return safe(f"live: {_verdict_words(verdict)}; the replay has no such mark here", "magenta")


def _verdict_words(verdict: LiveVerdict) -> str:
    recorded = verdict.recorded
    words = clean(kind_words(recorded.kind), _TOOL)
    if recorded.detector:
        words += f" {clean(recorded.detector, _TOOL)}"
    if recorded.count is not None:
        words += f" · count {recorded.count}"
    if recorded.tool:
        words += f" · {shown_name(recorded.tool, _TOOL)}"
    return words


# -- the rest -----------------------------------------------------------------------------------


def _quiet_sessions(report: Report) -> Iterator[RenderableType]:
    table = grid({"no_wrap": True}, {"no_wrap": True, "justify": "right"}, {"ratio": 1})
    for session in report.sessions:
        if not any(run.marks for run in session.runs):
            counts = f"{counted(session.calls, 'call')}, {counted(len(session.runs), 'run')}"
            table.add_row(safe(session.session, limit=36), safe(counts), safe(session.source, "dim", _SOURCE))
    if table.row_count:
        yield heading("Sessions without marks")
        yield table


def _near_misses(report: Report) -> Iterator[RenderableType]:
    """Yield the repetitions that the rules cannot see, if they were asked for."""
    asked = [session for session in report.sessions if session.near_misses is not None]
    if not asked:
        return
    from loopscan.nearmisses.words import cost_of, place_of, sentence_of

    yield heading("Near misses: blind spots of the rules, no verdicts")
    found = [(session, miss) for session in asked for miss in session.near_misses or ()]
    if not found:
        yield safe("none: nothing repeats that the rules cannot see")
    for session, miss in found:
        line = safe(sentence_of(miss))
        for part in (
            f"{session.source}:{miss.first_line} · {place_of(miss)} of {session.session}",
            cost_of(miss),
        ):
            if part:
                line.append("\n  ")
                line.append_text(safe(part, "dim"))
        yield line


def _footer(report: Report, totals: Totals) -> Iterator[RenderableType]:
    if any(totals.marks[kind] for kind in _INTERVENES):
        if report.mode == "observe":
            words = "Nothing is vetoed in mode observe: after the first place where the engine would have stepped in,"
            yield safe(f"{words} marks hold only on the recorded path.", "dim")
        else:
            words = (
                "Marks up to the first intervention of a run are exact; later ones hold only on the recorded path,"
            )
            yield safe(f"{words} since the model might have done something else.", "dim")
    if totals.lossy:
        lossy = counted(totals.lossy, "mark is lossy", "marks are lossy")
        yield safe(
            f"{lossy}: what the live engine compared is only partly on record, so calls or outcomes may look"
            " equal that were not.",
            "yellow",
        )
