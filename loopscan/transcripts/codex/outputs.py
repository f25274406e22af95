"""What Codex records as the output of a tool, and what of it the tool itself said.

Codex puts its own words around what a tool gives: an id, a wall time and a count of tokens before the output, or a
JSON object with the duration beside it. They differ on every call, so they are taken out; the exit code and whether
the command runs on are kept as OpenClaw would have them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from loopscan.events import Fate, Json, Outcome
from loopscan.transcripts.dialogue import command_result, text_result
from loopscan.transcripts.jsonl import parse
from loopscan.transcripts.values import Object, mapping, text_of, whole

#: Tools that run a command, by the names that they have had.
COMMANDS = frozenset(
    {"shell", "shell_command", "exec_command", "local_shell", "container.exec", "unified_exec", "command_execution"}
)
#: The tool that types into a running command, and the name that it goes by here where it types nothing.
STDIN, POLL = "write_stdin", "write_stdin.poll"
#: Tools whose outputs are those of commands; ``exec`` runs a script that calls other tools.
_COMMAND_LIKE = COMMANDS | {"exec"}

HEADER, DURATION, TIMEOUT = "codex-header", "codex-duration", "codex-timeout"
NORMALISERS = {
    HEADER: "the chunk id, wall time, session id and token count that Codex puts before an output are left out",
    DURATION: "the duration_seconds that Codex records beside an output are left out",
    TIMEOUT: "the milliseconds in Codex's own line about a command that timed out are left out",
}

#: The lines before the output. What says how the call ended is told by name, the rest changes from call to call.
_HEADER = re.compile(
    r"(?:(?:Chunk ID: \S*|(?P<wall>Wall time:? [0-9.]+ seconds)|Original token count: \d+"
    r"|Total output lines: (?P<lines>\d+)|(?:Process exited with code|Exit code:) (?P<code>-?\d{1,18})"
    r"|Process running with session ID (?P<session>\S+)|Script running with cell ID (?P<cell>\S+)"
    r"|Script (?P<script>completed|failed|terminated))\n)+"
    r"(?:Final output|Output):(?:\n|\Z)"
)
_TIMED_OUT = re.compile(r"command timed out after \d+ milliseconds(?=\n|\Z)")
_TIMED_OUT_TEXT = "command timed out"
_ABORTED = re.compile(r"(?:Wall time:? [0-9.]+ seconds\n)?aborted(?: by user)?(?: after [0-9.]+ ?s)?\s*\Z")
_ABSENT = re.compile(r"unsupported (?:custom tool )?call: (.*)\Z", re.DOTALL)
_BAD_ARGUMENTS = re.compile(r"failed to parse function arguments(?::|\Z)")
#: How the errors begin that Codex gives in place of a result: denials of the user, the policy or the sandbox first.
_ERROR = re.compile(
    r"(?:exec command |patch )?rejected(?: by user| by the user| by user approval settings|: )"
    r"|This action was rejected|approval policy is |approval required by policy|(?:patch|command) rejected"
    r"|failed in sandbox|sandbox denied|sandbox error|execution error: |exec_command failed|write_stdin failed"
    r"|apply_patch verification failed|tool call error: |err: "
)
_TRUNCATED = re.compile(r"…\d+ (?:tokens|chars|characters|bytes|lines) truncated…|\[\.\.\. omitted \d+ of \d+ lines")
#: What an object around an output consists of.
_INNER = ("output", "content", "text")
_AROUND = frozenset({*_INNER, "metadata", "success", "type"})
_METADATA = frozenset({"exit_code", "duration_seconds"})
_IMAGES = frozenset({"input_image", "image"})
#: Exit codes are smaller; what is not is none.
_CODE_LIMIT = 1 << 32


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an output says of its call."""

    fate: Fate = Fate.RAN
    outcome: Outcome | None = None
    absent: str | None = None
    """The error that says that the tool does not exist."""
    normalised: tuple[str, ...] = ()
    """The normalisers that changed it."""


@dataclass(slots=True)
class _Said:
    """What a tool said, without what Codex put around it."""

    text: str
    code: int | None = None
    status: str | None = None
    """``running``, ``completed`` or ``failed``; ``None`` where nothing tells."""
    timed_out: bool = False
    success: bool | None = None
    lossy: bool = False
    details: Object = field(default_factory=dict)
    """What of it is no text."""
    images: list[Json] = field(default_factory=list)


def meaning_of(output: Json, tool: str | None) -> Meaning:
    """Say what the recorded ``output`` of a call of ``tool`` means; ``tool`` is ``None`` where it is not known.

    Texts of errors are those of Codex's tool router and its handlers: a call that was aborted has no outcome; a tool
    that is not offered is absent; arguments that could not be parsed were rejected; what the user, the policy or
    the sandbox denied is an error that the model was shown.
    """
    used: list[str] = []
    said = _said(output, used)
    normalised = tuple(dict.fromkeys(used))
    plain = said.code is None and said.status is None and not said.details and not said.images
    if plain and _ABORTED.match(said.text):
        return Meaning(Fate.LOST, normalised=normalised)
    if plain and tool is not None and names_absent(said.text, tool):
        return Meaning(absent=said.text, normalised=normalised)
    if plain and _BAD_ARGUMENTS.match(said.text):
        return Meaning(Fate.REJECTED, Outcome(error=said.text, is_error=True), normalised=normalised)
    if plain and (said.success is False or _ERROR.match(said.text)):
        return Meaning(outcome=Outcome(error=said.text, is_error=True), normalised=normalised)
    like = (tool in _COMMAND_LIKE if tool is not None else not plain) and not said.details
    outcome = _with_images(_command(said) if like else _result(said), said.images)
    return Meaning(outcome=outcome, normalised=normalised)


