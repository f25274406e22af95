"""The ids of envelopes: what stays as it is, and that hostile texts cost no more than long ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from loopscan.engine.nonces import without_nonces

BEGIN, END = "<<<EXTERNAL_UNTRUSTED_CONTENT", "<<<END_EXTERNAL_UNTRUSTED_CONTENT"
A, B = "0123456789abcdef", "fedcba9876543210"
#: What envelopes are made of, and what almost is one.
PIECES = (
    *(BEGIN, END, ' id="', '">>>', A, B, "\\", '"', "<<<", ">>>", "EXTERNAL_UNTRUSTED_CONTENT", "x", "\n"),
    *(f'{BEGIN} id="{A}">>>', f'{END} id="{A}">>>', f'{BEGIN} id="{B}">>>', f'{END} id="{B}">>>'),
    *(f'{BEGIN} id=\\"{A}\\">>>', f'{END} id=\\"{A}\\">>>', f'{BEGIN} id=\\\\\\"{B}\\\\\\">>>'),
)
scraps = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
ids = st.text("0123456789abcdef", min_size=16, max_size=16)


def wrap(nonce: str, body: str, depth: int = 0) -> str:
    quote = "\\" * (2**depth - 1) + '"'
    return f"{BEGIN} id={quote}{nonce}{quote}>>>{body}{END} id={quote}{nonce}{quote}>>>"


@given(st.text())
def test_a_text_without_markers_is_unchanged(text: str) -> None:
    assume("EXTERNAL_UNTRUSTED_CONTENT" not in text)
    assert without_nonces(text) == text


@given(scraps)
@example(wrap(A, "x") + wrap(B, "y") + "z")
def test_nothing_but_ids_changes_and_a_second_time_changes_nothing(text: str) -> None:
    made = without_nonces(text)
    assert len(made) == len(text)
    changed = {index for index, (old, new) in enumerate(zip(text, made, strict=True)) if old != new}
    inside = {index for found in re.finditer(r"[0-9a-f]{16}", text) for index in range(*found.span())}
    assert changed <= inside
    assert all(made[index] == "0" for index in changed)
    assert without_nonces(made) == made


@given(ids, ids, st.text().filter(lambda body: BEGIN[:-1] not in body and '"' not in body), st.integers(0, 4), scraps)
@example(A, B, "", 0, "")
def test_envelopes_that_differ_in_their_id_alone_are_one_text(
    one: str, other: str, body: str, depth: int, before: str
) -> None:
    assume(BEGIN not in body and END not in body and not body.endswith("\\"))
    assert without_nonces(wrap(one, body, depth)) == without_nonces(wrap(other, body, depth))
    assert without_nonces(f"{before} {wrap(one, body, depth)}") == without_nonces(
        f"{before} {wrap(other, body, depth)}"
    )
    assert wrap("0" * 16, body, depth) == without_nonces(wrap(one, body, depth))


@given(st.lists(st.tuples(ids, st.text("xyz\n", max_size=3)), max_size=4))
def test_every_envelope_of_a_text_loses_its_id(envelopes: list[tuple[str, str]]) -> None:
    made = without_nonces("-".join(wrap(nonce, body) for nonce, body in envelopes))
    assert made == "-".join(wrap("0" * 16, body) for _, body in envelopes)


@pytest.mark.parametrize(
    "hostile",
    [
        f'{BEGIN} id="',
        f'{BEGIN} id="{A}">>>',
        f'{END} id="{A}">>>',
        f'{BEGIN} id="{A}">>>"{END} id="{A}">>>',
        wrap(A, '"', 1),
        f'{BEGIN} id=\\\\\\"{A}\\\\\\">>>\\"',
        "\\",
        '\\"',
        '"',
        "<",
        "<<<",
        BEGIN,
        f"{BEGIN} id=\\",
    ],
)
def test_a_flood_comes_to_an_end(hostile: str) -> None:
    """A megabyte takes a moment, with an envelope around it and without; a quadratic rule would take hours."""
    flood = hostile * (1_000_000 // len(hostile))
    assert len(without_nonces(flood)) == len(flood)
    for depth in (0, 1, 3):
        assert len(without_nonces(wrap(A, flood, depth))) == len(wrap(A, flood, depth))
    backslashes = "\\" * len(flood)
    opened = f'{BEGIN} id={backslashes}"{A}{backslashes}">>>'
    assert without_nonces(opened) == opened
