"""How a configuration is found in a file, an object and ``name=value`` settings."""

from __future__ import annotations

import errno
import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.configfile import (
    MAX_BYTES,
    CommandLineSettings,
    load_agent_policies,
    load_policy,
    parse_settings,
    read_config,
)
from loopscan.errors import ConfigError, UsageError
from loopscan.policy import FIELDS, Policy
from loopscan.sanitize import clean

Write = Callable[[str | bytes], Path]
BLOCK = {"enabled": True, "warningThreshold": 12}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes) -> Path:
        path = tmp_path / "openclaw.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def messages(policy: Policy, field: str) -> list[str]:
    return [note.message for note in policy.notes if note.field == field]


# What a file may be


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ({"gateway": {"port": 1}, "tools": {"allow": [], "loopDetection": BLOCK}}, "tools.loopDetection."),
        ({"allow": ["read"], "loopDetection": BLOCK}, "loopDetection."),
        ({"loopDetection": BLOCK}, "loopDetection."),
        (BLOCK, ""),
    ],
    ids=["openclaw.json", "tools", "loopDetection", "block"],
)
@pytest.mark.parametrize("parsed", [False, True], ids=["file", "object"])
def test_content_decides_what_a_configuration_is(
    content: dict[str, Any], path: str, parsed: bool, write: Write
) -> None:
    file = write(json.dumps(content))
    policy = load_policy("2026.6", config=content if parsed else file)
    assert policy.enabled is True
    assert policy.warning == 12
    origin = policy.origins["warningThreshold"]
    assert origin.kind == ("argument" if parsed else "file")
    assert origin.source == (None if parsed else str(file))
    assert origin.path == f"{path}warningThreshold"


def test_comments_trailing_commas_and_bare_names_are_read(write: Write) -> None:
    path = write("\ufeff// ours\n{ tools: { loopDetection: { enabled: true, warningThreshold: +12., }, /* x */ }, }")
    assert load_policy("2026.6", config=path).warning == 12
    assert load_policy("2026.6", config=str(path)).warning == 12


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        '{"gateway": {}}',
        '{"tools": null}',
        '{"tools": {}}',
        '{"tools": {"loopDetection": null}}',
        '{"loopDetection": null}',
        '{"agents": {}}',
        '{"allow": ["read"]}',
    ],
)
def test_a_configuration_without_a_block_leaves_enabled_unset(content: str, write: Write) -> None:
    policy = load_policy("2026.6", config=write(content))
    assert policy.enabled is None
    assert [note.kind for note in policy.notes] == ["silenced"]


def test_no_configuration_shows_what_would_have_fired() -> None:
    assert load_policy("latest").enabled is True


def test_an_object_need_not_be_a_dict() -> None:
    frozen = types.MappingProxyType(
        {"tools": types.MappingProxyType({"loopDetection": types.MappingProxyType(BLOCK)})}
    )
    assert load_policy("2026.6", config=frozen).warning == 12


