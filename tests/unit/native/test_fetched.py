"""Records read some at a time, compared with all at once."""

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.fetched import Record, RecordReader
from moldau._native.records import decode_records
from moldau.kernel.errors import InvalidRecordError
from tests.reference import records as reference
from tests.unit.native.samples import (
    HEADER_SIZE,
    PLAIN,
    RELAXED,
    batch_of,
    header_of,
    record_lists,
    write,
)


def _fields(record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in ("offset", "key", "value", "headers"))


@RELAXED
@given(
    record_lists(gaps=True),
    st.lists(st.integers(1, 4), max_size=12),
    st.integers(0, 500),
    st.booleans(),
)
def test_reading_in_parts_gives_what_reading_at_once_gives(
    records: list[reference.Record], counts: list[int], start: int, appended: bool
) -> None:
    data = write(records, base_offset=0, leader_epoch=3, attributes=8 if appended else 0)
    batch = header_of(data)
    expected = [each for each in decode_records(data[HEADER_SIZE:], batch) if each.offset >= start]
    reader = RecordReader(data[HEADER_SIZE:], batch, "t", 7)
    found: list[Record] = []
    for count in [*counts, 1000]:
        before = len(found)
        more = reader.read(found, count, start)
        assert len(found) - before == count if more else len(found) - before <= count
    assert not reader.read(found, 1, start)
    assert [_fields(each) for each in found] == [_fields(each) for each in expected]
    assert [each.timestamp_ms for each in found] == [each.timestamp for each in expected]
    kind = "LogAppendTime" if appended else "CreateTime"
    assert {(each.topic, each.partition, each.leader_epoch) for each in found} <= {("t", 7, 3)}
    assert {each.timestamp_type for each in found} <= {kind}


@pytest.mark.parametrize("payload", [PLAIN[:-1], PLAIN + b"\0", b"\x80" * 20, b""])
def test_a_malformed_batch_is_refused(payload: bytes) -> None:
    reader = RecordReader(payload, header_of(batch_of(payload)), "t", 0)
    with pytest.raises(InvalidRecordError):
        reader.read([], 10)
    assert not reader.read([], 10), "it is at its end"


def test_a_reader_keeps_its_payload_until_the_end() -> None:
    payload = bytearray(PLAIN)
    reader = RecordReader(payload, header_of(batch_of(PLAIN)), "t", 0)
    with pytest.raises(BufferError):
        payload.append(0)
    assert not reader.read([], 10)
    payload.append(0)
    other = RecordReader(payload, header_of(batch_of(PLAIN)), "t", 0)
    other.close()
    other.close()
    payload.append(0)
    again = RecordReader(PLAIN, header_of(batch_of(PLAIN)), "t", 0)
    with pytest.raises(ValueError, match="once"):
        again.__init__(PLAIN, header_of(batch_of(PLAIN)), "t", 0)  # type: ignore[misc]


def test_a_reader_in_a_cycle_lets_its_payload_go() -> None:
    payload = bytearray(PLAIN)
    # The collector takes apart what was made first, first.
    reader = RecordReader(memoryview(payload), header_of(batch_of(PLAIN)), "t", 0)
    cycle: list[object] = [reader]
    cycle.append(cycle)
    del reader, cycle
    gc.collect()
    payload.append(0)


def test_records_can_be_made_and_compared() -> None:
    made = Record("t", 0, 5, timestamp_ms=7, key=b"k", headers=[("h", None)])
    assert made == Record("t", 0, 5, timestamp_ms=7, key=b"k", headers=[("h", None)])
    assert made != Record("t", 0, 5, timestamp_ms=7, key=b"k", headers=[("h", None)], value=b"")
    assert made.value is None
    with pytest.raises(TypeError):
        hash(made)
