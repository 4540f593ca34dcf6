"""The record walk: the same verdict in one piece and in many."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.records import RecordStats, RecordWalk, check_batches, read_batches
from moldau.kernel.errors import InvalidRecordError
from tests.reference import records as reference
from tests.reference.records import Record, Stats
from tests.unit.native.samples import (
    HEADER_SIZE,
    PLAIN,
    RELAXED,
    batch_of,
    header_of,
    record_lists,
    write,
)


def comparable(stats: RecordStats | None) -> Stats:
    return Stats(*(getattr(stats, name) for name in Stats._fields))


def walk_in_pieces(data: bytes, cuts: list[int], *, consecutive: bool = True) -> Stats:
    walk = RecordWalk(header_of(data), consecutive=consecutive)
    places = [0, *sorted(cuts), len(data) - HEADER_SIZE]
    payload = data[HEADER_SIZE:]
    for start, end in itertools.pairwise(places):
        walk.feed(payload[start:end])
    return comparable(walk.finish())


@pytest.mark.long
@RELAXED
@given(record_lists())
def test_stats_are_the_references(records: list[Record]) -> None:
    data = write(records)
    ((_, stats),) = check_batches(data)
    ((_, header),) = reference.read_headers(data)
    expected = reference.stats(
        header, reference.read_records(header, data[HEADER_SIZE:], consecutive=True)
    )
    assert comparable(stats) == expected


@pytest.mark.long
@RELAXED
@given(record_lists(gaps=True), st.data())
def test_pieces_give_what_the_whole_gives(records: list[Record], draw: st.DataObject) -> None:
    data = write(records)
    cuts = draw.draw(st.lists(st.integers(0, len(data) - HEADER_SIZE), max_size=5))
    assert walk_in_pieces(data, cuts, consecutive=False) == walk_in_pieces(
        data, [], consecutive=False
    )


def test_byte_by_byte_with_long_fields() -> None:
    rng = random.Random(3)
    records = [
        Record(
            delta,
            rng.choice((0, 2**62, -(2**63))),
            rng.randbytes(rng.choice((0, 1, 63, 64, 9000))),
            None,
            (("clé", rng.randbytes(100)), ("", None)),
        )
        for delta in range(5)
    ]
    data = write(records)
    every_byte = list(range(len(data) - HEADER_SIZE))
    assert walk_in_pieces(data, every_byte) == walk_in_pieces(data, [])


def test_gaps_are_for_stored_batches_only() -> None:
    data = write([Record(0, 1, None, b"v"), Record(2, 2, None, b"v")])
    assert walk_in_pieces(data, [], consecutive=False).record_count == 2
    with pytest.raises(InvalidRecordError, match="does not fit the record count"):
        RecordWalk(header_of(data))


def test_an_empty_batch_is_for_stored_batches_only() -> None:
    data = batch_of(b"", count=0, last_offset_delta=4)
    assert walk_in_pieces(data, [], consecutive=False) == Stats(0, -1, -1, -1, 0)
    with pytest.raises(InvalidRecordError, match="count is out of range"):
        RecordWalk(header_of(data))


def test_a_range_longer_than_its_records_is_for_stored_batches_only() -> None:
    data = batch_of(PLAIN, last_offset_delta=9)
    assert walk_in_pieces(data, [], consecutive=False).record_count == 1
    with pytest.raises(InvalidRecordError, match="does not fit"):
        check_batches(data)


def test_a_walk_that_failed_stays_failed() -> None:
    walk = RecordWalk(header_of(batch_of(PLAIN)))
    walk.feed(PLAIN)
    with pytest.raises(InvalidRecordError, match="left over"):
        walk.feed(b"x")
    with pytest.raises(InvalidRecordError, match="left over"):
        walk.feed(b"")
    with pytest.raises(InvalidRecordError, match="left over"):
        walk.finish()


def test_the_walk_needs_a_batch() -> None:
    with pytest.raises(TypeError):
        RecordWalk(None)  # type: ignore[arg-type]
    walk = RecordWalk.__new__(RecordWalk)
    with pytest.raises(InvalidRecordError):
        walk.feed(b"x")


def test_the_lock_is_released_for_large_payloads_with_the_same_result() -> None:
    data = write([Record(delta, delta, b"k", b"v" * 500) for delta in range(1000)])
    assert len(data) > 1 << 17
    ((_, stats),) = check_batches(data)
    assert comparable(stats) == Stats(1000, 999, 999, 0, 0)
    assert len(read_batches(data)) == 1
