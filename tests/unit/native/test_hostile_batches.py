"""Batches that must be refused, by every way into the kernel, with no crash and no memory lost."""

import resource
import struct

import pytest

from moldau._native.columns import decode_columns
from moldau._native.records import (
    Batch,
    RecordWalk,
    check_batches,
    decode_records,
    read_batches,
)
from moldau.kernel.errors import CorruptBatchError, InvalidRecordError, ProtocolError
from tests.reference import records as reference
from tests.reference.records import Record, varint
from tests.unit.native.samples import HEADER_SIZE, PLAIN, batch_of, body, header_of, write

SAMPLE = write(
    [
        Record(0, 1_700_000_000_000, b"key", b"value", (("trace", b"1"), ("empty", None))),
        Record(1, 1_700_000_000_005, None, b"v" * 70),
        Record(2, 1_699_999_999_000, b"", None),
    ],
    producer_id=7,
    producer_epoch=1,
    base_sequence=0,
)


def refuse_records(data: bytes, message: str) -> None:
    """A batch with a good frame and bad records is refused by every way in."""
    batch = header_of(data)
    payload = data[HEADER_SIZE:]
    with pytest.raises(InvalidRecordError, match=message):
        check_batches(data)
    with pytest.raises(InvalidRecordError, match=message):
        walk(payload, batch, step=1)
    with pytest.raises(InvalidRecordError, match=message):
        decode_records(payload, batch)
    with pytest.raises(InvalidRecordError, match=message):
        decode_columns(data, [batch])


def walk(payload: bytes, batch: Batch, *, step: int) -> None:
    walk = RecordWalk(batch)
    for start in range(0, len(payload), step):
        walk.feed(payload[start : start + step])
    walk.finish()


def refuse_frame(data: bytes, message: str) -> None:
    with pytest.raises(CorruptBatchError, match=message):
        check_batches(data)
    with pytest.raises(CorruptBatchError, match=message):
        read_batches(data)


# ---- the frame


def test_bad_checksum() -> None:
    refuse_frame(SAMPLE[:-1] + b"\x01", "checksum")


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_bad_magic(magic: int) -> None:
    refuse_frame(SAMPLE[:16] + bytes([magic]) + SAMPLE[17:], f"magic {magic}, not 2")


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_bad_length(length: int) -> None:
    refuse_frame(SAMPLE[:8] + struct.pack(">i", length) + SAMPLE[12:], "too short for a batch")


def test_length_beyond_the_end() -> None:
    data = SAMPLE[:8] + struct.pack(">i", 2**31 - 1) + SAMPLE[12:]
    assert read_batches(data) == []
    with pytest.raises(CorruptBatchError, match="cut off"):
        check_batches(data)


def test_length_one_less_or_more() -> None:
    (length,) = struct.unpack_from(">i", SAMPLE, 8)
    refuse_frame(SAMPLE[:8] + struct.pack(">i", length - 1) + SAMPLE[12:], "checksum")
    refuse_frame(SAMPLE[:8] + struct.pack(">i", length + 1) + SAMPLE[12:] + b"\0", "checksum")


def test_the_second_batch_is_checked_as_well() -> None:
    refuse_frame(SAMPLE + SAMPLE[:-1] + b"\x01", f"batch at {len(SAMPLE)}: checksum")


def test_truncated_anywhere() -> None:
    for size in range(1, len(SAMPLE)):
        assert read_batches(SAMPLE[:size]) == []
        with pytest.raises(CorruptBatchError, match="cut off"):
            check_batches(SAMPLE[:size])


