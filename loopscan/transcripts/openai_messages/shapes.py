"""Where the conversations are in what people wrote: messages, lists of them, objects around them, logs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import Json
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.openai_messages.blocks import time_of, usage_of
from loopscan.transcripts.openai_messages.conversation import Response
from loopscan.transcripts.values import Object, array, identifier, mapping, string

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

#: What an object calls the messages that it holds.
_LISTS = ("messages", "traj", "conversation", "history", "chat_history", "dialogue", "transcript")
#: Objects within an object that may hold the messages, in logs of requests.
_WITHIN = ("request", "request_body", "body", "input", "kwargs")
#: What names the session that a message or a conversation belongs to.
_SESSIONS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId", "chat_id")
#: What names an item of a file with many.
_ITEMS = ("task_id", "instance_id", "sample_id", "trace_id", "id")
_TRIALS = ("trial", "trial_id", "seed", "run")
#: What an object calls the response, in logs of requests.
_RESPONSES = ("response", "response_body", "completion")
_SUFFIX = re.compile(r"(?:\.jsonl?)?(?:\.(?:gz|zst))?\Z")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of a log of one request."""

    message: Object | None
    """``None``: the request failed."""
    known: Response


def is_message(value: Json) -> bool:
    """Whether a value is a message: a known role, and a content or calls."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str) or value["role"] not in ROLES:
        return False
    if "parts" in value or ("type" in value and value["type"] not in ("message", None)):
        return False
    if "content" in value:
        return value["content"] is None or isinstance(value["content"], str | list)
    return isinstance(value.get("tool_calls"), list) or isinstance(value.get("function_call"), dict)


def messages_in(body: Object) -> list[Json] | None:
    """Return the messages that an object holds, ``None`` if it is no conversation."""
    if "trajectory" in body or "mini_version" in mapping(body.get("info")):
        return None  # of SWE-agent, which tells more than its messages do
    for holder in (body, *(mapping(body.get(name)) for name in _WITHIN)):
        # What the model was sent where calls were written as text goes behind what they were.
        for name in ("raw_messages", *_LISTS):
            messages = holder.get(name)
            if isinstance(messages, list) and messages and is_message(messages[0]):
                return messages
    return None


def reply_in(body: Object) -> Reply | None:
    """Return the response that a log holds beside the messages of its request, ``None`` if it holds none."""
    response = next((body[name] for name in _RESPONSES if name in body), None)
    if isinstance(response, str):
        response = {"role": "assistant", "content": response}
    elif not isinstance(response, dict):
        if not isinstance(body.get("choices"), list):
            return None
        response = body
    choice = mapping(next(iter(array(response.get("choices"))), None))
    message = mapping(choice.get("message")) or (response if is_message(response) else {})
    usage = usage_of(response.get("usage"), body.get("cost", response.get("cost")))
    made = time_of(body)
    stop = string(choice.get("finish_reason")) or string(response.get("stop_reason"))
    known = Response(usage, string(response.get("model")), stop, time_of(response) if made is None else made)
    return Reply(
        message if is_message({"content": None, "role": "assistant", **message}) and message else None, known
    )


def session_in(body: Object) -> str | None:
    """Return the session that a message or conversation says that it belongs to."""
    return next((found for name in _SESSIONS if (found := identifier(body.get(name))) is not None), None)


def name_of(body: Object, stem: str, number: int) -> str:
    """Return the name of a conversation: its own, or that of its file with task and trial, or with its ``number``."""
    own = session_in(body)
    if own is not None:
        return own[:_LONGEST_NAME]
    inner = mapping(body.get("info"))
    named = [(name, identifier(body.get(name)) or identifier(inner.get(name))) for name in _ITEMS]
    told = [(name, value) for name, value in named if value is not None][:1]
    told += [(name, value) for name in _TRIALS if (value := identifier(body.get(name))) is not None][:1]
    if told:
        return f"{stem}#{','.join(f'{name}={value[:_LONGEST_NAME]}' for name, value in told)}"
    return stem if number == 1 else f"{stem}#{number}"


def stem_of(path: str) -> str:
    """Return the name of a source without folders and ending."""
    name = pieces_of(path)[-1]
    return _SUFFIX.sub("", name) or name
