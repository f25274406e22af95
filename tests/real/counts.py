"""What recorded files hold, counted from their raw JSON alone.

Nothing of loopscan is used here: the functions know the formats only from their description and from the files,
so that two independent readings can be compared. One function a format; :func:`count` picks it by the folder
that the file lies in.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass
class Tokens:
    """Tokens of all responses; ``input`` without what was read from or written to a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0
    """As recorded where it is; else the sum of the others."""

    def add(self, input_: Any, output: Any, read: Any = 0, write: Any = 0, total: Any = None) -> None:
        parts = [_number(part) for part in (input_, output, read, write)]
        self.input += parts[0]
        self.output += parts[1]
        self.cache_read += parts[2]
        self.cache_write += parts[3]
        self.total += sum(parts) if total is None else _number(total)


@dataclass(frozen=True)
class Result:
    """The id of the call that a result names, and whether the record calls it an error or a failure."""

    call: Any
    error: bool = False
    failed: bool = False


@dataclass
class Counts:
    """What one file holds."""

    format: str
    sessions: list[str | None] = field(default_factory=list)
    """Their ids, ``None`` for one whose id is not recorded."""
    users: int = 0
    """Real user turns."""
    runs: int = 0
    """User turns but those that an overflow made the harness submit again, and one more for each session with
    model output before its first user turn."""
    responses: int = 0
    """Model responses, each counted once however many entries hold it."""
    calls: Counter[str] = field(default_factory=Counter)
    """By the name that the record gives the tool."""
    answered: int = 0
    lost: int = 0
    """Calls without any result."""
    orphans: int = 0
    """Results without a call."""
    errors: int = 0
    """Answers flagged as errors."""
    failed: int = 0
    """Answers with an exit code other than 0 that are not flagged."""
    compactions: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost: float = 0.0
    first: float | None = None
    last: float | None = None
    named: Counter[str] = field(default_factory=Counter)
    """Calls of which the record holds the tool's name alone."""
    reused: int = 0
    """Entries that bear the id of an earlier one and say something else: such ids tell nothing."""

    def at(self, seconds: float | None) -> None:
        """Note a time that is recorded in the file."""
        if seconds is not None:
            self.first = seconds if self.first is None else min(self.first, seconds)
            self.last = seconds if self.last is None else max(self.last, seconds)

    def pair(self, calls: Iterable[Any], results: Iterable[Result]) -> None:
        """Count what is answered, lost and orphaned: each result answers the next call of its id."""
        waiting = Counter(calls)
        for result in results:
            if not waiting[result.call]:
                self.orphans += 1
                continue
            waiting[result.call] -= 1
            self.answered += 1
            self.errors += result.error
            self.failed += result.failed and not result.error
        self.lost += waiting.total()


class _Runs:
    """Counts the user turns of one session, and whether the model spoke before the first."""

    def __init__(self) -> None:
        self.users = 0
        self.again = 0
        self.led = False

    def user(self, *, again: bool = False) -> None:
        self.users += 1
        self.again += again

    def model(self) -> None:
        self.led |= not self.users

    def into(self, counts: Counts, *ids: str | None) -> None:
        counts.users += self.users
        counts.runs += self.users - self.again + self.led
        counts.sessions += ids


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def _seconds(value: Any) -> float | None:
    """Turn an ISO time, or milliseconds or seconds since the epoch, into seconds; ``None`` for anything else."""
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value)
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _blocks(message: Any, *kinds: str) -> list[dict[str, Any]]:
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") in kinds]


