"""Arrow columns to batches, with pyarrow as the giver."""

import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.columns import decode_columns
from moldau._native.records import BatchWriter, decode_records, read_batches
from moldau.kernel.errors import ProtocolError
from tests.reference.records import Record
from tests.unit.native.samples import (
    HEADER_SIZE,
    RELAXED,
    encode_columns,
    header_of,
    record_lists,
    values,
    write,
)

PAIRS = pa.struct([("key", pa.string()), ("value", pa.binary())])


def decoded(batches: list[bytes]) -> list[Record]:
    """Decode batches whose offsets all begin at 0 to records that count on."""
    records: list[Record] = []
    for data in batches:
        for record in decode_records(data[HEADER_SIZE:], header_of(data)):
            records.append(values(record)._replace(offset=len(records)))
    return records


def to_arrow(records: list[Record], **types: pa.DataType) -> pa.RecordBatch:
    rows: dict[str, list[Any]] = {
        "key": [r.key for r in records],
        "value": [r.value for r in records],
        "timestamp": [r.timestamp for r in records],
        "headers": [list(r.headers) for r in records],
    }
    defaults = {
        "key": pa.binary(),
        "value": pa.binary(),
        "timestamp": pa.int64(),
        "headers": pa.list_(PAIRS),
    }
    return pa.record_batch(
        {name: pa.array(rows[name], types.get(name, kind)) for name, kind in defaults.items()}
    )


@pytest.mark.long
@RELAXED
@given(record_lists(size_max=20), st.integers(0, 400))
def test_records_come_back(records: list[Record], batch_bytes_max: int) -> None:
    batches = encode_columns(to_arrow(records), batch_bytes_max=batch_bytes_max)
    assert decoded(batches) == records
    for data in batches:
        batch = header_of(data)
        assert batch.base_offset == 0
        assert len(data) <= batch_bytes_max or batch.record_count == 1
        assert batch.last_offset_delta == batch.record_count - 1


@pytest.mark.long
@RELAXED
@given(record_lists(size_max=20))
def test_one_batch_has_the_bytes_that_the_writer_writes(records: list[Record]) -> None:
    assert encode_columns(to_arrow(records)) == [write(records)]


@pytest.mark.long
@RELAXED
@given(record_lists(size_max=20), st.data())
def test_slices_of_slices(records: list[Record], draw: st.DataObject) -> None:
    arrow = to_arrow(records)
    for _ in range(2):
        start = draw.draw(st.integers(0, arrow.num_rows))
        length = draw.draw(st.integers(0, arrow.num_rows - start))
        arrow, records = arrow.slice(start, length), records[start : start + length]
    expected = [record._replace(offset=n) for n, record in enumerate(records)]
    assert decoded(encode_columns(arrow)) == expected
    # As a struct array the slice is one of the parent, not of each column.
    assert decoded(encode_columns(arrow.to_struct_array())) == expected


@pytest.mark.long
@RELAXED
@given(record_lists(size_max=20))
def test_what_was_decoded_can_be_encoded(records: list[Record]) -> None:
    data = write(records)
    assert encode_columns(decode_columns(data, read_batches(data))) == [data]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_bytes_and_text_large_or_not(kind: pa.DataType) -> None:
    key = pa.array([b"a", None], pa.binary()).cast(kind)
    value = pa.array([None, "é".encode()], pa.binary()).cast(kind)
    arrow = pa.record_batch({"key": key, "value": value})
    assert [(r.key, r.value) for r in decoded(encode_columns(arrow))] == [
        (b"a", None),
        (None, "é".encode()),
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(PAIRS),
        pa.large_list(PAIRS),
        pa.map_(pa.string(), pa.binary()),
        pa.list_(pa.struct([("k", pa.large_string()), ("v", pa.large_binary())])),
        pa.list_(pa.struct([("k", pa.string()), ("v", pa.string())])),
    ],
)
def test_headers_in_lists_and_maps(kind: pa.DataType) -> None:
    rows = [[("a", b"x"), ("b", None)], None, [], [("a", b"y")]]
    arrow = pa.record_batch({"value": pa.nulls(4), "headers": to_kind(rows, kind)})
    assert [r.headers for r in decoded(encode_columns(arrow))] == [
        (("a", b"x"), ("b", None)),
        (),
        (),
        (("a", b"y"),),
    ]
    assert [r.headers for r in decoded(encode_columns(arrow.slice(3)))] == [(("a", b"y"),)]


def to_kind(rows: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        return pa.array(rows, kind)
    names = [kind.value_type.field(n).name for n in range(2)]
    return pa.array(
        [
            row if row is None else [dict(zip(names, pair, strict=True)) for pair in row]
            for row in rows
        ],
        kind,
    )


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (pa.int64(), 1234, 1234),
        (pa.timestamp("s"), 12, 12_000),
        (pa.timestamp("ms", "UTC"), 1234, 1234),
        (pa.timestamp("us", "Europe/Prague"), 1_234_999, 1234),
        (pa.timestamp("ns"), 1_234_999_999, 1234),
        (pa.timestamp("us"), -1, -1),
        (pa.timestamp("us"), -1000, -1),
        (pa.timestamp("us"), -1001, -2),
        (pa.timestamp("s"), -2, -2000),
    ],
)
def test_timestamps_of_any_unit(kind: pa.DataType, number: int, expected: int) -> None:
    stamps = pa.array([number, None], pa.int64()).cast(kind)
    arrow = pa.record_batch({"value": pa.nulls(2), "timestamp": stamps})
    records = decoded(encode_columns(arrow, timestamp=77))
    assert [record.timestamp for record in records] == [expected, 77]


