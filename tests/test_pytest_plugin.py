"""The pytest plugin: checks are tests, whatever pytest is asked to do with them, and what fails is told plainly."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

# Loaded before pytester: it forgets what was imported meanwhile, and compiled modules cannot be loaded again.
import loopscan.checks.benign
import loopscan.checks.find
import loopscan.cli.check
import loopscan.reports.checks
import loopscan.reports.text
import loopscan.testing  # noqa: F401
from loopscan.transcripts.reader import readers
from tests.scripts import transcripts

pytest_plugins = ["pytester"]
readers()

FIXTURES = Path(__file__).parents[1] / "fixtures"
GOOD = "ruleset: '2026.9'\nexpect:\n  first: {kind: warning, detector: generic_repeat, count: 10}\n"
BAD = "ruleset: '2026.9'\nexpect:\n  first: {kind: warning, count: 11}\n"


@pytest.fixture
def notes(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with one transcript and nothing that is said of it."""
    shutil.copy(FIXTURES / "detectors" / "read-notes.jsonl", pytester.path / "notes.jsonl")
    return pytester


def write(pytester: pytest.Pytester, name: str, text: str) -> Path:
    path = pytester.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def command(folder: Path, *arguments: str) -> str:
    """Return what ``loopscan check`` prints."""
    from typer.testing import CliRunner

    from loopscan.cli.main import app

    return CliRunner().invoke(app, ["check", *arguments, str(folder)]).stdout


# -- checks as tests --


def test_each_check_is_a_test_of_its_name(notes: pytest.Pytester) -> None:
    checks = "expect: {none: {detector: ping_pong}}\nchecks:\n- {ruleset: '2026.6'}\n- {name: 'by hand [1]'}\n"
    write(notes, "notes.expect.yaml", checks)
    write(notes, "more/own.expect.json", '{"transcript": "../notes.jsonl", "expect": {"at_least": [{}]}}')
    done = notes.runpytest("-v")
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines_random(
        [
            "notes.expect.yaml::2026.6 PASSED*",
            "notes.expect.yaml::by hand [[]1] PASSED*",
            "more/own.expect.json::latest PASSED*",
        ]
    )


def test_a_failure_is_told_as_the_command_tells_it_and_without_a_traceback(notes: pytest.Pytester) -> None:
    write(notes, "notes.expect.yaml", BAD)
    done = notes.runpytest()
    done.assert_outcomes(failed=1)
    printed = command(notes.path).splitlines()
    first = printed.index("  first: the first mark is another one")
    told = [line[2:] for line in printed[first:-1] if line.strip()]
    assert any("●" in line for line in told)
    done.stdout.fnmatch_lines(
        ["*_ check of notes.jsonl [[]2026.9] _*", *(line.replace("[", "[[]") for line in told)], consecutive=False
    )
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")
    done.stdout.fnmatch_lines(["FAILED notes.expect.yaml::2026.9 - Failed: first: the first mark is another one*"])


def test_what_cannot_be_read_fails(notes: pytest.Pytester) -> None:
    write(notes, "gone.expect.yaml", GOOD)
    write(notes, "empty.jsonl", "")
    write(notes, "empty.expect.yaml", GOOD)
    done = notes.runpytest()
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines_random(["there is no transcript gone beside it*", "*empty.jsonl: empty"])


def test_skips_are_skips_with_their_reason(notes: pytest.Pytester) -> None:
    checks = "- {skip: 'waits for a fix'}\n- {ruleset: '2026.6', requires: {ruleset: '>=2026.9'}}\n"
    write(notes, "notes.expect.yaml", f"expect: {{none: true}}\nchecks:\n{checks}")
    done = notes.runpytest("-rs")
    done.assert_outcomes(skipped=2)
    done.stdout.fnmatch_lines_random(["*waits for a fix", "*requires ruleset >=2026.9, this is 2026.6"])


def test_mistakes_are_a_failing_test_of_the_file_with_their_place_and_everything_else_runs(
    notes: pytest.Pytester,
) -> None:
    write(notes, "notes.expect.yaml", "ruleset: '2026.9'\nexpect:\n  nome: true\n")
    write(notes, "broken.expect.yaml", "transcript: notes.jsonl\nexpect: {none: [\n")
    write(notes, "own.expect.yaml", f"transcript: notes.jsonl\n{GOOD}")
    notes.makepyfile("def test_other(): pass")
    done = notes.runpytest("-o", "loopscan_collect=all")
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines_random(
        [
            "*_ notes.expect.yaml _*",
            f'{notes.path}/notes.expect.yaml:3:3: unknown key "nome"; did you mean "none"[?]',
            f"{notes.path}/broken.expect.yaml:3:1: *",
            "FAILED notes.expect.yaml::notes.expect.yaml - Failed: *",
        ]
    )
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*find.py*")
    notes.runpytest("notes.expect.yaml::notes.expect.yaml").assert_outcomes(failed=1)


