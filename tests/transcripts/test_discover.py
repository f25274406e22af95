"""From paths to sources: what is found, in which order, and what is skipped with a reason."""

from __future__ import annotations

import io
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan.errors import InputError, UsageError
from loopscan.events import Event
from loopscan.transcripts.discover import discover, rank_of
from loopscan.transcripts.openclaw import OpenClawReader
from loopscan.transcripts.reader import Confidence, Source, Traits
from tests.transcripts.packs import ONLY, content, find, gz, names, reasons, session, tar, zipped, zst

SQLITE = b"SQLite format 3\0" + bytes(100)


def write(path: Path, data: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session(path.name) if data is None else data)
    return path


class Databases:
    """A reader of databases, which has something to say about families."""

    name = "databases"
    traits = Traits(rank=7)

    def recognise(self, head: bytes, name: str) -> Confidence:
        return Confidence.SURE if head.startswith(SQLITE[:16]) else Confidence.NO

    def family(self, head: bytes, name: str) -> frozenset[str]:
        return frozenset({"one", "two"})

    def read(self, source: Source) -> Iterator[Event]:
        yield from ()


BOTH: dict[str, Any] = {**ONLY, "databases": Databases()}


def test_a_folder_is_walked_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.jsonl", "a/y/x.jsonl", "c.jsonl", "a.jsonl"):
        write(tmp_path / name)
    found = find(tmp_path)
    assert names(found, tmp_path) == ["a/y/x.jsonl", "a/z.jsonl", "a.jsonl", "b.jsonl", "c.jsonl"]
    assert {each.reader for each in found.sources} == {"openclaw-jsonl"}


def test_the_order_is_that_of_the_paths_named(tmp_path: Path) -> None:
    paths = [write(tmp_path / name) for name in ("b.jsonl", "a.jsonl")]
    assert names(find(*paths), tmp_path) == ["b.jsonl", "a.jsonl"]


