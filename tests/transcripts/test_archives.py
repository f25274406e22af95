"""Archives: every member is a source by its name, nothing is extracted, and reading all of them costs one pass."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopscan.errors import InputError
from loopscan.transcripts import places
from loopscan.transcripts.archives import EndlessError, kind_of, tar_members, zip_members
from loopscan.transcripts.places import Expand, LocalFile, Place, Slice, close_shared, open_place
from loopscan.transcripts.streams import Meter, read_head
from tests.transcripts.packs import content, find, gz, names, reasons, session, tar, zipped, zst

FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "a.tar": tar,
    "a.tar.gz": lambda members: gz(tar(members)),
    "a.tar.zst": lambda members: zst(tar(members)),
    "a.zip": zipped,
    "stored.zip": lambda members: zipped(members, zipfile.ZIP_STORED),
    "a.zip.gz": lambda members: gz(zipped(members)),
}
SESSIONS = {f"agents/main/sessions/{name}.jsonl": session(name) for name in "bca"}


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Any:
    yield
    close_shared()


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", PACKERS)
def test_each_member_is_a_source_whatever_the_archive_is_called(tmp_path: Path, name: str) -> None:
    members = {**SESSIONS, "notes.txt": b"no transcript", "photo.png": b"\x89PNG\0" + bytes(200_000), "none": b""}
    path = put(tmp_path, "backup", PACKERS[name](members))
    found = find(path)
    assert names(found, tmp_path) == [f"backup!{each}" for each in SESSIONS]
    assert [content(each) for each in found.sources] == list(SESSIONS.values())
    assert reasons(found, tmp_path) == {
        "backup!notes.txt": "of no known format",
        "backup!photo.png": "binary data",
        "backup!none": "empty",
    }


@pytest.mark.parametrize("name", PACKERS)
def test_members_can_be_read_in_any_order_more_than_once_and_elsewhere(tmp_path: Path, name: str) -> None:
    found = find(put(tmp_path, name, PACKERS[name](SESSIONS))).sources
    order = [2, 0, 1, 1, 0, 2]
    wanted = [list(SESSIONS.values())[at] for at in order]
    assert [content(found[at]) for at in order] == wanted
    assert [content(pickle.loads(pickle.dumps(found[at]))) for at in order] == wanted
    streams = [found[at].source.open() for at in order]
    read = [b"" for _ in streams]
    for _ in range(2000):
        for at, stream in enumerate(streams):
            read[at] += stream.read(100)
    for stream in streams:
        stream.close()
    assert read == wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_does_not_disturb_the_process_it_comes_from(tmp_path: Path) -> None:
    big = {name: session(name, 2000) for name in ("one", "two")}
    one, two = find(put(tmp_path, "a.tar.gz", gz(tar(big)))).sources
    with one.source.open() as stream:
        begun = stream.read(1000)
        child = os.fork()
        if not child:
            os._exit(content(two) != big["two"])
        assert os.waitpid(child, 0)[1] == 0
        assert begun + b"".join(iter(lambda: stream.read(9999), b"")) == big["one"]


@pytest.mark.parametrize("form", FORMS)
def test_long_and_strange_names_are_names_and_no_more(tmp_path: Path, form: str) -> None:
    strange = [
        "../../etc/x.jsonl",
        "/root/x.jsonl",
        "a\nb\x1b[31m.jsonl",
        "ü/" * 30 + "é.jsonl",
        "x" * 90 + "/" + "y" * 90 + ".jsonl",
    ]
    if form != "ustar":
        strange += ["z" * 400 + ".jsonl", "\udcff.jsonl"]
    path = put(tmp_path, "a.tar", tar({name: session() for name in strange}, FORMS[form]))
    before = set(tmp_path.rglob("*"))
    found = find(path)
    assert names(found, tmp_path) == [f"a.tar!{name}" for name in strange]
    assert {content(each) for each in found.sources} == {session()}
    assert set(tmp_path.rglob("*")) == before


def test_members_of_one_name_are_told_apart(tmp_path: Path) -> None:
    twice = [("s.jsonl", session("old")), ("s.jsonl", session("new"))]
    found = find(put(tmp_path, "a.tar", tar(twice)))
    assert names(found, tmp_path) == ["a.tar!s.jsonl", "a.tar!s.jsonl (2)"]
    assert [content(each) for each in found.sources] == [data for _, data in twice]


def test_what_is_packed_in_an_archive_is_unpacked_to_a_depth(tmp_path: Path) -> None:
    inner = gz(tar({"s.jsonl": session()}))
    members = {
        "s.jsonl.gz": gz(session()),
        "t.jsonl.zst": zst(session()),
        "u.tar": tar({"deep.jsonl": session(), "deep.jsonl.gz": gz(session())}),
        "v.tgz": inner,
        "w.zip": zipped({"s.jsonl": session(), "s.gz": gz(session())}),
        "x.tar": tar({"v.tgz": inner}),
    }
    expected = ["s.jsonl.gz", "t.jsonl.zst", "u.tar!deep.jsonl", "u.tar!deep.jsonl.gz", "v.tgz!s.jsonl"]
    expected += ["w.zip!s.jsonl", "w.zip!s.gz"]
    for name, pack in (("a.tar", tar), ("a.zip", zipped)):
        found = find(put(tmp_path, name, pack(members)))
        assert names(found, tmp_path) == [f"{name}!{each}" for each in expected]
        assert {content(each) for each in found.sources} == {session()}
        assert reasons(found, tmp_path) == {f"{name}!x.tar!v.tgz": "packed more than 3 times"}
    matryoshka = session()
    for _ in range(5):
        matryoshka = gz(matryoshka)
    with pytest.raises(InputError, match="packed more than 3 times"):
        find(put(tmp_path, "m.gz", matryoshka))


def test_links_and_devices_are_no_files(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, kind in (("sym", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("pipe", tarfile.FIFOTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        info = tarfile.TarInfo("s.jsonl")
        info.size = len(session())
        archive.addfile(info, io.BytesIO(session()))
    found = find(put(tmp_path, "a.tar", made.getvalue()))
    assert names(found, tmp_path) == ["a.tar!s.jsonl"]
    assert reasons(found, tmp_path) == {
        "a.tar!sym": "a link in an archive",
        "a.tar!hard": "a link in an archive",
        "a.tar!pipe": "not a regular file",
    }


def test_links_encrypted_and_unknown_members_of_a_zip_are_skipped(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.mkdir("folder") if hasattr(archive, "mkdir") else archive.writestr("folder/", "")
        archive.writestr("x.jsonl", session(), zipfile.ZIP_BZIP2)
        archive.writestr("s.jsonl", session())
        archive.writestr("secret.jsonl", session())
    data = bytearray(made.getvalue())
    for magic, flag in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        data[data.rindex(magic) + flag] |= 1
    found = find(put(tmp_path, "a.zip", bytes(data)))
    assert names(found, tmp_path) == ["a.zip!s.jsonl"]
    assert reasons(found, tmp_path) == {
        "a.zip!link": "a link in an archive",
        "a.zip!x.jsonl": "packed by method 12, which is not read",
        "a.zip!secret.jsonl": "encrypted",
    }


def test_sparse_members_are_skipped_and_the_next_one_is_found(tmp_path: Path) -> None:
    plain = tarfile.TarInfo("s.jsonl")
    plain.size = len(session())
    padded = session() + bytes(-len(session()) % 512)
    header = bytearray(tarfile.TarInfo("old-sparse").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    header[482] = 1
    header[124:136] = b"%011o\0" % 512
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    new = tarfile.TarInfo("new-sparse")
    new.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.name": "x"}
    data = bytes(header) + bytes(512) + b"d" * 512 + new.tobuf(tarfile.PAX_FORMAT) + plain.tobuf() + padded
    found = find(put(tmp_path, "a.tar", data + bytes(1024)))
    assert names(found, tmp_path) == ["a.tar!s.jsonl"]
    assert content(found.sources[0]) == session()
    assert set(reasons(found, tmp_path).values()) == {"a sparse file in an archive"}
    assert len(found.skipped) == 2


def test_tars_one_after_the_other_are_all_read(tmp_path: Path) -> None:
    both = tar({"a.jsonl": session("a")}) + tar({"b.jsonl": session("b")})
    found = find(put(tmp_path, "a.tar", both + b"junk" * 999))
    assert names(found, tmp_path) == ["a.tar!a.jsonl", "a.tar!b.jsonl"]
    assert not found.skipped


def test_a_tar_without_an_end_says_so_and_is_read(tmp_path: Path) -> None:
    whole = tar({"a.jsonl": session()})
    found = find(put(tmp_path, "a.tar", whole[: 512 + -(-len(session()) // 512) * 512]))
    assert names(found, tmp_path) == ["a.tar!a.jsonl"]
    assert reasons(found, tmp_path) == {"a.tar": "the archive has no end: more may have followed"}


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.zst"])
def test_what_stands_before_the_damage_is_found_and_the_damage_is_told(tmp_path: Path, name: str) -> None:
    members = {f"{number}.jsonl": session(str(number)) + os.urandom(100_000).hex().encode() for number in range(6)}
    whole = PACKERS[name](members)
    path = put(tmp_path, name, whole[: len(whole) * 2 // 3])
    errors: list[InputError] = []
    found = find(path, on_error=errors.append)
    assert 2 <= len(found.sources) < 6
    assert [content(each) for each in found.sources[:2]] == list(members.values())[:2]
    assert len(errors) == 1
    assert "ends in the middle; what follows is not read" in str(errors[0])
    folder = find(tmp_path)  # not named itself: skipped, but for what is in it
    assert names(folder) == names(found)
    assert "ends in the middle" in reasons(folder, tmp_path)[name]


def test_a_damaged_member_of_a_zip_says_so_when_it_is_read(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.jsonl": session(messages=3)}, zipfile.ZIP_STORED))
    data[data.index(b"question 2")] ^= 1
    (found,) = find(put(tmp_path, "a.zip", bytes(data))).sources
    with found.source.open() as stream:
        assert len(stream.read(1 << 20)) == len(session(messages=3))
        with pytest.raises(OSError, match="the compressed data is damaged"):
            stream.read(1)


@pytest.mark.parametrize("damage", ["cut", "list", "header"])
def test_a_zip_whose_list_is_damaged_is_an_error(tmp_path: Path, damage: str) -> None:
    data = bytearray(zipped(SESSIONS))
    if damage == "cut":
        del data[-40:]
    elif damage == "list":
        data[data.index(b"PK\x01\x02") + 3] ^= 1
    else:
        data[data.rindex(b"PK\x03\x04") + 3] ^= 1
        found = find(put(tmp_path, "a.zip", bytes(data)))
        assert len(found.sources) == 2
        assert set(reasons(found).values()) == {"the archive is damaged"}
        return
    with pytest.raises(InputError, match="the archive is damaged"):
        find(put(tmp_path, "a.zip", bytes(data)))


def test_an_archive_without_files_says_so(tmp_path: Path) -> None:
    folder = io.BytesIO()
    with tarfile.open(fileobj=folder, mode="w") as archive:
        info = tarfile.TarInfo("folder")
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
    for name, data in (("a.zip", zipped({})), ("b.tar.gz", gz(folder.getvalue()))):
        with pytest.raises(InputError, match="an archive without files"):
            find(put(tmp_path, name, data))


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.zst", "a.zip", "members.tar"])
def test_an_archive_as_a_whole_expands_to_no_more_than_the_limit(tmp_path: Path, name: str) -> None:
    members = {f"{number}.jsonl": session(str(number), 200) for number in range(5)}
    size = len(session("0", 200))
    if name == "members.tar":
        data = tar({each: gz(content) for each, content in members.items()})
    else:
        data = PACKERS[name](members)
    path = put(tmp_path, name, data)
    errors: list[InputError] = []
    found = find(path, max_expanded=size * 5 // 2, on_error=errors.append)
    assert 2 <= len(found.sources) <= 3
    assert [content(each) for each in found.sources[:2]] == list(members.values())[:2]
    assert f"over the limit of {size * 5 // 2:,} bytes (--max-expanded); what follows is not read" in str(errors[0])
    assert len(find(path, max_expanded=size * 6).sources) == 5


def test_a_member_of_a_zip_that_expands_to_more_than_it_says_is_stopped(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.jsonl": session(messages=9000)}))
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (700_000).to_bytes(4, "little")
    (found,) = find(put(tmp_path, "a.zip", bytes(data))).sources
    with found.source.open() as stream:
        read, error = read_head(stream, 1 << 30)
    assert "damaged" in str(error)
    assert len(read) <= 700_000


class Counting(LocalFile):
    """A file that counts what is read of it, and how often it is opened."""

    read = 0
    opened = 0

    def open(self, offset: int = 0, size: int | None = None) -> Any:
        class Stream(io.FileIO):
            def readinto(self, buffer: Any) -> int | None:
                got = super().readinto(buffer)
                Counting.read += got or 0
                return got

            def read(self, size: int | None = -1, /) -> bytes:
                data = super().read(size) or b""
                Counting.read += len(data)
                return data

        Counting.opened += 1
        stream = Stream(self.path)
        stream.seek(offset)
        return stream


@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_reading_all_members_of_a_packed_tar_costs_one_pass_or_two(tmp_path: Path, order: str) -> None:
    members = {f"{number:04}.jsonl": os.urandom(1000) for number in range(1000)}
    path = put(tmp_path, "a.tar.gz", gz(tar(members)))
    size = path.stat().st_size
    plain = io.BytesIO(tar(members))
    slices = [each.steps[0] for each in tar_members(plain)]
    Counting.read = Counting.opened = 0
    pairs = list(zip(slices, members.values(), strict=True))
    for part, data in pairs if order == "forwards" else reversed(pairs):
        place = Place(Counting(str(path)), (Expand("gzip"), part))
        with open_place(place, 1 << 30) as stream:
            assert read_head(stream, 5000) == (data, None)
    assert Counting.opened <= 2
    assert Counting.read <= 2 * size


@pytest.mark.parametrize("pack", [tar, zipped])
def test_a_member_of_what_is_not_packed_is_read_alone(
    tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    members = {f"{number:03}.jsonl": os.urandom(20_000) for number in range(100)}
    path = put(tmp_path, "a", pack(members))
    with path.open("rb") as file:
        found = list(tar_members(file)) if pack is tar else list(zip_members(file, Meter(1 << 30)))
        Counting.read = 0
        place = Place(Counting(str(path)), found[70].steps)
        with open_place(place, 1 << 30) as stream:
            assert read_head(stream, 50_000) == (members["070.jsonl"], None)
    assert Counting.read < 200_000


def test_few_archives_are_kept_open(tmp_path: Path) -> None:
    paths = [put(tmp_path, f"{number}.tar.gz", gz(tar(SESSIONS))) for number in range(30)]
    found = find(*paths)
    assert {content(each) for each in found.sources + found.sources[::-1]} == set(SESSIONS.values())
    assert len(places._opened.streams) <= 8


def test_many_members_are_found(tmp_path: Path) -> None:
    data = tar({f"{number}.jsonl": b"no transcript" for number in range(3000)} | {"last.jsonl": session()})
    found = find(put(tmp_path, "a.tgz", gz(data)))
    assert names(found, tmp_path) == ["a.tgz!last.jsonl"]
    assert len(found.skipped) == 3000


@given(st.binary(min_size=1, max_size=2000))
def test_random_bytes_are_no_archive_or_end_in_an_error(data: bytes) -> None:
    assert kind_of(data) in (None, "tar", "zip")
    for head in (tar({"a": b"x"})[:512], b"PK\x03\x04"):
        file = io.BytesIO(head + data)
        members = tar_members(file) if head[:2] != b"PK" else zip_members(file, Meter(9))
        with contextlib.suppress(OSError):
            assert all(member.name is not None for member in members)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_archives_that_are_cut_or_damaged_anywhere_raise_nothing_and_lose_nothing_silently(
    tmp_path: Path, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(PACKERS)))
    whole = bytearray(PACKERS[name]({**SESSIONS, "more.jsonl.gz": gz(session()), "deep.tar": tar(SESSIONS)}))
    place = data.draw(st.integers(1, len(whole) - 1))
    if data.draw(st.booleans()):
        del whole[place:]
    else:
        whole[place] ^= 1 << data.draw(st.integers(0, 7))
    path = put(tmp_path, name, bytes(whole))
    errors: list[InputError] = []
    found = find(path, on_error=errors.append)
    again = find(path, on_error=errors.append)
    assert names(found) == names(again)
    assert reasons(found) == reasons(again)
    told = len(errors) + len(found.skipped)
    for each in found.sources:
        with each.source.open() as stream:
            told += read_head(stream, 1 << 20)[1] is not None
    # A plain tar has sums over its headers alone; and what is no archive any more is for the reader to complain of.
    assert told or len(found.sources) == 7 or name == "a.tar" or names(found) == [str(path)]
    close_shared()


def test_an_end_that_is_missing_is_an_error_of_its_own() -> None:
    with pytest.raises(EndlessError):
        list(tar_members(io.BytesIO(tar({"a": b"x"})[:1024])))


def test_a_slice_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path, "f", gz(b"abc"))
    for steps in ((Slice(20, 50),), (Expand("gzip"), Slice(2, 5)), (Expand("gzip"), Slice(9, 1))):
        with open_place(Place(LocalFile(str(path)), steps), 1 << 20) as stream:
            assert "it ends in the middle" in str(read_head(stream, 100)[1])
