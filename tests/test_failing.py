"""Which marks make a command fail."""

from __future__ import annotations

import pytest

from loopscan.failing import FailOn, fails
from loopscan.marks import ENDS_RUN, Kind


@pytest.mark.parametrize(
    ("fail_on", "kinds"),
    [
        (FailOn.WARNING, {Kind.WARNING, Kind.BLOCK, *ENDS_RUN}),
        (FailOn.BLOCK, {Kind.BLOCK, *ENDS_RUN}),
        (FailOn.END, set(ENDS_RUN)),
        (FailOn.NEVER, set()),
    ],
)
def test_a_kind_fails_at_its_own_gravity_and_below(fail_on: FailOn, kinds: set[Kind]) -> None:
    assert {kind for kind in Kind if fails(kind, fail_on)} == kinds
