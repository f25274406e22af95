"""OpenClaw's configuration as it is found: a file, an object, ``name=value`` settings.

Everything here ends in :func:`load_policy`: read, find the blocks that apply, and let
:func:`loopscan.policy.resolve` make a policy of them.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import orjson

from loopscan.errors import ConfigError, UsageError
from loopscan.policy import (
    FIELDS,
    INCLUDE,
    Layer,
    Note,
    Policy,
    include_note,
    member,
    nearest_field,
    quoted,
    resolve,
    shown,
    unknown_field,
)
from loopscan.rulesets import Ruleset, ruleset
from loopscan.sanitize import clean

#: Bytes that a configuration may have. Real ones have a few thousand; the JSON5 parser needs seconds for this many.
MAX_BYTES: Final = 1 << 20

_LISTED = 5
_LOOKED_AT: Final = 200
"""Names that are searched for a near one, each up to ``_COMPARED`` characters: comparing takes time."""
_COMPARED: Final = 80

_BLOCK: Final = "loopDetection"
_BLOCK_FIELDS: Final = frozenset(name.partition(".")[0] for name in FIELDS)

#: Fields at the top of an openclaw.json, and fields of its ``tools`` object. They only serve to tell a
#: configuration without a block from something else, so the list need not be complete.
_TOP_FIELDS: Final = frozenset((
    "$schema", "acp", "agents", "approvals", "audio", "auth", "bindings", "broadcast", "browser", "canvasHost",
    "channels", "cli", "commands", "cron", "diagnostics", "discovery", "env", "gateway", "hooks", "identity",
    "logging", "mcp", "media", "memory", "messages", "meta", "models", "nodeHost", "plugins", "secrets",
    "session", "skills", "talk", "tools", "ui", "update", "web", "wizard",
))  # fmt: skip
_TOOLS_FIELDS: Final = frozenset((
    "agentToAgent", "allow", "alsoAllow", "byProvider", "deny", "elevated", "exec", "fs", "links", "media",
    "message", "profile", "sandbox", "sessions", "sessions_spawn", "subagents", "toolSearch", "toolsBySender",
    "web",
))  # fmt: skip


class CommandLineSettings(dict[str, object]):
    """Overrides by field name that came from the command line.

    A type of its own, so that the origin of each value survives the way through the library.
    """


class FileConfig(dict[str, object]):
    """A configuration that was read from a file, which messages name.

    A type of its own, so that the library takes it where it takes an object.
    """

    def __init__(self, values: Mapping[str, object], source: str) -> None:
        super().__init__(values)
        self.source = source
        """The file, ready to print."""


@dataclass(slots=True)
class _Document:
    """A parsed configuration: how its places are named, and what there is to say about it."""

    source: str | None
    """The file, ready to print; ``None`` for an object given to the library."""
    notes: list[Note] = field(default_factory=list)

    def place(self, path: str) -> str:
        """Return ``path`` with the file, for messages."""
        return ": ".join(part for part in (self.source or "argument", path) if part)

    def child(self, parent: Mapping[str, object] | None, path: str, name: str) -> Mapping[str, object] | None:
        """Return the object ``name`` of ``parent``, which stands at ``path``; ``None`` if it is missing or null.

        Raises :class:`ConfigError` if it is anything else.
        """
        value = None if parent is None else parent.get(name)
        if value is None or isinstance(value, Mapping):
            return value
        raise ConfigError(f"{self.place(member(path, name))} must be an object, not {shown(value)}")

    def note_include(self, value: Mapping[str, object] | None, path: str) -> None:
        """Note an ``$include`` in ``value``, which stands at ``path``."""
        if value is not None and INCLUDE in value:
            self.notes.append(include_note(self.place(path)))

    def block(self, tools: Mapping[str, object] | None, path: str) -> Mapping[str, object] | None:
        """Return the block in the ``tools`` object at ``path``; note a field that looks like a misspelt one."""
        self.note_include(tools, path)
        values = self.child(tools, path, _BLOCK)
        if values is None and tools is not None:
            for name in _names(tools)[:_LOOKED_AT]:
                if name != _BLOCK and _close(name, (_BLOCK,), 0.8):
                    message = f"{self.place(member(path, name))} is ignored: did you mean {_BLOCK}?"
                    self.notes.append(Note("ignored", _BLOCK, message))
        return values


#: A configuration: its path, or the object that is in it.
Config: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
#: The way from the top of a configuration to a place in it: names in objects, indices in arrays.
Keys: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True)
class _Agent:
    """One agent of a configuration."""

    id: str
    keys: Keys
    path: str
    entry: Mapping[str, object]


def load_policy(
    ruleset_name: str,
    *,
    config: Config | None = None,
    agent: str | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Policy:
    """Return the policy of the ruleset with a configuration, for one agent, with single fields overridden.

    ``config`` is the path of a JSON5 file or an object that is already parsed: a whole openclaw.json, its
    ``tools`` object, ``{loopDetection: …}`` or the block itself, told apart by content. ``None`` is no
    configuration: ``enabled`` is then ``True``, to show what would have fired.
    ``agent`` is the id whose block goes over the global one; an id that is not in the configuration is a
    note. ``overrides`` are fields of the block, nested or dotted (``detectors.pingPong``); those of
    :func:`parse_settings` are shown as coming from the command line.

    Raises :class:`~loopscan.errors.UsageError` for a ruleset that does not exist and
    :class:`~loopscan.errors.ConfigError` for a configuration that cannot be read or does not make sense.
    """
    rules, over = ruleset(ruleset_name), _overrides(overrides)
    if config is None:
        notes = [] if agent is None else [_unknown_agent(agent, None, ())]
        return resolve(rules, overrides=over, notes=notes)
    root, document = _open(config)
    block = _global_block(root, document)
    own = None if agent is None else _agent_block(root, document, rules, agent)
    return resolve(rules, block=block, agent=own, overrides=over, notes=document.notes)


def load_agent_policies(
    ruleset_name: str, *, config: Config | None = None, overrides: Mapping[str, object] | None = None
) -> dict[str, Policy]:
    """Return the policies of the agents that have a block of their own, by :func:`agent_key`.

    Arguments and errors are those of :func:`load_policy`.
    """
    if config is None:
        return {}
    rules, over = ruleset(ruleset_name), _overrides(overrides)
    root, document = _open(config)
    block = _global_block(root, document)
    entries: dict[str, list[_Agent]] = {}
    for agent in _agents(root, document, rules):
        entries.setdefault(agent_key(agent.id), []).append(agent)
    layers = {key: _own_block(own, own[0].id, document, rules) for key, own in entries.items()}
    return {
        key: resolve(rules, block=block, agent=own, overrides=over) for key, own in layers.items() if own is not None
    }


def block_keys(rules: Ruleset, config: Mapping[str, object], agent: str | None) -> Keys | None:
    """Return where the block of ``agent`` (``None``: the global one) stands in ``config``, or belongs.

    Returns ``None`` for an agent that is not in the configuration. Raises what :func:`load_policy` raises.
    """
    root, document = _open(config)
    if agent is None:
        return {"block": (), "tools": (_BLOCK,), "whole": ("tools", _BLOCK)}[_shape(root, document)]
    own = [each for each in _agents(root, document, rules) if agent_key(each.id) == agent_key(agent)]
    for each in own:
        tools = document.child(each.entry, each.path, "tools")
        if document.block(tools, member(each.path, "tools")) is not None:
            return (*each.keys, "tools", _BLOCK)
    return (*own[0].keys, "tools", _BLOCK) if own else None


def _overrides(values: Mapping[str, object] | None) -> Layer | None:
    if not values:
        return None
    if isinstance(values, CommandLineSettings):
        return Layer(values, "command line", dotted=True)
    return Layer(values, "argument", path="overrides", dotted=True)


def _open(config: Config) -> tuple[Mapping[str, object], _Document]:
    if isinstance(config, Mapping):
        return config, _Document(config.source if isinstance(config, FileConfig) else None)
    if isinstance(config, str | os.PathLike):
        path = Path(config)
        return read_config(path), _Document(clean(str(path)))
    raise ConfigError(f"config must be a path or an object, not {shown(config)}")


def read_config(path: Path) -> Mapping[str, object]:
    """Return the object in the JSON5 file ``path``; files beyond :data:`MAX_BYTES` are refused.

    Raises :class:`~loopscan.errors.ConfigError` if the file cannot be read, is no UTF-8, no JSON5 or no
    object; syntax errors are named with line and column, both from 1.
    """
    return parse_config(read_bytes(path), clean(str(path)))


def read_bytes(path: Path) -> bytes:
    """Return what is in the configuration ``path``; errors are those of :func:`read_config`."""
    name = clean(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or "no valid path"
        raise ConfigError(f"cannot read the configuration {name}: {reason}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{name}: larger than {MAX_BYTES} bytes; this is no OpenClaw configuration")
    return data


def parse_config(data: bytes, name: str) -> Mapping[str, object]:
    """Return the object in ``data``, which come from ``name``; errors are those of :func:`read_config`."""
    value = _parse(data, name)
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name}: holds {shown(value)}; a configuration is an object, such as {{ tools: {{ … }} }}")
    return value


def parse_settings(settings: Iterable[str]) -> CommandLineSettings:
    """Return ``name=value`` strings as overrides for :func:`load_policy`; the last one of a name counts.

    Names are those of :data:`loopscan.policy.FIELDS`, values JSON (``true``, ``8``, ``null``).

    Raises :class:`~loopscan.errors.UsageError` for a string without ``=`` or a value that is no JSON, and
    :class:`~loopscan.errors.ConfigError` for a name that nobody knows.
    """
    parsed = CommandLineSettings()
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals:
            raise UsageError(f"--set {quoted(setting)}: write name=value, such as warningThreshold=8")
        if name not in FIELDS:
            raise unknown_field("--set", "", name)
        try:
            parsed[name] = orjson.loads(text)
        except ValueError:
            raise UsageError(
                f"--set {name}: {quoted(text)} is no JSON value; write true, false, null or a number"
            ) from None
    return parsed


def _parse(data: bytes, name: str) -> object:
    """Return the value of JSON5 ``data``. JSON is JSON5, and its parser is a thousand times faster."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: byte {error.start + 1} is no UTF-8; save the file as UTF-8") from None
    if not text.strip():
        raise ConfigError(f"{name}: empty; an empty configuration is {{}}")

    import json5

    try:
        value, error_text, position = json5.parse(text, parse_int=_parse_int)
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply; this is no OpenClaw configuration") from None
    except ValueError:  # numbers and escapes that the parser lets through and Python does not
        raise ConfigError(f"{name}: not valid JSON5") from None
    if error_text is None:
        return value
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    found = shown(text[position]) if position < len(text) else "end of file"
    raise ConfigError(f"{name}: line {line}, column {column}: unexpected {found}; correct the JSON5 there")


