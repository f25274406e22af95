"""Events of the OpenHands SDK, told apart by their ``kind``: what each of them means to a session."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from loopscan.events import NO_USAGE, Call, Fate, Json, Outcome
from loopscan.transcripts.dialogue import text_result
from loopscan.transcripts.jsonl import parsed
from loopscan.transcripts.openhands.commands import command_outcome, is_command
from loopscan.transcripts.openhands.session import Entry, Session
from loopscan.transcripts.values import Object, identifier, mapping, string, text_of

#: What is taken out of arguments that the harness did not keep in a form of its own.
ACTION_NOTES = "action-notes"
_NOTES: Final = frozenset({"security_risk", "summary"})

_ABSENT = re.compile(r"Tool '[^'\n]{1,200}' not found")
_REJECTED = re.compile(r"Error (?:validating|parsing) (?:args|arguments|tool)")
_WORKING: Final = frozenset({"running"})
_DONE: Final = frozenset({"finished"})
_STOPPED: Final = frozenset({"error", "stuck"})


def take(session: Session, entry: Entry) -> bool | None:
    """Take in an event; return whether it said something, ``None`` if it is no event of the SDK."""
    kind = entry.body.get("kind")
    if not isinstance(kind, str):
        return None
    rule = _RULES.get(kind)
    return rule(session, entry) if rule is not None else (False if is_kind(kind) else None)


def is_kind(kind: str) -> bool:
    """Say whether ``kind`` is that of an event: all names of them end alike, but for a few."""
    return kind in _RULES or kind.endswith("Event") or kind in ("CondensationRequest", "UserRejectObservation")


def _action(session: Session, entry: Entry) -> bool:
    body, where = entry.body, entry.where
    asked = mapping(body.get("tool_call"))
    tool = string(asked.get("name")) or string(body.get("tool_name")) or ""
    call_id = identifier(body.get("tool_call_id")) or identifier(asked.get("id"))
    call_id = f"event {where.entry}" if call_id is None and where.entry is not None else call_id
    if where.entry is not None and call_id is not None:
        session.calls[where.entry] = call_id
    message = identifier(body.get("llm_response_id"))
    if message is None or message != session.response:
        session.response, usage = message, session.meter.due()
    else:
        usage = NO_USAGE
    session.dialogue(where).turn(
        where,
        [Call(tool, _arguments(session, body, asked), call_id)],
        message=message,
        model=session.model,
        usage=usage,
        size=entry.size,
    )
    return True


def _arguments(session: Session, body: Object, asked: Object) -> Json:
    """Return the arguments that the harness ran; as the model wrote them where it ran none."""
    action = body.get("action")
    if isinstance(action, dict):
        return {name: value for name, value in action.items() if name != "kind"}
    written = parsed(asked.get("arguments"))
    if not isinstance(written, dict) or not _NOTES & written.keys():
        return written
    session.source.normalised[ACTION_NOTES] += 1
    return {name: value for name, value in written.items() if name not in _NOTES}


def _call_id(session: Session, body: Object) -> str | None:
    """Return the id of the call that an observation is for; its action tells it where the observation does not."""
    found = identifier(body.get("tool_call_id"))
    action = identifier(body.get("action_id"))
    return session.calls.get(action) if found is None and action is not None else found


def _observation(session: Session, entry: Entry) -> bool:
    body, where = entry.body, entry.where
    call_id = _call_id(session, body)
    observed = mapping(body.get("observation"))
    dialogue = session.dialogue(where)
    tool = string(body.get("tool_name")) if call_id is None else None
    dialogue.result(where, _outcome(session, observed), call_id=call_id, tool=tool, size=entry.size)
    if observed.get("kind") == "FinishObservation" or body.get("tool_name") == "finish":
        session.running = False
        dialogue.completed(where)
    return True


def _outcome(session: Session, observed: Object) -> Outcome:
    text = text_of(observed.get("content")) or (string(observed.get("output")) or "")
    error = string(observed.get("error"))
    failed = observed.get("is_error") is True or error is not None
    text = f"{text}\n{error}".lstrip("\n") if error is not None and error not in text else text
    if is_command(observed):
        return command_outcome(text, observed, session.source, is_error=failed)
    if text or not observed:
        return text_result(text, is_error=failed)
    # An observation without a text of its own is what its fields say.
    return text_result("", {name: value for name, value in observed.items() if name != "kind"}, is_error=failed)


def _agent_error(session: Session, entry: Entry) -> bool:
    """An error in place of an observation: no such tool, arguments that do not fit, or a tool that threw."""
    body, where = entry.body, entry.where
    error = string(body.get("error")) or ""
    call_id = _call_id(session, body)
    dialogue = session.dialogue(where)
    if _ABSENT.match(error):
        dialogue.absent(where, error, call_id=call_id, size=entry.size)
        return True
    fate = Fate.REJECTED if _REJECTED.match(error) else Fate.RAN
    dialogue.result(where, Outcome(error=error, is_error=True), call_id=call_id, fate=fate, size=entry.size)
    return True


def _user_rejected(session: Session, entry: Entry) -> bool:
    """A call that did not run: the user said no, or a hook blocked it, which the model is told as a result."""
    body, where = entry.body, entry.where
    call_id, dialogue = _call_id(session, body), session.dialogue(where)
    if body.get("rejection_source") == "hook":
        told = text_result(string(body.get("rejection_reason")) or "", is_error=True)
        dialogue.result(where, told, call_id=call_id, size=entry.size)
    else:
        dialogue.result(where, None, call_id=call_id, fate=Fate.NOT_RUN, size=entry.size)
    return True


def _message(session: Session, entry: Entry) -> bool:
    body, where = entry.body, entry.where
    source = body.get("source")
    role = mapping(body.get("llm_message")).get("role")
    if role == "assistant" or source == "agent":
        session.response = message = identifier(body.get("llm_response_id"))
        dialogue = session.dialogue(where)
        dialogue.turn(where, message=message, model=session.model, usage=session.meter.due(), size=entry.size)
        return True
    if source not in ("user", None):
        return False  # The harness speaks in the user's place: no new input.
    session.dialogue(where).user(where, steering=True if session.running else None)
    return True


def _state(session: Session, entry: Entry) -> bool:
    """The state of the conversation: one field of it, or all; of interest are the status and what was spent."""
    body = entry.body
    key, value = body.get("key"), body.get("value")
    fields = mapping(value)
    stats = fields if "usage_to_metrics" in fields else mapping(fields.get("stats"))
    session.spent(stats.get("usage_to_metrics"))
    status = value if key in ("execution_status", "agent_status") else fields.get("execution_status")
    if isinstance(status, str):
        session.running = status in _WORKING
        if status in _DONE:
            session.dialogue(entry.where).completed(entry.where)
        elif status in _STOPPED:
            session.dialogue(entry.where).stopped(entry.where)
    return "usage_to_metrics" in stats or isinstance(status, str)


def _condensation(session: Session, entry: Entry) -> bool:
    session.dialogue(entry.where).compaction(entry.where)
    return True


def _conversation_error(session: Session, entry: Entry) -> bool:
    session.running = False
    session.dialogue(entry.where).stopped(entry.where)
    return True


def _acp(session: Session, entry: Entry) -> bool:
    """A call that an agent behind the Agent Client Protocol made, told again whenever its status changes.

    It counts when it is over. Which calls came with one response is not told: each is a message of its own.
    """
    body, where = entry.body, entry.where
    if body.get("status") not in ("completed", "failed"):
        return False
    arguments = body.get("raw_input")
    call = Call(
        string(body.get("tool_kind")) or "acp",
        {"title": body.get("title")} if arguments is None else arguments,
        identifier(body.get("tool_call_id")),
    )
    if call.id is not None and f"acp {call.id}" in session.calls:
        return False
    if call.id is not None:
        session.calls[f"acp {call.id}"] = call.id
    dialogue = session.dialogue(where, identifier(body.get("parent_tool_call_id")))
    dialogue.turn(where, [call], model=session.model, usage=session.meter.due(), size=entry.size)
    output = body.get("raw_output")
    text = output if isinstance(output, str) else text_of(body.get("content"))
    details = None if isinstance(output, str) or output is None else output
    failed = body.get("is_error") is True or body.get("status") == "failed"
    dialogue.result(where, text_result(text, details, is_error=failed), call_id=call.id, tool=call.tool)
    return True


_Rule = Callable[[Session, Entry], bool]
_RULES: Final[dict[str, _Rule]] = {
    "ActionEvent": _action,
    "ObservationEvent": _observation,
    "AgentErrorEvent": _agent_error,
    "UserRejectObservation": _user_rejected,
    "MessageEvent": _message,
    "ConversationStateUpdateEvent": _state,
    "Condensation": _condensation,
    "ConversationErrorEvent": _conversation_error,
    "ACPToolCallEvent": _acp,
}
