"""The timeline of a run: what is near a mark is kept, the rest is counted, and nothing grows without bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Recorded, Where
from loopscan.marks import Detector, Kind, Level, Mark
from loopscan.report import Step
from loopscan.timeline import AROUND, Timeline

MARK = Mark("r", Kind.WARNING, Detector.GENERIC_REPEAT, Level.WARNING, 10, 10, 0)


def called(timeline: Timeline, *numbers: int, became: str = "ran") -> None:
    for number in numbers:
        timeline.call(number, "read", number.to_bytes(4, "big"), {"n": number}, became)


def calls_in(steps: list[Step]) -> int:
    return sum(step.times for step in steps if step.kind in {"calls", "elided"})


def test_equal_calls_in_a_row_are_one_step() -> None:
    timeline = Timeline(previews=True)
    called(timeline, 1, 1, 1, 2, 1)
    timeline.mark(MARK)
    steps = timeline.steps()
    assert [(step.preview, step.times) for step in steps[:3]] == [('{"n":1}', 3), ('{"n":2}', 1), ('{"n":1}', 1)]
    assert steps[0].signature != steps[1].signature


def test_what_became_of_a_call_keeps_it_apart() -> None:
    timeline = Timeline(previews=True)
    called(timeline, 1)
    called(timeline, 1, became="blocked")
    timeline.mark(MARK)
    assert [step.became for step in timeline.steps()[:2]] == ["ran", "blocked"]


def test_a_run_without_a_mark_has_no_timeline_and_keeps_no_arguments() -> None:
    timeline = Timeline(previews=True)
    called(timeline, *range(10))
    timeline.close()
    assert not timeline._recent
    assert timeline.steps() == []


def test_a_recorded_verdict_is_worth_a_timeline_too() -> None:
    timeline = Timeline(previews=True)
    called(timeline, 1)
    timeline.recorded(1, Recorded("r", Where(), "warning"))
    timeline.note(1, "a steering message")
    assert [step.kind for step in timeline.steps()] == ["calls", "recorded", "note"]


def test_previews_can_be_left_out() -> None:
    timeline = Timeline(previews=False)
    called(timeline, 1)
    timeline.mark(MARK)
    assert timeline.steps()[0].preview is None


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 10**6), st.just(None), st.just("end")), max_size=300))
def test_every_call_is_shown_or_counted_once(events: list[int | str | None]) -> None:
    timeline = Timeline(previews=True)
    calls = 0
    for event in events:
        if event is None:
            timeline.mark(MARK)
        elif event == "end":
            timeline.close()
        elif isinstance(event, int):
            called(timeline, event)
            calls += 1
        assert len(timeline._recent) <= AROUND
    timeline.mark(MARK)
    steps = timeline.steps()
    assert calls_in(steps) == calls
    marks = sum(step.kind == "mark" for step in steps)
    closings = events.count("end")
    assert len(steps) <= (AROUND + 2) * (marks + closings + 1)
