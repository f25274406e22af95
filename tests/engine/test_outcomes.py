"""Outcome identities that no published package can be asked: odd shapes, and those of `latest`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.engine.outcomes import Judged, judge, result_text, unknown_tool, without_volatile
from loopscan.events import Json, Outcome
from loopscan.rulesets import RULESETS, ruleset

from .build import error, text

LATEST, R9, R6 = ruleset("latest"), ruleset("2026.9"), ruleset("2026.6")


def of(tool: str, outcome: Outcome, arguments: Json = None, rules: Any = LATEST) -> Judged:
    return judge(tool, {} if arguments is None else arguments, outcome, rules)


def result(details: Json, *content: Json, is_error: bool = False, **more: Json) -> Outcome:
    return Outcome(result={"content": list(content), "details": details, **more}, is_error=is_error)


def same(tool: str, one: Outcome, other: Outcome, arguments: Json = None) -> bool:
    return of(tool, one, arguments).identity == of(tool, other, arguments).identity


# --- shapes that the packages never make


def test_a_result_that_is_no_object_has_an_identity_of_its_own() -> None:
    odd: list[Json] = [None, "", "x", 0, False, [], ["x"]]
    made = [of("read", Outcome(result=value)).identity for value in odd]
    assert len(set(made)) == len(odd)
    assert of("read", result({})).identity not in made
    assert of("read", error("x")).identity not in made


@pytest.mark.parametrize("odd", [["poll"], {"poll": 1}, 1, None, True])
def test_an_action_that_is_no_text_is_no_action(odd: Json) -> None:
    for tool in ("process", "message"):
        one, other = text("x", messageId=1), text("x", messageId=2)
        assert not same(tool, one, other, {"action": odd})
        assert of(tool, one, {"action": odd}).identity == of("read", one).identity
    assert of("exec", text("x", status=odd)).identity == of("read", text("x", status=odd)).identity


@pytest.mark.parametrize("name", list(RULESETS))
def test_an_error_is_no_progress_and_a_result_is_progress(name: str) -> None:
    rules = ruleset(name)
    assert of("read", error("x"), rules=rules).no_progress is True
    assert of("read", text("x"), rules=rules).no_progress is False
    assert of("read", Outcome(result="x"), rules=rules).no_progress is False
    assert of("write", text("x", changed=False), rules=rules).no_progress is (name != "2026.6")
    assert of("read", error("x"), rules=rules) != of("read", error("y"), rules=rules)


@pytest.mark.parametrize(("name", "veto"), [("2026.6", False), ("2026.9", True), ("latest", True)])
def test_a_denial_by_the_loop_detection_has_no_identity(name: str, veto: bool) -> None:
    for tool in ("read", "exec", "wait", "write"):
        denied = of(tool, text("no", status="blocked", deniedReason="tool-loop", changed=False), rules=ruleset(name))
        assert denied == Judged(None, veto=veto)


def test_only_a_finished_exec_is_a_terminal_failure() -> None:
    failed = text("x", status="failed", exitCode=1)
    assert of("exec", failed, rules=R9).failure is not None
    assert of("exec", failed, rules=R6).failure is None
    assert of("read", failed, rules=R9).failure is None
    assert of("exec", text("x", status="running", exitCode=1), rules=R9).failure is None


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=4)))
def test_the_text_of_any_content_is_a_text(content: Any) -> None:
    assert result_text({"content": content}) == ""
    assert result_text({}) == ""


@pytest.mark.parametrize("between", ["X", "[", "]", "-", "", "_", "."])
def test_only_signs_and_white_space_stand_between_a_counter_and_its_number(between: str) -> None:
    assert without_volatile(f"retry{between}5 pid{between}6") == f"retry{between}5 pid{between}6"


@given(st.text())
def test_the_name_of_an_unknown_tool_is_lower_case_or_none(words: str) -> None:
    name = unknown_tool(f"unknown tool {words}")
    assert name is None or name == name.lower()
    assert unknown_tool(words) is None or "tool" in words.lower()


def test_the_texts_of_different_rules_stay_apart() -> None:
    """One and the same text as an error, a result, a running command's tail, a send and a poll."""
    made = [
        of("exec", error("x")),
        of("exec", Outcome(result="x")),
        of("exec", text("x")),
        of("exec", text("", status="running", tail="x")),
        of("exec", text("x", status="completed")),
        of("exec", text("", status="approval-pending", command="x")),
        of("write", text("x", changed=False)),
        of("process", text("x"), {"action": "poll"}),
        of("process", text("x"), {"action": "log"}),
        of("sessions_send", text("x")),
        of("exec", text("x", telemetry=1)),
        of("progress_card", text("x", steps="x"), {"markdown": "x"}),
        of("memory_search", text("x", results=[])),
    ]
    assert len({judged.identity for judged in made}) == len(made)


