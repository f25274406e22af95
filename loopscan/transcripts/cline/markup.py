"""Calls that a model writes into its text: a tag named after the tool, and in it one for each parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Tools that speak to the user and end the model's turn: what follows is new input, not an outcome.
SPEAKING = frozenset({"ask_followup_question", "attempt_completion", "plan_mode_respond", "act_mode_respond"})
#: The tool by which the model hands over a summary, when the context is compacted.
SUMMARY = frozenset({"summarize_task", "condense"})
#: The tool that runs a command.
COMMAND = "execute_command"

_TOOLS = (
    *sorted(SPEAKING | SUMMARY),
    COMMAND,
    *("read_file", "write_to_file", "replace_in_file", "apply_diff", "apply_patch", "edit_file", "insert_content"),
    *("search_and_replace", "search_replace", "search_files", "list_files", "list_code_definition_names"),
    *("codebase_search", "browser_action", "use_mcp_tool", "access_mcp_resource", "load_mcp_documentation"),
    *("web_fetch", "web_search", "new_task", "new_rule", "report_bug", "switch_mode", "fetch_instructions"),
    *("update_todo_list", "generate_image", "generate_explanation", "run_slash_command", "use_skill"),
)
_OPENING = re.compile(rf"<(?P<tool>{'|'.join(_TOOLS)})>")
_PARAMETER = re.compile(r"<(?P<name>[a-z][a-z_]{0,40})>")
#: Parameters that may hold markup of their own: they end where their last end tag is.
_VERBATIM = frozenset({"content", "diff", "arguments", "result"})


@dataclass(frozen=True, slots=True)
class Written:
    """A call as the model wrote it."""

    tool: str
    parameters: dict[str, str]


def calls_in(text: str) -> list[Written]:
    """Return the calls in a text of the model, in order; one that breaks off was never made."""
    found: list[Written] = []
    at = 0
    while opening := _OPENING.search(text, at):
        tool = opening["tool"]
        end = text.find(f"</{tool}>", opening.end())
        if end < 0:
            break
        found.append(Written(tool, _parameters(text[opening.end() : end])))
        at = end
    return found


def _parameters(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while opening := _PARAMETER.search(text, at):
        name = opening["name"]
        closing = f"</{name}>"
        end = (text.rfind if name in _VERBATIM else text.find)(closing, opening.end())
        if end < 0:
            break
        value = text[opening.end() : end]
        found[name] = value.strip("\n") if name in _VERBATIM else value.strip()
        at = end + len(closing)
    return found
