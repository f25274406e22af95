"""Every shape of a loop that people report as not detected is answered by the real reason, in the first line.

What the first line has to say is written by hand, in the table of ``fixtures/README.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from loopscan.explaining.explain import explain
from loopscan.explaining.shadows import Reason
from loopscan.explaining.wanted import Wanted
from loopscan.explaining.watcher import Explained
from loopscan.explaining.words import answer_of
from loopscan.policy import Policy
from loopscan.replayer import plan
from loopscan.rulesets import RULESETS
from tests.test_fixtures import FIXTURES, keywords_of, table
from tools.shapes import shapes

MADE = dict(shapes())
ANY = "any"
#: How the reason is begun, and whatever is put before it, by reason.
BEGINS = {
    "detection is ": Reason.DETECTION_OFF,
    "detectors.": Reason.DETECTOR_OFF,
    "the compaction did not arm the guard": Reason.GUARD_NOT_ARMED,
    "the post-compaction guard was armed and did not abort": Reason.GUARD_NOT_MET,
    "hidden by a higher rule": Reason.HIDDEN,
    "split by runs": Reason.SPLIT_BY_RUNS,
    "diluted by other calls": Reason.DILUTED,
    "rejected before recording": Reason.REJECTED,
    "result changed": Reason.RESULT_CHANGED,
    "no outcome recorded": Reason.NO_OUTCOME,
    "arguments changed:": Reason.ARGUMENTS_CHANGED,
    "arguments changed, and so did results": Reason.BOTH_CHANGED,
    "a guard was reset": Reason.GUARD_RESET,
    "below the threshold": Reason.BELOW_THRESHOLD,
    "nothing repeats": Reason.NOTHING_REPEATS,
}


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of the table: file, ruleset, options, first line."""
    for file, _, how, first in table("Why it did not fire"):
        names, _, options = how.partition("`")
        for name in RULESETS if names.strip() == ANY else names.split(","):
            yield file, name.strip(), options.rstrip("`"), first


ROWS = list(rows())


@cache
def answers(file: str, ruleset: str, options: str) -> tuple[list[Explained], Policy]:
    planned = plan(FIXTURES / "shapes" / f"{file}.jsonl", ruleset=ruleset, on_for=True, **keywords_of(options))
    found = explain(planned, Wanted())
    assert [problem for source in found.sources for problem in source.problems] == []
    return found.answers, planned.options.policy


@pytest.mark.parametrize(("file", "ruleset", "options", "first"), ROWS)
def test_the_first_line_names_the_real_reason(file: str, ruleset: str, options: str, first: str) -> None:
    found, policy = answers(file, ruleset, options)
    said = answer_of(found[0], policy)
    rest = said
    for number, words in enumerate(first.split(" … ")):
        assert words in rest, said
        assert number or rest.startswith(words), said
        rest = rest.partition(words)[2]


@pytest.mark.parametrize(("file", "ruleset", "options", "first"), ROWS)
def test_the_reason_is_the_one_that_the_first_line_names(file: str, ruleset: str, options: str, first: str) -> None:
    answer = answers(file, ruleset, options)[0][0]
    said = first.partition(" since ")[2] if first.startswith("warning: ") else first
    named = [reason for begins, reason in BEGINS.items() if said.startswith(begins)]
    assert ([answer.silence.reason] if answer.silence else []) == named


def test_every_reason_is_that_of_some_shape() -> None:
    named = {answer.silence.reason for row in ROWS for answer in answers(*row[:3])[0] if answer.silence}
    assert named == set(Reason)


def test_every_shape_has_a_row_for_every_ruleset() -> None:
    assert {(file, ruleset) for file, ruleset, options, _ in ROWS if not options} == {
        (file, ruleset) for file in MADE for ruleset in RULESETS
    }


@pytest.mark.parametrize("file", sorted(MADE))
def test_a_shape_is_what_its_script_makes(file: str) -> None:
    assert (FIXTURES / "shapes" / f"{file}.jsonl").read_bytes() == MADE[file]


def test_there_is_no_shape_that_no_script_makes() -> None:
    assert {path.stem for path in (FIXTURES / "shapes").iterdir()} == set(MADE)