def names_absent(text: str, tool: str) -> bool:
    """Say whether ``text`` is Codex's error for a tool that it does not offer, and names ``tool``."""
    found = _ABSENT.match(text)
    # The namespace stands before the name, joined in one way or another.
    return found is not None and found[1].strip().endswith((STDIN if tool == POLL else tool).rpartition("__")[2])


def _said(output: Json, used: list[str]) -> _Said:
    """Take what Codex put around an output away; ``used`` gets the names of what that took."""
    body = _around(output)
    if body is None:
        said = _content(output)
        _read_header(said, used)
        return said
    metadata = mapping(body.get("metadata"))
    said = _content(next(body[name] for name in _INNER if name in body))
    if "duration_seconds" in metadata:
        used.append(DURATION)
    _read_header(said, used)
    code = _code(metadata.get("exit_code"))
    said.code = said.code if code is None else code
    success = body.get("success")
    said.success = success if isinstance(success, bool) else None
    return said


def _around(output: Json) -> Object | None:
    """Return the object around an output: with the exit code and duration beside it, or a flag that it failed.

    It may be recorded as a text. ``None`` where there is none, or where it holds more than that.
    """
    value = output
    if isinstance(output, str):
        if not (output.startswith("{") and '"metadata"' in output):
            return None
        try:
            value = parse(output)
        except (ValueError, RecursionError):
            return None
        if isinstance(value, dict) and not isinstance(value.get("metadata"), dict):
            return None
    if not isinstance(value, dict) or not value.keys() <= _AROUND:
        return None
    if sum(name in value for name in _INNER) != 1 or not mapping(value.get("metadata")).keys() <= _METADATA:
        return None
    return value


def _content(content: Json) -> _Said:
    """Return what a content says: a text, blocks of text and images, or any other value."""
    if isinstance(content, str) or content is None:
        return _Said(content or "")
    if not isinstance(content, list):
        return _Said("", details=content if isinstance(content, dict) else {"output": content})
    said = _Said(text_of(content))
    others: list[Json] = []
    for block in content:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            continue
        kind = block.get("type") if isinstance(block, dict) else None
        (said.images if isinstance(kind, str) and kind in _IMAGES else others).append(block)
    if others:
        said.details = {"blocks": others}
    return said


def _code(value: Json) -> int | None:
    code = whole(value)
    return code if code is not None and abs(code) < _CODE_LIMIT else None


def _read_header(said: _Said, used: list[str]) -> None:
    found = _HEADER.match(said.text)
    if found is not None and found["wall"] is not None:
        said.text = said.text[found.end() :]
        used.append(HEADER)
        if found["code"] is not None:
            said.code = _code(int(found["code"]))
        elif found["session"] is not None or found["cell"] is not None:
            said.status = "running"
        elif found["script"] is not None:
            said.status = "completed" if found["script"] == "completed" else "failed"
        said.lossy = found["lines"] is not None
        if found["lines"] is not None:
            said.text = f"Total output lines: {found['lines']}\n{said.text}"
    _read_timeout(said, used)
    said.lossy = said.lossy or _TRUNCATED.search(said.text) is not None


def _read_timeout(said: _Said, used: list[str]) -> None:
    if _TIMED_OUT.match(said.text):
        said.text = _TIMED_OUT.sub(_TIMED_OUT_TEXT, said.text, count=1)
        said.timed_out = True
        used.append(TIMEOUT)


def _command(said: _Said) -> Outcome:
    if said.status == "running":
        return text_result(said.text, {"status": "running", "tail": said.text}, lossy=said.lossy)
    if said.status != "failed" and not said.timed_out:
        return command_result(said.text, said.code, lossy=said.lossy)
    details: Object = {"status": "failed", "aggregated": said.text}
    if said.code is not None:
        details["exitCode"] = said.code
    if said.timed_out:
        details["timedOut"] = True
    return text_result(said.text, details, is_error=True, lossy=said.lossy)


def _result(said: _Said) -> Outcome:
    details = dict(said.details)
    failed = said.status == "failed" or said.timed_out or said.success is False
    if said.code is not None:
        failed = failed or said.code != 0
        details["exitCode"] = said.code
    if said.status is not None or said.code is not None:
        details["status"] = said.status or ("failed" if failed else "completed")
    return text_result(said.text, details or None, is_error=failed, lossy=said.lossy)


def _with_images(outcome: Outcome, images: list[Json]) -> Outcome:
    """Put images beside the text, where a tool of OpenClaw has them."""
    result = outcome.result
    content = result.get("content") if isinstance(result, dict) else None
    if not images or not isinstance(result, dict) or not isinstance(content, list):
        return outcome
    return replace(outcome, result={**result, "content": [*content, *images]})
