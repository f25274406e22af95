"""The steps of a SWE-agent trajectory: what the model wrote, the command in it, and what that printed.

A step is call and result in one. ``history`` holds the same steps again, as messages and after demonstrations, and
is not read. What SWE-agent itself puts among the steps is told apart here: attempts that it rejected before
anything ran, and the step by which it gives up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopscan.events import NO_USAGE, Call, Fate, Json, Outcome, Problem, Usage, Where
from loopscan.transcripts.dialogue import Dialogue, command_result, text_result
from loopscan.transcripts.jsonl import parsed
from loopscan.transcripts.reader import Source
from loopscan.transcripts.values import Object, array, dollars, identifier, mapping, number, string, tokens

#: The shell, whose commands are all that is no tool of SWE-agent's own.
SHELL = "bash"

#: Commands that SWE-agent puts beside those of the shell, in its releases and in those for other tasks.
TOOLS = frozenset(
    (
        *("open", "goto", "scroll_down", "scroll_up", "create", "edit", "insert", "undo_edit", "append"),
        *("search_dir", "search_file", "find_file", "filemap", "str_replace_editor", "view_image"),
        *("submit", "exit_forfeit", "skip", "exit"),
        *("decompile", "disassemble", "connect_start", "connect_sendline", "connect_exec", "connect_stop"),
        *("debug_start", "debug_add_breakpoint", "debug_continue", "debug_step", "debug_exec", "debug_stop"),
        *("open_site", "close_site", "screenshot_site", "reload_page", "navigate_back", "navigate_forward"),
        *("click_mouse", "double_click_mouse", "move_mouse", "drag_mouse", "scroll_on_page", "type_text"),
        *("press_keys_on_page", "execute_script_on_page", "get_console_output", "set_browser_window_size"),
        "wait_time",
    )
)

#: Ways in which the model itself ended a run. ``submitted (exit_cost)`` is none: there SWE-agent submitted.
COMPLETED = frozenset({"submitted", "exit_command", "exit_forfeit"})

#: The name of the one thing that is taken out of observations; see :func:`without_marker`.
PROCESS_MARKER = "process-marker"

# What SWE-agent ran in place of an action, before 1.0, to give up.
_GAVE_UP = re.compile(r"exit_(?:context|cost|error|format|api|environment_error)")
_GIVING_UP = re.compile(r"Exit(?:ing)? due to ")
_MARKER = re.compile(r"///PROCESS-DONE:(-?\d{1,9}):PROCESS-DONE///\s*\Z")
#: No marker is longer, in characters.
_MARKER_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt at a task: its steps, and how it ended."""

    steps: Json
    info: Object
    place: str
    """Where the steps stand in the document."""


def attempts_of(document: Object) -> Iterator[Ran]:
    """Yield the attempts of a document: one, or those of a run with retries (the best stands at the top again)."""
    attempts = [each for each in array(document.get("attempts")) if isinstance(each, dict)]
    for number_, attempt in enumerate(attempts):
        yield Ran(attempt.get("trajectory"), mapping(attempt.get("info")), f"attempts[{number_}].trajectory")
    if not attempts:
        yield Ran(document.get("trajectory"), mapping(document.get("info")), "trajectory")


