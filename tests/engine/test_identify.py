"""What is asked for once is what would be answered each time."""

from __future__ import annotations

from loopscan.engine.identify import ByContent, Once
from loopscan.events import Call, Outcome
from loopscan.rulesets import ruleset


def test_one_outcome_of_two_calls_is_judged_for_each() -> None:
    rules = ruleset("2026.9")
    once, plain = Once(ByContent(rules)), ByContent(rules)
    outcome = Outcome({"content": [{"type": "text", "text": "3 lines"}], "details": {"status": "running"}})
    for action in ("poll", "log", "poll"):
        call = Call("process", {"action": action})
        assert once.outcome("process", call, outcome) == plain.outcome("process", call, outcome)


def test_a_call_is_identified_anew_for_the_next_event() -> None:
    once = Once(ByContent(ruleset("2026.9")))
    call = Call("read", {"path": "a"})
    first = once.call(call)
    assert once.call(call) is first
    once.forget()
    assert once.call(call) is not first
    assert once.call(call) == first