def test_what_a_folder_says_counts_and_its_own_checks_are_tests(notes: pytest.Pytester) -> None:
    transcripts("clean", notes.path / "clean")
    write(notes, "notes.expect.yaml", "expect: {at_most: [{kind: run_end, times: 0}]}")
    write(
        notes,
        "loopscan.checks.yaml",
        "defaults: {ruleset: '2026.6'}\n"
        "checks:\n- {transcripts: 'clean/p*.jsonl', name: quiet, expect: {none: true}}\n"
        "benign:\n- {folder: clean}\n- {folder: ., max_warnings: 5}\n",
    )
    write(notes, "clean/loopscan.checks.yaml", "benign: [{folder: .}]\n")
    done = notes.runpytest("-v")
    done.assert_outcomes(passed=4, failed=1)
    done.stdout.fnmatch_lines_random(
        [
            "notes.expect.yaml::2026.6 PASSED*",
            "loopscan.checks.yaml::clean/paging.jsonl [[]quiet] PASSED*",
            "loopscan.checks.yaml::benign clean PASSED*",
            "clean/loopscan.checks.yaml::benign . PASSED*",
            "loopscan.checks.yaml::benign . FAILED*",
            "false alarm on a benign session: block generic_repeat *",
        ]
    )


def test_a_mistake_in_the_file_of_a_folder_is_no_other_check_passed(notes: pytest.Pytester) -> None:
    write(notes, "notes.expect.yaml", GOOD)
    write(notes, "loopscan.checks.yaml", "defaults:\n  rulset: latest\n")
    done = notes.runpytest()
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(['*loopscan.checks.yaml:2:3: unknown key "rulset"*'])


def test_a_mistake_in_the_file_of_a_folder_fails_it_and_all_below(notes: pytest.Pytester) -> None:
    text = "checks:\n- {transcripts: '*.jsonl', requires: {ruleset: later}, expect: {none: true}}\n"
    write(notes, "loopscan.checks.yaml", text)
    write(notes, "notes.expect.yaml", GOOD)
    done = notes.runpytest("-v")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*loopscan.checks.yaml:2:*must be comparisons with*"])


def test_a_file_of_a_folder_without_checks_is_no_test(notes: pytest.Pytester) -> None:
    write(notes, "loopscan.checks.yaml", "defaults: {ruleset: latest}\n")
    assert notes.runpytest().ret is pytest.ExitCode.NO_TESTS_COLLECTED


# -- whose files they are --

OTHERS = {
    "other.expect.yaml": "steps: [one, two]\n",
    "named.expect.yaml": "name: something else\nskip: today\n",
    "empty.expect.yml": "",
    "broken.expect.json": "{",
    "output.expect.yaml": "expect: {stdout: hello}\n",
}


def test_files_of_other_tools_are_left_alone(notes: pytest.Pytester) -> None:
    for name, text in OTHERS.items():
        write(notes, name, text)
        write(notes, f"{name.partition('.')[0]}.txt", "no transcript")
    write(notes, "notes.expect.yaml", GOOD)
    notes.runpytest().assert_outcomes(passed=1)


def test_a_file_beside_its_transcript_must_be_right(notes: pytest.Pytester) -> None:
    write(notes, "notes.expect.yaml", "steps: [one, two]\n")
    notes.runpytest().assert_outcomes(failed=1)


def test_a_file_that_is_named_must_be_right(notes: pytest.Pytester) -> None:
    write(notes, "other.expect.yaml", OTHERS["other.expect.yaml"])
    notes.runpytest("other.expect.yaml").assert_outcomes(failed=1)


def test_the_option_says_that_all_or_none_are_ours(notes: pytest.Pytester) -> None:
    for name, text in OTHERS.items():
        write(notes, name, text)
    write(notes, "notes.expect.yaml", GOOD)
    write(notes, "loopscan.checks.yaml", "benign: [{folder: .}]\n")
    assert notes.runpytest("-o", "loopscan_collect=none").ret is pytest.ExitCode.NO_TESTS_COLLECTED
    every = notes.runpytest("-o", "loopscan_collect=all")
    every.assert_outcomes(failed=5, passed=1, skipped=1)
    wrong = notes.runpytest("-o", "loopscan_collect=some")
    assert wrong.ret is pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(["*loopscan_collect must be one of auto, all, none, not 'some'"])


# -- what pytest is asked to do with them --


def test_they_can_be_chosen_and_repeated(notes: pytest.Pytester) -> None:
    write(
        notes,
        "notes.expect.yaml",
        "checks:\n- {name: good, expect: {at_least: [{}]}}\n- {name: bad, expect: {none: true}}\n",
    )
    notes.runpytest("-k", "good").assert_outcomes(passed=1, deselected=1)
    notes.runpytest("notes.expect.yaml::good").assert_outcomes(passed=1)
    notes.runpytest().assert_outcomes(passed=1, failed=1)
    notes.runpytest("--lf").assert_outcomes(failed=1)


