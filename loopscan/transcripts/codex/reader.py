"""The readers of what Codex CLI records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from loopscan.events import Event, Json
from loopscan.transcripts.codex.lines import ITEMS, LINES, META, ancestors_of, kind_of, session_id, session_of
from loopscan.transcripts.codex.outputs import COMMANDS, NORMALISERS, POLL
from loopscan.transcripts.codex.rollout import Rollouts
from loopscan.transcripts.codex.stream import ITEM_EVENTS, Streams
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of, lines_of
from loopscan.transcripts.jsonl import read_lines
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.values import Object, identifier, mapping, string

_TOOLS = {**dict.fromkeys(sorted(COMMANDS), "exec"), POLL: "command_status"}


class CodexReader:
    """Reads rollout files of Codex CLI, those of before 0.30 included."""

    name = "codex"
    traits = Traits(
        summary="rollout files of Codex CLI, old and new",
        recognised_by="lines with a timestamp, a type such as response_item, and a payload, or the older header",
        tools=_TOOLS,
        normalisers=NORMALISERS,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise the lines of a rollout; a header of before 0.30 is sure only if items follow it."""
        best = Confidence.NO
        old_header = False
        for value in _values(head):
            kind = string(value.get("type"))
            if kind in LINES and isinstance(value.get("payload"), dict) and isinstance(value.get("timestamp"), str):
                return Confidence.SURE
            if kind is None and identifier(value.get("id")) and kind_of(value)[0] == META:
                old_header = True
                best = Confidence.LIKELY
            elif old_header and (kind in ITEMS or string(value.get("record_type")) is not None):
                return Confidence.SURE
        return best

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the sessions of ``source``, in the order of its lines.

        What the history of a fork or a copied file repeats of another source is left out if that source was read
        before. Raises :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        return drive(source, read_lines(source), Rollouts(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the ids of the sessions that the headers name, and of those that they were forked from."""
        found: set[str] = set()
        for value in _values(head):
            kind, payload = kind_of(value)
            if kind == META:
                found.update(each for each in (session_id(payload), *ancestors_of(payload)) if each is not None)
        return frozenset(found or {session_of(name)})


class CodexStreamReader:
    """Reads what ``codex exec --json`` prints."""

    name = "codex-exec"
    traits = Traits(
        summary="the event stream of codex exec --json",
        recognised_by="events such as thread.started and item.completed",
        tools=_TOOLS,
        normalisers=NORMALISERS,
        rank=1,
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise the start of a thread, or items of one."""
        best = Confidence.NO
        for value in _values(head):
            kind = value.get("type")
            if kind == "thread.started" and identifier(value.get("thread_id")) is not None:
                return Confidence.SURE
            item = mapping(value.get("item"))
            if isinstance(kind, str) and kind in ITEM_EVENTS and identifier(item.get("id")) is not None:
                best = Confidence.LIKELY
        return best

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of the threads of ``source``; a thread whose rollout was read before is a copy of that.

        Raises :class:`~loopscan.errors.InputError` if the source cannot be opened.
        """
        return drive(source, read_lines(source), Streams(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the id of the thread, which is that of its rollout too."""
        found = (identifier(each.get("thread_id")) for each in _values(head) if each.get("type") == "thread.started")
        return frozenset(each for each in found if each is not None)


def _values(head: bytes) -> Iterator[Object]:
    """Yield the objects of the first lines, and what the head shows of a first line that is longer than it."""
    values: tuple[Json, ...] = lines_of(head)
    whole = chain(values, () if values else (document_of(head),))
    return (value for value in whole if isinstance(value, dict))
