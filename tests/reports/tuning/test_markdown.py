"""``markdown`` of ``loopscan tune`` shows text of transcripts in code alone, and stays within what GitHub takes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings

from loopscan.reports.tuning.markdown import document
from loopscan.tuning.report import TuningReport
from tests.reports.subjects import NASTY
from tests.reports.test_markdown import OURS, code, shape, tokens
from tests.reports.tuning.samples import NASTIEST, hostile, part, refused, report, reports, written

TAME = shape(document(hostile("x")))


def inert(text: str) -> None:
    assert not {"link_open", "image", "html_inline"} & {token.type for token in tokens(text)}
    assert {tag for block in code(text, "html_block") for tag in re.findall("<[^>]*>", block)} <= OURS


@pytest.mark.parametrize("nasty", [text for text in NASTY if text])
def test_any_text_leaves_the_document_as_it_is_with_tame_text(nasty: str) -> None:
    made = document(hostile(nasty))
    assert shape(made) == TAME
    inert(made)


@settings(max_examples=10, deadline=None)
@example(made=NASTIEST)
@given(made=reports())
def test_any_report_is_inert(made: TuningReport) -> None:
    inert(written("markdown", made).decode())


def test_what_to_do_comes_first() -> None:
    made = document(report())
    order = [
        "## loopscan tune: critical 15, breaker 20\n",
        "- promise: `false-block rate at most 10 % with confidence 95 %, corrected for choosing",
        "| all | critical 15, breaker 20 | `It keeps the promise.` |",
        "| `ops` | leave as it is | `Too few sessions of this agent.` |",
        "```json5\n{\n  tools: {\n",
        "`28 incidents: 7 stuck · 9 productive · 12 unknown`",
        "| **critical 15, breaker 20** (recommended, front) | 5 | 2 | 0 | 0 of 40 | 0 % | 0–10 % | 2 | 12.3 | 18.2 |",
        "more courses of events left out; `-o csv=FILE` has every setting",
        "| false blocks | 0 | 1 |",
        "- stability: the same choice in 82 % of 200 redraws, none in 5 %",
        "### `main`",
        "| stuck | 3 | 1 | 0 |",
        "critical 16, caught → missed: `agents/main/sessions/s-1.jsonl:14`",
        "### Notes",
    ]
    places = [made.index(words) for words in order]
    assert places == sorted(places)


def test_a_refusal_is_the_title() -> None:
    made = document(refused())
    assert made.startswith("## loopscan tune: no recommendation\n\n`Three sessions at risk are too few.`\n")
    assert "json5" not in made


def test_it_stays_within_its_limit_and_says_what_is_left_out() -> None:
    flips = part().flips * 500
    made = document(report(whole=part(flips=flips)), 12_000)
    assert len(made.encode()) <= 12_000
    assert re.search(r"\*\*[\d,]+ things are left out\*\*: this summary may have 12,000 bytes", made)
    assert "left out**" not in document(report())


def test_a_setting_that_stands_for_no_group_is_shown_all_the_same() -> None:
    whole = part()
    chosen = whole.chosen.candidate
    assert chosen is not None
    others = tuple(each for each in whole.candidates if each.number != chosen.number)
    made = document(report(whole=replace(whole, candidates=others)))
    assert "(recommended; figures of the sessions it was chosen on, front)" in made
