"""Every rule by itself agrees with all rules together."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.engine.detectors import Counts, Proposal, decide
from loopscan.explaining.rules import rules_of
from loopscan.marks import Detector, Level
from loopscan.rulesets import RULESETS
from loopscan.tuning.settings import Setting

small = st.integers(0, 12)


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    tool = draw(st.sampled_from(("read", "process", "wait", "exec")))
    poll = draw(st.booleans())
    churn, still = draw(small), draw(st.booleans())
    return Counts(
        *(Proposal(tool, b"s", poll), draw(small), "x", draw(small), draw(small), draw(small), "other", still),
        *(b"o", churn, draw(small), b"came"),
    )


@settings(max_examples=150)
@given(
    counts(),
    st.sampled_from(list(RULESETS.values())),
    st.tuples(st.integers(1, 10), st.integers(2, 11), st.integers(3, 12), st.integers(1, 12)),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_there_is_a_verdict_exactly_where_a_rule_is_met(
    made: Counts, rules: object, numbers: tuple[int, ...], on: tuple[bool, ...]
) -> None:
    warning, critical, breaker, unknown = numbers
    setting = Setting(True, 30, warning, max(critical, warning + 1), max(breaker, warning + 2), unknown, *on)
    policy = setting.policy(rules)  # type: ignore[arg-type]
    if not policy.ruleset.argument_churn:
        made = made._replace(churn=0)
    found = decide(made, policy)
    table = rules_of(made, policy, found)
    assert any(rule.met for rule in table) == (found is not None)
    first = [rule for rule in table if rule.first]
    if found is not None:
        (verdict,) = first
        assert verdict.met
        assert (verdict.count, verdict.threshold) == (found.count, found.threshold)
        assert verdict.why_not is None
    else:
        assert first == []
    for rule in table:
        if rule.met:
            assert rule.count >= rule.threshold
            assert rule.why_not is None
        elif rule.why_not is None:
            assert rule.count < rule.threshold


def test_a_ping_pong_warning_hides_a_generic_block() -> None:
    made = Counts(Proposal("read", b"s", False), 0, None, 20, 0, 12, "ls", False, b"o", 0, 20, b"came")
    policy = Setting().policy(RULESETS["2026.9"])
    found = decide(made, policy)
    table = {(rule.detector, rule.level): rule for rule in rules_of(made, policy, found)}
    assert table[Detector.PING_PONG, Level.WARNING].first
    hidden = table[Detector.GENERIC_REPEAT, Level.CRITICAL]
    assert (hidden.met, hidden.first, hidden.count, hidden.threshold) == (True, False, 20, 20)
    without = decide(made, replace(policy, ping_pong=False))
    assert without is not None
    assert without.critical