def _parse_int(text: str, base: int = 10) -> int | float:
    # More digits than a double holds: JavaScript reads infinity, Python refuses from 4,300 digits on.
    return int(text, base) if len(text) <= 400 else math.copysign(math.inf, -1 if text.startswith("-") else 1)


def _global_block(root: Mapping[str, object], document: _Document) -> Layer:
    """Return the global block of a configuration, empty if it has none; decide by content what ``root`` is."""
    kind = "argument" if document.source is None else "file"
    shape = _shape(root, document)
    if shape == "block":
        return Layer(root, kind, document.source)
    if shape == "tools":
        return Layer(document.block(root, "") or {}, kind, document.source, _BLOCK)
    document.note_include(root, "")
    values = document.block(document.child(root, "", "tools"), "tools")
    return Layer(values or {}, kind, document.source, f"tools.{_BLOCK}")


def _shape(root: Mapping[str, object], document: _Document) -> str:
    """Return ``whole`` for an openclaw.json, ``tools`` for its ``tools`` object or ``block``.

    Raises :class:`ConfigError` for anything else.
    """
    whole = [name for name in ("tools", "agents") if name in root]
    if _BLOCK in root:
        if whole:
            raise ConfigError(
                f"{document.place(_BLOCK)} stands beside {whole[0]}: in an openclaw.json it belongs into tools; "
                "move it there"
            )
        return "tools"
    if whole or not root:
        return "whole"
    names = frozenset(_names(root))
    if names & _BLOCK_FIELDS:
        return "block"
    if names & (_TOP_FIELDS | {INCLUDE}):
        return "whole"
    if names & _TOOLS_FIELDS:
        return "tools"
    for name in sorted(names)[:_LOOKED_AT]:
        near = _close(name, ("tools", "agents", _BLOCK), 0.75)
        if near is not None:
            raise ConfigError(f"{document.place(member('', name))}: there is no such field; did you mean {near}?")
        if nearest_field(name) is not None:
            return "block"
    raise ConfigError(
        f"{document.place('')}: neither an openclaw.json nor its tools or tools.loopDetection object; "
        "expected { tools: { loopDetection: { … } } }"
    )


