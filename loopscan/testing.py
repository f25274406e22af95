"""Assertions on a replay for tests of your own, with any test runner.

>>> from loopscan.testing import replay, session
>>> replay("sessions/night.jsonl", ruleset="2026.9").assert_marks(none=True)
>>> stuck = replay(session([("read", {"path": "notes.txt"}, "the same text")] * 11))
>>> stuck.assert_marks("warning generic_repeat 10")

They are compared as ``loopscan check`` does, so words and reasons are the same. With pytest the fixture ``loopscan``
is this module.
"""

from __future__ import annotations

import difflib
import inspect
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

from loopscan.checks.compare import Difference, compare
from loopscan.checks.document import Document
from loopscan.checks.marks import FoundMark, found_marks
from loopscan.checks.mistakes import Mistakes
from loopscan.checks.run import told
from loopscan.checks.schema import Expect, load
from loopscan.errors import InputError, UsageError
from loopscan.events import (
    Call,
    Ending,
    Event,
    Json,
    Outcome,
    Pause,
    Problem,
    Result,
    RunEnded,
    SessionEnded,
    SessionStarted,
    Turn,
    UserMessage,
    Where,
)
from loopscan.replayer import Plan, ReplaySource, SourceReplay, add, bring_home, carry_out, plan
from loopscan.replayer import replay as replay_paths
from loopscan.report import Report, SessionReport, SourceReport
from loopscan.reports.plain import lines
from loopscan.sanitize import clean
from loopscan.transcripts.discover import Found
from loopscan.transcripts.reader import HEAD_BYTES, Source, readers, recognise

#: What :func:`replay` takes: a path, several, the entries of a transcript, a document, or events.
Subject: TypeAlias = (
    str | os.PathLike[str] | Mapping[str, Any] | Iterable[str | os.PathLike[str] | Mapping[str, Any] | Event]
)

#: pytest leaves the lines of this module out of tracebacks: what is wrong is in the test, and in the message.
__tracebackhide__ = True

#: What reports call something that was never in a file.
_NAME: Final = "<memory>"
#: The reader whose names of tools are the engine's own.
_PLAIN_READER: Final = "openclaw-jsonl"
#: Keywords of :func:`loopscan.replay` that say how to work, not what comes out.
_OF_WORK: Final = frozenset({"jobs", "progress", "debug"})
#: All of them; the first parameter is what is replayed.
_KEYWORDS: Final = tuple(inspect.signature(replay_paths).parameters)[1:]
_ASSERT: Final = "assert_marks"


def replay(what: Subject, **keywords: Any) -> Replayed:  # noqa: ANN401 - those of loopscan.replay
    """Replay recorded or made-up sessions; ``keywords`` are those of :func:`loopscan.replay`.

    ``what`` is one of:

    * a path, or several: as for :func:`loopscan.replay`, relative to the working folder;
    * dictionaries: the entries of one transcript, one a line or in one list, in any format that loopscan reads;
    * one dictionary: a transcript that is one JSON object;
    * events of :mod:`loopscan.events`, such as :func:`session` makes; they begin with a ``SessionStarted``.

    Raises :class:`InputError` where something cannot be read or no session is found, since a test of nothing proves
    nothing, and :class:`UsageError` or :class:`ConfigError` for what makes no sense.
    """
    _refuse_unknown(keywords)
    if isinstance(what, str | os.PathLike):
        return _whole(_of_paths([what], keywords))
    if isinstance(what, Mapping):
        return _whole(_of_entries([what], keywords))
    items = iter(what)
    first = next(items, None)
    if first is None:
        raise InputError("there is nothing to replay: no path, entry or event was given")
    every: Iterable[Any] = chain([first], items)
    if isinstance(first, str | os.PathLike):
        return _whole(_of_paths(_all(every, str | os.PathLike, "path"), keywords))
    if isinstance(first, Mapping):
        return _whole(_of_entries(_all(every, Mapping, "entry"), keywords))
    return _whole(_of_events(_all(every, Event, "event"), keywords))


def session(
    calls: Iterable[tuple[str, Json, str | Outcome]], *, name: str = "session", agent: str | None = None
) -> list[Event]:
    """Return the events of a session with one run, in which the model made ``calls``, one a message.

    A call is its tool, its arguments, and what it came back with: a text, or an :class:`~loopscan.events.Outcome`.
    """
    nowhere = Where()
    events: list[Event] = [SessionStarted(name, nowhere, agent), UserMessage("1", nowhere)]
    for number, (tool, arguments, outcome) in enumerate(calls, 1):
        if isinstance(outcome, str):
            outcome = Outcome({"content": [{"type": "text", "text": outcome}]})
        call = Call(tool, arguments, f"call-{number}")
        events += [Turn("1", nowhere, (call,)), Result("1", nowhere, 0, outcome)]
    return [*events, RunEnded("1", nowhere, Ending.COMPLETED), SessionEnded(nowhere)]


