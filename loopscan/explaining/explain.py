"""Many transcripts to explanations: what the command ``loopscan explain`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loopscan._version import __version__
from loopscan.engine.session import SessionEngine
from loopscan.events import SessionStarted
from loopscan.explaining.shadows import Reason
from loopscan.explaining.wanted import Wanted
from loopscan.explaining.watcher import Explained, Watcher
from loopscan.marks import Level
from loopscan.pool import work_on
from loopscan.replayer import Plan, Progress, SourceReplay
from loopscan.report import SourceReport, config_dict
from loopscan.sessions import Options, SessionReplay
from loopscan.transcripts.discover import Found, Skipped
from loopscan.transcripts.places import closing_archives
from loopscan.transcripts.reader import readers


@dataclass(slots=True)
class Explanation:
    """The answers, with what was read."""

    version: str
    options: Options
    wanted: Wanted
    answers: list[Explained] = field(default_factory=list)
    """Those that were stepped into first, then the longest repetitions; equal ones in their order."""
    runs: int = 0
    """How many runs were looked at."""
    sources: list[SourceReport] = field(default_factory=list)
    skipped: Sequence[Skipped] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document ``loopscan.explain/1``."""
        from loopscan.explaining.document import document

        return document(self)

    def settings(self) -> dict[str, Any]:
        """Return the configuration in force, with where each value came from."""
        return config_dict(self.options.policy)


def explain(
    planned: Plan, wanted: Wanted, *, jobs: int = 1, progress: Progress | None = None, debug: bool = False
) -> Explanation:
    """Replay what was planned, and explain the calls that are asked for, or every run."""
    made = Explanation(__version__, planned.options, wanted)
    report = planned.report()
    found = planned.discover(report.unread)
    made.sources += report.sources
    made.skipped = found.skipped
    with closing_archives():
        for source, answers in work_on(found, ExplainSource(planned.options, wanted, debug), jobs):
            made.sources.append(source)
            made.answers += answers
            if progress:
                progress(source, len(found.sources))
    made.runs = len(made.answers)
    made.answers.sort(key=_gravity)
    return made


def _gravity(answer: Explained) -> tuple[int, bool, int]:
    if answer.mark is not None and answer.mark.level is Level.CRITICAL:
        return 0, False, 0
    told, silence = 1 if answer.mark is not None else 2, answer.silence
    if silence is None or silence.reason is Reason.NOTHING_REPEATS:
        return (told, True, 0) if answer.mark is not None else (3, True, 0)
    return told, silence.reason is Reason.BELOW_THRESHOLD, -silence.calls


@dataclass(frozen=True, slots=True)
class ExplainSource:
    """Explains one source; goes to other processes."""

    options: Options
    wanted: Wanted
    debug: bool = False

    def __call__(self, found: Found) -> tuple[SourceReport, list[Explained]]:
        """Replay the source with a watcher on each of its sessions."""
        watchers: list[Watcher] = []

        def begin(source: str, started: SessionStarted, options: Options) -> SessionReplay:
            def observing(started: SessionStarted, engine: SessionEngine) -> Watcher:
                watchers.append(Watcher(source, started, engine, options, self.wanted))
                return watchers[-1]

            return SessionReplay(source, started, options, observing)

        replaying = SourceReplay(found, self.options, begin)
        with replaying.report.taking_failures(found.source, debug=self.debug):
            for event in readers()[found.reader].read(found.source):
                replaying.feed(event)
        source, _ = replaying.finish()
        return source, [answer for watcher in watchers for answer in watcher.explained()]

    def killed(self, found: Found) -> tuple[SourceReport, list[Explained]]:
        """Return the answer for a source whose process was killed."""
        return SourceReport.killed(found.source.name, found.reader), []
