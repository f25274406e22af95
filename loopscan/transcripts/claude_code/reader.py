"""The reader of Claude Code's session files and of its stream-json."""

from __future__ import annotations

from collections.abc import Iterator

from loopscan.events import Event, Json
from loopscan.transcripts.claude_code.feed import ClaudeCodeFeed
from loopscan.transcripts.claude_code.results import NORMALISERS, TOOLS
from loopscan.transcripts.claude_code.sessions import family_of, session_id
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of, lines_of
from loopscan.transcripts.jsonl import read_lines
from loopscan.transcripts.reader import Confidence, Source, Traits

#: Lines that nothing else writes, by a field that they have.
_OWN = {"file-history-snapshot": "snapshot", "summary": "leafUuid", "queue-operation": "operation"}
#: Lines that belong to a session and say little about it.
_ASIDE = frozenset({"permission-mode", "mode", "agent-name", "custom-title", "ai-title", "last-prompt", "result"})


class ClaudeCodeReader:
    """Reads the session files of Claude Code, those of its sub-agents, and what it prints as stream-json."""

    name = "claude-code"
    traits = Traits(
        summary="session files of Claude Code and of its sub-agents, and its stream-json output",
        recognised_by="lines of the type user, assistant or system that name a session and what they hang below",
        tools=TOOLS,
        normalisers={
            **NORMALISERS,
            "command-title": "the description of a command is its title: newer rulesets do not compare it",
        },
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise a message that names its session, or one of the lines that stand between messages."""
        values = lines_of(head) or (document_of(head),)
        return max((_recognise(value) for value in values), default=Confidence.NO)

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all sessions in ``source``, those of sub-agents as sessions of their own.

        Bounded memory but for a few machine words a line. Raises :class:`~loopscan.errors.InputError` if the source
        cannot be opened.
        """
        return drive(source, read_lines(source), ClaudeCodeFeed(source))

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return the ids of sessions and lines that the head and the name of a file show."""
        return family_of(head, name)


def _recognise(value: Json) -> Confidence:
    if not isinstance(value, dict):
        return Confidence.NO
    kind = value.get("type")
    if "parentUuid" in value and ("isSidechain" in value or "sessionId" in value):
        return Confidence.SURE
    if not isinstance(kind, str):
        return Confidence.NO
    if kind in _OWN:
        return Confidence.SURE if _OWN[kind] in value else Confidence.NO
    named = session_id(value) is not None
    if kind in ("user", "assistant"):
        message = value.get("message")
        if not isinstance(message, dict) or message.get("role") != kind:
            return Confidence.NO
        return Confidence.SURE if named else Confidence.LIKELY
    if kind == "system":
        return Confidence.SURE if named and isinstance(value.get("subtype"), str) else Confidence.NO
    return Confidence.LIKELY if named and kind in _ASIDE else Confidence.NO
