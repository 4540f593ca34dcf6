import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau._native.records import read_batches
from moldau.kernel.errors import (
    CompressionError,
    CorruptBatchError,
    InvalidRecordError,
    ProtocolError,
)
from moldau.records.batch import read_records
from moldau.records.compression import Codec, compress
from moldau.records.legacy import LegacyMessage, magic_of, read_messages, up_convert

LEGACY_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
LOG_APPEND_TIME = 0x08

optional_bytes = st.none() | st.binary(max_size=40)
rows = st.lists(
    st.tuples(st.integers(0, 2**41), optional_bytes, optional_bytes), min_size=1, max_size=6
)


def write(
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    attributes: int = 0,
) -> bytes:
    parts = [struct.pack(">bb", magic, attributes)]
    if magic:
        parts.append(struct.pack(">q", timestamp))
    for data in (key, value):
        parts += (struct.pack(">i", -1 if data is None else len(data)), data or b"")
    return sealed(offset, b"".join(parts))


def sealed(offset: int, content: bytes) -> bytes:
    return struct.pack(">qiI", offset, len(content) + 4, crc32(content)) + content


def write_set(magic: int, rows: Sequence[Any], first_offset: int = 0) -> bytes:
    return b"".join(write(magic, first_offset + n, *row) for n, row in enumerate(rows))


def wrap(
    magic: int, codec: int, content: bytes, offset: int, timestamp: int = 0, attributes: int = 0
) -> bytes:
    packed = compress(codec, content)
    if magic == 0 and codec == Codec.LZ4:
        # The checksum of the frame's header that old Java clients wrote.
        packed = packed[:6] + b"\x1d" + packed[7:]
    return write(magic, offset, timestamp, None, packed, codec | attributes)


def write_any(magic: int, codec: int, rows: Sequence[Any], first_offset: int) -> bytes:
    if codec == Codec.NONE:
        return write_set(magic, rows, first_offset)
    last_offset = first_offset + len(rows) - 1
    inner_offset = first_offset if magic == 0 else 0
    return wrap(magic, codec, write_set(magic, rows, inner_offset), last_offset)


