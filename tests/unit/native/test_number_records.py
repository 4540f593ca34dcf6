"""Records that a client has numbered wrongly."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.records import check_batches, number_records
from moldau.kernel.errors import InvalidRecordError, OffsetDeltaError
from moldau.records.compression import Codec, compress
from tests.reference.records import Header, Record, build, encode_batch, encode_record

DELTAS = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=200)
PRODUCER = {"producer_id": 42, "producer_epoch": 3, "base_sequence": 9, "attributes": 0x10}


def records_with(deltas: list[int]) -> list[Record]:
    draw = random.Random(len(deltas))
    return [
        Record(delta, 1000 + 7 * n, b"k" * draw.randrange(9), b"v" * draw.randrange(200), ())
        for n, delta in enumerate(deltas)
    ]


@given(DELTAS)
def test_records_are_numbered_as_if_the_client_had(deltas: list[int]) -> None:
    wrong = records_with(deltas)
    data = build(wrong, last_offset_delta=len(deltas) - 1, **PRODUCER)
    right = [record._replace(offset=n) for n, record in enumerate(wrong)]
    assert number_records(data) == build(right, **PRODUCER)


@pytest.mark.parametrize("deltas", [[0, 0, 0], [2, 1, 0], [0, 2, 1], [0, -1, -2], [1, 2, 3]])
def test_the_check_names_wrong_numbers(deltas: list[int]) -> None:
    data = build(records_with(deltas), last_offset_delta=2)
    with pytest.raises(OffsetDeltaError, match=r"record \d: the offset delta is out of order"):
        check_batches(data)
    numbered = number_records(data)
    assert numbered is not None
    check_batches(numbered)


def test_what_is_compressed_cut_or_more_than_one_batch_is_left_alone() -> None:
    whole = build(records_with([0, 0, 0]), last_offset_delta=2)
    payload = bytes(compress(Codec.GZIP, whole[61:]))
    header = Header(attributes=Codec.GZIP, last_offset_delta=2, record_count=3)
    assert number_records(encode_batch(header, payload)) is None
    assert number_records(whole + whole) is None
    for size in range(len(whole)):
        assert number_records(whole[:size]) is None


@given(st.binary(max_size=60), st.integers(1, 4))
def test_no_payload_is_read_beyond_its_end(payload: bytes, count: int) -> None:
    """What is not a record is left alone, or the check that follows refuses it."""
    data = encode_batch(Header(last_offset_delta=count - 1, record_count=count), payload)
    numbered = number_records(data)
    assert numbered is None or "offset delta" not in fault(numbered)


def fault(data: bytearray) -> str:
    """Say what the check finds wrong, if anything."""
    try:
        check_batches(data)
    except InvalidRecordError as error:
        return str(error)
    return ""


def test_a_record_that_is_cut_is_left_alone() -> None:
    record = encode_record(Record(0, 0, b"key", b"value"), 0, 0)
    for size in range(1, len(record)):
        header = Header(last_offset_delta=1, record_count=2)
        assert number_records(encode_batch(header, record + record[:size])) is None
