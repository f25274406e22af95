"""Settings are put into a configuration, and nothing else in it changes."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import json5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.configedit import Change, Edit, block_text, edit
from loopscan.configfile import MAX_BYTES, load_policy
from loopscan.errors import ConfigError, LoopscanError, UsageError
from loopscan.policy import COUNTS, FIELDS
from loopscan.rulesets import ruleset
from loopscan.wholefile import whole_file

OLD, NEW = ruleset("2026.6"), ruleset("2026.9")
FIXTURES = Path(__file__).parent.parent / "fixtures" / "config"

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes) -> Path:
        path = tmp_path / "openclaw.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def after(path: Path, *changes: Change) -> str:
    return edit(path, changes, OLD).after


CRITICAL = Change(None, "criticalThreshold", 15)
OFF = Change(None, "detectors.pingPong", False)


# The way a file is written


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(
            "{\n  tools: {\n    loopDetection: {\n      criticalThreshold: 20, // ours\n"
            "      // breaker: 30\n    },\n  },\n}\n",
            "{\n  tools: {\n    loopDetection: {\n      criticalThreshold: 15, // ours\n"
            "      detectors: {\n        pingPong: false,\n      },\n      // breaker: 30\n    },\n  },\n}\n",
            id="a comment stays beside its field",
        ),
        pytest.param(
            '{\n    "tools": {\n        "loopDetection": {\n            "enabled": true\n        }\n    }\n}',
            '{\n    "tools": {\n        "loopDetection": {\n            "enabled": true,\n'
            '            "criticalThreshold": 15,\n            "detectors": {\n                "pingPong": false\n'
            "            }\n        }\n    }\n}",
            id="JSON stays JSON",
        ),
        pytest.param(
            '{"tools":{"loopDetection":{"enabled":true,"warningThreshold":9}},"x":[1,2]}',
            '{"tools":{"loopDetection":{"enabled":true,"warningThreshold":9,"criticalThreshold":15,'
            '"detectors":{"pingPong":false}}},"x":[1,2]}',
            id="without blanks",
        ),
        pytest.param(
            '{"ui":1}',
            '{"ui":1,"tools":{"loopDetection":{"criticalThreshold":15,"detectors":{"pingPong":false}}}}',
            id="missing parents in one line",
        ),
        pytest.param(
            "{\r\n\t'gateway': 1, /* one\r\n two */ // three\r\n}\r\n",
            "{\r\n\t'gateway': 1, /* one\r\n two */ // three\r\n\t'tools': {\r\n\t\t'loopDetection': {\r\n"
            "\t\t\t'criticalThreshold': 15,\r\n\t\t\t'detectors': {\r\n\t\t\t\t'pingPong': false,\r\n\t\t\t},\r\n"
            "\t\t},\r\n\t},\r\n}\r\n",
            id="tabs, line breaks of Windows, single quotes",
        ),
        pytest.param(
            "\ufeff{ tools: { loopDetection: null, }, }",
            "\ufeff{ tools: { loopDetection: { criticalThreshold: 15, detectors: { pingPong: false } }, }, }",
            id="null is no block, a byte order mark stays",
        ),
        pytest.param(
            "{ tools: {}\n}",
            "{ tools: {\n  loopDetection: {\n    criticalThreshold: 15,\n    detectors: {\n"
            "      pingPong: false\n    }\n  }\n}\n}",
            id="a brace of its own line",
        ),
        pytest.param(
            "{ tools: { loopDetection: { /* on */ enabled: true /* yes */ } } } // end",
            "{ tools: { loopDetection: { /* on */ enabled: true, /* yes */ criticalThreshold: 15, "
            "detectors: { pingPong: false } } } } // end",
            id="a comment in the line",
        ),
        pytest.param(
            "{ tools: { loopDetection: { enabled: true // yes\n} } }",
            "{ tools: { loopDetection: { enabled: true, // yes\n  criticalThreshold: 15,\n"
            "  detectors: {\n    pingPong: false\n  }\n} } }",
            id="a comment to the end of the line",
        ),
        pytest.param(
            "{\n  a: 1\n, tools: {\n    b: 2\n  , loopDetection: { criticalThreshold: 15 }\n  }\n}",
            "{\n  a: 1\n, tools: {\n    b: 2\n  , loopDetection: { criticalThreshold: 15, "
            "detectors: { pingPong: false } }\n  }\n}",
            id="commas first",
        ),
        pytest.param(
            "{tools: {loopDetection: {criticalThreshold: 1}}, tools: {loopDetection: {criticalThreshold: 2}}}",
            "{tools: {loopDetection: {criticalThreshold: 1}}, tools: {loopDetection: {criticalThreshold: 15, "
            "detectors: {pingPong: false}}}}",
            id="of two the last one counts",
        ),
        pytest.param(
            r"""{ "to\u006fls": { l\u006fopDetection: { "critical\
Threshold": 20, detectors: { 'pingP\x6fng': true } } } }""",
            r"""{ "to\u006fls": { l\u006fopDetection: { "critical\
Threshold": 15, detectors: { 'pingP\x6fng': false } } } }""",
            id="names in other words",
        ),
        pytest.param(
            "{ tools: { loopDetection: { criticalThreshold: 0xF, detectors: { /* { */ pingPong: true, }, }, } }",
            "{ tools: { loopDetection: { criticalThreshold: 0xF, detectors: { /* { */ pingPong: false, }, }, } }",
            id="a value that is there in other words stays",
        ),
        pytest.param(
            "{}", '{\n  "tools": {\n    "loopDetection": {\n      "criticalThreshold": 15,\n      "detectors": {\n'
            '        "pingPong": false\n      }\n    }\n  }\n}', id="nothing there",
        ),
        pytest.param(
            "{ enabled: true }",
            "{ enabled: true, criticalThreshold: 15, detectors: { pingPong: false } }",
            id="a block",
        ),
        pytest.param(
            "{ allow: [], loopDetection: {} }",
            "{ allow: [], loopDetection: { criticalThreshold: 15, detectors: { pingPong: false } } }",
            id="the tools object",
        ),
    ],
)  # fmt: skip
def test_what_is_added_is_written_as_what_is_there(before: str, expected: str, write: Write) -> None:
    path = write(before)
    changed = edit(path, [OFF, CRITICAL], OLD)
    assert changed.before == before
    assert changed.after == expected
    assert path.read_bytes() == before.encode()
    changed.write()
    assert path.read_bytes() == expected.encode()
    policy = load_policy("2026.6", config=path)
    assert (policy.critical, policy.ping_pong) == (15, False)


def test_what_has_its_value_already_is_no_change(write: Write) -> None:
    path = write("{ tools: { loopDetection: { criticalThreshold: +15.0, detectors: { pingPong: false } } } }")
    path.chmod(0o400)
    before = path.stat()
    changed = edit(path, [CRITICAL, OFF], OLD)
    assert changed.before == changed.after
    assert changed.diff() == ""
    changed.write()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert edit(path, [], OLD).diff() == ""


def test_a_switch_is_no_number(write: Write) -> None:
    path = write("{ tools: { loopDetection: { criticalThreshold: '15' } } }")
    assert after(path, CRITICAL) == "{ tools: { loopDetection: { criticalThreshold: 15 } } }"
    path = write("{ tools: { loopDetection: { unknownToolThreshold: true } } }")
    assert after(path, Change(None, "unknownToolThreshold", 1)).endswith("unknownToolThreshold: 1 } } }")


# Agents


LISTED = """{
  agents: {
    list: [
      { id: "main" }, // first
      { id: " Builder", tools: { loopDetection: { enabled: true } } },
      {
        id: "watcher",
      },
    ],
  },
}
"""


def test_an_agent_in_the_list_is_changed_in_its_entry(write: Write) -> None:
    text = after(
        write(LISTED), Change("builder", "criticalThreshold", 15), Change("main", "enabled", False),
        Change("watcher", "enabled", True),
    )  # fmt: skip
    assert text == LISTED.replace('"main" }', '"main", tools: { loopDetection: { enabled: false } } }').replace(
        "{ enabled: true }", "{ enabled: true, criticalThreshold: 15 }"
    ).replace(
        'id: "watcher",\n',
        'id: "watcher",\n        tools: {\n          loopDetection: {\n'
        "            enabled: true,\n          },\n        },\n",
    )


def test_an_agent_among_the_entries_is_changed_there(write: Write) -> None:
    path = write("{\n  agents: { entries: { scribe: {}, 'a b': { x: 1 } } },\n}")
    changed = edit(path, [Change("scribe", "enabled", False), Change("A b", "enabled", True)], NEW)
    assert changed.after == (
        "{\n  agents: { entries: { scribe: { tools: { loopDetection: { enabled: false } } }, "
        "'a b': { x: 1, tools: { loopDetection: { enabled: true } } } } },\n}"
    )


@pytest.mark.parametrize("rules", [OLD, NEW], ids=lambda rules: rules.name)
@pytest.mark.parametrize(
    "content",
    [
        "{ agents: { list: [{ id: 'a' }] } }",
        "{ agents: { entries: { a: {} } } }",
        "{ agents: { list: [{ id: 'a' }], entries: { a: { tools: { loopDetection: {} } } } } }",
        "{ agents: { entries: { a: {} }, list: [{ id: 'b' }, { id: 'a', tools: { loopDetection: {} } }] } }",
    ],
)
def test_the_block_of_an_agent_is_used_wherever_it_is(content: str, rules: Any, write: Write) -> None:
    path = write(content)
    changed = edit(path, [Change("a", "enabled", True)], rules)
    changed.write()
    assert changed.after.count("enabled") == 1
    if "loopDetection" in content:
        assert "loopDetection: { enabled: true }" in changed.after
        assert changed.after.count("loopDetection") == 1
    assert load_policy(rules.name, config=path, agent="a").enabled is True


# What is refused


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (LISTED, [Change("scribe", "enabled", True)], 'has no agent "scribe"; add it to agents.list first'),
        ("{}", [Change("a", "enabled", True)], 'has no agent "a"'),
        ("{ enabled: true }", [Change("a", "enabled", True)], "a loopDetection block alone and has no agents"),
        ("{ loopDetection: {} }", [Change("a", "enabled", True)], "the tools object alone and has no agents"),
        ("{ $include: './x' }", [CRITICAL], r"openclaw.json has an \$include"),
        ("{ tools: { $include: './x' } }", [CRITICAL], r": tools has an \$include"),
        ("{ tools: { loopDetection: { '$include': './x' } } }", [CRITICAL], r"tools.loopDetection has an \$include"),
        ("{ tools: { loopDetection: { detectors: { $include: 'x' } } } }", [OFF], r"detectors has an \$include"),
        ("{ agents: { $include: 'x' } }", [Change("a", "enabled", True)], r"agents has an \$include"),
        ("{ agents: { list: { $include: 'x' } } }", [Change("a", "enabled", True)], r"agents.list has an \$include"),
        ("{ agents: { entries: { $include: 'x' } } }", [Change("a", "enabled", True)], r"entries has an \$include"),
        ("{ agents: { list: [{ $include: 'x' }] } }", [Change("a", "enabled", True)], r"list\[0\] has an \$include"),
        ("{ agents: { list: [{ id: 'a', $include: 'x' }] } }", [Change("a", "enabled", True)], r"list\[0\] has"),
        ("{ tools: [] }", [CRITICAL], "openclaw.json: tools must be an object, not an array"),
        ("{ tools: { loopDetection: { critical: 3 } } }", [CRITICAL], "did you mean criticalThreshold"),
        ("{ tools: { ", [CRITICAL], "line 1, column 12"),
        ("[]", [CRITICAL], "holds an array"),
        ("{ tools: { loopDetection: { warningThreshold: 15 } } }", [CRITICAL], "15 would be read as 16; nothing"),
        ("{ loopDetection: { warningThreshold: 15, criticalThreshold: 15 } }", [CRITICAL], "15 would be read as 16"),
        ("{}", [Change(None, "criticalThreshold", 2**53 + 1)], "criticalThreshold must be a positive whole number"),
        ("{}", [Change(None, "criticalThreshold", 0)], "must be a positive whole number, not 0"),
        ("{}", [Change(None, "criticalThreshold", True)], "must be a positive whole number, not true"),
        ("{}", [Change(None, "enabled", 1)], "enabled must be true or false, not 1"),
        ("{}", [Change(None, "critical", 1)], "did you mean criticalThreshold"),
        ("{}", [CRITICAL, Change(None, "criticalThreshold", 16)], "cannot be both 15 and 16"),
        (LISTED, [Change("main", "enabled", True), Change("Main ", "enabled", False)], "cannot be both true and"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(content: str, changes: list[Change], message: str, write: Write) -> None:
    path = write(content)
    with pytest.raises(LoopscanError, match=message):
        edit(path, changes, OLD)
    assert path.read_text() == content


def test_an_include_elsewhere_is_not_in_the_way(write: Write) -> None:
    path = write("{ models: { $include: 'x' }, agents: { list: [{ $include: 'y' }, { id: 'a' }] }, tools: {} }")
    assert edit(path, [CRITICAL, Change("a", "enabled", True)], OLD).after.count("$include") == 2


def test_thresholds_are_refused_where_they_are_fixed(write: Write) -> None:
    for attempt in (lambda: edit(write("{}"), [CRITICAL], NEW), lambda: block_text([CRITICAL], NEW)):
        with pytest.raises(UsageError, match=r"ruleset 2026\.9 reads `enabled` alone"):
            attempt()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path, tmp_path / "broken"):
        with pytest.raises(ConfigError, match="is no regular file"):
            edit(path, [CRITICAL], OLD)


def test_a_file_that_is_too_large_is_refused(write: Write) -> None:
    with pytest.raises(ConfigError, match="larger than"):
        edit(write("{}" + " " * MAX_BYTES), [CRITICAL], OLD)


def test_an_edit_that_changes_something_else_is_not_returned(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    block = '"tools": {"loopDetection": {"criticalThreshold": 15}}'
    for wrong in (f'{{ "ui": 2, {block} }}', f'{{ "ui": true, {block} }}', f"{{ {block} }}"):
        monkeypatch.setattr("loopscan.configedit.editing.with_values", lambda text, settings, wrong=wrong: wrong)
        with pytest.raises(ConfigError, match="which is a fault of loopscan; nothing is written"):
            edit(write('{ "ui": 1 }'), [CRITICAL], OLD)


# Writing


def test_a_new_file_has_the_block_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    changed = edit(path, [OFF, CRITICAL], OLD)
    assert changed.after == block_text([OFF, CRITICAL], OLD)
    assert changed.diff().startswith(f"--- {path}\n+++ {path}\n@@ -0,0 +1,")
    assert not path.exists()
    changed.write()
    assert path.read_text() == changed.after
    assert load_policy("2026.6", config=path).critical == 15
    with pytest.raises(ConfigError, match="has come up meanwhile"):
        changed.write()
    with pytest.raises(ConfigError, match='no such file, so there is no agent "a"'):
        edit(tmp_path / "other.json", [Change("a", "enabled", True)], OLD)
    assert edit(tmp_path / "other.json", [], OLD).after == ""


def test_a_file_that_was_changed_meanwhile_stays_as_it_is(write: Write, tmp_path: Path) -> None:
    path = write("{}")
    changed = edit(path, [CRITICAL], OLD)
    path.write_text("{ }")
    with pytest.raises(ConfigError, match="was changed meanwhile; nothing is written"):
        changed.write()
    assert path.read_text() == "{ }"
    path.unlink()
    with pytest.raises(ConfigError, match="has gone meanwhile"):
        changed.write()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(write: Write, tmp_path: Path) -> None:
    path = write("{}")
    (tmp_path / "link").symlink_to(path)
    edit(tmp_path / "link", [CRITICAL], OLD).write()
    assert (tmp_path / "link").is_symlink()
    assert load_policy("2026.6", config=path).critical == 15


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_what_only_its_owner_may_read_is_never_open_to_others(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("{}")
    path.chmod(0o600)
    umask = os.umask(0o022)
    try:
        with whole_file(str(path)) as file:
            (draft,) = (each for each in tmp_path.iterdir() if each != path)
            assert stat.S_IMODE(draft.stat().st_mode) == 0o600
            file.write(b"{}")
        copy = shutil.copymode

        def watched(old: Path, new: Path) -> None:
            assert stat.S_IMODE(new.stat().st_mode) == 0o600
            copy(old, new)

        monkeypatch.setattr(shutil, "copymode", watched)
        edit(path, [CRITICAL], OLD).write()
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# The block to paste


def test_the_block_has_every_field_in_order_and_is_what_an_editor_would_write(tmp_path: Path) -> None:
    values = dict(zip(FIELDS, [True, 40, 8, 15, 25, 5, False, True, False, 4], strict=True))
    changes = [Change(None, name, value) for name, value in reversed(values.items())]
    text = block_text([*changes, Change('a"\u202e', "enabled", False), Change("b", "historySize", 30)], OLD)
    assert [name for name in re.findall(r"\w+", text) if any(name == f.rpartition(".")[2] for f in FIELDS)] == [
        *(name.rpartition(".")[2] for name in FIELDS), "enabled", "historySize",
    ]  # fmt: skip
    assert "\u202e" not in text
    path = tmp_path / "block.json"
    path.write_text(text)
    policy = load_policy("2026.6", config=path)
    assert policy.values == values
    assert load_policy("2026.6", config=path, agent='a"\u202e').enabled is False
    assert load_policy("2026.6", config=path, agent="b").history_size == 30


def test_agents_stand_in_the_block_where_the_ruleset_reads_them() -> None:
    changes = [Change(None, "enabled", True), Change("a-b", "enabled", False)]
    assert json5.loads(block_text(changes, OLD))["agents"] == {
        "list": [{"id": "a-b", "tools": {"loopDetection": {"enabled": False}}}]
    }
    assert json5.loads(block_text(changes, NEW))["agents"] == {
        "entries": {"a-b": {"tools": {"loopDetection": {"enabled": False}}}}
    }
    assert block_text([], NEW) == "{}\n"


# The difference


def test_the_difference_of_a_fixture_shows_the_lines_around_the_changes() -> None:
    path = FIXTURES / "openclaw.json"
    shown = edit(path, [Change(None, "criticalThreshold", 16), Change("builder", "historySize", 40)], OLD).diff()
    assert shown.splitlines()[2:] == [
        "@@ -6,5 +6,5 @@",
        "       enabled: true,",
        "       warningThreshold: 10,",
        "-      criticalThreshold: 15, // one call is vetoed from here on; the run goes on",
        "+      criticalThreshold: 16, // one call is vetoed from here on; the run goes on",
        "       globalCircuitBreakerThreshold: 25,",
        "     },",
        "@@ -13,5 +13,5 @@",
        "     list: [",
        "       // Builds fail alike or they pass: *** fewer tries than everybody else.",
        '-      { id: "builder", tools: { loopDetection: { criticalThreshold: 12 } } },',
        '+      { id: "builder", tools: { loopDetection: { criticalThreshold: 12, historySize: 40 } } },',
        "       // Its jobs are silent for minutes: leave its polls to the circuit breaker.",
        '       { id: "***", tools: { loopDetection: { detectors: { knownPollNoProgress: false } } } },',
    ]


@pytest.mark.parametrize(
    "beside",
    [
        "hunter: 'hunter2'",
        "hunter:\n'hunter2'",
        "list: ['hunter2']",
        "pin: 48151623, more: [48151623]",
        "a: 'one \\\nhunter2'",
        "a: 1, // password: hunter2",
        "a: 1 /* password: hunter2 */",
        "'sk-ant-hunter2-abcdefgh': 1",
        "a: 1, /*\n-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n*/ b: 1",
    ],
)
def test_no_secret_is_in_the_difference(beside: str, write: Write) -> None:
    shown = edit(write(f"{{\n{beside},\ntools: {{ loopDetection: {{ }} }} }}"), [CRITICAL], OLD).diff()
    assert "***" in shown
    assert f"@@ -{beside.count(chr(10)) + 1},3 " in shown
    assert "+tools: { loopDetection: { criticalThreshold: 15 } } }" in shown
    assert "hunter2" not in shown
    assert "48151623" not in shown


def test_the_difference_of_one_long_line_is_what_was_changed_in_it(write: Write) -> None:
    many = ",".join(f'"key{number}":"{number}"' for number in range(5000))
    text = f'{{{many},"tools":{{"loopDetection":{{"criticalThreshold":20}}}},"more":{{{many}}}}}'
    shown = edit(write(text), [CRITICAL], OLD).diff().splitlines()
    assert len(shown) == 5
    assert all('"loopDetection":{"criticalThreshold":' in line and len(line) < 200 for line in shown[3:])


def test_nothing_in_the_difference_acts_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "open\x1b[2Jclaw.json"
    path.write_text("\ufeff{ // \x1b[2J\u202e\n\ttools: {},\n}")
    shown = edit(path, [CRITICAL], OLD).diff()
    assert shown.replace("\n", "").isprintable()
    assert r"\x1b[2J\u202e" in shown


# Any document


NAMES = ("models", "key-1", "a b", "é", "$x", "if", "tools ", "enabled", '"', "\\n")
SCALARS: tuple[Any, ...] = ("SECRET", "SECRET // no */ comment /*", "SECRET{[,", "SECRET'\"\\\n", 7, -1.5, None, True)
RANGES = {
    "historySize": (40, 50), "warningThreshold": (5, 9), "criticalThreshold": (15, 18),
    "globalCircuitBreakerThreshold": (25, 29), "unknownToolThreshold": (3, 9),
    "postCompactionGuard.windowSize": (2, 5),
}  # fmt: skip


def setting(rng: random.Random, name: str) -> int | bool:
    return rng.randint(*RANGES[name]) if name in COUNTS else rng.random() < 0.5


def nested(fields: Mapping[str, int | bool]) -> dict[str, Any]:
    block: dict[str, Any] = {}
    for name, value in fields.items():
        put(block, tuple(name.split(".")), value)
    return block


def put(document: Any, keys: tuple[str | int, ...], value: object) -> None:
    for key in keys[:-1]:
        if isinstance(document, dict) and document.get(key) is None:
            document[key] = {}
        document = document[key]
    document[keys[-1]] = value


class Writer:
    """Writes values as JSON5 in a random way."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.comments = 0
        self.plain = rng.random() < 0.2
        """JSON without comments."""

    def blank(self) -> str:
        if self.plain:
            return self.rng.choice(["", " ", "\n  "])
        self.comments += 1
        kinds = ["", "", "", " ", " ", "\n    ", "\n\t", f" /*c{self.comments}*/", f" //c{self.comments}\n", "\u00a0"]
        kinds.append(f"/*c{self.comments} {{ '\n */ ")
        return self.rng.choice(kinds)

    def string(self, text: str) -> str:
        if self.plain or self.rng.random() < 0.5:
            return json.dumps(text, ensure_ascii=self.rng.random() < 0.5)
        escaped = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return f"'{escaped}'"

    def name(self, text: str) -> str:
        bare = not self.plain and re.fullmatch(r"[\w$]+", text) and self.rng.random() < 0.5
        return text if bare else self.string(text)

    def value(self, value: Any) -> str:
        if isinstance(value, dict):
            members = list(value.items())
            if members and self.rng.random() < 0.1:
                members.insert(0, (members[-1][0], 0))  # the last of two counts
            return self.enclosed("{}", (
                f"{self.name(name)}{self.blank()}:{self.blank()}{self.value(item)}" for name, item in members
            ))  # fmt: skip
        if isinstance(value, list):
            return self.enclosed("[]", map(self.value, value))
        return self.string(value) if isinstance(value, str) else json.dumps(value)

    def enclosed(self, braces: str, items: Iterable[str]) -> str:
        body = ",".join(f"{self.blank()}{item}{self.blank()}" for item in items)
        trailing = "," if body and not self.plain and self.rng.random() < 0.5 else ""
        return f"{braces[0]}{body}{trailing}{self.blank()}{braces[1]}"


