"""Reports built by hand, one for each thing that a report has to show."""

from __future__ import annotations

from collections.abc import Callable

from loopscan.events import Problem, Recorded, Where
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.policy import Note, Origin, Policy
from loopscan.report import UNREADABLE, Report, RunReport, Saved, SessionReport, Skipped, SourceReport, Step
from loopscan.rulesets import ruleset

START = 1_788_256_800.0  # 2026-09-01 10:00:00 UTC
PREVIEW = '{"path":"notes.txt"}'


def policy(name: str = "2026.9", enabled: bool | None = True, notes: tuple[Note, ...] = ()) -> Policy:
    rules = ruleset(name)
    origins = {"enabled": Origin("default", detail="no configuration: shows what would have fired")}
    if enabled is not True:
        origins = {"enabled": Origin("file", "openclaw.json", "tools.loopDetection.enabled")}
    return Policy(
        ruleset=rules,
        enabled=enabled,
        history_size=rules.history_size,
        warning=rules.warning,
        critical=rules.critical,
        breaker=rules.breaker,
        unknown_tool=rules.unknown_tool,
        guard_window=rules.guard_window,
        origins=origins,
        notes=notes,
    )


def mark(kind: Kind, batch: int, count: int | None = None, **fields: object) -> Mark:
    critical = {Kind.WARNING: Level.WARNING, Kind.GUARD_ARMED: Level.INFO}
    values: dict[str, object] = {
        "run": "r0",
        "kind": kind,
        "detector": Detector.GENERIC_REPEAT,
        "level": critical.get(kind, Level.CRITICAL),
        "count": count,
        "threshold": {Kind.WARNING: 10, Kind.GUARD_ARMED: 3}.get(kind, 20),
        "batch": batch,
        "call": batch,
        "tool": "read",
        "tool_call_id": f"call_{batch}",
        "where": Where(line=batch * 2 + 3, entry=f"e{batch}", time=START + batch),
        "signature": "5a1e",
        "outcome": "77c0",
        "message": f"read was called {count} times with the same arguments",
    }
    values.update(fields)
    return Mark(**values)  # type: ignore[arg-type]


def calls(batch: int, times: int = 1, **fields: object) -> Step:
    values: dict[str, object] = {"tool": "read", "preview": PREVIEW, "times": times}
    values.update(fields)
    return Step("calls", batch=batch, **values)  # type: ignore[arg-type]


def shown(found: Mark) -> Step:
    return Step("mark", batch=found.batch, mark=found)


def recorded(kind: str, batch: int, **fields: object) -> Recorded:
    values: dict[str, object] = {
        "run": "r0",
        "where": Where(line=batch * 2 + 4),
        "kind": kind,
        "tool_call_id": f"call_{batch}",
    }
    values.update(fields)
    return Recorded(**values)  # type: ignore[arg-type]


def report(*sessions: SessionReport, under: Policy | None = None, mode: str = "enforce") -> Report:
    paths = dict.fromkeys(session.source for session in sessions)
    sources = [
        SourceReport(
            path,
            "openclaw",
            bytes=4096,
            lines=90,
            sessions=sum(session.source == path for session in sessions),
            calls=sum(session.calls for session in sessions if session.source == path),
        )
        for path in paths
    ]
    return Report("0.1.0", under or policy(), mode, "run", sources, list(sessions))


def session(*runs: RunReport, name: str = "s-1", **fields: object) -> SessionReport:
    values: dict[str, object] = {
        "source": f"sessions/{name}.jsonl",
        "session": name,
        "agent": "main",
        "model": "gpt-5",
        "started": START,
        "ended": START + 312.5,
        "calls": sum(run.calls for run in runs),
        "runs": list(runs),
    }
    values.update(fields)
    return SessionReport(**values)  # type: ignore[arg-type]


