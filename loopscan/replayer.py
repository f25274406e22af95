"""Many transcripts to one report: what the command ``loopscan replay`` does.

Each source is read once, each session goes through an engine of its own, and the report keeps the
order of the sources, however many processes worked on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from loopscan._version import __version__
from loopscan.configfile import load_agent_policies, load_policy
from loopscan.errors import InputError, UsageError
from loopscan.events import Call, Event, Pause, Problem, SessionEnded, SessionResumed, SessionStarted, Turn, Where
from loopscan.marks import Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.pool import work_on
from loopscan.report import Report, SessionReport, SourceReport
from loopscan.sessions import Options, SessionReplay
from loopscan.transcripts.discover import Discovery, Found, discover
from loopscan.transcripts.incoming import Incoming
from loopscan.transcripts.places import closing_archives
from loopscan.transcripts.reader import MAX_LINE_BYTES, readers, traits_of
from loopscan.transcripts.statedir import StateConfig, state_config
from loopscan.transcripts.streams import MAX_EXPANDED_BYTES
from loopscan.verdicts import attach, stands_apart

if TYPE_CHECKING:
    from loopscan.tuning.advisers import Advisers

PathLike = str | os.PathLike[str]
#: Called with each source that is done, in order, and how many there are.
Progress = Callable[[SourceReport, int], None]
Answer = tuple[SourceReport, list[SessionReport]]
_Choice = TypeVar("_Choice", Mode, ScopeRule, Arm)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be read, and how it is to be judged; made by :func:`plan`."""

    paths: list[PathLike]
    options: Options
    input_format: str | None
    max_line: int
    max_expanded: int
    state: StateConfig
    """The configuration that is used because it lies in a folder that was named, or why none is."""

    def discover(self, on_error: Callable[[InputError], None], incoming: Incoming | None = None) -> Discovery:
        """Return the sources; what is wrong with a path goes to ``on_error``. See there for ``incoming``."""
        return discover(
            self.paths,
            on_error=on_error,
            incoming=incoming,
            input_format=self.input_format,
            max_line=self.max_line,
            max_expanded=self.max_expanded,
        )

    def report(self) -> Report:
        """Return an empty report."""
        options = self.options
        return Report(
            __version__,
            options.policy,
            options.mode.value,
            options.scope.value,
            found_config=self.state,
            arm=options.arm.value,
        )


def plan(
    paths: PathLike | Iterable[PathLike],
    *,
    config: PathLike | Mapping[str, object] | None = None,
    agent: str | None = None,
    ruleset: str = "latest",
    overrides: Mapping[str, object] | None = None,
    mode: str = "enforce",
    scope: str = "run",
    arm: str = "auto",
    tool_map: Mapping[str, str] | None = None,
    input_format: str | None = None,
    max_line: int = MAX_LINE_BYTES,
    max_expanded: int = MAX_EXPANDED_BYTES,
    find_config: bool = True,
    previews: bool = True,
    profiles: bool = False,
    near_misses: bool = False,
    on_for: bool = False,
) -> Plan:
    """Return what :func:`replay` is to do; the arguments are its own, and so is what is raised.

    ``profiles`` keeps with each session what answers other settings; ``on_for`` looks whom detection is on for, also
    where one ``agent`` is named for all.
    """
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    state = StateConfig()
    if config is None and find_config:
        state = state_config(paths)
        config = state.path
    policy = load_policy(ruleset, config=config, agent=agent, overrides=overrides)
    agents = load_agent_policies(ruleset, config=config, overrides=overrides) if agent is None or on_for else {}
    options = Options(
        policy,
        agents if agent is None else {},
        _choice(Mode, "mode", mode),
        _choice(ScopeRule, "scope", scope),
        _choice(Arm, "arm", arm),
        tool_map or {},
        previews,
        profiles=profiles,
        near_misses=near_misses,
        on_for=tuple(key for key, own in agents.items() if own.enabled is True),
    )
    return Plan(paths, options, input_format, max_line, max_expanded, state)


