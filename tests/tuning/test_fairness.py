"""What a choice must not do: promise by what tells nothing, by the grid, or against what was held out."""

from __future__ import annotations

from loopscan.tuning.courses import Judge
from loopscan.tuning.given import GivenLabels
from loopscan.tuning.labels import Label
from loopscan.tuning.parts import Wishes
from loopscan.tuning.report import Verdict
from tests.tuning.build import productive, stuck
from tests.tuning.test_tune import WHOLE, tuned


def test_sessions_that_tell_nothing_of_a_setting_are_no_evidence_for_it() -> None:
    told = [stuck(f"s{number}", 40, rules="2026.6") for number in range(80)]
    given = GivenLabels(sessions={f"s{number}": Label.UNKNOWN for number in range(5, 80)})
    report = tuned(told, wishes=WHOLE, labels=given)
    assert report.whole.in_force.figures.at_risk == 5
    assert report.whole.in_force.figures.unknown_blocked == 75
    assert report.whole.chosen.candidate is None


def test_who_is_at_risk_depends_on_no_setting_that_is_tried() -> None:
    told = [stuck(f"s{number}", 40, rules="2026.6") for number in range(4)]
    told += [productive(f"p{number}", 6, rules="2026.6") for number in range(6)]
    few = tuned(told, wishes=WHOLE, tried=("criticalThreshold=20,30",))
    many = tuned(told, wishes=WHOLE, tried=("criticalThreshold=6,20,30", "warningThreshold=5"))
    assert few.whole.at_risk == many.whole.at_risk == 10


def test_what_the_held_out_sessions_are_surely_against_is_taken_back() -> None:
    wishes = Wishes(max_false_block=0.2, confidence=0.9, holdout=0.4, rounds=0)
    told = [stuck(f"{number:02}", 40, rules="2026.6") for number in range(30)]
    told += [productive(f"{number:02}", 25, rules="2026.6") for number in range(30, 50)]
    for number, each in enumerate(told):
        each.line = 1000 * number  # later ones come later
    report = tuned(told, wishes=wishes, tried=("criticalThreshold=20", "globalCircuitBreakerThreshold=30"))
    (held,) = report.whole.held_out
    assert held.chosen.verdict is Verdict.RECOMMENDED
    assert held.after is not None
    assert held.after.false_sessions == held.after.at_risk
    assert report.whole.chosen.verdict is Verdict.CONTRADICTED
    assert report.whole.chosen.candidate is None
    assert not report.block


def test_an_incident_can_be_judged_from_its_fifth_call_or_from_its_last() -> None:
    told = stuck("s", 12)
    profile, incident = told.profile(), told.incident()
    assert Judge().judged(profile, 0, incident)
    short = stuck("s", 4)
    assert not Judge().judged(short.profile(), 0, short.incident())
