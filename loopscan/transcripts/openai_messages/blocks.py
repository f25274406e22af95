"""What the messages of OpenAI's and Anthropic's interfaces hold: calls, results, usage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import orjson

from loopscan.events import NO_USAGE, Call, Json, Outcome, Usage
from loopscan.transcripts.completions import completion_usage
from loopscan.transcripts.dialogue import text_result
from loopscan.transcripts.jsonl import parsed
from loopscan.transcripts.values import Object, array, dollars, identifier, mapping, number, seconds, string, tokens

#: A later number of a clock that counts milliseconds since the epoch is not one that counts seconds.
_LAST_SECOND = 100_000_000_000

Calls: TypeAlias = "tuple[list[Call], int]"
"""Calls, and how many there are without the name of a tool."""


@dataclass(frozen=True, slots=True)
class BlockResult:
    """One ``tool_result`` block."""

    call_id: str | None
    outcome: Outcome


def calls_of(message: Object) -> Calls:
    """Return the calls of an assistant message, in any of the forms that are in use.

    ``tool_calls``; the older ``function_call``; ``tool_use`` blocks in the content.
    """
    found: list[Call] = []
    nameless = 0
    raw = [mapping(each) for each in array(message.get("tool_calls"))]
    older = mapping(message.get("function_call"))
    raw += [older] if older and not raw else []
    raw += [each for each in blocks_of(message) if each.get("type") == "tool_use"]
    for each in raw:
        inner = mapping(each.get("function")) or mapping(each.get("custom")) or each
        name = string(inner.get("name"))
        if name is None:
            nameless += 1
            continue
        given = next((inner[key] for key in ("arguments", "input", "args") if key in inner), {})
        arguments = _arguments(given) if isinstance(given, str) and "custom" not in each else given
        found.append(Call(name, arguments, identifier(each.get("id"))))
    return found, nameless


def results_of(message: Object) -> list[BlockResult]:
    """Return the results among the blocks of a message."""
    found: list[BlockResult] = []
    for block in blocks_of(message):
        if block.get("type") == "tool_result":
            text = content_text(block.get("content"))
            failed = block.get("is_error") is True
            outcome = Outcome(error=text, is_error=True) if failed else text_result(text)
            found.append(BlockResult(identifier(block.get("tool_use_id")), outcome))
    return found


def blocks_of(message: Object) -> list[Object]:
    """Return the blocks of a message's content."""
    return [block for block in array(message.get("content")) if isinstance(block, dict)]


def content_text(content: Json) -> str:
    """Return what a content says, as text: a string, the texts of blocks, or any other value as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [each.get("text") if isinstance(each, dict) else each for each in content]
        if texts and all(isinstance(text, str) for text in texts):
            return "\n".join(str(text) for text in texts)
    return as_json(content)


def as_json(value: Json) -> str:
    """Return a value as text that is equal for equal values."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        pass  # lone surrogates, numbers over 64 bits, deep nesting
    try:
        return repr(value)
    except RecursionError:
        return "nested too deeply to compare"


def usage_of(value: Json, cost: Json = None) -> Usage:
    """Return what a response cost: Anthropic counts cached tokens apart from the input, OpenAI within it."""
    fields = mapping(value)
    if "prompt_tokens" in fields or not fields.keys() & {"cache_read_input_tokens", "cache_creation_input_tokens"}:
        return completion_usage(fields, cost) if fields or cost is not None else NO_USAGE
    read, written = tokens(fields.get("cache_read_input_tokens")), tokens(fields.get("cache_creation_input_tokens"))
    asked, said = tokens(fields.get("input_tokens")), tokens(fields.get("output_tokens"))
    return Usage(asked, said, read, written, asked + said + read + written, dollars(cost))


def moment(value: Json) -> float | None:
    """Read a time, in seconds: an ISO string, seconds or milliseconds since the epoch."""
    found = number(value)
    if found is not None and 0 <= found < _LAST_SECOND:
        return found
    return seconds(value)


def time_of(record: Object) -> float | None:
    """Return when a record was made."""
    for name in ("timestamp", "created_at", "created", "ts", "time", "start_time"):
        found = moment(record.get(name))
        if found is not None:
            return found
    return None


def _arguments(text: str) -> Json:
    """Return what the text of arguments says; the text itself where it is no JSON."""
    return parsed(text) if text.strip() else {}
