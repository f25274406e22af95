"""From settings to a changed configuration: where each one goes, the checks before anything is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, cast

from loopscan.configedit.difference import difference
from loopscan.configedit.json5text import Settings, Value, document, with_values
from loopscan.configfile import FileConfig, Keys, agent_key, block_keys, load_policy, parse_config, read_bytes
from loopscan.errors import ConfigError, UsageError
from loopscan.policy import COUNTS, FIELDS, INCLUDE, member, positive_whole, quoted, shown, unknown_field
from loopscan.rulesets import Ruleset
from loopscan.sanitize import clean
from loopscan.wholefile import whole_file

_BLOCK: Final = "loopDetection"

_Blocks: TypeAlias = "Mapping[str | None, Mapping[str, int | bool]]"
"""Fields by agent; ``None``: the global block."""


@dataclass(frozen=True, slots=True)
class Change:
    """One field of loop detection that is to have a value."""

    agent: str | None
    """The id of the agent whose block it is; ``None``: the global block."""
    field: str
    """One of :data:`loopscan.policy.FIELDS`, such as ``criticalThreshold`` or ``detectors.pingPong``."""
    value: int | bool


@dataclass(frozen=True, slots=True)
class Edit:
    """A configuration file as it is and as it is to be; nothing is written yet."""

    path: Path
    before: str
    after: str
    exists: bool
    """There is a file; else :attr:`before` is empty and one is made."""
    agents: frozenset[str] = field(default=frozenset(), repr=False)
    """The :func:`~loopscan.configfile.agent_key` of each agent that is changed."""

    def diff(self) -> str:
        """Return the change as a unified diff that is safe to print, empty if there is none.

        Values that are none of loop detection are masked: see :func:`loopscan.configedit.difference.difference`.
        """
        return difference(str(self.path), self.before, self.after, self.agents)

    def write(self) -> None:
        """Put the changed file in the place of the one that was read; without a change, do nothing.

        It is written whole or not at all, with the permissions of the old one; a link stays a link.
        Raises :class:`~loopscan.errors.ConfigError` if the file is not what was read, and
        :class:`~loopscan.errors.UsageError` if it cannot be written.
        """
        if self.before == self.after:
            return
        with whole_file(str(self.path)) as file:
            file.write(self.after.encode())
            file.flush()
            self._unchanged()

    def _unchanged(self) -> None:
        name = clean(str(self.path))
        if os.path.lexists(self.path) != self.exists:
            what = "has gone" if self.exists else "has come up"
            raise ConfigError(f"{name}: {what} meanwhile; nothing is written; run the command again")
        if self.exists and read_bytes(self.path) != self.before.encode():
            raise ConfigError(f"{name}: was changed meanwhile; nothing is written; run the command again")


def block_text(changes: Iterable[Change], ruleset: Ruleset) -> str:
    """Return ``changes`` as JSON5 to paste into an openclaw.json, fields in the order of OpenClaw's documentation.

    Agents stand where releases of the ruleset read them. Raises what :func:`edit` raises for ``changes``.
    """
    text: dict[str, Value] = {}
    own: dict[str, Value] = {}
    for agent, fields in _blocks(changes, ruleset).items():
        tools: Value = {_BLOCK: _nested(fields)}
        if agent is None:
            text["tools"] = tools
        else:
            own[agent] = {"tools": tools}
    if own:
        *_, place = ruleset.agents_key
        listed = [{"id": agent, **cast("Mapping[str, Value]", entry)} for agent, entry in own.items()]
        text["agents"] = {place: listed if place == "list" else own}
    return document(text)


def edit(path: str | os.PathLike[str], changes: Iterable[Change], ruleset: Ruleset) -> Edit:
    """Return the configuration ``path`` with ``changes`` in it; the file itself is not touched.

    Comments, order and layout stay, and fields that have their value already. The global block is
    ``tools.loopDetection``, or what stands for it in a file that is no whole openclaw.json. The block of an agent
    is looked for where :func:`~loopscan.configfile.load_policy` does: an existing one is changed wherever it is;
    else it is added to the agent's entry. A file that does not exist becomes one with the global block alone.

    Before it is returned, the result is parsed: every value must be read as asked for, and everything else be
    what it was.

    Raises :class:`~loopscan.errors.UsageError` for changes that make no sense: values of the wrong kind, two
    values of one field, thresholds where the ruleset reads ``enabled`` alone. Raises
    :class:`~loopscan.errors.ConfigError` for a field that does not exist, for a file that cannot be read or makes
    no sense, for an agent that is not in it (loopscan adds none: what else an agent needs is not ours to say),
    for an ``$include`` on the way to a block, and for values that OpenClaw would read as others.
    """
    blocks = _blocks(changes, ruleset)
    path, name = Path(path), clean(str(path))
    exists = os.path.lexists(path)
    before, after = _changed(path, name, blocks, ruleset) if exists else ("", _new(name, blocks, ruleset))
    agents = frozenset(agent_key(agent) for agent in blocks if agent is not None)
    return Edit(path, before, after, exists, agents)


def _blocks(changes: Iterable[Change], ruleset: Ruleset) -> _Blocks:
    """Return the fields of each block, the global one first; raise an error for changes that make no sense."""
    blocks: dict[str | None, dict[str, int | bool]] = {None: {}}
    spelled: dict[str, str] = {}
    for change in changes:
        if change.field not in FIELDS:
            raise unknown_field("change", "", change.field)
        count = not isinstance(change.value, bool) and positive_whole(change.value) == change.value
        if count is not (change.field in COUNTS):
            wanted = "a positive whole number" if change.field in COUNTS else "true or false"
            raise UsageError(f"{change.field} must be {wanted}, not {shown(change.value)}")
        if not ruleset.configurable and change.field != "enabled":
            raise UsageError(
                f"{change.field} cannot be set: ruleset {ruleset.name} reads `enabled` alone; set that, or use a "
                "ruleset whose thresholds are configurable"
            )
        agent = None if change.agent is None else spelled.setdefault(agent_key(change.agent), change.agent)
        fields = blocks.setdefault(agent, {})
        if fields.setdefault(change.field, change.value) != change.value:
            of = "" if agent is None else f" of agent {quoted(agent)}"
            raise UsageError(
                f"{change.field}{of} cannot be both {shown(fields[change.field])} and {shown(change.value)}"
            )
    return {
        agent: {name: fields[name] for name in FIELDS if name in fields} for agent, fields in blocks.items() if fields
    }


def _nested(fields: Mapping[str, int | bool]) -> dict[str, Value]:
    """Return a block as it is written: ``detectors`` and ``postCompactionGuard`` are objects."""
    block: dict[str, Value] = {}
    for name, value in fields.items():
        group, dot, rest = name.partition(".")
        if dot:
            block[group] = {**cast("Mapping[str, Value]", block.get(group, {})), rest: value}
        else:
            block[name] = value
    return block


def _new(name: str, blocks: _Blocks, ruleset: Ruleset) -> str:
    """Return the text of a file that does not exist yet; empty if there is nothing to be in it."""
    for agent in blocks:
        if agent is not None:
            raise ConfigError(f"{name}: there is no such file, so there is no agent {quoted(agent)}; {_add(ruleset)}")
    if not blocks:
        return ""
    text = document({"tools": {_BLOCK: _nested(blocks[None])}})
    _must_be_read(parse_config(text.encode(), name), name, blocks, ruleset)
    return text


def _changed(path: Path, name: str, blocks: _Blocks, ruleset: Ruleset) -> tuple[str, str]:
    """Return the text of a file as it is, and as it is to be."""
    if not path.is_file():
        raise ConfigError(f"{name}: is no regular file; name an openclaw.json")
    data = read_bytes(path)
    config = FileConfig(parse_config(data, name), name)
    wanted: Settings = {}
    for agent, fields in blocks.items():
        keys = _way(config, agent, ruleset)
        load_policy(ruleset.name, config=config, agent=agent)  # a mistake that is in the file already is said as such
        wanted = cast("Settings", _merged(wanted, _at(keys, cast("Settings", _nested(fields)))))
    _refuse_includes(config, wanted, name)
    settings = _needed(config, wanted)
    before = data.decode()
    after = with_values(before, settings) if settings else before
    result = parse_config(after.encode(), name) if settings else config
    if not _same(result, _merged(config, settings)):
        raise ConfigError(
            f"{name}: cannot be changed without changing more than was asked for, which is a fault of loopscan; "
            "nothing is written: paste the block by hand"
        )
    _must_be_read(result, name, blocks, ruleset)
    return before, after


def _way(config: FileConfig, agent: str | None, ruleset: Ruleset) -> Keys:
    """Return where the block of ``agent`` is or belongs."""
    common = block_keys(ruleset, config, None) or ()
    if agent is None:
        return common
    if len(common) < len(("tools", _BLOCK)):
        raise ConfigError(
            f"{config.source}: is {'a loopDetection block' if not common else 'the tools object'} alone and has no "
            f"agents; name the whole openclaw.json, or leave the settings of agent {quoted(agent)} out"
        )
    agents = config.get("agents")
    places: dict[str, object] = {"": config, "agents": agents}
    if isinstance(agents, Mapping):
        places |= {f"agents.{place}": agents.get(place) for place in ("list", "entries")}
    for place, value in places.items():
        _refuse_include(value, place, config.source)
    keys = block_keys(ruleset, config, agent)
    if keys is not None:
        return keys
    listed = places.get("agents.list")
    for index, entry in enumerate(listed if isinstance(listed, Sequence) else ()):
        _refuse_include(entry, f"agents.list[{index}]", config.source)
    raise ConfigError(f"{config.source}: has no agent {quoted(agent)}; {_add(ruleset)}")


def _add(ruleset: Ruleset) -> str:
    return f"add it to {'.'.join(ruleset.agents_key)} first, or leave its settings out"


def _refuse_includes(values: object, settings: Settings, name: str, path: str = "") -> None:
    """Raise an error if any object that is to be changed takes in another file, whose fields are not known here."""
    _refuse_include(values, path, name)
    for key, new in settings.items():
        if isinstance(new, Mapping):
            place = f"{path}[{key}]" if isinstance(key, int) else member(path, key)
            _refuse_includes(_child(values, key), new, name, place)


def _refuse_include(value: object, path: str, name: str) -> None:
    if isinstance(value, Mapping) and INCLUDE in value:
        place = ": ".join(part for part in (name, path) if part)
        raise ConfigError(
            f"{place} has an $include, so that fields of loop detection may stand in another file; "
            "merge the files first, or paste the block by hand where it belongs"
        )


def _child(values: object, key: str | int) -> object:
    if isinstance(values, Mapping):
        return values.get(key)
    return values[key] if isinstance(values, Sequence) and isinstance(key, int) else None


def _at(keys: Keys, settings: Settings) -> Settings:
    """Return ``settings`` for the place that ``keys`` lead to, as settings for the whole."""
    for key in reversed(keys):
        settings = {key: settings}
    return settings


def _needed(values: object, settings: Settings) -> Settings:
    """Return the ``settings`` that ``values`` have not already."""
    needed: dict[str | int, Settings | bool | int] = {}
    for key, new in settings.items():
        there = _child(values, key)
        if isinstance(new, Mapping):
            if inner := _needed(there, new):
                needed[key] = inner
        elif not _is_value(there, new):
            needed[key] = new
    return needed


def _is_value(there: object, value: int | bool) -> bool:
    """Tell whether a field that is ``there`` has a value already: 15 may be written ``15.0`` or ``0xF``."""
    return there is value if isinstance(value, bool) else positive_whole(there) == value


def _merged(values: object, settings: Settings | bool | int) -> object:
    """Return a copy of ``values`` with ``settings``, without a look at any text."""
    if not isinstance(settings, Mapping):
        return settings
    if isinstance(values, list):
        return [_merged(value, settings[at]) if at in settings else value for at, value in enumerate(values)]
    there: dict[object, object] = {**values} if isinstance(values, Mapping) else {}
    return there | {key: _merged(there.get(key), new) for key, new in settings.items()}


def _same(one: object, other: object) -> bool:
    """Tell whether two parsed documents are the same: ``1``, ``1.0`` and ``true`` differ, NaN is NaN."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            if left.keys() != right.keys():
                return False
            pairs += ((left[key], right[key]) for key in left)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif type(left) is not type(right) or not (left == right or (left != left and right != right)):
            return False
    return True


def _must_be_read(config: Mapping[str, object], name: str, blocks: _Blocks, ruleset: Ruleset) -> None:
    """Raise an error if any field would be read as another value than was asked for."""
    for agent, fields in blocks.items():
        policy = load_policy(ruleset.name, config=FileConfig(config, name), agent=agent)
        for field_name, value in fields.items():
            read = policy.values[field_name]
            if type(read) is not type(value) or read != value:
                why = [note.message for note in policy.notes if (note.kind, note.field) == ("repaired", field_name)]
                raise ConfigError(
                    f"{name}: {field_name} {shown(value)} would be read as {shown(read)}; nothing is written"
                    f"{''.join(f' ({reason})' for reason in why)}"
                )
