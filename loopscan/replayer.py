"""Many transcripts to one report: what the command ``loopscan replay`` does.

Each source is read once, each session goes through an engine of its own, and the report keeps the
order of the sources, however many processes worked on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from loopscan._version import __version__
from loopscan.configfile import load_agent_policies, load_policy
from loopscan.errors import InputError, UsageError
from loopscan.events import Problem, SessionEnded, SessionStarted
from loopscan.modes import Arm, Mode, ScopeRule
from loopscan.report import INTERNAL_ERROR, UNREADABLE, Report, SessionReport, SourceReport
from loopscan.sanitize import clean
from loopscan.sessions import Options, SessionReplay
from loopscan.transcripts.discover import Found, discover
from loopscan.transcripts.reader import readers

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
    or ``never`` (the post-compaction guard). ``jobs`` is the number of processes; it changes nothing in
    the report. ``previews`` keeps short, masked forms of arguments for people. ``progress`` is called
    with each source that is done. ``debug`` lets unforeseen exceptions through.

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


def replay_source(found: Found, options: Options, debug: bool = False) -> _Answer:
    """Replay one source; return what was read, and its sessions in the order in which they end."""
    report = SourceReport(found.source.name, found.reader)
    sessions: list[SessionReport] = []
    current: SessionReplay | None = None
    try:
        for event in readers()[found.reader].read(found.source):
            if isinstance(event, Problem):
                report.add_problem(event)
            elif isinstance(event, SessionStarted):
                current = SessionReplay(found.source.name, event, options)
            elif current and isinstance(event, SessionEnded):
                sessions.append(current.finish(event))
                current = None
            elif current:
                current.feed(event)
    except InputError as error:
        report.add_problem(Problem(0, UNREADABLE, str(error)))
    except Exception as error:
        if debug:
            raise
        what = f"{clean(found.source.name)}: internal error, {type(error).__name__}, after line {found.source.lines}"
        report.add_problem(Problem(found.source.lines, INTERNAL_ERROR, f"{what}; run it with --debug and report it"))
    report.bytes, report.lines = found.source.bytes, found.source.lines
    report.sessions = len(sessions)
    report.calls = sum(session.calls for session in sessions)
    return report, sessions


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
