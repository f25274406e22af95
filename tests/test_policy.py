"""How a ruleset and blocks of settings become a policy."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.errors import ConfigError
from loopscan.policy import FIELDS, Layer, Policy, nearest_field, positive_whole, resolve
from loopscan.rulesets import RULESETS, Ruleset
from loopscan.sanitize import clean

OLD, FIXED, LATEST = RULESETS["2026.6"], RULESETS["2026.9"], RULESETS["latest"]
PATH = "tools.loopDetection"


def block(values: dict[str, Any]) -> Layer:
    return Layer(values, "file", "openclaw.json", PATH)


def agent(values: dict[str, Any], name: str = "main") -> Layer:
    return Layer(values, "agent", "openclaw.json", f"agents.list[0].{PATH}", name)


def overrides(values: dict[str, Any]) -> Layer:
    return Layer(values, "command line", dotted=True)


def of(values: dict[str, Any], ruleset: Ruleset = OLD) -> Policy:
    """Return the policy of a block that is enabled."""
    return resolve(ruleset, block=block({"enabled": True, **values}))


def numbers(policy: Policy) -> tuple[int, ...]:
    return (
        policy.history_size,
        policy.warning,
        policy.critical,
        policy.breaker,
        policy.unknown_tool,
        policy.guard_window,
    )


def notes(policy: Policy, kind: str) -> dict[str, str]:
    return {note.field: note.message for note in policy.notes if note.kind == kind}


# Where values come from


@pytest.mark.parametrize("ruleset", RULESETS.values(), ids=lambda r: r.name)
def test_without_a_configuration_the_detectors_are_on_with_defaults(ruleset: Ruleset) -> None:
    policy = resolve(ruleset)
    assert policy.enabled is True
    assert numbers(policy) == (30, 10, 20, 30, 10, 3)
    assert (policy.generic_repeat, policy.known_poll, policy.ping_pong) == (True, True, True)
    assert policy.notes == ()
    assert tuple(policy.origins) == FIELDS
    kinds = {policy.origins[name].kind for name in FIELDS if name != "enabled"}
    assert kinds == {"default" if ruleset.configurable else "fixed"}
    assert policy.origins["enabled"].kind == "default"


def test_every_value_knows_the_file_and_the_path_it_came_from() -> None:
    policy = of({"warningThreshold": 12, "detectors": {"pingPong": False}, "postCompactionGuard": {"windowSize": 2}})
    assert policy.warning == 12
    assert policy.ping_pong is False
    assert policy.guard_window == 2
    for name in ("warningThreshold", "detectors.pingPong", "postCompactionGuard.windowSize"):
        origin = policy.origins[name]
        assert (origin.kind, origin.source, origin.path) == ("file", "openclaw.json", f"{PATH}.{name}")


def test_the_agent_goes_over_the_global_block_and_overrides_go_over_both() -> None:
    policy = resolve(
        OLD,
        block=block({"enabled": False, "warningThreshold": 11, "criticalThreshold": 21, "unknownToolThreshold": 9}),
        agent=agent({"enabled": True, "warningThreshold": 12, "criticalThreshold": 22}),
        overrides=overrides({"warningThreshold": 13}),
    )
    assert policy.enabled is True
    assert (policy.warning, policy.critical, policy.unknown_tool) == (13, 22, 9)
    kinds = [policy.origins[n].kind for n in ("warningThreshold", "criticalThreshold", "unknownToolThreshold")]
    assert kinds == ["command line", "agent", "file"]


def test_detectors_and_guard_merge_one_level_down() -> None:
    policy = resolve(
        OLD,
        block=block({"enabled": True, "detectors": {"pingPong": False}, "postCompactionGuard": {"windowSize": 5}}),
        agent=agent({"detectors": {"genericRepeat": False}, "postCompactionGuard": {}}),
    )
    assert (policy.generic_repeat, policy.known_poll, policy.ping_pong) == (False, True, False)
    assert policy.guard_window == 5


def test_overrides_may_be_nested_or_dotted() -> None:
    nested = resolve(OLD, overrides=overrides({"detectors": {"pingPong": False}}))
    dotted = resolve(OLD, overrides=overrides({"detectors.pingPong": False}))
    assert nested.ping_pong is False
    assert dotted.ping_pong is False
    with pytest.raises(ConfigError, match=r"did you mean detectors\.pingPong"):
        of({"detectors.pingPong": False})


def test_null_sets_a_field_back_to_unset() -> None:
    policy = resolve(
        OLD,
        block=block({"enabled": True, "warningThreshold": 12, "detectors": {"pingPong": False}}),
        agent=agent({"enabled": None, "warningThreshold": None, "detectors": {"pingPong": None}}),
    )
    assert policy.enabled is None
    assert policy.warning == 10
    assert policy.ping_pong is True
    assert notes(policy, "repaired") == {}
    assert policy.origins["warningThreshold"].kind == "default"
    assert policy.origins["warningThreshold"].path == f"agents.list[0].{PATH}.warningThreshold"


# The three states of ``enabled``


def test_enabled_true_is_obeyed_without_a_word() -> None:
    assert of({}).enabled is True
    assert of({}).notes == ()


def test_a_configuration_that_leaves_enabled_unset_has_the_guard_alone() -> None:
    policy = resolve(OLD, block=block({}))
    assert policy.enabled is None
    message = notes(policy, "silenced")["enabled"]
    assert "enabled is not set in openclaw.json" in message
    assert "post-compaction guard alone" in message


def test_enabled_false_silences_both_and_names_the_agent_that_did_it() -> None:
    policy = resolve(OLD, block=block({"enabled": True}), agent=agent({"enabled": False}, "quiet"))
    assert policy.enabled is False
    message = notes(policy, "silenced")["enabled"]
    assert 'agent "quiet"' in message
    assert f"agents.list[0].{PATH}.enabled" in message
    assert "neither the rolling detectors nor the post-compaction guard" in message
    globally = resolve(OLD, block=block({"enabled": False}), agent=agent({"warningThreshold": 12}, "quiet"))
    assert "quiet" not in notes(globally, "silenced")["enabled"]


def test_the_note_names_the_guards_that_have_no_switch() -> None:
    assert "identical-error guard" not in notes(resolve(OLD, block=block({})), "silenced")["enabled"]
    assert "identical-error guard" in notes(resolve(LATEST, block=block({})), "silenced")["enabled"]


def test_an_override_alone_is_no_configuration() -> None:
    assert resolve(OLD, overrides=overrides({"warningThreshold": 12})).enabled is True
    off = resolve(OLD, overrides=overrides({"enabled": False}))
    assert off.enabled is False
    assert "command line" in notes(off, "silenced")["enabled"]
    assert resolve(OLD, block=block({"enabled": False}), overrides=overrides({"enabled": True})).enabled is True


@pytest.mark.parametrize("value", ["yes", "true", 1, 0, [], {}])
@pytest.mark.parametrize("ruleset", [OLD, FIXED], ids=lambda r: r.name)
def test_an_enabled_that_is_no_boolean_is_an_error_that_says_what_is_allowed(value: object, ruleset: Ruleset) -> None:
    with pytest.raises(ConfigError, match=rf"openclaw\.json: {PATH}\.enabled must be true, false or null"):
        resolve(ruleset, block=block({"enabled": value}))


def test_a_detector_switch_that_is_no_boolean_is_an_error() -> None:
    with pytest.raises(ConfigError, match=rf"{PATH}\.detectors\.pingPong must be true, false or null"):
        of({"detectors": {"pingPong": "off"}})


@pytest.mark.parametrize("group", ["detectors", "postCompactionGuard"])
def test_a_group_that_is_no_object_is_an_error(group: str) -> None:
    with pytest.raises(ConfigError, match=rf"{PATH}\.{group} must be an object, not false"):
        of({group: False})


# Repairs


@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, math.inf, -math.inf, True, False, "5", "", [], {}, 10**400])
@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("historySize", 30),
        ("warningThreshold", 10),
        ("criticalThreshold", 20),
        ("globalCircuitBreakerThreshold", 30),
        ("unknownToolThreshold", 10),
    ],
)
def test_what_is_no_positive_whole_number_falls_back_to_the_default(name: str, default: int, value: object) -> None:
    policy = of({name: value})
    assert numbers(policy) == (30, 10, 20, 30, 10, 3)
    origin = policy.origins[name]
    assert (origin.kind, origin.source, origin.path) == ("repaired", "openclaw.json", f"{PATH}.{name}")
    assert origin.detail is not None
    assert f"default {default}" in origin.detail
    assert f"{PATH}.{name}" in notes(policy, "repaired")[name]


def test_an_invalid_window_falls_back_to_the_default() -> None:
    policy = of({"postCompactionGuard": {"windowSize": 0}})
    assert policy.guard_window == 3
    assert (
        "0 is not a positive whole number: the default 3"
        in notes(policy, "repaired")["postCompactionGuard.windowSize"]
    )


def test_a_whole_float_is_a_count_as_in_javascript() -> None:
    policy = of({"warningThreshold": 12.0, "historySize": 40.0})
    assert (policy.warning, policy.history_size) == (12, 40)
    assert isinstance(policy.warning, int)
    assert notes(policy, "repaired") == {}
    assert positive_whole(2**53 + 1) == 2**53


def test_an_invalid_value_of_the_agent_falls_back_to_the_default_and_not_to_the_global_value() -> None:
    policy = resolve(
        OLD, block=block({"enabled": True, "warningThreshold": 12}), agent=agent({"warningThreshold": 0})
    )
    assert policy.warning == 10


def test_critical_is_raised_above_warning_and_the_breaker_above_critical() -> None:
    policy = of({"warningThreshold": 12, "criticalThreshold": 12, "globalCircuitBreakerThreshold": 12})
    assert (policy.warning, policy.critical, policy.breaker) == (12, 13, 14)
    repaired = notes(policy, "repaired")
    assert "raised from 12 to 13: it must be above warningThreshold 12" in repaired["criticalThreshold"]
    assert "raised from 12 to 14: it must be above criticalThreshold 13" in repaired["globalCircuitBreakerThreshold"]
    assert policy.origins["criticalThreshold"].kind == "repaired"
    assert policy.origins["criticalThreshold"].path == f"{PATH}.criticalThreshold"


def test_a_default_is_raised_as_well_and_a_second_repair_keeps_the_first() -> None:
    policy = of({"warningThreshold": 40, "criticalThreshold": "x"})
    assert (policy.critical, policy.breaker) == (41, 42)
    detail = policy.origins["criticalThreshold"].detail
    assert detail == (
        '"x" is not a positive whole number: the default 20 instead; '
        "raised from 20 to 41: it must be above warningThreshold 40"
    )
    assert policy.origins["globalCircuitBreakerThreshold"].kind == "repaired"
    assert policy.origins["globalCircuitBreakerThreshold"].source is None


# Fixed rulesets


@pytest.mark.parametrize("ruleset", [FIXED, LATEST], ids=lambda r: r.name)
def test_a_fixed_ruleset_reads_enabled_alone_and_says_what_it_ignores(ruleset: Ruleset) -> None:
    policy = resolve(
        ruleset,
        block=block({"enabled": False, "historySize": 5, "postCompactionGuard": {"windowSize": 9}}),
        agent=agent({"enabled": True, "warningThreshold": "x", "detectors": {"pingPong": False}}),
        overrides=overrides({"criticalThreshold": 5}),
    )
    assert policy.enabled is True
    assert policy.origins["enabled"].kind == "agent"
    assert numbers(policy) == (30, 10, 20, 30, 10, 3)
    assert policy.ping_pong is True
    ignored = notes(policy, "ignored")
    assert set(ignored) == {
        "historySize",
        "postCompactionGuard.windowSize",
        "warningThreshold",
        "detectors.pingPong",
        "criticalThreshold",
    }
    assert f"{ruleset.name} fixes historySize at 30" in ignored["historySize"]
    assert "at true" in ignored["detectors.pingPong"]
    assert {note.kind for note in policy.notes} == {"ignored"}
    assert {policy.origins[name].kind for name in FIELDS if name != "enabled"} == {"fixed"}


# What a history cannot reach, and warnings that come late


def test_a_breaker_beyond_the_history_is_named_with_the_size_that_it_needs() -> None:
    message = notes(of({"historySize": 20}), "unreachable")
    assert set(message) == {"globalCircuitBreakerThreshold"}
    assert "historySize would have to be 30" in message["globalCircuitBreakerThreshold"]


def test_a_short_history_reaches_nothing_but_ping_pong_one_further() -> None:
    unreachable = notes(of({"historySize": 19}), "unreachable")
    assert set(unreachable) == {"criticalThreshold", "globalCircuitBreakerThreshold"}
    assert "generic_repeat and known_poll_no_progress" in unreachable["criticalThreshold"]
    assert "ping_pong" not in unreachable["criticalThreshold"]
    assert "historySize would have to be 20" in unreachable["criticalThreshold"]
    unreachable = notes(of({"historySize": 9}), "unreachable")
    assert set(unreachable) == {"criticalThreshold", "globalCircuitBreakerThreshold"} | {
        "warningThreshold",
        "unknownToolThreshold",
    }
    assert "ping_pong" in unreachable["criticalThreshold"]
    assert "9 (10 for ping_pong) at most" in unreachable["criticalThreshold"]


def test_detectors_that_are_off_are_not_out_of_reach() -> None:
    only_ping_pong = {"genericRepeat": False, "knownPollNoProgress": False}
    assert "criticalThreshold" not in notes(of({"historySize": 19, "detectors": only_ping_pong}), "unreachable")
    message = notes(of({"historySize": 18, "detectors": only_ping_pong}), "unreachable")["criticalThreshold"]
    assert "out of reach of ping_pong" in message
    assert "historySize would have to be 19" in message


def test_warnings_under_ten_come_late() -> None:
    assert notes(of({"warningThreshold": 5}), "late") == {
        "warningThreshold": "warningThreshold 5: warnings are still only emitted from count 10 on"
    }
    blocked_first = notes(of({"warningThreshold": 3, "criticalThreshold": 10}), "late")["warningThreshold"]
    assert "criticalThreshold 10 blocks a loop without progress before any warning" in blocked_first
    never = notes(of({"warningThreshold": 3, "historySize": 8}), "late")["warningThreshold"]
    assert "a history of 8 records does not reach" in never
    assert notes(of({"warningThreshold": 10}), "late") == {}


# Unknown fields


@pytest.mark.parametrize(
    ("values", "place", "nearest"),
    [
        ({"warningTreshold": 1}, "warningTreshold", "warningThreshold"),
        ({"criticalthreshold": 1}, "criticalthreshold", "criticalThreshold"),
        ({"pingPong": False}, "pingPong", "detectors.pingPong"),
        ({"detectors": {"pingpong": False}}, "detectors.pingpong", "detectors.pingPong"),
        ({"postCompactionGuard": {"window": 3}}, "postCompactionGuard.window", "postCompactionGuard.windowSize"),
    ],
)
@pytest.mark.parametrize("ruleset", [OLD, FIXED], ids=lambda r: r.name)
def test_an_unknown_field_is_an_error_that_names_the_nearest_one(
    values: dict[str, Any], place: str, nearest: str, ruleset: Ruleset
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(ruleset, block=block(values))
    assert f"openclaw.json: {PATH}.{place}: there is no such field; did you mean {nearest}?" in str(caught.value)


def test_a_name_like_no_field_gets_the_list_and_is_neutralised() -> None:
    with pytest.raises(ConfigError) as caught:
        of({"zz\x1b[31m\n\u202e": 1})
    assert "known fields: enabled, historySize" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert nearest_field("zzzzzzzz") is None


def test_an_enormous_name_costs_no_time_and_no_screen() -> None:
    with pytest.raises(ConfigError) as caught:
        of({"warningThreshold" * 100_000: 1})
    assert len(str(caught.value)) < 500


# Properties

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
odd_values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, "", "5", "x", [], [5], {}, math.nan, math.inf, -math.inf, 10**400]
)
counts = st.integers(-2, 60) | st.integers(-2, 60).map(float) | st.integers() | st.floats() | odd_values
switches = st.none() | st.booleans()


@st.composite
def blocks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a block with fields that exist and are sometimes left out; counts may be anything."""
    values: dict[str, Any] = {}
    for name in FIELDS:
        if not draw(st.booleans()):
            continue
        group, _, leaf = name.rpartition(".")
        target = values.setdefault(group, {}) if group else values
        target[leaf] = draw(switches if name == "enabled" or group == "detectors" else counts)
    return values


