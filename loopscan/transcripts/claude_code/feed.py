"""From lines to dialogues: what each type of line tells the replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loopscan.events import Call, Event, Json, Problem, Usage, Where
from loopscan.transcripts.claude_code.prompts import Speech, is_meta, speech_of
from loopscan.transcripts.claude_code.results import COMMANDS, read_result
from loopscan.transcripts.claude_code.sessions import Copies, Sessions, entry_id
from loopscan.transcripts.dialogue import Dialogue, Dialogues
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import (
    Object,
    array,
    dollars,
    identifier,
    mapping,
    seconds,
    string,
    text_of,
    tokens,
)

#: How many sessions go on at the same time at most; beyond, the one that was silent for longest ends.
MOST_GOING = 1024

_SYNTHETIC = "<synthetic>"
#: What may wait in line besides what the user wrote.
_NOT_PROMPTS = frozenset({"task-notification", "orphaned-permission", "bash"})
_API_ERROR = "API Error"


@dataclass(slots=True)
class _Talk:
    """One session while it goes on."""

    dialogue: Dialogue
    message: str | None = None
    """The id of the model's latest message."""
    idle: bool = True
    """The model wants nothing more."""
    waking: Where | None = None
    """What may have opened a run, if the model answers it."""
    compacted: bool = False
    """A compaction was told of which the summary is yet to come."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line that is no copy."""

    kind: str
    where: Where
    size: int
    session: str
    body: Object
    message: Object


