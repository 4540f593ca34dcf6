"""Batch headers: reading, framing, patching."""

import pytest

from moldau._native.records import (
    NO_TIMESTAMP,
    Batch,
    BatchWriter,
    check_batches,
    crc32c,
    patch_offsets,
    patch_timestamps,
    read_batches,
)
from moldau.kernel.errors import CorruptBatchError

HEADER_SIZE = 61


def make_batch(count: int = 3, *, base_offset: int = 0, timestamp: int = 1000) -> bytes:
    writer = BatchWriter(base_offset=base_offset)
    for number in range(count):
        writer.append(timestamp + number, b"k%d" % number, b"v" * number)
    return writer.finish(
        leader_epoch=7, producer_id=42, producer_epoch=3, base_sequence=9, attributes=0x10
    )


def test_a_header_reads_back_as_written() -> None:
    data = make_batch(3, base_offset=100)
    (batch,) = read_batches(data)
    assert batch.position == 0
    assert batch.size == len(data)
    assert (batch.base_offset, batch.last_offset, batch.last_offset_delta) == (100, 102, 2)
    assert batch.leader_epoch == 7
    assert batch.crc == crc32c(data[21:])
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (42, 3, 9)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1002)
    assert batch.record_count == 3
    assert batch.is_transactional
    assert not batch.is_control
    assert not batch.is_log_append_time
    assert not batch.has_delete_horizon
    assert batch.codec == 0
    assert "base_offset=100" in repr(batch)


def test_batches_follow_each_other_and_a_partial_one_at_the_end_is_left_alone() -> None:
    first, second = make_batch(2), make_batch(4, base_offset=2)
    for cut in range(len(second)):
        batches = read_batches(first + second[:cut])
        assert [b.base_offset for b in batches] == [0]
    batches = read_batches(first + second)
    assert [(b.position, b.base_offset) for b in batches] == [(0, 0), (len(first), 2)]


def test_a_range_of_the_buffer_can_be_read() -> None:
    data = make_batch(2)
    padded = b"x" * 5 + data + b"y" * 5
    (batch,) = read_batches(padded, 5, 5 + len(data))
    assert batch.position == 5
    ((checked, _),) = check_batches(padded, 5, 5 + len(data))
    assert checked.position == 5


@pytest.mark.parametrize(("start", "end"), [(-1, 10), (5, 4), (0, 10**6), (10**6, None)])
def test_a_range_outside_the_buffer_is_refused(start: int, end: int | None) -> None:
    with pytest.raises(ValueError, match="not a range"):
        read_batches(make_batch(), start, end)
    with pytest.raises(ValueError, match="not a range"):
        check_batches(make_batch(), start, end)


def test_checking_gives_stats() -> None:
    writer = BatchWriter()
    writer.append(5, None, b"")
    writer.append(9, b"k", None)
    writer.append(9, b"", b"v")
    writer.append(NO_TIMESTAMP, None, b"v")
    ((batch, stats),) = check_batches(writer.finish())
    assert stats is not None
    assert batch.record_count == stats.record_count == 4
    assert (stats.max_timestamp, stats.max_timestamp_delta, stats.min_timestamp) == (9, 1, 5)
    assert stats.keyless_count == 2
    assert "keyless_count=2" in repr(stats)


def test_stats_without_timestamps() -> None:
    writer = BatchWriter()
    writer.append(NO_TIMESTAMP, None, b"v")
    ((_, stats),) = check_batches(writer.finish())
    assert stats is not None
    assert (stats.max_timestamp, stats.max_timestamp_delta, stats.min_timestamp) == (-1, -1, -1)


def test_a_compressed_batch_is_left_to_the_caller() -> None:
    writer = BatchWriter()
    writer.append(5, None, b"")
    data = writer.finish(codec=4, compress=bytes)
    ((batch, stats),) = check_batches(data + make_batch())[:1]
    assert batch.codec == 4
    assert stats is None


def test_patching_offsets_leaves_the_checksum_alone() -> None:
    data = bytearray(b"pad" + make_batch())
    (batch,) = read_batches(data, 3)
    patch_offsets(data, batch, base_offset=2**40, leader_epoch=11)
    (again,) = read_batches(data, 3)
    assert (again.base_offset, again.leader_epoch) == (2**40, 11)
    assert (batch.base_offset, batch.leader_epoch) == (2**40, 11)
    assert data[:3] == b"pad"


def test_patching_timestamps_renews_the_checksum() -> None:
    data = bytearray(make_batch())
    (batch,) = read_batches(data)
    patch_timestamps(memoryview(data), batch, max_timestamp=77, log_append_time=True)
    (again,) = read_batches(data)
    assert again.max_timestamp == batch.max_timestamp == 77
    assert again.crc == batch.crc
    assert again.is_log_append_time
    assert again.is_transactional
    patch_timestamps(data, batch, max_timestamp=1002, log_append_time=False)
    assert data == make_batch()


def test_patching_needs_a_writable_buffer_that_holds_the_batch() -> None:
    data = make_batch()
    (batch,) = read_batches(data)
    with pytest.raises(BufferError):
        patch_offsets(memoryview(data), batch, base_offset=1, leader_epoch=1)
    with pytest.raises(ValueError, match="not in this buffer"):
        patch_offsets(bytearray(data[:-1]), batch, base_offset=1, leader_epoch=1)
    with pytest.raises(ValueError, match="not in this buffer"):
        patch_timestamps(bytearray(), batch, max_timestamp=1, log_append_time=True)


def test_a_batch_that_was_never_read_is_in_no_buffer() -> None:
    with pytest.raises(ValueError, match="not in this buffer"):
        patch_offsets(bytearray(1000), Batch(), base_offset=1, leader_epoch=1)


def test_a_wrong_checksum_can_be_ignored_when_reading() -> None:
    data = bytearray(make_batch())
    data[-1] ^= 1
    with pytest.raises(CorruptBatchError, match="checksum"):
        read_batches(data)
    assert len(read_batches(data, check_crc=False)) == 1
