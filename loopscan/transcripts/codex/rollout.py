"""One rollout file while it is read: which entries are one response, where a run begins, what each response cost.

A rollout records most things twice, as an item of the model's context and as an event for the screen. The items are
what is read; the events tell what items do not: real user input, the end of a turn, the count of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscan.events import NO_USAGE, Call, Event, Problem, Usage, Where
from loopscan.transcripts.codex.lines import (
    CALLS,
    COMPACTED,
    COMPACTIONS,
    CONTEXT,
    EVENT,
    HOSTED,
    ITEM,
    META,
    OUTPUTS,
    PSEUDO_USER,
    THINKING,
    TURN_ABORTED,
    ancestors_of,
    call_of,
    decides,
    entry_id,
    kind_of,
    parent_of,
    session_id,
    session_of,
    usage_of,
)
from loopscan.transcripts.codex.outputs import meaning_of
from loopscan.transcripts.codex.replays import Replays
from loopscan.transcripts.dialogue import Dialogue, Dialogues
from loopscan.transcripts.jsonl import Line
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, identifier, mapping, seconds, string, text_of


class Rollouts:
    """The sessions of one rollout file: one, unless files were joined."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._dialogues = Dialogues()
        self._session: _Session | None = None

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in a line."""
        kind, payload = kind_of(body)
        where = Where(line.number, entry_id(payload), seconds(body.get("timestamp")))
        if kind == META:
            self._meta(where, payload)
        else:
            session = self._touched() or self._begin(where, {})
            if kind == CONTEXT:
                session.model = string(payload.get("model")) or session.model
            if not session.replays.is_copy(body, decides=decides(kind, payload)):
                name, used = session.take(kind, payload, where, line.size)
                self._source.count(name, used=used)
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Put a problem where the line would have been."""
        session = self._touched()
        if session is None:
            yield problem
            return
        session.dialogue.problem(problem)
        yield from self._dialogues.drain()

    def finish(self) -> Iterator[Event]:
        """End the last session."""
        session = self._touched()
        if session is not None:
            session.finish()
        yield from self._dialogues.finish()

    def _touched(self) -> _Session | None:
        """Return the session that goes on, which is about to be told something."""
        if self._session is not None:
            self._dialogues.get(self._session.dialogue.session)
        return self._session

    def _meta(self, where: Where, payload: Object) -> None:
        """Take in the header of a session, or of one whose history follows."""
        named = session_id(payload)
        session = self._touched()
        if session is None:
            self._begin(where, payload)
            self._source.count(META, used=True)
            return
        if named is not None and named != session.id:
            if session.inherits:
                session.replays.descends_from(named)
            else:
                session.finish()
                self._begin(where, payload)
                self._source.count(META, used=True)
                return
        # A header again: the session was resumed, or its ancestor's is part of the history.
        self._source.count(META, used=False)

    def _begin(self, where: Where, meta: Object) -> _Session:
        named = session_id(meta) or session_of(self._source.name)
        parent = parent_of(meta)
        shown = named if parent is None else f"{parent}/{named}"
        previous = self._session
        if previous is not None:
            self._dialogues.end(previous.dialogue.session)
        dialogue = self._dialogues.start(shown, where, version=string(meta.get("cli_version")))
        if not meta:
            detail = "the file does not begin with a session_meta line: the session is named after the file"
            dialogue.problem(Problem(where.line, "no-header", detail))
        self._session = session = _Session(named, dialogue, self._source)
        for ancestor in ancestors_of(meta):
            if ancestor != named:
                session.replays.descends_from(ancestor)
                session.forked = True
        return session


