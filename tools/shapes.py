"""Makes ``fixtures/shapes``: loops that people report as not detected, each told anew with invented content.

``python -m tools.shapes`` writes them. The same shape always gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

FOLDER = Path(__file__).parents[1] / "fixtures" / "shapes"
_MODEL = {"api": "openai-completions", "provider": "example", "model": "example-coder-2"}
_START = datetime(2026, 11, 3, 8, 0, tzinfo=UTC)
#: What a call comes back with: its result as it is stored, without what says which call it is of; ``None``: nothing.
Came: TypeAlias = "dict[str, Any] | None"
Call: TypeAlias = tuple[str, dict[str, Any], Came]


def text(body: str, **details: Any) -> dict[str, Any]:
    """Return a result with one text, and details if there are any."""
    made: dict[str, Any] = {"content": [{"type": "text", "text": body}], "isError": False}
    return {**made, "details": details} if details else made


def ran(output: str, code: int = 0, *, ms: int = 12) -> dict[str, Any]:
    """Return the result of a command that ended."""
    shown = output if code == 0 else f"{output}\n\n(Command exited with code {code})"
    return text(shown, status="completed", exitCode=code, durationMs=ms, aggregated=shown, cwd="/srv/w")


def threw(tool: str, error: str) -> dict[str, Any]:
    """Return the result of a tool that threw an error."""
    details = {"status": "error", "tool": tool, "error": error}
    return {**text(json.dumps(details, indent=2), **details), "isError": True}


def bare(message: str) -> dict[str, Any]:
    """Return an error that the tool itself has not seen."""
    return {"content": [{"type": "text", "text": message}], "details": {}, "isError": True}


class Told:
    """A transcript as it is told, one entry after the other.

    ``ids``: it is of the 2026.9 style, with long ids and run ids, else of the 2026.6 style.
    """

    def __init__(self, name: str, *, ids: bool = True) -> None:
        self._random, self._ids = Random(name), ids
        self._now, self._parent = _START, ""
        self._run = self._id(36)
        self._lines: list[dict[str, Any]] = []
        stamp = self._stamp()
        version = 4 if ids else 3
        self._lines.append(
            {"type": "session", "version": version, "id": self._id(36), "timestamp": stamp, "cwd": "/srv/w"}
        )
        self._entry("model_change", provider="example", modelId="example-coder-2")

    def bytes(self) -> bytes:
        """Return the transcript."""
        lines = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in self._lines)
        return "".join(f"{line}\n" for line in lines).encode()

    def user(self, prompt: str) -> Told:
        """Tell of a prompt, which opens a run."""
        self._run = self._id(36)
        return self._message(role="user", content=prompt)

    def steer(self, prompt: str) -> Told:
        """Tell of a user message that comes into the run."""
        return self._message(role="user", content=prompt, __openclaw={"steerTargetRunId": self._run})

    def again(self, prompt: str) -> Told:
        """Tell of the same prompt, appended once more in the same run."""
        return self._message(role="user", content=prompt)

    def new_run(self) -> Told:
        """Go on under another run id."""
        self._run = self._id(36)
        return self

    def call(self, tool: str, arguments: dict[str, Any], came: Came) -> Told:
        """Tell of a message with one call."""
        return self.calls((tool, arguments, came))

    def calls(self, *calls: Call) -> Told:
        """Tell of a message with calls, and of what they came back with, in order."""
        ids = [f"call_{self._id(8)}" for _ in calls]
        asked = [
            {"type": "toolCall", "id": known, "name": tool, "arguments": arguments}
            for known, (tool, arguments, _) in zip(ids, calls, strict=True)
        ]
        self._response(asked, "toolUse")
        for known, (tool, _, came) in zip(ids, calls, strict=True):
            if came is not None:
                self._result(known, tool, came)
        return self

    def absent(self, *tools: str, beside: bool = False) -> Told:
        """Tell of a message that asked for tools that do not exist: their results are all that is stored.

        ``beside``: it is the latest message, whose other calls are stored.
        """
        self._now += timedelta(seconds=5 if not beside else -1)
        for tool in tools:
            self._result(f"call_{self._id(8)}", tool, bare(f"Tool {tool} not found"))
        return self

    def say(self, words: str) -> Told:
        """Tell of the model's last word in a run."""
        return self._response([{"type": "text", "text": words}], "stop")

    def compact(self, *, in_run: bool = True, hook: bool = True) -> Told:
        """Tell of a compaction."""
        own = {"runId": self._run} if in_run and self._ids else {}
        more = {"__openclaw": {**own, "itemId": self._id(36)}} if self._ids else {}
        return self._entry(
            "compaction",
            summary="## Goal\nWater the beds.",
            firstKeptEntryId=self._parent,
            tokensBefore=96000,
            details={"readFiles": [], "modifiedFiles": []},
            fromHook=hook,
            **more,
        )

    def overflow(self) -> Told:
        """Tell of a model that the prompt did not fit, as 2026.6 stores it."""
        return self._response([], "error", errorMessage="context length exceeded")

    def _response(self, content: list[dict[str, Any]], stop: str, **more: Any) -> Told:
        price = {"input": 0.0009, "output": 0.0006, "cacheRead": 0.0018, "cacheWrite": 0, "total": 0.0033}
        usage = {"input": 300, "output": 40, "cacheRead": 6000, "cacheWrite": 0, "totalTokens": 6340, "cost": price}
        return self._message(
            role="assistant",
            content=content,
            **_MODEL,
            usage=usage,
            stopReason=stop,
            responseId=f"resp_{self._id(8)}",
            **more,
        )

    def _result(self, known: str, tool: str, came: dict[str, Any]) -> None:
        self._now -= timedelta(seconds=5)
        self._message(role="toolResult", toolCallId=known, toolName=tool, **came)

    def _message(self, **message: Any) -> Told:
        self._now += timedelta(seconds=6)
        made = {**message, "timestamp": int(self._now.timestamp() * 1000)}
        if self._ids and message["role"] != "user":
            made["__openclaw"] = {"runId": self._run}
        return self._entry("message", message=made)

    def _entry(self, kind: str, **fields: Any) -> Told:
        known = self._id(36 if self._ids else 8)
        parent = self._parent or None
        self._lines.append({"type": kind, "id": known, "parentId": parent, "timestamp": self._stamp(), **fields})
        self._parent = known
        return self

    def _stamp(self) -> str:
        return self._now.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def _id(self, length: int) -> str:
        """Return a fresh id: of 36 characters a UUID, else hexadecimal."""
        digits = f"{self._random.getrandbits(128):032x}"
        if length != 36:
            return digits[:length]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def clock(number: int) -> str:
    """Return the time of day at a step."""
    return f"{8 + number // 60:02}:{number % 60:02}:{(number * 7) % 60:02}"


