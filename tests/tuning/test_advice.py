"""A few lines of advice: the levers in their order, what is missing, and nothing where nothing repeats."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from loopscan.rulesets import ruleset
from loopscan.tuning.advice import PROMISE_NEEDS, advise, levers
from loopscan.tuning.courses import Judge
from loopscan.tuning.given import GivenLabels
from loopscan.tuning.labels import Label
from loopscan.tuning.settings import Setting
from tests.tuning.build import Told, productive, stuck


def advice(*told: Told, now: Setting | None = None, judge: Judge | None = None) -> list[str]:
    rules = ruleset(told[0].rules)
    return advise([each.profile() for each in told], rules, told[0].basis(), now or Setting(), judge)


def late(session: str, calls: int = 25, rules: str = "2026.6") -> Told:
    return productive(session, calls, rules=rules)


def hung(session: str, calls: int = 60, rules: str = "2026.6") -> Told:
    return stuck(session, calls, rules=rules)


def alternating(session: str) -> Told:
    """Return a session that looks at two things in turn, and gets on in the end."""
    told = Told(session, rules="2026.6")
    for number in range(26):
        told.call("read", "ab"[number % 2], "ab"[number % 2])
    return told.call("read", "c", "at last").done()


def test_the_levers_come_in_the_order_of_the_documentation() -> None:
    assert [lever.words for lever in levers(Setting())] == [
        "criticalThreshold 25",
        "globalCircuitBreakerThreshold 40",
        "globalCircuitBreakerThreshold 60",
        "globalCircuitBreakerThreshold 100",
        "criticalThreshold 30 (and globalCircuitBreakerThreshold 31)",
        "criticalThreshold 40 (and globalCircuitBreakerThreshold 41)",
        "criticalThreshold 60 (and globalCircuitBreakerThreshold 61)",
        "detectors.genericRepeat false",
        "detectors.knownPollNoProgress false",
        "detectors.pingPong false",
        "historySize 20",
        "historySize 15",
    ]


def test_what_is_there_already_is_no_lever() -> None:
    now = Setting(critical=60, breaker=100, generic_repeat=False, known_poll=False, history_size=15)
    assert [lever.words for lever in levers(now)] == ["detectors.pingPong false"]
    for lever in levers(Setting()):
        assert lever.setting != Setting()
        assert lever.setting.warning < lever.setting.critical < lever.setting.breaker


def test_a_higher_threshold_is_advised_where_it_loses_nothing() -> None:
    lines = advice(hung("h"), late("l"))
    assert lines[0] == (
        "2 loops of 5 calls or more: 1 stuck, 1 productive, 0 unknown. These settings step into 1 stuck and "
        "1 productive of them"
    )
    assert lines[1] == (
        "criticalThreshold 30 (and globalCircuitBreakerThreshold 31) would spare 1 of the productive ones, "
        "and catch what is caught now"
    )
    assert lines[2].startswith("too little to promise anything: 2 sessions with such loops can be judged, and 72 are")
    assert len(lines) == 3


def test_the_breaker_is_advised_where_the_critical_threshold_spares_nothing() -> None:
    now = Setting(generic_repeat=False, history_size=120)
    line = advice(hung("h", 120), late("l", 35), now=now)[1]
    assert line.startswith("globalCircuitBreakerThreshold 40 would spare 1")


def test_a_detector_is_switched_off_where_no_threshold_helps() -> None:
    told = [stuck("h", 23, rules="2026.6"), alternating("a")]
    assert advice(*told)[1].startswith("detectors.pingPong false would spare 1")


def test_without_a_lever_that_loses_nothing_that_is_said() -> None:
    lines = advice(hung("h", 24), late("l", 24))
    assert lines[1] == "no single threshold, detector or shorter history spares the productive ones without a loss"


def test_warnings_that_are_many_are_worth_a_word() -> None:
    told = Told("w", rules="2026.6").call(times=19).broke_off()
    assert advice(told)[1] == "53 warnings per 1,000 calls: a higher warningThreshold makes fewer"
    calm = Told("w", rules="2026.6")
    for number in range(300):
        calm.call("list", number, "files")
    assert len(advice(calm.call(times=19).broke_off())) == 2


def test_where_nothing_repeats_nothing_is_advised() -> None:
    assert advice(Told("s").call().done()) == []
    assert advice(Told("s").call(times=4).broke_off()) == []
    assert advise([], ruleset("latest"), Told().basis(), Setting()) == []


def test_with_enough_sessions_the_whole_command_is_named() -> None:
    told = [stuck(f"h{number}", 8) for number in range(PROMISE_NEEDS)]
    assert advice(*told) == [
        "72 loops of 5 calls or more: 72 stuck, 0 productive, 0 unknown. These settings step into none of them",
        "loopscan tune tells which thresholds the record supports, and what they would save",
    ]


@pytest.mark.parametrize("rules", ["2026.9", "latest"])
def test_where_thresholds_are_fixed_enabled_alone_is_advised(rules: str) -> None:
    assert advice(late("l", rules=rules))[1] == (
        "enabled: false would spare the productive ones, and nothing stuck would be missed"
    )
    assert advice(late("l", rules=rules), hung("h", rules=rules))[1] == (
        "the ruleset fixes the thresholds: enabled: false would spare the productive ones, and miss the stuck"
    )


@pytest.mark.parametrize("enabled", [False, None])
def test_what_is_off_steps_into_nothing_and_what_it_would_step_into_is_said(enabled: bool | None) -> None:
    first, second, _ = advice(hung("h"), late("l"), now=replace(Setting(), enabled=enabled))
    assert first.endswith("These settings step into none of them")
    assert second == "the detectors are off: enabled: true would step into 1 stuck, 1 productive, 0 unknown of them"


def test_every_loop_counts_once_whatever_else_comes_to_the_same() -> None:
    (first, *_) = advice(hung("a", 8), late("b", 9), late("c", 9))  # too short for all levers
    assert first.startswith("3 loops of 5 calls or more: 1 stuck, 2 productive, 0 unknown. ")


def test_labels_agree_with_what_is_stepped_into() -> None:
    # Seen from its fifth call nobody can judge this loop; where it is stepped in at, it ends by itself soon after.
    (first, *_) = advice(late("l", 24))
    assert first.startswith("1 loop of 5 calls or more: 0 stuck, 1 productive, 0 unknown. ")
    assert first.endswith("step into 1 productive of them")


def test_nothing_is_advised_where_most_of_what_is_stepped_into_cannot_be_judged() -> None:
    given = GivenLabels(sessions={"a": Label.UNKNOWN, "b": Label.UNKNOWN, "c": Label.PRODUCTIVE})
    lines = advice(hung("a"), hung("b"), hung("c"), judge=Judge(given=given))
    assert lines[0].endswith("step into 1 productive and 2 unknown of them")
    assert lines[1].startswith("most of what they step into cannot be judged: label it")


def test_labels_that_people_gave_count() -> None:
    judge = Judge(given=GivenLabels(sessions={"l": Label.STUCK}))
    assert "2 stuck, 0 productive" in advice(hung("h"), late("l"), judge=judge)[0]


def test_advice_needs_no_numbers_of_numpy() -> None:
    program = "import sys, loopscan.tuning.advice; print(sorted({'numpy', 'scipy', 'polars'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