class _Session:
    """One session of a rollout."""

    def __init__(self, identity: str, dialogue: Dialogue, source: Source) -> None:
        self.id = identity
        self.dialogue = dialogue
        self.replays = Replays(source, identity)
        self.forked = False
        """The header names a session that this one was forked from."""
        self.model: str | None = None
        """As the latest context of a turn has it, even if that is a copy."""
        self._source = source
        self._empty = True
        """Nothing but headers came so far."""
        self._where = Where()
        self._tools: Recent[str, str] = Recent()
        """The tools of calls by the ids of the calls."""
        # The response of the model that goes on or came last.
        self._responses = 0
        self._response: str | None = None
        self._answered = False
        """An output followed: what the model says next is another response."""
        self._metered = False
        """It is known what it cost."""
        self._early = False
        """A count of tokens came before its items, as in older versions."""
        self._complete = False
        """The count of tokens came after its items: what the model says next is another response."""
        self._thinking = False
        """Something shows that the model is at work on the next response."""
        self._total: Usage | None = None
        """The tokens of the session so far; a count that repeats them is none."""
        self._pending: Usage | None = None
        """What a response cost of which no item came yet."""
        # Runs.
        self._running = False
        self._task: str | None = None
        """The id of the turn (a run) that goes on, empty if it has none; ``None`` where no turn is known."""
        self._prompted = False
        """The turn that goes on has had its prompt."""
        self._fresh = False
        """User input came, and nothing of the model since."""
        self._events = False
        """User input is recorded as events; items in the user's name are then no input of their own."""
        self._prompt: Where | None = None
        """An item in the user's name that is input if no event says what the input is."""
        self._compactions: set[str] = set()
        """How the compaction was recorded that nothing of the user or model came after."""

    @property
    def inherits(self) -> bool:
        """Whether a header of another session tells of history that follows, and not of a session of its own."""
        return self.forked or self._empty

    def take(self, kind: str, payload: Object, where: Where, size: int) -> tuple[str, bool]:
        """Take in an entry; return its name for people, and whether it told anything."""
        self._empty = False
        self._where = where
        if not payload:
            self.dialogue.problem(Problem(where.line, "malformed-entry", "a line without a payload"))
        if kind == ITEM:
            name = string(payload.get("type")) or "unknown"
            if name == "message":
                role = string(payload.get("role")) or "unknown"
                return f"{kind} {name} {role}", self._message(role, payload, where, size)
            return f"{kind} {name}", self._item(name, payload, where, size)
        if kind == EVENT:
            name = string(payload.get("type")) or "unknown"
            return f"{kind} {name}", self._event(name, payload, where)
        if kind == CONTEXT:
            self._thinking = self._thinking or self._answered
            return kind, "model" in payload
        if kind == COMPACTED:
            return kind, self._compacted(kind, where)
        return kind, False

    def finish(self) -> None:
        """Take in that nothing follows in the session."""
        self._settle()
        self._drop_pending()

    # --- items

    def _message(self, role: str, payload: Object, where: Where, size: int) -> bool:
        if role == "assistant":
            self._respond(where, (), size)
            return True
        if role != "user":
            return False
        text = text_of(payload.get("content"))
        self._thinking = True
        if self._events:
            return False
        if TURN_ABORTED.match(text):
            self._stop(where)
            return True
        # Items in the user's name that follow one another open one run.
        if self._prompt is not None or PSEUDO_USER.match(text):
            return False
        self._drop_pending()
        self._prompt = where
        return True

    def _item(self, name: str, payload: Object, where: Where, size: int) -> bool:
        if name in OUTPUTS:
            return self._output(name, payload, where, size)
        if name in CALLS:
            call = call_of(name, payload)
            if call is not None:
                if not call.tool:
                    self.dialogue.problem(Problem(where.line, "malformed-entry", "a call without a tool name"))
                if call.id is not None:
                    self._tools[call.id] = call.tool
            self._respond(where, () if call is None else (call,), size)
            return True
        if name in HOSTED or name == "reasoning":
            self._respond(where, (), size)
            return True
        if name in COMPACTIONS:
            return self._compacted(name, where)
        return False

    def _output(self, name: str, payload: Object, where: Where, size: int) -> bool:
        call_id = identifier(payload.get("call_id"))
        if name == "tool_search_output" and (call_id is None or payload.get("execution") == "server"):
            return False
        self._settle()
        self._answered = True
        output = payload.get("tools") if name == "tool_search_output" else payload.get("output")
        meaning = meaning_of(output, self._tools.get(call_id) if call_id is not None else None)
        for normaliser in meaning.normalised:
            self._source.normalised[normaliser] += 1
        if meaning.absent is not None:
            return self.dialogue.absent(where, meaning.absent, call_id=call_id, size=size)
        return self.dialogue.result(where, meaning.outcome, call_id=call_id, fate=meaning.fate, size=size)

    def _respond(self, where: Where, calls: tuple[Call, ...], size: int) -> None:
        """Take in a part of a response: of the one that goes on, or of a new one if something ended that."""
        self._settle()
        self._fresh = False
        self._compactions.clear()
        if self._response is None or self._answered or self._complete:
            self._responses += 1
            self._response = str(self._responses)
            self._answered = self._complete = self._thinking = False
            self._metered = self._early = self._pending is not None
        usage, self._pending = self._pending or NO_USAGE, None
        self._tell(where, calls, usage, size)

    def _tell(self, where: Where, calls: tuple[Call, ...], usage: Usage, size: int = 0) -> None:
        self._running = True
        self.dialogue.turn(
            where, calls, message=self._response, run_id=self._task or None, model=self.model, usage=usage, size=size
        )

    # --- events

    def _event(self, name: str, payload: Object, where: Where) -> bool:
        if name == "token_count":
            return self._tokens(payload, where)
        if name == "user_message":
            return self._user_message(where)
        if name in ("task_started", "turn_started"):
            return self._task_started(identifier(payload.get("turn_id")) or "", where)
        if name in ("task_complete", "turn_complete"):
            self._settle()
            self._drop_pending()
            self._end_run()
            self.dialogue.completed(where)
            return True
        if name == "turn_aborted":
            self._stop(where)
            return True
        if name == "context_compacted":
            return self._compacted(name, where)
        if name in THINKING and (self._response is None or self._answered or self._complete):
            self._thinking = True
        return False

    def _user_message(self, where: Where) -> bool:
        """Take in user input; the item before it, if there is one, is the same input again."""
        self._events = True
        self._prompt = None
        self._user(where)
        return True

    def _user(self, where: Where) -> None:
        if where.line == self._where.line:
            self._drop_pending()  # else what is pending came after the input, which waited
        steering = self._prompted if self._task is not None else None
        self.dialogue.user(where, run_id=self._task or None, steering=steering)
        self._running = self._prompted = self._fresh = True
        self._response = None
        self._thinking = False
        self._compactions.clear()

    def _task_started(self, task: str, where: Where) -> bool:
        if self._task is not None and (not task or task != self._task) and not self._fresh:
            # The turn before it never ended on record.
            self._stop(where)
        self._prompted = self._fresh
        self._task = task
        return True

    def _stop(self, where: Where) -> None:
        self._settle()
        self._drop_pending()
        self._end_run()
        self.dialogue.stopped(where)

    def _end_run(self) -> None:
        self._running = self._prompted = self._fresh = self._thinking = False
        self._task = self._response = None

    def _settle(self) -> None:
        """Take the item in the user's name that waits for input: nothing else said what the input was."""
        prompt, self._prompt = self._prompt, None
        if prompt is not None:
            self._user(prompt)

    def _compacted(self, kind: str, where: Where) -> bool:
        """Take in a compaction, which is recorded in up to three ways, one after the other."""
        if self._compactions and kind not in self._compactions:
            self._compactions.add(kind)
            return False
        self._settle()
        self._compactions = {kind}
        # What the summary cost is no response of the run.
        self._pending = self._response = None
        self.dialogue.compaction(where)
        return True

    # --- tokens

    def _tokens(self, payload: Object, where: Where) -> bool:
        """Take in a count of tokens: of the response before it or, in older versions, of the one that follows."""
        info = mapping(payload.get("info"))
        last = mapping(info.get("last_token_usage"))
        total = usage_of(mapping(info.get("total_token_usage")) or last)
        if not last or total == self._total:
            return False
        self._total = total
        usage = usage_of(last)
        if not usage.total:
            return False
        # One that came early was of something else if another comes before the outputs, where newer versions put it.
        open_to_it = not self._metered or (self._early and not self._answered)
        if self._response is not None and open_to_it and not self._thinking:
            self._metered = self._complete = True
            self._early = False
            self._tell(where, (), usage)
            return True
        if self._pending is not None:
            self._settle()
            self._drop_pending()
        self._pending = usage
        return True

    def _drop_pending(self) -> None:
        """Let go of the cost of a response that left no items behind: it failed or was stopped."""
        usage, self._pending = self._pending, None
        if usage is None or not self._running:
            return
        self._responses += 1
        self._response = None
        self.dialogue.turn(
            self._where,
            message=str(self._responses),
            run_id=self._task or None,
            model=self.model,
            usage=usage,
            failed=True,
        )
