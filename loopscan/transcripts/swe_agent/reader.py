"""The reader of trajectories of SWE-agent and mini-swe-agent."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopscan.events import Event, Json, Problem, Where
from loopscan.transcripts.dialogue import Dialogues
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.feed import drive
from loopscan.transcripts.heads import document_of, lines_of
from loopscan.transcripts.jsonl import Line, parse
from loopscan.transcripts.names import pieces_of
from loopscan.transcripts.reader import Confidence, Source, Traits
from loopscan.transcripts.swe_agent.mini import RETURN_CODE, Messages
from loopscan.transcripts.swe_agent.trajectory import PROCESS_MARKER, SHELL, attempts_of, tell
from loopscan.transcripts.values import Object, array, mapping, string

_STEP = ("observation", "response", "thought")
_MINI = "mini-swe-agent"
_SUFFIX = re.compile(r"(?:\.traj)?(?:\.jsonl?)?$")


class SweAgentReader:
    """Reads trajectories of SWE-agent, old and new, and of mini-swe-agent, versions 1 and 2."""

    name = "swe-agent"
    traits = Traits(
        summary="trajectories of SWE-agent and mini-swe-agent",
        recognised_by="a trajectory of steps with an action and what was observed, or the name of mini-swe-agent",
        tools={SHELL: "exec"},
        normalisers={
            PROCESS_MARKER: "the line by which old releases of SWE-agent told that a command was over is taken off "
            "the observation, and the exit code in it kept",
            RETURN_CODE: "the exit code that mini-swe-agent wrote above an output is taken off it and kept as the "
            "exit code of the command",
        },
    )

    def recognise(self, head: bytes, name: str) -> Confidence:
        """Recognise the steps of SWE-agent, or the name that mini-swe-agent leaves; one object a line, or one."""
        return max((_recognise(value) for value in (document_of(head), *lines_of(head))), default=Confidence.NO)

    def family(self, head: bytes, name: str) -> frozenset[str]:
        """Return nothing: a trajectory has no id, and none is written to two files."""
        return frozenset()

    def read(self, source: Source) -> Iterator[Event]:
        """Yield the events of all trajectories in ``source``, each a session: one after the other, or in an array.

        A session is named by the task's ``instance_id`` where there is one, else after the file. A document is
        held in memory, up to the longest line. Raises :class:`~loopscan.errors.InputError` if the source cannot be
        opened.
        """
        return drive(source, read_elements(source), _Documents(source))


class _Documents:
    """The documents of one source while it is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._dialogues = Dialogues()
        self._names: set[str] = set()

    def line(self, line: Line, body: Object) -> Iterator[Event]:
        """Take in one document: all that it holds can be told at once."""
        if isinstance(body.get("messages"), list) and "trajectory" not in body:
            self._source.count("messages", used=True)
            info = mapping(body.get("info"))
            model = string(mapping(mapping(info.get("config")).get("model")).get("model_name"))
            version = string(body.get("trajectory_format")) or string(info.get("mini_version"))
            name = self._name(body)
            dialogue = self._dialogues.start(name, Where(line.number), model=model, version=version)
            Messages(dialogue, line.number, self._source.normalised).tell(body)
            self._dialogues.end(name)
        elif "trajectory" in body or "attempts" in body:
            self._source.count("trajectory", used=True)
            task = self._name(body)
            for number, ran in enumerate(attempts_of(body), 1):
                name = f"{task}/attempt-{number}" if ran.place.startswith("attempts") else task
                version = string(ran.info.get("swe_agent_version"))
                dialogue = self._dialogues.start(name, Where(line.number), model=_model(body), version=version)
                tell(dialogue, ran, line.number, self._source)
                self._dialogues.end(name)
                yield from self._dialogues.drain()
        else:
            self._source.count("other", used=False)
        yield from self._dialogues.drain()

    def problem(self, problem: Problem) -> Iterator[Event]:
        """Pass the problem on: no session goes on between documents."""
        yield problem

    def finish(self) -> Iterator[Event]:
        """Nothing is held back."""
        return self._dialogues.finish()

    def _name(self, body: Object) -> str:
        name = string(body.get("instance_id"))
        if name is None:
            file = pieces_of(self._source.name)[-1]
            name = _SUFFIX.sub("", file) or file
        if name in self._names:
            name = f"{name}#{len(self._names) + 1}"
        self._names.add(name)
        return name


def _recognise(value: Json) -> Confidence:
    if isinstance(value, list):
        return max((_recognise(each) for each in value[:1] if isinstance(each, dict)), default=Confidence.NO)
    if not isinstance(value, dict):
        return Confidence.NO
    info = mapping(value.get("info"))
    if isinstance(value.get("messages"), list) or "trajectory" not in value:
        named = (string(value.get("trajectory_format")) or "").startswith(_MINI)
        if named or string(info.get("mini_version")):
            return Confidence.SURE
    for attempt in (value, *array(value.get("attempts"))[:1]):
        steps = mapping(attempt).get("trajectory")
        if not isinstance(steps, list):
            continue
        if not steps:
            return Confidence.LIKELY if "history" in mapping(attempt) and info else Confidence.NO
        step = mapping(steps[0])
        action = step.get("action")
        # Steps of other formats have arguments, or a name of who acted, beside an action.
        if (action is None or isinstance(action, str)) and "action" in step and not {"args", "source"} & step.keys():
            sure = any(isinstance(step.get(each), str) for each in _STEP)
            return Confidence.SURE if sure else Confidence.LIKELY
    return Confidence.NO


def _model(body: Object) -> str | None:
    """Return the model that the configuration for a replay names; newer releases write that as JSON text."""
    config = body.get("replay_config")
    if isinstance(config, str):
        try:
            config = parse(config)
        except (ValueError, RecursionError):
            return None
    return string(mapping(mapping(mapping(config).get("agent")).get("model")).get("name"))