class ClaudeCodeFeed:
    """One file, or one captured stream, while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._sessions = Sessions(source.name)
        self._copies = Copies(source)
        self._dialogues = Dialogues()
        self._talks: dict[str, _Talk] = {}
        """The sessions that go on, the one that was silent for longest first."""
        self._tools: Recent[str, str] = Recent()
        """Which tool a call is of, by session and id."""

    def line(self, line: Line, body: Object) -> Iterable[Event]:
        """Take in a line."""
        session = self._sessions.name(body, line.number)
        if self._copies.is_copy(body):
            return ()
        where = Where(line.number, entry_id(body), seconds(body.get("timestamp")))
        kind = string(body.get("type")) or "untyped"
        entry = _Entry(kind, where, line.size, session, body, mapping(body.get("message")))
        name, used = self._take(entry)
        self._source.count(name, used=used)
        return self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterable[Event]:
        """Pass a problem on."""
        return (problem,)

    def finish(self) -> Iterable[Event]:
        """End all sessions."""
        return self._dialogues.finish()

    def _take(self, entry: _Entry) -> tuple[str, bool]:
        """Tell the session what a line says; return what to count it as, and whether it said anything."""
        body = entry.body
        match entry.kind:
            case "assistant":
                return self._assistant(entry)
            case "user":
                return self._user(entry)
            case "system":
                return self._system(entry)
            case "attachment":
                return self._attachment(entry)
            case "result" if string(body.get("subtype")) is not None:
                # The end of a run in stream-json; session files have another kind of "result".
                if body["subtype"] == "success" and body.get("is_error") is not True:
                    self._talk(entry).dialogue.completed(entry.where)
                else:
                    self._stop(entry)
                return "result", True
        return entry.kind, False

    # --- the model

    def _assistant(self, entry: _Entry) -> tuple[str, bool]:
        body, message = entry.body, entry.message
        content = message.get("content")
        if not isinstance(content, list | str):
            return self._damaged(entry, "an assistant line without content")
        failed = body.get("isApiErrorMessage") is True or body.get("isAbortedMidStream") is True
        failed = failed or bool(body.get("error"))
        if message.get("model") == _SYNTHETIC:
            # Claude Code itself wrote this: the model call failed, or there was none.
            if not failed and not text_of(content).startswith(_API_ERROR):
                return "assistant, not by the model", False
            failed = True
        talk = self._talk(entry)
        calls = [self._call(entry, block) for block in array(content) if mapping(block).get("type") == "tool_use"]
        if talk.waking is not None:
            self._wake(talk)
        name = identifier(message.get("id"))
        more = name is not None and name == talk.message
        talk.idle = not calls and (talk.idle or not more)
        talk.message = name
        talk.compacted = False
        talk.dialogue.turn(
            entry.where,
            calls,
            message=name,
            model=None if message.get("model") == _SYNTHETIC else string(message.get("model")),
            stop_reason=string(message.get("stop_reason")),
            usage=_usage(message, body),
            failed=failed,
            size=entry.size,
        )
        return "assistant", True

    def _call(self, entry: _Entry, block: Json) -> Call:
        given = mapping(block)
        tool, call_id = string(given.get("name")), identifier(given.get("id"))
        if tool is None:
            self._problem(entry, "damaged-call", "a call without the name of a tool")
        elif call_id is not None:
            self._tools[_of(entry.session, call_id)] = tool
        arguments = given.get("input")
        if (
            tool in COMMANDS
            and isinstance(arguments, dict)
            and "description" in arguments
            and "title" not in arguments
        ):
            self._source.normalised["command-title"] += 1
            arguments = {"title" if key == "description" else key: value for key, value in arguments.items()}
        return Call(tool or "", arguments, call_id)

    # --- in the name of the user

    def _user(self, entry: _Entry) -> tuple[str, bool]:
        body, content = entry.body, entry.message.get("content")
        if not isinstance(content, list | str):
            return self._damaged(entry, "a user line without content")
        blocks = [block for block in array(content) if isinstance(block, dict) and block.get("type") == "tool_result"]
        if blocks:
            self._results(entry, blocks)
            speech = Speech.NOTHING if is_meta(body) else speech_of(content)
            if speech is Speech.PROMPT:
                self._talk(entry).dialogue.user(entry.where, steering=True)
            elif speech is Speech.STOP:
                self._stop(entry)
            return "user, results", True
        if body.get("isCompactSummary") is True:
            talk = self._talk(entry)
            if not talk.compacted:
                self._compaction(talk, entry.where, in_run=None)
            talk.compacted = False
            return "user, summary", True
        if is_meta(body):
            return "user, meta", False
        return self._speech(entry, speech_of(content))

    def _speech(self, entry: _Entry, speech: Speech) -> tuple[str, bool]:
        match speech:
            case Speech.STOP:
                self._stop(entry)
                return "user, interruption", True
            case Speech.PROMPT:
                talk = self._talk(entry)
                talk.dialogue.user(entry.where)
                talk.waking, talk.compacted = None, False
                return "user", True
            case Speech.WAKING:
                talk = self._talk(entry)
                if talk.idle and talk.waking is None:
                    talk.waking = entry.where
                return "user, command or notice", True
        return "user, note", False

    def _results(self, entry: _Entry, blocks: list[Object]) -> None:
        talk, body = self._talk(entry), entry.body
        parts = body.get("toolUseResult", body.get("tool_use_result")) if len(blocks) == 1 else None
        for block in blocks:
            call_id = identifier(block.get("tool_use_id"))
            tool = self._tools.get(_of(entry.session, call_id)) if call_id is not None else None
            reading = read_result(tool, block, parts, body.get("toolDenialKind"))
            self._source.normalised.update(reading.normalised)
            size = entry.size // len(blocks)
            if reading.absent is not None:
                talk.dialogue.absent(entry.where, reading.absent, call_id=call_id, size=size)
            else:
                fate, outcome = reading.fate, reading.outcome
                talk.dialogue.result(entry.where, outcome, call_id=call_id, fate=fate, size=size)

    # --- the rest

    def _system(self, entry: _Entry) -> tuple[str, bool]:
        name = f"system, {string(entry.body.get('subtype')) or 'of no subtype'}"
        match entry.body.get("subtype"):
            case "compact_boundary":
                talk = self._talk(entry)
                about = entry.body.get("compactMetadata", entry.body.get("compact_metadata"))
                self._compaction(
                    talk, entry.where, in_run=False if mapping(about).get("trigger") == "manual" else None
                )
                talk.compacted = True
                return name, True
            case "init":
                self._talk(entry)
                return name, True
        return name, False

    def _attachment(self, entry: _Entry) -> tuple[str, bool]:
        """Take in what the user wrote while the run went on; other attachments tell nothing."""
        attached = mapping(entry.body.get("attachment"))
        name = f"attachment, {string(attached.get('type')) or 'of no type'}"
        if attached.get("type") != "queued_command" or string(attached.get("commandMode")) in _NOT_PROMPTS:
            return name, False
        if is_meta(attached) or speech_of(attached.get("prompt")) is not Speech.PROMPT:
            return name, False
        talk = self._talk(entry)
        if talk.waking is not None:
            self._wake(talk)
        talk.dialogue.user(entry.where, steering=True)
        return name, True

    def _compaction(self, talk: _Talk, where: Where, *, in_run: bool | None) -> None:
        if in_run is False:
            talk.waking = None
        elif talk.waking is not None:
            self._wake(talk)
        talk.dialogue.compaction(where, in_run=in_run)

    def _stop(self, entry: _Entry) -> None:
        talk = self._talk(entry)
        talk.dialogue.stopped(entry.where)
        talk.idle, talk.waking = True, None

    def _wake(self, talk: _Talk) -> None:
        """Open a run with what came before: the model answered it."""
        if talk.waking is not None:
            talk.dialogue.user(talk.waking)
        talk.waking = None

    def _talk(self, entry: _Entry) -> _Talk:
        """Return the session of a line, which begins with it if it does not go on."""
        talk = self._talks.pop(entry.session, None)
        if talk is None:
            if len(self._talks) >= MOST_GOING:
                silent = next(iter(self._talks))
                del self._talks[silent]
                self._dialogues.end(silent)
            body = entry.body
            version = string(body.get("version")) or string(body.get("claude_code_version"))
            model = string(body.get("model"))
            talk = _Talk(self._dialogues.start(entry.session, entry.where, model=model, version=version))
        else:
            self._dialogues.get(entry.session)
        self._talks[entry.session] = talk
        return talk

    def _damaged(self, entry: _Entry, detail: str) -> tuple[str, bool]:
        self._problem(entry, "damaged-message", detail)
        return f"{entry.kind}, damaged", False

    def _problem(self, entry: _Entry, kind: str, detail: str) -> None:
        self._talk(entry).dialogue.problem(Problem(entry.where.line, kind, detail))


def _usage(message: Object, body: Object) -> Usage:
    given = mapping(message.get("usage"))
    read, written = tokens(given.get("cache_read_input_tokens")), tokens(given.get("cache_creation_input_tokens"))
    asked, answered = tokens(given.get("input_tokens")), tokens(given.get("output_tokens"))
    cost = dollars(body.get("costUSD"))
    return Usage(asked, answered, read, written, asked + answered + read + written, cost)


def _of(session: str, call_id: str) -> str:
    return f"{session}\0{call_id}"