def test_junit_has_the_sentence_and_the_text(notes: pytest.Pytester) -> None:
    write(notes, "notes.expect.yaml", BAD)
    notes.runpytest("--junitxml=junit.xml")
    (case,) = ElementTree.parse(notes.path / "junit.xml").iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("notes.expect.yaml", "2026.9")
    (failure,) = case
    assert (failure.get("message") or "").startswith("Failed: first: the first mark is another one")
    assert "● warning generic_repeat" in (failure.text or "")


def test_they_run_in_several_processes(notes: pytest.Pytester) -> None:
    write(notes, "notes.expect.yaml", BAD)
    write(notes, "own.expect.yaml", f"transcript: notes.jsonl\n{GOOD}")
    write(notes, "skipped.expect.yaml", f"transcript: notes.jsonl\nskip: later\n{GOOD}")
    done = notes.runpytest_subprocess("-n", "2", "-rs", timeout=60)
    done.assert_outcomes(passed=1, failed=1, skipped=1)
    done.stdout.fnmatch_lines(["first: the first mark is another one", "SKIPPED*later"])


# -- the fixture --


def test_the_fixture_replays_and_asserts(notes: pytest.Pytester) -> None:
    notes.makepyfile(
        """
        def test_notes(loopscan):
            loopscan.replay("notes.jsonl", ruleset="2026.9").assert_marks(
                "warning generic_repeat 10", "block generic_repeat 20", "block generic_repeat 21",
                "run_end generic_repeat 21", not_reached={"calls": 4},
            )

        def test_made_up(loopscan):
            stuck = loopscan.session([("read", {"path": "notes.txt"}, "the same text")] * 11)
            assert loopscan.replay(stuck).marks == ["warning generic_repeat 10"]
        """
    )
    notes.runpytest().assert_outcomes(passed=2)


def test_a_failing_assertion_shows_the_test_the_reason_and_no_line_of_ours(notes: pytest.Pytester) -> None:
    notes.makepyfile(
        """
        def test_notes(loopscan):
            loopscan.replay("notes.jsonl").assert_marks(none=True)

        def test_gone(loopscan):
            loopscan.replay("gone.jsonl")
        """
    )
    done = notes.runpytest()
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(
        [
            '>       loopscan.replay("notes.jsonl").assert_marks(none=True)',
            "E       AssertionError: unexpected: warning generic_repeat",
            "E         expected  no such mark",
            "E         found     warning generic_repeat · count 10 *",
            "E         why       read was called 10 times *",
            "E       *● warning generic_repeat*",
            "*test_a_failing*.py:2: AssertionError",
            '>       loopscan.replay("gone.jsonl")',
            "E       loopscan.errors.InputError: gone.jsonl: no such file*",
        ]
    )
    done.stdout.no_fnmatch_line("*testing.py:*")


def test_a_misspelt_keyword_is_told_by_one_line_and_no_internals(notes: pytest.Pytester) -> None:
    notes.makepyfile(
        """
        def test_assertion(loopscan):
            loopscan.replay("notes.jsonl").assert_marks(at_lest=[{"kind": "block"}])

        def test_replay(loopscan):
            loopscan.replay("notes.jsonl", rulset="2026.9")
        """
    )
    done = notes.runpytest()
    done.assert_outcomes(failed=2)
    told = [line for line in done.outlines if line.startswith("E ")]
    assert told == [
        'E       loopscan.errors.UsageError: assert_marks: unknown key "at_lest"; did you mean "at_least"?',
        'E       loopscan.errors.UsageError: replay: unknown keyword "rulset"; did you mean "ruleset"?',
    ]
    done.stdout.no_fnmatch_line("*pydantic*")
    done.stdout.no_fnmatch_line("*testing.py:*")


def test_marks_that_are_not_equal_are_explained(notes: pytest.Pytester) -> None:
    notes.makepyfile(
        """
        def test_right(loopscan):
            assert loopscan.replay("notes.jsonl").marks == ["warning generic_repeat 11"]

        def test_left(loopscan):
            assert ["warning generic_repeat 11"] == loopscan.replay("notes.jsonl").marks

        def test_other(loopscan):
            assert loopscan.replay("notes.jsonl").marks == ["nothing of the kind"]
        """
    )
    done = notes.runpytest("-vv")
    done.assert_outcomes(failed=3)
    done.stdout.fnmatch_lines(
        [
            "E       assert the marks are not those on the right:",
            "E         exact: mark 1 is another one",
            "E           expected  warning generic_repeat · count 11",
            "E           found     warning generic_repeat · count 10 *",
            "E           why       read was called 10 times*",
            "E       assert the marks are not those on the left:",
            "E         exact: mark 1 is another one",
            "E       *'nothing of the kind'*",
        ]
    )


def test_a_start_of_pytest_loads_nothing_of_the_rest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_loaded():
            ours = {name for name in sys.modules if name.partition(".")[0] == "loopscan"}
            assert ours == {"loopscan", "loopscan._version", "loopscan.errors", "loopscan.pytest_plugin"}
            assert not {"pydantic", "yaml", "rich", "polars"} & sys.modules.keys()
        """
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest", timeout=60).assert_outcomes(passed=1)