def uuid(number: int) -> str:
    """Return another id for each number."""
    return f"{Random(number).getrandbits(32):08x}-52c1-4d0e-9a77-{Random(-number - 1).getrandbits(48):012x}"


Shape: TypeAlias = Callable[[Told, int], Any]


def polled(output: str, number: int) -> dict[str, Any]:
    """Return what the poll of a command that runs on comes back with."""
    shown = f"{output}\n\nProcess still running."
    return text(shown, status="running", sessionId="calm-fern", aggregated=output, name="sow.sh", idleMs=number * 37)


POLL = {"action": "poll", "sessionId": "calm-fern"}
STATUS = {"bed": "north"}
#: Shapes that are one thing over and over: what opens the run, how many times, what each time is, and how it ends.
REPEATED: dict[str, tuple[str, int, Shape]] = {
    # Polls
    "poll-same": ("Wait until the sowing is done.", 24, lambda t, n: t.call("process", POLL, polled("", n))),
    "poll-clock": (
        "Wait until the sowing is done.",
        24,
        lambda t, n: t.call("process", POLL, polled(f"[{clock(n)}] still sowing", n)),
    ),
    "poll-log-grows": (
        "Watch the sowing.",
        24,
        lambda t, n: t.call(
            "process",
            {"action": "log", "sessionId": "calm-fern"},
            text(f"row {n} sown", status="running", sessionId="calm-fern", totalLines=n + 1, totalChars=10 * n),
        ),
    ),
    "sleep-poll": (
        "Wait until the tank is full.",
        24,
        lambda t, n: t.call(
            "exec", {"command": "sleep 30; tail -1 tank.log"}, ran(f"level {n * 3} of 400", ms=30010 + n)
        ),
    ),
    "sleep-exit-code": (
        "Wait until the pump stops.",
        24,
        lambda t, n: t.call(
            "exec", {"command": "sleep 20; pgrep pump"}, ran(f"pump is up since {n * 20 + 5}.2 s", 1, ms=20000 + n)
        ),
    ),
    "started-again": (
        "Run the sowing script.",
        24,
        lambda t, n: t.call(
            "exec",
            {"command": "sh sow.sh", "yieldMs": 10000},
            text(
                f"Command still running (session fern-{n}, pid {4000 + n}).",
                status="running",
                sessionId=f"fern-{n}",
                pid=4000 + n,
                startedAt=1793692800000 + n,
                tail="",
            ),
        ),
    ),
    "status-elapsed": (
        "Tell me when the bed is watered.",
        24,
        lambda t, n: t.call("bed_status", STATUS, text(f"watering, {n * 6 + 2} seconds elapsed")),
    ),
    # What changes on its own in what comes back
    "duration-in-details": (
        "Is the north bed dry?",
        24,
        lambda t, n: t.call("bed_status", STATUS, text("dry", bed="north", timing={"durationMs": 31 + n * 3})),
    ),
    "pid-in-output": (
        "Is the pump healthy?",
        24,
        lambda t, n: t.call("exec", {"command": "./pump --check"}, ran(f"checker {4100 + n * 3}: no water")),
    ),
    "uuid-in-result": (
        "List the seeds.",
        24,
        lambda t, n: t.call("seed_list", {"kind": "bean"}, text("no seeds", seeds=[], meta={"request": uuid(n)})),
    ),
    "temp-path-in-error": (
        "Print the label.",
        24,
        lambda t, n: t.call(
            "print_label", STATUS, threw("print_label", f"cannot open /tmp/label-{uuid(n)[:8]}/a.pdf")
        ),
    ),
    "request-id-in-error": (
        "Fetch the forecast.",
        24,
        lambda t, n: t.call("forecast", {"days": 3}, threw("forecast", f"503 from upstream (request {uuid(n)})")),
    ),
    "wrapped-page": (
        "Read the almanac.",
        24,
        lambda t, n: t.call(
            "web_fetch",
            {"url": "https://almanac.example/today"},
            text(
                f'<<<EXTERNAL_UNTRUSTED_CONTENT id="{n:016x}">>>\nGateway timeout\n'
                f'<<<END_EXTERNAL_UNTRUSTED_CONTENT id="{n:016x}">>>'
            ),
        ),
    ),
    "log-grows": (
        "Watch the log.",
        24,
        lambda t, n: t.call("read", {"path": "rain.log"}, text("".join(f"{at} mm\n" for at in range(n + 1)))),
    ),
    # Sends
    "send-fresh-ids": (
        "Tell the neighbours.",
        24,
        lambda t, n: t.call(
            "message",
            {"action": "send", "to": "garden", "text": "The beds are watered."},
            text(f"sent as m{n}", ok=True, messageId=f"m{n}", timestamp=1793692800 + n),
        ),
    ),
    "note-fresh-ids": (
        "Note it on the board.",
        24,
        lambda t, n: t.call("board_post", {"text": "Watered."}, text("posted", ok=True, messageId=f"b{n}")),
    ),
    "handoff-fresh-ids": (
        "Tell the other agent.",
        24,
        lambda t, n: t.call(
            "conversations_send",
            {"to": "orchard", "text": "Water, please."},
            text("delivered", ok=True, messageId=f"c{n}"),
        ),
    ),
    "send-fresh-keys": (
        "Tell the neighbours.",
        24,
        lambda t, n: t.call(
            "message",
            {"action": "send", "to": "garden", "text": "Watered.", "idempotencyKey": uuid(n)},
            text("sent", ok=True, messageId=f"m{n}"),
        ),
    ),
    # Arguments
    "nonce-in-arguments": (
        "Find beans.",
        24,
        lambda t, n: t.call("seed_search", {"query": "beans", "nonce": uuid(n)}, text("nothing found")),
    ),
    "retry-numbered": (
        "Order beans.",
        24,
        lambda t, n: t.call("order", {"seed": "bean", "attempt": n}, threw("order", f"declined (order {8100 + n})")),
    ),
    "exec-titles": (
        "Is there room?",
        24,
        lambda t, n: t.call("exec", {"command": "df /srv", "title": f"Look, time {n}"}, ran("full")),
    ),
    "exec-fails-alike": (
        "Reach the pump.",
        24,
        lambda t, n: t.call("exec", {"command": f"ping -c 1 -W {n + 1} pump"}, ran("pump: no such host", 2)),
    ),
    "edit-fails-alike": (
        "Fix the plan.",
        24,
        lambda t, n: t.call(
            "edit",
            {"path": "plan.md", "oldText": f"row {n}", "newText": "row"},
            threw("edit", "the text to replace was not found in plan.md"),
        ),
    ),
    # Other calls between
    "one-between": (
        "Check the beds.",
        24,
        lambda t, n: t.call("bed_status", STATUS, text("dry")).call(
            "read", {"path": f"bed-{n}.md"}, text(f"bed {n} has {n * 3} plants")
        ),
    ),
    "three-between": (
        "Check the beds.",
        22,
        lambda t, n: [
            t.call("bed_status", STATUS, text("dry")),
            *(t.call("read", {"path": f"{of}-{n}.md"}, text(f"{of} {n}")) for of in ("bed", "row", "pot")),
        ],
    ),
    "parallel-siblings": (
        "Check the beds.",
        22,
        lambda t, n: t.calls(
            ("bed_status", STATUS, text("dry")),
            *(("read", {"path": f"{of}-{n}.md"}, text(f"{of} {n}")) for of in ("bed", "row", "pot")),
        ),
    ),
    "cycle-of-two-moves": (
        "Water and look.",
        22,
        lambda t, n: t.call("water", STATUS, text("ok")).call("bed_status", STATUS, text(f"moisture {n}")),
    ),
    "cycle-of-three": (
        "Water and look.",
        21,
        lambda t, n: [t.call(tool, STATUS, text("ok")) for tool in ("open_valve", "bed_status", "close_valve")],
    ),
    "cycle-of-three-short": (
        "Water and look.",
        14,
        lambda t, n: [t.call(tool, STATUS, text("ok")) for tool in ("open_valve", "bed_status", "close_valve")],
    ),
    "cycle-of-four": (
        "Water and look.",
        21,
        lambda t, n: [t.call(tool, STATUS, text("ok")) for tool in ("open_valve", "look", "close_valve", "note")],
    ),
    "cycle-of-two": (
        "Water and look.",
        14,
        lambda t, n: t.call("water", STATUS, text("ok")).call("bed_status", STATUS, text("dry")),
    ),
    # Calls that leave no record, or no outcome
    "validation-errors": (
        "Plan the week.",
        24,
        lambda t, n: t.call(
            "plan_week",
            {"from": "monday"},
            bare('Validation failed for tool "plan_week":\n  - to: must have required properties to'),
        ),
    ),
    "absent-in-turn": ("Book a train.", 24, lambda t, n: t.absent("book_train" if n % 2 else "book_bus")),
    "absent-beside-others": (
        "Book a train.",
        14,
        lambda t, n: t.call("read", {"path": f"line-{n}.md"}, text(f"line {n}")).absent("book_train", beside=True),
    ),
    "absent-few": ("Book a train.", 8, lambda t, n: t.absent("book_train")),
    "lost-outcomes": (
        "Check the beds.",
        24,
        lambda t, n: t.call(
            "bed_status", STATUS, bare("[openclaw] missing tool result in session history; inserted synthetic error")
        ),
    ),
    "aborted-calls": ("Check the beds.", 24, lambda t, n: t.call("bed_status", STATUS, bare("Operation aborted"))),
    "skipped-calls": (
        "Check the beds.",
        14,
        lambda t, n: t.call(
            "bed_status",
            STATUS,
            {
                **bare("Skipped to process an incoming message."),
                "details": {"status": "skipped", "deniedReason": "steering"},
            },
        ).steer(f"And bed {n}?"),
    ),
    # Resets
    "success-between": (
        "Fix the plan.",
        5,
        lambda t, n: [
            *(
                t.call("edit", {"path": "plan.md", "oldText": "x", "newText": "y"}, threw("edit", "no such text"))
                for _ in range(2)
            ),
            t.call("read", {"path": f"plan-{n}.md"}, text(f"plan {n}")),
        ],
    ),
    "steering-between": (
        "Fix the plan.",
        5,
        lambda t, n: [
            *(
                t.call("edit", {"path": "plan.md", "oldText": "x", "newText": "y"}, threw("edit", "no such text"))
                for _ in range(2)
            ),
            t.steer(f"Try once more, please, {n}."),
        ],
    ),
    # Thresholds, and what the record holds
    "seven-calls": ("Check the beds.", 7, lambda t, n: t.call("bed_status", STATUS, text("dry"))),
    "two-dozen": ("Check the beds.", 24, lambda t, n: t.call("bed_status", STATUS, text("dry"))),
    "result-cut": (
        "Read the atlas.",
        24,
        lambda t, n: t.call(
            "read",
            {"path": "atlas.md"},
            text(
                "… (cut)",
                persistedDetailsTruncated=True,
                originalDetailsBytesAtLeast=8193,
                originalDetailKeys=["kind", "content"],
            ),
        ),
    ),
    "paging": (
        "Read the almanac.",
        24,
        lambda t, n: t.call("read", {"path": "almanac.md", "offset": n * 50}, text(f"on {'rain ' * (n + 1)}and sun")),
    ),
}