def test_flipped_anywhere() -> None:
    """What the checksum covers is refused; what it does not is read, or has another length."""
    for bit in range(8 * len(SAMPLE)):
        data = bytearray(SAMPLE)
        data[bit // 8] ^= 1 << bit % 8
        if bit < 64 or 96 <= bit < 128:
            ((batch, _),) = check_batches(data)
            assert (batch.base_offset, batch.leader_epoch) != (0, -1)
        else:
            with pytest.raises(CorruptBatchError):
                check_batches(data)


def test_flipped_anywhere_and_summed_again() -> None:
    """Behind a good checksum anything may stand: it is refused, or read as the reference reads."""
    for bit in range(8 * 23, 8 * len(SAMPLE)):
        changed = bytearray(SAMPLE)
        changed[bit // 8] ^= 1 << bit % 8
        header = reference.Header(*reference.HEADER.unpack_from(changed))
        data = reference.encode_batch(header, bytes(changed[HEADER_SIZE:]))
        compare_with_reference(data)


def compare_with_reference(data: bytes) -> None:
    ((_, header),) = reference.read_headers(data)
    try:
        reference.read_records(header, data[HEADER_SIZE:], consecutive=True)
    except InvalidRecordError:
        with pytest.raises(InvalidRecordError):
            check_batches(data)
    else:
        assert len(check_batches(data)) == 1


# ---- counts


@pytest.mark.parametrize("count", [-(2**31), -1, 0])
def test_a_count_below_one(count: int) -> None:
    data = batch_of(PLAIN, count=count, last_offset_delta=0)
    with pytest.raises(InvalidRecordError, match=r"count is out of range"):
        check_batches(data)
    with pytest.raises(InvalidRecordError):
        decode_columns(data, read_batches(data))


def test_a_count_beyond_the_records() -> None:
    refuse_records(batch_of(PLAIN, count=2), "record 1: the batch ends before")


def test_a_count_before_the_last_record() -> None:
    refuse_records(batch_of(PLAIN + PLAIN), "left over")


def test_a_count_that_would_take_all_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refuse_records(batch_of(PLAIN, count=2**31 - 1), "record 1: the batch ends before")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10


@pytest.mark.parametrize("delta", [-(2**31), -1, 1, 2**31 - 1])
def test_a_last_offset_delta_that_does_not_fit_the_count(delta: int) -> None:
    with pytest.raises(InvalidRecordError, match="does not fit the record count"):
        check_batches(batch_of(PLAIN, last_offset_delta=delta))


def test_a_compressed_batch_does_not_get_around_the_count() -> None:
    with pytest.raises(InvalidRecordError, match="count is out of range"):
        check_batches(batch_of(b"", count=0, attributes=4))


# ---- offset deltas


@pytest.mark.parametrize("delta", [-(2**31), -1, 1, 2**31 - 1])
def test_an_offset_delta_out_of_range(delta: int) -> None:
    record = body(b"\0\0" + varint(delta) + b"\x01\x01\0")
    refuse_records(batch_of(record), "record 0: the offset delta is out of order")


@pytest.mark.parametrize("deltas", [(0, 0), (1, 0), (1, 1)])
def test_offset_deltas_that_do_not_increase(deltas: tuple[int, int]) -> None:
    payload = b"".join(body(b"\0\0" + varint(delta) + b"\x01\x01\0") for delta in deltas)
    refuse_records(batch_of(payload, count=2), "the offset delta is out of order")


def test_an_offset_delta_that_leaves_a_gap_in_a_produced_batch() -> None:
    payload = b"".join(body(b"\0\0" + varint(delta) + b"\x01\x01\0") for delta in (0, 2))
    with pytest.raises(InvalidRecordError, match="out of order"):
        check_batches(batch_of(payload, count=2))


# ---- lengths


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 5])
def test_a_record_length_too_small(length: int) -> None:
    refuse_records(batch_of(varint(length) + PLAIN[1:]), "the length is too small")


def test_a_record_length_beyond_the_batch() -> None:
    for length in (len(PLAIN), 2**31 - 1):
        refuse_records(batch_of(varint(length) + PLAIN[1:]), "record 0: ")


def test_a_record_length_that_ends_inside_a_field() -> None:
    full = b"\0" + varint(2**40) + b"\0" + b"\x02k" + b"\x02v" + b"\x02" + b"\x02h" + b"\x02w"
    for size in range(6, len(full)):
        refuse_records(batch_of(varint(size) + full), "record 0: ")


def test_a_record_length_longer_than_its_fields() -> None:
    refuse_records(batch_of(body(PLAIN[1:] + b"\0")), "the length is larger than the record")


@pytest.mark.parametrize("length", [-(2**31), -2, 4, 2**31 - 1])
@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        (b"\0\0\0", b"abc", "the key's length"),
        (b"\0\0\0\x01", b"abc", "the value's length"),
        (b"\0\0\0\x01\x01\x02", b"abc", "a header key's length"),
        (b"\0\0\0\x01\x01\x02\0", b"abc", "a header value's length"),
    ],
)
def test_a_length_out_of_its_record(length: int, before: bytes, after: bytes, field: str) -> None:
    refuse_records(batch_of(body(before + varint(length) + after)), f"record 0: {field}")