def _agent_block(root: Mapping[str, object], document: _Document, rules: Ruleset, agent: str) -> Layer | None:
    """Return the agent's own block; ``None`` if it has none or is not in the configuration, which is a note."""
    known = list(_agents(root, document, rules))
    own = [candidate for candidate in known if agent_key(candidate.id) == agent_key(agent)]
    if not own:
        document.notes.append(_unknown_agent(agent, document, known))
        return None
    return _own_block(own, agent, document, rules)


def _own_block(own: Sequence[_Agent], agent: str, document: _Document, rules: Ruleset) -> Layer | None:
    """Return the block of the agent whose entries are ``own``.

    2026.6 keeps agents in ``agents.list``, later releases in ``agents.entries``; both are read whatever the
    ruleset, and its own place wins.
    """
    layers: list[Layer] = []
    for candidate in own:
        document.note_include(candidate.entry, candidate.path)
        path = member(candidate.path, "tools")
        values = document.block(document.child(candidate.entry, candidate.path, "tools"), path)
        if values is not None:
            layers.append(Layer(values, "agent", document.source, member(path, _BLOCK), candidate.id))
    for layer in layers[1:]:
        document.notes.append(
            Note(
                "ignored",
                "agent",
                f"{document.place(layer.path)} is ignored: {layers[0].path} holds a block for agent {quoted(agent)} "
                f"as well, and ruleset {rules.name} reads {'.'.join(rules.agents_key)} first",
            )
        )
    return layers[0] if layers else None


