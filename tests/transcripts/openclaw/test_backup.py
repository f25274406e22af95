"""Backups for git: rows of tables as lines, with the events that the session files give."""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from loopscan.events import Event, Problem, SessionResumed, SessionStarted, Turn
from loopscan.replayer import replay
from loopscan.transcripts.openclaw import OpenClawReader, sessions
from loopscan.transcripts.openclaw.backup import OpenClawBackupReader
from loopscan.transcripts.reader import HEAD_BYTES, Confidence, Source, recognise
from tests.transcripts.build import Transcript
from tests.transcripts.checks import account, check, of
from tests.transcripts.openclaw.databases import as_lines, name_of, problems, told, transcript
from tests.transcripts.openclaw.databases import read as read_database

RECORDED = Path(__file__).resolve().parents[3].parent / "shared" / "recorded"
NAME = "agents/writer/tables/transcript_events.jsonl"


def row(session: Any, seq: Any, event: Any, *, packed: bool = False) -> dict[str, Any]:
    """Return a row as a backup has it; ``event`` is a line of a session file."""
    made: dict[str, Any] = {"session_id": session, "seq": seq, "event_json": None, "created_at": 1}
    made |= {"event_zstd": None, "event_utf8_bytes": None, "navigation_json": None}
    if packed:
        made["event_zstd"] = {"$hex": zstandard.ZstdCompressor(level=1).compress(event).hex()}
    else:
        made["event_json"] = event.decode().rstrip("\n") if isinstance(event, bytes) else event
    return made


def rows_of(made: Transcript, packed: Iterable[int] = ()) -> list[dict[str, Any]]:
    compressed = set(packed)
    return [row(name_of(made), seq, line.strip(), packed=seq in compressed) for seq, line in enumerate(made.lines)]


def encode(rows: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in rows)


def read(data: bytes, name: str = NAME, **options: Any) -> tuple[list[Event], Source]:
    source = Source(name, lambda: io.BytesIO(data), **options)
    events = list(OpenClawBackupReader().read(source))
    check(events)
    return events, source


def counted(data: bytes, name: str = NAME, **options: Any) -> tuple[list[Event], Source]:
    """Read, and check that every line was accounted for."""
    events, source = read(data, name, **options)
    account(source)
    assert source.lines == data.count(b"\n")
    return events, source


def without_lines(found: dict[str, list[Event]]) -> dict[str, list[str]]:
    """Return events without the numbers of lines, which are those of the backup."""
    return {name: [_plain(event) for event in events] for name, events in found.items()}


def _plain(event: Event) -> str:
    return re.sub(r"\bline=\d+", "line", repr(event))


# --- the same as session files


def test_the_table_of_a_backup_gives_the_events_of_the_session_files() -> None:
    made = [transcript("a", 4), transcript("b", 2)]
    events, _ = counted(encode([*rows_of(made[0], packed=[2, 3]), *rows_of(made[1])]))
    assert told(events)["a"] == as_lines(made[0])["a"]
    assert without_lines(told(events)) == without_lines(as_lines(*made))
    assert [started.agent for started in of(SessionStarted, events)] == ["writer", "writer"]


@given(st.lists(st.integers(0, 2), max_size=40))
def test_sessions_that_take_turns_are_told_apart(turns: list[int]) -> None:
    """In any order of the sessions each gives the events that it gives alone."""
    made = [transcript("a", 4), transcript("b", 3), transcript("c", 1)]
    waiting = [rows_of(each) for each in made]
    mixed = [waiting[turn].pop(0) for turn in turns if waiting[turn]]
    events, _ = counted(encode([*mixed, *(each for rows in waiting for each in rows)]))
    assert without_lines(told(events)) == without_lines(as_lines(*made))


def test_a_session_is_resumed_by_name() -> None:
    made = [rows_of(transcript("a", 2)), rows_of(transcript("b", 2))]
    events, _ = counted(encode(each for pair in zip_longest(*made) for each in pair if each))
    assert {resumed.session for resumed in of(SessionResumed, events)} == {"a", "b"}