def test_unknown_fields_elsewhere_are_none_of_our_business(write: Write) -> None:
    content = {"whatever": 1, "tools": {"nonsense": 2, "loopDetection": BLOCK}, "agents": 3}
    assert load_policy("2026.6", config=write(json.dumps(content))).warning == 12


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"name": "left-pad", "version": "1"}, "neither an openclaw.json nor its tools"),
        ({"loopdetection": {}}, "did you mean loopDetection?"),
        ({"tolls": {}}, "did you mean tools?"),
        ({"warningTreshold": 3}, "did you mean warningThreshold?"),
        ({"tools": {}, "loopDetection": {}}, "belongs into tools"),
        ({"tools": 3}, "tools must be an object, not 3"),
        ({"tools": {"loopDetection": [1]}}, "tools.loopDetection must be an object, not an array"),
        (
            {"tools": {"loopDetection": {"enable": True}}},
            "tools.loopDetection.enable: there is no such field; did you",
        ),
        ([], "holds an array"),
        ("x", 'holds "x"'),
        (None, "holds null"),
    ],
)
def test_anything_else_is_one_clear_line(content: object, message: str, write: Write) -> None:
    path = write(json.dumps(content))
    with pytest.raises(ConfigError) as caught:
        load_policy("2026.6", config=path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_misspelt_block_within_tools_is_pointed_out(write: Write) -> None:
    policy = load_policy("2026.6", config=write('{"tools": {"loopdetection": {"enabled": true}}}'))
    assert policy.enabled is None
    assert any(
        "tools.loopdetection is ignored: did you mean loopDetection?" in m for m in messages(policy, "loopDetection")
    )


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"$include": "base.json5"}, "openclaw.json has an $include"),
        ({"$include": "base.json5", "tools": {"loopDetection": BLOCK}}, "openclaw.json has an $include"),
        ({"tools": {"$include": "tools.json5"}}, "tools has an $include"),
        ({"tools": {"loopDetection": {"$include": "x", **BLOCK}}}, "tools.loopDetection has an $include"),
        ({"agents": {"$include": "agents.json5"}}, "agents has an $include"),
    ],
)
def test_includes_are_not_followed_and_that_is_said(content: dict[str, Any], place: str, write: Write) -> None:
    found = messages(load_policy("2026.6", config=write(json.dumps(content)), agent="main"), "$include")
    assert len(found) == 1
    assert place in found[0]


# Agents


def whole(**agents: object) -> dict[str, Any]:
    return {"tools": {"loopDetection": BLOCK}, "agents": agents}


def with_block(**values: object) -> dict[str, Any]:
    return {"tools": {"loopDetection": values}}


@pytest.mark.parametrize("ruleset", ["2026.6", "2026.9", "latest"])
def test_both_places_of_agents_are_read_whatever_the_ruleset(ruleset: str) -> None:
    listed = whole(list=[{"id": "other"}, {"id": "main", **with_block(enabled=False)}])
    policy = load_policy(ruleset, config=listed, agent="main")
    assert policy.enabled is False
    assert policy.origins["enabled"].path == "agents.list[1].tools.loopDetection.enabled"
    entries = whole(entries={"main": with_block(enabled=False)})
    policy = load_policy(ruleset, config=entries, agent="main")
    assert policy.enabled is False
    assert policy.origins["enabled"].path == "agents.entries.main.tools.loopDetection.enabled"
    assert load_policy(ruleset, config=entries).enabled is True


def test_an_agent_without_a_block_has_the_global_one() -> None:
    policy = load_policy("2026.6", config=whole(list=[{"id": "main"}], entries={"main": None}), agent="main")
    assert policy.warning == 12
    assert policy.notes == ()


@pytest.mark.parametrize(
    ("ruleset", "wins", "loses"), [("2026.6", "list[0]", "entries.main"), ("2026.9", "entries.main", "list[0]")]
)
def test_where_both_places_hold_a_block_the_rulesets_own_wins(ruleset: str, wins: str, loses: str) -> None:
    content = whole(list=[{"id": "main", **with_block(enabled=True)}], entries={"main": with_block(enabled=True)})
    policy = load_policy(ruleset, config=content, agent="main")
    assert policy.origins["enabled"].path == f"agents.{wins}.tools.loopDetection.enabled"
    (message,) = messages(policy, "agent")
    assert f"agents.{loses}.tools.loopDetection is ignored" in message


def test_ids_are_compared_as_openclaw_does() -> None:
    content = whole(list=[{"id": " Main ", **with_block(enabled=False)}])
    assert load_policy("2026.6", config=content, agent="main").enabled is False


