"""One line of a rollout, taken apart without trust in any field."""

from __future__ import annotations

import re
from typing import Final

from loopscan.events import Call, Usage
from loopscan.transcripts.codex.outputs import POLL, STDIN
from loopscan.transcripts.jsonl import parsed
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.values import Object, identifier, mapping, string, tokens

#: Types of the lines of a rollout; each holds a ``payload``.
META, ITEM, EVENT, CONTEXT, COMPACTED = "session_meta", "response_item", "event_msg", "turn_context", "compacted"
LINES: Final = frozenset({META, ITEM, EVENT, CONTEXT, COMPACTED})
#: Types of items, which were lines of their own before 0.30.
CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
#: Tools that the provider of the model runs within a response. OpenClaw never sees such calls, and their results are
#: never recorded, so they are parts of the response and no calls.
HOSTED = frozenset({"web_search_call", "image_generation_call"})
COMPACTIONS = frozenset({"compaction", "context_compaction"})
ITEMS: Final = CALLS | OUTPUTS | HOSTED | COMPACTIONS | {"message", "reasoning", "ghost_snapshot"}

#: Events that show that the model is at work on its next response.
THINKING = frozenset({"agent_message", "agent_reasoning", "agent_reasoning_raw_content"})
#: How texts begin that Codex puts into the context in the user's name.
PSEUDO_USER = re.compile(
    r"\s*(?:<(?:environment_context|environments?|user_instructions|instructions|turn_aborted|skills?|user_shell_command"
    r"|subagent_notification|user_action|goal_context|codex_internal_context|hook_prompt|permissions instructions"
    r"|collaboration_mode|model_switch|recommended_plugins|personality_spec)[ >]|# AGENTS\.md instructions\b"
    r"|Warning: (?:apply_patch was requested|The maximum number of unified exec|Your account was flagged))",
    re.IGNORECASE,
)
TURN_ABORTED = re.compile(r"\s*<turn_aborted>", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def kind_of(body: Object) -> tuple[str, Object]:
    """Return the type of a line and what it holds; items and headers of before 0.30 as those of today."""
    kind = string(body.get("type"))
    if kind in LINES:
        return kind, mapping(body.get("payload"))
    if kind in ITEMS:
        return ITEM, body
    if kind is None and "timestamp" in body and "instructions" in body:
        return META, body
    return kind or string(body.get("record_type")) or "unknown", body


def session_id(meta: Object) -> str | None:
    """Return the id of the session that a header names."""
    return identifier(meta.get("id")) or identifier(meta.get("session_id"))


def parent_of(meta: Object) -> str | None:
    """Return the session that started the one of a header as its sub-agent, if it is one and that is recorded."""
    source = meta.get("source")
    if not isinstance(source, dict) or "subagent" not in source:
        return None
    spawned = mapping(mapping(source["subagent"]).get("thread_spawn"))
    return identifier(spawned.get("parent_thread_id")) or identifier(meta.get("parent_thread_id"))


def ancestors_of(meta: Object) -> list[str]:
    """Return the sessions of which a header says that their history may follow."""
    found = (identifier(meta.get("forked_from_id")), parent_of(meta))
    return list(dict.fromkeys(each for each in found if each is not None))


def session_of(path: str) -> str:
    """Return the session id that a file is named after: ``ID`` of ``rollout-TIME-ID.jsonl``, or its whole stem."""
    name = pieces_of(path)[-1]
    found = _UUID.findall(name)
    return found[-1] if found else re.split(r"\.jsonl?\b", name, maxsplit=1)[0] or name


def decides(kind: str, payload: Object) -> bool:
    """Say whether an entry that no ancestor has ends the history that a session begins with."""
    name = payload.get("type")
    if kind == ITEM:
        if name == "message":
            return payload.get("role") in ("user", "assistant")
        return isinstance(name, str) and name in CALLS | OUTPUTS | {"reasoning"}
    return kind == EVENT and name == "user_message"


def entry_id(payload: Object) -> str | None:
    """Return the id of an item, if it has one."""
    return identifier(payload.get("id")) if "type" in payload else None


def _joined(namespace: str | None, name: str) -> str:
    """Return the name of a tool; those of Codex itself stand in the namespace ``functions`` or in none."""
    if namespace is None or namespace == "functions":
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def usage_of(last: Object) -> Usage:
    """Return what a response cost; what was read from or written to the cache is part of Codex's input."""
    read, written = tokens(last.get("cached_input_tokens")), tokens(last.get("cache_write_input_tokens"))
    given, output = tokens(last.get("input_tokens")), tokens(last.get("output_tokens"))
    return Usage(
        input=max(0, given - read - written),
        output=output,
        cache_read=read,
        cache_write=written,
        total=tokens(last.get("total_tokens")) or given + output,
    )


def call_of(name: str, payload: Object) -> Call | None:
    """Return the call that an item of the type ``name`` asks for; ``None`` if the provider ran it.

    Its tool is empty where it is not named. Arguments that are a text of JSON are parsed; other texts stay texts.
    """
    call_id = identifier(payload.get("call_id"))
    if name == "local_shell_call":
        return Call("local_shell", payload.get("action"), call_id or identifier(payload.get("id")))
    if name == "tool_search_call":
        hosted = call_id is None or payload.get("execution") == "server"
        return None if hosted else Call("tool_search", payload.get("arguments"), call_id)
    tool = _joined(string(payload.get("namespace")), string(payload.get("name")) or "")
    arguments = payload.get("input") if name == "custom_tool_call" else parsed(payload.get("arguments"))
    if tool == STDIN and isinstance(arguments, dict) and arguments.get("chars") in (None, ""):
        tool = POLL
    return Call(tool, arguments, call_id)