@pytest.mark.parametrize(
    "name",
    [
        "s.jsonl",
        "s.jsonl.reset.2026-03-22T18-18-14.056Z",
        "s.jsonl.deleted.2026-02-17T04-05-12.450Z",
        "s.jsonl.bak-123-1780000000000",
        "s.checkpoint.00000030-0000-4000-8000-000000000000.jsonl",
        "s-topic-7.jsonl",
    ],
)
def test_what_openclaw_leaves_beside_a_session_is_looked_into(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert names(find(tmp_path), tmp_path) == [name]


def test_what_is_no_session_is_skipped_with_the_reason(tmp_path: Path) -> None:
    files = {
        "empty.jsonl": (b"", "empty"),
        "blank.jsonl": (b" \n\n", "empty"),
        "sessions.json": (b"{}", "OpenClaw's index of sessions"),
        "s.jsonl.lock": (b"1", "a lock"),
        "s.trajectory-path.json": (b"{}", "names where a trajectory is"),
        "openclaw.json": (b"{}", "a configuration of OpenClaw"),
        "db.sqlite": (SQLITE, "a database of no known kind"),
        "db.sqlite-wal": (b"\x37\x7f\x06\x82" + bytes(100), "part of a database"),
        "db.sqlite-shm": (bytes(100), "part of a database"),
        "notes.md": (b"# notes\n", "of no known format"),
        "photo.jpg": (b"\xff\xd8\xff\0" + bytes(100), "binary data"),
        "s.jsonl.xz": (b"\xfd7zXZ\0\0", "packed by xz, which is not read: unpack it first"),
        "s.txt": ("\ufeff{}".encode("utf-16-le"), "text in UTF-16: convert it to UTF-8"),
        "cut.gz": (gz(session())[:9], "cannot be read: the compressed data ends in the middle"),
        "not.zip": (b"PK\x03\x04 and something else", "the archive is damaged; what follows is not read"),
    }
    for name, (data, _) in files.items():
        write(tmp_path / name, data)
    assert reasons(find(tmp_path), tmp_path) == {name: reason for name, (_, reason) in files.items()}


def test_binary_data_is_not_shown_to_the_readers_but_databases_are(tmp_path: Path) -> None:
    class Asked(Databases):
        def recognise(self, head: bytes, name: str) -> Confidence:
            asked.append(os.path.basename(name))  # noqa: PTH119
            return super().recognise(head, name)

    asked: list[str] = []
    for name, data in (("a.png", b"\x89PNG\0"), ("b.sqlite", SQLITE), ("c", b"text" * 300 + b"\0")):
        write(tmp_path / name, data)
    assert names(discover([tmp_path], among={"databases": Asked()}), tmp_path) == ["b.sqlite"]
    assert asked == ["b.sqlite", "c"]


def test_a_session_is_found_whatever_it_is_called_and_however_it_is_packed(tmp_path: Path) -> None:
    for name, data in (("a", session()), ("b.txt", gz(session())), ("c.jsonl.deleted.T.zst", zst(session()))):
        write(tmp_path / name, data)
    found = find(tmp_path)
    assert names(found, tmp_path) == ["a", "b.txt", "c.jsonl.deleted.T.zst"]
    assert {content(each) for each in found.sources} == {session()}
    assert [each.source.path is not None for each in found.sources] == [True, False, False]
    assert {content(each) for each in pickle.loads(pickle.dumps(found.sources))} == {session()}


def test_what_is_packed_and_cut_or_too_long_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = session(messages=5000)
    cut = gz(data)[:-100]
    found = find(write(tmp_path / "cut.gz", cut), write(tmp_path / "long.zst", zst(data)), max_expanded=300_000)
    for each, reason in zip(found.sources, ("ends in the middle", "300,000 bytes (--max-expanded)"), strict=True):
        read = b""
        with each.source.open() as stream:
            try:
                while piece := stream.read(1000):
                    read += piece
            except OSError as error:
                read_error = str(error)
        assert reason in read_error or "over the limit" in read_error
        assert data.startswith(read)
        assert len(read) > 200_000


def test_the_longest_line_is_passed_on(tmp_path: Path) -> None:
    paths = (
        write(tmp_path / "a.jsonl"),
        write(tmp_path / "b", gz(session())),
        write(tmp_path / "c", zipped({"x": session()})),
    )
    assert [each.source.max_line for each in find(*paths, max_line=123).sources] == [123, 123, 123]


def test_sources_tell_what_they_have_in_common_and_which_is_believed_first(tmp_path: Path) -> None:
    copies = ["s.jsonl", "s.jsonl.deleted.T", "s.jsonl.reset.T", "s.jsonl.bak-1-2", "s.checkpoint.u.jsonl"]
    for name in copies:
        write(tmp_path / name, session("s"))
    write(tmp_path / "agent.sqlite", SQLITE)
    found = {os.path.basename(each.source.name): each for each in discover([tmp_path], among=BOTH).sources}  # noqa: PTH119
    assert sorted(found, key=lambda name: found[name].rank) == [*copies, "agent.sqlite"]
    assert {found[name].family for name in copies} == {frozenset({"s"})}
    assert found["agent.sqlite"].family == {"one", "two"}
    assert rank_of(OpenClawReader(), "x.bak-1/a.tar!s.jsonl.deleted.T.zst") == rank_of(OpenClawReader(), copies[1])


def test_a_format_can_be_forced_on_all_that_is_not_plainly_something_else(tmp_path: Path) -> None:
    write(tmp_path / "a.log", b"no session\n")
    write(tmp_path / "b.sqlite", SQLITE)
    write(tmp_path / "sessions.json", b"{}")
    found = discover([tmp_path], among=BOTH, input_format="openclaw-jsonl")
    assert names(found, tmp_path) == ["a.log"]
    assert set(reasons(found, tmp_path)) == {"b.sqlite", "sessions.json"}
    named = discover([tmp_path / "sessions.json", tmp_path / "b.sqlite"], among=BOTH, input_format="openclaw-jsonl")
    assert [each.reader for each in named.sources] == ["openclaw-jsonl"] * 2
    with pytest.raises(UsageError, match='there is no format "excel"; known: openclaw-jsonl, databases'):
        discover([tmp_path], among=BOTH, input_format="excel")


def test_a_named_file_needs_no_telling_name_but_a_known_format(tmp_path: Path) -> None:
    assert names(find(write(tmp_path / "session.txt")), tmp_path) == ["session.txt"]
    with pytest.raises(InputError, match=r"notes\.jsonl: of no known format \(known: openclaw-jsonl"):
        find(write(tmp_path / "notes.jsonl", b"# notes\n"))
    with pytest.raises(InputError, match="empty"):
        find(write(tmp_path / "none.jsonl", b"\n"))


@pytest.mark.parametrize("name", ["gone.jsonl", "gone/", "with\0nul"])
def test_a_missing_path_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        find(tmp_path / name)


def test_an_empty_path_is_not_the_working_directory() -> None:
    with pytest.raises(InputError, match="an empty path is no file or folder"):
        find("")


def test_errors_can_be_collected(tmp_path: Path) -> None:
    errors: list[InputError] = []
    found = find(tmp_path / "gone", write(tmp_path / "a.jsonl"), on_error=errors.append)
    assert len(errors) == 1
    assert names(found, tmp_path) == ["a.jsonl"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").hardlink_to(path)
    found = find(path, tmp_path, tmp_path)
    assert names(found, tmp_path) == ["a.jsonl"]
    assert set(reasons(found, tmp_path)) == {"a.jsonl", "b.jsonl"}


def test_links_in_a_folder_are_not_followed_and_cannot_loop(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/o.jsonl")
    inside = tmp_path / "inside"
    write(inside / "a.jsonl")
    (inside / "loop").symlink_to(inside, target_is_directory=True)
    (inside / "out").symlink_to(outside.parent, target_is_directory=True)
    (inside / "o.jsonl").symlink_to(outside)
    (inside / "broken.jsonl").symlink_to(tmp_path / "gone")
    found = find(inside)
    assert names(found, inside) == ["a.jsonl"]
    assert set(reasons(found, inside)) == {"loop", "out", "o.jsonl", "broken.jsonl"}


def test_a_named_link_is_followed(tmp_path: Path) -> None:
    write(tmp_path / "real/a.jsonl")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert names(find(tmp_path / "link"), tmp_path) == ["link/a.jsonl"]
    (tmp_path / "self").symlink_to(tmp_path / "self")
    with pytest.raises(InputError, match="self: cannot be read"):
        find(tmp_path / "self")


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may read everything")
def test_what_may_not_be_read_is_skipped_in_a_folder_and_an_error_if_named(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl").chmod(0)
    (tmp_path / "b").mkdir(mode=0)
    assert reasons(find(tmp_path), tmp_path) == {
        "a.jsonl": "cannot be read: Permission denied",
        "b": "cannot be read: Permission denied",
    }
    for name in ("a.jsonl", "b"):
        with pytest.raises(InputError, match="Permission denied"):
            find(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_and_sockets_in_a_folder_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        assert reasons(find(tmp_path), tmp_path) == {
            "pipe.jsonl": "not a regular file",
            "socket": "not a regular file",
        }
        with pytest.raises(InputError, match="socket: not a regular file"):
            find("socket")
    with pytest.raises(InputError, match="/dev/null: not a regular file"):
        find("/dev/null")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("pack", [bytes, gz, lambda data: gz(tar({"a.jsonl": data, "b.jsonl": data}))])
def test_a_named_pipe_is_read_once(tmp_path: Path, pack: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = session(messages=3000)
    writer = threading.Thread(target=pipe.write_bytes, args=[pack(data)])
    writer.start()
    found = find(pipe).sources
    assert all(each.here for each in found)
    assert {content(each) for each in found} == {data}
    writer.join()


@pytest.mark.parametrize("pack", [bytes, gz, zst], ids=["plain", "gzip", "zstd"])
def test_standard_input_is_a_stream_that_is_read_once(pack: Any) -> None:
    data = session(messages=3000)
    stream = io.BytesIO(pack(data))
    found = find("-", stdin=stream)
    (each,) = found.sources
    assert (each.source.name, each.here, each.source.path) == ("<stdin>", True, None)
    assert content(each) == data
    assert not stream.closed
    with pytest.raises(InputError, match="cannot read <stdin>: it can be read only once"):
        each.source.open()


def test_standard_input_is_read_no_further_than_is_needed_to_recognise_it() -> None:
    stream = io.BytesIO(session(messages=3000))
    find("-", stdin=stream)
    assert stream.tell() == 1 << 16


class Backups(Databases):
    """A reader that reads a source as a whole to know whose entries are in it."""

    name = "backups"

    def recognise(self, head: bytes, name: str) -> Confidence:
        return Confidence.SURE

    def family_in(self, source: Source) -> frozenset[str]:
        with source.open() as stream:
            return frozenset(stream.read().decode().split())


@pytest.mark.parametrize("pack", [bytes, gz, lambda data: tar({"x": data}), lambda data: gz(zipped({"x": data}))])
def test_standard_input_beside_others_is_read_as_a_whole_to_know_what_it_has_in_common(
    tmp_path: Path, pack: Any
) -> None:
    data = b"a " * 100_000 + b"b"
    other = write(tmp_path / "b", b"b c")
    found = discover(["-", other], among={"backups": Backups()}, stdin=io.BytesIO(pack(data))).sources
    assert [(each.family, each.here) for each in found] == [({"a", "b"}, True), ({"b", "c"}, False)]
    assert content(found[0]) == data
    errors: list[InputError] = []
    discover(
        ["-", other],
        among={"backups": Backups()},
        stdin=io.BytesIO(pack(data)),
        max_expanded=9,
        on_error=errors.append,
    )
    assert "over the limit of 9 bytes" in str(errors[0])


def test_standard_input_alone_is_not_kept() -> None:
    stream = io.BytesIO(b"a " * 100_000)
    (each,) = discover(["-"], among={"backups": Backups()}, stdin=stream).sources
    assert each.family == {"one", "two"}, "what its head tells"
    assert stream.tell() < 100_000


@pytest.mark.parametrize("pack", [tar, zipped, lambda members: gz(tar(members)), lambda members: gz(zipped(members))])
def test_an_archive_on_standard_input_is_kept_and_its_members_read(pack: Any) -> None:
    members = {"b.jsonl": session("b"), "a.jsonl": session("a", 3000)}
    found = find("-", stdin=io.BytesIO(pack(members)))
    assert names(found) == ["<stdin>!b.jsonl", "<stdin>!a.jsonl"]
    assert all(each.here for each in found.sources)
    for _ in range(2):
        assert [content(each) for each in found.sources] == list(members.values())
    with pytest.raises(InputError, match="over the limit of 100 bytes"):
        find("-", stdin=io.BytesIO(pack(members)), max_expanded=100)


def test_standard_input_cannot_be_named_twice_or_be_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="standard input can be read only once"):
        find("-", "-", stdin=io.BytesIO(session()))
    with pytest.raises(UsageError, match="standard input can be read only once"):
        find("@-", stdin=io.BytesIO(b"-\n"))
    with pytest.raises(InputError, match="<stdin>: of no known format"):
        find("-", stdin=io.BytesIO(b"text"))
    with pytest.raises(InputError, match="<stdin>: empty"):
        find("-", stdin=io.BytesIO())
    monkeypatch.setattr(sys, "stdin", None)
    for name in ("-", "@-"):
        with pytest.raises(InputError, match="standard input is closed"):
            find(name)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "-")
    assert names(find("./-")) == ["-"]


def test_the_standard_input_of_the_process_is_meant() -> None:
    script = "import tests.transcripts.packs as p; print(len(p.content(p.find('-').sources[0])))"
    data = session(messages=3000)
    ran = subprocess.run([sys.executable, "-c", script], input=gz(data), capture_output=True, check=True)
    assert int(ran.stdout) == len(data)


def test_patterns_are_expanded_where_no_file_has_that_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "x/c.jsonl", "x/y/d.jsonl", "x/.hidden/e.jsonl", "f[1].jsonl", "f1.jsonl"):
        write(tmp_path / name)
    write(tmp_path / "x/notes.md", b"# notes")
    (tmp_path / "x/loop").symlink_to(tmp_path)

    def met(pattern: str) -> list[str]:
        return names(find(f"{tmp_path}/{pattern}"), tmp_path)

    assert met("?.jsonl") == ["a.jsonl", "b.jsonl"]
    assert met("[!a].jsonl") == ["b.jsonl"]
    assert met("**/[cd].jsonl") == ["x/c.jsonl", "x/y/d.jsonl"]
    assert met("x/**/*.jsonl") == ["x/c.jsonl", "x/y/d.jsonl"]
    assert met("x/.*/*") == ["x/.hidden/e.jsonl"]
    assert met("x/*/d.jsonl") == ["x/y/d.jsonl"]
    assert met("f[1].jsonl") == ["f[1].jsonl"]
    assert met("x/**") == ["x/.hidden/e.jsonl", "x/c.jsonl", "x/y/d.jsonl"]
    assert reasons(find(f"{tmp_path}/x/n*"), tmp_path) == {"x/notes.md": "of no known format"}
    with pytest.raises(InputError, match="no file or folder meets this pattern"):
        met("*.nothing")
    with pytest.raises(InputError, match="no such file or folder"):
        find(Path(tmp_path / "?.jsonl"))


def test_lists_name_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "sub/b.jsonl", " c .jsonl", "@d.jsonl", "line\nbreak.jsonl"):
        write(tmp_path / name)
    write(tmp_path / "sub/list", b"\xef\xbb\xbfsub/b.jsonl\r\n\n  \n@inner\n*a.jsonl\n./@d.jsonl")
    write(tmp_path / "inner", b" c .jsonl\n")
    assert names(find("@sub/list")) == ["sub/b.jsonl", " c .jsonl", "a.jsonl", "@d.jsonl"]
    write(tmp_path / "parted", b"line\nbreak.jsonl\0a.jsonl\0")
    assert names(find("@parted")) == ["line\nbreak.jsonl", "a.jsonl"]
    assert names(find("@-", stdin=io.BytesIO(b"sub\n"))) == ["sub/b.jsonl"]


def test_what_is_wrong_in_a_list_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl")
    write(tmp_path / "list", b"a.jsonl\n\ngone.jsonl\n@none\na.jsonl\n")
    errors: list[InputError] = []
    found = find("@list", "@nowhere", "gone", on_error=errors.append)
    assert names(found) == ["a.jsonl"]
    assert [str(error) for error in errors] == [
        "gone.jsonl: no such file or folder (line 3 of list)",
        "none: no such list of paths (a file named like that: ./@none) (line 4 of list)",
        "nowhere: no such list of paths (a file named like that: ./@nowhere)",
        "gone: no such file or folder",
    ]
    write(tmp_path / "circle", b"@circle\n")
    with pytest.raises(InputError, match="lists name lists more than 5 deep"):
        find("@circle")
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="sub: cannot be read: Is a directory"):
        find("@sub")


def test_what_goes_away_while_one_looks_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.jsonl")
    write(tmp_path / "b.jsonl")
    real = os.open

    def gone(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith("a.jsonl"):
            raise FileNotFoundError(2, "gone")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", gone)
    found = find(tmp_path)
    assert names(found, tmp_path) == ["b.jsonl"]
    assert reasons(found, tmp_path) == {"a.jsonl": "no such file or folder"}


def test_each_file_is_opened_once_and_read_no_further_than_its_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write(tmp_path / f"{number}.bin", os.urandom(300_000))
    read: list[int] = []
    opened: list[str] = []

    class Counted(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size) or b""
            read.append(len(data))
            return data

    real = os.open
    monkeypatch.setattr(io, "FileIO", Counted)
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **options: (opened.append(path), real(path, *rest, **options))[1]
    )
    find(tmp_path)
    assert len(opened) == 20
    assert sum(read) <= 20 * (1 << 16)


NAMES = st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda name: name.strip(".") != ""
)
FILES = st.one_of(
    st.binary(max_size=600),
    st.sampled_from(
        [session(), gz(session()), zst(session()), tar({"x": session()}), zipped({"y": session()}), SQLITE]
    ),
    st.tuples(st.sampled_from([gz(session()), zst(session()), zipped({"y": session()})]), st.integers(1, 300)).map(
        lambda pair: pair[0][: pair[1]]
    ),
    st.sampled_from(["link", "broken", "loop", "pipe", "folder"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(tree=st.dictionaries(NAMES, FILES, max_size=6))
def test_hostile_trees_raise_nothing_and_are_found_alike_each_time(
    tmp_path_factory: Any, tree: dict[str, Any]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    write(root / "good.jsonl")
    for name, what in tree.items():
        path = root / os.fsdecode(name.encode("utf-8", "surrogatepass"))
        if os.path.lexists(path):
            continue
        if isinstance(what, bytes):
            path.write_bytes(what)
        elif what == "pipe":
            os.mkfifo(path)
        elif what == "folder":
            path.mkdir()
        else:
            path.symlink_to({"link": root / "good.jsonl", "broken": root / "gone", "loop": root}[what])
    first, second = find(root), find(root)
    assert names(first) == names(second)
    assert first.skipped == second.skipped
    assert f"{root}/good.jsonl" in names(first)
    assert [each.family for each in first.sources] == [each.family for each in second.sources]
    looked_at = [each.source.name for each in first.sources] + [each.path for each in first.skipped]
    assert looked_at.count(f"{root}/good.jsonl") == 1
    # Each file is told of: by its own name, or by those of its members.
    files = [str(path) for path in root.iterdir() if path.is_symlink() or not path.is_dir()]
    assert [
        path for path in files if not any(each == path or each.startswith(f"{path}!") for each in looked_at)
    ] == []
