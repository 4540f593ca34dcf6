"""The log kernel: a segment's end, the search for offsets, the scan after a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.log import Ordinary, Tail, assign, find_batch
from moldau._native.records import Record, check_batches, read_batches
from moldau._native.segment_scan import SegmentScan, find_whole_batch, read_header
from moldau.kernel.errors import CorruptBatchError
from moldau.records.batch import build_batch

INTERVAL = 150


def segment_of(counts: list[int], *, base_offset: int = 10) -> bytes:
    """Build batches with these numbers of records, every third of an idempotent producer."""
    data = b""
    for number, count in enumerate(counts):
        records = [Record(base_offset + n, 100 + number, b"k", b"v" * 9) for n in range(count)]
        fields = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
        data += build_batch(
            records, leader_epoch=number // 4, **(fields if number % 3 == 0 else {})
        )
        base_offset += count
    return data


def tail_of(base_offset: int = 10) -> Tail:
    tail = Tail(base_offset, created_ms=0)
    tail.limit(bytes_max=1 << 30, age_ms_max=-1, interval_bytes=INTERVAL, index_bytes_max=1 << 20)
    return tail


def outcome(tail: Tail) -> tuple[object, ...]:
    entries = tail.take_entries()
    return (
        (tail.end_offset, tail.position, tail.max_timestamp, tail.max_timestamp_offset),
        entries and (entries.offsets.tolist(), entries.positions.tolist()),
        entries and (entries.timestamps.tolist(), entries.timestamp_offsets.tolist()),
    )


counts = st.lists(st.integers(1, 9), min_size=1, max_size=12)


@given(counts, st.data())
def test_a_scan_in_any_chunks_finds_what_staging_found(numbers: list[int], data) -> None:
    segment = segment_of(numbers)
    batches = read_batches(segment)
    staged = tail_of()
    assert staged.stage(batches, 0, 0) == len(batches)
    staged.mark()
    check_from = data.draw(st.integers(0, 100))
    scan = SegmentScan(tail_of(), size=len(segment), check_from=check_from)
    found = []
    while scan.next_position < len(segment):
        size = data.draw(st.integers(1, 200))
        found += scan.feed(segment[scan.next_position : scan.next_position + size])
    scan.finish()
    assert scan.failure is None
    assert outcome(scan.tail) == outcome(staged)
    expected = [b.position for b in batches if b.producer_id >= 0]
    assert [b.position for b in found] == expected
    starts = {b.leader_epoch: b.base_offset for b in reversed(batches)}
    assert scan.epochs == sorted(starts.items())


@given(counts, st.data())
def test_a_scan_stops_before_the_first_batch_that_is_not_whole(numbers: list[int], data) -> None:
    segment = segment_of(numbers)
    end = data.draw(st.integers(0, len(segment)))
    batches = read_batches(segment)
    whole = [b for b in batches if b.position + b.size <= end]
    scan = SegmentScan(tail_of(), size=end, check_from=0)
    scan.feed(segment[:end])
    if scan.failure is None:
        scan.finish()
    assert scan.tail.position == sum(b.size for b in whole)
    assert (scan.failure is None) == (scan.tail.position == end)


def test_a_scan_says_what_is_wrong() -> None:
    segment = bytearray(segment_of([2, 2, 2]))
    second = read_batches(segment)[1]

    def failure(position: int, content: bytes) -> str | None:
        damaged = bytearray(segment)
        at = second.position + position
        damaged[at : at + len(content)] = content
        scan = SegmentScan(tail_of(), size=len(damaged), check_from=0)
        scan.feed(damaged)
        assert scan.tail.end_offset == 12
        with pytest.raises(ValueError, match="failed already"):
            scan.feed(b"")
        return scan.failure

    assert failure(0, bytes(8)) == "the offsets do not follow"
    assert failure(0, b"\x7f" + b"\xff" * 7) == "the offsets do not follow"
    assert failure(8, bytes(4)) == "the length is too small for a batch"
    assert failure(8, b"\x7f") == "the file ends inside"
    assert failure(16, b"\x01") == "the magic is not 2"
    assert failure(30, b"\x01") == "the checksum is wrong"


def test_an_epoch_that_goes_back_is_stale() -> None:
    newer = build_batch([Record(10, 1, b"k", b"v")], leader_epoch=5)
    older = build_batch([Record(11, 1, b"k", b"v")], leader_epoch=4)
    scan = SegmentScan(tail_of(), size=len(newer + older), check_from=0)
    scan.feed(newer + older)
    assert (scan.tail.end_offset, scan.failure) == (
        11,
        "the leader epoch is older than the one before",
    )


@given(counts, st.integers(0, 130), st.integers(27, 400))
def test_finding_an_offset_window_by_window(numbers: list[int], offset: int, window: int) -> None:
    segment = segment_of(numbers)
    expected = next((b for b in read_batches(segment) if b.last_offset >= offset), None)
    position = 0
    while position < len(segment):
        step, size, last_offset = find_batch(segment[position : position + window], offset)
        position += step
        if size:
            assert expected is not None
            assert (position, size) == (expected.position, expected.size)
            assert last_offset == expected.last_offset
            return
    assert expected is None


def test_what_is_no_batch_is_not_found() -> None:
    with pytest.raises(CorruptBatchError):
        find_batch(bytes(100), 0)
    with pytest.raises(CorruptBatchError):
        read_header(bytes(61))
    with pytest.raises(CorruptBatchError):
        read_header(b"short")


def test_a_whole_batch_is_found_at_any_byte() -> None:
    segment = segment_of([2, 3])
    second = read_batches(segment)[1]
    assert find_whole_batch(segment[1:], 10) == second.position - 1
    assert find_whole_batch(segment, 10) == 0
    assert find_whole_batch(segment, 13) == -1
    assert find_whole_batch(segment[1:-1], 10) == -1
    assert find_whole_batch(b"", 10) == -1


def test_rewinding_forgets_what_was_staged() -> None:
    batches = read_batches(segment_of([3] * 10))
    tail = tail_of()
    tail.stage(batches[:5], 0, 0)
    tail.mark()
    tail.stage(batches[5:], 0, 0)
    tail.rewind()
    other = tail_of()
    other.stage(batches[:5], 0, 0)
    other.mark()
    assert outcome(tail) == outcome(other)


def test_assigning_stays_inside_the_buffer() -> None:
    data = bytearray(segment_of([2], base_offset=0))
    batches = read_batches(data)
    with pytest.raises(ValueError, match="not in this buffer"):
        assign(data[:-1], batches, 5, 1, -1)
    with pytest.raises(BufferError):
        assign(bytes(data), batches, 5, 1, -1)
    assert assign(data, batches, 5, 1, 777) == 7
    (batch,) = read_batches(data)  # with its checksum
    assert (batch.base_offset, batch.leader_epoch, batch.max_timestamp) == (5, 1, 777)
    assert batch.is_log_append_time


def test_what_is_not_ordinary_is_looked_at_closer() -> None:
    data = segment_of([2], base_offset=0)
    checked = check_batches(data)
    usual = {"batch_bytes_max": 1 << 20, "total_bytes_max": 1 << 20}
    usual |= {"before_ms_max": 10, "after_ms_max": 10, "is_keyed": True}
    assert Ordinary(**usual).take(checked, True, 100) == [checked[0][0]]
    for now_ms in (89, 111):
        assert Ordinary(**usual).take(checked, True, now_ms) is None
    for limit in ("batch_bytes_max", "total_bytes_max"):
        assert Ordinary(**usual | {limit: 10}).take(checked, True, 100) is None
    assert Ordinary(**usual).take([], False, 100) is None
    assert Ordinary(**usual).take(checked * 2, True, 100) is None
    assert Ordinary(**usual).take(checked * 2, False, 100) == [checked[0][0]] * 2
    before = bytearray(build_batch([Record(0, -(1 << 62), b"k", b"v"), Record(1, 100, b"k", b"v")]))
    assert Ordinary(**usual).take(check_batches(before), True, 100) is None