def tell(dialogue: Dialogue, ran: Ran, line: int, source: Source) -> None:
    """Tell ``dialogue`` the steps of an attempt, from the task, which is its one user message, to the end.

    What the attempt cost as a whole stands with the first response: single ones are not recorded.
    """
    dialogue.user(Where(line))
    usage = stats_usage(ran.info.get("model_stats"))
    last = ""
    if not isinstance(ran.steps, list):
        dialogue.problem(Problem(line, "no-steps", "a trajectory without a list of steps"))
    for place, step in enumerate(array(ran.steps)):
        where = Where(line, f"{ran.place}[{place}]")
        if not isinstance(step, dict):
            dialogue.problem(Problem(line, "bad-step", "a step that is no object"))
            continue
        action = step.get("action")
        if action is not None and not isinstance(action, str):
            dialogue.problem(Problem(line, "bad-step", "a step whose action is no text"))
        if gave_up(step):
            continue
        calls = calls_of(step)
        last = calls[-1].tool if calls else ""
        dialogue.turn(where, calls, usage=usage)
        usage = NO_USAGE
        if not calls:
            continue
        if rejected(step):
            for call in calls:
                dialogue.result(where, None, call_id=call.id, tool=call.tool, fate=Fate.NOT_RUN)
            continue
        # A step has one observation, whatever it holds: that of its last call. SWE-agent allows one call a step.
        outcome = _outcome(step, calls, source)
        if outcome is not None:
            call = calls[-1]
            dialogue.result(where, outcome, call_id=call.id, tool=call.tool)
    if completed(ran.info.get("exit_status"), last):
        dialogue.completed(Where(line))
    else:
        dialogue.stopped(Where(line))


def calls_of(step: Object) -> list[Call]:
    """Return what a step asks for: its tool calls where it has them, else the command that its action is.

    A command is named after the tool that it begins with, or is one of the shell.
    """
    calls = [call for each in array(step.get("tool_calls")) if (call := tool_call(each)) is not None]
    action = step.get("action")
    if calls or not isinstance(action, str) or not action.strip():
        return calls
    command = action.strip()
    word = command.split(None, 1)[0]
    return [Call(word if word in TOOLS else SHELL, {"command": command})]


def tool_call(value: Json) -> Call | None:
    """Return a call as the completion API has it: ``{id, function: {name, arguments}}``; ``None`` without a name."""
    fields = mapping(value)
    function = mapping(fields.get("function"))
    name = string(function.get("name"))
    return None if name is None else Call(name, parsed(function.get("arguments")), identifier(fields.get("id")))


def gave_up(step: Object) -> bool:
    """Say whether a step is SWE-agent's own: it stands for no response, but for the end that it made of the run."""
    action, response = step.get("action"), step.get("response")
    if isinstance(action, str) and _GAVE_UP.fullmatch(action.strip()):
        return True
    blank = action is None or (isinstance(action, str) and not action.strip())
    return blank and isinstance(response, str) and _GIVING_UP.match(response) is not None


def rejected(step: Object) -> bool:
    """Say whether SWE-agent asked the model again in place of running the command (blocked, or no valid shell)."""
    unused = step.get("observation") == "" and step.get("state") in ({}, "")
    return unused and "execution_time" in step and number(step["execution_time"]) == 0


def completed(status: Json, last: str) -> bool:
    """Say whether the model itself ended the run, by its status, or by its last tool where there is none."""
    if isinstance(status, str) and status:
        return status.lower() in COMPLETED
    return last == "submit"


def stats_usage(stats: Json) -> Usage:
    """Return what a run cost by its ``model_stats``; ``total_cost`` is that of several runs and left out."""
    fields = mapping(stats)
    sent, received = tokens(fields.get("tokens_sent")), tokens(fields.get("tokens_received"))
    return Usage(input=sent, output=received, total=sent + received, cost_usd=dollars(fields.get("instance_cost")))


def without_marker(output: str, source: Source) -> tuple[str, int | None]:
    """Return an output without the marker by which old releases told that a command was over, and its exit code."""
    found = _MARKER.search(output, max(len(output) - _MARKER_LENGTH, 0))
    if found is None:
        return output, None
    source.normalised[PROCESS_MARKER] += 1
    return output[: found.start()], int(found[1])


def _outcome(step: Object, calls: Sequence[Call], source: Source) -> Outcome | None:
    observation = step.get("observation")
    if not isinstance(observation, str):
        # Unknown where nothing was recorded; else whatever a fork of SWE-agent put there.
        return None if observation is None else text_result("", {"observation": observation})
    output, code = without_marker(observation, source)
    return command_result(output, code) if calls[-1].tool == SHELL else text_result(output)