def test_a_header_key_that_is_null() -> None:
    refuse_records(batch_of(body(b"\0\0\0\x01\x01\x02\x01\x01")), "a header key's length")


# ---- varints


LONG32 = b"\x80\x80\x80\x80\x80\x00"
LONG64 = b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"


@pytest.mark.parametrize(
    "record",
    [
        LONG32 + PLAIN[1:],
        body(b"\0" + LONG64 + b"\0\x01\x01\0"),
        body(b"\0\0" + LONG32 + b"\x01\x01\0"),
        body(b"\0\0\0" + LONG32 + b"\x01\0"),
        body(b"\0\0\0\x01" + LONG32 + b"\0"),
        body(b"\0\0\0\x01\x01" + LONG32),
        body(b"\0\0\0\x01\x01\x02" + LONG32 + b"\x01"),
        body(b"\0\0\0\x01\x01\x02\0" + LONG32),
    ],
)
def test_a_varint_too_long(record: bytes) -> None:
    refuse_records(batch_of(record), "a varint is too long")


@pytest.mark.parametrize(
    "record",
    [
        b"\xff\xff\xff\xff\x10" + PLAIN[1:],
        body(b"\0" + b"\xff" * 9 + b"\x02" + b"\0\x01\x01\0"),
        body(b"\0\0" + b"\x80\x80\x80\x80\x10" + b"\x01\x01\0"),
    ],
)
def test_a_varint_with_bits_that_have_no_place(record: bytes) -> None:
    refuse_records(batch_of(record), "a varint is too long")


def test_the_longest_varints_that_are_right() -> None:
    record = body(b"\0" + b"\xff" * 9 + b"\x01" + b"\x80\x80\x80\x80\x00" + b"\x01\x01\0")
    ((_, stats),) = check_batches(batch_of(record))
    assert stats is not None
    assert (stats.record_count, stats.min_timestamp) == (1, -(2**63))


def test_a_varint_without_end() -> None:
    for payload in (b"\x80", b"\x80\x80\x80\x80", b"\x0c\0\x80", b"\x0c\0\0\0\x01\x01\x80"):
        refuse_records(batch_of(payload), "record 0: ")


# ---- headers


@pytest.mark.parametrize("count", [-(2**31), -1, 2, 2**31 - 1])
def test_a_header_count_out_of_range(count: int) -> None:
    refuse_records(batch_of(body(b"\0\0\0\x01\x01" + varint(count) + b"\0\x01")), "record 0: ")


def test_a_header_bomb_that_its_bytes_can_hold() -> None:
    """Sixty thousand empty headers in one record: odd, but legal."""
    count = 1 << 16
    data = batch_of(body(b"\0\0\0\x01\x01" + varint(count) + b"\0\x01" * count))
    check_batches(data)
    columns = decode_columns(data, read_batches(data))
    assert columns.row_count == 1
    (record,) = decode_records(data[HEADER_SIZE:], header_of(data))
    assert len(record.headers) == count


def test_a_header_count_that_its_bytes_cannot_hold() -> None:
    bomb = b"\0\0\0\x01\x01" + varint(1 << 17) + b"\0\x01" * (1 << 16)
    refuse_records(batch_of(body(bomb)), "the header count is out of range")


# ---- truncation behind a good frame


def test_records_truncated_anywhere() -> None:
    ((_, header),) = reference.read_headers(SAMPLE)
    for size in range(len(SAMPLE) - HEADER_SIZE):
        refuse_records(
            reference.encode_batch(header, SAMPLE[HEADER_SIZE : HEADER_SIZE + size]), "record"
        )


def test_bytes_behind_the_last_record() -> None:
    ((_, header),) = reference.read_headers(SAMPLE)
    for more in (b"\0", b"\x02", PLAIN):
        refuse_records(reference.encode_batch(header, SAMPLE[HEADER_SIZE:] + more), "left over")


def test_a_step_of_any_size_comes_to_the_same_verdict() -> None:
    broken = SAMPLE[HEADER_SIZE:-1]
    batch = header_of(SAMPLE)
    for step in range(1, len(broken)):
        with pytest.raises(ProtocolError, match="record 2: the batch ends"):
            walk(broken, batch, step=step)
        walk(SAMPLE[HEADER_SIZE:], batch, step=step)