def test_a_timestamp_out_of_range_names_the_row() -> None:
    stamps = pa.array([0, 2**62], pa.timestamp("s"))
    with pytest.raises(ProtocolError, match="row 1: the timestamp"):
        encode_columns(pa.record_batch({"value": pa.nulls(2), "timestamp": stamps}))


def test_value_alone() -> None:
    arrow = pa.record_batch({"value": [b"a", b"b"], "partition": [1, 2]})
    assert decoded(encode_columns(arrow)) == [
        Record(0, -1, None, b"a"),
        Record(1, -1, None, b"b"),
    ]


def test_no_rows_make_no_batch() -> None:
    assert encode_columns(to_arrow([])) == []


def test_who_sends_it_is_left_open() -> None:
    arrow = pa.record_batch({"value": [b"x" * 100] * 5})
    for batch in map(header_of, encode_columns(arrow, batch_bytes_max=200)):
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
        assert batch.leader_epoch == -1


def test_compression() -> None:
    arrow = pa.record_batch({"value": [b"x" * 100] * 5})
    (plain,) = encode_columns(arrow)
    (data,) = encode_columns(arrow, codec=1, compress=zlib.compress)
    assert header_of(data).codec == 1
    assert zlib.decompress(data[HEADER_SIZE:]) == plain[HEADER_SIZE:]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": [b"k"]}, "no column 'value'"),
        ({"value": [1]}, "column 'value': Arrow type 'l'"),
        ({"value": pa.array(["a"]).dictionary_encode()}, "column 'value': Arrow dictionary"),
        ({"value": [b""], "key": [1.5]}, "column 'key': Arrow type 'g'"),
        ({"value": [b""], "timestamp": ["now"]}, "column 'timestamp': Arrow type 'u'"),
        ({"value": [b""], "timestamp": pa.array([1], pa.int32())}, "column 'timestamp'"),
        ({"value": [b""], "headers": [["x"]]}, "column 'item'"),
        ({"value": [b""], "headers": [[{"key": "x"}]]}, "a key and a value"),
        ({"value": [b""], "headers": [[{"k": b"x", "v": b""}]]}, "column 'k': Arrow type 'z'"),
        ({"value": [b""], "headers": [[{"k": None, "v": b""}]]}, "column 'k'|its key, is null"),
        (
            {"value": [b""], "headers": pa.array([[{"key": None, "value": b""}]], pa.list_(PAIRS))},
            "row 0: a header, or its key, is null",
        ),
        (
            {"value": [b""], "headers": pa.array([[None]], pa.list_(PAIRS))},
            "row 0: a header, or its key, is null",
        ),
    ],
)
def test_what_cannot_be_encoded(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        encode_columns(pa.record_batch(columns))


def test_rows_that_are_null() -> None:
    rows = pa.array([{"value": b"a"}, None], pa.struct([("value", pa.binary())]))
    with pytest.raises(ProtocolError, match="row 1 is null"):
        encode_columns(rows)
    assert len(encode_columns(rows.slice(0, 1))) == 1


def test_what_is_no_record_batch() -> None:
    with pytest.raises(ProtocolError, match="not a record batch"):
        encode_columns(pa.array([1, 2]))
    with pytest.raises(TypeError, match="Arrow data is wanted"):
        encode_columns([b"a"])


class Forged:
    """Gives capsules that are none of Arrow's."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        array, schema = pa.record_batch({"value": [b"a"]}).__arrow_c_array__()
        return schema, array


def test_capsules_of_another_kind() -> None:
    with pytest.raises(ValueError, match="PyCapsule"):
        encode_columns(Forged())


class Taken:
    """Gives capsules that pyarrow has emptied before."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        capsules: tuple[object, object] = pa.record_batch({"value": [b"a"]}).__arrow_c_array__()
        pa.RecordBatch._import_from_c_capsule(*capsules)
        return capsules


def test_capsules_that_were_emptied() -> None:
    with pytest.raises(ValueError, match="taken by somebody else"):
        encode_columns(Taken())


def test_a_large_record_has_a_batch_of_its_own() -> None:
    arrow = pa.record_batch({"value": [b"a", b"x" * 1000, b"b"]})
    batches = encode_columns(arrow, batch_bytes_max=200)
    assert [header_of(data).record_count for data in batches] == [1, 1, 1]


def test_a_failure_to_compress_is_the_callers() -> None:
    def refuse(payload: memoryview) -> bytes:
        raise RuntimeError("no")

    writer = BatchWriter()
    writer.append(0, None, b"v")
    with pytest.raises(RuntimeError, match="no"):
        writer.finish(codec=1, compress=refuse)
    with pytest.raises(RuntimeError, match="no"):
        encode_columns(pa.record_batch({"value": [b"a"]}), codec=1, compress=refuse)
