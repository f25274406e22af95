"""What a command came back with: OpenHands keeps one shell, tells its state below the output, and waits so long.

A command that is still running when OpenHands stops waiting has the exit code -1.
"""

from __future__ import annotations

import re

from loopscan.events import Outcome
from loopscan.transcripts.dialogue import command_result, text_result
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import Object, mapping, whole

#: What is taken out of outputs; see :func:`command_outcome`.
COMMAND_FOOTER = "command-footer"

#: Still running, or unknown.
_RUNNING = -1
_EXITED = re.compile(
    r"\[(?:The command completed with exit code (-?\d{1,9})\.(?: CTRL\+.{1,9} was sent\.)?"
    r"|Command(?: -?\d{1,9})? (?:finished|executed) with exit code (-?\d{1,9}))\]"
)
_INTERPRETER = re.compile(r"\[Python interpreter: [^\]]*\]")
_FOLDER = re.compile(r"\[Current working directory: [^\]]*\]")
#: No footer is longer, in characters.
_FOOTER_LENGTH = 5000
_MOST_FOOTERS = 4


def command_outcome(output: str, fields: Object, source: Source, *, is_error: bool = False) -> Outcome:
    """Return the outcome of a command that printed ``output``; ``fields`` hold its exit code, or its ``metadata`` do.

    Lines that OpenHands added below the output are taken off: the exit code, which is kept as one, the Python
    interpreter, and the folder below the output of a command that failed (a command that succeeds may be one that
    changes it). Without an exit code, ``is_error`` says that OpenHands refused the command.
    """
    code = exit_code(fields)
    output, told = _without_footers(output, code, source)
    code = told if code in (None, _RUNNING) and told is not None else code
    if is_error and code in (None, _RUNNING):
        return text_result(output, is_error=True)
    if code == _RUNNING:
        return text_result(output, {"status": "running", "tail": output})
    return command_result(output, code)


def is_command(fields: Object) -> bool:
    """Say whether the fields of an observation are those of a command."""
    return "exit_code" in fields or "exit_code" in mapping(fields.get("metadata"))


def exit_code(fields: Object) -> int | None:
    """Return the exit code of a command, by its own field or else by what the prompt told of it."""
    own = whole(fields.get("exit_code"))
    return own if own is not None else whole(mapping(fields.get("metadata")).get("exit_code"))


def _without_footers(output: str, code: int | None, source: Source) -> tuple[str, int | None]:
    """Return the output without the lines that OpenHands added below it, and the exit code in them."""
    told: int | None = None
    taken = False
    folder = ""
    for _ in range(_MOST_FOOTERS):
        stripped = output.rstrip()
        start = max(stripped.rfind("\n"), stripped.rfind("\r")) + 1
        if len(stripped) - start > _FOOTER_LENGTH:
            break
        line = stripped[start:]
        exited = _EXITED.fullmatch(line)
        if exited is not None:
            told = int(exited[1] or exited[2])
        elif _FOLDER.fullmatch(line) is not None:
            folder = line
        elif _INTERPRETER.fullmatch(line) is None:
            break
        output, taken = stripped[:start].rstrip(), True
    if taken:
        source.normalised[COMMAND_FOOTER] += 1
        known = told if code in (None, _RUNNING) else code
        if folder and not known:
            output = f"{output}\n{folder}" if output else folder
    return output, told
