"""The table of releases: what each row of it says, and that every name of it is known."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from loopscan.errors import UsageError
from loopscan.rulesets import RULESETS, Ruleset, ruleset

ALL = ("2026.6", "2026.9", "latest")
#: The table, row by row: each field with its value in 2026.6, in 2026.9 and in `latest`.
TABLE: dict[str, tuple[Any, Any, Any]] = {
    "name": ALL,
    "covers": ("2026.6.11 to 2026.7.x", "2026.8.1 to 2026.9.6", "the documentation after 2026.9.6"),
    "configurable": (True, False, False),
    "agents_key": (("agents", "list"), ("agents", "entries"), ("agents", "entries")),
    "history_size": (30, 30, 30),
    "warning": (10, 10, 10),
    "critical": (20, 20, 20),
    "breaker": (30, 30, 30),
    "unknown_tool": (10, 10, 10),
    "guard_window": (3, 3, 3),
    "batch_admission": (False, True, True),
    "tool_aliases": (
        (("bash", "exec"), ("apply-patch", "apply_patch")),
        *[(("bash", "exec"), ("apply-patch", "apply_patch"), ("cron", "automations"))] * 2,
    ),
    "send_tools": (("sessions_send",), *[("sessions_send", "conversations_send", "conversations_turn")] * 2),
    "ignore_nonces": (False, True, True),
    "failures_across_arguments": (False, True, True),
    "unchanged_write_is_no_progress": (False, True, True),
    "argument_churn": (False, True, True),
    "ignored_arguments": ((), (), (("exec", "title"),)),
    "polls": (("command_status",), ("command_status",), ("command_status", "wait")),
    "poll_critical": ((), (), (("wait", 10),)),
    "live_identities": (False, False, True),
    "record_rejections": (False, False, True),
    "identical_errors": (None, None, 3),
    "arms_on_hook_only": (True, False, False),
}


def test_the_table_has_every_switch_and_number() -> None:
    assert list(TABLE) == [field.name for field in fields(Ruleset)]


@pytest.mark.parametrize("row", list(TABLE))
def test_a_row_says_what_the_releases_do(row: str) -> None:
    assert tuple(getattr(ruleset(name), row) for name in ALL) == TABLE[row]


def test_rulesets_go_by_their_own_names_oldest_first() -> None:
    assert tuple(RULESETS) == ALL
    assert all(made.name == name for name, made in RULESETS.items())


def test_an_unknown_ruleset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'2026\.5'.*2026\.6.*2026\.9.*latest"):
        ruleset("2026.5")
