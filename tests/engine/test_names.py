"""Names, arguments and known polls where no published package can be asked, or its answer needs no case."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.engine import canonical
from loopscan.engine.canonical import JS_SPACE, identity
from loopscan.engine.names import compared_arguments, is_known_poll, tool_name
from loopscan.engine.names import signature as signature_of
from loopscan.rulesets import RULESETS, Ruleset, ruleset

LATEST = ruleset("latest")
rulesets = st.sampled_from(list(RULESETS.values()))
texts = st.text(max_size=4)
arguments = st.one_of(
    st.none(),
    texts,
    st.lists(texts, max_size=2),
    st.dictionaries(st.sampled_from(["title", "command", "a"]), texts, max_size=3),
)


def signature(tool: str, made: Any, rules: Ruleset) -> bytes:
    return signature_of(tool, compared_arguments(tool, made, rules))


@pytest.mark.parametrize(
    ("name", "is_called"),
    [("", "tool"), (" ", ""), ("\ufeff\n", ""), ("\x85", "\x85"), ("Tool", "tool"), ("\u212a", "k"), ("SS", "ss")],
)
def test_an_empty_name_is_tool_and_white_space_alone_stays_empty(name: str, is_called: str) -> None:
    assert {tool_name(name, rules) for rules in RULESETS.values()} == {is_called}


@given(st.text(JS_SPACE, max_size=3), texts, rulesets)
def test_trimming_and_lower_case_change_nothing_a_second_time(space: str, name: str, rules: Ruleset) -> None:
    once = tool_name(f"{space}{name}{space}", rules)
    if space or name:
        assert once == tool_name(name, rules) or not name
    assert not once or tool_name(once, rules) == once


@given(texts, arguments, texts, arguments)
def test_a_signature_is_tool_and_arguments_together(tool: str, one: Any, other_tool: str, other: Any) -> None:
    rules = ruleset("2026.9")
    assert (signature(tool, one, rules) == signature(other_tool, other, rules)) == (
        (tool, one) == (other_tool, other)
    )


@given(st.dictionaries(texts, texts, max_size=3), texts)
def test_a_title_is_left_out_of_exec_alone_and_leaves_no_trace(made: dict[str, Any], title: str) -> None:
    made.pop("title", None)
    before = dict(made)
    titled = {**made, "title": title}
    assert signature("exec", titled, LATEST) == signature("exec", made, LATEST)
    assert signature("read", titled, LATEST) != signature("read", made, LATEST)
    assert signature("exec", titled, ruleset("2026.9")) != signature("exec", made, ruleset("2026.9"))
    assert made == before
    assert titled["title"] == title


def test_arguments_that_are_no_object_have_no_title() -> None:
    assert signature("exec", ["title"], LATEST) != signature("exec", [], LATEST)
    assert signature("exec", "title", LATEST) != signature("exec", "", LATEST)


@pytest.mark.parametrize(("number", "text"), [(float("inf"), "Infinity"), (-(10**400), "-Infinity")])
def test_a_number_too_great_for_a_double_is_the_text_that_the_engine_writes(number: float, text: str) -> None:
    """The packages say so; in their cases the text would be respelled as the number."""
    for around in ({"a": 1}, {"a": "\ud800"}):  # the fast writer and the slow one
        assert identity([around, number]) == identity([around, text])
        assert identity([around, number]) not in (identity([around, None]), identity([around, text.lower()]))
        assert identity([around, number]) != identity([around, -number])


@pytest.mark.parametrize(
    ("made", "poll"),
    [({"action": "poll"}, True), ({"action": "log"}, True), ({"action": ["poll"]}, False), (["poll"], False)]
    + [(made, False) for made in ("poll", None, {}, {"action": "kill"}, {"Action": "poll"})],
)
def test_process_is_a_known_poll_by_its_action(made: Any, poll: bool) -> None:
    for rules in RULESETS.values():
        assert is_known_poll("process", made, rules) is poll
        assert is_known_poll("read", made, rules) is False
        assert is_known_poll("command_status", made, rules) is True
        assert is_known_poll("wait", made, rules) is (rules.name == "latest")


def test_ordinary_values_take_the_fast_writer() -> None:
    """However a value is written, its identity is right; but a million calls should not take the slow way."""
    value: Any = {"a": [1, 2.5, 2**53, 10**400, None, True, False, "é\U0001f600", {"b": {}, "c": []}]}
    for _ in range(190):
        value = [value]
    with mock.patch.object(canonical, "_write", side_effect=AssertionError("the slow writer")):
        assert len(identity(value)) == len(identity(value, str.lower)) == 16
        assert len(identity({"a": "\\<<<"}, str.lower)) == 16


def test_keys_that_a_text_rule_moves_are_sorted_by_their_new_names() -> None:
    rule = {"a": "z", "b": "y"}.get
    for odd in ("x", "\ud800"):
        moved, plain = {"a": 1, "b": odd, "c": 3}, {"z": 1, "y": odd, "c": 3}
        assert identity(moved, lambda text: rule(text, text)) == identity(plain)