def heartbeats(told: Told, runs: int, calls: int) -> Told:
    """Tell of runs that heartbeats open, each with the same calls."""
    for _ in range(runs):
        told.user("Heartbeat: look after the beds.")
        for _ in range(calls):
            told.call("bed_status", STATUS, text("dry"))
        told.say("All is as it was.")
    return told


def split_by_ids(told: Told) -> Told:
    """Tell of a loop that goes on under ever new run ids, without anybody saying anything."""
    told.user("Look after the beds.")
    for number in range(24):
        if number and not number % 6:
            told.new_run()
        told.call("bed_status", STATUS, text("dry"))
    return told.say("It is dry.")


def tried_again(told: Told) -> Told:
    """Tell of one prompt that is sent again and again, since each run of it breaks off."""
    for _ in range(5):
        told.user("Fill the tank.")
        for _ in range(5):
            told.call("tank", {"do": "fill"}, text("valve is stuck"))
        told.say("The tank cannot be filled.")
    return told


def compacted(told: Told, *, tools: tuple[str, ...], hook: bool = True) -> Told:
    """Tell of calls, a compaction within the run, and calls after it."""
    told.user("Look after the beds.")
    for _ in range(4):
        told.call("bed_status", STATUS, text("dry"))
    told.compact(hook=hook)
    for tool in tools:
        told.call(tool, STATUS, text("dry"))
    return told.say("It is dry.")


