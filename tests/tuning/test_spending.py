"""What a run cost from one call on: by hand, and the same however often it is asked for."""

from __future__ import annotations

from loopscan.events import Usage
from loopscan.modes import ScopeRule
from loopscan.rulesets import ruleset
from loopscan.tuning.courses import as_recorded
from loopscan.tuning.evidence import NEVER
from loopscan.tuning.incidents import scan
from loopscan.tuning.spending import Spending
from tests.tuning.build import Told


def test_calls_responses_and_seconds_are_counted_from_the_call_that_would_be_blocked() -> None:
    told = Told(usage=Usage(1, 1)).call(times=6).say().end()
    spending = Spending(told.incidents(), as_recorded)
    spent = spending.since("r", 2, 6)
    assert (spent.calls, spent.responses) == (4, 3)
    # The message that asks for call 2 is line 5, the result of call 5 line 12; a line is two seconds.
    assert spent.seconds == 14
    assert spending.since("r", 5, 6).responses == 0
    # To the end of the run: its last message, and the time at which it was over.
    whole = spending.since("r", 2, NEVER)
    assert (whole.calls, whole.responses) == (4, 4)
    assert whole.seconds >= spent.seconds
    assert spending.since("r", 2, NEVER) == whole


def test_there_are_no_seconds_where_no_times_are_known() -> None:
    steps = [[*step[:3], None, *step[4:]] for step in Told().call(times=4).steps()]
    found = scan(steps, ruleset("latest"), ScopeRule.RUN, frozenset())
    assert Spending(found, as_recorded).since("r", 1, NEVER).seconds == 0.0
