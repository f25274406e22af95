"""``html`` of ``loopscan tune`` is one page that loads nothing, runs its own scripts alone, and says all."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import unicodedata
from base64 import b64encode
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from lxml import html

from loopscan.reports.page import asset, embedded
from loopscan.reports.tuning.html import document
from loopscan.tuning.report import TuningReport
from tests.reports.subjects import NASTY
from tests.reports.tuning import samples
from tests.reports.tuning.samples import NASTIEST, empty, hostile, report, reports, written

TAME = hostile("x")
SHORT = {"criticalThreshold": "critical", "globalCircuitBreakerThreshold": "breaker", "warningThreshold": "warning"}


def parsed(made: TuningReport) -> Any:
    return html.document_fromstring(document(made))


def skeleton(page: Any) -> list[tuple[str, dict[str, str]]]:
    """Return every element with its attributes, and what is in scripts and styles."""
    kept = ("script", "style")
    return [(each.tag, dict(each.attrib), each.text if each.tag in kept else "") for each in page.iter()]


def data_of(page: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.get_element_by_id("data").text)
    return found


def cells(page: Any, setting: str) -> list[str]:
    """Return the figures of a setting in the first table that has it."""
    for row in page.xpath("//table[@class='figures']/tbody/tr"):
        name = row.xpath("string(th)")
        if name == setting or name.startswith(f"{setting} ("):
            return [str(cell) for cell in row.xpath("td/text()")]
    raise AssertionError(setting)


@pytest.mark.parametrize("nasty", NASTY)
def test_any_text_leaves_the_page_as_it_is_with_tame_text(nasty: str) -> None:
    made, tame = parsed(hostile(f"x{nasty}")), parsed(TAME)
    assert skeleton(made) == skeleton(tame)


@settings(max_examples=10, deadline=None)
@example(made=NASTIEST)
@given(made=reports())
def test_any_report_has_nothing_but_its_own_elements_and_no_character_that_acts(made: TuningReport) -> None:
    text = document(made)
    acting = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert {char for char in text if unicodedata.category(char) in acting} <= {"\n"}
    page = html.document_fromstring(text)
    assert len(page.xpath("//script")) == 3
    assert not page.xpath("//a | //img | //iframe | //object | //form | //link | //base")
    data_of(page)


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_nothing_is_loaded_and_no_attribute_runs_or_styles(name: str) -> None:
    page = parsed(samples.SAMPLES[name]())
    attributes = {attribute for each in page.iter() for attribute in each.attrib}
    assert not attributes & {"src", "href", "srcset", "style", "action", "background", "poster", "data"}
    assert not [attribute for attribute in attributes if attribute.startswith("on")]
    for style in page.xpath("//style/text()"):
        assert "url(" not in style
        assert "@import" not in style


def test_the_policy_lets_its_own_scripts_and_styles_run_and_nothing_else() -> None:
    page = parsed(report())
    (policy,) = page.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    def hashes(texts: list[str]) -> str:
        return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)

    assert rules == {
        "default-src": "'none'",
        "script-src": hashes(page.xpath("//script[not(@type)]/text()")),
        "style-src": hashes(page.xpath("//style/text()")),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_policy_comes_before_all_that_it_rules() -> None:
    text = document(report())
    assert text.startswith("<!DOCTYPE html>\n")
    assert text.index("Content-Security-Policy") < text.index("<style>")


@pytest.mark.parametrize("nasty", NASTY)
def test_embedded_data_cannot_end_its_script_and_means_the_same(nasty: str) -> None:
    made = str(embedded({"text": nasty, "more": "</script><!--\u2028"}))
    assert not re.search("[<>&\u2028\u2029]", made)
    assert json.loads(made) == {"text": nasty, "more": "</script><!--\u2028"}


def test_no_asset_can_end_its_element() -> None:
    for name in ("uplot/uPlot.iife.min.js", "tune.js"):
        assert not re.search(r"</script|<!--|\r", asset(name), re.IGNORECASE)
    for name in ("uplot/uPlot.min.css", "page.css", "tune.css"):
        assert not re.search(r"</style|\r", asset(name), re.IGNORECASE)
    assert "Permission is hereby granted" in asset("uplot/LICENSE")


def test_all_is_said_without_scripts() -> None:
    page = parsed(report())
    for each in page.xpath("//*[contains(@class, 'live')] | //script | //style"):
        each.drop_tree()
    told = " ".join(" ".join(page.itertext()).split())
    for words in (
        "It saves most of what keeps the promise.",
        "corrected for choosing among settings; upper bound 6 %",
        "ops leave as it is Too few sessions of this agent.",
        "criticalThreshold: 15,",
        "28 incidents: 7 stuck · 9 productive · 12 unknown",
        "The critical threshold alone, as a table",
        "the same choice in 82 % of 200 redraws",
        "agents/main/sessions/s-1.jsonl:14",
        "6 given labels, Cohen's kappa 0.71 (0.40 to 0.95)",
        "run aborted Nothing changed to the end of the loop",
        "Three sessions were recorded under another ruleset.",
    ):
        assert words in told


def test_figures_are_those_of_the_other_formats() -> None:
    made = report()
    page = parsed(made)
    markdown = written("markdown", made).decode().replace("\\$", "$")
    wide = " ".join(written("text", made, width=200).decode().split())
    compared = 0
    for each, plain in zip(made.whole.candidates, made.to_dict()["whole"]["candidates"], strict=True):
        if each.setting.enabled is not True:
            continue
        told = cells(
            page, ", ".join(f"{SHORT[name]} {value}" for name, value in plain["changes"].items()) or "as in force"
        )
        figures = plain["figures"]
        assert told[:3] == [str(figures[name]) for name in ("caught", "missed", "false_blocks")]
        assert told[3] == f"{figures['false_sessions']} of {figures['at_risk']}"
        assert told[9] == f"{figures['saved']['calls']:,}"
        assert told[11] == f"{figures['saved']['cache_read_tokens']:,}"
        if f"| {' | '.join(told)} |" in markdown:
            assert " ".join(told) in wide
            compared += 1
    assert compared >= 10
    data = data_of(page)
    best = data["candidates"][data["recommended"]]
    assert best["setting"] == "critical 15, breaker 20"
    assert best["cells"] == cells(page, "critical 15, breaker 20")
    assert data["curve"]["critical"] == [8, 10, 12, 15, 20, 25, 30, 40, 60]
    assert data["curve"]["saved"]["calls"] == [126, 126, 108, 90, 72, 54, 36, 18, 0]
    assert data["marks"] == {"in_force": 20, "recommended": 15}


def test_very_many_settings_are_thinned_and_counted() -> None:
    made = report()
    last = made.whole.candidates[-1]
    many = tuple(replace(last, number=number, on_front=False) for number in range(100, 3_100))
    page = parsed(replace(made, whole=replace(made.whole, candidates=made.whole.candidates + many)))
    held = len(data_of(page)["candidates"])
    assert 1_000 <= held <= 1_030
    left = re.search(r"([\d,]+) more courses of events left out; -o csv=FILE has every setting", page.text_content())
    assert left is not None
    assert int(left[1].replace(",", "")) == 3_019 - held


def _dom(path: Path, folder: Path) -> str:
    """Return the page as it is after its scripts have run."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no browser")
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--dump-dom",
    )
    process = subprocess.Popen(
        [browser, *options, f"--user-data-dir={folder / 'profile'}", path.as_uri()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("the browser does not answer on this machine")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return out


def test_the_curves_are_drawn_in_a_browser_under_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(document(report()), encoding="utf-8")
    page = html.document_fromstring(_dom(path, tmp_path))
    for name in ("rate", "caught", "saved", "warnings", "front"):
        assert page.xpath(f"//div[@id='{name}']//canvas"), name
    assert page.get_element_by_id("which").text == "critical 15, breaker 20"
    tiles = page.xpath("//dl[@id='tiles']/div")
    assert [tile.findtext("dd") for tile in tiles] == cells(page, "critical 15, breaker 20")
    assert not page.xpath("//*[contains(@class, 'live')][@hidden]")


def test_nothing_at_all_makes_a_page_too() -> None:
    page = parsed(empty())
    assert page.xpath("//p[@class='verdict bad']/text()") == ["no recommendation"]
    assert data_of(page)["curve"]["critical"] == []
