"""``loopscan formats`` lists every reader with what people want to know of it."""

from __future__ import annotations

import json
import subprocess
import sys

from loopscan.transcripts.reader import readers, traits_of


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "loopscan", "formats", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_every_reader_says_what_it_reads_and_how_it_knows_it() -> None:
    for name, reader in readers().items():
        traits = traits_of(reader)
        assert traits.summary, name
        assert traits.recognised_by, name


def test_all_are_listed_with_their_tools_and_normalisers() -> None:
    shown = run()
    listed = json.loads(run("--format", "json"))
    assert list(listed) == list(readers())
    for name, reader in readers().items():
        traits = traits_of(reader)
        assert f"\n{name}\n" in f"\n{shown}"
        assert traits.recognised_by in shown
        assert listed[name]["tools"] == dict(traits.tools)
        for own, other in traits.tools.items():
            assert f"{own} → {other}" in shown
        for normaliser, sentence in traits.normalisers.items():
            assert f"{normaliser}: {sentence}" in shown
