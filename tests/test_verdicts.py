"""Verdicts of a log are brought to their sessions, once each, and those of other sessions are handed back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Recorded, Where
from loopscan.marks import Detector, Kind
from loopscan.replayer import replay
from loopscan.report import RunReport, SessionReport, Step, agreement
from loopscan.rulesets import ruleset
from loopscan.verdicts import Attached, attach, stands_apart
from tests.reports.samples import START, mark, run, session, shown

RULES = ruleset("2026.6")
ROOT = Path(__file__).parents[1]
RECORDED = ROOT.parent / "shared" / "recorded"
EXPECTED = RECORDED / "EXPECT.jsonl"


def told(kind: str = "block", count: int = 20, time: float | None = None, **fields: Any) -> Recorded:
    """Return a verdict of a log; ``time`` is after the start of the session."""
    where = Where(1, None, None if time is None else START + time)
    values: dict[str, Any] = {"tool": "read", "detector": "generic_repeat", **fields}
    return Recorded("", where, kind, count=count, **values)


def shows(kind: str = "block", count: int | None = 20, time: float = 0, **fields: Any) -> Recorded:
    """Return a verdict of a transcript."""
    values: dict[str, Any] = {"tool": "read", "tool_call_id": "c1", "detector": "generic_repeat", **fields}
    return Recorded("r0", Where(3, "e1", START + time), kind, count=count, **values)


def log(*verdicts: Recorded, name: str = "s-1", agent: str | None = None) -> SessionReport:
    """Return what a log gives of a session."""
    return session(name=name, source="gateway.log", agent=agent, started=None, ended=None, recorded=list(verdicts))


def attached(*sessions: SessionReport) -> Attached:
    return attach(sessions, RULES)


def test_verdicts_come_to_the_session_with_their_id() -> None:
    one, two = session(run(calls=3), name="s-1"), session(run(calls=3), name="s-2")
    found = attached(one, log(told()), two, log(told("warning", 10), name="s-2"))
    assert [each.session for each in found.sessions] == ["s-1", "s-2"]
    assert [[each.kind for each in each.recorded] for each in found.sessions] == [["block"], ["warning"]]
    assert found.elsewhere == []
    assert one.recorded == []


def test_verdicts_of_sessions_that_are_not_here_are_handed_back() -> None:
    found = attached(session(run(calls=3)), log(told(), told(count=21), name="s-9"))
    assert [each.count for each in found.elsewhere] == [20, 21]
    assert [each.session for each in found.apart] == ["s-9"]
    assert found.sessions[0].recorded == []


def test_a_session_with_calls_or_without_verdicts_does_not_stand_apart() -> None:
    assert stands_apart(log(told()))
    for other in (log(), session(run(calls=1), recorded=[told()]), log(shows())):
        assert not stands_apart(other)


def test_a_verdict_that_the_transcript_has_is_not_added_again() -> None:
    known = session(run(calls=3), recorded=[shows(time=50)])
    found = attached(known, log(told(time=50.2)))
    assert found.sessions[0].recorded == known.recorded


def test_what_the_log_says_more_of_a_verdict_is_kept() -> None:
    """The note that 2026.9 leaves in a result names no detector."""
    known = session(run(calls=3), recorded=[shows("warning", 10, detector=None, tool="Read")])
    (merged,) = attached(known, log(told("warning", 10))).sessions[0].recorded
    assert (merged.run, merged.tool_call_id, merged.detector) == ("r0", "c1", "generic_repeat")


@pytest.mark.parametrize(
    "other",
    [
        told("warning", 20),
        told(count=21),
        told(tool="write"),
        told(detector="ping_pong"),
        told(time=5000),
    ],
)
def test_another_verdict_is_added(other: Recorded) -> None:
    known = session(run(calls=3), recorded=[shows()])
    assert attached(known, log(other)).sessions[0].recorded == [*known.recorded, other]


def test_the_same_verdict_twice_in_a_log_is_two_and_two_logs_of_one_gateway_are_one() -> None:
    known = session(run(calls=3), recorded=[shows(time=10), shows(time=12)])
    lines = [told(time=10.1), told(time=12.1), told(time=14.1)]
    for logs in ((log(*lines),), (log(*lines), log(*lines))):
        assert len(attached(known, *logs).sessions[0].recorded) == 3


@given(st.lists(st.tuples(st.sampled_from(["block", "warning"]), st.integers(1, 3), st.floats(0, 900)), max_size=9))
def test_a_log_of_what_the_transcript_shows_adds_nothing(seen: list[tuple[str, int, float]]) -> None:
    seen = sorted(seen, key=lambda each: each[2])
    known = session(run(calls=3), recorded=[shows(kind, count, time) for kind, count, time in seen])
    found = attached(known, log(*(told(kind, count, time) for kind, count, time in seen)))
    assert found.sessions[0].recorded == known.recorded


def test_the_session_that_went_on_then_is_meant_where_an_id_comes_twice() -> None:
    early, late = session(run(calls=3)), session(run(calls=3), started=START + 9000, ended=START + 9100)
    found = attached(early, late, log(told(time=9050)))
    assert [len(each.recorded) for each in found.sessions] == [0, 1]


def abort(time: float | None = None) -> Recorded:
    return told("compaction_abort", 3, time, detector="compaction_loop_persisted")


def test_a_verdict_that_names_a_key_alone_goes_to_the_only_session_that_it_can_be_of() -> None:
    here, other = session(run(calls=3), name="s-1"), session(run(calls=3), name="s-2", agent="pier")
    found = attached(here, other, log(abort(time=20), name="agent:main:x", agent="main"))
    assert [len(each.recorded) for each in found.sessions] == [1, 0]
    for verdict, agent in ((abort(time=20), None), (abort(time=9000), "main"), (abort(), "main")):
        assert attached(here, other, log(verdict, name="agent:main:x", agent=agent)).elsewhere == [verdict]


def test_a_verdict_without_a_key_or_time_needs_a_session_in_which_the_guard_was_armed() -> None:
    armed = session(run(shown(mark(Kind.GUARD_ARMED, 4)), calls=9), name="s-2")
    found = attached(session(run(calls=3)), armed, log(abort(), name="unknown"))
    assert [len(each.recorded) for each in found.sessions] == [0, 1]
    assert attached(session(run(calls=3)), log(abort(), name="unknown")).elsewhere == [abort()]
    assert attached(armed, log(told(), name="unknown")).elsewhere == [told()]
    assert attached(armed, log(abort(), name="s-7")).elsewhere == [abort()]


@pytest.mark.parametrize("ended", [9000, 20], ids=["going on", "over"])
def test_where_too_many_sessions_would_have_to_be_looked_at_it_may_be_of_several(
    monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    """The first one and the last one went on then, and what lies between them is of another agent or over."""
    monkeypatch.setattr("loopscan.verdicts.MOST_LOOKED_AT", 5)

    def made(others: int, *, last: bool) -> Attached:
        spans = [
            ("a", 0, 9000),
            *(("b", 10 + at, ended) for at in range(others)),
            *([("a", 100, 9000)] if last else []),
        ]
        sessions = [
            SessionReport("s.jsonl", f"s{at}", agent, None, START + start, START + end, calls=1)
            for at, (agent, start, end) in enumerate(spans)
        ]
        return attached(*sessions, log(told(time=5000), name="agent:a:x", agent="a"))

    assert made(4, last=True).elsewhere, "there are two"
    assert made(5, last=True).elsewhere, "there are two, though one was not looked at"
    assert not made(4, last=False).elsewhere
    assert made(5, last=False).elsewhere


# --- agreement with the marks


def test_a_verdict_of_a_log_agrees_with_a_mark_of_its_kind_detector_count_and_tool() -> None:
    found = mark(Kind.BLOCK, 20, 20)
    for verdict, agrees in (
        (told(), True),
        (told(tool="Read"), True),
        (told(count=21), False),
        (told("warning"), False),
        (told(tool="write"), False),
        (told(detector="ping_pong"), False),
        (told(time=5000), False),
    ):
        (live,) = agreement(session(run(shown(found), calls=50), recorded=[verdict]))
        assert (live.agrees, live.mark) == (agrees, found if agrees else None)


def test_each_mark_is_of_one_verdict_and_what_the_transcript_shows_comes_first() -> None:
    marks = [mark(Kind.BLOCK, batch, 20) for batch in (20, 21)]
    verdicts = [told(), told(), shows(tool_call_id="call_20")]
    lives = agreement(session(run(*map(shown, marks), calls=50), recorded=verdicts))
    assert [live.mark for live in lives] == [marks[1], None, marks[0]]
    assert [live.recorded for live in lives] == verdicts


def test_of_several_marks_that_of_the_time_is_meant() -> None:
    marks = [mark(Kind.WARNING, batch, 10, run=name) for name, batch in (("r0", 10), ("r1", 200))]
    runs = [run(shown(marks[0]), calls=10), run(shown(marks[1]), calls=200)]
    (live,) = agreement(session(*runs, recorded=[told("warning", 10, time=200.3)]))
    assert live.mark is marks[1]


def test_what_the_log_tells_after_the_replay_ended_the_run_was_not_reached() -> None:
    end = mark(Kind.RUN_END, 21, 21)
    block = mark(Kind.BLOCK, 21, 21)
    later = mark(Kind.WARNING, 400, 10, run="r1")
    ended = run(shown(block), shown(end), calls=60, outcome="run_end")
    ended.not_reached.seconds = 30.0
    whole = session(ended, run(shown(later), calls=400, run=1))

    def reached(*verdicts: Recorded) -> list[bool]:
        whole.recorded = list(verdicts)
        return [live.reached for live in agreement(whole)]

    timed = (told(count=7, time=5), told(count=21, time=21), told(count=22, time=40), told(count=7, time=9000))
    assert reached(*timed) == [True, True, False, True]
    assert reached(told(count=7), told(count=21), told(count=22), told("warning", 10), told(count=7)) == [
        *(True, True, False, True, True)
    ]


def test_the_guard_of_the_compaction_is_named_alike() -> None:
    found = mark(Kind.COMPACTION_ABORT, 9, 3, detector=Detector.COMPACTION_LOOP, tool_call_id=None)
    (live,) = agreement(session(run(shown(found), calls=9), recorded=[abort()]))
    assert live.agrees


# --- the fixtures, and sessions that the real software played


def logged(paths: list[Path], release: str, **options: Any) -> Attached:
    report = replay(paths, ruleset=release, **options)
    return attach(report.sessions, report.policy.ruleset)


def test_the_log_of_a_fixture_agrees_with_its_session() -> None:
    """2026.6 tells of warnings in the log alone; three logs of one gateway tell nothing three times."""
    folder = ROOT / "fixtures"
    logs = [folder / "openclaw-log" / name for name in ("gateway.log", "file.log", "diagnostics.jsonl", "quiet.log")]
    for some in ([], logs[:1], logs[1:2], logs):
        found = logged([folder / "live" / "vetoed.jsonl", *some], "2026.6")
        (whole,) = found.sessions
        lives = agreement(whole)
        assert sorted(live.recorded.kind for live in lives) == ["block", "block"] + ["warning"] * bool(some)
        assert all(live.agrees for live in lives)
        assert found.apart == []


def scenarios() -> list[Any]:
    if not EXPECTED.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="no recordings beside the checkout"))]
    lines = (json.loads(line) for line in EXPECTED.read_text().splitlines())
    return [pytest.param(line, id=f"{line['version']}-{line['scenario']}") for line in lines]


KINDS = {
    "warning": "warning",
    "block": "block",
    "run_stopped": "run_end",
    "unknown_tool_rewrite": "unknown_tool_stop",
}
KINDS["compaction_abort"] = "compaction_abort"


@pytest.mark.parametrize("expected", scenarios())
def test_transcript_and_log_together_tell_all_that_the_live_engine_did_and_the_replay_agrees(
    expected: dict[str, Any],
) -> None:
    folder = RECORDED / expected["version"] / expected["scenario"]
    paths = [RECORDED / expected["transcript"], folder / "loop-log.txt"]
    release = {"2026.6.11": "2026.6", "2026.9.6": "2026.9"}[expected["version"]]
    found = logged([path for path in paths if path.exists()], release, config=folder / "openclaw.json")
    (whole,) = found.sessions
    assert found.apart == []
    lives = agreement(whole)
    counted = ("warning", "block")
    assert Counter(
        (live.recorded.kind, live.recorded.count if live.recorded.kind in counted else None) for live in lives
    ) == Counter(
        (KINDS[event["kind"]], event["count"] if event["kind"] in counted else None)
        for event in expected["events"]
        if event["kind"] in KINDS
    )
    assert [live.recorded for live in lives if not live.agrees] == []


def test_a_verdict_that_both_tell_of_is_one_in_the_timeline_too() -> None:
    """The session records a warning without its detector, which the log adds: its row in the timeline is the same."""
    kept = Recorded("r0", Where(9, "e", START), "warning", "call_1", "read", None, 10)
    told = Recorded("", Where(1, None, START), "warning", None, "read", "generic_repeat", 10)
    made = SessionReport("s.jsonl", "s", recorded=[kept], calls=1)
    made.runs = [RunReport(0, None, calls=1, steps=[Step("recorded", recorded=kept)])]
    (found,) = attach([made, SessionReport("gateway.log", "s", recorded=[told])], ruleset("2026.9")).sessions
    (recorded,) = found.recorded
    assert recorded.detector == "generic_repeat"
    assert [step.recorded for run_ in found.runs for step in run_.steps] == [recorded]
    assert made.runs[0].steps[0].recorded is kept, "nothing that was given is changed"


@given(
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.sampled_from([None, "a", "b"])), max_size=12),
    hour=st.integers(0, 60),
    agent=st.sampled_from([None, "a", "b"]),
)
def test_a_verdict_without_a_session_is_of_the_only_one_that_went_on(
    spans: list[tuple[int, int, str | None]], hour: int, agent: str | None
) -> None:
    sessions = [
        SessionReport("s.jsonl", f"s{place}", owner, None, 3600.0 * start, 3600.0 * (start + length), calls=1)
        for place, (start, length, owner) in enumerate(spans)
    ]
    told = Recorded("", Where(1, None, 3600.0 * hour), "warning", None, "read", "generic_repeat", 10)
    log = SessionReport("gateway.log", "agent:x:main", agent, recorded=[told])
    found = attach([*sessions, log], ruleset("2026.9"))
    fits = [
        session.session
        for session in sessions
        if (session.started or 0) - 600 <= 3600.0 * hour <= (session.ended or 0) + 600
        and (session.agent is None or agent is None or session.agent == agent)
    ]
    homes = [session.session for session in found.sessions if session.recorded]
    assert homes == (fits if len(fits) == 1 else [])
