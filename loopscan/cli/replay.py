"""``loopscan replay``: what would have fired, when, and what it would have saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from loopscan.cli.jobsummary import append_summary, summary_file
from loopscan.cli.options import (
    MAX_EXPANDED,
    MAX_LINE,
    AllowEmpty,
    Arming,
    ConfigFile,
    Debug,
    InputFormat,
    Jobs,
    JobSummary,
    MaxExpanded,
    MaxLine,
    NoConfig,
    NoPreviews,
    Outputs,
    Paths,
    RulesetName,
    Scope,
    Settings,
    SkipErrors,
    ToolMap,
    parse_size,
    parse_tool_map,
)
from loopscan.cli.terminal import INTERRUPTED, NO_INPUT, nothing_found, progress_of, quiet_stdout, say
from loopscan.failing import FailOn, fails
from loopscan.modes import Arm, Mode, ScopeRule

if TYPE_CHECKING:
    from loopscan.report import Report, SourceReport

FINDINGS = 1


def replay(
    paths: Paths,
    ruleset: RulesetName = "latest",
    config: ConfigFile = None,
    no_config: NoConfig = False,
    agent: Annotated[
        str | None,
        typer.Option(help="Judge all sessions with this agent's block, not each with its own agent's.", metavar="ID"),
    ] = None,
    settings: Settings = None,
    mode: Annotated[
        Mode,
        typer.Option(help="enforce: vetoes and run ends take effect; observe: mark every verdict, change nothing."),
    ] = Mode.ENFORCE,
    scope: Scope = ScopeRule.RUN,
    arm: Arming = Arm.AUTO,
    tool_map: ToolMap = None,
    input_format: InputFormat = None,
    max_line: MaxLine = MAX_LINE,
    max_expanded: MaxExpanded = MAX_EXPANDED,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="What goes to standard output: text, json, jsonl, markdown, junit, sarif, github, gitlab or tap.",
            metavar="FORMAT",
        ),
    ] = None,
    outputs: Outputs = None,
    fail_on: Annotated[
        FailOn,
        typer.Option(help="Exit with 1 at such a mark or a graver one; end: run ends, aborts and stops of a guard."),
    ] = FailOn.NEVER,
    job_summary: JobSummary = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Go on reading what is written, and print each mark as it happens (text, jsonl)."
        ),
    ] = False,
    jobs: Jobs = 1,
    skip_errors: SkipErrors = False,
    allow_empty: AllowEmpty = False,
    no_previews: NoPreviews = False,
    near_misses: Annotated[
        bool,
        typer.Option("--near-misses", help="Tell of repetitions that the rules cannot see as well (text, json)."),
    ] = False,
    no_advice: Annotated[
        bool, typer.Option("--no-advice", help="Leave out what the record advises on thresholds.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the summary alone; reports in files stay whole.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every session and every problem.")] = False,
    debug: Debug = False,
) -> None:
    """Replay recorded sessions and mark where loop detection would have stepped in."""
    done: list[SourceReport] = []
    code = 0
    try:
        from loopscan.configfile import parse_settings
        from loopscan.replayer import carry_out, plan
        from loopscan.reports.base import Options, Target, asked_for, prepare, write_all

        ready = prepare(asked_for(format_, outputs or ()))
        summary = summary_file() if job_summary else None
        text_shown = ready[0].target == Target("text") and not follow
        planned = plan(
            paths,
            config=config,
            agent=agent,
            ruleset=ruleset,
            overrides=parse_settings(settings or ()),
            mode=mode.value,
            scope=scope.value,
            arm=arm.value,
            tool_map=parse_tool_map(tool_map or ()),
            input_format=input_format,
            max_line=parse_size("--max-line", max_line),
            max_expanded=parse_size("--max-expanded", max_expanded),
            find_config=not no_config,
            previews=not no_previews,
            profiles=text_shown and not (quiet or no_advice),
            near_misses=near_misses,
        )
        if follow:
            from loopscan.cli.following import follow_until_interrupted

            report = follow_until_interrupted(planned, ready[0].target.format, debug=debug)
            ready = ready[1:]
        else:
            with progress_of("replaying", done, shown=not quiet) as progress:
                report = carry_out(planned, jobs=jobs, progress=progress, debug=debug)
        code = exit_code(report, fail_on, skip_errors=skip_errors, allow_empty=allow_empty)
        for line in (
            *without_effect(report, planned.options.tool_map),
            *remarks(report, fail_on, code, text_shown=text_shown, input_format=input_format),
        ):
            say(line)
        looks = Options(previews=not no_previews, verbose=verbose, quiet=quiet, fail_on=fail_on)
        if summary is not None:
            append_summary(report, summary, looks)
        write_all(report, ready, looks)
    except KeyboardInterrupt:
        say(f"interrupted after {len(done)} sources; what was not written yet is missing")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        quiet_stdout()
    raise typer.Exit(code)


def exit_code(report: Report, fail_on: FailOn, *, skip_errors: bool, allow_empty: bool) -> int:
    """Return the exit code: input that could not be read goes before findings at or above ``fail_on``."""
    if report.unread_count() and not skip_errors:
        return NO_INPUT
    if not report.sessions and not allow_empty:
        return NO_INPUT
    return FINDINGS if findings(report, fail_on) else 0


def findings(report: Report, fail_on: FailOn) -> int:
    """Return how many marks are at or above ``fail_on``."""
    return sum(fails(mark.kind, fail_on) for session in report.sessions for _, mark in session.marks())


def without_effect(report: Report, tool_map: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for what ``--tool-map`` says of tools that nobody called."""
    judged = {tool for source in report.sources for tool in source.tools}
    for tool, name in tool_map.items():
        if tool != name and tool not in judged:
            yield f"--tool-map {tool}={name}: there is no call of {tool}; loopscan inspect lists the tools"


def remarks(
    report: Report, fail_on: FailOn, code: int, *, text_shown: bool, input_format: str | None = None
) -> Iterator[str]:
    """Yield what is to be said beside the report, a line each: the exit code must not come as a surprise."""
    failures = report.complaints()
    for detail in failures:
        yield f"error: {detail}"
    if code == NO_INPUT and not report.sessions and not failures:
        yield nothing_found(
            report.skipped, len(report.sources), "loopscan inspect shows what was found", input_format
        )
    if report.found_config.path is not None:
        config = report.found_config.path
        yield f"judged with {config}, which lies in a folder that was named; --no-config does without"
    if report.found_config.above is not None:
        yield f"{report.found_config.above} was found, but not used: give it by --config, or name its folder"
    if report.found_config.beside is not None:
        beside = report.found_config.beside
        yield f"{beside} was found, but not used, since its folder has no agents: give it by --config"
    if report.found_config.reason is not None:
        yield f"judged without a configuration: {report.found_config.reason}"
    elsewhere = sum(len(session.recorded) for session in report.elsewhere)
    if elsewhere:
        verdicts = f"{elsewhere} recorded {'verdict is' if elsewhere == 1 else 'verdicts are'}"
        sessions = "a session that is" if len(report.elsewhere) == 1 else f"{len(report.elsewhere)} sessions that are"
        yield f"{verdicts} of {sessions} not here"
    if not text_shown or fail_on is not FailOn.NEVER:
        for note in report.silenced:
            yield f"detectors are silenced: {note.message}"
    if code == FINDINGS:
        found = findings(report, fail_on)
        yield f"{found} {'mark' if found == 1 else 'marks'} at or above --fail-on {fail_on.value}"