def test_an_unknown_agent_is_a_note_with_the_nearest_id(write: Write) -> None:
    path = write(json.dumps(whole(list=[{"id": "writer"}, {"id": "reader"}])))
    policy = load_policy("2026.6", config=path, agent="writter")
    assert policy.warning == 12
    assert messages(policy, "agent") == [
        f'agent "writter" is not in {path} (the nearest is "writer"); the global block applies'
    ]
    (message,) = messages(load_policy("2026.6", config=path, agent="zz\x1b"), "agent")
    assert "nearest" not in message
    assert message.isprintable()
    assert len(messages(load_policy("2026.6", agent="main"), "agent")) == 1


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ({"list": {}}, "agents.list must be an array"),
        ({"entries": []}, "agents.entries must be an object"),
        ({"list": [{"id": "main", "tools": 1}]}, r"agents.list[0].tools must be an object"),
        ({"list": [{"id": "main", **with_block(pingpong=1)}]}, r"agents.list[0].tools.loopDetection.pingpong"),
        ({"entries": {"ma in": with_block(x=1), "main": {}}}, None),
    ],
)
def test_what_does_not_make_sense_is_named_where_it_stands(agents: dict[str, Any], message: str | None) -> None:
    if message is None:
        load_policy("2026.6", config=whole(**agents), agent="main")
        return
    with pytest.raises(ConfigError) as caught:
        load_policy("2026.6", config=whole(**agents), agent="main")
    assert message in str(caught.value)


def test_an_id_that_is_no_plain_word_stands_in_brackets() -> None:
    policy = load_policy("2026.6", config=whole(entries={"ma in": with_block(enabled=False)}), agent="ma in")
    assert policy.origins["enabled"].path == 'agents.entries["ma in"].tools.loopDetection.enabled'


# Overrides


def test_settings_are_json_by_field_name() -> None:
    parsed = parse_settings(
        ["warningThreshold=8", "detectors.pingPong=false", "enabled = null", "warningThreshold=12"]
    )
    assert parsed == {"warningThreshold": 12, "detectors.pingPong": False, "enabled": None}
    assert isinstance(parsed, CommandLineSettings)
    policy = load_policy("2026.6", config=BLOCK, overrides=parsed)
    assert policy.enabled is None
    assert policy.origins["warningThreshold"].kind == "command line"


def test_overrides_of_the_library_say_that_they_are_arguments() -> None:
    policy = load_policy("2026.6", overrides={"warningThreshold": 12, "detectors": {"pingPong": False}})
    assert policy.enabled is True
    assert policy.origins["warningThreshold"].kind == "argument"
    assert policy.origins["detectors.pingPong"].path == "overrides.detectors.pingPong"


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ("warningTreshold=8", ConfigError, "did you mean warningThreshold?"),
        ("detectors.pingpong=true", ConfigError, "did you mean detectors.pingPong?"),
        ("windowSize=2", ConfigError, "did you mean postCompactionGuard.windowSize?"),
        ("zz\x1b=2", ConfigError, "known fields: enabled"),
        ("warningThreshold", UsageError, "write name=value"),
        ("warningThreshold=", UsageError, "no JSON value"),
        ("enabled=yes\x1b[0m", UsageError, "no JSON value"),
        ("enabled=\udcff", UsageError, "no JSON value"),
    ],
)
def test_a_setting_that_makes_no_sense_says_what_would(setting: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        parse_settings([setting])
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_unknown_ruleset_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"known: 2026\.6"):
        load_policy("2020.1")