def replay(
    paths: PathLike | Iterable[PathLike],
    *,
    config: PathLike | Mapping[str, object] | None = None,
    agent: str | None = None,
    ruleset: str = "latest",
    overrides: Mapping[str, object] | None = None,
    mode: str = "enforce",
    scope: str = "run",
    jobs: int = 1,
    arm: str = "auto",
    tool_map: Mapping[str, str] | None = None,
    input_format: str | None = None,
    max_line: int = MAX_LINE_BYTES,
    max_expanded: int = MAX_EXPANDED_BYTES,
    find_config: bool = True,
    previews: bool = True,
    near_misses: bool = False,
    progress: Progress | None = None,
    debug: bool = False,
) -> Report:
    """Replay recorded sessions and return the report.

    ``paths`` are files, folders, archives, wildcards, ``@`` and the name of a list of paths, ``-`` for standard
    input, and addresses such as ``s3://bucket/folder/``. Each source is read by the reader that recognises it, or
    by the one called ``input_format``; a line longer than ``max_line`` bytes is skipped, and what grows to more
    than ``max_expanded`` bytes when it is decompressed is read no further.

    ``config`` is the path of an OpenClaw configuration (JSON5) or an
    already parsed ``tools.loopDetection`` object; the sessions of an agent that has a block of its own in
    it are judged with that. ``agent`` is one agent whose block goes over it for all sessions instead, and
    ``overrides`` are single fields that go over everything. Without a configuration that which lies in a folder of
    OpenClaw among ``paths`` is used (unless ``find_config`` is false) and named in :attr:`Report.found_config`; if
    there is none, the rolling detectors are on.
    ``mode`` is ``enforce`` or ``observe``, ``scope`` ``run`` or ``session``, ``arm`` ``auto``, ``always``
    or ``never`` (the post-compaction guard). ``tool_map`` names tools as the engine's rules know them, such as
    ``{"Bash": "exec"}``; it goes over what the readers of the formats declare. ``jobs`` is the number of
    processes; it changes nothing in the report. ``previews`` keeps short, masked forms of arguments for people.
    ``near_misses`` looks for repetitions that the rules cannot see, and keeps them with each session.
    ``progress`` is called with each source that is done. ``debug`` lets unforeseen exceptions through.

    A source that cannot be read does not stop the others: its :attr:`SourceReport.failures` say why.
    Raises :class:`UsageError` and :class:`ConfigError` for what does not make
    sense before anything is read.
    """
    if jobs < 1:
        raise UsageError(f"jobs must be at least 1, not {jobs}")
    planned = plan(
        paths,
        config=config,
        agent=agent,
        ruleset=ruleset,
        overrides=overrides,
        mode=mode,
        scope=scope,
        arm=arm,
        tool_map=tool_map,
        input_format=input_format,
        max_line=max_line,
        max_expanded=max_expanded,
        find_config=find_config,
        previews=previews,
        near_misses=near_misses,
    )
    return carry_out(planned, jobs=jobs, progress=progress, debug=debug)


def carry_out(planned: Plan, *, jobs: int = 1, progress: Progress | None = None, debug: bool = False) -> Report:
    """Do what :func:`plan` planned, and return the report."""
    report = planned.report()
    found = planned.discover(report.unread)
    report.skipped = found.skipped
    advising = _Advising(planned.options)
    with closing_archives():
        for source, sessions in work_on(found, ReplaySource(planned.options, debug), jobs):
            add(report, source, sessions, planned.options)
            advising.take(sessions)
            if progress:
                progress(source, len(found.sources))
    bring_home(report)
    report.advice = advising.lines()
    return report


