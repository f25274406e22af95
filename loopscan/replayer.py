"""Many transcripts to one report: what the command ``loopscan replay`` does.

Each source is read once, each session goes through an engine of its own, and the report keeps the
order of the sources, however many processes worked on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from typing import TypeVar

from loopscan._version import __version__
from loopscan.configfile import load_agent_policies, load_policy
from loopscan.errors import InputError, UsageError
from loopscan.events import Call, Event, Pause, Problem, SessionEnded, SessionResumed, SessionStarted, Turn
from loopscan.marks import Mark
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.report import INTERNAL_ERROR, UNREADABLE, Report, SessionReport, SourceReport
from loopscan.sanitize import clean
from loopscan.sessions import Options, SessionReplay
from loopscan.transcripts.discover import Found, discover
from loopscan.transcripts.reader import readers, traits_of

PathLike = str | os.PathLike[str]
#: Called with each source that is done, in order, and how many there are.
Progress = Callable[[SourceReport, int], None]
_Answer = tuple[SourceReport, list[SessionReport]]
_Choice = TypeVar("_Choice", Mode, ScopeRule, Arm)


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
    previews: bool = True,
    progress: Progress | None = None,
    debug: bool = False,
) -> Report:
    """Replay recorded sessions and return the report.

    ``paths`` are files and folders. ``config`` is the path of an OpenClaw configuration (JSON5) or an
    already parsed ``tools.loopDetection`` object; the sessions of an agent that has a block of its own in
    it are judged with that. ``agent`` is one agent whose block goes over it for all sessions instead, and
    ``overrides`` are single fields that go over everything. Without a configuration the rolling detectors are on.
    ``mode`` is ``enforce`` or ``observe``, ``scope`` ``run`` or ``session``, ``arm`` ``auto``, ``always``
    or ``never`` (the post-compaction guard). ``tool_map`` names tools as the engine's rules know them, such as
    ``{"Bash": "exec"}``; it goes over what the readers of the formats declare. ``jobs`` is the number of
    processes; it changes nothing in the report. ``previews`` keeps short, masked forms of arguments for people.
    ``progress`` is called with each source that is done. ``debug`` lets unforeseen exceptions through.

    A source that cannot be read does not stop the others: its :attr:`SourceReport.failures` say why.
    Raises :class:`UsageError` and :class:`ConfigError` for what does not make
    sense before anything is read.
    """
    options = Options(
        load_policy(ruleset, config=config, agent=agent, overrides=overrides),
        load_agent_policies(ruleset, config=config, overrides=overrides) if agent is None else {},
        _choice(Mode, "mode", mode),
        _choice(ScopeRule, "scope", scope),
        _choice(Arm, "arm", arm),
        tool_map or {},
        previews,
    )
    if jobs < 1:
        raise UsageError(f"jobs must be at least 1, not {jobs}")
    report = Report(__version__, options.policy, options.mode.value, options.scope.value)
    found = discover([paths] if isinstance(paths, str | os.PathLike) else paths, on_error=report.unread)
    report.skipped = found.skipped
    for source, sessions in _replay_all(found.sources, options, jobs, debug=debug):
        report.sources.append(source)
        report.sessions += sessions
        for session in sessions:
            own = options.own_policy(session.agent)
            if own is not None and session.agent is not None:
                report.agents[session.agent] = own
        if progress:
            progress(source, len(found.sources))
    return report


class SourceReplay:
    """One source on its way: its events in, its report and those of its sessions out."""

    def __init__(self, found: Found, options: Options) -> None:
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
                self._current = self._going[event.session] = SessionReplay(self.source.name, event, self._options)
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

    def finish(self) -> _Answer:
        """Return the reports: nothing follows."""
        report, source = self.report, self.source
        report.bytes, report.lines = source.bytes, source.lines
        report.copies = dict(sorted(source.copies.items()))
        report.normalised = dict(sorted(source.normalised.items()))
        report.tools = {tool: name for tool, name in sorted(report.tools.items()) if tool != name}
        report.sessions = len(self.sessions)
        report.calls = sum(session.calls for session in self.sessions)
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


def replay_source(found: Found, options: Options, debug: bool = False) -> _Answer:
    """Replay one source; return what was read, and its sessions in the order in which they end."""
    replaying = SourceReplay(found, options)
    source, report = found.source, replaying.report
    try:
        for event in readers()[found.reader].read(source):
            replaying.feed(event)
    except InputError as error:
        report.add_problem(Problem(0, UNREADABLE, str(error)))
    except Exception as error:
        if debug:
            raise
        what = f"{clean(source.name)}: internal error, {type(error).__name__}, after line {source.lines}"
        report.add_problem(Problem(source.lines, INTERNAL_ERROR, f"{what}; run it with --debug and report it"))
    return replaying.finish()


def _replay_all(found: list[Found], options: Options, jobs: int, *, debug: bool) -> Iterator[_Answer]:
    """Replay all sources, in order, over ``jobs`` processes."""
    one = partial(replay_source, options=options, debug=debug)
    if jobs == 1 or len(found) == 1:
        yield from map(one, found)
        return
    finished = 0
    try:
        with ProcessPoolExecutor(min(jobs, len(found))) as pool:
            for answer in pool.map(one, found):
                finished += 1
                yield answer
    except BrokenProcessPool:
        for each in found[finished:]:
            yield _replay_apart(each, one)


def _replay_apart(found: Found, one: Callable[[Found], _Answer]) -> _Answer:
    """Replay one source in a process of its own, since a process that had others as well was killed."""
    try:
        with ProcessPoolExecutor(1) as pool:
            return pool.submit(one, found).result()
    except BrokenProcessPool:
        report = SourceReport(found.source.name, found.reader)
        what = f"{clean(found.source.name)}: the process that read it was killed (out of memory?)"
        report.add_problem(Problem(0, INTERNAL_ERROR, f"{what}; the other sources are not affected"))
        return report, []


def _choice(kind: type[_Choice], name: str, value: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise UsageError(f"{name} must be one of {allowed}, not {value!r}") from None