def claude_code(path: Path) -> Counts:
    """Lines of one message id are one response; the last of them has its final usage.

    A side chain and an agent are sessions of their own. Lines without a session id belong to one session of the
    file. What a user typed while the model was at work is an attachment, ``queued_command``, and opens no run.
    """
    counts = Counts("claude-code")
    sessions: dict[tuple[Any, ...], _Runs] = {}
    usage: dict[Any, dict[str, Any]] = {}
    calls: list[Any] = []
    results: list[Result] = []
    seen: dict[str, Any] = {}
    for number, line in enumerate(_lines(path)):
        counts.at(_seconds(line.get("timestamp")))
        if isinstance(uuid := line.get("uuid"), str):
            counts.reused += uuid in seen and seen[uuid] != line
            seen.setdefault(uuid, line)
        message = line.get("message") or {}
        boundary = line.get("type") == "system" and line.get("subtype") == "compact_boundary"
        counts.compactions += boundary
        queued = (line.get("attachment") or {}).get("type") == "queued_command"
        if line.get("type") not in ("user", "assistant") and not queued:
            continue
        side = bool(line.get("isSidechain"))
        key = (line.get("sessionId"), side, line.get("agentId"))
        runs = sessions.setdefault(key, _Runs())
        if queued:
            runs.user(again=runs.led or runs.users > 0)
            continue
        if line["type"] == "assistant":
            runs.model()
            usage[key, message.get("id") or number] = message.get("usage") or {}
            for call in _blocks(message, "tool_use"):
                counts.calls[call["name"]] += 1
                calls.append(call.get("id") or ("of", line.get("uuid")))
            continue
        answers = _blocks(message, "tool_result")
        for answer in answers:
            call_id = answer.get("tool_use_id") or ("of", line.get("sourceToolAssistantUUID"))
            results.append(Result(call_id, answer.get("is_error") is True))
        if not answers and not line.get("isMeta") and not line.get("isCompactSummary") and not _interrupted(message):
            runs.user()
    for spent in usage.values():
        read, write = spent.get("cache_read_input_tokens"), spent.get("cache_creation_input_tokens")
        counts.tokens.add(spent.get("input_tokens"), spent.get("output_tokens"), read, write)
    counts.responses = len(usage)
    counts.pair(calls, results)
    for (session, _, agent), runs in sessions.items():
        runs.into(counts, agent or session)
    return counts


def _interrupted(message: dict[str, Any]) -> bool:
    """Say whether a user message is the mark that the harness leaves at an interruption."""
    content = message.get("content")
    texts = [block.get("text") for block in _blocks(message, "text")] if isinstance(content, list) else [content]
    return len(texts) == 1 and isinstance(texts[0], str) and texts[0].startswith("[Request interrupted by user")