def _agents(root: Mapping[str, object], document: _Document, rules: Ruleset) -> Iterator[_Agent]:
    """Yield all agents of a configuration, those in the ruleset's own place first."""
    agents = document.child(root, "", "agents")
    if agents is None:
        return
    document.note_include(agents, "agents")
    places = sorted(("list", "entries"), key=lambda name: ("agents", name) != rules.agents_key)
    for place in places:
        if place == "list":
            yield from _listed_agents(agents.get("list"), document)
        else:
            entries = document.child(agents, "agents", "entries")
            document.note_include(entries, "agents.entries")
            for name in _names(entries or {}):
                entry = None if name == INCLUDE else document.child(entries, "agents.entries", name)
                if entry is not None:
                    yield _Agent(name, ("agents", "entries", name), member("agents.entries", name), entry)


def _listed_agents(value: object, document: _Document) -> Iterator[_Agent]:
    if value is None:
        return
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ConfigError(f"{document.place('agents.list')} must be an array, not {shown(value)}")
    for index, entry in enumerate(value):
        path = f"agents.list[{index}]"
        if isinstance(entry, Mapping):
            name = entry.get("id")
            if isinstance(name, str):
                yield _Agent(name, ("agents", "list", index), path, entry)
            else:
                document.note_include(entry, path)


def agent_key(name: str) -> str:
    """Return what two spellings of one agent's id have in common: OpenClaw compares them trimmed, in lower case."""
    return name.strip().lower()


def _unknown_agent(agent: str, document: _Document | None, known: Sequence[_Agent]) -> Note:
    if document is None:
        return Note("ignored", "agent", f"agent {quoted(agent)}: without a configuration, the defaults apply")
    ids = [candidate.id for candidate in known[:_LOOKED_AT]]
    near = _close(agent, ids, 0.6)
    listed = f" (it has {', '.join(quoted(each) for each in ids[:_LISTED])}{', …' if len(ids) > _LISTED else ''})"
    hint = f" (the nearest is {quoted(near)})" if near is not None else listed if ids else ""
    where = document.source or "the configuration"
    return Note("ignored", "agent", f"agent {quoted(agent)} is not in {where}{hint}; the global block applies")


def _names(value: Iterable[object]) -> list[str]:
    """Return the keys that are strings: an object from Python may have others."""
    return [name for name in value if isinstance(name, str)]


def _close(name: str, known: Sequence[str], cutoff: float) -> str | None:
    """Return the one of ``known`` that is most like ``name``, whatever the case; ``None`` below ``cutoff``."""
    by_key = {candidate[:_COMPARED].casefold(): candidate for candidate in reversed(known)}
    close = difflib.get_close_matches(name[:_COMPARED].casefold(), by_key, 1, cutoff)
    return by_key[close[0]] if close else None
