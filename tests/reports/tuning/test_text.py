"""``text`` of ``loopscan tune`` says what was found, within its width, and interprets nothing."""

from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from rich.cells import cell_len

from loopscan.reports.base import TUNE_FORMATS, Options, Target, load, prepare, write_all
from loopscan.reports.tuning.bars import bar, scale
from loopscan.tuning.report import Chosen, Stability, TuningReport, Verdict
from tests.reports.tuning import samples
from tests.reports.tuning.samples import NASTIEST, part, report, reports, written

WIDTHS = (60, 100, 200)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def text(made: TuningReport, *, width: int = 100, verbose: bool = False, quiet: bool = False) -> str:
    return written("text", made, width=width, verbose=verbose, quiet=quiet).decode()


def flat(shown: str) -> str:
    """Return a text without its folds."""
    return " ".join(shown.split())


def harmless(shown: str, width: int) -> None:
    for line in shown.split("\n"):
        # What a log of CI would act on is escaped after the lines are laid out.
        assert cell_len(re.sub(r"^(\s*)\\x3a", r"\1:", line.replace("##\\x5b", "##["))) <= width
        acting = [char for char in line if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}]
        assert not acting
        assert not line.lstrip().startswith("::")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", samples.SAMPLES)
@pytest.mark.parametrize("looks", [{}, {"verbose": True}, {"quiet": True}])
def test_every_sample_is_harmless_and_within_its_width(name: str, width: int, looks: dict[str, bool]) -> None:
    harmless(text(samples.SAMPLES[name](), width=width, **looks), width)


@settings(max_examples=10, deadline=None)
@example(made=NASTIEST)
@given(made=reports())
def test_any_report_at_all(made: TuningReport) -> None:
    harmless(text(made, verbose=True, width=90), 90)


def test_it_says_what_was_read_and_never_hides_the_unknown() -> None:
    shown = flat(text(report()))
    for words in (
        "120 sessions · 310 runs · 25,480 calls",
        "28 incidents: 7 stuck · 9 productive · 12 unknown",
        "40 sessions of 120 can be judged",
        "2026-09-01 10:00:00 UTC, 30 days",
        "1,234 settings, 19 different courses of events",
        "2 unknown blocked",
    ):
        assert words in shown
    assert "0 incidents: 0 stuck · 0 productive · 0 unknown" in flat(text(samples.empty()))


def test_the_recommendation_has_its_promise_and_what_it_rests_on() -> None:
    shown = flat(text(report()))
    for words in (
        "Recommendation critical 15, breaker 20 It saves most of what keeps the promise.",
        "40 sessions at risk; the promise needs 36 without a false block",
        "false-block rate at most 10 % with confidence 95 %, corrected for choosing among settings; upper bound 6 %",
        "chosen on 84 sessions, held out 36: critical 15, breaker 20",
        "false blocks 0 1",
        "0 of 40 sessions at risk, 0 % 1 of 12 sessions at risk, 8.3 % (0–10 %) (0.2–38.5 %)",
        "the same choice in 82 % of 200 redraws, none in 5 %",
        "13 %: critical 12, breaker 20",
        "upper bound: the model might have recovered",
    ):
        assert words in shown


def test_a_refusal_says_why_and_what_is_missing() -> None:
    shown = flat(text(samples.refused()))
    assert "Recommendation no recommendation Three sessions at risk are too few." in shown
    assert "3 sessions at risk; the promise needs 59 without a false block" in shown
    assert "how many more sessions that takes cannot be told" in shown
    chosen = Chosen(Verdict.TOO_FEW_SESSIONS, None, False, 59, 1_200, "Too few.")
    more = flat(text(samples.refused(whole=part(chosen=chosen))))
    assert "about 1,200 more sessions of all kinds" in more


def test_a_refusal_may_be_stable_too() -> None:
    whole = replace(samples.refused().whole, stability=Stability(200, 0.9, 0.9, ((samples.BEST, 0.1),)))
    shown = flat(text(samples.refused(whole=whole)))
    assert "stability: no recommendation in 90 % of 200 redraws 10 %: critical 15, breaker 20" in shown


