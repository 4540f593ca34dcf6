"""A batch with bad records: it fails, goes without them, or gives only them."""

import pyarrow as pa
import pytest

from moldau.pipelines.decoding.batches import DecodeError, decode_batch
from moldau.pipelines.decoding.formats import make_decoder

SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
    }
)
INT, STRING = make_decoder("int"), make_decoder("string")


def batch(*records: tuple[bytes | None, bytes | None]) -> pa.RecordBatch:
    rows = [
        {"key": key, "value": value, "topic": "orders", "partition": 3, "offset": 100 + at}
        for at, (key, value) in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


GOOD = batch((b"\0\0\0\1", b"one"), (None, b"two"), (b"\0\0\0\3", None))
MIXED = batch((b"\0\0\0\1", b"one"), (b"x", b"two"), (b"\0\0\0\3", b"\xff"), (b"y", b"\xff"))


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_good_records_are_decoded_and_tombstones_stay(on_error: str) -> None:
    decoded = decode_batch(GOOD, INT, STRING, on_error)
    assert decoded.schema.names == SCHEMA.names
    assert decoded.column("key").to_pylist() == [1, None, 3]
    assert decoded.column("value").to_pylist() == ["one", "two", None]
    assert decoded.column("offset") == GOOD.column("offset")


def test_without_a_decoder_bytes_stay() -> None:
    assert decode_batch(MIXED, None, None, "fail") == MIXED


def test_a_failure_names_the_record_and_the_way_out() -> None:
    words = (
        r"topic orders, partition 3, offset 101 does not decode: key: 1 bytes, int has 4 "
        r"\(as 2 more of its batch\); .* decodeErrors=skip"
    )
    with pytest.raises(DecodeError, match=words):
        decode_batch(MIXED, INT, STRING, "fail")


def test_bad_records_are_left_out() -> None:
    decoded = decode_batch(MIXED, INT, STRING, "skip")
    assert decoded.column("offset").to_pylist() == [100]
    assert decoded.column("value").to_pylist() == ["one"]


def test_only_bad_records_come_as_they_are_with_a_reason() -> None:
    bad = decode_batch(MIXED, INT, STRING, "only")
    assert bad.schema == SCHEMA.append(pa.field("reason", pa.string()))
    assert bad.drop_columns("reason") == MIXED[1:]
    key, value, both = bad.column("reason").to_pylist()
    assert key == both == "key: 1 bytes, int has 4"
    assert value.startswith("value: 'utf-8' codec")
    assert decode_batch(GOOD, INT, STRING, "only").num_rows == 0


def test_marked_records_all_come_as_they_are() -> None:
    marked = decode_batch(MIXED, INT, STRING, "mark")
    assert marked.drop_columns("reason") == MIXED
    assert [reason is None for reason in marked.column("reason").to_pylist()] == [True] + 3 * [
        False
    ]


def test_all_records_may_be_decoded_with_reasons_where_they_are_not() -> None:
    decoded = decode_batch(MIXED, INT, STRING, "note")
    assert decoded.column("key").to_pylist() == [1, None, 3, None]
    assert decoded.column("value").to_pylist() == ["one", "two", None, None]
    reasons = decoded.column("reason").to_pylist()
    assert [reason is None for reason in reasons] == [True, False, False, False]
    assert decode_batch(GOOD, INT, STRING, "note").column("reason").null_count == len(GOOD)
