"""One conversation while it is read: its agent, the agents that this one delegates to, and what they spend."""

from __future__ import annotations

from dataclasses import dataclass

from loopscan.events import Json, Usage, Where
from loopscan.transcripts.completions import Meter, completion_usage
from loopscan.transcripts.dialogue import Dialogue, Dialogues
from loopscan.transcripts.reader import Source
from loopscan.transcripts.recent import Recent
from loopscan.transcripts.values import Object, identifier, mapping, seconds, string

#: An agent delegates to an agent that delegates, and so on, this deep at most.
MOST_DELEGATES = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One event: where it stands and what is in it."""

    where: Where
    body: Object
    size: int

    @property
    def key(self) -> str | None:
        """What tells the event from all others, of whatever conversation, and its copies share: id, time and kind.

        ``None`` without id and time: ids alone are small numbers in the classic application.
        """
        names = ("timestamp", "kind", "action", "observation")
        time, *kinds = (string(self.body.get(name)) or "" for name in names)
        return " ".join((self.where.entry, time, *kinds)) if self.where.entry is not None and time else None


def entry_of(body: Object, line: int, size: int) -> Entry:
    """Take an event apart."""
    return Entry(Where(line, identifier(body.get("id")), seconds(body.get("timestamp"))), body, size)


class Session:
    """What is known of one conversation. The agents in it are sessions of their own."""

    def __init__(self, name: str, source: Source, dialogues: Dialogues) -> None:
        self.name = name
        self.source = source
        self.running = False
        """The record says that the agent is at work: user messages come into its run."""
        self.calls: Recent[str, str] = Recent()
        """The call that an event made, by the id of the event."""
        self.meter = Meter()
        self.model: str | None = None
        self.response: str | None = None
        """The id of the latest response of the model, where events tell it."""
        self._dialogues = dialogues
        self._delegates: list[str] = []
        self._delegated = 0
        self._names = {name}
        self._seen: Recent[str, bool] = Recent()

    def dialogue(self, where: Where, below: str | None = None) -> Dialogue:
        """Return the agent that is at work, or the one that the call ``below`` started."""
        name = self._delegates[-1] if self._delegates else self.name
        if below is not None:
            asked = f"{self.name}/{below}"
            name = asked if asked in self._names or len(self._names) < MOST_DELEGATES else name
        found = self._dialogues.get(name)
        if found is None:
            self._names.add(name)
            found = self._dialogues.start(name, where, model=self.model)
        return found

    def delegate(self, where: Where, agent: str | None) -> None:
        """Take in that the agent delegates: what follows is of another agent until that one is done."""
        if len(self._delegates) < MOST_DELEGATES:
            self._delegated += 1
            name = f"{self.name}/delegate-{self._delegated}"
            self._delegates.append(name)
            self._dialogues.start(name, where, agent=agent, model=self.model)

    def delegated(self) -> None:
        """Take in that the agent that was delegated to is done."""
        if self._delegates:
            self._dialogues.end(self._delegates.pop())

    def repeated(self, entry: Entry) -> bool:
        """Say whether this source gave the same event before."""
        key = entry.key
        if key is None or key in self._seen:
            return key is not None
        self._seen[key] = True
        return False

    def spent(self, totals: Json) -> None:
        """Take in the running totals of each use of a model: ``{use: {model_name, accumulated_token_usage, …}}``."""
        found: dict[str, Usage] = {}
        for name, metrics in mapping(totals).items():
            fields = mapping(metrics)
            found[name] = completion_usage(fields.get("accumulated_token_usage"), fields.get("accumulated_cost"))
            self.model = self.model or string(fields.get("model_name"))
        self.meter.read(found)

    def end(self) -> None:
        """Take in that nothing follows of this conversation."""
        for name in (*reversed(self._delegates), *self._names):
            self._dialogues.end(name)