_EXIT = re.compile(r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?(?:Process exited with code|Exit code:) (-?\d+)")
_CODEX_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_CODEX_INPUT = ("function_call_output", "custom_tool_call_output")


def codex(path: Path) -> Counts:
    """A response ends where the total of the token counts grows: it is what was billed.

    The first token count of a request repeats the total of the last one, and says nothing. Without token counts, a
    response ends at the next input. A user turn is a ``user_message`` event; in a file that has none, it is the last
    user item before the model speaks.
    """
    counts = Counts("codex")
    lines = _lines(path)
    payloads = [(line.get("type"), line.get("payload") or {}) for line in lines]
    runs = _Runs()
    told = any(kind == "event_msg" and payload.get("type") == "user_message" for kind, payload in payloads)
    calls: list[Any] = []
    results: list[Result] = []
    session: str | None = None
    total: dict[str, Any] | None = None
    billed = bursts = 0
    speaking = asked = False
    for line, (kind, payload) in zip(lines, payloads, strict=True):
        counts.at(_seconds(line.get("timestamp")))
        what = payload.get("type")
        if kind == "session_meta":
            session = session or payload.get("id")
        elif kind == "compacted":
            counts.compactions += 1
        elif kind == "event_msg" and what == "user_message":
            runs.user()
            speaking = False
        elif kind == "event_msg" and what == "token_count":
            info = payload.get("info") or {}
            if info.get("total_token_usage") not in (None, total):
                total = info["total_token_usage"]
                billed += 1
                spent = info["last_token_usage"]
                read, write = (_number(spent.get(key)) for key in ("cached_input_tokens", "cache_write_input_tokens"))
                fresh = _number(spent.get("input_tokens")) - read - write
                counts.tokens.add(fresh, spent.get("output_tokens"), read, write, spent.get("total_tokens"))
        elif kind == "response_item" and what in _CODEX_INPUT:
            results.append(Result(payload.get("call_id"), failed=_failed(payload.get("output"))))
            speaking = False
        elif kind == "response_item" and what == "message" and payload.get("role") == "user":
            asked = not told
        elif kind == "response_item" and (what in ("message", "reasoning") or what in _CODEX_CALLS):
            if what == "message" and payload.get("role") != "assistant":
                continue
            if asked:
                runs.user()
            asked = False
            runs.model()
            bursts += not speaking
            speaking = True
            if what in _CODEX_CALLS:
                counts.calls[payload.get("name") or what] += 1
                if what != "web_search_call":
                    calls.append(payload.get("call_id"))
    counts.responses = billed or bursts
    counts.pair(calls, results)
    runs.into(counts, session)
    return counts


def _failed(output: Any) -> bool:
    """Say whether the output of a Codex tool names an exit code other than 0."""
    if not isinstance(output, str):
        return False
    if found := _EXIT.match(output):
        return int(found[1]) != 0
    try:
        parsed = json.loads(output)
    except ValueError:
        return False
    metadata = parsed.get("metadata") if isinstance(parsed, dict) else None
    return isinstance(metadata, dict) and metadata.get("exit_code") not in (0, None)


def gemini(path: Path) -> Counts:
    """Each element of role ``model`` is a response; a user turn is a user element with text of the user's own."""
    counts = Counts("gemini")
    runs = _Runs()
    calls: list[Any] = []
    results: list[Result] = []
    for element in json.loads(path.read_bytes()):
        parts = element["parts"]
        for part in parts:
            if call := part.get("functionCall"):
                counts.calls[call["name"]] += 1
                calls.append(call.get("id"))
            if answer := part.get("functionResponse"):
                results.append(Result(answer.get("id"), "error" in answer["response"]))
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        if element["role"] == "model":
            counts.responses += 1
            runs.model()
        elif any(text.startswith("<state_snapshot>") for text in texts):
            counts.compactions += 1
        elif any(not text.startswith("<session_context>") for text in texts):
            runs.user()
    counts.pair(calls, results)
    runs.into(counts, None)
    return counts


def openai_messages(path: Path) -> Counts:
    """A log of one request: its raw messages, and the response to them. Only the response has usage."""
    counts = Counts("openai-messages")
    log = json.loads(path.read_bytes())
    runs = _Runs()
    calls: list[Any] = []
    results: list[Result] = []
    for message in [*log["raw_messages"], *(choice["message"] for choice in log["response"]["choices"])]:
        if message["role"] == "user":
            runs.user()
        elif message["role"] == "tool":
            results.append(Result(message["tool_call_id"]))
        elif message["role"] == "assistant":
            runs.model()
            counts.responses += 1
            for call in message.get("tool_calls") or []:
                counts.calls[call["function"]["name"]] += 1
                calls.append(call["id"])
    counts.pair(calls, results)
    _openai_usage(counts.tokens, log["response"]["usage"])
    counts.cost = log["cost"]
    counts.at(_seconds(log["timestamp"]))
    runs.into(counts, None)
    return counts


def _openai_usage(tokens: Tokens, usage: dict[str, Any]) -> None:
    """Add usage as OpenAI counts it: the prompt holds what came from the cache."""
    read = _number((usage.get("prompt_tokens_details") or {}).get("cached_tokens"))
    tokens.add(usage["prompt_tokens"] - read, usage["completion_tokens"], read, 0, usage["total_tokens"])


_GATEWAY = ("openclaw", "clawdbot", "moltbot")


def openclaw(path: Path) -> Counts:
    """Every message of role ``assistant`` from a model is a response, every one of role ``user`` a user turn.

    What the gateway writes into the transcript itself has role ``assistant`` too, and names the gateway as its
    provider. What is of the api ``cli`` without the id of a response and a price, and has the words and the total of
    the response before it, was written once more when the run ended: it is no response. A user turn with the words
    of the one before it, and nothing but a compaction in between, is the same prompt submitted again.
    """
    counts = Counts("openclaw-jsonl")
    runs = _Runs()
    session: str | None = None
    calls: list[Any] = []
    results: list[Result] = []
    seen: dict[str, Any] = {}
    prompt: Any = None
    compacted = False
    response: dict[str, Any] = {}
    for line in _lines(path):
        counts.at(_seconds(line.get("timestamp")))
        if line["type"] == "session":
            session = line.get("id")
            continue
        counts.reused += line["id"] in seen and seen[line["id"]] != line
        seen.setdefault(line["id"], line)
        counts.compactions += line["type"] == "compaction"
        message = line.get("message") or {}
        compacted |= line["type"] == "compaction"
        if message.get("role") == "user":
            runs.user(again=compacted and message["content"] == prompt)
            prompt, compacted = message["content"], False
        elif message:
            prompt = None
            if _openclaw_closing(message, response):
                continue
            _openclaw_message(counts, runs, message, calls, results)
        if message.get("role") == "assistant":
            response = message
            usage = message.get("usage") or {}
            parts = (usage.get(key) for key in ("input", "output", "cacheRead", "cacheWrite", "totalTokens"))
            counts.tokens.add(*parts)
            counts.cost += (usage.get("cost") or {}).get("total", 0)
    counts.pair(calls, results)
    runs.into(counts, session)
    return counts


def _openclaw_closing(message: dict[str, Any], response: dict[str, Any]) -> bool:
    """Say whether a message is the response before it once more."""
    if message.get("api") != "cli" or response.get("api", "cli") == "cli" or "responseId" in message:
        return False
    if any(block["type"] != "text" for block in message["content"]) or any(message["usage"]["cost"].values()):
        return False
    words, before = ([block["text"] for block in _blocks(each, "text")] for each in (message, response))
    return words == before and message["usage"]["totalTokens"] == response["usage"]["totalTokens"]


def _openclaw_message(
    counts: Counts, runs: _Runs, message: dict[str, Any], calls: list[Any], results: list[Result]
) -> None:
    role = message.get("role")
    if role == "assistant" and message.get("provider") not in _GATEWAY:
        runs.model()
        counts.responses += 1
        for call in _blocks(message, "toolCall", "toolUse", "functionCall"):
            counts.calls[call["name"]] += 1
            calls.append(call["id"])
    elif role == "toolResult":
        details = message.get("details")
        failed = isinstance(details, dict) and details.get("exitCode") not in (0, None)
        results.append(Result(message["toolCallId"], message.get("isError") is True, failed))


def openclaw_trajectory(path: Path) -> Counts:
    """A run is one ``runId``. Its messages are those of its snapshot that no earlier snapshot or prompt held.

    Where the snapshot was cut off, the names of the tools are still told with the artifacts. Usage and compactions
    are those of the run: the usage of messages is set to 0 when the context is compacted. Only messages have a cost.
    """
    counts = Counts("openclaw-trajectory")
    runs = _Runs()
    session: str | None = None
    calls: list[Any] = []
    results: list[Result] = []
    known: set[tuple[Any, ...]] = set()
    cut: set[Any] = set()
    ids: set[Any] = set()
    for line in _lines(path):
        counts.at(_seconds(line.get("ts")))
        session = session or line.get("sessionId")
        run, data = line.get("runId"), line.get("data") or {}
        if run not in ids:
            runs.user()
            ids.add(run)
        if line["type"] in ("context.compiled", "prompt.submitted"):
            known.update(_known(message) for message in data.get("messages") or [])
        elif line["type"] == "model.completed":
            if not isinstance(data.get("messagesSnapshot"), list):
                cut.add(run)
            for message in data.get("messagesSnapshot") or []:
                if _known(message) not in known and message.get("role") != "user":
                    _openclaw_message(counts, runs, message, calls, results)
                    counts.cost += ((message.get("usage") or {}).get("cost") or {}).get("total", 0)
                known.add(_known(message))
        elif line["type"] == "trace.artifacts":
            usage = data.get("usage") or {}
            parts = (usage.get(key) for key in ("input", "output", "cacheRead", "cacheWrite", "total"))
            counts.tokens.add(*parts)
            counts.compactions += _number(data.get("compactionCount"))
            if run in cut:
                counts.named.update(meta["toolName"] for meta in data.get("toolMetas") or [])
    counts.pair(calls, results)
    runs.into(counts, session)
    return counts


def _known(message: dict[str, Any]) -> tuple[Any, ...]:
    return message.get("role"), message.get("timestamp"), message.get("toolCallId")


_CLINE_CALLS = ("tool", "command", "use_mcp_server", "load_mcp_documentation")


def cline(path: Path) -> Counts:
    """Each ``api_req_started`` is a response. A call is answered by output of its own or by the next request.

    The same call asked for and then said again is one. An MCP server's error begins with a line ``Error:``.
    """
    counts = Counts("cline-ui")
    runs = _Runs()
    waiting: str | None = None
    for number, entry in enumerate(json.loads(path.read_bytes())):
        counts.at(_seconds(entry.get("ts")))
        kind, text = entry.get(entry["type"]), entry.get("text") or ""
        if entry.get("partial") is True:
            continue
        if kind == "user_feedback" or (kind == "text" and number == 0):
            runs.user()
        elif kind == "api_req_started":
            request = json.loads(text)
            if waiting is not None and "] Result:" in request["request"]:
                counts.answered += 1
                waiting = None
            counts.lost += waiting is not None
            waiting = None
            runs.model()
            counts.responses += 1
            keys = ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")
            counts.tokens.add(*(request.get(key) for key in keys))
            counts.cost += request.get("cost") or 0
        elif kind in _CLINE_CALLS and text != waiting:
            counts.lost += waiting is not None
            counts.calls[_cline_tool(kind, text)] += 1
            waiting = text
        elif kind in ("command_output", "mcp_server_response"):
            counts.answered += waiting is not None
            waiting = None
            counts.errors += kind == "mcp_server_response" and text.startswith("Error:\n")
    counts.lost += waiting is not None
    runs.into(counts, None)
    return counts


def _cline_tool(kind: str, text: str) -> str:
    if kind == "tool":
        return str(json.loads(text)["tool"])
    return kind


def swe_agent(path: Path) -> Counts:
    """Of a trajectory each step is a response, its call and its result; the instance has usage, steps have none.

    Of a list of messages (mini-swe-agent) each assistant message is a response with usage of its own.
    """
    counts = Counts("swe-agent")
    document = json.loads(path.read_bytes())
    stats = document["info"]["model_stats"]
    counts.cost = stats["instance_cost"]
    runs = _Runs()
    if "trajectory" in document:
        runs.user()
        for step in document["trajectory"]:
            runs.model()
            counts.responses += 1
            counts.calls[step["action"].split()[0]] += 1
            counts.answered += isinstance(step["observation"], str)
            counts.lost += not isinstance(step["observation"], str)
        counts.tokens.add(stats["tokens_sent"], stats["tokens_received"])
        runs.into(counts, None)
        return counts
    calls: list[Any] = []
    results: list[Result] = []
    for message in document["messages"]:
        extra = message.get("extra") or {}
        counts.at(_seconds(extra.get("timestamp")))
        if message["role"] == "user":
            runs.user()
        elif message["role"] == "assistant":
            runs.model()
            counts.responses += 1
            for call in message.get("tool_calls") or []:
                counts.calls[call["function"]["name"]] += 1
                calls.append(call["id"])
            _openai_usage(counts.tokens, extra["response"]["usage"])
        elif message["role"] == "tool":
            results.append(Result(message["tool_call_id"], failed=extra.get("returncode") not in (0, None)))
    counts.pair(calls, results)
    runs.into(counts, document.get("instance_id"))
    return counts


def openhands(path: Path) -> Counts:
    """Events of the SDK, or the steps of a converted trajectory."""
    if path.suffix == ".json":
        return _openhands_steps(path)
    counts = Counts("openhands")
    runs = _Runs()
    responses: set[Any] = set()
    calls: list[Any] = []
    results: list[Result] = []
    spent: dict[str, dict[str, Any]] = {}
    for event in _lines(path):
        counts.at(_seconds(event.get("timestamp")))
        if event["kind"] == "MessageEvent" and event.get("source") == "user":
            runs.user()
        elif event["kind"] == "ActionEvent":
            runs.model()
            responses.add(event["llm_response_id"])
            counts.calls[(event.get("tool_call") or {}).get("name") or event["tool_name"]] += 1
            calls.append(event["tool_call_id"])
        elif event["kind"] == "ObservationEvent":
            seen = event["observation"]
            failed = seen.get("exit_code") not in (0, None)
            results.append(Result(event["tool_call_id"], seen.get("is_error") is True, failed))
        elif event["kind"].startswith("Condensation") and event["kind"] != "CondensationRequest":
            counts.compactions += 1
        elif isinstance(event.get("value"), dict) and "usage_to_metrics" in event["value"]:
            spent |= event["value"]["usage_to_metrics"]
    for metrics in spent.values():
        usage = metrics["accumulated_token_usage"]
        read, write = usage["cache_read_tokens"], usage["cache_write_tokens"]
        counts.tokens.add(usage["prompt_tokens"] - read - write, usage["completion_tokens"], read, write)
        counts.cost += metrics["accumulated_cost"]
    counts.responses = len(responses)
    counts.pair(calls, results)
    runs.into(counts, None)
    return counts


def _openhands_steps(path: Path) -> Counts:
    counts = Counts("openhands")
    runs = _Runs()
    for step in json.loads(path.read_bytes()):
        if step["user_message"] is not None:
            runs.user()
        runs.model()
        counts.responses += 1
        action = step["agent"]["action"]
        if action is not None:
            counts.calls[action.partition(":")[0]] += 1
            counts.answered += step["environment"] is not None
            counts.lost += step["environment"] is None
        usage = step["step_usage"]
        counts.tokens.add(usage["input_tokens"], usage["output_tokens"])
        counts.cost += usage["cost"]
    runs.into(counts, None)
    return counts


#: The function for each folder of recordings.
FORMATS: dict[str, Callable[[Path], Counts]] = {
    "claude-code": claude_code,
    "cline-ui": cline,
    "codex": codex,
    "gemini": gemini,
    "openai-messages": openai_messages,
    "openclaw": openclaw,
    "openclaw-trajectory": openclaw_trajectory,
    "openhands": openhands,
    "swe-agent": swe_agent,
}


def count(path: Path) -> Counts:
    """Count what the file holds, by the folder it lies in."""
    return FORMATS[path.parent.name](path)


def recordings(folder: Path) -> Iterator[Path]:
    """Yield all recorded files, sorted; nothing where there are none."""
    for name in FORMATS:
        if (folder / name).is_dir():
            yield from sorted((folder / name).iterdir())


def openclaw_entries(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the entries of an OpenClaw transcript by session and entry id, the header left out."""
    header, *entries = _lines(path)
    return {(header["id"], entry["id"]): entry for entry in entries}


def openai_conversation(path: Path) -> list[tuple[Any, ...]]:
    """Return the messages of a logged request and its response: who says what, and the calls made or answered."""
    log = json.loads(path.read_bytes())
    return [
        (message["role"], message["content"], message.get("tool_call_id"), _ids(message.get("tool_calls") or []))
        for message in [*log["raw_messages"], *(choice["message"] for choice in log["response"]["choices"])]
    ]


def _ids(calls: list[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(call["id"] for call in calls)
