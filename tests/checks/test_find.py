"""Every expectation, glob and transcript that is named is found, once, with the settings that count for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopscan.checks.find import Found, find
from loopscan.checks.schema import Settings
from tests.checks.files import CLEAN, FIXTURES, LOOP, put


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()


def ids(found: Found) -> list[str]:
    return [task.id for task in found.tasks]


def test_a_file_of_expectations_belongs_to_the_transcript_of_its_name(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="ruleset: 2026.9\nexpect: {none: true}\n", b_jsonl=CLEAN)
    for path in (".", "a.jsonl", "a.expect.yaml", str(tmp_path)):
        (task,) = find([path]).tasks
        assert task.paths == (str(Path(path, "a.jsonl") if Path(path).is_dir() else Path("a.jsonl")),)
        assert task.name == "2026.9"
        assert task.fault is None


def test_what_is_named_twice_is_checked_once(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}", loopscan_checks_yaml=GLOB)
    assert ids(find([".", "a.jsonl", "a.expect.yaml", "."])) == ["a.jsonl [clean]", "a.jsonl [latest]"]


GLOB = "checks: [{name: clean, transcripts: '*.jsonl', expect: {none: true}}]"


def test_a_named_transcript_without_expectation_is_a_failing_task(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP)
    (task,) = find(["a.jsonl"]).tasks
    assert task.fault is not None
    assert task.fault.rule == "no_expectation"
    assert find(["."]).tasks == []


def test_strict_asks_for_an_expectation_of_every_transcript_but_those_that_are_ignored(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="expect: {none: true}",
        sub__b_jsonl=CLEAN,
        sub__deep__c_jsonl=CLEAN,
        drafts__d_jsonl=CLEAN,
        notes_txt="no transcript",
        loopscan_checks_yaml="ignore: [drafts/**]",
    )
    found = find(["."], strict=True)
    assert [(task.id, task.fault is None) for task in found.tasks] == [
        ("a.jsonl [latest]", True),
        ("sub/b.jsonl [latest]", False),
        ("sub/deep/c.jsonl [latest]", False),
    ]


def test_an_expectation_without_transcript_is_a_failing_task(tmp_path: Path) -> None:
    put(tmp_path, a_expect_yaml="expect: {none: true}", b_expect_yaml="transcript: gone.jsonl\nexpect: {none: true}")
    faults = [task.fault for task in find(["."]).tasks]
    assert [fault.sentence for fault in faults if fault is not None] == [
        'there is no transcript a beside it; rename this file, or name the transcript by "transcript"',
        "there is no transcript gone.jsonl",
    ]


def test_a_glob_that_meets_nothing_is_a_failing_task(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, loopscan_checks_yaml="checks: [{transcripts: 'b*.jsonl', expect: {none: true}}]")
    (task,) = find(["."]).tasks
    assert task.fault is not None
    assert task.fault.sentence == "no file meets b*.jsonl"


def test_several_transcripts_of_one_name_must_be_told_apart(tmp_path: Path) -> None:
    other = FIXTURES / "gemini" / "garden-plan.json"
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_json=other,
        a_expect_yaml="expect: {none: true}",
        a_jsonl_expect_yaml="expect: {none: true}",
    )
    found = find(["."])
    assert list(map(str, found.mistakes)) == [
        'a.expect.yaml:1:1: several files are called so (a.json, a.jsonl): say which by "transcript"'
    ]
    assert [task.file for task in found.tasks] == ["a.jsonl.expect.yaml"]


def test_of_several_files_of_one_name_the_transcript_is_meant(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_md="# notes", a_json="{}", a_expect_yaml="expect: {none: true}")
    found = find(["."])
    assert (found.mistakes, [task.paths for task in found.tasks]) == ([], [("a.jsonl",)])


def test_a_folder_beside_a_session_is_not_meant(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a__part_txt="", a_expect_yaml="expect: {none: true}", b__part_txt="")
    put(tmp_path, b_expect_yaml="expect: {none: true}")
    assert [task.paths for task in find(["."]).tasks] == [("a.jsonl",), ("b",)]


def test_several_transcripts_can_be_replayed_together(tmp_path: Path) -> None:
    put(
        tmp_path,
        sub__a_jsonl=LOOP,
        log_jsonl=CLEAN,
        sub__x_expect_yaml="transcript: [a.jsonl, ../log.jsonl]\nexpect: {none: true}",
    )
    assert find(["sub"]).tasks[0].paths == ("sub/a.jsonl", "log.jsonl")


def test_settings_come_from_the_folders_above_the_file_the_check_and_the_command_line(tmp_path: Path) -> None:
    put(
        tmp_path,
        loopscan_checks_yaml="defaults: {ruleset: 2026.6, config: conf/a.json, agent: top, scope: session}",
        sub__loopscan_checks_yml="defaults: {agent: null, mode: observe}",
        sub__a_jsonl=LOOP,
        sub__a_expect_yaml="config: own.json\nexpect: {none: true}\nchecks: [{ruleset: 2026.9}, {mode: null, name: x}]",  # noqa: E501
    )
    one, two = find(["sub/a.jsonl"], over=Settings(arm="never")).tasks
    shared = {"config": "sub/own.json", "scope": "session", "arm": "never"}
    assert one.settings == {**shared, "ruleset": "2026.9", "mode": "observe"}
    assert two.settings == {**shared, "ruleset": "2026.6"}
    assert [one.name, two.name] == ["2026.9, own.json, mode observe, scope session, arm never", "x"]


def test_looking_up_ends_at_a_file_that_says_root(tmp_path: Path) -> None:
    put(
        tmp_path,
        loopscan_checks_yaml="defaults: {agent: top}",
        sub__loopscan_checks_yaml="root: true\ndefaults: {ruleset: 2026.9}",
        sub__a_jsonl=LOOP,
        sub__a_expect_yaml="expect: {none: true}",
    )
    assert find(["sub"]).tasks[0].settings == {"ruleset": "2026.9"}


def test_globs_of_folders_above_count_for_what_is_named(tmp_path: Path) -> None:
    put(
        tmp_path,
        loopscan_checks_yaml="checks: [{transcripts: '**/*.jsonl', exclude: '**/b.jsonl', expect: {none: true}}]",
    )
    put(tmp_path, sub__a_jsonl=LOOP, sub__b_jsonl=CLEAN, other__c_jsonl=CLEAN)
    assert ids(find(["sub"])) == ["sub/a.jsonl [latest]"]
    assert ids(find(["sub/a.jsonl"])) == ["sub/a.jsonl [latest]"]
    assert ids(find(["."])) == ["other/c.jsonl [latest]", "sub/a.jsonl [latest]"]


def test_a_check_that_requires_another_ruleset_is_skipped(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml='requires: {ruleset: ">=2026.9, <latest"}\nruleset: 2026.9\nexpect: {none: true}',
    )
    skips = {name: find(["."], over=Settings(ruleset=name)).tasks[0].skip for name in ("2026.6", "2026.9", "latest")}
    assert skips == {
        "2026.6": "requires ruleset >=2026.9, <latest, this is 2026.6",
        "2026.9": None,
        "latest": "requires ruleset >=2026.9, <latest, this is latest",
    }


def test_a_requirement_without_sense_is_told_with_its_place(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml='expect: {none: true}\nrequires:\n  ruleset: ">=2027"\n')
    assert str(find(["."]).mistakes[0]).startswith(
        'a.expect.yaml:3:12: "ruleset" must be comparisons with 2026.6, 2026.9, latest'
    )


def test_checks_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}\nchecks: [{name: x}, {name: x}, {name: x}]")
    assert [task.name for task in find(["."]).tasks] == ["x", "x (2)", "x (3)"]


def test_assertions_of_a_check_go_over_those_above_it(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="expect: {none: true, counts: {calls: 1}}\nchecks: [{expect: {counts: {calls: 2}}}]",
    )
    expect = find(["."]).tasks[0].expect
    assert expect is not None
    assert expect.none is not None
    assert expect.counts is not None
    assert expect.counts.calls == 2


def test_a_snapshot_above_several_checks_is_a_mistake(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="checks: [{name: a}]\nsnapshot: {sessions: 1, runs: 1, calls: 1, marks: []}",
    )
    assert list(map(str, find(["."]).mistakes)) == [
        'a.expect.yaml:2:1: a "snapshot" beside "checks" belongs to none of them: move it into the one that it is of'
    ]


def test_one_broken_file_does_not_stop_the_others(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: [", b_jsonl=LOOP, b_expect_yaml="expect: {none: true}")
    put(tmp_path, c__loopscan_checks_yaml="defautls: {}", c__d_jsonl=LOOP, c__d_expect_yaml="expect: {none: true}")
    found = find([".", "gone"])
    assert ids(found) == ["b.jsonl [latest]", "c/d.jsonl [latest]"]
    assert [str(each).partition(": ")[0] for each in found.mistakes] == [
        "a.expect.yaml:2:1",
        "c/loopscan.checks.yaml:1:1",
    ]
    assert found.missing == ["gone: no such file or folder"]


def test_benign_folders_are_found_where_they_are_asked_for(tmp_path: Path) -> None:
    put(
        tmp_path,
        loopscan_checks_yaml="benign: [{folder: good, max_warnings: 2, ruleset: 2026.6}]",
        good__a_jsonl=CLEAN,
    )
    for path in (".", "good"):
        (folder,) = find([path]).benign
        assert (folder.folder, folder.max_warnings, folder.settings) == ("good", 2, {"ruleset": "2026.6"})
    put(tmp_path, other__b_jsonl=CLEAN)
    assert find(["other"]).benign == []
    assert find(["good"], strict=True).tasks == []


def test_hidden_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    put(tmp_path / ".cache", a_jsonl=LOOP, a_expect_yaml="oops: 1")
    assert find(["."]) == Found()


def test_a_folder_that_cannot_be_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}", closed__b_txt="")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find(["."])
    assert ids(found) == ["a.jsonl [latest]"]
    assert found.missing == ["./closed: Permission denied"]


def test_a_glob_that_asserts_nothing_is_a_failing_task(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, loopscan_checks_yaml="checks: [{transcripts: '*.jsonl', expect: {none: null}}]")
    (task,) = find(["."]).tasks
    assert task.fault is not None
    assert task.fault.sentence == "it asserts nothing"


def test_what_is_named_by_two_paths_is_told_and_checked_once(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}", b_jsonl=LOOP, b_expect_yaml="oops: 1")
    found = find([".", str(tmp_path)])
    assert ids(found) == ["a.jsonl [latest]"]
    assert len(found.mistakes) == 1
    assert find(["a.jsonl"]).tasks[0].key == find([str(tmp_path / "a.jsonl")]).tasks[0].key


def test_two_checks_that_are_named_like_a_numbered_one_keep_names_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP)
    put(tmp_path, a_expect_yaml="expect: {none: true}\nchecks: [{name: x}, {name: x (2)}, {name: x}]")
    assert len({task.name for task in find(["."]).tasks}) == 3


def test_a_file_of_expectations_that_two_transcripts_share_counts_for_both(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=CLEAN, b_jsonl=LOOP, shared_yaml="expect: {none: true}")
    for name in ("a", "b"):
        (tmp_path / f"{name}.expect.yaml").symlink_to("shared.yaml")
    assert ids(find(["."])) == ["a.jsonl [latest]", "b.jsonl [latest]"]


def test_files_for_a_folder_are_never_passed_over(tmp_path: Path) -> None:
    put(tmp_path, loopscan_checks_yaml="defaults: {}", loopscan_checks_json="{}", a__b_txt="", c__d_txt="")
    (tmp_path / "a" / "loopscan.checks.yaml").symlink_to("gone")
    (tmp_path / "c" / "loopscan.checks.yaml").mkdir()
    assert [str(each).partition(":")[0] for each in find(["."]).mistakes] == [
        "loopscan.checks.json",
        "a/loopscan.checks.yaml",
        "c/loopscan.checks.yaml",
    ]


def test_strict_sees_links_and_lets_hidden_folders_be(tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.jsonl"
    outside.write_text(CLEAN.read_text(encoding="utf-8"), encoding="utf-8")
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}")
    (tmp_path / ".hidden").mkdir()
    put(tmp_path / ".hidden", c_jsonl=CLEAN)
    assert ids(find(["."], strict=True)) == ["a.jsonl [latest]"]
    (tmp_path / "b.jsonl").symlink_to(outside)
    assert ids(find(["."], strict=True)) == ["a.jsonl [latest]", "b.jsonl [latest]"]


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="expect: {none: true}",
        d_expect_yaml="transcript: pipe.jsonl\nexpect: {}",
    )
    put(tmp_path, d_expect_yaml="transcript: pipe.jsonl\nexpect: {none: true}", loopscan_checks_yaml=GLOB)
    for name in ("pipe.jsonl", "b.expect.yaml", "a.md"):
        os.mkfifo(tmp_path / name)
    found = find([".", "pipe.jsonl"], strict=True)
    assert ids(found) == ["a.jsonl [clean]", "a.jsonl [latest]", "pipe.jsonl [latest]"]
    assert found.tasks[-1].fault is not None
    assert [str(each) for each in found.mistakes] == ["b.expect.yaml: cannot be read: not a regular file"]
    assert found.missing == ["pipe.jsonl: is no file"]


@pytest.mark.parametrize("text", ['transcript: ""', 'transcript: "\\0"', 'config: "\\0"'])
def test_what_is_no_path_is_a_mistake(text: str, tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=f"{text}\nexpect: {{none: true}}")
    assert str(find(["."]).mistakes[0]).endswith("must be a path")


def test_what_a_folder_above_says_names_files_as_the_path_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, loopscan_checks_yaml=GLOB, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}")
    put(tmp_path, sub__a_jsonl=LOOP, sub__a_expect_yaml="expect: {none: true}")
    put(tmp_path, loopscan_checks_yaml=GLOB.replace("*.jsonl", "**/*.jsonl"))
    monkeypatch.chdir(tmp_path / "sub")
    assert ids(find(["."])) == ["a.jsonl [clean]", "a.jsonl [latest]"]


def test_a_path_that_cannot_be_looked_for_is_a_failing_task_of_its_own(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="expect: {none: true}",
        z_jsonl=LOOP,
        z_expect_yaml="expect: {none: true}",
    )
    put(tmp_path, m_expect_yaml=f"transcript: {'a' * 300}\nexpect: {{none: true}}")
    tasks = find([".", "b" * 300, ""]).tasks
    assert [task.fault is None for task in tasks] == [True, False, True]
    assert find(["b" * 300, ""]).missing == [
        f"{'b' * 300}: File name too long",
        "an empty path was named",
    ]


def test_links_that_lead_to_no_file_are_said(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, loopscan_checks_yaml=GLOB, other__b_jsonl=CLEAN)
    (tmp_path / "broken.jsonl").symlink_to("nowhere")
    (tmp_path / "linked").symlink_to("other")
    assert [note for note in find(["."]).notes if "link" in note] == [
        "linked is a link to a folder, and not followed",
        "broken.jsonl is a link to no file, and passed over",
    ]


def test_a_linked_expectation_counts_in_each_folder_with_the_settings_there(tmp_path: Path) -> None:
    put(tmp_path, one__a_jsonl=LOOP, one__a_expect_yaml="expect: {first: {kind: warning}}")
    put(tmp_path, two__loopscan_checks_yaml="defaults: {set: {enabled: false}}")
    for name in ("a.jsonl", "a.expect.yaml"):
        (tmp_path / "two" / name).symlink_to(tmp_path / "one" / name)
    assert ids(find(["."])) == ["one/a.jsonl [latest]", "two/a.jsonl [latest, enabled=false]"]
