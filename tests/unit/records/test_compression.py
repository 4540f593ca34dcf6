import gzip
import io
import struct
import subprocess
import sys
import zlib
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.errors import CompressionError
from moldau.records.compression import Codec, compress, decompress, decompress_pieces

COMPRESSING = [codec for codec in Codec if codec != Codec.NONE]
TEXT = b"".join(b"%d bottles of beer, " % n for n in range(20_000))

payloads = st.one_of(
    st.binary(max_size=300),
    st.builds(
        lambda unit, times: unit * times, st.binary(min_size=1, max_size=20), st.integers(0, 9000)
    ),
)


@pytest.mark.parametrize("codec", Codec)
@given(payload=payloads, piece_bytes=st.integers(1, 1 << 17))
def test_what_was_compressed_comes_back(codec: Codec, payload: bytes, piece_bytes: int) -> None:
    packed = compress(codec, payload)
    assert decompress(codec, packed) == payload
    if len(payload) / piece_bytes < 1000:
        pieces = list(decompress_pieces(codec, packed, piece_bytes=piece_bytes))
        assert b"".join(pieces) == payload
        assert codec == Codec.SNAPPY or all(len(piece) <= piece_bytes for piece in pieces)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("codec", Codec)
def test_any_buffer_will_do(codec: Codec, kind: type) -> None:
    assert decompress(codec, kind(compress(codec, kind(TEXT)))) == TEXT


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Codec.GZIP, [-1, *range(1, 10)]),
        (Codec.LZ4, range(1, 18)),
        (Codec.ZSTD, [-131072, -100, -1, 0, 1, 3, 9, 19, 22]),
    ],
)
def test_every_level_of_kafka_works(codec: Codec, levels: list[int]) -> None:
    text = TEXT[:50_000]
    for level in levels:
        assert decompress(codec, compress(codec, text, level)) == text


def test_higher_levels_make_smaller_payloads() -> None:
    assert len(compress(Codec.GZIP, TEXT, 9)) < len(compress(Codec.GZIP, TEXT, 1))
    assert len(compress(Codec.ZSTD, TEXT, 19)) < len(compress(Codec.ZSTD, TEXT, 1))
    assert len(compress(Codec.LZ4, TEXT, 17)) < len(compress(Codec.LZ4, TEXT, 1))
    # The default, 9, is the fast compressor, as it is with Kafka.
    assert len(compress(Codec.LZ4, TEXT, 1)) < len(compress(Codec.LZ4, TEXT, 9))
    assert compress(Codec.LZ4, TEXT, 9) == compress(Codec.LZ4, TEXT)


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Codec.NONE, 1),
        (Codec.GZIP, 0),
        (Codec.GZIP, 10),
        (Codec.GZIP, -2),
        (Codec.SNAPPY, 1),
        (Codec.LZ4, 0),
        (Codec.LZ4, 18),
        (Codec.ZSTD, -131073),
        (Codec.ZSTD, 23),
    ],
)
def test_a_level_out_of_range_is_refused(codec: Codec, level: int) -> None:
    with pytest.raises(ValueError, match="level"):
        compress(codec, b"x", level)


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(CompressionError, match="no codec"):
        compress(codec, b"x")
    with pytest.raises(CompressionError, match="no codec"):
        decompress(codec, b"x")


