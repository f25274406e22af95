"""Dollars of responses whose cost is not on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscan.errors import UsageError
from loopscan.tuning.prices import Prices, read_prices

#: Input, output, cache read, cache write, all tokens, recorded dollars.
USED = [1_000_000, 500_000, 2_000_000, 100_000, 3_600_000, 0.0]


def prices(tmp_path: Path, text: str | bytes) -> Prices:
    path = tmp_path / "prices"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_prices(str(path))


def test_cached_input_is_priced_apart(tmp_path: Path) -> None:
    found = prices(tmp_path, '{"big": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}}')
    assert found("big", USED) == pytest.approx(3 + 7.5 + 0.6 + 0.375)


def test_a_cache_without_a_price_costs_as_much_as_input(tmp_path: Path) -> None:
    assert prices(tmp_path, '{"big": {"input": 3, "output": 15}}')("big", USED) == pytest.approx(3 + 7.5 + 6 + 0.3)


def test_recorded_dollars_win(tmp_path: Path) -> None:
    assert prices(tmp_path, '{"*": {"input": 3, "output": 15}}')("big", [*USED[:5], 0.125]) == 0.125


def test_a_model_has_its_own_price_or_that_of_the_longest_name_that_it_begins_with(tmp_path: Path) -> None:
    found = prices(tmp_path, "model,input,output\nbig,1,0\nbig-2,2,0\nbig-2-mini,3,0\n*,4,0\n")
    used = [1_000_000, 0, 0, 0, 1_000_000, 0.0]
    models = ("big", "big-1", "big-2", "big-2-0601", "big-2-mini", "bi", "", None)
    assert [found(model, used) for model in models] == [1, 1, 2, 2, 3, 4, 4, 4]
    assert found.unpriced == set()


def test_models_without_a_price_cost_nothing_and_are_remembered(tmp_path: Path) -> None:
    found = prices(tmp_path, '{"big": {"input": 3, "output": 15}}')
    assert [found("small", USED), found(None, USED)] == [0.0, 0.0]
    assert found.unpriced == {"small", ""}


def test_csv_may_begin_with_a_byte_order_mark_and_have_gaps(tmp_path: Path) -> None:
    found = prices(tmp_path, "\ufeffmodel,input,output,cache_read,cache_write\nbig,3,15,0.3,\n")
    assert found.table == {"big": [3.0, 15.0, 0.3, 3.0]}


def test_json_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert prices(tmp_path, '\ufeff{"big": {"input": 3, "output": 15}}').table == {"big": [3.0, 15.0, 3.0, 3.0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no column model"),
        ("{", "is neither JSON nor CSV of prices"),
        ("{}", "names no model"),
        ("model,input,output\n", "names no model"),
        ("name,input\nbig,3\n", "there is no column model"),
        (b"\xff\xfe", "is neither JSON nor CSV of prices"),
        ('{"big": 3}', "big: input must be dollars per million tokens"),
        ('{"big": {"input": 3}}', "big: output must be dollars per million tokens"),
        ('{"big": {"input": -3, "output": 1}}', "big: input must be"),
        ('{"big": {"input": true, "output": 1}}', "big: input must be"),
        ('{"big": {"input": "x", "output": 1}}', "big: input must be"),
        ("model,input,output\nbig,nan,1\n", "big: input must be"),
        ("model,input,output\nbig,inf,1\n", "big: input must be"),
        ("model,input,output\n,1,1\n", "line 2 names no model"),
        ("model,input,output\nbig,1,1\nbig,2,2\n", "line 3 names big twice"),
        ("model,input,output\nbig,1,1,7,8\n", ""),
        ("model,input,output\n\x1b[31m,x,1\n", "input must be"),
    ],
)
def test_what_is_no_price_is_told_in_one_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    if not message:
        assert prices(tmp_path, text).table == {"big": [1.0] * 4}
        return
    with pytest.raises(UsageError) as caught:
        prices(tmp_path, text)
    assert str(caught.value).startswith(f"--prices {tmp_path / 'prices'}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--prices .*gone: No such file or directory"):
        read_prices(str(tmp_path / "gone"))
