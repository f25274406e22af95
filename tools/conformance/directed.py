"""Cases that each decide one rule which random cases seldom do; the id names it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases import DENIED, failed, ran, threw, told


def directed_cases(release: str) -> Iterator[dict[str, Any]]:
    """Yield the cases for a release."""
    for name, runs in {**_streaks(), **_outcomes()}.items():
        yield {"id": f"{release}-directed-{name}", "config": {"enabled": True}, "runs": _numbered(runs)}


def _numbered(runs: list[tuple[str | None, list[Any]]]) -> list[dict[str, Any]]:
    ids = iter(range(1, 10_000))
    made = []
    for run, batches in runs:
        full = [
            batch
            if batch == "compaction"
            else [{"id": f"d{next(ids)}", "tool": t, "args": a, "outcome": o} for t, a, o in batch]
            for batch in batches
        ]
        made.append({"run": run, "batches": full})
    return made


def _one(*calls: tuple[str, Any, Any]) -> list[tuple[str | None, list[Any]]]:
    return [("r", [[call] for call in calls])]


READ = ("read", {"path": "a"}, told("x"))
LS = ("ls", {"path": "a"}, told("y"))


def _look(q: int, error: str = "none") -> tuple[str, Any, Any]:
    return ("lookup", {"q": q}, threw(error))


def _make(n: int, pid: int = 1) -> tuple[str, Any, Any]:
    return ("exec", {"command": f"make {n}"}, failed(f"pid {pid} died"))


def _streaks() -> dict[str, list[tuple[str | None, list[Any]]]]:
    churn = [_look(n % 2) for n in range(12)]
    return {
        "repeat-then-denied-then-repeat": _one(*[READ] * 12, ("read", {"path": "a"}, DENIED), *[READ] * 12),
        "pingpong-then-third": _one(*[READ, LS] * 6, _look(1), *[READ, LS] * 12),
        "churn-with-denied": _one(*churn[:5], ("lookup", {"q": 0}, DENIED), *churn),
        "churn-with-unrecorded": _one(*churn[:5], ("lookup", {"q": 9}, told("found")), *churn, *churn),
        "churn-after-other-outcome": _one(*[_look(n % 2, "old") for n in range(8)], *churn, *churn),
        "churn-other-outcome-of-one": _one(*churn[:7], _look(1, "new"), *churn, *churn),
        "churn-third-once": _one(*churn, _look(7), *churn, *churn),
        "churn-third-thrice": _one(*churn, *[_look(7)] * 3, *churn),
        "churn-batch-same-tool": [("r", [[c] for c in churn] + [[_look(0), _look(1), _look(0)]] * 4)],
        "churn-batch-other-tool": [("r", [[c] for c in churn] + [[_look(0), READ, _look(1)]] * 4)],
        "exectail-leaves-and-meets": _one(*[_make(1)] * 3, *[_make(2)] * 3, *[_make(n) for n in range(3, 30)]),
        "exectail-meets-again": _one(*[_make(n % 7, n) for n in range(40)]),
        "exectail-batch-of-two": [("r", [[_make(2 * n), _make(2 * n + 1)] for n in range(15)])],
        "exectail-batch-with-read": [("r", [[_make(2 * n), READ, _make(2 * n + 1)] for n in range(15)])],
        "exectail-ok-between": _one(
            *[_make(n) for n in range(15)], ("exec", {"command": "ls"}, ran("x")), *[_make(n) for n in range(25)]
        ),
        "two-runs-share-a-history": [
            ("a", [[READ]] * 15),
            ("b", [[_look(n)] for n in range(20)]),
            ("a", [[READ]] * 15),
        ],
        "veto-in-one-run-then-another": [("a", [[READ]] * 21), ("b", [[READ]] * 21), ("a", [[READ]] * 2)],
        "nameless-runs": [(None, [[READ]] * 12), (None, [[LS]] * 3 + [[READ]] * 12)],
        "guard-then-repeat": [("r", [[READ]] * 9 + ["compaction"] + [[LS], [READ]] + [[READ]] * 12)],
        "guard-window-of-two-tools": [("r", ["compaction", [READ, LS], [READ], "compaction", [READ, READ], [READ]])],
        "guard-error-window": [("r", ["compaction", [_look(1)], [_look(1)], [_look(1)], [READ]])],
    }


def _outcomes() -> dict[str, list[tuple[str | None, list[Any]]]]:
    def alternating(tool: str, arguments: Any, *outcomes: Any) -> list[tuple[str | None, list[Any]]]:
        return _one(*((tool, arguments, outcomes[n % len(outcomes)]) for n in range(24)))

    return {
        "exec-code-zero-but-failed": alternating("exec", {"c": 1}, failed("x", 0), failed("x", 0)),
        "exec-float-code": alternating("exec", {"c": 1}, failed("x", 1), failed("x", 1.0)),
        "exec-half-code-marker": _one(
            *[("exec", {"c": n}, failed("(Command exited with code 1.5)", 1.5)) for n in range(24)]
        ),
        "exec-whole-code-marker": _one(
            *[("exec", {"c": n}, failed("(Command exited with code 2)", 2.0)) for n in range(24)]
        ),
        "exec-long-code-marker": _one(
            *[("exec", {"c": n}, failed("(Command exited with code 100000000000000000000)", 1e20)) for n in range(24)]
        ),
        "exec-tiny-code-marker": _one(
            *[("exec", {"c": n}, failed("(Command exited with code 1.5e-7)", 1.5e-7)) for n in range(24)]
        ),
        "exec-small-code-marker": _one(
            *[("exec", {"c": n}, failed("(Command exited with code 0.000015)", 1.5e-5)) for n in range(24)]
        ),
        "exec-huge-code-marker": _one(
            *[("exec", {"c": n}, failed("(Command exited with code 1e+21)", 1e21)) for n in range(24)]
        ),
        "exec-text-instead-of-aggregated": _one(
            *[
                (
                    "exec",
                    {"c": n},
                    {
                        "result": {
                            "content": [{"type": "text", "text": "boom"}],
                            "details": {"status": "failed", "exitCode": 2},
                        }
                    },
                )
                for n in range(24)
            ]
        ),
        "poll-null-status": alternating(
            "process", {"action": "poll"}, told("p", status=None), told("p", status=None, other=1)
        ),
        "log-ignores-aggregated": alternating(
            "process", {"action": "log"}, told("p", aggregated=1), told("p", aggregated=2)
        ),
        "send-in-list": alternating(
            "sessions_send", {"to": 1}, told("a", items=[[{"ts": 1, "k": 1}]]), told("b", items=[[{"ts": 2, "k": 1}]])
        ),
        "result-without-content": alternating(
            "read", {"p": 1}, {"result": {"details": {"a": 1}}}, {"result": {"content": None, "details": {"a": 1}}}
        ),
        "result-text": alternating("read", {"p": 1}, {"result": "x"}, {"result": "x"}),
        "result-list": alternating("read", {"p": 1}, {"result": ["x", 1]}, {"result": ["x", 1.0]}),
        "unknown-tool-in-a-sentence": _one(
            *[("call", {"n": n}, threw(f"step {n}: unknown tool: zap, giving up")) for n in range(14)]
        ),
        "write-changed-then-not": alternating("write", {"p": 1}, told("a", changed=True), told("a", changed=False)),
    }
