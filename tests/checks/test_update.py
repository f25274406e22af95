"""Snapshots are rewritten, and nothing else of a file is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscan.checks.document import Document, parse
from loopscan.checks.tasks import Task
from loopscan.checks.update import expectation_beside, new_file, rewritten
from loopscan.errors import ConfigError, UsageError

FIRST = {"kind": "warning", "detector": "generic_repeat", "count": 10, "run": 0, "session": "s1"}
SECOND = {"kind": "block", "detector": "generic_repeat", "count": 20, "run": 0, "session": "s1"}
NEW = {"sessions": 1, "runs": 1, "calls": 26, "marks": [FIRST, SECOND]}
WRITTEN = """\
snapshot:
  sessions: 1
  runs: 1
  calls: 26
  marks:
    - {kind: warning, detector: generic_repeat, count: 10, run: 0, session: s1}
    - {kind: block, detector: generic_repeat, count: 20, run: 0, session: s1}
"""


def update(text: str, within: tuple[object, ...] = (), new: dict[str, Any] = NEW, *, json: bool = False) -> str:
    return rewritten(parse(text, "x", json=json), within, new).text


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("text", ["", "# only a comment\n", "ruleset: 2026.9 # old\n", "skip: |\n  a\n  b\n"])
def test_a_snapshot_is_added_at_the_end(text: str) -> None:
    assert update(text) == text + WRITTEN


def test_a_last_line_without_end_gets_one() -> None:
    assert update("ruleset: 2026.9") == "ruleset: 2026.9\n" + WRITTEN


@pytest.mark.parametrize(
    "old", ["snapshot:\n", "snapshot: null\n", "snapshot: {sessions: 1}\n", "snapshot:\n  runs: 2\n"]
)
def test_it_takes_the_place_of_the_old_one(old: str) -> None:
    around = "# top\nname: a\n", "\n# below\nexpect: {none: true} # yes\n"
    assert update(around[0] + old + around[1]) == around[0] + WRITTEN + around[1]


def test_comments_within_stay_beside_what_they_are_about() -> None:
    old = """\
snapshot:  # by hand
  sessions: 1  # one
  runs: 1
  calls: 25  # this one changes
  marks:
    # the first loop
    - {kind: warning, detector: generic_repeat, count: 10, run: 0, session: s1}  # seen live
    # the second
    - {kind: block, detector: ping_pong}
    # no more
"""
    new = """\
snapshot:  # by hand
  sessions: 1  # one
  runs: 1
  calls: 26  # this one changes
  marks:
    # the first loop
    - {kind: warning, detector: generic_repeat, count: 10, run: 0, session: s1}  # seen live
    # the second
    - {kind: block, detector: generic_repeat, count: 20, run: 0, session: s1}
    # no more
