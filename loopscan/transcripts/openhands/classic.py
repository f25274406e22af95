"""Events of the classic OpenHands application: actions, and the observations that they cause.

Events of the user's own actions, of states and of what is recalled say nothing of the model. What the agent that
another one delegates to does stands between the action that delegates and its observation.
"""

from __future__ import annotations

from typing import Final

from loopscan.events import Call, Fate, Json, Outcome, Usage
from loopscan.transcripts.completions import completion_usage
from loopscan.transcripts.dialogue import text_result
from loopscan.transcripts.openhands.commands import command_outcome, is_command
from loopscan.transcripts.openhands.session import Entry, Session
from loopscan.transcripts.values import Object, identifier, mapping, string

#: Actions that ask nothing of a tool.
_QUIET: Final = frozenset(
    (
        *("null", "system", "recall", "change_agent_state", "initialize", "start", "pause", "resume", "stop"),
        *("condensation_request", "loop_recovery", "add_task", "modify_task"),
    )
)
_CONDENSING: Final = frozenset({"condensation", "summarize"})
_ENDS: Final = frozenset({"finish", "reject"})
_MCP: Final = frozenset({"call_tool_mcp", "mcp"})
#: What OpenHands keeps of an action beside the arguments of its tool.
_BESIDE: Final = frozenset(
    (
        *("thought", "final_thought", "blocking", "is_static", "hidden", "confirmation_state", "security_risk"),
        *("keep_prompt", "include_extra", "kernel_init_code", "impl_source", "translated_ipython_code", "message"),
        *("wait_for_response", "tool_call_metadata", "action_suffix"),
    )
)
_WORKING: Final = "running"
_DONE: Final = frozenset({"finished", "rejected"})
_STOPPED: Final = frozenset({"error", "stopped"})


def is_action(body: Object) -> bool:
    """Say whether an event is an action."""
    return isinstance(body.get("action"), str) and isinstance(body.get("args"), dict)


def is_observation(body: Object) -> bool:
    """Say whether an event is an observation."""
    return isinstance(body.get("observation"), str) and ("content" in body or isinstance(body.get("extras"), dict))


def take(session: Session, entry: Entry) -> bool | None:
    """Take in an event; return whether it said something, ``None`` if it is no event of this kind."""
    if is_action(entry.body):
        return _action(session, entry)
    return _observation(session, entry) if is_observation(entry.body) else None


def _action(session: Session, entry: Entry) -> bool:
    body, where = entry.body, entry.where
    action, by = string(body.get("action")) or "", body.get("source")
    if action in _CONDENSING:
        session.dialogue(where).compaction(where)
        return True
    if by == "user" and action == "message":
        session.dialogue(where).user(where, steering=True if session.running else None)
        return True
    if by in ("user", "environment") or action in _QUIET:
        return False
    metadata = mapping(body.get("tool_call_metadata"))
    response = mapping(metadata.get("model_response"))
    message = identifier(response.get("id"))
    model = string(response.get("model"))
    usage = _usage(session, body, response)
    dialogue = session.dialogue(where)
    if action == "message" or action in _ENDS:
        dialogue.turn(where, message=message, model=model, usage=usage, size=entry.size)
        if action in _ENDS:
            dialogue.completed(where)
        return True
    call_id = identifier(metadata.get("tool_call_id")) or (f"event {where.entry}" if where.entry else None)
    if where.entry is not None and call_id is not None:
        session.calls[where.entry] = call_id
    args = mapping(body.get("args"))
    tool = string(metadata.get("function_name")) or action
    arguments: Json = {name: value for name, value in args.items() if name not in _BESIDE or action == "think"}
    if action in _MCP and string(args.get("name")) is not None:
        tool, arguments = string(args.get("name")) or tool, args.get("arguments")
    dialogue.turn(where, [Call(tool, arguments, call_id)], message=message, model=model, usage=usage, size=entry.size)
    if action == "delegate":
        session.delegate(where, string(args.get("agent")))
    return True


def _usage(session: Session, body: Object, response: Object) -> Usage:
    """Return what a response cost: its own tokens where they are told, else what the running totals grew by."""
    metrics = body.get("llm_metrics")
    session.spent({"": metrics} if isinstance(metrics, dict) else None)
    due = session.meter.due()
    own = completion_usage(response.get("usage"))
    if not own.total:
        return due
    return Usage(own.input, own.output, own.cache_read, own.cache_write, own.total, due.cost_usd)


def _observation(session: Session, entry: Entry) -> bool:
    body, where = entry.body, entry.where
    kind, extras = string(body.get("observation")) or "", mapping(body.get("extras"))
    if kind == "agent_state_changed":
        return _state(session, entry, extras.get("agent_state"))
    cause = identifier(body.get("cause"))
    call_id = session.calls.get(cause) if cause is not None else None
    call_id = identifier(mapping(body.get("tool_call_metadata")).get("tool_call_id")) or call_id
    if kind == "delegate":
        session.delegated()
    if call_id is None:
        return False  # Of the user's own action, of one that is no call, or of nothing at all.
    dialogue = session.dialogue(where)
    if kind == "user_rejected":
        dialogue.result(where, None, call_id=call_id, fate=Fate.NOT_RUN, size=entry.size)
    else:
        dialogue.result(where, _outcome(session, kind, body, extras), call_id=call_id, size=entry.size)
    return True


def _outcome(session: Session, kind: str, body: Object, extras: Object) -> Outcome:
    content = string(body.get("content")) or ""
    if kind == "error":
        return Outcome(error=content, is_error=True)
    if kind == "run" or is_command(extras):
        return command_outcome(content, extras, session.source)
    # Where there is no text, what the fields say is all there is.
    return text_result(content, extras if extras and not content else None)


def _state(session: Session, entry: Entry, state: Json) -> bool:
    if not isinstance(state, str):
        return False
    session.running = state == _WORKING
    if state in _DONE:
        session.dialogue(entry.where).completed(entry.where)
    elif state in _STOPPED:
        session.dialogue(entry.where).stopped(entry.where)
    return True
