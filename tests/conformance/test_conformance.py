"""Every scripted case meets the marks that the published release really made, in every field.

The vectors in ``data`` came from the published packages (``make conformance`` asks them afresh);
where the project's shared cases lie beside the checkout, they are run too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .cases import expected, load, marks_of, verdicts_of

HERE = Path(__file__).parent
SHARED = Path(__file__).resolve().parents[3] / "shared" / "conformance"
FILES = [*sorted((HERE / "data").glob("*.jsonl.gz")), *sorted(SHARED.glob("*.jsonl.gz"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name.removesuffix('.jsonl.gz')}")
def test_every_mark_agrees(path: Path) -> None:
    differing = {}
    cases = 0
    for case in load(path):
        cases += 1
        ours, theirs = marks_of(case), expected(case)
        if ours != theirs:
            differing[case["id"]] = {"ours": ours, "theirs": theirs}
    assert cases > 0
    assert not differing, f"{len(differing)} of {cases} differ, first: {next(iter(differing.items()))}"


@pytest.mark.parametrize("path", sorted((HERE / "data" / "history").glob("*.gz")), ids=lambda path: path.name[:6])
def test_every_verdict_on_a_history_agrees(path: Path) -> None:
    """Outcomes that never come, come late, or come when the history has dropped their call."""
    differing = [case["id"] for case in load(path) if verdicts_of(case) != case["answers"]]
    assert not differing
    assert sum(any(case["answers"]) for case in load(path)) > 100


def test_the_vectors_of_both_releases_are_there() -> None:
    assert {path.name[:6] for path in (HERE / "data").glob("*.gz")} == {"2026-6", "2026-9"}
