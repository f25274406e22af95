"""Cases that each decide one rule which random cases seldom do; the id names it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases import DENIED, failed, ran, threw, told

Runs = list[tuple[str | None, list[Any]]]


def directed_cases(release: str) -> Iterator[dict[str, Any]]:
    """Yield the cases for a release; thresholds, and rules that one release alone has, are asked of that one."""
    tables: dict[str, Runs] = {**_streaks(), **_outcomes(), **_names(), **_fields(), **_sends(), **_unknown_tools()}
    configured: dict[str, tuple[dict[str, Any], Runs]] = {}
    if release == "2026-6":
        configured = _configured()
    else:
        tables |= {**_volatile(), **_envelopes()}
    for name, runs in tables.items():
        yield {"id": f"{release}-directed-{name}", "config": {"enabled": True}, "runs": _numbered(runs)}
    for name, (config, runs) in configured.items():
        yield {"id": f"{release}-directed-{name}", "config": {"enabled": True, **config}, "runs": _numbered(runs)}


def _numbered(runs: Runs) -> list[dict[str, Any]]:
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


def _one(*calls: tuple[str, Any, Any]) -> Runs:
    return [("r", [[call] for call in calls])]


READ = ("read", {"path": "a"}, told("x"))
LS = ("ls", {"path": "a"}, told("y"))


def _look(q: int, error: str = "none") -> tuple[str, Any, Any]:
    return ("lookup", {"q": q}, threw(error))


def _make(n: int, pid: int = 1) -> tuple[str, Any, Any]:
    return ("exec", {"command": f"make {n}"}, failed(f"pid {pid} died"))


def _streaks() -> dict[str, Runs]:
    churn = [_look(n % 2) for n in range(12)]
    return {
        "repeat-then-denied-then-repeat": _one(*[READ] * 12, ("read", {"path": "a"}, DENIED), *[READ] * 12),
        "pingpong-then-third": _one(*[READ, LS] * 6, _look(1), *[READ, LS] * 12),
        "churn-with-denied": _one(*churn[:5], ("lookup", {"q": 0}, DENIED), *churn),
        "churn-with-unrecorded": _one(*churn[:5], ("lookup", {"q": 9}, told("found")), *churn, *churn),
        "churn-after-other-outcome": _one(*[_look(n % 2, "old") for n in range(8)], *churn, *churn),
        "churn-other-outcome-of-one": _one(*churn[:7], _look(1, "new"), *churn, *churn),
        "churn-of-two-tools": _one(
            *(_look(n % 3) for n in range(12)), *(("find", {"q": n % 3}, threw("none")) for n in range(12))
        ),
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
        "exectail-evicted-by-another-run": [
            ("a", [[_make(n)] for n in range(19)]),
            ("b", [[READ]] * 7 + [[LS]] * 8),
            ("a", [[_make(n)] for n in range(19, 30)]),
        ],
        "churn-evicted-by-another-run": [
            ("a", [[_look(n % 3)] for n in range(9)]),
            ("b", [[READ]] * 9 + [[LS]] * 9 + [[READ]] * 5),
            ("a", [[_look(n % 3)] for n in range(9)]),
        ],
        "unknown-tool-evicted-by-another-run": [
            ("a", [[("call", {"n": n}, threw("unknown tool: zap"))] for n in range(9)]),
            ("b", [[READ]] * 9 + [[LS]] * 9 + [[READ]] * 5),
            ("a", [[("call", {"n": n}, threw("unknown tool: zap"))] for n in range(9, 15)]),
        ],
        "pingpong-evicted-by-another-run": [
            ("a", [[READ], [LS]] * 9),
            ("b", [[_look(n)] for n in range(15)]),
            ("a", [[READ], [LS]] * 5),
        ],
        "veto-in-one-run-then-another": [("a", [[READ]] * 21), ("b", [[READ]] * 21), ("a", [[READ]] * 2)],
        "nameless-runs": [(None, [[READ]] * 12), (None, [[LS]] * 3 + [[READ]] * 12)],
        "guard-then-repeat": [("r", [[READ]] * 9 + ["compaction"] + [[LS], [READ]] + [[READ]] * 12)],
        "guard-window-of-two-tools": [("r", ["compaction", [READ, LS], [READ], "compaction", [READ, READ], [READ]])],
        "guard-error-window": [("r", ["compaction", [_look(1)], [_look(1)], [_look(1)], [READ]])],
    }


def _alternating(tool: str, arguments: Any, *outcomes: Any) -> Runs:
    """Return one call 24 times over outcomes in turn: a block if they are one outcome, else warnings."""
    return _one(*((tool, arguments, outcomes[n % len(outcomes)]) for n in range(24)))


def _failing(*outcomes: Any) -> Runs:
    """Return 24 commands that all differ, with outcomes in turn: a block if they are one terminal failure."""
    return _one(*(("exec", {"command": n}, outcomes[n % len(outcomes)]) for n in range(24)))


def _outcomes() -> dict[str, Runs]:
    return {
        "exec-code-zero-but-failed": _alternating("exec", {"c": 1}, failed("x", 0), failed("x", 0)),
        "exec-float-code": _alternating("exec", {"c": 1}, failed("x", 1), failed("x", 1.0)),
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
        "poll-null-status": _alternating(
            "process", {"action": "poll"}, told("p", status=None), told("p", status=None, other=1)
        ),
        "log-ignores-aggregated": _alternating(
            "process", {"action": "log"}, told("p", aggregated=1), told("p", aggregated=2)
        ),
        "send-in-list": _alternating(
            "sessions_send", {"to": 1}, told("a", items=[[{"ts": 1, "k": 1}]]), told("b", items=[[{"ts": 2, "k": 1}]])
        ),
        "result-without-content": _alternating(
            "read", {"p": 1}, {"result": {"details": {"a": 1}}}, {"result": {"content": None, "details": {"a": 1}}}
        ),
        "result-text": _alternating("read", {"p": 1}, {"result": "x"}, {"result": "x"}),
        "result-list": _alternating("read", {"p": 1}, {"result": ["x", 1]}, {"result": ["x", 1.0]}),
        "unknown-tool-in-a-sentence": _one(
            *[("call", {"n": n}, threw(f"step {n}: unknown tool: zap, giving up")) for n in range(14)]
        ),
        "write-changed-then-not": _alternating("write", {"p": 1}, told("a", changed=True), told("a", changed=False)),
    }


def _names() -> dict[str, Runs]:
    """Two spellings in turn of what is one call or is not."""
    pairs: dict[str, tuple[tuple[str, Any], tuple[str, Any]]] = {
        "bash": (("bash", {"c": 1}), ("exec", {"c": 1})),
        "bash-spelled": ((" BASH\t", {"c": 1}), ("exec", {"c": 1})),
        "apply-patch": (("apply-patch", {"c": 1}), ("apply_patch", {"c": 1})),
        "cron": (("cron", {"c": 1}), ("automations", {"c": 1})),
        "case": (("READ", {"c": 1}), ("read", {"c": 1})),
        "byte-order-mark": (("\ufeffread", {"c": 1}), ("read", {"c": 1})),
        "next-line": (("\x85read", {"c": 1}), ("read", {"c": 1})),
        "separator": (("read\x1f", {"c": 1}), ("read", {"c": 1})),
        "tool": (("ls", {"c": 1}), ("read", {"c": 1})),
        "key-order": (("read", {"a": 1, "b": 2}), ("read", {"b": 2, "a": 1})),
        "whole-number": (("read", {"a": 1}), ("read", {"a": 1.0})),
        "great-number": (("read", {"a": 2**53}), ("read", {"a": 2**53 + 1})),
        "least-number": (("read", {"a": -(2**53)}), ("read", {"a": -(2**53) - 1})),
        "infinities": (("read", {"a": float("inf")}), ("read", {"a": -float("inf")})),
        "infinity-and-null": (("read", {"a": float("inf")}), ("read", {"a": None})),
        "title": (("exec", {"c": 1, "title": "a"}), ("exec", {"c": 1, "title": "b"})),
    }
    return {f"name-{name}": _one(*((*pair[n % 2], told("x")) for n in range(24))) for name, pair in pairs.items()} | {
        f"poll-{name}": _one(*((tool, arguments, told("x")) for _ in range(24)))
        for name, (tool, arguments) in {
            "poll": ("process", {"action": "poll"}),
            "log": ("process", {"action": "log"}),
            "list": ("process", {"action": "list"}),
            "bare": ("process", {}),
            "command-status": ("Command_Status", {}),
            "other-tool": ("read", {"action": "poll"}),
            "wait": ("wait", {}),
        }.items()
    }


def _fields() -> dict[str, Runs]:
    """Two outcomes in turn that differ in one field which is compared or is not."""

    def of(content: Any, **details: Any) -> Any:
        return {"result": {"content": content, "details": details}}

    def running(**details: Any) -> Any:
        return told("x", status="running", **details)

    def ended(output: Any, **details: Any) -> Any:
        return told("text", **{"status": "failed", "exitCode": 1, "aggregated": output, **details})

    def entry(**fields: Any) -> Any:
        return {"result": {"content": [fields]}}

    made: dict[str, Runs] = {}
    for name, one, other in (
        ("running-tail", running(tail="a"), running(tail="b")),
        ("running-no-tail", running(tail=""), running()),
        ("running-odd-tail", running(tail=1), running(tail=None)),
        ("running-blank-tail", running(tail=" a"), running(tail="a")),
        ("running-text", of([{"type": "text", "text": "a"}], status="running"), running()),
        ("running-pid", running(pid=1), running(pid=2)),
        ("status", ended("x", status="completed"), ended("x", status="failed")),
        ("status-other", told("x", status="odd", n=1), told("x", status="odd", n=2)),
        ("status-other-text", told("x", status="odd"), told("y", status="odd")),
        ("status-no-text", told("x", status=1, n=1), told("x", status=1, n=2)),
        ("code", ended("x", exitCode=1), ended("x", exitCode=2)),
        ("code-odd", ended("x", exitCode="1"), ended("x", exitCode=None)),
        ("code-true", ended("x", exitCode=True), ended("x", exitCode=None)),
        ("code-none", ended("x", exitCode=0), ended("x", exitCode=None)),
        ("timed-out", ended("x", timedOut=True), ended("x", timedOut=False)),
        ("timed-out-odd", ended("x", timedOut="yes"), ended("x")),
        ("timed-out-one", ended("x", timedOut=1), ended("x")),
        ("aggregated", ended("x"), ended("y")),
        ("aggregated-trimmed", ended(" x\n"), ended("x")),
        ("aggregated-blank", ended(" \ufeff"), ended(None)),
        ("aggregated-is-text", ended("text"), ended(5)),
        ("duration", ended("x", durationMs=1), ended("x", durationMs=2)),
        ("completed-duration", ran("x", durationMs=1), ran("x", durationMs=2)),
        ("completed-output", ran("x"), ran("y")),
    ):
        made[f"exec-{name}"] = _alternating("exec", {"c": 1}, one, other)
    for status in ("approval-pending", "approval-unavailable"):
        made[f"exec-{status}"] = _alternating(
            "exec", {"c": 1}, told("x", status=status), told("y", status=status, n=1)
        )
        for field in ("reason", "host", "command", "warningText"):
            both = (told("x", status=status, **{field: value}) for value in "ab")
            made[f"exec-{status}-{field}"] = _alternating("exec", {"c": 1}, *both)
        for name, one, other in (
            ("odd-reason", {"reason": 1}, {"reason": None}),
            ("odd-host", {"host": 1}, {}),
            ("no-reason", {"reason": ""}, {}),
            ("no-host", {"host": ""}, {}),
            ("no-command", {"command": ""}, {}),
            ("odd-command", {"command": 1}, {"command": None}),
            ("no-warning", {"warningText": ""}, {}),
            ("odd-warning", {"warningText": 1}, {"warningText": [2]}),
        ):
            made[f"exec-{status}-{name}"] = _alternating(
                "exec", {"c": 1}, told("x", status=status, **one), told("x", status=status, **other)
            )
    made["exec-approval-status"] = _alternating(
        "exec", {"c": 1}, told("x", status="approval-pending"), told("x", status="approval-unavailable")
    )
    for action in ("poll", "log", "list", "Poll"):
        for field in (
            *("status", "exitCode", "exitSignal", "aggregated"),
            *("totalLines", "totalChars", "truncated", "sessionId"),
        ):
            both = (told("x", **{field: value}) for value in "ab")
            made[f"process-{action}-{field}"] = _alternating("process", {"action": action}, *both)
        made[f"process-{action}-text"] = _alternating(
            "process", {"action": action}, told("x", status="running"), told("y", status="running")
        )
    for action, field in (("poll", "exitSignal"), ("log", "truncated"), ("poll", "status"), ("log", "status")):
        both = (told("x", **{field: None}), told("x", other=1))
        made[f"process-{action}-{field}-null"] = _alternating("process", {"action": action}, *both)
    made["process-poll-then-log"] = _one(
        *(("process", {"action": ("poll", "log")[n % 2]}, told("x", status="running")) for n in range(44))
    )
    for name, tool, one, other in (
        ("false", "write", told("a", changed=False), told("b", changed=False, n=1)),
        ("true", "write", told("a", changed=True), told("b", changed=True)),
        ("null", "write", told("a", changed=None), told("b", changed=None)),
        ("zero", "write", told("a", changed=0), told("b", changed=0)),
        ("other-tool", "edit", told("a", changed=False), told("b", changed=False)),
    ):
        made[f"changed-{name}"] = _alternating(tool, {"path": "a"}, one, other)
    made["changed-false-churns"] = _one(
        *(("write", {"path": n % 3}, told("a", changed=False, n=n)) for n in range(34))
    )
    made["result-churns-not"] = _one(*(("lookup", {"q": n % 3}, told("none")) for n in range(34)))
    for name, one, other in (
        ("details", told("x", n=1), told("x", n=2)),
        ("text", told("x", n=1), told("y", n=1)),
        ("text-trimmed", told(" x\u3000"), told("x")),
        ("text-control", told("x\x1c"), told("x")),
        ("type-missing", entry(text="x"), entry(text="y")),
        ("type-odd", entry(type=1, text="x"), entry(type=1, text="y")),
        ("type-any", entry(type="resource", text="x"), entry(type="resource", text="y")),
        ("text-odd", entry(type="text", text=1), entry(type="text", text=2)),
        ("image", entry(type="image", data="x"), entry(type="image", data="y")),
        ("content-odd", of("x"), of("y")),
        ("entry-odd", of(["x"]), of(["y"])),
        ("joined", of([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), told("a\nb")),
        ("joined-apart", of([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), told("ab")),
        (
            "details-odd",
            {"result": {"content": [], "details": [1]}},
            {"result": {"content": [], "details": None}},
        ),
        ("other-field", {"result": {"content": [], "extra": 1}}, {"result": {"content": [], "extra": 2}}),
        ("value", {"result": "x"}, {"result": "y"}),
        ("value-or-error", {"result": "x"}, threw("x")),
        ("text-or-error", told("x"), threw("x")),
        ("denied-otherwise", *(told("x", status="blocked", deniedReason="plugin", n=n) for n in (1, 2))),
        ("denied-otherwise-alike", *[told("x", status="blocked", deniedReason="plugin")] * 2),
        ("denied-not-blocked", *[told("x", status="done", deniedReason="tool-loop")] * 2),
        ("denied", DENIED, DENIED),
        ("denied-in-turn", DENIED, told("x")),
    ):
        made[f"result-{name}"] = _alternating("read", {"p": 1}, one, other)
    for name, one, other in (
        ("negative-code", failed("x", -1), failed("x", -1)),
        ("infinite-code", failed("x", float("inf")), failed("x", float("inf"))),
        ("infinite-code-below", failed("x", -float("inf")), failed("x", -float("inf"))),
        ("no-code", failed("x", None), failed("x", None)),
        ("true-code", failed("x", True), failed("x", True)),
        ("timed-out", failed("x", timedOut=True), failed("x", timedOut=True)),
        ("no-output", failed(""), failed("")),
        ("blank-output", failed(" \n"), failed(" \n")),
        ("code-zero", failed("x", 0), failed("x", 0)),
        ("code", failed("x", 1), failed("x", 2)),
        ("output", failed("x"), failed("y")),
        ("completed", ran("x", 1), ran("x", 1)),
        ("completed-or-failed", ran("x", 1), failed("x", 1)),
        ("marker-of-another-code", *[failed("(Command exited with code 2)", 1)] * 2),
        ("marker-and-more", *[failed("x (Command exited with code 1)", 1)] * 2),
        ("marker-of-a-negative-code", *[failed("(Command exited with code -1)", -1)] * 2),
        ("running", running(exitCode=1), running(exitCode=1)),
        ("error", threw("x"), threw("x")),
    ):
        made[f"failure-{name}"] = _failing(one, other)
    return made


def _sends() -> dict[str, Runs]:
    made: dict[str, Runs] = {}
    one, other = told("a", ok=True, messageId="1"), told("b", ok=True, messageId="2")
    for action in (
        *("send", "broadcast", "reply", "thread-reply", "sendWithEffect", "sendAttachment", "upload-file", "sticker"),
        *("poll", "react", "SEND", "edit"),
    ):
        made[f"message-{action}"] = _alternating("message", {"action": action}, one, other)
    made["message-bare"] = _alternating("message", {}, one, other)
    for tool in ("sessions_send", "conversations_send", "conversations_turn", "sessions_spawn"):
        made[f"send-by-{tool}"] = _alternating(tool, {"action": "odd"}, one, other)
    for key in (
        *("messageId", "message_id", "messageIds", "platformMessageId", "platformMessageIds", "fileId", "file_id"),
        *("fileKey", "pollId", "poll_id", "receipt", "runId", "idempotencyKey", "ts", "timestamp", "sentAt"),
        *("deliveredAt", "createdAt", "id", "message", "MessageId", "updatedAt"),
    ):
        both = (told("x", ok=True, inner=[{"deep": {key: value, "kept": 1}}]) for value in "ab")
        made[f"send-{key}"] = _alternating("sessions_send", {"to": 1}, *both)
    for name, fields in {
        "direction": {"text": "t", "direction": "out"},
        "sender": {"text": "t", "senderId": "s"},
        "account": {"text": "t", "accountId": "s"},
        "conversation": {"text": "t", "conversation": {"a": 1}},
        "conversation-text": {"text": "t", "conversation": "c"},
        "conversation-list": {"text": "t", "conversation": []},
        "odd-direction": {"text": "t", "direction": 1},
        "no-text": {"direction": "out"},
        "odd-text": {"text": 1, "direction": "out"},
        "text-alone": {"text": "t"},
    }.items():
        both = (told("x", sent={"id": value, **fields}) for value in "ab")
        made[f"send-message-{name}"] = _alternating("sessions_send", {"to": 1}, *both)
    both = (told("x", sent={"id": value, "text": "t", "direction": "out"}) for value in (1, 2))
    made["send-message-odd-id"] = _alternating("sessions_send", {"to": 1}, *both)
    both = (told("x", sent={"id": "1", "text": value, "direction": "out"}) for value in "ab")
    made["send-message-other-text"] = _alternating("sessions_send", {"to": 1}, *both)
    return made


def _unknown_tools() -> dict[str, Runs]:
    """Two errors in turn of calls that all differ: a block at 10 if both name one unknown tool."""
    pairs = {
        "colon": ("Unknown tool: zap", "unknown tool zap"),
        "colons": ("unknown tool::zap", "unknown tool : zap"),
        "no-space": ("unknown toolzap", "unknown toolzap"),
        "quotes": ('unknown tool "zap"', "unknown tool 'zap'"),
        "mixed-quotes": ("unknown tool \"zap'", "unknown tool zap"),
        "backticks": ("unknown tool `zap`", "unknown tool `zap`"),
        "case": ("UNKNOWN TOOL: ZAP", "unknown tool: zap"),
        "not-found": ("tool zap not found", "Tool  'zap'  not found"),
        "not-available": ("tool zap is not available", "unknown tool: zap"),
        "missing": ("tool zap is missing", "tool zap is missing"),
        "not-found-close": ("tool zapnot found", "tool zapnot found"),
        "quoted-close": ('tool "zap"not found', 'tool "zap"not found'),
        "tool-close": ("toolzap not found", "toolzap not found"),
        "characters": ("unknown tool: a_b.c-9", "unknown tool a_b.c-9!"),
        "underscore": ("unknown tool: a_b", "unknown tool: a_c"),
        "dot": ("unknown tool: a.b", "unknown tool: a.c"),
        "dash": ("unknown tool: a-b", "unknown tool: a-c"),
        "digit": ("unknown tool: a1", "unknown tool: a2"),
        "slash": ("unknown tool: a/b", "unknown tool: a/c"),
        "letters": ("unknown tool: é", "unknown tool: é"),
        "long-s": ("unknown tool: ſ", "unknown tool: ſ"),
        "kelvin": ("unknown tool: a\u212a", "unknown tool: a\u212b"),
        "other-name": ("unknown tool: zap", "unknown tool: zop"),
        "first-rule": ("unknown tool: zap; tool zop not found", "tool zop not found: unknown tool: zap"),
        "first-name": ("unknown tool: zap, unknown tool: zop", "unknown tool: zap"),
        "no-break-space": ("unknown tool\u00a0zap", "tool\u3000zap\u2029not found"),
        "byte-order-mark": ("unknown tool\ufeffzap", "tool\ufeffzap\ufeffis not available"),
        "next-line": ("unknown tool\x85zap", "unknown tool\x85zap"),
        "separator": ("unknown tool\x1fzap", "unknown tool\x1fzap"),
        "two-spaces-inside": ("unknown  tool zap", "unknown  tool zap"),
        "nameless": ("unknown tool: ", "unknown tool: !"),
        "no-error": ("odd", "odd"),
    }
    made = {
        f"unknown-tool-{name}": _one(*(("call", {"n": n}, threw(pair[n % 2])) for n in range(13)))
        for name, pair in pairs.items()
    }
    zap = threw("unknown tool: zap")
    made["unknown-tool-text"] = _one(*(("call", {"n": n}, told("unknown tool: zap")) for n in range(13)))
    made["unknown-tool-of-two"] = _one(*((("call", "talk")[n % 2], {"n": n}, zap) for n in range(26)))
    made["unknown-tool-broken"] = _one(
        *(("call", {"n": n}, zap) for n in range(9)),
        READ,
        *(("call", {"n": n}, zap) for n in range(12)),
    )
    made["unknown-tool-then-found"] = _one(
        *(("call", {"n": n}, zap) for n in range(9)),
        ("call", {"n": 9}, told("x")),
        *(("call", {"n": n}, zap) for n in range(12)),
    )
    made["unknown-tool-in-a-batch"] = [
        ("r", [[("call", {"n": n}, zap)] for n in range(10)] + [[READ, ("call", {"n": 10}, zap)]])
    ]
    return made


def _volatile() -> dict[str, Runs]:
    """Two outputs in turn of commands that all fail: one failure if what differs is volatile."""
    stamp, clock, took, pid, attempt = (
        "2026-01-02T03:04:05.678+09:30",
        "13:14:15.678",
        "12.5 ms",
        "pid 12",
        "retry 34",
    )
    pairs = {
        "stamp": (stamp, "1999-12-31T23:59:58.9-10:45"),
        "stamp-space": (stamp, "2026-01-02 03:04:05Z"),
        "stamp-lower": ("2026-01-02t03:04:05z", "2026-01-02 03:04:05"),
        "stamp-underscore": ("2026-01-02_03:04:05", "2026-01-03_03:04:05"),
        "stamp-plain-offset": ("2026-01-02T03:04:05+0900", "2026-01-02T03:04:05+0800"),
        "stamp-short-offset": ("2026-01-02T03:04:05+09", "2026-01-02T03:04:05+08"),
        "stamp-six": ("2026-01-02T03:04:05.123456", "2026-01-02T03:04:05.9"),
        "stamp-seven": ("2026-01-02T03:04:05.1234567", "2026-01-02T03:04:05.1234568"),
        "stamp-comma": ("2026-01-02T03:04:05,678", "2026-01-02T03:04:05,679"),
        "stamp-long-year": ("12026-01-02T03:04:05", "22026-01-02T03:04:05"),
        "stamp-short-year": ("026-01-02T03:04:05", "027-01-02T03:04:05"),
        "stamp-short-month": ("2026-1-02T03:04:05", "2026-2-02T03:04:05"),
        "stamp-short-day": ("2026-01-2T03:04:05", "2026-01-3T03:04:05"),
        "stamp-short-hour": ("2026-01-02T3:04:05", "2026-01-03T3:04:05"),
        "stamp-short-minute": ("2026-01-02T03:4:05", "2026-01-02T03:5:05"),
        "stamp-short-second": ("2026-01-02T03:04:5", "2026-01-02T03:04:6"),
        "stamp-slashes": ("2026/01/02T03:04:05", "2026/01/03T03:04:05"),
        "stamp-inside": ("x2026-01-02T03:04:05x", "x2025-01-02T03:04:05x"),
        "stamp-twice": (f"{stamp} {stamp}", "2025-01-02T03:04:05 2024-01-02T03:04:05"),
        "clock": (clock, "1:02:03"),
        "clock-six": ("1:02:03.123456", "1:02:03.1"),
        "clock-seven": ("1:02:03.1234567", "1:02:03.1234568"),
        "clock-long-hour": ("123:04:05", "223:04:05"),
        "clock-short-minute": ("1:2:03", "1:3:03"),
        "clock-short-second": ("1:02:3", "1:02:4"),
        "clock-without-seconds": ("12:34", "12:35"),
        "clock-inside": ("x1:02:03x", "x2:03:04x"),
        "clock-then-unit": ("03:04:05 s", "06:07:08 s"),
        "counter": ("attempt 3", "attempt 12"),
        "counter-signs": ("attempt :=# 3", "attempt#4"),
        "counter-words": ("retry: 3", "ATTEMPT=4"),
        "counter-close": ("attempt3", "attempt4"),
        "counter-plural": ("attempts 3", "attempts 4"),
        "counter-inside": ("reattempt 3", "reattempt 4"),
        "counter-dash": ("retry-3", "retry-4"),
        "counter-letter": ("retry x", "retry y"),
        "counter-before-unit": ("attempt 3 ms", "retry 4 ms"),
        "counter-accent": ("éretry 3", "éretry 4"),
        "counter-no-break-space": ("retry\u00a03", "retry\ufeff4"),
        "counter-next-line": ("retry\x853", "retry\x854"),
        "pid": (pid, "pid 7"),
        "pid-signs": ("PID:=# 3", "pid#4"),
        "pid-parent": ("ppid 3", "ppid=4"),
        "pid-or-parent": ("ppid 3", "pid 3"),
        "pid-grandparent": ("pppid 3", "pppid 4"),
        "pid-inside": ("rapid 3", "rapid 4"),
        "pid-close": ("pid3", "pid4"),
        "pid-letter": ("pid x", "pid y"),
        "pid-after-unit": ("pid 3 s", "pid 4 s"),
        "pid-or-parent-after-unit": ("pid 3 s", "ppid 3 s"),
        "pid-next-line": ("pid\x853", "pid\x854"),
        "pid-byte-order-mark": ("pid\ufeff3", "pid\u20284"),
        "counter-without-number": ("retry # x", "retry = x"),
        "pid-without-number": ("pid # x", "pid = x"),
        "took-without-number": ("a s b", "a ms b"),
        "took-close": ("12ms", "7.25ms"),
        "took-two-spaces": ("12  ms", "7  ms"),
        "took-no-break-space": ("12\u00a0ms", "7\ufeffms"),
        "took-next-line": ("12\x85ms", "7\x85ms"),
        "took-comma": ("1,5 s", "2,5 s"),
        "took-word-before": ("a12 s", "a7 s"),
        "took-word-after": ("12 sx", "7 sx"),
        "took-dot": ("12. s", "7. s"),
        "took-accent": ("é12 sé", "é7 sé"),
        "took-long-s": ("12 ſ", "7 ſecondſ"),
        "took-long-s-in-each": ("12 nſ", "7 minuteſ"),
        "took-long-s-in-others": ("12 uſ 1 mſ", "7 hourſ 2 ſecond"),
        "took-long-s-before": ("ſ12 s", "ſ7 s"),
        "took-long-s-after": ("12 sſ", "7 sſ"),
        "took-kelvin-before": ("\u212a12 s", "\u212a7 s"),
        "took-kelvin-after": ("12 s\u212a", "7 s\u212a"),
        "pid-long-s-before": ("ſpid 1", "ſpid 2"),
        "counter-kelvin-before": ("\u212aretry 1", "\u212aretry 2"),
        "stamp-dotless": ("pıd 1", "pıd 2"),
        "took-upper": ("12 MS", "7 Ms"),
        "took-other-unit": ("12 ms", "7 hours"),
        "hash-stamp": (stamp, "#"),
        "hash-clock": (clock, "#"),
        "hash-counter": (attempt, "#"),
        "hash-took": (took, "#"),
        "hash-pid": (pid, "#"),
        "arabic-stamp": ("٢٠٢٦-01-02T03:04:05", "٢٠٢٧-01-02T03:04:05"),
        "arabic-clock": ("١:02:03", "٢:02:03"),
        "arabic-counter": ("retry ١", "retry ٢"),
        "arabic-took": ("١ s", "٢ s"),
        "arabic-pid": ("pid ١", "pid ٢"),
    }
    for unit in ("ns", "us", "ms", "s", "second", "seconds", "minute", "minutes", "hour", "hours"):
        pairs[f"took-{unit}"] = (f"12 {unit}", f"7.5{unit}")
    for unit in ("sec", "min", "m", "h", "hrs", "d", "day", "secondss"):
        pairs[f"took-{unit}"] = (f"12 {unit}", f"7 {unit}")
    for name, whole in {"stamp": stamp, "clock": clock, "took": took, "pid": pid, "retry": attempt}.items():
        for place, sign in enumerate(whole):
            if sign.isdecimal():
                pairs[f"{name}-letter-at-{place}"] = tuple(f"{whole[:place]}{x}{whole[place + 1 :]}" for x in "xy")
    return {
        f"volatile-{name}": _failing(failed(f"died: {one}, so"), failed(f"died: {other}, so"))
        for name, (one, other) in pairs.items()
    } | {"volatile-in-one-call": _alternating("exec", {"c": 1}, failed("pid 1"), failed("pid 2"))}


def _envelopes() -> dict[str, Runs]:
    """Two texts in turn that are one if the ids of their envelopes are ignored."""
    begin, end = "<<<EXTERNAL_UNTRUSTED_CONTENT", "<<<END_EXTERNAL_UNTRUSTED_CONTENT"

    def wrap(
        nonce: str, body: str = "b", *, last: str | None = None, depth: int = 1, inner: int | None = None
    ) -> str:
        def mark(name: str, nonce: str, backslashes: int) -> str:
            quote = "\\" * backslashes + '"'
            return f"{name} id={quote}{nonce}{quote}>>>"

        return f"{mark(begin, nonce, depth - 1)}{body}{mark(end, last or nonce, (inner or depth) - 1)}"

    a, b = "0123456789abcdef", "fedcba9876543210"
    pairs = {
        "plain": (wrap(a), wrap(b)),
        "constant": (wrap(a), wrap("0" * 16)),
        "body": (wrap(a, "b"), wrap(a, "c")),
        "ids-differ": (wrap(a, last=b), wrap(b, last=a)),
        "last-differs": (wrap(a, last=b), wrap(a, last="0" * 16)),
        "upper": (wrap(a.upper()), wrap(b.upper())),
        "short": (wrap(a[1:]), wrap(b[1:])),
        "long": (wrap(a + "0"), wrap(b + "0")),
        "letter": (wrap(a[:-1] + "g"), wrap(b[:-1] + "g")),
        "two": (wrap(a) + "x" + wrap(b), wrap(b) + "x" + wrap(a)),
        "two-one-broken": (wrap(a) + wrap(a, last=b), wrap(b) + wrap(a, last=b)),
        "around": ("x " + wrap(a) + " y", "x " + wrap(b) + " y"),
        "around-differs": ("x " + wrap(a) + " y", "x " + wrap(b) + " z"),
        "nested": (wrap(a, wrap(b)), wrap(b, wrap(a))),
        "nested-inner": (wrap(a, wrap(a)), wrap(a, wrap(b))),
        "start-inside": (wrap(a, begin), wrap(b, begin)),
        "end-inside": (wrap(a, end), wrap(b, end)),
        "close-start-inside": (wrap(a, begin + "S"), wrap(b, begin + "S")),
        "no-end": (wrap(a)[:60], wrap(b)[:60]),
        "end-alone": (wrap(a)[50:], wrap(b)[50:]),
        "end-first": (wrap(b)[51:] + wrap(a), wrap(b)[51:] + wrap(b)),
        "no-id": (f"{begin}>>>b{end}>>>{a}", f"{begin}>>>b{end}>>>{b}"),
        "two-signs": (wrap(a).replace("<<<", "<<"), wrap(b).replace("<<<", "<<")),
        "no-close": (wrap(a).replace(">>>", ">>"), wrap(b).replace(">>>", ">>")),
        "space": (wrap(a).replace(" id", "  id"), wrap(b).replace(" id", "  id")),
        "lower": (wrap(a).lower(), wrap(b).lower()),
        "quotes-apart": (wrap(a).replace('">>>', '\\">>>'), wrap(b).replace('">>>', '\\">>>')),
        "depths-apart": (wrap(a, depth=2, inner=4), wrap(b, depth=2, inner=4)),
        "depths-apart-first-plain": (wrap(a, depth=1, inner=2), wrap(b, depth=1, inner=2)),
        "line": (wrap(a, "b\nc"), wrap(b, "b\nc")),
    }
    for depth in (2, 3, 4, 5, 6, 7, 8, 16):
        pairs[f"depth-{depth}"] = (wrap(a, depth=depth), wrap(b, depth=depth))
        for backslashes in (0, 1, 2, 3, 5, 7, 15):
            body = "q" + "\\" * backslashes + '"q'
            pairs[f"depth-{depth}-quote-{backslashes}"] = (wrap(a, body, depth=depth), wrap(b, body, depth=depth))
    pairs["quote-after"] = (wrap(a, depth=2) + '"q', wrap(b, depth=2) + '"q')
    pairs["quote-before"] = ('"q' + wrap(a, depth=2), '"q' + wrap(b, depth=2))
    pairs["plain-quote"] = (wrap(a, 'q"q\\"q'), wrap(b, 'q"q\\"q'))
    pairs["second-quote"] = (wrap(a, 'q\\"q"', depth=2), wrap(b, 'q\\"q"', depth=2))
    made = {f"envelope-{n}": _alternating("fetch", {"u": 1}, told(x), told(y)) for n, (x, y) in pairs.items()}
    x, y = wrap(a), wrap(b)
    for name, tool, arguments, one, other in (
        ("error", "fetch", {}, threw(x), threw(y)),
        ("value", "fetch", {}, {"result": x}, {"result": y}),
        ("details", "fetch", {}, told("t", page=[x]), told("t", page=[y])),
        ("key", "fetch", {}, told("t", page={x: 1}), told("t", page={y: 1})),
        ("keys-meet", "fetch", {}, told("t", page={x: 1, y: 2}), told("t", page={y: 2})),
        ("keys-meet-in-turn", "fetch", {}, told("t", page={x: 1, y: 2}), told("t", page={y: 2, x: 1})),
        ("keys-meet-crossed", "fetch", {}, told("t", page={x: 1, y: 2}), told("t", page={x: 2, y: 1})),
        ("keys-move", "fetch", {}, told("t", page={x: 1, "=": 2}), told("t", page={"=": 2, y: 1})),
        ("running", "exec", {}, told("t", status="running", tail=x), told("t", status="running", tail=y)),
        ("completed", "exec", {}, ran(x), ran(y)),
        ("poll", "process", {"action": "poll"}, told(x), told(y)),
        ("send", "sessions_send", {}, told("t", m=x), told("t", m=y)),
        ("approval", "exec", {}, *(told("t", status="approval-pending", reason=r) for r in (x, y))),
    ):
        made[f"envelope-in-{name}"] = _alternating(tool, arguments, one, other)
    made["envelope-in-failure"] = _failing(failed(x), failed(y))
    made["envelope-in-arguments"] = _one(*(("fetch", {"u": (x, y)[n % 2]}, told("x")) for n in range(24)))
    return made


def _configured() -> dict[str, tuple[dict[str, Any], Runs]]:
    """Cases with thresholds and switches, which 2026.6 reads."""
    polls = [("process", {"action": "poll"}, told("x"))] * 32
    swings = [READ, LS] * 16
    return {
        "switch-generic": ({"detectors": {"genericRepeat": False}}, _one(*[READ] * 32)),
        "switch-generic-polls": ({"detectors": {"genericRepeat": False}}, _one(*polls)),
        "switch-poll": ({"detectors": {"knownPollNoProgress": False}}, _one(*polls)),
        "switch-poll-swings": ({"detectors": {"knownPollNoProgress": False}}, _one(*swings)),
        "switch-ping-pong": ({"detectors": {"pingPong": False}}, _one(*swings)),
        "switch-all": (
            {"detectors": {"genericRepeat": False, "knownPollNoProgress": False, "pingPong": False}},
            _one(*[READ] * 34),
        ),
        "breaker-over-warnings": ({"globalCircuitBreakerThreshold": 21, "criticalThreshold": 20}, _one(*swings)),
        "ping-pong-by-history": ({"historySize": 12, "criticalThreshold": 13}, _one(*swings)),
        "ping-pong-out-of-history": ({"historySize": 12, "criticalThreshold": 14}, _one(*swings)),
        "unknown-tool-by-history": (
            {"historySize": 4, "unknownToolThreshold": 4},
            _one(*(("call", {"n": n}, threw("unknown tool: zap")) for n in range(6))),
        ),
        "unknown-tool-out-of-history": (
            {"historySize": 4, "unknownToolThreshold": 5},
            _one(*(("call", {"n": n}, threw("unknown tool: zap")) for n in range(8))),
        ),
        "window-of-one": ({"postCompactionGuard": {"windowSize": 1}}, [("r", [[READ], "compaction", [READ], [LS]])]),
    }
