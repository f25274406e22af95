"""What a tool of the Gemini CLI answered: its outcome, without what changes from call to call."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loopscan.events import Fate, Json, Outcome
from loopscan.transcripts.dialogue import command_result, text_result
from loopscan.transcripts.openai_messages.blocks import as_json
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import array, mapping, string

SHELL = "run_shell_command"

NORMALISERS = {
    "output-path": "the path of the file in which the CLI saved an output that it cut or masked, new for each call",
    "process-ids": "the numbers of processes and process groups that the shell tool adds to each output",
}

_CANCELLED = "[Operation Cancelled]"
_MASKED = "<tool_output_masked>"
# What the CLI writes before the path; the path ends with the line, which may be written as JSON within the text.
_PATH = re.compile(
    r"(?<=Output too large\. )"
    r"(?P<said>Full output available at: |Showing first [\d,.]+ and last [\d,.]+ characters\. For full output see: )"
    r"(?:(?!\\n)[^\n])+"
)
_SAVED = re.compile(r"(?P<said>masked to preserve context window\. Full (?:output|string) saved to: )[^\n\]]+")
_IDS = re.compile(r"(?:Background PIDs|Process Group PGID): .*")
_SECTION = re.compile(r"(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): .*")
_EXIT = re.compile(r"Exit Code: (?P<code>-?\d{1,9})\Z")
_ASKED = re.compile(r"Command: .*?\nDirectory: [^\n]*\n(?=Output: |Stdout: )", re.DOTALL)
_MOVED = re.compile(r"(?<=Command moved to background )\(PID: \d+\)")
#: The shell tool adds no more lines than these to an output.
_MOST_SECTIONS = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a call."""

    fate: Fate
    outcome: Outcome | None = None
    absent: str | None = None
    """The tool does not exist: the text that says so."""


def answer_of(tool: str, response: Json, source: Source, *, status: str | None = None) -> Answer:
    """Return what ``response``, that of a ``functionResponse``, says about a call of ``tool``.

    ``status`` is that of the call in a session file. ``source`` counts the normalisers.
    """
    fields = mapping(response)
    error = string(fields.get("error"))
    text = error if error is not None else _text(response)
    if status == "cancelled" or (error is not None and error.startswith(_CANCELLED)):
        return Answer(Fate.NOT_RUN)
    failed = error is not None or status == "error"
    if failed and text.startswith(f'Tool "{tool}" not found'):
        return Answer(Fate.NOT_RUN, absent=text)
    text = _without_paths(text, source)
    lossy = text.startswith(_MASKED)
    if tool == SHELL:
        outcome = _command(text, source, lossy=lossy)
        if outcome is not None:
            return Answer(Fate.RAN, outcome)
    if failed:
        return Answer(Fate.RAN, Outcome(error=text, is_error=True, lossy=lossy))
    return Answer(Fate.RAN, text_result(text, lossy=lossy))


def response_in(parts: Json, call_id: str | None) -> Json:
    """Return the response for a call among the parts that a session file keeps as its result.

    The result of one call may hold the responses of its siblings too; a single one without an id is for it.
    """
    found: list[Json] = []
    for part in array(parts) if isinstance(parts, list) else [parts]:
        answer = mapping(mapping(part).get("functionResponse"))
        if answer:
            if call_id is not None and answer.get("id") == call_id:
                return answer.get("response")
            found.append(answer.get("response"))
    if found:
        return found[0]
    return parts


def _text(response: Json) -> str:
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        output = response.get("output")
        if isinstance(output, str):
            return output
    texts = [part["text"] for part in array(response) if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if texts:
        return "\n".join(str(text) for text in texts)
    return as_json(response) if response is not None else ""


def _without_paths(text: str, source: Source) -> str:
    if "ull output " not in text and "ull string " not in text:
        return text
    cleaned, cut = _PATH.subn(r"\g<said>#", text)
    cleaned, masked = _SAVED.subn(r"\g<said>#", cleaned)
    if cut or masked:
        source.normalised["output-path"] += 1
    return cleaned


def _command(text: str, source: Source, *, lossy: bool) -> Outcome | None:
    """Read the report of the shell tool: its output, then a line for each thing that is worth saying.

    ``None`` if ``text`` is no such report.
    """
    body = text
    wrapper = ""
    if lossy:
        head, mark, wrapper = text.partition("\n\nOutput too large. ")
        body = head.removeprefix(_MASKED).lstrip("\n")
        wrapper = mark + wrapper
    body, moved = _MOVED.subn("(PID: #)", body)
    if moved:
        source.normalised["process-ids"] += 1
        return command_result(body + wrapper, None, lossy=lossy)
    asked = _ASKED.match(body)
    if asked is not None:
        body = body[asked.end() :]
    if not body.startswith(("Output: ", "Stdout: ")):
        return None
    lines = body.rsplit("\n", _MOST_SECTIONS)
    kept: list[str] = []
    code: int | None = None
    ids = False
    while len(lines) > 1 and _SECTION.fullmatch(lines[-1]):
        line = lines.pop()
        found = _EXIT.match(line)
        if found is not None:
            code = int(found["code"])
        elif _IDS.match(line):
            ids = ids or not line.endswith("(none)")
        elif not line.endswith(": (none)"):
            kept.append(line)
    if ids:
        source.normalised["process-ids"] += 1
    output = "\n".join(lines).removeprefix("Output: ").removeprefix("Stdout: ")
    return command_result("\n".join([output, *reversed(kept)]) + wrapper, code, lossy=lossy)
