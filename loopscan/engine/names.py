"""Names and arguments of calls: what makes two calls the same."""

from __future__ import annotations

from loopscan.engine.canonical import identity, trim
from loopscan.events import Json
from loopscan.rulesets import Ruleset


def tool_name(name: str, ruleset: Ruleset) -> str:
    """Return the name that the engine goes by: trimmed, lower-cased, aliases resolved.

    An empty name is ``tool``; one of white space alone stays empty.
    """
    if not name:
        return "tool"
    plain = trim(name).lower()
    for alias, tool in ruleset.tool_aliases:
        if plain == alias:
            return tool
    return plain


def compared_arguments(tool: str, arguments: Json, ruleset: Ruleset) -> Json:
    """Return what of the arguments makes two calls of ``tool`` the same."""
    if isinstance(arguments, dict):
        ignored = {argument for name, argument in ruleset.ignored_arguments if name == tool}
        if ignored & arguments.keys():
            return {key: value for key, value in arguments.items() if key not in ignored}
    return arguments


def signature(tool: str, arguments: Json) -> bytes:
    """Return the identity of a call: its tool (see :func:`tool_name`) and :func:`compared_arguments` together."""
    return identity([tool, arguments])


def is_known_poll(tool: str, arguments: Json, ruleset: Ruleset) -> bool:
    """Whether a call only asks how far something is: ``process`` poll and log, and the ruleset's own polls."""
    if tool == "process":
        return isinstance(arguments, dict) and arguments.get("action") in ("poll", "log")
    return tool in ruleset.polls