def run(*steps: Step, calls: int, batches: int | None = None, **fields: object) -> RunReport:
    marks = [step.mark for step in steps if step.mark is not None]
    values: dict[str, object] = {
        "run": 0,
        "run_id": "7d0f",
        "calls": calls,
        "batches": calls if batches is None else batches,
    }
    values.update(fields)
    return RunReport(marks=marks, steps=list(steps), **values)  # type: ignore[arg-type]


def one_warning() -> Report:
    warning = mark(Kind.WARNING, 10, 10)
    return report(session(run(calls(0, 10), shown(warning), calls(10), calls(11, tool="write"), calls=12)))


def block_and_end() -> Report:
    """2026.9: a batch of three is vetoed, the next critical verdict ends the run."""
    first = mark(Kind.BLOCK, 20, 20, blocked_calls=3)
    second = mark(Kind.BLOCK, 21, 21, blocked_calls=1)
    end = mark(Kind.RUN_END, 21, 21, message="the second critical loop of this run: the run ends here")
    steps = (
        calls(0, 10),
        shown(mark(Kind.WARNING, 10, 10)),
        calls(10, 10),
        shown(first),
        calls(20, became="blocked"),
        calls(20, 2, tool="exec", preview='{"command":"ls"}', became="blocked"),
        shown(second),
        shown(end),
        calls(21, became="blocked"),
        Step("elided", batch=22, times=20),
    )
    saving = Saved(calls=20, tokens=12_345, cost_usd=0.4131, seconds=192.0)
    return report(session(run(*steps, calls=44, batches=42, outcome="run_end", not_reached=saving)))


def blocks_in_a_row() -> Report:
    """2026.6: every further call is vetoed at the same count, and the run goes on."""
    steps = [calls(0, 10), shown(mark(Kind.WARNING, 10, 10)), calls(10, 10)]
    for batch in range(20, 40):
        steps += [calls(batch, became="blocked"), shown(mark(Kind.BLOCK, batch, 20, blocked_calls=1))]
    return report(session(run(*steps, calls=40)), under=policy("2026.6"))


def all_clean(sessions: int = 500) -> Report:
    return report(*(session(run(calls=7), name=f"s-{index}") for index in range(sessions)))


def unknown_tool() -> Report:
    stop = mark(
        Kind.UNKNOWN_TOOL_STOP,
        10,
        11,
        detector=Detector.UNKNOWN_TOOL_GUARD,
        threshold=10,
        tool="frobnicate",
        call=None,
        tool_call_id=None,
        message="11 messages in a row asked for frobnicate, which does not exist: the calls are taken out",
    )
    steps = (calls(0, 10, tool="frobnicate", preview=None, became="absent"), shown(stop))
    live = [Recorded("r0", Where(line=24), "unknown_tool_stop", tool="frobnicate")]
    return report(session(run(*steps, calls=10, batches=0, outcome="unknown_tool_stop"), recorded=live))


def compaction() -> Report:
    armed = mark(
        Kind.GUARD_ARMED,
        5,
        detector=Detector.COMPACTION_LOOP,
        tool=None,
        call=None,
        message="compaction within the run: the next 3 outcomes are watched",
    )
    abort = mark(
        Kind.COMPACTION_ABORT,
        7,
        3,
        detector=Detector.COMPACTION_LOOP,
        threshold=3,
        lossy=True,
        message="after the compaction read came back with the same outcome 3 times: the run is aborted",
    )
    steps = (
        calls(0, 5),
        Step("note", batch=5, text="compaction within the run"),
        shown(armed),
        calls(5, 3),
        shown(abort),
    )
    saving = Saved(calls=4, tokens=900, seconds=20.0)
    return report(session(run(*steps, calls=12, outcome="compaction_abort", not_reached=saving)))