# --- what `latest` keeps in memory, in shapes that are not the usual ones


def test_code_mode_leaves_out_only_what_names_this_one_run() -> None:
    one = result({"telemetry": 1, "runId": "a", "status": "done", "id": "x"}, {"type": "text", "text": "1"})
    assert same("exec", one, result({"telemetry": 2, "status": "done", "id": "x"}))
    assert not same("exec", one, result({"telemetry": 1, "status": "done", "id": "y"}))
    assert same("exec", result({"telemetry": None}), result({"telemetry": 1, "runId": 2}))
    failing = result({"telemetry": 1, "status": "failed", "exitCode": 1}, {"type": "text", "text": "x"})
    assert of("exec", failing).failure is None


def test_pending_calls_of_odd_shape_count_as_they_are() -> None:
    def pending(value: Json) -> Outcome:
        return result({"telemetry": 1, "pendingToolCalls": value})

    assert not same("exec", pending(["a"]), pending(["b"]))
    assert not same("exec", pending("a"), pending("b"))
    assert not same("exec", pending({"id": 1}), pending({"id": 2}))
    assert not same("exec", pending([{"method": "m"}]), pending([]))
    assert not same("exec", pending([{"id": 1, "of": {"id": 1}}]), pending([{"id": 1, "of": {"id": 2}}]))
    assert same("wait", pending([{"id": 1}, "a"]), pending([{"id": 2}, "a"]))


def window(handle: str, **fields: Json) -> dict[str, Json]:
    return {"kind": "window", "observationId": handle, **fields}


def test_handles_of_a_window_are_left_out_at_every_depth_of_its_elements_and_nowhere_else() -> None:
    def seen(handle: str, ref: str, **more: Json) -> Outcome:
        inner: Json = [{"elementRef": ref, "children": [{"elementRef": ref, "label": "b"}]}, "plain"]
        return result({"result": {"observation": window(handle, elements=inner, **more)}})

    assert same("computer", seen("1", "a"), seen("2", "b"))
    assert not same("computer", seen("1", "a", focus={"elementRef": "a"}), seen("1", "a", focus={"elementRef": "b"}))
    assert not same("computer", seen("1", "a", of={"observationId": 1}), seen("1", "a", of={"observationId": 2}))
    without = result({"result": {"observation": window("1")}})
    assert same("computer", without, result({"result": {"observation": window("2")}}))
    assert not same("computer", without, result({"result": {"observation": window("1", elements=[])}}))
    keyed = [result({"result": {"observation": window("1", elements={"elementRef": ref})}}) for ref in "ab"]
    assert same("computer", *keyed)


def test_both_observations_of_a_computer_result_count() -> None:
    def both(first: str, second: str, title: str = "t", outer: int = 1) -> Outcome:
        return result(
            {
                "result": {"observation": window(first), "n": outer},
                "followUpObservation": {"observation": window(second, title=title)},
            }
        )

    assert same("computer", both("1", "2"), both("3", "4"))
    assert not same("computer", both("1", "2"), both("1", "2", title="u"))
    assert not same("computer", both("1", "2"), both("1", "2", outer=2))


