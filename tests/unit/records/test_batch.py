import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau._native.records import BatchWriter, Record, crc32c, read_batches
from moldau.kernel.errors import CompressionError, CorruptBatchError, InvalidRecordError
from moldau.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    build_batch,
    payload_of,
    read_records,
    validate,
)
from moldau.records.compression import Codec, compress

optional_bytes = st.none() | st.binary(max_size=50)
fields = st.tuples(
    st.integers(0, 2**41),
    optional_bytes,
    optional_bytes,
    st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3),
)
RECORDS = [
    Record(delta, 1_700_000_000_000 + delta, b"key %d" % delta, b"value" * 40, [("h", b"1")])
    for delta in range(300)
]


def numbered(rows: Sequence[Any], base_offset: int = 0) -> list[Record]:
    return [Record(base_offset + delta, *row) for delta, row in enumerate(rows)]


def seal(batch: bytearray) -> bytearray:
    """Write the checksum again, after a change."""
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


@pytest.mark.parametrize("codec", Codec)
@given(rows=st.lists(fields, min_size=1, max_size=8), base_offset=st.integers(0, 2**60))
@settings(max_examples=settings.default.max_examples // 3)
def test_records_come_back(codec: Codec, rows: list[Any], base_offset: int) -> None:
    records = numbered(rows, base_offset)
    data = build_batch(
        records,
        codec=codec,
        attributes=TRANSACTIONAL,
        leader_epoch=5,
        producer_id=77,
        producer_epoch=3,
        base_sequence=9,
    )
    [batch] = read_batches(data)
    assert read_records(data, batch) == records
    assert batch.codec == codec
    assert batch.is_transactional
    assert not batch.is_control
    assert (batch.base_offset, batch.last_offset) == (base_offset, base_offset + len(rows) - 1)
    assert (batch.leader_epoch, batch.producer_id, batch.producer_epoch) == (5, 77, 3)
    assert batch.base_sequence == 9
    [(validated, stats)] = validate(data)
    assert validated.size == len(data)
    assert stats.record_count == len(rows)
    assert stats.max_timestamp == max(row[0] for row in rows) == batch.max_timestamp
    assert stats.keyless_count == sum(row[1] is None for row in rows)


def test_a_level_reaches_the_codec() -> None:
    small = build_batch(RECORDS, codec=Codec.ZSTD, level=19)
    assert len(small) < len(build_batch(RECORDS, codec=Codec.ZSTD, level=-50))
    with pytest.raises(ValueError, match="levels"):
        build_batch(RECORDS, codec=Codec.GZIP, level=12)
    with pytest.raises(ValueError, match="levels"):
        build_batch(RECORDS, level=1)


def test_offsets_may_have_gaps_in_a_stored_batch_only() -> None:
    records = [Record(10, 1, None, b"a"), Record(15, 2, None, b"b")]
    data = build_batch(records, codec=Codec.LZ4)
    [batch] = read_batches(data)
    assert read_records(data, batch) == records
    with pytest.raises(InvalidRecordError):
        validate(data)


def test_log_append_time_is_the_time_of_every_record() -> None:
    data = build_batch(RECORDS[:3], codec=Codec.SNAPPY, attributes=LOG_APPEND_TIME)
    [batch] = read_batches(data)
    assert batch.is_log_append_time
    assert {record.timestamp for record in read_records(data, batch)} == {RECORDS[2].timestamp}


def test_batches_in_the_middle_of_a_buffer() -> None:
    first = build_batch(RECORDS[:5], codec=Codec.GZIP)
    second = build_batch(RECORDS[5:9])
    data = b"before" + first + second + b"behind"
    end = len(data) - 6
    assert [stats.record_count for _, stats in validate(data, 6, end)] == [5, 4]
    batches = read_batches(data, 6, end)
    assert [record for batch in batches for record in read_records(data, batch)] == RECORDS[:9]
    assert bytes(payload_of(data, batches[1])) == second[HEADER_BYTES:]


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_compaction_emptied(codec: Codec) -> None:
    writer = BatchWriter(base_offset=7)
    data = bytearray(writer.finish(last_offset=9))
    data[22] |= codec
    [batch] = read_batches(seal(data))
    assert (batch.codec, batch.last_offset) == (codec, 9)
    assert read_records(data, batch) == []
    with pytest.raises(InvalidRecordError):
        validate(data)


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


# What must be refused.


def test_no_batch_at_all() -> None:
    with pytest.raises(InvalidRecordError, match="no batch"):
        validate(b"")


@pytest.mark.parametrize("codec", Codec)
def test_a_wrong_checksum(codec: Codec) -> None:
    data = bytearray(build_batch(RECORDS, codec=codec))
    data[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        validate(data)


@pytest.mark.parametrize("magic", [0, 1, 3, 0xFF])
def test_another_magic(magic: int) -> None:
    data = bytearray(build_batch(RECORDS))
    data[16] = magic
    with pytest.raises(CorruptBatchError):
        validate(data)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_is_cut_off(codec: Codec) -> None:
    data = build_batch(RECORDS[:2], codec=codec)
    for size in range(1, len(data)):
        with pytest.raises(CorruptBatchError):
            validate(data[:size])


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(codec: int) -> None:
    data = bytearray(build_batch(RECORDS))
    data[22] |= codec
    seal(data)
    with pytest.raises(CompressionError, match="no codec"):
        validate(data)
    with pytest.raises(CompressionError, match="no codec"):
        read_records(data, read_batches(data)[0])


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [299, 301, 0, -1, 2**31 - 1])
def test_a_count_that_is_not_true(codec: Codec, count: int) -> None:
    data = bytearray(build_batch(RECORDS, codec=codec))
    struct.pack_into(">i", data, 57, count)
    with pytest.raises(InvalidRecordError):
        validate(seal(data))
    struct.pack_into(">i", data, 23, (count - 1) & 0x7FFFFFFF)
    with pytest.raises(InvalidRecordError):
        validate(seal(data))


@pytest.mark.parametrize("codec", Codec)
def test_bytes_behind_the_records(codec: Codec) -> None:
    plain = build_batch(RECORDS)[HEADER_BYTES:] + b"\0"
    payload = compress(codec, plain)
    data = bytearray(build_batch(RECORDS, codec=codec)[:HEADER_BYTES] + payload)
    struct.pack_into(">i", data, 8, len(data) - 12)
    with pytest.raises(InvalidRecordError):
        validate(seal(data))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec != Codec.NONE])
def test_a_batch_that_becomes_too_large(codec: Codec) -> None:
    data = build_batch([Record(0, 1, None, bytes(4 << 20))], codec=codec)
    assert len(data) < 300_000
    assert validate(data)[0][1].record_count == 1
    with pytest.raises(CompressionError, match="larger than"):
        validate(data, bytes_max=4 << 20)
    with pytest.raises(CompressionError, match="larger than"):
        read_records(data, read_batches(data)[0], bytes_max=4 << 20)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec != Codec.NONE])
def test_a_payload_that_is_not_compressed(codec: Codec) -> None:
    data = bytearray(build_batch(RECORDS))
    data[22] |= codec
    with pytest.raises(CompressionError):
        validate(seal(data))