def test_codecs_are_imported_when_first_used() -> None:
    script = """
import sys
from moldau.records.compression import Codec, compress
libraries = {"zlib", "lz4", "zstandard", "cramjam"}
assert not libraries & {*sys.modules}, libraries & {*sys.modules}
compress(Codec.LZ4, b"x")
assert libraries & {*sys.modules} == {"lz4"}
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


# What other writers make.


def test_gzip_members_that_follow_each_other() -> None:
    file = io.BytesIO()
    with gzip.GzipFile("a name", "wb", fileobj=file) as member:
        member.write(b"first ")
    packed = file.getvalue() + gzip.compress(b"") + compress(Codec.GZIP, b"second")
    assert decompress(Codec.GZIP, packed) == b"first second"


def test_snappy_without_framing() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_streams_that_follow_each_other() -> None:
    packed = compress(Codec.SNAPPY, TEXT)
    assert decompress(Codec.SNAPPY, packed + packed) == TEXT + TEXT


def test_snappy_without_content() -> None:
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"")) == b""


@pytest.mark.parametrize("store_size", [False, True])
@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
def test_lz4_frames_of_other_shapes(
    store_size: bool, block_checksum: bool, content_checksum: bool, block_size: int
) -> None:
    packed = lz4.frame.compress(
        TEXT * 6,
        block_size=block_size,
        block_linked=False,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
        store_size=store_size,
    )
    assert decompress(Codec.LZ4, packed) == TEXT * 6


def test_lz4_is_written_as_java_reads_it() -> None:
    packed = compress(Codec.LZ4, TEXT)
    # Version 1, independent blocks, no checksums, no content size; blocks of 64 KB.
    assert packed[:6] == b"\x04\x22\x4d\x18\x60\x40"


def test_zstd_frames_that_follow_each_other() -> None:
    stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    unsized = stream.compress(b"first ") + stream.flush()
    skippable = struct.pack("<II", 0x184D2A53, 4) + b"skip"
    packed = unsized + skippable + compress(Codec.ZSTD, b"second")
    assert decompress(Codec.ZSTD, packed) == b"first second"


def test_zstd_with_the_largest_window() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    assert decompress(Codec.ZSTD, stream.compress(TEXT) + stream.flush()) == TEXT


def test_two_zstd_payloads_at_once() -> None:
    packed = compress(Codec.ZSTD, TEXT)
    first = decompress_pieces(Codec.ZSTD, packed, piece_bytes=1000)
    second = decompress_pieces(Codec.ZSTD, packed, piece_bytes=1000)
    pairs = list(zip(first, second, strict=True))
    assert b"".join(piece for piece, _ in pairs) == b"".join(piece for _, piece in pairs) == TEXT


# What must be refused.


def zstd_frame(descriptor: int, header: bytes, blocks: bytes = b"\1\0\0") -> bytes:
    return b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + header + blocks


def bomb(codec: Codec) -> bytes:
    if codec == Codec.ZSTD:
        # A gigabyte in 32 KB: blocks of one byte that is repeated 128 K times.
        block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
        return zstd_frame(0x00, bytes([(21 - 10) << 3]), block * 8000 + b"\1\0\0")
    return compress(codec, bytes(32 << 20))


@pytest.mark.parametrize("codec", Codec)
def test_a_bomb_is_refused_at_the_limit_and_in_pieces(codec: Codec) -> None:
    packed = bomb(codec)
    made = 0
    with pytest.raises(CompressionError, match="larger than"):  # noqa: PT012
        for piece in decompress_pieces(codec, packed, bytes_max=1 << 20):
            assert len(piece) <= 64 << 10
            made += len(piece)
    assert made <= 1 << 20
    with pytest.raises(CompressionError, match="larger than"):
        decompress(codec, packed, bytes_max=1 << 20)


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_itself_is_allowed(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, bytes_max=len(TEXT)) == TEXT
    with pytest.raises(CompressionError, match="larger than"):
        decompress(codec, packed, bytes_max=len(TEXT) - 1)
    assert decompress(codec, compress(codec, b""), bytes_max=0) == b""


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_payload_that_is_cut_off_is_refused(codec: Codec) -> None:
    packed = compress(codec, TEXT[:3000])
    for size in range(len(packed)):
        # Between two xerial blocks, or behind the header, there is nothing that could be missing.
        if codec == Codec.SNAPPY and size == 16:
            continue
        with pytest.raises(CompressionError):
            decompress(codec, packed[:size])


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("tail", [b"\0", b"\0" * 8, b"garbage!" * 4])
def test_bytes_behind_the_end_are_refused(codec: Codec, tail: bytes) -> None:
    with pytest.raises(CompressionError):
        decompress(codec, compress(codec, TEXT) + tail)


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.data())
def test_damage_is_refused_or_stays_within_bounds(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, TEXT[:500]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CompressionError):
        assert len(decompress(codec, packed, bytes_max=10_000)) <= 10_000


@pytest.mark.parametrize("codec", COMPRESSING)
@given(packed=st.binary(max_size=200))
def test_noise_is_refused_or_stays_within_bounds(codec: Codec, packed: bytes) -> None:
    with suppress(CompressionError):
        assert len(decompress(codec, packed, bytes_max=10_000)) <= 10_000


def test_gzip_with_a_wrong_checksum() -> None:
    packed = bytearray(compress(Codec.GZIP, TEXT))
    packed[-5] ^= 1
    with pytest.raises(CompressionError, match="incorrect data check"):
        decompress(Codec.GZIP, packed)


def test_gzip_is_not_zlib() -> None:
    with pytest.raises(CompressionError, match="incorrect header"):
        decompress(Codec.GZIP, zlib.compress(TEXT))


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"\x82SNAPPY\0" + struct.pack(">ii", 2, 2), "version 2"),
        (b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, -5), "beyond"),
        (b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 1 << 30) + b"abc", "beyond"),
        (b"\x82SNAPPY\0" + struct.pack(">iih", 1, 1, 0), "cut off"),
        ((b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)) * 2 + b"\x82SNAPP", "cut off"),
        (b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"\x82SNA" + bytes(20), "cut off"),
        (b"\x82SNAPPY\0" + struct.pack(">i", 1), "cut off"),
        # Four gigabytes, in ten bytes.
        (b"\xff\xff\xff\xff\x0f" + b"\0a\0a\0", "cannot become"),
        (b"\xff\xff\xff\xff\xff\xff", "no size"),
        (b"", "no size"),
    ],
)
def test_snappy_with_false_lengths(packed: bytes, reason: str) -> None:
    with pytest.raises(CompressionError, match=reason):
        decompress(Codec.SNAPPY, packed)


def test_the_densest_snappy_block_is_not_taken_for_a_lie() -> None:
    packed = bytes(cramjam.snappy.compress_raw(bytes(60 << 10)))
    assert len(packed) < (60 << 10) / 20
    assert decompress(Codec.SNAPPY, packed) == bytes(60 << 10)


LZ4_MAGIC = b"\x04\x22\x4d\x18"


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (lz4.frame.compress(TEXT, block_linked=True), "depend"),
        (LZ4_MAGIC + b"\x61\x40" + bytes(9), "not allowed"),  # a dictionary id
        (LZ4_MAGIC + b"\x62\x40" + bytes(9), "not allowed"),
        (LZ4_MAGIC + b"\x60\x30" + bytes(9), "not allowed"),  # blocks smaller than 64 KB
        (LZ4_MAGIC + b"\x60\xc0" + bytes(9), "not allowed"),
        (LZ4_MAGIC + b"\x60\x41" + bytes(9), "not allowed"),
        (LZ4_MAGIC + b"\xa0\x40" + bytes(9), "unknown version"),
        (LZ4_MAGIC + b"\x60\x40\x00" + bytes(9), "headerChecksum"),
        (LZ4_MAGIC + b"\x68\x40" + bytes(6), "cut off"),
        (b"\x50\x2a\x4d\x18\x04\0\0\0skip" + compress(Codec.LZ4, TEXT), "no lz4 frame"),
        (compress(Codec.LZ4, TEXT) * 2, "follow"),
        (b"", "cut off"),
    ],
)
def test_lz4_frames_that_java_refuses(packed: bytes, reason: str) -> None:
    with pytest.raises(CompressionError, match=reason):
        decompress(Codec.LZ4, packed)


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (zstd_frame(0x00, bytes([18 << 3])), "window"),  # a window of 2^28 bytes
        (zstd_frame(0x00, b"\xf8"), "too much memory"),  # of 2^41
        (zstd_frame(0x01, b"\x00\x05"), "dictionary"),
        (zstd_frame(0x08, b"\x00"), "Unsupported"),  # the reserved bit
        (zstd_frame(0x00, b"\x00", b"\7\0\0"), "unknown kind"),
        (zstd_frame(0xE0, struct.pack("<Q", 1 << 60)), "large|memory|supported"),
        (zstd_frame(0xC0, b"\x00" + struct.pack("<Q", 101 << 20)), "larger than"),
        (zstd_frame(0x20, b"\x05"), "zstd"),  # announces five bytes and has none
        (struct.pack("<II", 0x184D2A50, 9) + b"skip", "cut off"),
        (struct.pack("<I", 0x184D2A50), "cut off"),
        (b"", "not enough data"),
    ],
)
def test_zstd_frames_that_must_be_refused(packed: bytes, reason: str) -> None:
    with pytest.raises(CompressionError, match=reason):
        decompress(Codec.ZSTD, packed)


def test_zstd_with_a_dictionary() -> None:
    dictionary = zstandard.train_dictionary(2000, [b"sample %d of many" % n for n in range(2000)])
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(TEXT)
    with pytest.raises(CompressionError, match="dictionary"):
        decompress(Codec.ZSTD, packed)


def test_zstd_with_a_wrong_checksum() -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(TEXT))
    packed[-1] ^= 1
    with pytest.raises(CompressionError, match="checksum"):
        decompress(Codec.ZSTD, packed)
