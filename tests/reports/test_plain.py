"""Paths and texts of findings: clean, short, and leading to the same file."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from rfc3986_validator import validate_rfc3986

from loopscan.reports.plain import NAME, SENTENCE, lines, path, sentence, title, uri
from tests.reports.subjects import NAMED_PATHS, TEXT

KEY = "sk-test-0123456789abcdefghijABCDEFGHIJ"


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("sessions/a.jsonl", "sessions/a.jsonl"),
        ("./sessions/a b.jsonl", "sessions/a%20b.jsonl"),
        (".//a", "a"),
        ("../a.jsonl", "../a.jsonl"),
        ("-", "-"),
        ("", "."),
        ("C:x", "C%3Ax"),
        ("a%20b#c?d", "a%2520b%23c%3Fd"),
        ("night.tar.gz/ü\n.jsonl", "night.tar.gz/%C3%BC%0A.jsonl"),
        ("raw\udcff", "raw%FF"),
        ("half\ud800", "half%ED%A0%80"),
        ("/var/log/a.jsonl", "file:///var/log/a.jsonl"),
        ("//host/share", "file:///host/share"),
        ("s3://bucket/key with space", "s3://bucket/key%20with%20space"),
        ("HTTPS://example.org:8080/a", "https://example.org:8080/a"),
        ("https://[::1]:80/x", "https://%5B%3A%3A1%5D%3A80/x"),
        ("javascript://x/%0aalert(1)", "javascript%3A//x/%250aalert%281%29"),
    ],
)
def test_a_path_as_a_uri(named: str, expected: str) -> None:
    assert uri(named) == expected


@given(named=TEXT | NAMED_PATHS)
def test_any_path_is_a_uri_reference_without_spaces_or_controls(named: str) -> None:
    made = uri(named)
    assert validate_rfc3986(made, rule="URI_reference")
    assert made.isascii()
    assert made.isprintable()


def test_a_relative_path_comes_back() -> None:
    for named in ("a b/ü#?%", "raw\udcff"):
        assert unquote_to_bytes(uri(named)) == named.encode("utf-8", "surrogateescape")


def test_what_lies_in_the_working_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = str(tmp_path / "a" / "b.jsonl")
    assert (path(inside), uri(inside)) == ("a/b.jsonl", "a/b.jsonl")
    beside = f"{tmp_path}-other/b.jsonl"
    assert path(beside) == beside


def test_a_working_folder_that_is_gone_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert path("./a.jsonl") == "a.jsonl"


def test_keys_are_masked_everywhere() -> None:
    for text in (title(KEY), sentence(f"{KEY} was called"), lines(f"a\n{KEY}")[1], path(KEY), uri(f"a/{KEY}")):
        assert KEY not in text
    assert "hunter2" not in uri("https://user:hunter2hunter2@example.org/x")


def test_names_and_sentences_are_short_and_of_one_line() -> None:
    assert len(title("x" * 5000)) == NAME
    assert len(sentence("x" * 5000)) == SENTENCE
    assert sentence("a\nb") == r"a\nb"


def test_lines_stay_lines_and_are_clean() -> None:
    assert lines("a\n\n\x1b[31mb\r") == ["a", "", r"\x1b[31mb\r"]
    assert lines("") == []