@settings(deadline=None)  # a busy machine is no failure
@given(blocks(), blocks(), st.sampled_from(list(RULESETS.values())))
def test_thresholds_are_always_ordered_and_positive(
    one: dict[str, Any], two: dict[str, Any], ruleset: Ruleset
) -> None:
    policy = resolve(ruleset, block=block(one), agent=agent(two))
    assert all(type(number) is int and number >= 1 for number in numbers(policy))
    assert policy.warning < policy.critical < policy.breaker


@settings(deadline=None)  # a busy machine is no failure
@given(blocks(), blocks())
def test_an_overlay_is_the_merged_block(one: dict[str, Any], two: dict[str, Any]) -> None:
    merged = {**one, **two}
    for group in ("detectors", "postCompactionGuard"):
        if group in one and group in two:
            merged[group] = {**one[group], **two[group]}
    overlaid, plain = resolve(OLD, block=block(one), agent=agent(two)), resolve(OLD, block=block(merged))
    assert numbers(overlaid) == numbers(plain)
    assert overlaid.enabled is plain.enabled
    for name in ("generic_repeat", "known_poll", "ping_pong"):
        assert getattr(overlaid, name) is getattr(plain, name)


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.dictionaries(
        st.sampled_from(["detectors", "postCompactionGuard", *FIELDS]) | st.text(max_size=8), json_values
    ),
    st.sampled_from(list(RULESETS.values())),
)
def test_any_object_gives_a_policy_or_a_config_error(values: dict[str, Any], ruleset: Ruleset) -> None:
    try:
        policy = resolve(ruleset, block=block(values))
    except ConfigError as error:
        texts = [str(error)]
    else:
        texts = [note.message for note in policy.notes]
    assert texts == [clean(text) for text in texts]
