"""``check`` finds, makes and updates checks, whatever the number of processes, and says how each came out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from loopscan.checks.check import check
from loopscan.checks.report import CheckReport
from loopscan.checks.schema import Settings
from loopscan.checks.tasks import BenignFolder
from loopscan.errors import UsageError
from loopscan.findings import Status
from tests.checks.files import CLEAN, FAILING, FIXTURES, LOOP, put

MEETS = "ruleset: 2026.9\nexpect: {outcomes: {outcome: run_end}}\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()


def outcomes(report: CheckReport) -> dict[str, str]:
    return {f"{case.group} [{case.name}]": case.status.value for case in report.cases}


def test_each_check_passes_or_fails_by_itself(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS, b_jsonl=LOOP, b_expect_yaml="expect: {none: true}")
    put(tmp_path, c_jsonl=LOOP, c_expect_yaml="expect: {none: true}\nskip: not yet")
    report = check(["."])
    assert outcomes(report) == {
        "a.jsonl [2026.9]": "passed",
        "b.jsonl [latest]": "failed",
        "c.jsonl [latest]": "skipped",
    }
    assert report.exit_code() == 1
    assert report.summary() == "1 passed, 1 failed, 1 skipped"


def test_copies_of_a_session_in_one_folder_do_not_take_its_calls_from_each_other(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS, b_jsonl=LOOP, b_expect_yaml=MEETS)
    assert check(["."]).exit_code() == 0


def test_the_report_is_the_same_whatever_the_number_of_processes(tmp_path: Path) -> None:
    for number in range(20):
        put(
            tmp_path,
            **{f"s{number}_jsonl": LOOP, f"s{number}_expect_yaml": MEETS if number % 3 else "expect: {none: true}"},
        )
    alone, together = (json.dumps(check(["."], jobs=jobs).to_dict()) for jobs in (1, 2))
    assert alone == together


def test_a_failure_shows_where_the_missing_mark_was_expected(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP)
    check(["a.jsonl"], update=True, over=Settings(ruleset="2026.9"))
    report = check(["."], over=Settings(ruleset="2026.6", set={"criticalThreshold": 25}))
    (case,) = report.cases
    lines = [line.strip() for line in case.text.splitlines()]
    assert "why       criticalThreshold is 25 here, set by the settings of this check, not 20" in lines
    assert "#21 ✗ expected here: block generic_repeat · count 21 · threshold 20 · read · run 0, batch 21," in lines
    assert "#25 ● block generic_repeat · count 25, threshold 25 · read · 08:14:24" in lines
    assert [finding.rule for finding in case.findings] == [
        "unexpected_mark",
        "missing_mark",
        "missing_mark",
        "changed_mark",
    ]
    assert len({finding.fingerprint for finding in case.findings}) == 4


def test_previews_are_shown_only_if_they_may(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}")
    assert "newsletter" in check(["."]).cases[0].text
    assert "newsletter" not in check(["."], previews=False).cases[0].text


# -- what cannot be checked


def test_a_transcript_that_cannot_be_read_is_an_error_and_all_else_is_checked(tmp_path: Path) -> None:
    put(tmp_path, a_txt="no transcript", a_expect_yaml=MEETS, b_jsonl=LOOP, b_expect_yaml=MEETS)
    report = check(["."])
    assert outcomes(report) == {"a.txt [2026.9]": "error", "b.jsonl [2026.9]": "passed"}
    assert report.exit_code() == 3
    assert report.exit_code(skip_errors=True) == 0


def test_a_transcript_without_session_meets_what_expects_none(tmp_path: Path) -> None:
    log = FIXTURES / "openclaw-log" / "quiet.log"
    put(
        tmp_path,
        a_log=log,
        a_expect_yaml="expect: {counts: {sessions: 0}}",
        b_log=log,
        b_expect_yaml="expect: {none: true}",
    )
    assert outcomes(check(["."])) == {"a.log [latest]": "passed", "b.log [latest]": "error"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("config: gone.json\nexpect: {none: true}", "gone.json"),
        ("input_format: word\nexpect: {none: true}", 'there is no format "word"'),
    ],
)
def test_settings_without_sense_are_told_with_the_file_and_line(text: str, said: str, tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=f"# top\n{text}", b_jsonl=LOOP, b_expect_yaml=MEETS)
    report = check(["."])
    assert outcomes(report)["b.jsonl [2026.9]"] == "passed"
    assert report.exit_code() == 2
    case = report.cases[0]
    assert case.status is Status.ERROR
    assert case.reason is not None
    assert said in case.reason
    assert (case.place.path, case.place.line) == ("a.expect.yaml", 2)


def test_settings_without_effect_are_said(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="set: {warningThreshold: 3}\nexpect: {first: {count: 10}}")
    put(tmp_path, c_json='{"tools": {"loopDetection": {"enabled": true}}}', b_jsonl=LOOP)
    put(tmp_path, b_expect_yaml="config: c.json\nagent: nobody\nexpect: {first: {count: 10}}")
    report = check(["."])
    assert report.exit_code() == 0
    assert report.notes[0].startswith("a.expect.yaml:1: set warningThreshold is ignored: ruleset latest fixes")
    assert 'agent "nobody"' in report.notes[1]


def test_transcripts_without_expectation_and_names_that_are_nearly_right_are_said(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS, b_jsonl=CLEAN, b_expects_yaml="", loopscan_check_yaml="")
    assert check(["."]).notes == [
        "b.expects.yaml is not read: is it to be a file of expectations?",
        "loopscan.check.yaml is not read: is it to be a file of expectations?",
        "1 transcript has no expectation; --strict makes that a failure",
    ]


def test_a_mistake_in_a_file_goes_before_all_else(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expct: 1", b_txt="no", b_expect_yaml=MEETS)
    report = check([".", "gone"])
    assert report.exit_code() == 2
    assert list(map(str, report.mistakes)) == ['a.expect.yaml:1:1: unknown key "expct"; did you mean "expect"?']
    assert report.missing == ["gone: no such file or folder"]


@pytest.mark.parametrize("text", ["ruleset: 2026.9", "expect: {none: null}", "expect: {counts: {calls: null}}", ""])
def test_an_expectation_that_says_nothing_fails(text: str, tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=text)
    assert check(["."]).exit_code() == 1
    assert check(["."], update=True).exit_code() == 0
    assert check(["."]).exit_code() == 0


def test_nothing_to_check_is_no_success(tmp_path: Path) -> None:
    (case,) = check(["."]).cases
    assert (case.status, case.reason) == (
        Status.ERROR,
        "no transcript and no expectation found in .; --allow-empty lets it pass",
    )
    assert check(["."]).exit_code() == 3
    put(tmp_path, a_jsonl=LOOP)
    report = check(["."])
    assert report.exit_code() == 1
    assert report.cases[0].reason == (
        "nothing says what the transcripts in . must meet: --strict --update writes snapshots;"
        " --allow-empty lets it pass"
    )
    empty = check(["."], allow_empty=True)
    assert (empty.cases, empty.exit_code()) == ([], 0)


def test_what_cannot_be_read_is_not_let_pass_where_nothing_else_was_checked(tmp_path: Path) -> None:
    assert check(["gone"]).exit_code(skip_errors=True) == 3
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS)
    assert check(["gone", "."]).exit_code(skip_errors=True) == 0


def test_an_expectation_without_transcript_fails_also_if_it_is_skipped(tmp_path: Path) -> None:
    put(tmp_path, a_expect_yaml="skip: later\nexpect: {none: true}")
    assert check(["."]).exit_code() == 1


def test_lines_that_cannot_be_used_are_said(tmp_path: Path) -> None:
    lines = LOOP.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line if number < 6 else f"{line[: len(line) // 2]}\n" for number, line in enumerate(lines))
    put(tmp_path, a_jsonl=text, a_expect_yaml="expect: {none: true}", good__b_jsonl=text)
    (note,) = check(["a.jsonl"]).notes
    assert note.startswith("problems with the record: a.jsonl:7: malformed-json")
    assert note.endswith("counts: {problems: 0} makes that a failure")
    assert benign("good").notes[0].startswith("good: problems with the record: good/b.jsonl:7")
    put(tmp_path, a_expect_yaml="expect: {none: true, counts: {problems: 0}}")
    assert check(["a.jsonl"]).exit_code() == 1


def test_a_finding_leads_to_the_transcript_that_it_is_in(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=CLEAN, b_jsonl=LOOP, x_expect_yaml="transcript: [a.jsonl, b.jsonl]\nexpect: {none: true}")
    (case,) = check(["."]).cases
    assert {finding.place.path for finding in case.findings} == {"b.jsonl"}
    assert "  at        b.jsonl:" in case.text


def test_fingerprints_do_not_depend_on_how_a_path_is_named_or_on_numbers(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}")

    def prints(path: str, over: Settings) -> list[str]:
        return [finding.fingerprint for finding in check([path], over=over).cases[0].findings]

    plain = prints(".", Settings(ruleset="2026.6"))
    assert prints(str(tmp_path), Settings(ruleset="2026.6")) == plain
    assert len(set(plain)) == len(plain) > 3


def test_names_that_mean_something_to_a_replay_are_files_here(tmp_path: Path) -> None:
    for name in ("-", "@x.jsonl"):
        (tmp_path / name).write_text(LOOP.read_text(encoding="utf-8"), encoding="utf-8")
        (tmp_path / f"{name}.expect.yaml").write_text(MEETS)
    assert check(["."]).summary() == "2 passed"


def test_a_lone_surrogate_is_expected_as_it_is_written(tmp_path: Path) -> None:
    text = (
        LOOP.read_text(encoding="utf-8")
        .replace('"name":"read"', '"name":"re\\ud800ad"')
        .replace('"name": "read"', '"name": "re\\ud800ad"')
    )
    assert "ud800" in text
    put(tmp_path, a_jsonl=text)
    assert check(["a.jsonl"], update=True, over=Settings(ruleset="2026.9")).exit_code() == 0
    assert check(["."]).exit_code() == 0
    put(tmp_path, a_expect_yaml='ruleset: 2026.9\nexpect: {none: {tool: "re\\\\ud800ad"}}')
    assert check(["."]).exit_code() == 1


# -- choosing


def test_only_chooses_by_a_part_of_the_name_or_a_pattern(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml=MEETS,
        b_jsonl=LOOP,
        b_expect_yaml="checks: [{expect: {counts: {calls: 26}}, name: x}]\n",
    )
    assert set(outcomes(check(["."], only=["[2026.9]"]))) == {"a.jsonl [2026.9]"}
    assert set(outcomes(check(["."], only=["b*"]))) == {"b.jsonl [x]"}
    assert set(outcomes(check(["."], only=["a.", "x]"]))) == {"a.jsonl [2026.9]", "b.jsonl [x]"}
    report = check(["."], only=["c"])
    assert report.cases[0].reason == "none of 2 checks meets --only c; -v lists them all; --allow-empty lets it pass"
    assert report.exit_code() == 1


def test_rerun_makes_those_that_failed_last_time_until_none_does(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS, b_jsonl=LOOP, b_expect_yaml="expect: {none: true}")
    check(["."])
    assert set(outcomes(check(["."], rerun=True))) == {"b.jsonl [latest]"}
    assert set(outcomes(check(["."], rerun=True, over=Settings(ruleset="2026.6")))) == {"b.jsonl [2026.6]"}
    put(tmp_path, b_expect_yaml=MEETS)
    assert set(outcomes(check(["."], rerun=True))) == {"b.jsonl [2026.9]"}
    report = check(["."], rerun=True)
    assert len(report.cases) == 2
    assert report.facts["last time"] == "nothing failed: all checks are made"
    assert (tmp_path / ".loopscan_cache" / ".gitignore").read_text() == "*\n"


def test_rerun_knows_benign_folders(tmp_path: Path) -> None:
    put(
        tmp_path,
        loopscan_checks_yaml="benign: [{folder: good}, {folder: bad}]",
        good__a_jsonl=CLEAN,
        bad__b_jsonl=LOOP,
    )
    put(tmp_path, bad__c_jsonl=CLEAN, a_jsonl=LOOP, a_expect_yaml=MEETS)
    assert len(check(["."]).cases) == 6
    again = check(["."], rerun=True)
    assert {case.group for case in again.cases} == {"bad/b.jsonl", "bad/c.jsonl", "bad"}
    assert again.facts["last time"] == "0 of 1 checks failed, and 1 of 2 benign folders"


def test_a_damaged_memory_matters_to_rerun_alone(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS)
    (tmp_path / ".loopscan_cache").mkdir()
    (tmp_path / ".loopscan_cache" / "failed-checks.json").write_text("{")
    with pytest.raises(UsageError, match=r"failed-checks\.json cannot be read; remove it"):
        check(["."], rerun=True)
    report = check(["."])
    assert report.exit_code() == 0
    assert len(report.notes) == 1
    assert check(["."], rerun=True).exit_code() == 0


def test_where_nothing_can_be_remembered_the_checks_are_made(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}")
    (tmp_path / ".loopscan_cache").write_text("a file is in the way")
    report = check(["."])
    assert report.exit_code() == 1
    assert "--rerun will not know what failed" in report.notes[-1]


def test_a_shared_expectation_is_not_given_two_snapshots(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, b_jsonl=CLEAN, shared_yaml="ruleset: 2026.9\n")
    for name in "ab":
        (tmp_path / f"{name}.expect.yaml").symlink_to("shared.yaml")
    report = check(["."], update=True)
    assert (report.updated, report.exit_code()) == ([], 2)
    assert [mistake.what for mistake in report.mistakes] == [
        "is shared by several transcripts, which have snapshots of their own: copy the file"
    ]
    assert (tmp_path / "shared.yaml").read_text() == "ruleset: 2026.9\n"


def test_skipped_checks_are_no_reason_to_let_what_cannot_be_read_pass(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=CLEAN, a_expect_yaml="skip: later\nexpect: {none: true}")
    assert check(["a.jsonl", "gone"]).exit_code(skip_errors=True) == 3


def test_fingerprints_of_mistakes_do_not_depend_on_how_a_path_is_named(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="oops: 1")
    prints = {check([path]).cases[0].findings[0].fingerprint for path in (".", str(tmp_path), "a.jsonl")}
    assert len(prints) == 1


def test_links_in_a_benign_folder_are_said(tmp_path: Path) -> None:
    put(tmp_path, good__a_jsonl=CLEAN, other__b_jsonl=LOOP)
    (tmp_path / "good" / "b.jsonl").symlink_to(tmp_path / "other" / "b.jsonl")
    assert benign("good").notes == ["good: 1 link in it is not followed"]


def test_one_file_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="", a_jsonl_expect_yaml="skip: x\n", b_jsonl=CLEAN)
    put(tmp_path, c_expect_yaml="transcript: c.d.jsonl\n", c_d_jsonl=CLEAN)
    (tmp_path / "a.expect.yaml").write_text("transcript: c.d.jsonl\nexpect: {none: true}\n")
    (tmp_path / "a.jsonl.expect.yaml").write_text("transcript: c.d.jsonl\nexpect: {none: true}\n")
    report = check(["a.jsonl", "b.jsonl"], update=True)
    assert report.updated == ["b.expect.yaml"]
    assert list(map(str, report.mistakes)) == [
        "a.jsonl: a.jsonl.expect.yaml is there already, and is about something else: name a.jsonl in it"
    ]
    assert report.exit_code() == 2


def test_what_is_gone_and_what_was_nothing_is_not_remembered(tmp_path: Path) -> None:
    check(["."])
    assert not (tmp_path / ".loopscan_cache").exists()
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="expect: {none: true}",
        b_jsonl=LOOP,
        b_expect_yaml="expect: {none: true}",
    )
    check(["."])
    for name in ("a.jsonl", "a.expect.yaml"):
        (tmp_path / name).unlink()
    check(["."])
    assert len(json.loads((tmp_path / ".loopscan_cache" / "failed-checks.json").read_text())) == 1


def test_a_configuration_that_changes_is_read_again(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="ruleset: 2026.6\nconfig: c.json\nexpect: {first: {count: 10}}")
    put(tmp_path, c_json='{"tools": {"loopDetection": {"enabled": true}}}')
    assert check(["."]).exit_code() == 0
    put(tmp_path, c_json='{"tools": {"loopDetection": {"enabled": false}}}')
    assert check(["."]).exit_code() == 1


def test_nothing_is_left_behind_where_nothing_fails(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml=MEETS)
    check(["."])
    assert not (tmp_path / ".loopscan_cache").exists()


# -- updating


def test_update_rewrites_snapshots_alone_and_says_what_changed(tmp_path: Path) -> None:
    put(
        tmp_path, a_jsonl=LOOP, a_expect_yaml="# mine\nruleset: 2026.9\nsnapshot: # here\nexpect: {none: true} # no\n"
    )
    report = check(["."], update=True)
    assert report.updated == ["a.expect.yaml"]
    assert "+  calls: 26" in report.diffs["a.expect.yaml"].splitlines()
    assert outcomes(report) == {"a.jsonl [2026.9]": "failed"}  # the assertion written by hand still does not hold
    text = (tmp_path / "a.expect.yaml").read_text()
    assert text.startswith("# mine\nruleset: 2026.9\nsnapshot: # here\n  sessions: 1\n")
    assert text.endswith("\nexpect: {none: true} # no\n")
    again = check(["."], update=True)
    assert again.updated == []
    assert again.diffs == {}


def test_update_leaves_hand_written_assertions_without_snapshot_alone(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="expect: {none: true}\n")
    report = check(["."], update=True)
    assert report.exit_code() == 1
    assert (tmp_path / "a.expect.yaml").read_text() == "expect: {none: true}\n"


def test_update_writes_what_is_missing_for_named_transcripts_and_with_strict_for_all(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, b_jsonl=CLEAN, loopscan_checks_yaml="defaults: {ruleset: 2026.9}")
    assert check(["a.jsonl"], update=True).updated == ["a.expect.yaml"]
    assert check(["."], update=True).updated == []
    assert check(["."], update=True, strict=True).updated == ["b.expect.yaml"]
    assert check(["."], strict=True).exit_code() == 0


def test_several_snapshots_of_one_file_are_written_at_once(tmp_path: Path) -> None:
    text = "checks:\n" + "".join(f"  - ruleset: {name}\n    snapshot:\n" for name in ("2026.6", "2026.9", "latest"))
    put(tmp_path, a_jsonl=FAILING, a_expect_yaml=text)
    assert check(["."], update=True).exit_code() == 0
    assert check(["."]).summary() == "3 passed"
    assert "error_streak_end" in (tmp_path / "a.expect.yaml").read_text()


def test_diff_tells_and_writes_nothing(tmp_path: Path) -> None:
    put(
        tmp_path,
        a_jsonl=LOOP,
        a_expect_yaml="ruleset: 2026.9\nsnapshot: {sessions: 1, runs: 1, calls: 1, marks: []}\n",
    )
    before = (tmp_path / "a.expect.yaml").read_text()
    report = check(["."], diff=True)
    assert "-snapshot: {sessions: 1, runs: 1, calls: 1, marks: []}" in report.diffs["a.expect.yaml"]
    assert report.exit_code() == 1
    assert (tmp_path / "a.expect.yaml").read_text() == before


def test_update_does_not_write_what_other_settings_give_into_a_file_that_has_its_own(tmp_path: Path) -> None:
    put(tmp_path, a_jsonl=LOOP, a_expect_yaml="ruleset: 2026.9\nsnapshot:\n")
    with pytest.raises(UsageError, match=r"a\.expect\.yaml asks for by itself"):
        check(["."], update=True, over=Settings(ruleset="2026.6"))


# -- benign folders


def benign(folder: str, **settings: Any) -> CheckReport:
    return check([], benign=[BenignFolder(folder, settings.pop("max_warnings", 0), settings)])


def test_a_block_in_a_benign_folder_is_a_false_alarm(tmp_path: Path) -> None:
    put(tmp_path, good__a_jsonl=LOOP, good__b_jsonl=CLEAN)
    report = benign("good", ruleset="2026.9", max_warnings=1)
    assert report.summary() == "2 passed, 1 failed"
    (case,) = (case for case in report.cases if case.status is Status.FAILED)
    assert case.group == "good/a.jsonl"
    assert case.reason is not None
    assert case.reason.startswith("false alarm on a benign session: block generic_repeat · count 20")
    assert {finding.rule for finding in case.findings} == {"generic_repeat"}
    assert "● block generic_repeat" in case.text


def test_marks_of_one_session_in_two_files_have_fingerprints_of_their_own(tmp_path: Path) -> None:
    text = LOOP.read_text(encoding="utf-8")
    put(tmp_path, good__a_jsonl=text, good__b_jsonl=text.replace("newsletter", "newspaper"))
    prints = [finding.fingerprint for case in benign("good", ruleset="2026.9").cases for finding in case.findings]
    assert len(set(prints)) == len(prints)


def test_warnings_of_a_benign_folder_are_counted_against_the_limit(tmp_path: Path) -> None:
    put(tmp_path, good__a_jsonl=FIXTURES / "sessions" / "steering.jsonl", good__b_jsonl=CLEAN)
    assert benign("good").exit_code() == 1
    assert benign("good", max_warnings=1).exit_code() == 0
    assert benign("good").cases[-1].reason == "1 warning on benign sessions, where 0 may be"


def test_warnings_count_also_where_something_could_not_be_read(tmp_path: Path) -> None:
    put(tmp_path, good__a_jsonl=FIXTURES / "sessions" / "steering.jsonl")
    (tmp_path / "good" / "b.jsonl.gz").write_bytes(gzip.compress(CLEAN.read_bytes())[:200])
    report = benign("good")
    assert report.exit_code() == 3
    assert report.exit_code(skip_errors=True) == 1


def test_an_empty_benign_folder_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    assert benign("good").exit_code() == 3
    assert benign("gone").exit_code() == 3
