"""``text`` shows what there is to see, plainly, and interprets nothing."""

from __future__ import annotations

import io
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from loopscan.marks import Kind
from loopscan.report import Report, Step
from loopscan.reports import Options, load
from loopscan.reports.text import timeline_text
from loopscan.transcripts.discover import Skipped
from tests.reports import samples
from tests.reports.samples import calls, mark, report, run, session, shown

SNAPSHOTS = Path(__file__).parent / "snapshots"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def text(made: Report, **options: Any) -> str:
    out = io.StringIO()
    load("text").write(made, out, Options(**options))
    return out.getvalue()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_snapshots(name: str) -> None:
    """Each sample looks as in its file; ``UPDATE_SNAPSHOTS=1`` writes them afresh, to be looked at."""
    made = text(samples.SAMPLES[name]())
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


class TestWhatItLooksLike:
    def test_a_pipe_gets_plain_text_of_100_columns(self) -> None:
        for sample in samples.SAMPLES.values():
            for line in text(sample()).split("\n"):
                assert cell_len(line) <= 100
                assert line == line.rstrip(" ")
                assert "\x1b" not in line

    def test_a_terminal_gets_colours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm-256color")
        out = Terminal()
        load("text").write(samples.block_and_end(), out, Options(width=100))
        assert "\x1b[1;31mblock" in out.getvalue()
        plain = ESCAPE.sub("", out.getvalue())
        assert [line.rstrip() for line in plain.split("\n")] == text(samples.block_and_end()).split("\n")

    def test_no_color_is_obeyed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        out = Terminal()
        load("text").write(samples.block_and_end(), out, Options(width=100))
        assert not re.search(r"\x1b\[[0-9;]*3[0-7]", out.getvalue())

    @pytest.mark.parametrize("width", [1, 40, 60, 250])
    def test_any_width(self, width: int) -> None:
        for sample in samples.SAMPLES.values():
            assert text(sample(), width=width)

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "shift_jis"])
    def test_any_encoding(self, encoding: str) -> None:
        for sample in samples.SAMPLES.values():
            raw = io.BytesIO()
            out = io.TextIOWrapper(raw, encoding=encoding)
            load("text").write(sample(), out, Options())
            out.flush()
            assert raw.getvalue().decode(encoding)

    def test_signs_have_an_ascii_form(self) -> None:
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="ascii")
        load("text").write(samples.ping_pong(), out, Options())
        out.flush()
        made = raw.getvalue().decode()
        assert "+ x10, to #19" in made
        assert "\\u" not in made


class TestHostileText:
    def test_nothing_acts_on_the_terminal(self) -> None:
        for verbose in (False, True):
            made = text(samples.hostile(), verbose=verbose)
            categories = {unicodedata.category(char) for char in made.replace("\n", "")}
            assert not categories & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
            made.encode()

    def test_markup_and_emoji_codes_are_text(self) -> None:
        made = text(samples.hostile())
        assert "[bold red]markup[/bold red]" in made
        assert ":smile:" in made

    def test_even_with_colours(self) -> None:
        made = ESCAPE.sub("", text(samples.hostile(), color=True))
        assert not {unicodedata.category(char) for char in made.replace("\n", "")} & {"Cc", "Cf", "Cs", "Co"}

    def test_long_names_are_cut(self) -> None:
        assert len(text(samples.hostile())) < 30_000


class TestOptions:
    def test_without_previews(self) -> None:
        assert samples.PREVIEW in text(samples.block_and_end())
        made = text(samples.block_and_end(), previews=False)
        assert samples.PREVIEW not in made
        assert "blocked: read, exec ×2" in made

    def test_quiet_is_the_summary_alone(self) -> None:
        made = text(samples.block_and_end(), quiet=True)
        assert "not reached" in made
        assert "Session" not in made
        assert "exact" not in made

    def test_sessions_without_marks_are_one_line_or_one_each(self) -> None:
        made = samples.all_clean(41)
        assert "41 sessions without marks" in text(made)
        assert "s-40" not in text(made)
        assert "s-40" in text(made, verbose=True)

    def test_problems_are_few_or_all(self) -> None:
        assert "… and 6 more" in text(samples.problems())
        assert "line 11" not in text(samples.problems())
        assert "line 11" in text(samples.problems(), verbose=True)

    def test_skipped_files_are_counted_or_named(self) -> None:
        assert "1 other file in these folders" in text(samples.problems())
        assert "notes.md" not in text(samples.problems())
        assert "notes.md" in text(samples.problems(), verbose=True)

    def test_files_that_are_sources_already_are_no_others(self) -> None:
        made = samples.problems()
        made.skipped = [Skipped("b.jsonl", "read already, under another name"), *made.skipped]
        assert "1 other file in these folders · 1 file read already, under another name" in text(made)
        made.skipped = made.skipped[:1]
        assert "skipped      1 file read already, under another name" in text(made)