"""
    assert update(old) == new


def test_a_sign_of_a_comment_in_quotes_is_none() -> None:
    new = {**NEW, "marks": [{**FIRST, "tool": "read #1", "entry": "it's # \\"}, SECOND]}
    once = update(update("name: x\n", new=new).replace("calls: 26", "calls: 2 # why"), new=new)
    assert once.count("#") == 3
    assert "  calls: 26 # why\n" in once
    assert update(once, new={**new, "runs": 2}) == once.replace("runs: 1", "runs: 2")


def test_a_snapshot_that_is_indented_otherwise_is_rewritten() -> None:
    old = "snapshot: # by me\n    sessions: 1 # one\n    runs: 1\n    calls: 3\n    marks: []\nname: x\n"
    made = update(old)
    assert made.replace(" # by me", "").replace("    # one\n", "") == WRITTEN + "name: x\n"
    assert made.startswith("snapshot: # by me\n    # one\n")


def test_very_long_snapshots_are_rewritten_in_a_moment() -> None:
    marks = [{**FIRST, "count": number} for number in range(6000)]
    once = update("", new={**NEW, "marks": marks})
    other = {**NEW, "marks": [{**mark, "run": number % 2} for number, mark in enumerate(marks)]}
    assert parse(update(once, new=other), "x").value["snapshot"] == other


def test_each_of_several_checks_has_its_own() -> None:
    text = "checks:\n  - name: a\n    snapshot: {sessions: 0}\n"
    text += "  - snapshot:\n      sessions: 2\n    name: b\n  - name: c\n"
    inner = indented(WRITTEN, 4)
    assert update(text, ("checks", 0)) == text.replace("    snapshot: {sessions: 0}\n", inner)
    assert update(text, ("checks", 1)) == text.replace(
        "  - snapshot:\n      sessions: 2\n", f"  - {inner.removeprefix('    ')}"
    )
    assert update(text, ("checks", 2)) == text + inner


def test_ends_of_lines_stay_what_they_are() -> None:
    assert (
        update("name: a\r\nsnapshot:\r\n  runs: 1\r\nskip: b\r\n")
        == "name: a\r\n" + WRITTEN.replace("\n", "\r\n") + "skip: b\r\n"
    )


@pytest.mark.parametrize("text", ["null\n", "~\n"])
def test_what_holds_nothing_but_a_null_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="the snapshot cannot be written here"):
        update(text)


def test_json_stays_json() -> None:
    import json

    assert json.loads(update("", json=True)) == {"snapshot": NEW}
    for text in ("{}", '{\n  "name": "a"\n}\n', '{"snapshot": {"runs": 3}, "name": "\\ud83d\\ude00"}'):
        made = json.loads(update(text, json=True))
        assert made.pop("snapshot") == NEW
        assert made == {name: value for name, value in json.loads(text).items() if name != "snapshot"}


def test_what_cannot_be_written_without_touching_the_rest_is_refused() -> None:
    shared = "checks:\n  - snapshot: &s {sessions: 1}\n  - snapshot: *s\n"
    with pytest.raises(ConfigError, match="x:2:5: the snapshot cannot be written without touching the rest"):
        update(shared, ("checks", 0))


NAMES = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" #\"'\\"), max_size=12)
MARKS = st.fixed_dictionaries(
    {"kind": st.just("block"), "session": NAMES, "run": st.integers(0, 9)},
    optional={"tool": NAMES, "lossy": st.just(True), "time": st.just("2026-10-05T08:13:59.959Z")},
)
SNAPSHOTS = st.builds(
    lambda runs, marks: {"sessions": 1, "runs": runs, "calls": 2, "marks": marks},
    st.integers(0, 5),
    st.lists(MARKS, max_size=4),
)
COMMENT = st.sampled_from(["", "# why\n", "\n", "  # deep\n", "# - {kind: block}\n"])
AROUND = st.tuples(COMMENT, st.sampled_from(["", "name: 'a # b'\n", "skip: |\n  text\n", "checks: []\n"]), COMMENT)


def _without(document: Document) -> dict[str, Any]:
    return {name: value for name, value in (document.value or {}).items() if name != "snapshot"}


@given(AROUND, AROUND, st.none() | SNAPSHOTS, SNAPSHOTS, st.booleans())
def test_whatever_is_written_is_read_again_and_the_rest_is_as_it_was(
    above: tuple[str, str, str],
    below: tuple[str, str, str],
    old: dict[str, Any] | None,
    new: dict[str, Any],
    windows: bool,
) -> None:
    if above[1] == below[1]:
        below = (below[0], "", below[2])
    text = "".join(above)
    if old is not None:
        text = update(text, new=old)
    text += "".join(below)
    if windows:
        text = text.replace("\n", "\r\n")
    before = parse(text, "x")
    made = rewritten(before, (), new).text
    after = parse(made, "x")
    assert after.value["snapshot"] == new
    assert _without(after) == _without(before)
    assert sorted(_comments(made)) == sorted(_comments(text))
    assert rewritten(after, (), new).text == made


def _comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("#")]


def test_a_new_file_says_what_it_was_made_with(tmp_path: Path) -> None:
    text = new_file(
        Task("a.jsonl", ("a.jsonl",), "2026.6", {"ruleset": "2026.6"}), NEW, {"set": {"warningThreshold": 8}}
    )
    assert text.startswith("# What the transcript of this name must meet")
    assert parse(text, "x").value == {"ruleset": "2026.6", "set": {"warningThreshold": 8}, "snapshot": NEW}


@pytest.mark.parametrize(
    ("there", "transcript", "made"),
    [
        ([], "a.jsonl", "a.expect.yaml"),
        ([], "a.b.jsonl", "a.b.expect.yaml"),
        ([], "a.jsonl.gz", "a.expect.yaml"),
        (["a.json"], "a.jsonl", "a.jsonl.expect.yaml"),
        (["a.expect.yaml"], "a.jsonl", "a.jsonl.expect.yaml"),
        ([], "a.jsonl.reset.2026-06-29T16-37-44.120Z", "a.jsonl.reset.2026-06-29T16-37-44.120Z.expect.yaml"),
        ([], ".hidden", ".hidden.expect.yaml"),
    ],
)
def test_a_new_file_is_called_like_its_transcript_alone(
    there: list[str], transcript: str, made: str, tmp_path: Path
) -> None:
    for name in (*there, transcript):
        (tmp_path / name).touch()
    assert expectation_beside(tmp_path / transcript).name == made


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.expect.yaml", "a.jsonl.expect.yaml"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match="is there already"):
        expectation_beside(tmp_path / "a.jsonl")
