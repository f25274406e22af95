"""Steps of a trajectory that was converted from OpenHands: what the agent did and what it saw, in words.

Each is ``{step, user_message, agent: {thought, action}, environment, step_usage}``. The action is the sentence that
OpenHands shows for it, so tool and arguments are taken from that as far as it says them.
"""

from __future__ import annotations

from typing import Final

from loopscan.events import Call, Json
from loopscan.transcripts.completions import completion_usage
from loopscan.transcripts.dialogue import text_result
from loopscan.transcripts.openhands.commands import command_outcome
from loopscan.transcripts.openhands.session import Entry, Session
from loopscan.transcripts.values import mapping, string

#: How the sentences for an action begin, and the tool and the argument that they speak of.
_SENTENCES: Final = (
    ("Running command: ", "run", "command"),
    ("Running Python code interactively: ", "run_ipython", "code"),
    ("Browsing URL: ", "browse", "url"),
    ("Reading file: ", "read", "path"),
    ("Writing file: ", "write", "path"),
)
_ANY: Final = "action"


def is_step(body: Json) -> bool:
    """Say whether a value is a step."""
    fields = mapping(body)
    agent = fields.get("agent")
    return isinstance(agent, dict) and "action" in agent and "step" in fields and "environment" in fields


def take(session: Session, entry: Entry) -> bool | None:
    """Take in a step; return whether it said something, ``None`` if it is none."""
    body, where = entry.body, entry.where
    if not is_step(body):
        return None
    dialogue = session.dialogue(where)
    if string(body.get("user_message")) is not None:
        dialogue.user(where)
    spent = mapping(body.get("step_usage"))
    action = string(mapping(body.get("agent")).get("action"))
    calls = [] if action is None else [_call(action)]
    usage = completion_usage(spent, spent.get("cost"))
    dialogue.turn(where, calls, model=string(spent.get("model")), usage=usage, size=entry.size)
    observed = body.get("environment")
    if calls and isinstance(observed, str):
        (call,) = calls
        outcome = command_outcome(observed, {}, session.source) if call.tool == "run" else text_result(observed)
        dialogue.result(where, outcome, tool=call.tool)
    return True


def _call(action: str) -> Call:
    for beginning, tool, argument in _SENTENCES:
        if action.startswith(beginning):
            return Call(tool, {argument: action.removeprefix(beginning)})
    return Call(_ANY, {_ANY: action})
