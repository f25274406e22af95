"""``markdown`` shows text of transcripts in code alone, and stays within what GitHub takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from loopscan.failing import FailOn
from loopscan.findings import Case, Finding, Findings, Place, Status
from loopscan.reports.cases import place_of, story, unsaid
from loopscan.reports.markdown import LIMIT, document
from loopscan.reports.plain import path, sentence, title
from tests.reports import samples
from tests.reports.subjects import NASTIEST, SUBJECTS, case, finding, findings, written

PARSER = MarkdownIt("gfm-like")
OURS = {"<details>", "<summary>", "</summary>", "</details>"}


def tokens(text: str) -> Iterator[Token]:
    for token in PARSER.parse(text):
        yield token
        yield from token.children or ()


def shape(text: str) -> list[tuple[str, str]]:
    """Return the elements of a document with what stands outside of code."""
    return [
        (token.type, token.content if token.type in {"text", "html_block", "html_inline"} else "")
        for token in tokens(text)
        if token.type != "inline"
    ]


def code(text: str, kind: str) -> list[str]:
    return [token.content for token in tokens(text) if token.type == kind]


def tame(text: str | None) -> str | None:
    return text and "x"


def tamed(subject: Findings) -> Findings:
    """Return ``subject`` with an x in place of every text."""

    def place(each: Place) -> Place:
        return Place(tame(each.path) or "", each.line)

    def found(each: Finding) -> Finding:
        return replace(each, message=tame(each.message), place=place(each.place), suppressed=tame(each.suppressed))

    def one(each: Case) -> Case:
        return Case(
            tame(each.group) or "",
            tame(each.name) or "",
            each.status,
            place(each.place),
            tame(each.reason),
            tame(each.text) or "",
            tuple(map(found, each.findings)),
        )

    return replace(
        subject,
        facts=tuple((tame(fact) or "", tame(value) or "") for fact, value in subject.facts),
        cases=tuple(map(one, subject.cases)),
    )


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_leaves_the_document_as_it_is_with_tame_text(subject: Findings) -> None:
    subject = replace(subject, errors=())
    made = document(subject)
    assert shape(made) == shape(document(tamed(subject)))
    assert not {"link_open", "image", "html_inline"} & {token.type for token in tokens(made)}


@example(subject=NASTIEST)
@given(subject=SUBJECTS)
def test_any_text_at_all_comes_back_clean(subject: Findings) -> None:
    made = document(subject)
    bad = [each for each in subject.cases if each.status in {Status.FAILED, Status.ERROR}]
    told = [each for each in subject.cases if each.status is Status.PASSED and each.findings]
    skipped = [each for each in subject.cases if each.status is Status.SKIPPED]
    spans = [text for fact, value in subject.facts for text in (title(fact), sentence(value))]
    spans += [sentence(error) for error in unsaid(subject)]
    for each in bad:
        spans += [title(each.name), place_of(each), sentence(each.reason or "")]
    for each in (*bad, *told):
        spans += [title(each.name), place_of(each)]
    for each in skipped:
        spans += [title(each.name), path(each.group), sentence(each.reason or "")]
    assert code(made, "code_inline") == [text for text in spans if text]
    # Trailing spaces of a line within a block stay; an empty story is an empty block.
    assert code(made, "fence") == ["".join(f"{line}\n" for line in story(each)) for each in (*bad, *told)]


@pytest.mark.parametrize("fail_on", FailOn)
@pytest.mark.parametrize("name", samples.SAMPLES)
def test_reports_are_inert(name: str, fail_on: FailOn) -> None:
    text = written("markdown", samples.SAMPLES[name](), fail_on=fail_on).decode()
    kinds = {token.type for token in tokens(text)}
    assert not {"link_open", "image", "html_inline"} & kinds
    assert {tag for block in code(text, "html_block") for tag in re.findall("<[^>]*>", block)} <= OURS


def test_what_failed_is_listed_then_told_and_the_rest_is_folded() -> None:
    text = document(
        findings(
            case("bad", Status.FAILED, reason="1 mark", text="a timeline", findings=(finding(),)),
            case("odd", Status.PASSED, findings=(finding("it is known", suppressed="yes"), finding("slow"))),
            case("left", Status.SKIPPED, reason="no expectation"),
            case("good"),
        )
    )
    assert text == (
        "## loopscan check: 1 of 4 cases failed\n\n"
        "- `ruleset`: `2026.9`\n\n"
        "| case | transcript | | why |\n|---|---|---|---|\n| `bad` | `s.jsonl` | failed | `1 mark` |\n\n"
        "### `bad`\n\n`s.jsonl`\n\n```text\na timeline\n```\n\n"
        "<details>\n<summary>1 passed case with findings</summary>\n\n\n"
        "### `odd`\n\n`s.jsonl`\n\n```text\ns.jsonl:3: slow\n```\n\n</details>\n\n"
        "<details>\n<summary>1 skipped case</summary>\n\n"
        "- `left` of `s.jsonl`: `no expectation`\n\n</details>\n\n"
        "1 case passed without findings.\n"
    )


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    text = document(findings(case("bad", Status.FAILED, text="``````\n# no")))
    assert "\n```````text\n``````\n# no\n```````\n" in text


def many(cases: int, status: Status) -> Findings:
    return findings(*(case(str(at), status, text="x" * 1500 + "`" * 9, findings=(finding(),)) for at in range(cases)))


@pytest.mark.parametrize("status", [Status.FAILED, Status.PASSED])
def test_it_stays_within_the_limit_and_says_how_many_cases_are_left_out(status: Status) -> None:
    text = document(many(2000, status))
    assert LIMIT - 5000 < len(text.encode()) <= LIMIT
    told = len(code(text, "fence"))
    assert f"**{2000 - told:,} cases or errors are left out**" in text
    assert 300 < told < 2000
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("limit", [1500, 5000, 50_000])
@pytest.mark.parametrize("status", Status)
def test_any_limit_is_kept(limit: int, status: Status) -> None:
    text = document(many(100, status), limit)
    assert len(text.encode()) <= limit
    assert PARSER.render(text).count("<details>") == text.count("</details>")


def test_a_case_that_is_too_large_does_not_hide_the_next_one() -> None:
    large = case("large", Status.FAILED, text="x" * LIMIT)
    text = document(findings(large, case("small", Status.FAILED, text="the small one")))
    assert "the small one" in text
    assert "| `large` |" in text
    assert "**1 case or error is left out**" in text
