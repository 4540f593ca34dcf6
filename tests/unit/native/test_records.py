"""Records as Python values, against the readable reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.records import NO_TIMESTAMP, Record, decode_records
from tests.reference import records as reference
from tests.unit.native.samples import (
    HEADER_SIZE,
    batch_of,
    body,
    header_of,
    record_lists,
    values,
    write,
)


@given(record_lists(gaps=True), st.integers(0, 2**62))
def test_records_read_back_as_written(records: list[reference.Record], base_offset: int) -> None:
    records = [r._replace(offset=r.offset + base_offset) for r in records]
    data = write(records, base_offset=base_offset)
    decoded = decode_records(data[HEADER_SIZE:], header_of(data))
    assert [values(record) for record in decoded] == records


@given(record_lists(gaps=True))
def test_the_writer_writes_what_the_reference_writes(records: list[reference.Record]) -> None:
    assert write(records) == reference.build(records)


def test_under_log_append_time_every_record_has_the_batchs_time() -> None:
    records = [reference.Record(0, 5, None, b""), reference.Record(1, 9, None, b"")]
    data = reference.build(records, attributes=0x08, max_timestamp=1234)
    decoded = decode_records(data[HEADER_SIZE:], header_of(data))
    assert [record.timestamp for record in decoded] == [1234, 1234]


def test_a_header_key_that_is_not_utf8_is_repaired() -> None:
    data = batch_of(body(b"\0\0\0\x01\x01\x02" + b"\x04\xffa" + b"\x01"))
    (record,) = decode_records(data[HEADER_SIZE:], header_of(data))
    assert record.headers == (("\ufffda", None),)


def test_hostile_offsets_and_timestamps_wrap_as_in_java() -> None:
    data = batch_of(
        body(b"\0\x02\0\x01\x01\0"),
        base_offset=2**63 - 1,
        last_offset_delta=5,
        base_timestamp=2**63 - 1,
    )
    batch = header_of(data)
    (record,) = decode_records(data[HEADER_SIZE:], batch)
    assert record.timestamp == -(2**63)
    assert batch.last_offset == -(2**63) + 4


def test_records_compare_by_value() -> None:
    record = Record(1, NO_TIMESTAMP, b"k", None, [("h", b"x")])
    assert record == Record(1, NO_TIMESTAMP, b"k", None, (("h", b"x"),))
    assert record != Record(2, NO_TIMESTAMP, b"k", None, (("h", b"x"),))
    assert record != (1, NO_TIMESTAMP, b"k", None, (("h", b"x"),))
    assert repr(record) == (
        "Record(offset=1, timestamp=-1, key=b'k', value=None, headers=(('h', b'x'),))"
    )
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)


def test_a_batch_is_needed() -> None:
    with pytest.raises(TypeError):
        decode_records(b"", None)  # type: ignore[arg-type]