def filling(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if depth > 2 or kind < 0.6:
        return rng.choice(SCALARS)
    if kind < 0.7:
        return [filling(rng, depth + 1) for _ in range(rng.randint(0, 2))]
    if kind < 0.8:
        return {"$include": "SECRET.json5"}
    return {name: filling(rng, depth + 1) for name in rng.sample(NAMES, rng.randint(0, 2))}


def filled(rng: random.Random, **own: Any) -> dict[str, Any]:
    members = [*own.items(), *((name, filling(rng, 1)) for name in rng.sample(NAMES[:-3], rng.randint(0, 2)))]
    rng.shuffle(members)
    return dict(members)


def some_block(rng: random.Random) -> dict[str, Any]:
    """Return what is in a ``tools`` object: a block, an empty one, none."""
    kind = rng.random()
    if kind < 0.2:
        return {}
    if kind < 0.3:
        return {"loopDetection": rng.choice([None, {}])}
    names = rng.sample(FIELDS, rng.randint(0, 5))
    return {"loopDetection": nested({name: setting(rng, name) for name in names})}


def configuration(rng: random.Random) -> tuple[dict[str, Any], dict[str, tuple[str | int, ...]]]:
    """Return a document and where its agents are."""
    agents = {"list": [], "entries": {}} if rng.random() < 0.7 else {}  # type: dict[str, Any]
    places: dict[str, tuple[str | int, ...]] = {}
    for name in rng.sample(["a", "Ä b", "c-d"], rng.randint(0, 3)) if agents else ():
        entry = filled(rng, tools=filled(rng, **some_block(rng))) if rng.random() < 0.6 else {}
        if rng.random() < 0.5:
            places[name] = ("agents", "list", len(agents["list"]))
            agents["list"].append({"id": name, **entry})
        else:
            places[name] = ("agents", "entries", name)
            agents["entries"][name] = entry
    own: dict[str, Any] = {"tools": filled(rng, **some_block(rng))} if rng.random() < 0.7 else {}
    return filled(rng, **own, **({"agents": agents} if agents or not own else {})), places


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(char in rest for char in part)


def bare(text: str) -> str:
    """Return what may not change: all but white space, numbers and literals."""
    return re.sub(r"\b(?:true|false|null|\d+)\b|\s", "", text)


@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False), crlf=st.booleans(), mark=st.booleans())
def test_any_document_has_the_values_and_nothing_else_is_changed(
    rng: random.Random, crlf: bool, mark: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document, places = configuration(rng)
    writer = Writer(rng)
    text = f"{writer.blank()}{writer.value(document)}{writer.blank()}"
    text = ("\ufeff" if mark else "") + (text.replace("\n", "\r\n") if crlf else text)
    path = tmp_path_factory.mktemp("any") / "openclaw.json"
    path.write_bytes(text.encode())

    expected = json5.loads(text.removeprefix("\ufeff"))
    changes = []
    for agent in [None, *places]:
        for name in rng.sample(FIELDS, rng.randint(0, 4)):
            changes.append(Change(agent, name, setting(rng, name)))
            way = (*(() if agent is None else places[agent]), "tools", "loopDetection", *name.split("."))
            put(expected, way, changes[-1].value)
    changed: Edit = edit(path, rng.sample(changes, len(changes)), OLD)

    assert changed.before == text
    assert json5.loads(changed.after.removeprefix("\ufeff")) == expected
    assert re.findall(r"/[/*]c\d+", changed.after) == re.findall(r"/[/*]c\d+", text)
    assert is_subsequence(bare(text), bare(changed.after))
    if "\n" in text:
        assert set(re.findall("\r\n|\n|\r", changed.after)) <= {"\r\n" if crlf else "\n"}
    if writer.plain:
        json.loads(changed.after.removeprefix("\ufeff"))
    assert "SECRET" not in changed.diff()
    assert bool(changed.diff()) is (changed.before != changed.after)

    changed.write()
    assert path.read_bytes() == changed.after.encode()
    for change in changes:
        assert load_policy("2026.6", config=path, agent=change.agent).values[change.field] == change.value
    again = edit(path, changes, OLD)
    assert again.after == again.before


@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_an_edit_that_is_taken_back_leaves_every_byte_as_it_was(
    rng: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    old = {name: setting(rng, name) for name in rng.sample(FIELDS, 5)}
    text = Writer(rng).value(filled(rng, tools=filled(rng, loopDetection=nested(old))))
    path = tmp_path_factory.mktemp("back") / "openclaw.json"
    path.write_text(text, newline="")
    edit(path, [Change(None, name, setting(rng, name)) for name in old], OLD).write()
    edit(path, [Change(None, name, value) for name, value in old.items()], OLD).write()
    assert path.read_bytes() == text.encode()
