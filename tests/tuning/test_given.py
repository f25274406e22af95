"""Labels that people give: by incident, run or session, in CSV or JSON lines, and what of them is used."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from loopscan.errors import UsageError
from loopscan.sanitize import clean
from loopscan.tuning.given import GivenLabels, name_of, read_labels
from loopscan.tuning.labels import Label
from tests.tuning.build import Told

STUCK, PRODUCTIVE, UNKNOWN = Label.STUCK, Label.PRODUCTIVE, Label.UNKNOWN


def given(tmp_path: Path, text: str | bytes) -> GivenLabels:
    path = tmp_path / "labels"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_labels(str(path))


def told() -> Told:
    """Return a session with two runs, each with two incidents."""
    made = Told("s1")
    for run in ("a", "b"):
        made.call(times=5, run=run).call("list", "dir", "files", times=5, run=run).done(run)
    return made


def labelled(labels: GivenLabels) -> list[Label | None]:
    """Return the given label of each incident."""
    profile = told().profile()
    found = told().incidents().incidents
    assert [name_of(profile, each) for each in found] == ["s1/0/0", "s1/0/5", "s1/1/0", "s1/1/5"]
    return [labels(profile, 0, each) for each in found]


CSV = """incident,session,run,label
s1/0/5,,,unknown
,s1,0,productive
,s1,,stuck
,s2,,stuck
,s1,,
"""
JSONL = """{"incident": "s1/0/5", "label": "unknown"}
{"session": "s1", "run": 0, "label": "PRODUCTIVE", "remark": "looks fine"}

{"session": "s1", "label": " stuck "}
{"session": "s2", "label": "stuck"}
{"session": "s1", "label": null}
"""


@pytest.mark.parametrize("text", [CSV, "\ufeff" + CSV, CSV.replace("\n", "\r\n"), JSONL, "\ufeff\n" + JSONL])
def test_the_closest_label_counts(tmp_path: Path, text: str) -> None:
    labels = given(tmp_path, text)
    assert labelled(labels) == [PRODUCTIVE, UNKNOWN, STUCK, STUCK]
    assert labels.unmatched == 1


def test_without_a_label_there_is_none(tmp_path: Path) -> None:
    labels = given(tmp_path, "session,run,label\ns1,1,stuck\n")
    assert labelled(labels) == [None, None, STUCK, STUCK]


def test_a_label_that_a_closer_one_hides_everywhere_is_of_something_that_is_here(tmp_path: Path) -> None:
    labels = given(tmp_path, "session,run,label\ns1,0,stuck\ns1,1,stuck\ns1,,productive\n")
    assert labelled(labels) == [STUCK] * 4
    assert labels.unmatched == 0


def test_cells_that_were_made_safe_for_spreadsheets_are_read_as_they_were(tmp_path: Path) -> None:
    labels = given(tmp_path, "incident,label\n'=1+1/0/0,stuck\n'quoted'/0/0,productive\n")
    assert labels.incidents == {"=1+1/0/0": STUCK, "'quoted'/0/0": PRODUCTIVE}


def test_session_names_that_are_numbers_are_names(tmp_path: Path) -> None:
    assert given(tmp_path, '{"session": 17, "run": 2, "label": "stuck"}\n').runs == {("17", 2): STUCK}
    assert given(tmp_path, '{"session": 17.0, "label": "stuck"}\n').sessions == {"17.0": STUCK}


@pytest.mark.parametrize("ending", ["\x85", "\u2028", "\x0c"])
def test_odd_line_breaks_in_a_name_end_no_line(tmp_path: Path, ending: str) -> None:
    text = f'{{"session": "a{ending}b", "label": "stuck"}}\n'.replace("\x0c", "\\f")
    assert given(tmp_path, text).sessions == {clean(f"a{ending}b"): STUCK}
    assert given(tmp_path, f"session,label\na{ending}b,stuck\n").sessions == {clean(f"a{ending}b"): STUCK}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "there is no column label; needed: label, and incident or session"),
        ("session\ns1\n", 1, "there is no column label"),
        ("session,label\ns1,stuck\ns2,broken\n", 3, "label must be stuck, productive or unknown, not 'broken'"),
        ("session,label\n,stuck\n", 2, "names neither an incident nor a session"),
        ("run,label\n0,stuck\n", 2, "names neither an incident nor a session"),
        ("session,run,label\ns1,first,stuck\n", 2, "run must be its number, counted from 0, not 'first'"),
        ("session,run,label\ns1,-1,stuck\n", 2, "run must be its number"),
        ("session,run,label\ns1,²,stuck\n", 2, "run must be its number"),
        ("session,run,label\ns1," + "9" * 5000 + ",stuck\n", 2, "run must be its number"),
        ('{"session": "s1", "label": "stuck"}\n{"session"\n', 2, "is no JSON"),
        ('{"session": "s1", "label": "stuck"}\n[1]\n', 2, "must be an object with session or incident, and label"),
        ('{"session": "s1", "run": 1.5, "label": "stuck"}\n', 1, "run must be its number"),
        ('{"session": "s1", "label": "\\u001b[31m"}\n', 1, "label must be stuck"),
        ('session,label\n"' + "s" * 200_000 + '",stuck\n', 2, "field larger than field limit"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        given(tmp_path, text)
    assert str(caught.value).startswith(f"--labels {tmp_path / 'labels'}:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--labels .*gone: No such file or directory"):
        read_labels(str(tmp_path / "gone"))
    with pytest.raises(UsageError, match=r"--labels .*labels: is no text in UTF-8"):
        given(tmp_path, b"session,label\n\xff,stuck\n")


def test_incidents_that_were_not_stored_are_named_by_the_message_before_which_they_came() -> None:
    made = Told("s1").call()
    for _ in range(5):
        made.absent("gone")
    found = made.end()
    assert name_of(found.profile(), found.incident()) == "s1/0/batch-1"


def test_parquet_that_is_cut_off_or_lacks_labels_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--labels .*labels: is no complete parquet file"):
        given(tmp_path, b"PAR1 and no more")
    pl.DataFrame({"session": ["s1"]}).write_parquet(tmp_path / "p")
    with pytest.raises(UsageError, match=r"--labels .*p:1: there is no column label"):
        read_labels(str(tmp_path / "p"))


def test_a_bad_label_in_parquet_is_told_with_its_row(tmp_path: Path) -> None:
    pl.DataFrame({"session": ["s1", "s2"], "label": ["stuck", "bad"]}).write_parquet(tmp_path / "p")
    with pytest.raises(UsageError, match=r"--labels .*p:2: label must be stuck, productive or unknown, not 'bad'"):
        read_labels(str(tmp_path / "p"))