class TestHonesty:
    def test_silenced_detectors_are_said_twice(self) -> None:
        made = text(samples.silenced())
        assert "silenced     enabled is not set in openclaw.json" in made
        assert "none; mind that detectors are silenced" in made

    def test_what_is_exact_is_said_where_something_intervened(self) -> None:
        assert "up to the first intervention of a run are exact" in text(samples.block_and_end())
        assert "exact" not in text(samples.one_warning())

    def test_observing_vetoes_nothing(self) -> None:
        made = samples.block_and_end()
        made.mode = "observe"
        assert "Nothing is vetoed in mode observe" in text(made)

    def test_lossy_marks_are_flagged(self) -> None:
        made = text(samples.compaction())
        assert "lossy: what the live engine compared is only partly on record" in made
        assert "1 mark is lossy" in made

    def test_savings_are_an_upper_bound(self) -> None:
        made = re.sub(r"\s+", " ", text(samples.block_and_end()))
        assert "20 calls, 12,345 tokens, $0.41, 3.2 min (an upper bound: the model might have recovered)" in made

    def test_what_the_live_engine_did_is_beside_the_mark(self) -> None:
        made = text(samples.live_verdicts())
        assert "the replay agrees with 3 of 5" in made
        assert "live: the engine did the same on 3 calls" in made
        assert "live: block ping_pong · count 24, which differs" in made
        assert "live: warning · count 10 · exec; the replay has no such mark here" in made
        assert "live: not on record" in made

    def test_a_verdict_without_a_step_is_shown_all_the_same(self) -> None:
        live = [samples.recorded("block", 3, detector="ping_pong", count=20)]
        made = text(report(session(run(calls=5), recorded=live)))
        assert "live: block ping_pong · count 20; the replay has no such mark here" in made


class TestFolding:
    def test_blocks_at_the_same_count_are_one_row(self) -> None:
        made = text(samples.blocks_in_a_row())
        assert made.count("● block") == 1
        assert "count 20, threshold 20 · read · 10:" in made
        assert "×20, to #39" in made

    def test_calls_that_take_turns_are_one_group(self) -> None:
        made = text(samples.ping_pong())
        assert made.count("a.txt") == made.count("b.txt") == 1
        assert "└ ×10, to #19" in made

    def test_marks_that_differ_are_not_folded(self) -> None:
        warnings = [shown(mark(Kind.WARNING, batch, batch)) for batch in (10, 20, 30)]
        assert text(report(session(run(*warnings, calls=31)))).count("● warning") == 3

    def test_marks_without_steps_still_show(self) -> None:
        made = samples.one_warning()
        made.sessions[0].runs[0].steps = []
        assert "● warning" in text(made)

    def test_calls_elided_next_to_each_other_add_up(self) -> None:
        steps = [
            Step("elided", batch=0, times=5),
            Step("elided", batch=5, times=6),
            shown(mark(Kind.WARNING, 11, 10)),
        ]
        assert "… 11 calls left out" in text(report(session(run(*steps, calls=12))))

    def test_many_steps_come_to_an_end(self) -> None:
        steps = [calls(batch, preview=str(batch % 7)) for batch in range(4_000)]
        steps += [calls(batch, preview=str(batch)) for batch in range(1000)]
        steps += [shown(mark(Kind.WARNING, 5_000, 10))]
        assert "● warning" in text(report(session(run(*steps, calls=5_000))))


@pytest.mark.parametrize("width", range(40, 121, 5))
def test_no_width_cuts_a_number_of_the_summary(width: int) -> None:
    steps = [shown(mark(kind, batch)) for batch, kind in enumerate(Kind)]
    made = report(session(run(*steps, calls=7)))
    out = io.StringIO()
    load("text").write(made, out, Options(width=width, quiet=True))
    summary = " ".join(out.getvalue().split())
    assert "…" not in summary
    if "by detector" not in summary:  # the lines in place of the table
        assert all(f"1 {kind.value.replace('_', ' ')}" in summary for kind in Kind)
    else:
        assert "1 1 1 1 1 1 1" in summary


class TestATimelineOfSomeRuns:
    def test_has_these_runs_alone_and_counts_those_without_marks(self) -> None:
        marked = [run(shown(mark(Kind.WARNING, at, 10)), calls=20, run=at) for at in (0, 1)]
        quiet = run(calls=3, run=2)
        made = timeline_text(session(*marked, quiet), [marked[1], quiet], Options())
        assert "  run 1 · 20 calls" in made
        assert "  run 0 " not in made
        assert made.endswith("\n  1 other run without marks")

    def test_leaves_out_the_verdicts_of_the_other_runs(self) -> None:
        whole = samples.live_verdicts().sessions[0]
        assert "○" in timeline_text(whole, whole.runs, Options())
        assert "○" not in timeline_text(whole, [], Options())

    def test_does_not_depend_on_the_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one = samples.one_warning().sessions[0]
        plain = timeline_text(one, one.runs, Options())
        for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "40"), ("TERM", "xterm-256color")):
            monkeypatch.setenv(name, value)
        assert timeline_text(one, one.runs, Options(color=True)) == plain