def test_a_choice_by_cost_promises_nothing() -> None:
    chosen = replace(part().chosen, by_cost=True)
    shown = flat(text(report(whole=part(chosen=chosen), parts=(), cost_ratio=2.5)))
    assert "none: chosen by the cost ratio of 2.5" in shown
    assert "corrected for choosing" not in shown


def test_few_settings_are_shown_and_the_rest_counted() -> None:
    made = report(parts=())
    candidates = made.whole.candidates
    many = tuple(replace(candidates[-1], number=number, on_front=number % 3 == 0) for number in range(100, 900))
    shown = text(replace(made, whole=part(candidates=candidates + many)))
    table = shown.partition("What would be saved")[0]
    assert len(table.splitlines()) < 50
    left = re.search(r"(\d+) more courses of events left out; -o csv=FILE has every setting", flat(shown))
    assert left is not None
    assert 19 + 800 - 20 <= int(left[1]) <= 19 + 800 - 10
    assert "left out" not in text(made, verbose=True)


def test_the_settings_that_matter_are_named() -> None:
    rows = text(report(parts=())).splitlines()
    assert any(re.match(r"disabled \(front\) +0 +7 +0 +0 of 40 ", row) for row in rows)
    assert any(re.match(r"as in force \(front\) +4 +3 +0 ", row) for row in rows)
    assert any(row.startswith("critical 15, breaker 20 ") and " 5       2 " in row for row in rows)
    assert any(re.match(r"as in force \(front\) +72 +118,000 +80,000 +\$1.50 +6.0", row) for row in rows)


def test_a_wide_terminal_gets_one_table_and_a_narrow_one_a_list() -> None:
    assert re.search(r"as in force \(front\) +4 .* \$1.50 +6.0$", text(report(), width=160), re.MULTILINE)
    narrow = flat(text(report(), width=60))
    assert "saves at most 72 calls, 118,000 tokens (80,000 of them cached), $1.50, 6.0 min" in narrow
    assert "What they save is an upper bound: the model might have recovered." in narrow


def test_the_curve_is_drawn_in_blocks_or_in_ascii() -> None:
    rows = [line for line in text(report(parts=())).splitlines() if line.endswith(("recommended", "in force"))]
    assert [re.sub(r"[█▌]+", "█", row).split()[:6] for row in rows] == [
        ["15", "█", "90", "0", "%", "recommended"],
        ["20", "█", "72", "0", "%", "in"],
    ]
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    load("text", TUNE_FORMATS).write(report(), out, Options())
    out.flush()
    assert re.search(rb"^ +15 +#+=? 90 ", raw.getvalue(), re.MULTILINE)


def test_a_bar_is_as_long_as_its_share() -> None:
    assert bar(1, 4) == "████"
    assert bar(0.4, 4) == "█▌"
    assert bar(0.0001, 4) == "▌"
    assert scale([None, 0, 3.5]) == 3.5
    assert scale([0, None]) == 1


def test_incidents_near_the_recommendation_have_their_place() -> None:
    shown = flat(text(report(parts=())))
    assert (
        "critical 16: caught → missed agents/main/sessions/s-1.jsonl:14 · run 0, calls 4–26 "
        "same call of read, 23 calls · stuck (run aborted)"
    ) in shown
    assert "productive (file written); the rules say unknown" in shown


def test_quiet_is_what_to_do_alone() -> None:
    shown = text(report(), quiet=True)
    for words in ("critical 15, breaker 20", "agent ops: leave as it is", "      criticalThreshold: 15,", "main: "):
        assert words in shown
    for words in ("Read", "Settings", "Incidents", "redraws", "kappa"):
        assert words not in shown


def test_verbose_shows_every_incident() -> None:
    assert "s-3/0/0" not in text(report())
    assert "s-3/0/0" in text(report(), verbose=True)


def test_labels_and_notes() -> None:
    shown = flat(text(report()))
    assert "6 given labels, Cohen's kappa 0.71 (0.40 to 0.95); 1 line of the file means no incident" in shown
    assert "stuck 3 1 0 productive 0 2 0" in shown
    assert "Three sessions were recorded under another ruleset." in shown


def test_colours_change_nothing_else() -> None:
    out = io.StringIO()
    write_all(report(), prepare([Target("text")], TUNE_FORMATS), Options(color=True, width=100), stdout=out)
    assert "\x1b[1;32m" in out.getvalue()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == text(report()).splitlines()
