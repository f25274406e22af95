"""Packed streams: all of what was packed comes out, nothing but an OSError goes wrong, and never too much comes."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from loopscan.transcripts.streams import Expanded, Meter, OverLimitError, Part, Prefixed, codec_of, read_head
from tests.transcripts.packs import gz, zst

PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gz, "zstd": zst}
LIMIT = 1 << 30


def expand(packed: bytes, codec: str, limit: int = LIMIT, piece: int = 70_000) -> tuple[bytes, OSError | None]:
    """Return what comes out, and the error after it."""
    stream = Expanded(io.BytesIO(packed), codec, Meter(limit))
    pieces = []
    try:
        while data := stream.read(piece):
            pieces.append(data)
    except OSError as error:
        with pytest.raises(OSError, match=str(error.strerror).replace("(", r"\(").replace(")", r"\)")):
            stream.read(1)  # it stays
        return b"".join(pieces), error
    assert stream.read(1) == b""
    return b"".join(pieces), None


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("codec", PACKERS)
@given(parts=st.lists(st.binary(max_size=300), max_size=5), piece=st.integers(1, 400))
def test_what_was_packed_in_parts_comes_out_as_one(codec: str, parts: list[bytes], piece: int) -> None:
    packed = b"".join(map(PACKERS[codec], parts))
    assert expand(packed, codec, piece=piece) == (b"".join(parts), None)
    assert codec_of(packed) == (codec if parts else None)


@pytest.mark.parametrize("codec", PACKERS)
@pytest.mark.parametrize("data", [noise(700_000), b"ab" * 700_000], ids=["noise", "pattern"])
def test_what_is_longer_than_every_buffer_comes_out(codec: str, data: bytes) -> None:
    assert expand(PACKERS[codec](data) * 2, codec) == (data * 2, None)


def test_frames_of_zstd_come_in_many_forms() -> None:
    data = noise(200_000) + b"x" * 200_000
    streamed = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    forms = [
        zst(data, checksum=False),
        streamed.compress(data) + streamed.flush(),
        b"\x5a\x2a\x4d\x18" + (300_000).to_bytes(4, "little") + bytes(300_000),  # to be passed over
        zst(b""),
    ]
    assert expand(b"".join(forms), "zstd") == (data * 2, None)
    assert codec_of(forms[2]) == "zstd"


def test_padding_after_gzip_is_none_of_it() -> None:
    assert expand(gz(b"one") + bytes(5000) + gz(b"two") + bytes(200_000), "gzip") == (b"onetwo", None)


@pytest.mark.parametrize("codec", PACKERS)
@given(data=st.data())
def test_what_is_cut_anywhere_gives_what_it_has_and_says_so(codec: str, data: st.DataObject) -> None:
    parts = [b"a" * 500 + noise(300), noise(700)]
    first, second = map(PACKERS[codec], parts)
    cut = data.draw(st.integers(0, len(first) + len(second)))
    given_, error = expand((first + second)[:cut], codec)
    assert b"".join(parts).startswith(given_)
    if cut in (0, len(first), len(first + second)):
        assert error is None
    else:
        assert error is not None
        assert error.strerror == "the compressed data ends in the middle"
    assert cut < len(first) or given_.startswith(parts[0])


@pytest.mark.parametrize("codec", PACKERS)
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_damage_is_an_error_for_people_and_nothing_else(codec: str, at: float, bit: int) -> None:
    data = b"some text, " * 50 + noise(500)
    packed = bytearray(PACKERS[codec](data))
    packed[int(at * len(packed))] ^= 1 << bit
    given_, error = expand(bytes(packed), codec, limit=1 << 20)
    assert error is None or (isinstance(error.strerror, str) and error.errno)
    if given_ != data and error is None:
        # Only what tells nothing of the content, or a frame that is now one to be passed over.
        assert codec == "zstd"


@pytest.mark.parametrize("codec", PACKERS)
def test_all_that_stands_before_the_damage_comes_out(codec: str) -> None:
    data = noise(300_000) + b"end" * 100_000
    packed = bytearray(PACKERS[codec](data))
    packed[-1] ^= 1  # of what all of it is checked by
    assert expand(bytes(packed), codec)[0] == data
    packed = bytearray(PACKERS[codec](data))
    packed[280_000:] = bytes(len(packed) - 280_000)
    given_, error = expand(bytes(packed), codec)
    assert error is not None
    assert data[: 256_000 if codec == "gzip" else 131_072] == given_[: 256_000 if codec == "gzip" else 131_072]


@pytest.mark.parametrize("codec", PACKERS)
def test_what_follows_and_is_not_packed_is_said(codec: str) -> None:
    given_, error = expand(PACKERS[codec](b"text") + b"something else", codec)
    assert given_ == b"text"
    assert error is not None
    assert error.strerror == "the compressed data is followed by something else"


@pytest.mark.parametrize("codec", PACKERS)
@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_nothing_comes_out_beyond_the_limit(codec: str, size: int) -> None:
    packed = PACKERS[codec](b"x" * 1000)
    assert expand(packed, codec, limit=1000) == (b"x" * 1000, None)
    given_, error = expand(packed, codec, limit=size)
    if size == 1000:
        assert error is None
    else:
        assert given_ == b"x" * size
        assert isinstance(error, OverLimitError)
        assert error.strerror == f"it expands to over the limit of {size:,} bytes (--max-expanded)"
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("codec", PACKERS)
def test_a_bomb_is_expanded_a_piece_at_a_time(codec: str) -> None:
    class Bomb(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            data = self.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)

    packed = PACKERS[codec](bytes(1 << 20)) * 400
    bomb = Bomb(packed)
    stream = Expanded(bomb, codec, Meter(1 << 20))
    assert len(read_head(stream, 1 << 30)[0]) == 1 << 20
    assert bomb.taken <= 1 << 18


def test_a_frame_that_needs_much_memory_is_refused() -> None:
    huge = b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xA0]) + b"\x01\x00\x00"
    error = expand(huge, "zstd")[1]
    assert error is not None
    assert "128 MiB" in str(error.strerror)


@pytest.mark.parametrize("junk", [b"", b"\x1f\x8b", b"\x1f\x8b\x07", b"{", b"\x28\xb5\x2f", b"PK\x03\x04"])
def test_what_is_not_packed_is_not_taken_for_it(junk: bytes) -> None:
    assert codec_of(junk) is None


@given(head=st.binary(max_size=20), rest=st.binary(max_size=20), sizes=st.lists(st.integers(1, 9), min_size=50))
def test_a_head_can_be_put_back(head: bytes, rest: bytes, sizes: list[int]) -> None:
    stream = Prefixed(head, io.BytesIO(rest))
    assert b"".join(stream.read(size) for size in sizes) == (head + rest)[: sum(sizes)]


def test_a_part_must_be_there() -> None:
    assert read_head(Part(io.BytesIO(b"abcdef"), 3), 10) == (b"abc", None)
    data, error = read_head(Part(io.BytesIO(b"abc"), 5), 10)
    assert data == b"abc"
    assert error is not None
    assert error.strerror == "it ends in the middle"
    assert read_head(Part(io.BytesIO(b""), 0), 10) == (b"", None)


def test_sizes_and_sums_that_an_archive_declares_are_held_to() -> None:
    def read(size: int, crc: int) -> tuple[bytes, OSError | None]:
        return read_head(Expanded(io.BytesIO(b"abc"), "stored", Meter(LIMIT), size=size, crc=crc), 10)

    crc = int.from_bytes(gzip.compress(b"abc")[-8:-4], "little")
    assert read(3, crc) == (b"abc", None)
    assert read(3, crc ^ 1)[1] is not None
    assert read(4, crc)[1] is not None
    assert read(2, crc)[1] is not None


def test_a_stream_works_below_a_buffered_reader() -> None:
    data = os.linesep.join(map(str, range(50_000))).encode()
    for codec, pack in PACKERS.items():
        stream = io.BufferedReader(Expanded(io.BytesIO(pack(data)), codec, Meter(LIMIT)), 1 << 20)
        assert stream.readlines() == data.splitlines(keepends=True)
