"""Profiles in files: what is saved is what is read, whatever is in it, and nothing of the content goes in."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscan.errors import InputError, LoopscanError, UsageError
from loopscan.events import AbsentCall, Outcome, SessionEvent, Turn, UserMessage
from loopscan.modes import Arm, ScopeRule
from loopscan.tuning.profiles import Basis, SessionProfile
from loopscan.tuning.store import SCHEMA, Stored, read, together, write
from tests.tuning.build import Told, productive, stuck, text
from tests.tuning.sessions import sessions

BASIS = Basis("latest")


def saved(path: Path, *profiles: SessionProfile, basis: Basis = BASIS) -> str:
    write(str(path), basis, profiles)
    return str(path)


def failure(*paths: str) -> LoopscanError:
    with pytest.raises(LoopscanError) as caught:
        read(paths)
    assert "\n" not in str(caught.value)
    return caught.value


@settings(max_examples=6)
@given(events=sessions(), scope=st.sampled_from(ScopeRule), agent=st.none() | st.text(max_size=3))
def test_what_is_saved_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, events: list[SessionEvent], scope: ScopeRule, agent: str | None
) -> None:
    path = tmp_path_factory.mktemp("profiles") / "p.parquet"
    told = Told(scope=scope, events=events, agent=agent)
    profile = told.profile()
    assert read([saved(path, profile, basis=told.basis())]) == Stored(told.basis(), [profile])


def test_odd_text_and_numbers_are_read_as_they_were(tmp_path: Path) -> None:
    told = Told("s\ud800\x00", agent="", model=None, source="\u202e.jsonl")
    told.start = float("nan")
    profile = told.call("r\ud800", times=5, run="a\ud800").end("a\ud800").profile()
    assert read([saved(tmp_path / "p.parquet", profile)]).sessions == [profile]
    assert profile.started is None


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    one, two, three = (stuck(name).profile() for name in ("one", "two", "three"))
    first, second = saved(tmp_path / "a.parquet", one, two), saved(tmp_path / "b.parquet", three)
    assert read([first, second]) == Stored(BASIS, [one, two, three])
    assert read([second, first]).sessions == [three, one, two]


def test_a_session_that_several_files_hold_counts_once(tmp_path: Path) -> None:
    one, two, three = (stuck(name).profile() for name in ("one", "two", "three"))
    first, second = saved(tmp_path / "a.parquet", one, two), saved(tmp_path / "b.parquet", two, three)
    assert read([first, second, first]) == Stored(BASIS, [one, two, three], 3)


def test_sessions_that_are_alike_within_one_file_stay_as_many_as_they_are(tmp_path: Path) -> None:
    one = stuck("one").profile()
    path = saved(tmp_path / "a.parquet", one, one)
    assert read([path]) == Stored(BASIS, [one, one])
    assert read([path, path]) == Stored(BASIS, [one, one], 2)


def test_a_file_without_sessions_is_one_of_profiles_all_the_same(tmp_path: Path) -> None:
    empty = saved(tmp_path / "a.parquet", basis=Basis("2026.6"))
    assert read([empty]).sessions == []
    full = saved(tmp_path / "b.parquet", stuck("one").profile())
    assert read([empty, full]) == Stored(BASIS, [stuck("one").profile()])


@pytest.mark.parametrize(
    "basis", [Basis("2026.6"), Basis("latest", ScopeRule.SESSION), Basis("latest", arm=Arm.NEVER)]
)
def test_profiles_that_were_not_made_alike_are_not_put_together(tmp_path: Path, basis: Basis) -> None:
    first = saved(tmp_path / "a.parquet", stuck("one").profile())
    second = saved(tmp_path / "b.parquet", stuck("two").profile(), basis=basis)
    found = failure(first, second)
    assert isinstance(found, UsageError)
    assert "a.parquet (ruleset latest, scope run, arm auto)" in str(found)
    assert f"b.parquet (ruleset {basis.ruleset}, scope {basis.scope.value}, arm {basis.arm.value})" in str(found)
    assert "make them with the same options" in str(found)


def test_rows_that_were_not_made_alike_are_no_file(tmp_path: Path) -> None:
    first = saved(tmp_path / "a.parquet", stuck("one").profile())
    second = saved(tmp_path / "b.parquet", stuck("two").profile(), basis=Basis("2026.6"))
    mixed = tmp_path / "c.parquet"
    pl.concat([pl.read_parquet(first), pl.read_parquet(second)]).write_parquet(mixed)
    found = failure(str(mixed))
    assert isinstance(found, InputError)
    assert "c.parquet: holds profiles that were not made alike; make it with loopscan tune --profiles-out" in str(
        found
    )


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "flipped"])
def test_a_damaged_file_is_named_in_one_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.parquet"
    saved(path, stuck("one").profile(), productive("two").profile())
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "text": b"no parquet at all\n",
            "cut": data[: len(data) // 2],
            "flipped": data[:-40] + bytes(byte ^ 0xFF for byte in data[-40:]),
        }[damage]
    )
    found = failure(str(path))
    assert isinstance(found, InputError)
    assert found.exit_code == 3
    assert str(found) == f"{path}: is no complete file of profiles; make it with loopscan tune --profiles-out"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert str(failure(str(tmp_path / "gone.parquet"))) == f"{tmp_path / 'gone.parquet'}: No such file or directory"


def test_parquet_of_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"sweep": [1]}).write_parquet(path)
    assert "a.parquet: is no file of profiles; make it with" in str(failure(str(path)))


def test_profiles_of_another_version_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    saved(path, stuck("one").profile())
    pl.read_parquet(path).with_columns(schema=pl.lit("loopscan.profiles/9")).write_parquet(path)
    assert f"holds profiles of another version of loopscan ({SCHEMA} is known)" in str(failure(str(path)))


@pytest.mark.parametrize(
    "change",
    [
        {"ruleset": pl.lit("2031.1")},
        {"scope": pl.lit("galaxy")},
        {"runs": pl.lit(None, pl.Int64)},
        {"calls": pl.lit("many")},
        {"session": pl.lit(None, pl.String)},
        {"run_numbers": pl.lit("[")},
        {"run_numbers": pl.lit("{}")},
        {"units": pl.lit(["{"])},
        {"units": pl.lit(["[7]"])},
        {"units": pl.lit(['[["q","r",1,null]]'])},
        {"units": pl.lit(['[["t","r",1,null]]'])},
        {"units": pl.lit(['[["u","another",1,null,0]]'])},
        {"unit_runs": pl.lit([], pl.List(pl.List(pl.String)))},
    ],
    ids=lambda change: " ".join(change),
)
def test_rows_that_make_no_sense_are_no_file_of_profiles(tmp_path: Path, change: dict[str, pl.Expr]) -> None:
    path = tmp_path / "a.parquet"
    saved(path, stuck("one").profile())
    pl.read_parquet(path).with_columns(**change).write_parquet(path)
    assert isinstance(failure(str(path)), InputError)


def test_a_missing_column_makes_no_file_of_profiles(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    saved(path, stuck("one").profile())
    pl.read_parquet(path).drop("torn").write_parquet(path)
    assert "is no complete file of profiles" in str(failure(str(path)))


SECRET = "correct-horse-battery-staple"


def test_nothing_of_the_content_is_in_the_file(tmp_path: Path) -> None:
    told = Told().user()
    for number in range(6):
        told.turn(
            (
                "exec",
                {"command": f"login {SECRET}", SECRET: number},
                text(SECRET, status="failed", aggregated=SECRET),
            ),
            ("read", {"path": [SECRET, {"of": SECRET}]}, Outcome(error=SECRET, is_error=True)),
        )
        told.call("widget", SECRET, Outcome(error=f"Unknown tool: {SECRET}", is_error=True))
        absent = AbsentCall("gone", f"Tool gone not found: {SECRET}", position=None, arguments={"a": SECRET})
        told.add(Turn("r", told.where(), (), (absent,), stored=False))
    told.add(UserMessage("r", told.where()))
    path = tmp_path / "p.parquet"
    saved(path, told.end().profile())
    frame = pl.read_parquet(path)
    assert SECRET not in "".join(map(repr, frame.to_dicts()))
    plain = tmp_path / "plain.parquet"
    frame.write_parquet(plain, compression="uncompressed", statistics=True)
    assert SECRET.encode() not in path.read_bytes() + plain.read_bytes()


@settings(max_examples=6)
@given(secret=st.text("ghijklmnop", min_size=12, max_size=20))
def test_no_text_of_arguments_results_or_prompts_is_in_the_steps(secret: str) -> None:
    told = Told().user()
    for _ in range(4):
        told.turn(("exec", {"command": secret}, text(secret, status="failed", aggregated=secret, note=secret)))
    (unit,) = told.end().profile().units
    assert secret.encode() not in unit.steps


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*No such file"):
        write(str(tmp_path / "gone" / "p.parquet"), BASIS, [stuck("one").profile()])


def test_a_session_that_several_passes_hold_counts_once_by_its_longest_record() -> None:
    short, long = stuck("one", 8).profile(), stuck("one", 12).profile()
    other = productive("two").profile()
    assert together([[short, other], [long]]) == ([other, long], 1)
    assert together([[long, other], [short]]) == ([long, other], 1)
    assert together([[long], [long], [other]]) == ([long, other], 1)
    assert together([[long, long], [other]]) == ([long, long, other], 0)  # one pass told those apart itself


def test_a_row_that_was_changed_by_hand_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    saved(path, stuck("one").profile())
    pl.read_parquet(path).with_columns(calls=pl.lit(7, pl.Int64)).write_parquet(path)
    assert "is no complete file of profiles" in str(failure(str(path)))


def test_tools_that_were_judged_as_others_are_part_of_how_profiles_were_made(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    basis = Basis("latest", tool_map=(("Bash", "exec"),))
    write(str(path), basis, [stuck("one").profile()])
    assert read([str(path)]).basis == basis
    assert str(basis) == "ruleset latest, scope run, arm auto, Bash as exec"
