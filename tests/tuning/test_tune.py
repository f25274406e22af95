"""From sessions to a recommendation or a refusal, to what to do, and to the lines that advise it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import json5
import pytest

from loopscan.configfile import load_agent_policies, load_policy
from loopscan.errors import UsageError
from loopscan.report import SourceReport
from loopscan.sessions import Options
from loopscan.tuning.decisions import decide_thresholds
from loopscan.tuning.given import GivenLabels
from loopscan.tuning.labels import Label
from loopscan.tuning.parts import Wishes
from loopscan.tuning.report import Decision, Part, TuningReport, Verdict
from loopscan.tuning.settings import Setting
from loopscan.tuning.store import Stored
from loopscan.tuning.tune import By, Gathered, basis_of, changes_of, tune
from tests.tuning.build import Told, productive, stuck

#: Little is asked for, so that a few dozen sessions are enough: 14 without a false block, or 19 of three parts.
QUICK = Wishes(0.2, 0.9, rounds=20)
WHOLE = Wishes(0.2, 0.9, rounds=20, holdout=0.0)
#: Few settings, so that tests are fast.
FEW = (
    "criticalThreshold=8,15,20",
    "globalCircuitBreakerThreshold=30",
    "warningThreshold=5",
    *("historySize=30", "unknownToolThreshold=10"),
    *("detectors.genericRepeat=true", "detectors.knownPollNoProgress=true", "detectors.pingPong=true"),
)


def options(rules: str = "2026.6", config: Any = None) -> Options:
    agents = load_agent_policies(rules, config=config) if config else {}
    return Options(load_policy(rules, config=config), agents)


def corpus(stuck_ones: int, productive_ones: int, *, rules: str = "2026.6", **fields: Any) -> list[Told]:
    """Return sessions, one a day: some hang for 24 calls, some get on after twelve."""
    made = [
        stuck(f"stuck {number}", 24, rules=rules, start=86400.0 * (2 * number + 1), **fields)
        for number in range(stuck_ones)
    ]
    made += [
        productive(f"productive {number}", 12, rules=rules, start=86400.0 * (2 * number + 2), **fields)
        for number in range(productive_ones)
    ]
    return made


def tuned(
    told: Iterable[Told],
    rules: str = "2026.6",
    *,
    config: Any = None,
    wishes: Wishes = QUICK,
    tried: tuple[str, ...] = FEW,
    **more: Any,
) -> TuningReport:
    """Tune by sessions."""
    own = options(rules, config)
    gathered = Gathered(basis_of(own), [each.profile() for each in told], [SourceReport("s.jsonl", "openclaw", 0)])
    return tune(gathered, own, tried=tried, wishes=wishes, **more)


@cache
def plenty() -> TuningReport:
    """Return what comes of enough sessions, all of which count."""
    return tuned(corpus(20, 20), wishes=WHOLE)


def verdict(part: Part) -> str:
    return part.chosen.verdict.value


def test_enough_sessions_that_hang_bring_a_recommendation() -> None:
    report = tuned(corpus(20, 20))
    chosen = report.whole.chosen
    assert verdict(report.whole) == "recommended"
    assert chosen.candidate is not None
    # Productive loops take twelve calls; the lowest threshold above spares them all and saves most.
    assert chosen.candidate.setting == Setting(critical=15)
    assert chosen.candidate.changes == {"criticalThreshold": 15}
    assert chosen.candidate.figures.false_blocks == 0
    assert chosen.candidate.passes
    assert chosen.candidate.upper_bound is not None
    assert chosen.candidate.upper_bound <= 0.2
    assert "90% confidence" in chosen.reason


def test_a_recommendation_is_verified_on_the_newest_sessions() -> None:
    report = tuned(corpus(20, 20))
    (newest,) = report.whole.held_out
    assert newest.sessions == (28, 12)
    assert newest.before is not None
    assert newest.after is not None
    assert newest.before.at_risk == 28
    assert newest.after.at_risk == 12
    assert newest.after.caught == 6
    assert newest.chosen == report.whole.chosen
    # What is recommended was chosen on the older part alone; its figures are of that part.
    assert report.whole.chosen.candidate is not None
    assert report.whole.chosen.candidate.figures == newest.before
    assert report.whole.at_risk == 40


def test_what_turns_bad_lately_shows_in_the_held_out_part() -> None:
    told = corpus(28, 0) + [productive(f"late {n}", 25, rules="2026.6", start=1e9 + n) for n in range(12)]
    (newest,) = tuned(told).whole.held_out
    assert newest.before is not None
    assert newest.after is not None
    assert (newest.before.false_sessions, newest.after.false_sessions) == (0, 12)


def test_sessions_without_a_time_count_as_the_oldest_and_are_told_of() -> None:
    told = corpus(4, 4)
    profiles = [each.profile() for each in told]
    own = options()
    profiles = [replace(profile, started=None) if number < 3 else profile for number, profile in enumerate(profiles)]
    report = tune(Gathered(basis_of(own), profiles), own, tried=FEW, wishes=QUICK)
    assert "3 sessions have no time on record, and count as the oldest" in report.notes
    assert report.whole.held_out[0].sessions == (6, 2)


def test_below_the_evidence_nothing_is_recommended_and_it_is_told_what_it_takes() -> None:
    report = tuned(corpus(5, 5), wishes=WHOLE)
    chosen = report.whole.chosen
    assert (chosen.verdict, chosen.candidate) == (Verdict.TOO_FEW_SESSIONS, None)
    # 0.8 ** 14 is the first power of 0.8 below 0.05, which is half of the error, or 0.8 ** 11 below all of it.
    assert chosen.sessions_needed in (11, 14)
    assert chosen.sessions_more == chosen.sessions_needed - 10
    assert _told(chosen.sessions_more) in chosen.reason
    assert changes_of(report) == []
    assert report.block == ""
    # What is known is shown all the same.
    assert report.whole.in_force.figures.caught == 5
    assert report.whole.incidents == {"stuck": 5, "productive": 5, "unknown": 0}


def _told(more: int) -> str:
    return f"some {more} more session{'' if more == 1 else 's'}"


def test_sessions_that_cannot_be_judged_count_for_what_it_takes() -> None:
    told = corpus(5, 5) + [Told(f"x{n}", rules="2026.6").call(f"tool{n}").done() for n in range(10)]
    chosen = tuned(told, wishes=WHOLE).whole.chosen
    assert chosen.sessions_needed is not None
    assert chosen.sessions_more == 2 * (chosen.sessions_needed - 10)


def test_where_loops_come_to_something_there_is_nothing_to_recommend() -> None:
    report = tuned([productive(f"p{n}", 25, rules="2026.6") for n in range(20)], wishes=WHOLE)
    assert verdict(report.whole) == "nothing_to_save"
    assert changes_of(report) == []


def test_where_every_block_is_as_likely_false_more_sessions_would_not_help() -> None:
    told = [stuck(f"s{n}", 24, rules="2026.6") for n in range(15)]
    told += [productive(f"p{n}", 22, rules="2026.6") for n in range(15)]
    report = tuned(told, wishes=WHOLE)
    assert verdict(report.whole) == "too_many_false_blocks"
    assert report.whole.chosen.sessions_more is None


def test_where_nothing_repeats_there_is_nothing_to_go_by() -> None:
    report = tuned([Told(f"s{n}", rules="2026.6").call().done() for n in range(5)], wishes=WHOLE)
    assert verdict(report.whole) == "no_incidents"
    assert report.advice == ()
    assert report.whole.stability is None
    assert report.whole.in_force.figures.false_rate is None
    assert report.whole.in_force.figures.false_interval == (0.0, 1.0)


def test_without_any_session_there_is_a_report_all_the_same() -> None:
    report = tuned([])
    assert (report.whole.sessions, verdict(report.whole)) == (0, "no_incidents")
    assert report.incidents == ()


def test_by_cost_the_cheapest_is_chosen_and_nothing_promised() -> None:
    report = tuned(corpus(10, 3), wishes=Wishes(cost_ratio=1.0, holdout=0.0, rounds=20))
    chosen = report.whole.chosen
    assert (verdict(report.whole), chosen.by_cost) == ("recommended", True)
    assert chosen.candidate is not None
    assert chosen.candidate.figures.caught == 10
    assert "nothing is promised" in chosen.reason
    assert report.whole.stability is not None
    assert report.whole.stability.same > 0.5
    dear = tuned(
        [stuck(f"s{n}", 14, rules="2026.6") for n in range(10)]
        + [productive(f"p{n}", 14, rules="2026.6") for n in range(10)],
        wishes=Wishes(cost_ratio=50.0, holdout=0.0, rounds=20),
    )
    assert verdict(dear.whole) == "too_many_false_blocks"


def test_stability_says_how_often_the_choice_is_the_same() -> None:
    stability = tuned(corpus(20, 20)).whole.stability
    assert stability is not None
    assert stability.rounds == 20
    assert stability.same + stability.none + sum(share for _, share in stability.others) == pytest.approx(1)


AGENTS = {
    "tools": {"loopDetection": {"enabled": True}},
    "agents": {
        "list": [
            {"id": "main"},
            {"id": "night", "tools": {"loopDetection": {"criticalThreshold": 11, "warningThreshold": 5}}},
        ]
    },
}


def two_agents(main: int, night: int) -> list[Told]:
    told = []
    for agent, many in (("main", main), ("night", night)):
        for each in corpus(many, many):
            each.agent, each.session = agent, f"{agent} {each.session}"
            told.append(each)
    return told


def test_each_agent_has_its_own_part_with_what_is_in_force_for_it() -> None:
    report = tuned(two_agents(4, 3), config=AGENTS, by=By.AGENT, wishes=WHOLE)
    assert [(part.name, part.sessions) for part in report.parts] == [("main", 8), ("night", 6)]
    main, night = report.parts
    assert main.in_force.setting == Setting()
    assert (night.in_force.setting.critical, night.in_force.setting.warning) == (11, 5)
    assert [each.agent for each in report.decisions] == [None, "main", "night"]


def test_the_error_is_shared_out_among_the_parts() -> None:
    one = tuned(two_agents(4, 3), config=AGENTS, wishes=WHOLE).whole.chosen
    three = tuned(two_agents(4, 3), config=AGENTS, by=By.AGENT, wishes=WHOLE)
    needed = [each.chosen.sessions_needed for each in (three.whole, *three.parts)]
    assert one.sessions_needed is not None
    assert all(each is not None and each > one.sessions_needed for each in needed)


def test_each_model_has_its_own_part() -> None:
    report = tuned(corpus(3, 3, model="one") + corpus(2, 2, model="two"), by=By.MODEL)
    assert [(part.name, part.sessions) for part in report.parts] == [("one", 6), ("two", 4)]
    assert [each.agent for each in report.decisions] == [None]


def test_agents_are_held_out_in_turn() -> None:
    report = tuned(two_agents(20, 4), wishes=Wishes(0.2, 0.9, holdout=0.0, by_agent=True, rounds=0))
    assert [(each.name, each.sessions) for each in report.whole.held_out] == [
        ("agent main", (8, 40)),
        ("agent night", (40, 8)),
    ]
    main, night = report.whole.held_out
    assert main.chosen.verdict is Verdict.TOO_FEW_SESSIONS
    assert main.after is None
    assert night.chosen.verdict is Verdict.RECOMMENDED
    assert night.after is not None
    assert (night.after.caught, night.after.false_blocks) == (4, 0)


@pytest.mark.parametrize("rules", ["2026.9", "latest"])
def test_fixed_rulesets_are_decided_agent_by_agent(rules: str) -> None:
    told = [stuck(f"good {n}", 24, rules=rules, agent="good") for n in range(24)]
    told += [productive(f"bad {n}", 25, rules=rules, agent="bad") for n in range(20)]
    told += [stuck(f"few {n}", rules=rules, agent="few") for n in range(3)]
    told += [Told(f"calm {n}", rules=rules, agent="calm").call().done() for n in range(3)]
    report = tuned(told, rules, wishes=WHOLE)
    decided = {each.agent: each.changes for each in report.decisions}
    assert decided == {"bad": {"enabled": False}, "calm": {}, "few": {}, "good": {"enabled": True}}
    reasons = {each.agent: each.reason for each in report.decisions}
    assert reasons["calm"] == "no loop that it would step into can be judged"
    assert reasons["few"].startswith("3 at risk do not tell, ")
    assert "false blocks in 20 of 20 sessions" in reasons["bad"]
    assert not report.configurable
    assert load_agent_policies(rules, config=json5.loads(report.block))["bad"].enabled is False
    assert load_agent_policies(rules, config=json5.loads(report.block))["good"].enabled is True


def test_fixed_rulesets_are_decided_for_all_where_no_agent_is_named() -> None:
    report = tuned([stuck(f"s{n}", rules="2026.9") for n in range(16)], "2026.9", wishes=WHOLE)
    assert [(each.agent, each.changes) for each in report.decisions] == [(None, {"enabled": True})]
    assert load_policy("2026.9", config=json5.loads(report.block)).enabled is True


def test_the_block_says_what_is_recommended() -> None:
    report = plenty()
    assert report.whole.chosen.candidate is not None
    read = Setting.of(load_policy("2026.6", config=json5.loads(report.block)))
    wanted = report.whole.chosen.candidate.setting
    changes = report.whole.chosen.candidate.changes
    assert changes
    assert {name: value for name, value in read.changes(Setting()).items() if name != "enabled"} == {
        name: value for name, value in wanted.changes(Setting()).items() if name != "enabled"
    }


#: For all critical is 25, for night 28; what is decided for all is 15, and each agent has a choice of its own.
GENERAL, OWN = Setting(critical=25), Setting(critical=28, history_size=60)


def decided(agents: Iterable[tuple[Setting, Setting | None]]) -> list[Decision]:
    """Return the decisions for agents, by what is in force for each and what is chosen for it; all others get 15."""
    report = plenty()
    chosen = report.whole.chosen
    assert chosen.candidate is not None

    def part(name: str | None, now: Setting, wanted: Setting | None) -> Part:
        assert chosen.candidate is not None
        candidate = None if wanted is None else replace(chosen.candidate, setting=wanted, changes=wanted.changes(now))
        choice = replace(chosen, candidate=candidate, reason="so it is")
        return replace(report.whole, name=name, in_force=replace(report.whole.in_force, setting=now), chosen=choice)

    parts = [part(f"agent {number}", now, wanted) for number, (now, wanted) in enumerate(agents)]
    return decide_thresholds(part(None, GENERAL, Setting(critical=15)), parts)


@pytest.mark.parametrize(
    ("now", "wanted", "changes", "reason"),
    [
        (GENERAL, Setting(critical=15), {}, "as for all agents"),
        (GENERAL, Setting(critical=20), {"criticalThreshold": 20}, "so it is"),
        (GENERAL, GENERAL, {"criticalThreshold": 25}, "so it is"),  # else it would get what is for all
        (GENERAL, None, {}, "nothing apart from what is for all agents: so it is"),
        (OWN, OWN, {}, "as it is"),
        (OWN, replace(OWN, critical=15), {"criticalThreshold": 15}, "so it is"),  # its own block goes before all
        (OWN, Setting(critical=15), {"historySize": 30, "criticalThreshold": 15}, "so it is"),
        (OWN, None, {}, "nothing apart from what is for all agents: so it is"),
    ],
)
def test_what_is_decided_for_an_agent_holds_over_what_is_decided_for_all(
    now: Setting, wanted: Setting | None, changes: dict[str, int], reason: str
) -> None:
    everybody, mine = decided([(now, wanted)])
    assert everybody.changes == {"criticalThreshold": 15}
    assert (mine.changes, mine.reason) == (changes, reason)


def test_flips_are_the_incidents_that_fare_otherwise_near_what_is_recommended() -> None:
    told = [stuck("hangs", 20, rules="2026.6"), productive("just", 19, rules="2026.6")]
    report = tuned(told, wishes=WHOLE)
    flips = {(each.field, each.value, each.incident.session, each.before, each.after) for each in report.whole.flips}
    assert flips == {
        ("criticalThreshold", 19, "just", "spared", "false_block"),
        ("criticalThreshold", 19, "hangs", "missed", "caught"),
    }


def test_labels_that_people_gave_change_what_comes_of_it() -> None:
    labels = GivenLabels(sessions={f"productive {number}": Label.STUCK for number in range(10)})
    report = tuned(corpus(10, 10), labels=labels, wishes=WHOLE)
    assert report.whole.incidents == {"stuck": 20, "productive": 0, "unknown": 0}
    assert report.agreement is not None
    assert report.agreement.given == 10
    assert report.agreement.table["productive"]["stuck"] == 10


def test_profiles_of_other_options_are_refused() -> None:
    gathered = Gathered(basis_of(options("2026.6")))
    told = stuck("s", rules="latest")
    with pytest.raises(
        UsageError, match="the profiles are of ruleset latest, scope run, arm auto: say the same with"
    ):
        gathered.add(Stored(told.basis(), [told.profile()]))
    gathered.add(Stored(told.basis(), []))
    assert gathered.profiles == []


@pytest.mark.parametrize("config", [{"enabled": False}, {}])
def test_detectors_that_are_off_are_compared_with_detectors_that_are_on(config: dict[str, Any]) -> None:
    report = tuned(corpus(20, 20), config={"tools": {"loopDetection": config}}, wishes=WHOLE)
    assert report.whole.in_force.figures.caught == 0
    assert report.whole.in_force.figures.missed == 20
    assert report.whole.chosen.candidate is not None
    assert report.whole.chosen.candidate.changes["enabled"] is True
    assert load_policy("2026.6", config=json5.loads(report.block)).enabled is True


def test_two_detectors_that_are_off_stay_off_while_thresholds_are_chosen() -> None:
    config = {
        "tools": {"loopDetection": {"enabled": True, "detectors": {"pingPong": False, "knownPollNoProgress": False}}}
    }
    report = tuned(corpus(20, 20), config=config, wishes=WHOLE)
    assert report.whole.chosen.candidate is not None
    setting = report.whole.chosen.candidate.setting
    assert (setting.ping_pong, setting.known_poll) == (False, False)


def test_values_in_force_that_cannot_be_answered_are_told_of() -> None:
    report = tuned([stuck("s", rules="2026.6")], config={"tools": {"loopDetection": {"historySize": 5000}}})
    assert [note for note in report.notes if note.startswith("historySize 5000 is in force")]


def test_the_sweep_has_a_row_for_every_setting() -> None:
    report = tuned(corpus(3, 3), wishes=WHOLE)
    assert {len(column) for column in report.sweep.values()} == {report.settings}
    rows = list(zip(report.sweep["enabled"], report.sweep["caught"], report.sweep["missed"], strict=True))
    assert all(caught == 0 for enabled, caught, _ in rows if enabled is False)
    assert {int(caught or 0) + int(missed or 0) for _, caught, missed in rows} == {3}
    curve = report.curve()
    thresholds = [setting.critical for setting, _ in curve]
    assert thresholds == sorted(set(thresholds))
    assert set(thresholds) == set(report.sweep["criticalThreshold"])
