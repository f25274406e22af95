"""Scripted cases for the published packages, made of small machines that walk close to every threshold.

A case is ``{id, config, runs: [{run, batches}]}``; a batch is a list of calls ``{id, tool, args, outcome}``
or the text ``"compaction"``; an outcome is ``{"result": …}`` or ``{"error": text}``.
A call that never comes back cannot be asked: the loop would wait for it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Outcome = dict[str, Any]
Move = tuple[str, Any, Outcome]

#: Releases by the name of their package here, with the ruleset that they are to be compared with.
RELEASES = {"2026-6": "2026.6", "2026-9": "2026.9"}


def told(body: str, /, **details: Any) -> dict[str, Any]:
    """Return a result with one text and, if there are any, details."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": body}]}
    if details:
        result["details"] = details
    return {"result": result}


def threw(text: str) -> dict[str, Any]:
    """Return a thrown error."""
    return {"error": text}


def ran(output: str, code: float | None = 0, status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return a finished ``exec``."""
    return told(output, status=status, exitCode=code, aggregated=output, **more)


def failed(output: str, code: float | None = 1, **more: Any) -> dict[str, Any]:
    """Return a failed ``exec``."""
    return ran(output, code, "failed", **more)


DENIED = told("no", status="blocked", deniedReason="tool-loop")


@dataclass
class Machine:
    """One habit of a model: which call comes next, and what it comes back with."""

    rng: random.Random
    tool: str
    arguments: list[Any]
    outcome: Callable[[Machine, int], Outcome]
    drift: float = 0.0
    """How likely the outcome moves on for good."""
    slips: float = 0.0
    """How likely one outcome is an odd one."""
    order: str = "cycle"
    step: int = 0
    state: int = 0

    def move(self) -> Move:
        """Return the next call."""
        at = self.rng.randrange(len(self.arguments)) if self.order == "random" else self.step % len(self.arguments)
        if self.order == "fresh":
            arguments: Any = {"n": self.step}
        else:
            arguments = self.arguments[at]
        self.step += 1
        if self.rng.random() < self.drift:
            self.state += 1
        outcome = self.outcome(self, at)
        if self.rng.random() < self.slips:
            outcome = self.rng.choice([threw("odd"), told("odd"), DENIED, told("odd", status="odd")])
        return self.tool, arguments, outcome


def noise(rng: random.Random) -> str:
    """Return something that never repeats."""
    return f"{rng.getrandbits(64):016x}"


def envelope(rng: random.Random, body: str, depth: int = 0) -> str:
    """Return untrusted content in its envelope, as JSON inside JSON ``depth`` times."""
    nonce, quote = noise(rng), "\\" * (2**depth - 1) + '"'
    mark = f"EXTERNAL_UNTRUSTED_CONTENT id={quote}{nonce}{quote}>>>"
    return f"<<<{mark}\n{body}\n<<<END_{mark}"


def volatile(m: Machine, at: int) -> Outcome:
    """Return a failure whose text never repeats to the letter."""
    parts = [
        f"2026-0{m.rng.randint(1, 9)}-1{m.rng.randint(0, 9)}T0{m.rng.randint(0, 9)}:00:00Z",
        f"{m.rng.randint(1, 23)}:{m.rng.randint(10, 59)}:{m.rng.randint(10, 59)}.{m.rng.randint(1, 999)}",
        f"attempt {m.rng.randint(1, 99)}",
        f"retry={m.rng.randint(1, 99)}",
        f"{m.rng.randint(1, 99)} {m.rng.choice(['ms', 'ms', 'seconds', 's'])}".replace(" s", "s"),
        f"pid {m.rng.randint(1, 99)}",
        f"PPID: {m.rng.randint(1, 99)}",
    ]
    return failed(f"{parts[m.step % len(parts)] if m.state % 2 else parts[at % len(parts)]} refused {m.state}")


MACHINES: dict[str, Callable[[random.Random], Machine]] = {
    "repeat": lambda r: Machine(
        r, r.choice(["read", " Read", "GREP"]), [{"path": "a"}], lambda m, at: told(f"t{m.state}")
    ),
    "numbers": lambda r: Machine(
        r,
        "calc",
        [{"n": 1, "m": -0.0}, {"m": 0, "n": 1.0}],
        lambda m, at: told("n", value=m.rng.choice([1e21, 10**21]), whole=m.rng.choice([m.state, float(m.state)])),
    ),
    "alternate": lambda r: Machine(
        r, "read", [{"path": "a"}, {"path": "b"}], lambda m, at: told(f"{at * (m.state % 2)} {m.state}")
    ),
    "three": lambda r: Machine(r, "read", [{"path": p} for p in "abc"], lambda m, at: told(f"{at} {m.state}")),
    "churn": lambda r: Machine(
        r,
        r.choice(["lookup", "exec"]),
        [{"q": q} for q in range(r.choice([2, 3, 4]))],
        lambda m, at: threw(f"none {m.state}"),
        order=r.choice(["cycle", "random"]),
    ),
    "unchanged": lambda r: Machine(
        r,
        "write",
        [{"path": "f", "content": c} for c in range(r.choice([1, 2, 3]))],
        lambda m, at: told(noise(m.rng), changed=bool(m.state % 2), at=noise(m.rng)),
        order="random",
    ),
    "poll": lambda r: Machine(
        r,
        "process",
        [{"action": r.choice(["poll", "log"]), "sessionId": s} for s in range(r.choice([1, 1, 2]))],
        lambda m, at: told(
            f"p{m.state}", status="running", aggregated=f"p{m.state}", totalLines=m.state, seen=noise(m.rng)
        ),
    ),
    "status": lambda r: Machine(r, "command_status", [{}], lambda m, at: told(f"s{m.state}")),
    "exec": lambda r: Machine(
        r,
        r.choice(["exec", "bash"]),
        [{"command": c} for c in range(r.choice([1, 2, 3]))],
        lambda m, at: r.choice([ran, failed])(f"out {m.state}", durationMs=m.rng.randint(1, 9)),
    ),
    "failing": lambda r: Machine(
        r,
        "exec",
        [{"command": c} for c in range(r.choice([1, 2, 5]))],
        volatile,
        order=r.choice(["cycle", "random", "fresh"]),
    ),
    "running": lambda r: Machine(
        r, "exec", [{"command": "serve"}], lambda m, at: told(noise(m.rng), status="running", tail=f"{m.state}")
    ),
    "send": lambda r: Machine(
        r,
        r.choice(["message", "sessions_send", "conversations_turn"]),
        [{"action": r.choice(["send", "react", "poll"]), "to": "x"}],
        lambda m, at: told(
            noise(m.rng), ok=m.state, messageId=noise(m.rng), inner=[{"ts": m.rng.random(), "keep": 1}]
        ),
    ),
    "wrapped": lambda r: Machine(
        r,
        "fetch",
        [{"url": "u"}],
        lambda m, at: told(envelope(m.rng, f"w{m.state}", m.state % 3), page=envelope(m.rng, "p")),
    ),
    "absent": lambda r: Machine(
        r,
        r.choice(["call", "tool_call"]),
        [{"name": "zap"}],
        lambda m, at: threw(
            m.rng.choice(["Unknown tool: zap", 'tool "zap" not found', "Tool zap is not available"]).replace(
                "zap", f"zap{m.state}"
            )
        ),
    ),
}


@dataclass
class Script:
    """One case in the making."""

    rng: random.Random
    release: str
    ids: int = 0
    machines: list[Machine] = field(default_factory=list)

    def call(self, machine: Machine) -> dict[str, Any]:
        """Return the machine's next call."""
        tool, arguments, outcome = machine.move()
        self.ids += 1
        return {"id": f"k{self.ids}", "tool": tool, "args": arguments, "outcome": outcome}

    def batches(self, length: int) -> list[Any]:
        """Return one run's batches of about ``length`` calls in all."""
        rng = self.rng
        style = rng.choice(["alone", "alone", "blocks", "mixed", "wide"])
        sizes = {"wide": [1, 2, 4, 9, 13]}.get(style, [1, 1, 1, 1, 2])
        compactions = rng.choice([0, 0, 0.03, 0.1])
        made: list[Any] = []
        count = 0
        while count < length:
            if rng.random() < compactions:
                made.append("compaction")
            batch = []
            for _ in range(rng.choice(sizes)):
                which = {"alone": 0, "blocks": count // 12 % len(self.machines)}.get(
                    style, 0 if rng.random() < 0.85 else rng.randrange(len(self.machines))
                )
                batch.append(self.call(self.machines[which]))
            made.append(batch)
            count += len(batch)
        return made


def random_cases(release: str, seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` cases for a release; the same seed gives the same cases."""
    rng = random.Random(f"loopscan {release} {seed}")
    for number in range(count):
        script = Script(rng, release)
        for name in rng.choices(sorted(MACHINES), k=rng.choice([1, 1, 2, 3])):
            machine = MACHINES[name](rng)
            machine.drift = rng.choice([0, 0, 0, 0.02, 0.06])
            machine.slips = rng.choice([0, 0, 0.02, 0.05])
            script.machines.append(machine)
        names = rng.choice([["r0", "r1", "r2"], ["r0", "r0", "r1"], [None, None, None]])
        runs = rng.choice([1, 1, 2, 3])
        length = rng.choice([25, 45, 70])
        yield {
            "id": f"{release}-own-{seed}-{number}",
            "config": config(rng, release),
            "runs": [{"run": names[r], "batches": script.batches(max(8, length // runs))} for r in range(runs)],
        }


def config(rng: random.Random, release: str) -> dict[str, Any]:
    """Return a configuration; thresholds only where the release reads them."""
    block: dict[str, Any] = {"enabled": True}
    if rng.random() < 0.04:
        block = rng.choice([{}, {"enabled": False}])
    if release == "2026-6" and rng.random() < 0.6:
        choices: dict[str, list[Any]] = {
            "warningThreshold": [2, 4, 9, 10, 11],
            "criticalThreshold": [3, 5, 8, 15],
            "globalCircuitBreakerThreshold": [4, 9, 14, 22],
            "unknownToolThreshold": [1, 2, 4],
            "historySize": [3, 7, 12, 25, 50],
        }
        for name, values in choices.items():
            if rng.random() < 0.4:
                block[name] = rng.choice(values)
        if rng.random() < 0.3:
            block["detectors"] = {rng.choice(["genericRepeat", "knownPollNoProgress", "pingPong"]): False}
        if rng.random() < 0.3:
            block["postCompactionGuard"] = {"windowSize": rng.choice([1, 2, 4])}
    return block


def lines(cases: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield cases as JSON lines; infinities are spelled as numbers too great for a double."""
    for case in cases:
        yield json.dumps(case, separators=(",", ":")).replace("Infinity", "1e400")