class Marks(list[str]):
    """Marks in a few words each, such as ``block generic_repeat 20``; equal to a list of the same words."""

    def __init__(self, report: Report) -> None:
        super().__init__(_words(found) for found in found_marks(report))
        self.report = report

    def explain(self, expected: Iterable[object]) -> list[str]:
        """Return, line by line, how these differ from ``expected``; nothing where that is no list of such words."""
        try:
            differences = compare(self.report, None, _expect({"exact": list(expected)}))
        except UsageError:
            return []
        return lines(told([_without_run(each) for each in differences], self.report, previews=False))


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    report: Report

    @property
    def marks(self) -> Marks:
        """All marks in their order: kind, detector and count, such as ``warning generic_repeat 10``."""
        return Marks(self.report)

    def assert_marks(self, *marks: str | Mapping[str, Any], **assertions: Any) -> None:  # noqa: ANN401 - of the schema
        """Assert that the marks are ``marks``, each in its place and no others, and that ``assertions`` hold.

        A mark is written as :attr:`marks` has it, the count may be left out, or as a dictionary of its fields.
        ``assertions`` are the keys of ``expect`` in x.expect.yaml: ``none``, ``at_least``, ``at_most``, ``first``,
        ``outcomes``, ``not_reached``, ``counts``. Without any of both there must be no mark.

        Raises :class:`AssertionError` with all that is not so, expected and found, and why, and
        :class:`UsageError` for what is no mark or no assertion.
        """
        if marks and "exact" in assertions:
            raise UsageError(f"{_ASSERT}: the marks are given twice; leave out exact=")
        if marks or not assertions:
            assertions = {
                **assertions,
                "exact": [dict(mark) if isinstance(mark, Mapping) else mark for mark in marks],
            }
        differences = compare(self.report, None, _expect(assertions))
        if differences:
            raise AssertionError("\n".join(lines(told(differences, self.report, previews=True))))


def _whole(report: Report) -> Replayed:
    """Return what came of a replay. Raises :class:`InputError` if something, or everything, was not read."""
    if complaints := report.complaints():
        raise InputError(complaints[0])
    if not report.sessions:
        read = ", ".join(clean(source.path, 80) for source in report.sources[:3]) or "what was given"
        raise InputError(f"no session was found in {read}")
    return Replayed(report)


def _refuse_unknown(keywords: Iterable[str]) -> None:
    for name in keywords:
        if name not in _KEYWORDS:
            close = difflib.get_close_matches(name[:80], _KEYWORDS, 1, 0.6)
            hint = f'did you mean "{close[0]}"?' if close else f"known: {', '.join(_KEYWORDS)}"
            raise UsageError(f'replay: unknown keyword "{clean(name, 60)}"; {hint}')


def _all(items: Iterable[Any], kind: Any, name: str) -> Iterator[Any]:  # noqa: ANN401 - isinstance takes more than types
    for number, item in enumerate(items, 1):
        if not isinstance(item, kind):
            raise UsageError(f"{type(item).__name__} is no {name} (number {number} of what is to be replayed)")
        yield item


def _of_paths(paths: Iterable[str | os.PathLike[str]], keywords: dict[str, Any]) -> Report:
    work = {name: keywords.pop(name) for name in _OF_WORK & keywords.keys()}
    return carry_out(plan(paths, **keywords), **work)


def _of_entries(entries: Iterable[Mapping[str, Any]], keywords: dict[str, Any]) -> Report:
    planned = _in_memory(keywords)
    every = [dict(entry) for entry in entries]
    try:
        data = "".join(f"{json.dumps(entry)}\n" for entry in every).encode()
        listed = json.dumps(every).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an entry cannot be written as JSON: {clean(str(error), 120)}") from error
    reader = planned.input_format or _reader_of(data)
    if reader is None:
        data, reader = listed, _reader_of(listed)
    if reader is None:
        raise InputError("these entries are of no format that is known; loopscan formats lists them")
    if reader not in readers():
        raise UsageError(f'there is no format "{clean(reader, 80)}"; loopscan formats lists them')
    source = Source(_NAME, partial(io.BytesIO, data), max_line=planned.max_line)
    return _replayed(planned, *ReplaySource(planned.options)(Found(source, reader)))


def _reader_of(data: bytes) -> str | None:
    found = recognise(data[:HEAD_BYTES], _NAME)
    return None if found is None else found.name


def _of_events(events: Iterable[Event], keywords: dict[str, Any]) -> Report:
    planned = _in_memory(keywords)
    replaying = SourceReplay(Found(Source(_NAME, io.BytesIO), _PLAIN_READER), planned.options)
    replaying.report.format = "events"
    started = False
    for event in events:
        started = started or isinstance(event, SessionStarted)
        if not started and not isinstance(event, Problem | Pause):
            raise UsageError(f"events begin with a SessionStarted, not with a {type(event).__name__}")
        replaying.feed(event)
    return _replayed(planned, *replaying.finish())


def _in_memory(keywords: dict[str, Any]) -> Plan:
    return plan([], **{name: value for name, value in keywords.items() if name not in _OF_WORK})


def _replayed(planned: Plan, source: SourceReport, sessions: list[SessionReport]) -> Report:
    report = planned.report()
    add(report, source, sessions, planned.options)
    bring_home(report)
    return report


def _words(found: FoundMark) -> str:
    row = found.row
    count = row.get("count")
    return f"{row['kind']} {row['detector']}" + (f" {count}" if count is not None else "")


def _expect(assertions: dict[str, Any]) -> Expect:
    """Return assertions as a file would have them. Raises :class:`UsageError` for what is none."""
    document = Document(_ASSERT, "", None, assertions)
    try:
        expect = load(Expect, document)
    except Mistakes as error:
        mistakes = (mistake.what for mistake in error.found)
        # Not from the error: a test runner would print what pydantic says before what is wrong.
        raise UsageError(f"{_ASSERT}: {'; '.join(mistakes)}") from None
    if not expect.asserts():
        raise UsageError(f"{_ASSERT}: what is None asserts nothing")
    return expect


def _without_run(difference: Difference) -> Difference:
    """Return a difference that asks for no timeline."""
    return replace(difference, session=None, run=None)