class _Advising:
    """Makes advice of the profiles of sessions, if there are any, and lets go of them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._advisers: Advisers | None = None
        if options.profiles:
            from loopscan.tuning.advisers import Advisers
            from loopscan.tuning.profiles import Basis

            self._advisers = Advisers(Basis(options.policy.ruleset.name, options.scope, options.arm))

    def take(self, sessions: Iterable[SessionReport]) -> None:
        for session in sessions:
            if self._advisers is not None and session.profile is not None:
                self._advisers.add(session.profile, self._options.policy_of(session.agent))
                session.profile = None

    def lines(self) -> tuple[str, ...]:
        return tuple(self._advisers.lines()) if self._advisers is not None else ()


def bring_home(report: Report) -> None:
    """Bring the verdicts that logs and the like record to the sessions that they are of."""
    attached = attach(report.sessions, report.policy.ruleset)
    report.sessions, report.elsewhere = attached.sessions, attached.apart


def add(report: Report, source: SourceReport, sessions: list[SessionReport], options: Options) -> None:
    """Add a source and its sessions to a report."""
    report.sources.append(source)
    report.sessions += sessions
    for session in sessions:
        own = options.own_policy(session.agent)
        if own is not None and session.agent is not None:
            report.agents[session.agent] = own


class SourceReplay:
    """One source on its way: its events in, its report and those of its sessions out."""

    def __init__(
        self,
        found: Found,
        options: Options,
        begin: Callable[[str, SessionStarted, Options], SessionReplay] = SessionReplay,
    ) -> None:
        """Begin the source; ``begin`` makes what replays each of its sessions."""
        self._begin = begin
        self.source = found.source
        self.report = SourceReport(found.source.name, found.reader)
        self.sessions: list[SessionReport] = []
        """Those that ended, in the order in which they did."""
        self._options = options
        self._tools = {**traits_of(readers()[found.reader]).tools, **options.tool_map}
        self._going: dict[str, SessionReplay] = {}
        self._current: SessionReplay | None = None

    def feed(self, event: Event) -> list[Mark]:
        """Take in the next event and return the marks that it makes."""
        match event:
            case Problem():
                self.report.add_problem(event)
            case Pause():
                pass
            case SessionStarted():
                self._current = self._going[event.session] = self._begin(self.source.name, event, self._options)
            case SessionResumed():
                self._current = self._going.get(event.session)
            case SessionEnded():
                if self._current is not None:
                    self._end(self._current, event)
                self._current = None
            case Turn():
                if self._current is not None:
                    return self._current.feed(self._renamed(event))
            case _:
                if self._current is not None:
                    return self._current.feed(event)
        return []

    def row(self, mark: Mark) -> dict[str, Any]:
        """Return a mark that the latest event made as a row of the report."""
        if self._current is None:
            raise ValueError("no session goes on")
        return self._current.row(mark)

    def finish(self) -> Answer:
        """Return the reports: nothing follows. Sessions whose end was not read end here."""
        for current in list(self._going.values()):
            self._end(current, SessionEnded(Where()))
        report = self.report
        report.tools = dict(sorted(report.tools.items()))
        sessions = sum(not stands_apart(session) for session in self.sessions)
        report.take_counts(self.source, sessions, sum(session.calls for session in self.sessions))
        return report, self.sessions

    def _end(self, current: SessionReplay, event: SessionEnded) -> None:
        session = current.finish(event)
        self._going.pop(session.session, None)
        # A copy of which nothing is left is no session more.
        if session.runs or session.recorded or not self.source.copies:
            self.sessions.append(session)

    def _renamed(self, turn: Turn) -> Turn:
        """Return a message of the model with the names of tools that the engine's rules know."""
        if not any(call.tool in self._tools for call in turn.calls):
            return turn
        calls: list[Call] = []
        for call in turn.calls:
            name = self._tools.get(call.tool, call.tool)
            if name != call.tool:
                self.report.tools[call.tool] = name
                call = replace(call, tool=name)
            calls.append(call)
        return replace(turn, calls=tuple(calls))


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """Replays one source: what was read, and its sessions in the order in which they end."""

    options: Options
    debug: bool = False

    def __call__(self, found: Found) -> Answer:
        """Replay the source."""
        replaying = SourceReplay(found, self.options)
        with replaying.report.taking_failures(found.source, debug=self.debug):
            for event in readers()[found.reader].read(found.source):
                replaying.feed(event)
        return replaying.finish()

    def killed(self, found: Found) -> Answer:
        """Return the answer for a source whose process was killed."""
        return SourceReport.killed(found.source.name, found.reader), []


def _choice(kind: type[_Choice], name: str, value: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise UsageError(f"{name} must be one of {allowed}, not {value!r}") from None