def test_more_sessions_than_there_is_room_for_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was silent for longest is ended."""
    monkeypatch.setattr(sessions.Sessions.__init__, "__kwdefaults__", {"most_open": 2})
    made = [rows_of(transcript(name, 1)) for name in "abc"]
    mixed = [made[0][:3], made[1], made[2], made[0][3:]]
    events, _ = counted(encode(each for rows in mixed for each in rows))
    assert [kind for _, kind in problems(events) if kind != "orphan-result"] == ["session-cut"]
    assert [started.session for started in of(SessionStarted, events)] == ["a", "b", "c", "a"]


def test_numbers_that_are_too_large_do_no_harm() -> None:
    made = transcript("a")
    rows = [{**each, "seq": {"$int": str(1 << 62)}, "created_at": {"$int": "9" * 30}} for each in rows_of(made)]
    assert told(counted(encode(rows))[0]) == as_lines(made)


# --- rows that cannot be used


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (row("a", 3, None), "malformed-row"),
        (row("a", 3, b"{broken"), "malformed-json"),
        (row("a", 3, b"[1]"), "not-an-object"),
        (row("a", 3, 7), "malformed-row"),
        ({**row("a", 3, None), "event_zstd": {"$hex": "zz"}}, "malformed-row"),
        ({**row("a", 3, None), "event_zstd": {"$hex": "00"}}, "malformed-zstd"),
        ({**row("a", 3, None), "event_zstd": {"$int": "1"}}, "malformed-row"),
        ([], "not-an-object"),
    ],
)
def test_a_row_that_cannot_be_used_is_a_problem_in_its_place(broken: Any, kind: str) -> None:
    rows: list[Any] = rows_of(transcript("a", 1))
    rows[3] = broken
    events, source = counted(encode(rows))
    assert problems(events)[0] == (4, kind)
    assert source.unusable == 1


def test_an_event_over_the_limit_is_skipped() -> None:
    made = transcript("a", 1)
    long = b'{"type":"custom","data":"%s"}' % (b"x" * 5000)
    rows = [*rows_of(made), row("a", 90, long), row("a", 91, long, packed=True)]
    events, source = counted(encode(rows), max_line=3000)
    assert [kind for _, kind in problems(events)] == ["line-too-long"] * 2
    assert source.unusable == 2


def test_rows_of_other_tables_are_passed_over() -> None:
    odd = [
        {"session_id": "a", "seq": 1, "run_id": "r", "event_json": "{}"},
        {"session_key": "k"},
        {"session_id": "a"},
    ]
    events, source = counted(encode([*rows_of(transcript("a")), *odd]))
    assert told(events) == as_lines(transcript("a"))
    assert source.unused["row"] == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
VALUES = JSON | st.sampled_from(["a", "b", "{}", '{"type":"session","id":"x"}', {"$hex": "7b7d"}, {"$int": "7"}])
COLUMNS = (
    *("session_id", "seq", "event_json", "event_zstd", "kind", "row", "sessionId", "generation"),
    *("archive_blob", "archive_name", "encoding", "run_id"),
)


@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), VALUES) | JSON, max_size=12))
def test_any_rows_are_survived(rows: list[Any]) -> None:
    data = encode(rows)
    _, source = read(data)
    assert source.lines >= len(rows)
    account(source)
    OpenClawBackupReader().recognise(data[:HEAD_BYTES], NAME)
    OpenClawBackupReader().family_in(Source(NAME, lambda: io.BytesIO(data)))


# --- what is recognised


def confidence(data: bytes) -> Confidence:
    return OpenClawBackupReader().recognise(data[:HEAD_BYTES], "x")


def test_tables_of_transcripts_are_recognised_however_long_their_first_row_is() -> None:
    assert confidence(encode(rows_of(transcript("a")))) is Confidence.SURE
    assert confidence(encode([row("a", 0, b"x" * 70_000)])) is Confidence.SURE
    assert confidence(encode([row("a", 0, b"x" * 70_000, packed=True)])) is Confidence.SURE
    assert confidence(encode([archive("a", b"x" * 70_000)])) is Confidence.SURE
    assert confidence(encode(cold("a", transcript("a")))) is Confidence.SURE


@pytest.mark.parametrize(
    "other",
    [
        {"session_id": "a", "seq": 0, "run_id": None, "event_json": "{}", "created_at": 1},
        {"session_id": "a", "session_key": "k"},
        {"session_id": "a", "event_id": "e", "seq": 1},
        {"type": "session", "id": "a", "version": 3},
        {"kind": "header"},
        {},
        [],
    ],
)
def test_other_tables_and_formats_are_not_recognised(other: Any) -> None:
    assert confidence(encode([other])) is Confidence.NO


def test_a_backup_is_no_session_file() -> None:
    reader = recognise(encode(rows_of(transcript("a"))), NAME)
    assert reader is not None
    assert reader.name == "openclaw-backup"


def test_the_family_is_all_sessions_of_the_file(tmp_path: Path) -> None:
    data = encode([row("a", 0, b"x" * 70_000), *rows_of(transcript("b")), *rows_of(transcript("c"))])
    path = tmp_path / "transcript_events.jsonl"
    path.write_bytes(data)
    reader = OpenClawBackupReader()
    assert reader.family_in(Source.of_file(path)) == {"a", "b", "c"}
    packed = Source("a.zip!x.jsonl", lambda: io.BytesIO(data))
    assert reader.family_in(packed) == {"a", "b", "c"}, "wherever it lies"
    kept = encode(cold("d", transcript("d")))
    assert reader.family_in(Source("x", lambda: io.BytesIO(kept))) == {"d"}
    assert reader.family_in(Source.of_file(tmp_path / "gone.jsonl")) == frozenset()


def sorted_keys(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True)


def spaced(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(" , ", " : "))


def escaped(value: dict[str, Any]) -> str:
    name = value["session_id"]
    return json.dumps(value).replace(f'"session_id": "{name}"', f'"session_id": "\\u{ord(name[0]):04x}{name[1:]}"')


@pytest.mark.parametrize("write", [sorted_keys, spaced, escaped])
@pytest.mark.parametrize("padding", [0, 65_400, 65_490, 65_536, 200_000])
def test_the_family_is_known_in_whatever_way_rows_are_written(
    write: Callable[[dict[str, Any]], str], padding: int
) -> None:
    """Fields may stand in any order, and what a row says of another session is of no account."""
    event = json.dumps({"session_id": "other", "text": "x" * padding})
    rows: list[dict[str, Any]] = [{"session_id": name, "seq": 0, "event_json": event} for name in ("one", "two")]
    data = "".join(write(each) + "\n" for each in rows).encode()
    assert OpenClawBackupReader().family_in(Source("x", lambda: io.BytesIO(data))) == {"one", "two"}


def test_a_backup_that_was_written_in_another_way_counts_once(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in encode(rows_of(transcript("a"))).splitlines()]
    (tmp_path / "one.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (tmp_path / "two.jsonl").write_text("".join(spaced(dict(reversed(each.items()))) + "\n" for each in rows))
    whole = replay(tmp_path / "one.jsonl").count()
    both = replay(tmp_path).count()
    assert (both.sessions, both.calls) == (whole.sessions, whole.calls) == (1, whole.calls)


# --- transcripts that are packed whole


def archive(session: str, data: bytes, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"session_id": session, "generation": "g", "session_key": f"agent:main:{session}"}
    return made | {"encoding": "identity", "archive_blob": {"$hex": data.hex()}, "archive_name": "n"} | fields


def cold(session: str, made: Transcript) -> list[dict[str, Any]]:
    events = [
        {"kind": "event", "row": {"seq": seq, "event_json": line.decode().strip(), "created_at": 1}}
        for seq, line in enumerate(made.lines)
    ]
    header = {"kind": "header", "version": 1, "sessionId": session, "generation": "g"}
    return [header, *events, {"kind": "index", "row": {"indexed_seq": 1}}]


def test_packed_transcripts_are_read() -> None:
    made = [transcript("a", 2), transcript("b", 2), transcript("c", 2)]
    packed = zstandard.compress(made[1].bytes())
    kept = archive("c", zstandard.compress(encode(cold("c", made[2]))))
    del kept["encoding"]
    moved = {**kept, "session_id": "d", "archive_blob": None}
    events, source = read(encode([archive("a", made[0].bytes()), archive("b", packed, encoding="zstd"), kept, moved]))
    account(source)
    assert problems(events) == [(4, "cold-sessions")]
    found = told(events)
    found.pop("")
    assert found == as_lines(*made)
    assert source.used["archive"] == 3


def test_a_cold_archive_is_read_as_a_file_of_its_own() -> None:
    made = transcript("a", 3)
    events, source = counted(encode(cold("a", made)), "agents/main/sessions/cold/0a.jsonl")
    assert told(events) == as_lines(made)
    assert of(SessionStarted, events)[0].agent == "main"
    assert (source.used["header"], source.unused["index"]) == (1, 1)


def test_a_cold_archive_with_damage_gives_the_rest() -> None:
    made = transcript("a", 3)
    lines: list[Any] = cold("a", made)
    lines[3] = {"kind": "event", "row": {"seq": 2, "event_json": 7}}
    lines[4] = {"kind": "event"}
    events, _ = counted(encode(lines[1:]), "agents/main/sessions/cold/0a.jsonl")
    assert [started.session for started in of(SessionStarted, events)] == ["0a"]
    assert [kind for _, kind in problems(events)][:2] == ["malformed-row", "malformed-row"]


# --- what was recorded


def databases() -> list[Path]:
    return sorted(RECORDED.glob("*/*/openclaw-agent.sqlite"))


def backup_of(path: Path) -> bytes:
    """Return the table of transcripts as a backup writes it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        database.row_factory = sqlite3.Row
        found = database.execute("SELECT * FROM transcript_events ORDER BY session_id, seq")
        return encode(
            {key: {"$hex": value.hex()} if isinstance(value, bytes) else value for key, value in dict(each).items()}
            for each in found
        )


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded sessions are not here")
@pytest.mark.parametrize("path", databases(), ids=lambda path: path.parent.name)
def test_a_backup_of_a_recorded_database_gives_the_events_of_its_session_files(path: Path) -> None:
    data = backup_of(path)
    events, _ = counted(data)
    lines: dict[str, list[Event]] = {}
    for file in path.parent.glob("sessions/*.jsonl"):
        lines |= told(OpenClawReader().read(Source.of_file(file)))
    assert told(events) == lines
    assert confidence(data) is Confidence.SURE
    assert not of(Problem, events)


