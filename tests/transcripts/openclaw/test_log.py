"""Logs: the verdicts of the live engine, however the lines are written, and nothing else."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.events import Event, Pause, Problem, Recorded, SessionEnded, SessionResumed, SessionStarted
from loopscan.transcripts.openclaw.log import MOST_WAITING, UNKNOWN, LogReader
from loopscan.transcripts.openclaw.logline import Names, read_line
from loopscan.transcripts.reader import Confidence, Source, recognise
from tests.transcripts.build import Transcript
from tests.transcripts.checks import account, check, of

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "openclaw-log"
SHARED = Path(__file__).resolve().parents[4] / "shared"
KEY = "agent:pier:main"


def loop(session: str = "s1", **more: Any) -> str:
    """Return the text of a verdict."""
    values = {
        "key": KEY,
        "tool": "read",
        "level": "warning",
        "action": "warn",
        "detector": "generic_repeat",
        "count": 10,
    }
    values |= more
    return (
        "tool loop: sessionId={session} sessionKey={key} tool={tool} level={level} action={action} "
        'detector={detector} count={count} message="WARNING: again \\"and again\\"."'
    ).format(session=session, **values)


PERSISTED = "post-compaction loop persisted: tool=read repeated 3 times with identical args+result post-compaction"


def lane(key: str = KEY, count: int = 3) -> str:
    error = f"CRITICAL: tool read repeated {count} times with identical results after auto-compaction."
    return f'lane task error: lane=session:{key} durationMs=12 error="PostCompactionLoopPersistedError: {error}"'


def console(text: str, subsystem: str = "diagnostic", time: str = "2026-06-01T12:00:01.500+02:00 ") -> bytes:
    return f"{time}[{subsystem}] {text}\n".encode()


def record(text: str, **more: Any) -> bytes:
    meta = {"date": "2026-06-01T10:00:01.500Z", "parentNames": ["openclaw"]}
    return json.dumps({"0": '{"subsystem":"diagnostic"}', "1": text, "_meta": meta, **more}).encode() + b"\n"


def source_of(data: bytes, **options: Any) -> Source:
    return Source("gateway.log", partial(io.BytesIO, data), **options)


def read(*lines: bytes) -> list[Event]:
    source = source_of(b"".join(lines))
    events = list(LogReader().read(source))
    check(events)
    account(source)
    return events


def recorded(*lines: bytes) -> list[Recorded]:
    return of(Recorded, read(*lines))


def sure(*lines: bytes) -> Confidence:
    return LogReader().recognise(b"".join(lines), "x")


# --- the forms of a line


FORMS = {
    "console": console(loop()),
    "after other words": b"Jun 01 12:00:01 pier openclaw[71]: " + console(loop()),
    "as JSON of the log file": record(loop()),
    "as JSON of the console": json.dumps(
        {"time": "2026-06-01T12:00:01.500+02:00", "level": "warn", "subsystem": "diagnostic", "message": loop()}
    ).encode(),
    "in a container's log": json.dumps({"log": console(loop()).decode(), "stream": "stderr"}).encode(),
    "as a diagnostic event": json.dumps(
        {"type": "tool.loop", "ts": 1_780_308_001_500, "sessionId": "s1", "sessionKey": KEY, "toolName": "read"}
        | {"level": "warning", "action": "warn", "detector": "generic_repeat", "count": 10, "message": "again"}
    ).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_verdict_is_read_in_every_form_of_a_line(form: str) -> None:
    events = read(FORMS[form])
    assert [type(event) for event in events] == [SessionStarted, Recorded, SessionEnded]
    (started,), (found,) = of(SessionStarted, events), of(Recorded, events)
    assert (started.session, started.agent) == ("s1", "pier")
    assert (found.run, found.kind, found.tool, found.detector, found.count) == (
        *("", "warning", "read", "generic_repeat", 10),
    )
    assert found.where.time == pytest.approx(1_780_308_001.5)
    assert sure(FORMS[form]) is Confidence.SURE


def test_colours_do_not_matter() -> None:
    plain, esc = console(loop(level="critical", action="block", count=20)).decode(), "\x1b"
    time, tag, text = plain.rstrip().split(" ", 2)
    coloured = f"{esc}[90m{time}{esc}[39m {esc}[31m{tag}{esc}[39m {esc}[31m{text}{esc}[39m\n"
    assert recorded(coloured.encode()) == recorded(plain.encode())
    assert recorded(coloured.encode())[0].kind == "block"


@pytest.mark.parametrize("time", ["", "12:00:01 ", "2026-06-01T12:00:01 "])
def test_a_time_without_its_date_or_zone_is_none(time: str) -> None:
    (found,) = recorded(console(loop(), time=time))
    assert found.where.time is None


def test_a_pair_of_tools_names_the_one_that_was_called() -> None:
    text = loop(detector="ping_pong").replace(" message=", " pairedTool=write message=")
    (found,) = recorded(console(text))
    assert (found.tool, found.detector) == ("read", "ping_pong")


@pytest.mark.parametrize(
    "line",
    [
        record("somebody wrote: " + loop()),
        console('a hook said "' + loop() + '"'),
        console("the log says: " + loop()),
        json.dumps({"type": "message", "message": {"role": "user", "content": loop()}}).encode(),
        json.dumps([loop()]).encode(),
    ],
)
def test_a_verdict_that_is_quoted_is_none(line: bytes) -> None:
    assert recorded(line) == []
    assert sure(line) is not Confidence.SURE or b"_meta" in line


@pytest.mark.parametrize("line", [console(loop()[:80]), b'{"type": "tool.loop", "toolName": "read"}\n'])
def test_a_verdict_that_is_cut_off_is_a_problem(line: bytes) -> None:
    events = read(line)
    assert [problem.kind for problem in of(Problem, events)] == ["malformed-entry"]
    assert len(events) == 1


def test_other_lines_are_counted_and_cost_nothing() -> None:
    lines = b"".join(console(f"res ok {number} sessionKey={KEY}", "ws") for number in range(1000))
    source = source_of(lines + b"\n" + console(loop()) + lines)
    events = list(LogReader().read(source))
    assert len(of(Recorded, events)) == 1
    assert source.unused == {"log line": 2000}
    assert source.used == {"tool loop": 1}
    assert (source.lines, source.blank) == (2002, 1)


def test_a_line_that_is_too_long_is_named_and_passed_over() -> None:
    source = source_of(b"x" * 3000 + b"\n" + console(loop()), max_line=1000)
    events = list(LogReader().read(source))
    account(source)
    assert [problem.kind for problem in of(Problem, events)] == ["line-too-long"]
    assert len(of(Recorded, events)) == 1


def test_a_log_that_is_followed_pauses_at_its_end() -> None:
    reading = LogReader().read(source_of(console(loop()), follow=True))
    assert [type(next(reading)) for _ in range(3)] == [SessionStarted, Recorded, Pause]


# --- sessions


def test_verdicts_are_told_within_their_sessions() -> None:
    events = read(console(loop("s1")), console(loop("s2")), console(loop("s2")), console(loop("s1", count=20)))
    assert [type(event) for event in events[:6]] == [
        *(SessionStarted, Recorded, SessionStarted, Recorded, Recorded, SessionResumed)
    ]
    assert [event.session for event in of(SessionStarted, events)] == ["s1", "s2"]
    assert len(of(SessionEnded, events)) == 2


def test_a_session_without_an_id_goes_by_its_key_or_by_the_id_that_the_key_had() -> None:
    assert of(SessionStarted, read(console(loop("unknown"))))[0].session == KEY
    assert of(SessionStarted, read(console(loop("unknown", key="unknown"))))[0].session == UNKNOWN
    events = read(console(loop("s1")), console(loop("unknown")))
    assert [event.session for event in of(SessionStarted, events)] == ["s1"]


@pytest.mark.parametrize(
    "named",
    [
        console(loop("s1")),
        console(f"message queued: sessionId=s1 sessionKey={KEY} source=x"),
        console(f"[context-overflow-diag] sessionKey={KEY} provider=x sessionFile=/home/a/s1.jsonl diagId=x"),
    ],
)
def test_the_session_of_a_compaction_loop_is_that_of_the_lane_that_failed(named: bytes) -> None:
    guard = console(PERSISTED, "agents/post-compaction-guard")
    events = read(named, guard, console(lane()).replace(b"PostCompactionLoopPersistedError: ", b""))
    assert {event.session for event in of(SessionStarted, events)} == {"s1"}
    aborts = [each for each in of(Recorded, events) if each.kind == "compaction_abort"]
    assert [(each.tool, each.detector, each.count) for each in aborts] == [("read", "compaction_loop_persisted", 3)]


def test_a_compaction_loop_goes_by_its_key_or_by_nothing_where_the_log_does_not_say_more() -> None:
    guard = console(PERSISTED, "agents/post-compaction-guard")
    assert of(SessionStarted, read(guard, console(lane())))[0].session == KEY
    assert of(SessionStarted, read(guard, console(lane(count=4))))[0].session == KEY
    events = read(guard)
    assert [event.session for event in of(SessionStarted, events)] == [UNKNOWN]
    assert len(of(Recorded, read(guard * (MOST_WAITING + 3)))) == MOST_WAITING + 3


# --- recognising


def test_a_log_without_a_verdict_is_recognised_by_its_lines() -> None:
    quiet = console("ready", "gateway", time="12:00:01 ")
    assert sure(quiet) is Confidence.NO
    assert sure(quiet, console("two jobs", "cron", time="12:00:02 ")) is Confidence.LIKELY
    assert sure(console("embedded run start", "agent/embedded", time="")) is Confidence.LIKELY
    assert sure(record("ready")) is Confidence.SURE
    assert (
        sure(json.dumps({"time": "x", "level": "info", "subsystem": "ws", "message": "y"}).encode())
        is Confidence.LIKELY
    )


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"[main] starting\n[worker] ready\n",
        b"2026-06-01T12:00:01Z [info] gateway up\n2026-06-01T12:00:02Z [warn] slow\n",
        b'{"time": "x", "level": "info", "msg": "hello"}\n',
        Transcript().bytes(),
        b"\xff\xfe\x00\n{",
    ],
)
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert sure(head) is Confidence.NO


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.text(max_size=60).map(str.encode),
            st.sampled_from([console(loop()), console(PERSISTED), console(lane()), record(loop()), *FORMS.values()]),
            st.tuples(st.sampled_from([loop(), PERSISTED, lane()]), st.integers(0, 200)).map(
                lambda cut: console(cut[0][: cut[1]])
            ),
        ),
        max_size=8,
    )
)
def test_whatever_is_in_the_lines_nothing_raises_and_every_line_is_accounted_for(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    LogReader().recognise(data, "x")
    source = source_of(data)
    check(list(LogReader().read(source)))
    account(source)


def test_a_hostile_line_takes_no_time() -> None:
    """Each of these would be slow if a pattern tried every way to match it."""
    for text in (
        "[a] " * 5000,
        "tool loop: sessionId=" + "a tool= " * 5000,
        "sessionKey=x " * 5000 + "sessionFile=" * 500,
    ):
        assert read_line(console(text)) is None or text.startswith("tool loop")
        LogReader().recognise(text.encode(), "x")


# --- fixtures and recordings


@pytest.mark.parametrize("name", ["gateway.log", "file.log", "diagnostics.jsonl"])
def test_the_fixtures_tell_the_same_three_verdicts(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    assert sure(data) is Confidence.SURE
    assert [(each.kind, each.count) for each in recorded(data)] == [("warning", 10), ("block", 20), ("block", 20)]
    assert len({each.where.time for each in recorded(data)}) == 3


def test_a_quiet_log_tells_nothing() -> None:
    data = (FIXTURES / "quiet.log").read_bytes()
    assert sure(data) is Confidence.LIKELY
    assert read(data) == []


LOGS = sorted((SHARED / "recorded").glob("*/*/loop-log.txt"))


@pytest.mark.skipif(not LOGS, reason="no recordings beside the checkout")
def test_every_verdict_of_the_recorded_logs_is_told() -> None:
    for path in LOGS:
        data = path.read_bytes()
        found = recorded(data)
        assert sum(each.kind != "compaction_abort" for each in found) == data.count(b"] tool loop: ")
        assert sum(each.kind == "compaction_abort" for each in found) == data.count(b"loop persisted: ")
        assert not found or sure(data) is Confidence.SURE


REAL = sorted(path for path in (SHARED / "real").glob("*/*") if path.is_file())


@pytest.mark.skipif(not REAL, reason="no recordings beside the checkout")
def test_no_transcript_is_taken_for_a_log() -> None:
    for path in REAL:
        with path.open("rb") as stream:
            head = stream.read(1 << 16)
        assert sure(head) is Confidence.NO
        taken = recognise(head, str(path))
        assert taken is None or taken.name != "openclaw-log"


def test_a_session_is_known_by_its_file_near_its_key() -> None:
    line = "x sessionKey=agent:main:a cwd=/y sessionFile=/home/u/agents/main/sessions/s-1.jsonl done"
    assert read_line(line.encode()) == Names("s-1", "agent:main:a")
    assert read_line(b"sessionKey=k sessionFile=/no/session/here") is None
    assert read_line(b"sessionKey=k " + b"y" * 500 + b" sessionFile=/s/1.jsonl") is None