def test_one_window_is_enough_and_the_other_observation_is_compared_in_full() -> None:
    def mixed(first: str, second: str) -> Outcome:
        screen: Json = {"kind": "screen", "observationId": second}
        return result({"result": {"observation": window(first)}, "followUpObservation": {"observation": screen}})

    assert same("computer", mixed("1", "2"), mixed("3", "2"))
    assert not same("computer", mixed("1", "2"), mixed("1", "4"))


@pytest.mark.parametrize("shape", [{"result": [1]}, {"result": {"observation": [1]}}, {"result": None}, {}, [1]])
def test_a_computer_result_without_window_is_compared_in_full(shape: Json) -> None:
    assert not same(
        "computer", result(shape, {"type": "text", "text": "a"}), result(shape, {"type": "text", "text": "b"})
    )


def test_pixels_count_and_the_text_that_repeats_the_window_does_not() -> None:
    def shown(words: str, *content: Json) -> Outcome:
        return result({"result": {"observation": window("1")}}, {"type": "text", "text": words}, *content)

    picture: Json = {"type": "image", "data": "A"}
    assert same("computer", shown("a", picture), shown("b", picture))
    assert not same("computer", shown("a", picture), shown("a"))
    assert not same("computer", shown("a", "A"), shown("a", "B"))
    bare: Json = {"result": {"observation": window("1")}}
    assert same("computer", Outcome(result={"details": bare}), Outcome(result={"details": bare, "content": "x"}))
    assert not same("read", shown("a", picture), shown("b", picture))


def test_a_progress_card_needs_its_arguments_and_its_steps() -> None:
    card: Json = {"markdown": "# a", "plan": [1]}
    one, other = text("a", revision=1, steps=1), text("b", revision=2, steps=1)
    assert same("progress_card", one, other, card)
    assert not same("progress_card", one, other, ["# a"])
    assert not same("progress_card", text("a", revision=1), text("a", revision=2), card)
    assert not same("read", one, other, card)
    made = [of("progress_card", one, {**card, field: 2}).identity for field in ("markdown", "plan")]
    assert len({*made, of("progress_card", one, card).identity, of("progress_card", one, {}).identity}) == 4


@pytest.mark.parametrize("odd", ["a", None, 1, ["a"]])
def test_hits_of_odd_shape_count_as_they_are(odd: Json) -> None:
    assert not same("memory_search", text("x", results=[odd]), text("x", results=[]))
    assert same("memory_search", text("x", results=[odd, {"score": 1}]), text("y", results=[odd, {"score": 2}]))
    assert not same("memory_search", text("x", results={"score": 1}), text("x", results={"score": 2}))
    assert not same("memory_search", text("x", results=[{"of": {"score": 1}}]), text("x", results=[{"of": {}}]))
    assert not same("read", text("x", results=[{"score": 1}]), text("x", results=[{"score": 2}]))


@pytest.mark.parametrize(
    ("tool", "details", "arguments"),
    [
        ("computer", {"result": {"observation": window("1")}}, None),
        ("progress_card", {"steps": 1}, {"markdown": "a"}),
        ("memory_search", {"results": []}, None),
    ],
)
def test_a_flagged_error_is_compared_in_full(tool: str, details: Json, arguments: Json) -> None:
    for flagged in (True, False):
        one, other = (result(details, {"type": "text", "text": t}, is_error=flagged) for t in "ab")
        assert same(tool, one, other, arguments) is not flagged


def test_live_identities_ignore_nonces_too() -> None:
    def wrapped(nonce: str) -> str:
        mark = f'EXTERNAL_UNTRUSTED_CONTENT id="{nonce * 16}">>>'
        return f"<<<{mark}x<<<END_{mark}"

    one, other = (text("x", results=[{"snippet": wrapped(nonce)}]) for nonce in "ab")
    assert same("memory_search", one, other)