# Files that mean harm, or are none


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("{\n  tools: {\n    a b\n  }\n}", 'line 3, column 7: unexpected "b"'),
        ("{tools: {", "line 1, column 10: unexpected end of file"),
        ("{a: '\x1b\n'}", r"line 1, column 7: unexpected"),
        (b"{\xff}", "byte 2 is no UTF-8"),
        (b"\xff\xfe{\x00}\x00", "no UTF-8"),
        ("[" * 100_000, "nested too deeply"),
        ('{"tools":' * 5_000 + "1" + "}" * 5_000, "nested too deeply"),
        (" " * (MAX_BYTES + 1), "larger than"),
        ("/* " * 10, "unexpected"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_broken_file_is_a_config_error_with_its_place(content: str | bytes, message: str, write: Write) -> None:
    path = write(content)
    with pytest.raises(ConfigError) as caught:
        load_policy("2026.6", config=path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "digits",
    ["1" * 5_000, "-" + "1" * 5_000, "1e999", "0x" + "f" * 500, "NaN", "-Infinity"],
    ids=lambda digits: digits[:8],
)
def test_numbers_beyond_measure_fall_back_like_in_openclaw(digits: str, write: Write) -> None:
    policy = load_policy("2026.6", config=write(f"{{enabled: true, warningThreshold: {digits}}}"))
    assert policy.warning == 10
    assert policy.origins["warningThreshold"].kind == "repaired"


def test_a_deep_value_where_a_number_belongs_is_repaired(write: Write) -> None:
    path = write('{"enabled": true, "warningThreshold": ' + "[" * 900 + "]" * 900 + "}")
    assert load_policy("2026.6", config=path).warning == 10


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.json: No such file"):
        load_policy("2026.6", config=tmp_path / "missing.json")
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        load_policy("2026.6", config=tmp_path)
    with pytest.raises(ConfigError, match="no valid path"):
        load_policy("2026.6", config=Path("a\0b"))
    with pytest.raises(ConfigError, match="must be a path or an object"):
        load_policy("2026.6", config=[])  # type: ignore[arg-type]


def test_a_forbidden_file_says_so(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    path = write("{}")
    monkeypatch.setattr(Path, "open", forbid)
    with pytest.raises(ConfigError, match=r"openclaw\.json: Permission denied"):
        read_config(path)


def test_paths_are_neutralised_in_messages(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_policy("2026.6", config=tmp_path / "a\x1b[31mb\nc.json")
    assert str(caught.value).isprintable()


def test_json_is_read_without_the_slow_parser(write: Write) -> None:
    agents = [{"id": f"a{index}", **with_block(enabled=False)} for index in range(5_000)]
    policy = load_policy("2026.6", config=write(json.dumps(whole(list=agents))), agent="a4999")
    assert policy.enabled is False


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["tools", "loopDetection", "agents", "list", "entries", "id", "main", "$include", *FIELDS]
            )
            | st.text(max_size=6),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)  # a busy machine is no failure
@given(st.dictionaries(st.sampled_from(["tools", "agents", "loopDetection", "detectors"]) | st.text(), json_values))
def test_any_object_gives_a_policy_or_a_config_error(config: dict[str, Any]) -> None:
    for agent in (None, "main"):
        try:
            policy = load_policy("2026.6", config=config, agent=agent)
        except ConfigError as error:
            texts = [str(error)]
        else:
            texts = [note.message for note in policy.notes]
        assert texts == [clean(text) for text in texts]


@settings(deadline=None)  # a busy machine is no failure
@given(st.binary(max_size=60) | st.text("{}[]:,'\"/*\\\n 1aeu.+-", max_size=40).map(str.encode))
def test_any_bytes_give_an_object_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(data)
    try:
        read_config(path)
    except ConfigError as error:
        text = str(error)
        assert text == clean(text)


def test_agents_with_a_block_of_their_own_have_a_policy_each() -> None:
    config = {
        "tools": {"loopDetection": {"enabled": True, "warningThreshold": 11}},
        "agents": {
            "list": [
                {"id": " Builder ", "tools": {"loopDetection": {"criticalThreshold": 15}}},
                {"id": "plain"},
                {"id": "builder", "tools": {"loopDetection": {"criticalThreshold": 99}}},
            ],
            "entries": {"scribe": {"tools": {"loopDetection": {"enabled": False}}}},
        },
    }
    policies = load_agent_policies("2026.6", config=config)
    assert set(policies) == {"builder", "scribe"}
    assert (policies["builder"].warning, policies["builder"].critical) == (11, 15)
    assert policies["scribe"].enabled is False
    assert load_agent_policies("2026.6") == {}


def test_an_unknown_agent_is_told_who_there_is() -> None:
    config = {"agents": {"list": [{"id": "builder"}, {"id": "scribe"}]}}
    (note, *_) = load_policy("2026.6", config=config, agent="zzz").notes
    assert '"builder", "scribe"' in note.message