def expected(magic: int, rows: Sequence[Any]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(timestamp if magic else -1, key, value) for timestamp, key, value in rows]


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
@given(rows=rows, first_offset=st.integers(1, 2**60))
@settings(max_examples=settings.default.max_examples // 3)
def test_message_sets_are_read(
    magic: int, codec: Codec, rows: list[Any], first_offset: int
) -> None:
    data = write_any(magic, codec, rows, first_offset)
    assert magic_of(data) == magic
    messages = list(read_messages(data))
    assert [message[3:] for message in messages] == expected(magic, rows)
    assert [message.offset - first_offset for message in messages] == [*range(len(rows))]


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
@given(rows=rows, first_offset=st.integers(0, 2**60))
@settings(max_examples=settings.default.max_examples // 3)
def test_message_sets_become_one_batch(
    magic: int, codec: Codec, rows: list[Any], first_offset: int
) -> None:
    data = up_convert(write_any(magic, codec, rows, first_offset))
    assert magic_of(data) == 2
    [batch] = read_batches(data)
    assert (batch.codec, batch.base_offset, batch.producer_id) == (codec, 0, -1)
    records = read_records(data, batch)
    assert [(r.timestamp, r.key, r.value) for r in records] == expected(magic, rows)
    assert [record.offset for record in records] == [*range(len(rows))]


def test_the_time_of_the_broker_stands_in_the_wrapper() -> None:
    content = write_set(1, [(100, b"a", b"b"), (200, None, b"c")])
    data = wrap(1, Codec.GZIP, content, 41, timestamp=999, attributes=LOG_APPEND_TIME)
    assert [(m.offset, m.timestamp) for m in read_messages(data)] == [(40, 999), (41, 999)]
    converted = up_convert(data)
    [batch] = read_batches(converted)
    assert batch.is_log_append_time
    assert [record.timestamp for record in read_records(converted, batch)] == [999, 999]


def test_a_wrapper_with_offset_zero() -> None:
    content = write_set(1, [(1, None, b"a"), (2, None, b"b"), (3, None, b"c")])
    messages = read_messages(wrap(1, Codec.SNAPPY, content, 0))
    assert [message.offset for message in messages] == [0, 1, 2]


def test_offsets_inside_a_wrapper_may_have_gaps() -> None:
    content = write(1, 0, 1, None, b"a") + write(1, 7, 1, None, b"b")
    messages = read_messages(wrap(1, Codec.LZ4, content, 107))
    assert [message.offset for message in messages] == [100, 107]


def test_inner_offsets_of_careless_clients_are_counted_anew() -> None:
    content = write(1, 5, 1, None, b"a") + write(1, 5, 1, None, b"b")
    data = up_convert(wrap(1, Codec.GZIP, content, 9))
    [batch] = read_batches(data)
    assert [record.offset for record in read_records(data, batch)] == [0, 1]


def test_a_message_says_what_it_is() -> None:
    assert LegacyMessage(0, 1, LOG_APPEND_TIME | 2, 0, None, None).codec == Codec.SNAPPY
    assert LegacyMessage(0, 1, LOG_APPEND_TIME, 0, None, None).is_log_append_time
    assert not LegacyMessage(0, 0, LOG_APPEND_TIME, 0, None, None).is_log_append_time


# What must be refused.


def refuse(data: bytes, error: type[ProtocolError], reason: str, **limits: int) -> None:
    with pytest.raises(error, match=reason):
        list(read_messages(data, **limits))
    with pytest.raises(error, match=reason):
        up_convert(data, **limits)


PLAIN = write_set(1, [(1, b"k", b"value"), (2, None, b"value")])


def test_a_message_set_that_is_cut_off() -> None:
    for size in set(range(1, len(PLAIN))) - {len(PLAIN) // 2 + 1}:
        refuse(PLAIN[:size], CorruptBatchError, "cut off or has a false size")


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapped_message_set_that_is_cut_off(magic: int) -> None:
    content = write_set(magic, [(1, b"k", b"value")])
    for size in range(1, len(content)):
        refuse(wrap(magic, Codec.GZIP, content[:size], 0), CorruptBatchError, "cut off")


@pytest.mark.parametrize("size", [-1, 0, 5, 2**31 - 1])
def test_a_false_size(size: int) -> None:
    refuse(struct.pack(">qi", 0, size) + bytes(30), CorruptBatchError, "false size")


@pytest.mark.parametrize("place", [12, 18, 30, -1])
def test_a_wrong_checksum(place: int) -> None:
    data = bytearray(write(1, 0, 5, b"key", b"value"))
    data[place] ^= 1
    refuse(bytes(data), CorruptBatchError, "wrong checksum")


def test_a_wrong_checksum_inside_a_wrapper() -> None:
    data = bytearray(write(1, 0, 5, b"key", b"value"))
    data[-1] ^= 1
    refuse(wrap(1, Codec.LZ4, bytes(data), 0), CorruptBatchError, "wrong checksum")


@pytest.mark.parametrize("magic", [2, 3, -1])
def test_another_magic(magic: int) -> None:
    refuse(sealed(0, struct.pack(">bb", magic, 0) + bytes(30)), CorruptBatchError, "has magic")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\0\0", "beyond"),
        (b"\0\0" + struct.pack(">i", 5) + b"abc", "beyond"),
        (b"\0\0" + struct.pack(">i", -2), "beyond"),
        (b"\0\0" + struct.pack(">ii", -1, 2**31 - 1), "beyond"),
        (b"\0\0" + struct.pack(">ii", -1, -1) + b"more", "left over"),
        (b"\1\0" + bytes(5), "too short"),
    ],
)
def test_lengths_beyond_the_message(content: bytes, reason: str) -> None:
    refuse(sealed(0, content), CorruptBatchError, reason)


def test_a_wrapper_inside_a_wrapper() -> None:
    inner = wrap(1, Codec.GZIP, PLAIN, 1)
    refuse(wrap(1, Codec.GZIP, inner, 1), InvalidRecordError, "inside of another")


def test_wrappers_in_a_thousand_wrappers() -> None:
    data = PLAIN
    for _ in range(1000):
        data = wrap(1, Codec.SNAPPY, data, 1)
    refuse(data, InvalidRecordError, "inside of another")


def test_a_wrapper_of_another_magic() -> None:
    refuse(wrap(0, Codec.GZIP, PLAIN, 1), InvalidRecordError, "magic 1 inside of magic 0")


def test_a_wrapper_that_is_null_or_empty() -> None:
    refuse(write(1, 0, 0, None, None, Codec.GZIP), InvalidRecordError, "null")
    refuse(wrap(1, Codec.GZIP, b"", 0), InvalidRecordError, "empty")


def test_a_wrapper_before_its_content() -> None:
    content = write(1, 8, 1, None, b"a")
    refuse(wrap(1, Codec.GZIP, content, 7), InvalidRecordError, "offset 8 inside of offset 7")


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd(magic: int) -> None:
    content = write_set(magic, [(1, None, b"a")])
    refuse(wrap(magic, Codec.ZSTD, content, 0), InvalidRecordError, "no zstd")


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(codec: int) -> None:
    refuse(write(1, 0, 0, None, b"abc", codec), CompressionError, "no codec")


def test_an_lz4_header_with_a_wrong_checksum_since_magic_1() -> None:
    packed = compress(Codec.LZ4, PLAIN)
    broken = write(1, 1, 0, None, packed[:6] + b"\0" + packed[7:], Codec.LZ4)
    refuse(broken, CompressionError, "headerChecksum")


def test_an_lz4_frame_of_magic_0_that_is_cut_off() -> None:
    content = write_set(0, [(1, None, b"a")])
    packed = compress(Codec.LZ4, content)
    for size in range(len(packed)):
        refuse(write(0, 0, 0, None, packed[:size], Codec.LZ4), CompressionError, "lz4")


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_a_bomb(codec: Codec) -> None:
    data = wrap(1, codec, bytes(4 << 20), 0)
    refuse(data, CompressionError, "larger than", bytes_max=1 << 20)


def test_a_set_that_is_too_large_as_it_stands() -> None:
    refuse(PLAIN, CompressionError, "larger than", bytes_max=len(PLAIN) - 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no message"),
        (PLAIN + write(0, 2, 0, None, b"a"), "more than one magic"),
        (PLAIN + wrap(1, Codec.GZIP, PLAIN, 1), "stand alone"),
        (wrap(1, Codec.GZIP, PLAIN, 1) * 2, "stand alone"),
    ],
)
def test_what_cannot_become_one_batch(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecordError, match=reason):
        up_convert(data)


def test_records_without_a_magic() -> None:
    with pytest.raises(CorruptBatchError, match="too short"):
        magic_of(bytes(16))


@given(data=st.data())
def test_damage_is_refused_or_read(data: st.DataObject) -> None:
    magic = data.draw(st.integers(0, 1))
    codec = data.draw(st.sampled_from(LEGACY_CODECS))
    damaged = bytearray(write_any(magic, codec, data.draw(rows), 0))
    place = data.draw(st.integers(0, len(damaged) - 1))
    damaged[place] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError):
        list(read_messages(damaged))
