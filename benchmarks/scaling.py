"""How time grows with size: each shape at n, 2n and 4n in one run, as ratios to n. About 2 and 4 is linear.

python benchmarks/scaling.py
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Callable

import orjson

from loopscan.engine.nonces import without_nonces
from loopscan.engine.session import SessionEngine
from loopscan.events import Call, Fate, Outcome, Recorded, Result, Turn, Where
from loopscan.masking import mask
from loopscan.policy import Layer, resolve
from loopscan.report import SessionReport
from loopscan.rulesets import ruleset
from loopscan.transcripts.dialogue import Dialogue
from loopscan.transcripts.documents import read_elements
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.openclaw.logline import read_line
from loopscan.transcripts.reader import Source
from loopscan.transcripts.swe_agent.mini import fenced
from loopscan.verdicts import attach

_SAME = Outcome(result={"content": [{"type": "text", "text": "same"}]})


def engine(history: int) -> SessionEngine:
    """Return an engine with a history that is never full, so that a walk over it would show."""
    block = {"enabled": True, "historySize": history, "warningThreshold": history}
    return SessionEngine(resolve(ruleset("2026.6"), block=Layer(block, "argument")))


def one_by_one(size: int) -> None:
    """Play ``size`` calls, one a message."""
    play = engine(10 * size)
    for number in range(size):
        play.feed(Turn("r", Where(), (Call("read", {"path": number % 5}, str(number)),)))
        play.feed(Result("r", Where(), 0, _SAME))


def in_reverse(size: int) -> None:
    """Play one message of ``size`` equal calls whose results come back last first."""
    play = engine(10 * size)
    play.feed(Turn("r", Where(), tuple(Call("read", {}, str(number)) for number in range(size))))
    for number in reversed(range(size)):
        play.feed(Result("r", Where(), number, _SAME))


def behind_one_that_waits(size: int) -> None:
    """Play one message whose first call is answered and the other ``size`` are not."""
    play = engine(10 * size)
    calls = (Call("read", {}, "0"), *(Call("read", {}, str(number), Fate.LOST) for number in range(1, size)))
    play.feed(Turn("r", Where(), calls))
    play.feed(Result("r", Where(), 0, _SAME))


def without_ids(size: int) -> None:
    """Tell a dialogue of one message of ``size`` calls whose results name none of them."""
    talk = Dialogue("s", Where())
    talk.turn(Where(), [Call("read", {}, str(number)) for number in range(size)])
    for _ in range(size):
        talk.result(Where(), _SAME)
    talk.finish()


def user_meanwhile(size: int) -> None:
    """Read a session in which the user says ``size`` things while a call is open."""
    stamp = "2026-06-01T12:00:00.000Z"
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}
    said = [{"role": "assistant", "content": [call]}, *({"role": "user", "content": "well?"} for _ in range(size))]
    lines = [{"type": "session", "version": 3, "id": "s", "timestamp": stamp}]
    for number, message in enumerate(said):
        parent = str(number - 1) if number else None
        entry = {"type": "message", "id": str(number), "parentId": parent, "timestamp": stamp, "message": message}
        lines.append(entry)
    data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    deque(OpenClawReader().read(Source("s.jsonl", lambda: io.BytesIO(data))), maxlen=0)


def verdicts_without_sessions(size: int) -> None:
    """Bring ``size`` verdicts that name no session to ``size`` sessions."""
    sessions = [
        SessionReport("s.jsonl", f"s{n}", "a", None, 3600.0 * n, 3600.0 * n + 60, calls=1) for n in range(size)
    ]
    told = [Recorded("", Where(time=3600.0 * n), "warning", None, "read", "generic_repeat", 10) for n in range(size)]
    attach([*sessions, SessionReport("gateway.log", "agent:a:main", "a", recorded=told)], ruleset("2026.9"))


def elements(size: int) -> None:
    """Read a document of one array of ``size`` small objects."""
    data = b"[" + b",".join([b'{"a": "b"}'] * size) + b"]"
    deque(read_elements(Source("d.json", lambda: io.BytesIO(data))), maxlen=0)


SHAPES: dict[str, tuple[int, Callable[[int], object]]] = {
    "calls one by one": (4_000, one_by_one),
    "results in reverse": (4_000, in_reverse),
    "calls behind one that waits": (4_000, behind_one_that_waits),
    "nonces: backslashes": (250_000, lambda n: without_nonces('<<<EXTERNAL_UNTRUSTED_CONTENT id="' + "\\" * n)),
    "nonces: markers": (20_000, lambda n: without_nonces("<<<EXTERNAL_UNTRUSTED_CONTENT" * n)),
    "results that name no call": (4_000, without_ids),
    "user messages meanwhile": (3_000, user_meanwhile),
    "verdicts without sessions": (2_000, verdicts_without_sessions),
    "elements of a document": (50_000, elements),
    "fences: opened": (20_000, lambda n: fenced("```bash\nx" * n)),
    "fences: blank lines": (20_000, lambda n: fenced("```bash" + "\n" * n)),
    "logs: keys and files": (300, lambda n: [read_line(b"sessionKey=a sessionFile=x/ " * 100) for _ in range(n)]),
    "masks: pid pid": (20_000, lambda n: mask("pid " * n)),
    "masks: password=": (20_000, lambda n: mask("password=" * n)),
    "masks: curl -u": (20_000, lambda n: mask("curl -u " * n)),
    "masks: base64": (200_000, lambda n: mask("aB3/" * n)),
}


def main() -> None:
    """Print a row a shape."""
    print(f"{'shape':30} {'n':>8} {'CPU s':>8} {'2n':>6} {'4n':>6}")
    for name, (size, work) in SHAPES.items():
        spent = []
        for factor in (1, 2, 4):
            started = time.process_time()
            work(size * factor)
            spent.append(time.process_time() - started)
        first = spent[0] or 1e-9
        print(f"{name:30} {size:8} {first:8.3f} {spent[1] / first:6.1f} {spent[2] / first:6.1f}")


if __name__ == "__main__":
    main()
