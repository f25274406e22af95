"""The entries of a session whose transcript is not there, as far as its runtime trajectory tells them.

Up to 2026.6 a trajectory shows messages alone: those of the session after each attempt, the first 64 at most, long
texts and deep arguments cut out. Since 2026.9 it also tells of each tool call and its outcome, though not of the
message that asked. Either way the record is partial, and :meth:`Rebuilt.lacks` says in what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from loopscan.events import NO_USAGE, Fate, Json, Usage
from loopscan.transcripts.openclaw.entries import Entry, is_call, openclaw, usage_of
from loopscan.transcripts.openclaw.results import read_result
from loopscan.transcripts.openclaw.session import Said
from loopscan.transcripts.openclaw.snapshots import SUMMARY, Snapshots
from loopscan.transcripts.openclaw.trace import (
    TraceEvent,
    abort_of,
    added,
    beyond,
    cut_off,
    cut_short,
    truncated,
    usage_of_run,
)
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, array, identifier, mapping, seconds, string

#: Runtime events that :class:`Rebuilt` takes in.
KINDS = frozenset(
    {
        "session.started",
        "context.compiled",
        "prompt.submitted",
        "tool.call",
        "tool.result",
        "model.completed",
        "trace.artifacts",
        "session.ended",
    }
)

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9]")
#: A message with more calls than this is none; the rest of them are another one.
_MOST_CALLS = 1024


@dataclass(slots=True)
class _Run:
    """One run while its events are read; it is attempted again after some compactions and errors."""

    attempts: int = 0
    first: float | None = None
    """When the first attempt began, and the latest, in seconds."""
    latest: float | None = None
    prompt: str | None = None
    opened: bool = False
    """Its user message is there."""
    tools: bool = False
    """The attempt tells of its tool calls."""
    asked: list[Object] = field(default_factory=list)
    """Calls that no result came for yet: one message, as far as anybody can tell."""
    culprit: str | None = None
    """The call that the live engine vetoed a message for, while its calls are told one after the other."""
    vetoed: list[Object] = field(default_factory=list)
    """Their results."""
    aborted: list[Object] = field(default_factory=list)
    """Results that say that their calls were aborted, since the latest other event."""
    spent: Usage = NO_USAGE
    """What the messages of the attempt say that they cost."""
    complete: bool = True
    """The messages of the attempt tell how it ended."""
    charged: bool = False
    """What the attempt cost is told."""
    hidden: bool = False
    """The attempt shows no messages."""

    def attempt(self, at: float | None) -> None:
        """Begin an attempt, at a time in seconds."""
        self.attempts += 1
        self.first = at if self.first is None else self.first
        self.latest = at
        self.tools = self.charged = self.hidden = False
        self.complete = True
        self.spent = NO_USAGE

    def covers(self, at: float | None) -> bool:
        """Say whether a message that was made then, in seconds, can be of this run."""
        return at is None or self.first is None or at >= self.first


class Rebuilt:
    """Makes entries of the runtime events of one session; ``take`` is given them in order."""

    def __init__(self) -> None:
        self.until = 0.0
        """When the newest message that was given was made, in seconds."""
        self._snapshots = Snapshots()
        self._runs: Recent[str, _Run] = Recent()
        self._ids: Recent[str, str] = Recent()
        """The ids of calls by what rewriting leaves of them."""
        self._vague: Recent[str, bool] = Recent()
        """Calls whose arguments were cut."""
        self._told_of_tools = False
        self._cut = 0
        self._hidden = 0
        self._named = 0
        self._met = False

    def take(self, event: TraceEvent) -> Iterator[Entry | Said]:
        """Return what an event adds to the record."""
        self._met = True
        run = self._run(event)
        match event.kind:
            case "session.started":
                yield from self._flush(event, run)
                run.attempt(event.where.time)
            case "prompt.submitted":
                run.prompt = string(event.data.get("prompt"))
            case "context.compiled":
                yield from self._context(event, run)
            case "tool.call":
                yield from self._call(event, run)
            case "tool.result":
                yield from self._result(event, run)
            case "model.completed":
                yield from self._completed(event, run)
            case "trace.artifacts":
                yield from self._artifacts(event, run)
            case "session.ended":
                yield from self._flush(event, run)
                yield from self._ended(event, run)
            case _:
                pass

    def lacks(self) -> str | None:
        """Say what the record lacks, in a sentence; ``None`` if there was nothing to rebuild."""
        if not self._met:
            return None
        said = "the transcript of this session is not here; its trajectory tells"
        if self._told_of_tools:
            said += " which tools were called, but not in which messages"
        else:
            said += " of calls only where it shows messages"
        if self._cut:
            said += f"; at least {self._cut:,} messages were cut off"
        if self._hidden:
            said += f"; {self._hidden:,} attempts show no messages (tool calls in them: {self._named:,})"
        return said

    # --- events

    def _context(self, event: TraceEvent, run: _Run) -> Iterator[Entry]:
        """Return what was there before the trajectory began, and later on what no snapshot showed.

        A prompt among the latter is one that is known, with another time.
        """
        first = not (self._snapshots.known or self._told_of_tools)
        for message in self._snapshots.new(event.data.get("messages")):
            role = message.get("role")
            if first or role == SUMMARY or (role != "user" and not self._told_of_tools):
                yield self._message(event, run, message, own=False)

    def _call(self, event: TraceEvent, run: _Run) -> Iterator[Entry]:
        self._told_of_tools = run.tools = True
        if len(run.asked) >= _MOST_CALLS:
            yield from self._flush(event, run)
        yield from self._open(event, run)
        arguments = event.data.get("args")
        block: Object = {"type": "toolCall", "name": event.data.get("name"), "arguments": arguments}
        call_id = identifier(event.data.get("toolCallId"))
        run.asked.append(block if call_id is None else {**block, "id": call_id})

    def _result(self, event: TraceEvent, run: _Run) -> Iterator[Entry]:
        self._told_of_tools = run.tools = True
        result = event.data.get("result")
        fields = mapping(result)
        content = fields.get("content") if "content" in fields else result if isinstance(result, str) else []
        message: Object = {
            "role": "toolResult",
            "toolCallId": event.data.get("toolCallId"),
            "toolName": event.data.get("name"),
            "content": content,
            "isError": event.data.get("success") is False,
        }
        if "details" in fields:
            message["details"] = fields["details"]
        culprit = string(mapping(mapping(fields.get("details")).get("intervention")).get("toolCallId"))
        if culprit is None:
            reading = read_result(message, None)
            if reading.fate is Fate.NOT_RUN and reading.absent is None and len(run.aborted) < _MOST_CALLS:
                run.aborted.append(message)
                return
            yield from self._flush(event, run)
            yield self._message(event, run, message, own=True)
            return
        # The calls of a vetoed message are told one after the other, each with its result.
        if culprit != run.culprit or len(run.vetoed) >= _MOST_CALLS:
            yield from self._flush_vetoed(event, run)
        run.culprit = culprit
        run.vetoed.append(message)

    def _completed(self, event: TraceEvent, run: _Run) -> Iterator[Entry | Said]:
        abort = abort_of(event.data)
        if abort is not None:
            # The guard saw the result of the call that it ended the run after; what is told is the end alone.
            run.aborted = []
        yield from self._flush(event, run)
        shown = event.data.get("messagesSnapshot")
        fresh = list(self._snapshots.new(shown))
        cut = cut_off(shown)
        self._cut = max(self._cut, cut)
        run.hidden = not isinstance(shown, list) and not run.tools
        self._hidden += run.hidden
        if run.tools:
            # What it shows was told, call by call.
            fresh = [message for message in fresh if message.get("role") == SUMMARY]
        if not any(message.get("role") == "user" for message in fresh):
            yield from self._open(event, run)
        for message in fresh:
            yield self._message(event, run, message, own=True)
        run.complete = not (cut or run.hidden or run.tools)
        failed = cut_short(event.data)
        texts = [text for text in array(event.data.get("assistantTexts")) if isinstance(text, str)]
        if run.tools and texts and not failed:
            content: list[Json] = [{"type": "text", "text": texts[-1]}]
            stop = string(event.data.get("stopReason")) or "stop"
            answer: Object = {"role": "assistant", "content": content, "stopReason": stop}
            yield self._message(event, run, answer, own=True)
        yield Said(
            event.where,
            event.run_id,
            stop="aborted" if failed and not run.complete and abort is None else None,
            explains=(failed or run.hidden or bool(cut)) and abort is None,
            usage=self._charge(event, run),
            abort=abort,
        )

    def _artifacts(self, event: TraceEvent, run: _Run) -> Iterator[Said]:
        if run.hidden:
            self._named += len(array(event.data.get("toolMetas")))
        if not run.charged:
            usage = self._charge(event, run)
            if usage != NO_USAGE:
                yield Said(event.where, event.run_id, usage=usage)

    def _ended(self, event: TraceEvent, run: _Run) -> Iterator[Said]:
        failed = cut_short(event.data)
        abort = abort_of(event.data)
        stop = {"success": "stop", "error": "error"}.get(string(event.data.get("status")) or "")
        if run.complete or abort is not None:
            stop = None
        elif failed and stop is not None:
            stop = "aborted"
        yield Said(event.where, event.run_id, stop=stop, explains=failed and abort is None, abort=abort)

    # --- entries

    def _run(self, event: TraceEvent) -> _Run:
        key = event.run_id or ""
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = _Run()
        return run

    def _open(self, event: TraceEvent, run: _Run) -> Iterator[Entry]:
        """Return the user message of a run that has none."""
        if not run.opened:
            message: Object = {"role": "user", "content": run.prompt or event.run_id or ""}
            if run.latest is not None:
                message["timestamp"] = run.latest * 1000
            yield self._message(event, run, message, own=True)

    def _flush(self, event: TraceEvent, run: _Run) -> Iterator[Entry]:
        """Return the messages that asked for the calls that were told of last, with the results that wait."""
        yield from self._flush_vetoed(event, run)
        if run.asked:
            yield self._ask(event, run, run.asked)
            run.asked = []
        for message in run.aborted:
            yield self._message(event, run, message, own=True)
        run.aborted = []

    def _flush_vetoed(self, event: TraceEvent, run: _Run) -> Iterator[Entry]:
        if not run.vetoed:
            return
        answered = {identifier(message.get("toolCallId")) for message in run.vetoed}
        asked = [block for block in run.asked if identifier(block.get("id")) in answered]
        run.asked = [block for block in run.asked if identifier(block.get("id")) not in answered]
        if asked:
            yield self._ask(event, run, asked)
        for message in run.vetoed:
            yield self._message(event, run, message, own=True)
        run.vetoed = []
        run.culprit = None

    def _ask(self, event: TraceEvent, run: _Run, blocks: list[Object]) -> Entry:
        content: list[Json] = [*blocks]
        return self._message(event, run, {"role": "assistant", "content": content, "stopReason": "toolUse"}, own=True)

    def _message(self, event: TraceEvent, run: _Run, message: Object, *, own: bool) -> Entry:
        """Return the entry of a message, of this run if it is its ``own``."""
        made = seconds(message.get("timestamp"))
        at = made if made is not None else event.where.time
        self.until = max(self.until, at or 0.0)
        stamp: Json = message.get("timestamp") if made is not None else event.body.get("ts")
        role = message.get("role")
        if role == SUMMARY:
            return event.entry(_compaction(event, run, message, at))
        if role == "user":
            run.opened |= own
        elif role == "assistant":
            message = self._asking(message)
            run.spent = added(run.spent, usage_of(message)) if own else run.spent
        elif role == "toolResult":
            message = self._answering(message)
        if own and role in ("assistant", "toolResult") and event.run_id is not None and run.covers(at):
            message = {**message, "__openclaw": {"runId": event.run_id, **openclaw(message)}}
        return event.entry({"type": "message", "timestamp": stamp, "message": message})

    def _asking(self, message: Object) -> Object:
        """Return a response with the ids of its calls as they were met first."""
        content = message.get("content")
        if not isinstance(content, list):
            return message
        blocks: list[Json] = []
        for block in content:
            if isinstance(block, dict) and is_call(block.get("type")):
                call_id = self._id(block.get("id"))
                if call_id is not None:
                    block = {**block, "id": call_id}
                    if truncated(block.get("arguments", block.get("input"))):
                        self._vague[call_id] = True
            blocks.append(block)
        return {**message, "content": blocks}

    def _answering(self, message: Object) -> Object:
        """Return a result with the id of its call as it was met first, marked if it holds less than there was."""
        call_id = self._id(message.get("toolCallId"))
        if call_id is not None:
            message = {**message, "toolCallId": call_id}
        details = message.get("details")
        thrown = message.get("isError") is True and not details
        vague = call_id is not None and call_id in self._vague
        if not thrown and (vague or truncated(message.get("content")) or truncated(details)):
            message = {**message, "details": {**mapping(details), "persistedDetailsTruncated": True}}
        return message

    def _id(self, value: Json) -> str | None:
        call_id = identifier(value)
        if call_id is None:
            return None
        plain = _NOT_IN_IDS.sub("", call_id)
        if not plain:
            return call_id
        first = self._ids.get(plain)
        if first is None:
            first = self._ids[plain] = call_id
        return first

    def _charge(self, event: TraceEvent, run: _Run) -> Usage:
        """Return what the attempt cost beyond what its messages say."""
        usage = usage_of_run(event.data)
        run.charged = usage != NO_USAGE
        return beyond(usage, run.spent)


def _compaction(event: TraceEvent, run: _Run, message: Object, at: float | None) -> Object:
    body: Object = {"type": "compaction", "timestamp": message.get("timestamp"), "summary": message.get("summary")}
    began, again = run.first, run.latest
    if run.attempts > 1 and at is not None and began is not None and again is not None and began <= at <= again:
        # The runner attempts a run again after a compaction that it made itself.
        body |= {"fromHook": True, "__openclaw": {"runId": event.run_id}}
    return body