def compacted_between(told: Told) -> Told:
    """Tell of a loop that compactions between runs cut into pieces."""
    for _ in range(4):
        told.user("Look after the beds.")
        for _ in range(6):
            told.call("bed_status", STATUS, text("dry"))
        told.say("It is dry.").compact(in_run=False)
    return told


def prompted_again(told: Told) -> Told:
    """Tell of a run of 2026.6 that overflows; its prompt is appended again after the compaction."""
    told.user("Look after the beds.")
    for _ in range(5):
        told.call("bed_status", STATUS, text("dry"))
    told.overflow().compact(hook=True).again("Look after the beds.")
    for number in range(5):
        told.call("bed_status", STATUS, text(f"dry since {number + 1} h"))
    return told.say("It is dry.")


#: Shapes that are more than one thing over and over: whether they have run ids, and how they are told.
TOLD: dict[str, tuple[bool, Callable[[Told], Told]]] = {
    "heartbeats": (True, lambda told: heartbeats(told, 12, 2)),
    "heartbeats-few": (True, lambda told: heartbeats(told, 6, 2)),
    "run-ids-split": (True, split_by_ids),
    "prompt-retried": (False, tried_again),
    "compaction-other-calls": (True, lambda told: compacted(told, tools=("water", "bed_status", "note", "read"))),
    "compaction-not-armed": (False, lambda told: compacted(told, tools=("bed_status",) * 4, hook=False)),
    "compaction-loop": (True, lambda told: compacted(told, tools=("bed_status",) * 4)),
    "compaction-between": (True, compacted_between),
    "compaction-prompt-again": (False, prompted_again),
}
#: Those in the 2026.6 style.
WITHOUT_IDS = frozenset(
    {"poll-log-grows", "sleep-poll", "wrapped-page", "cycle-of-two", "two-dozen", "exec-fails-alike"}
)


def shapes() -> Iterator[tuple[str, bytes]]:
    """Yield every shape: its name, and its transcript."""
    for name, (prompt, times, each) in REPEATED.items():
        told = Told(name, ids=name not in WITHOUT_IDS).user(prompt)
        for number in range(times):
            each(told, number)
        yield name, told.say("That is all I could do.").bytes()
    for name, (ids, tell) in TOLD.items():
        yield name, tell(Told(name, ids=ids)).bytes()


def main() -> int:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, data in shapes():
        (FOLDER / f"{name}.jsonl").write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