# --- the fixtures


def test_the_fixture_of_a_database_and_that_of_its_backup_say_the_same() -> None:
    fixtures = Path(__file__).parents[3] / "fixtures"
    table = fixtures / "openclaw-backup/agents/clerk/tables/transcript_events.jsonl"
    database = fixtures / "openclaw-sqlite/agents/clerk/agent/openclaw-agent.sqlite"
    events, source = counted(table.read_bytes(), str(table))
    stored, other = read_database(database)
    assert without_lines(told(events)) == without_lines(told(stored))
    assert not problems(events)
    assert (source.used, source.unused) == (other.used, other.unused)
    assert [started.agent for started in of(SessionStarted, [*events, *stored])] == ["clerk"] * 4
    assert [sum(len(turn.calls) for turn in of(Turn, each)) for each in told(events).values()] == [22, 3]


@pytest.mark.parametrize("pack", ["plain", "gzip"])
def test_a_whole_backup_is_believed_before_a_database_that_was_cut_off(tmp_path: Path, pack: str) -> None:
    """Otherwise the streaks that it recorded would be cut where the database was."""
    fixtures = Path(__file__).parents[3] / "fixtures"
    (database,) = (fixtures / "openclaw-sqlite").rglob("*.sqlite")
    (backup,) = (fixtures / "openclaw-backup").rglob("transcript_events.jsonl")
    data = database.read_bytes()
    cut = data[:40960] if pack == "plain" else gzip.compress(data)[:-2000]
    (tmp_path / "a.sqlite").write_bytes(cut)
    (tmp_path / "b.jsonl").write_bytes(backup.read_bytes())
    report, whole = replay(tmp_path), replay(backup)
    assert report.count().marks == whole.count().marks
    assert (report.count().sessions, report.count().calls) == (whole.count().sessions, whole.count().calls)
    assert report.unread_count() == 1
    assert report.sources[0].copies