def live_verdicts() -> Report:
    """One verdict agrees (on three siblings), one differs, one has no mark, one mark has no verdict."""
    first = mark(Kind.BLOCK, 20, 20, blocked_calls=3)
    second = mark(Kind.BLOCK, 30, 20)
    third = mark(Kind.BLOCK, 45, 21)
    on_record = [
        recorded("block", 20, detector="generic_repeat", count=20),
        recorded("block", 20, detector="generic_repeat", count=20, tool_call_id="sibling_1"),
        recorded("block", 20, detector="generic_repeat", count=20, tool_call_id="sibling_2"),
        recorded("block", 30, detector="ping_pong", count=24),
        recorded("warning", 41, tool="exec", count=10),
    ]
    lone = Step("recorded", batch=41, recorded=on_record[4])
    steps = (
        calls(0, 20),
        shown(first),
        *(Step("recorded", batch=20, recorded=verdict) for verdict in on_record[:3]),
        calls(21, 9),
        shown(second),
        Step("recorded", batch=30, recorded=on_record[3]),
        calls(31, 10),
        lone,
        calls(41, 4),
        shown(third),
    )
    return report(session(run(*steps, calls=49, batches=46), recorded=on_record))


def ping_pong() -> Report:
    steps: list[Step] = []
    for batch in range(0, 20, 2):
        steps += [calls(batch, preview='{"path":"a.txt"}'), calls(batch + 1, preview='{"path":"b.txt"}')]
    warning = mark(Kind.WARNING, 20, 20, detector=Detector.PING_PONG, tool="read", paired_tool="read")
    return report(session(run(*steps, shown(warning), calls=21)))


HOSTILE = (
    "\x1b[31;1mred\x1b[0m",
    "[bold red]markup[/bold red]",
    "\u202egnp.exe\u2066x",
    ":smile: \U000e0041\u200b\ufe0f",
    "x" * 10_000,
    "שלום עולם",
    "🙂👩‍👩‍👧",
    "読み取り工具" * 20,
    "a\nb\tc\rd\x00\x7f\x9b31m",
    "\ud800lone",
    "e" + "\u0301" * 30,
)


def hostile() -> Report:
    sessions = []
    for index, text in enumerate(HOSTILE):
        found = mark(
            Kind.WARNING,
            10,
            10,
            tool=text,
            paired_tool=text,
            tool_call_id=text,
            where=Where(line=1, entry=text),
            message=f"{text} was called 10 times",
        )
        live = [recorded("warning", 3, tool=text, detector=text, tool_call_id=text)]
        steps = (
            calls(0, 9, tool=text, preview=text),
            Step("note", batch=9, text=text),
            Step("recorded", batch=9, recorded=live[0]),
            shown(found),
        )
        sessions.append(
            session(run(*steps, calls=10, run_id=text), name=f"{index}{text}", agent=text, model=text, recorded=live)
        )
    made = report(*sessions, under=policy(notes=(Note("ignored", "x", HOSTILE[0]),)))
    for line, text in enumerate(HOSTILE):
        made.sources[0].add_problem(Problem(line, "malformed-json", text))
    return made


def silenced() -> Report:
    notes = (
        Note(
            "repaired", "warningThreshold", "openclaw.json: 0 is not a positive whole number: the default 10 instead"
        ),
        Note("silenced", "enabled", "enabled is not set in openclaw.json: the rolling detectors are silent"),
    )
    return report(session(run(calls=40)), under=policy(enabled=None, notes=notes))


def problems() -> Report:
    made = report(session(run(calls=3)), session(run(calls=3), name="s-2"))
    for line in range(3, 12):
        made.sources[0].add_problem(Problem(line, "malformed-json", "not a JSON object"))
    made.sources[1].add_problem(Problem(0, UNREADABLE, "permission denied"))
    made.skipped.append(Skipped("sessions/notes.md", "not a transcript"))
    return made


SAMPLES: dict[str, Callable[[], Report]] = {
    "one_warning": one_warning,
    "block_and_end": block_and_end,
    "blocks_in_a_row": blocks_in_a_row,
    "all_clean": all_clean,
    "unknown_tool": unknown_tool,
    "compaction": compaction,
    "live_verdicts": live_verdicts,
    "ping_pong": ping_pong,
    "hostile": hostile,
    "silenced": silenced,
    "problems": problems,
}
