"""Batches to Arrow columns, checked with pyarrow and the readable reference."""

import gc
import resource
import subprocess
import sys
import zlib
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.columns import Columns, decode_columns, export_stream
from moldau._native.records import Batch, BatchWriter, read_batches
from moldau.kernel.errors import InvalidRecordError
from tests.reference import records as reference
from tests.reference.records import Record
from tests.unit.native.samples import PLAIN, RELAXED, batch_of, body, record_lists, write

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(
                pa.field(
                    "item",
                    pa.struct(
                        [
                            pa.field("key", pa.string(), nullable=False),
                            pa.field("value", pa.binary()),
                        ]
                    ),
                    nullable=False,
                )
            ),
            nullable=False,
        ),
    ]
)


PLAIN_ROW = Record(0, 0, None, None, ())


def to_arrow(columns: Columns) -> pa.RecordBatch:
    batch = pa.record_batch(columns)
    batch.validate(full=True)
    return batch


def to_records(arrow: pa.RecordBatch) -> list[Record]:
    return [
        Record(offset, timestamp, key, value, tuple((h["key"], h["value"]) for h in headers))
        for offset, timestamp, key, value, headers in zip(
            arrow["offset"].to_pylist(),
            arrow["timestamp"].cast(pa.int64()).to_pylist(),
            arrow["key"].to_pylist(),
            arrow["value"].to_pylist(),
            arrow["headers"].to_pylist(),
            strict=True,
        )
    ]


@RELAXED
@given(st.lists(record_lists(gaps=True), max_size=4))
def test_columns_hold_what_the_reference_reads(batches: list[list[Record]]) -> None:
    data = b"".join(
        write([r._replace(offset=r.offset + 10_000 * n) for r in records], base_offset=10_000 * n)
        for n, records in enumerate(batches)
    )
    arrow = to_arrow(decode_columns(data, read_batches(data)))
    assert arrow.schema.equals(SCHEMA)
    expected = []
    for position, header in reference.read_headers(data):
        payload = data[position + 61 : position + 12 + header.length]
        expected += reference.stored_records(header, payload)
    assert to_records(arrow) == expected


def test_a_timestamp_is_utc_and_knows_its_type() -> None:
    created = reference.build([Record(0, 1_700_000_000_123, None, b"v")])
    appended = reference.build(
        [Record(1, 5, None, b"v")], base_offset=1, attributes=0x08, max_timestamp=1_700_000_000_456
    )
    data = created + appended
    arrow = to_arrow(decode_columns(data, read_batches(data)))
    assert arrow["timestamp"].to_pylist() == [
        datetime.fromtimestamp(1_700_000_000.123, UTC),
        datetime.fromtimestamp(1_700_000_000.456, UTC),
    ]
    assert arrow["timestamp_type"].to_pylist() == [0, 1]


def test_the_caller_chooses_the_batches() -> None:
    data = b"".join(
        write([Record(n, 0, None, b"%d" % n)], base_offset=n, producer_id=n % 2) for n in range(4)
    )
    chosen = [batch for batch in read_batches(data) if batch.producer_id == 1]
    assert to_arrow(decode_columns(data, chosen))["offset"].to_pylist() == [1, 3]


def test_control_batches_are_left_out() -> None:
    data = write([Record(0, 0, b"\0\0\0\1", b"\0" * 6)], attributes=0x30)
    data += write([Record(1, 0, None, b"v")], base_offset=1, attributes=0x10)
    assert to_arrow(decode_columns(data, read_batches(data)))["offset"].to_pylist() == [1]


def test_records_before_the_start_offset_are_left_out() -> None:
    data = write([Record(n, n, b"k%d" % n, None, (("h", b"x"),)) for n in range(5)])
    arrow = to_arrow(decode_columns(data, read_batches(data), start_offset=3))
    assert to_records(arrow) == [Record(n, n, b"k%d" % n, None, (("h", b"x"),)) for n in (3, 4)]


def test_headers_can_be_left_out() -> None:
    data = write([Record(0, 0, None, b"v", (("h", b"x"),))])
    arrow = to_arrow(decode_columns(data, read_batches(data), headers=False))
    assert arrow.schema.names == SCHEMA.names[:-1]


def test_no_rows() -> None:
    for columns in (decode_columns(b"", []), Columns()):
        arrow = to_arrow(columns)
        assert arrow.num_rows == columns.row_count == len(columns) == 0
        assert arrow.schema.equals(SCHEMA)


def test_compressed_batches_go_through_the_callers_decompression() -> None:
    writer = BatchWriter()
    writer.append(1, b"k", b"v" * 100)
    data = writer.finish(codec=1, compress=zlib.compress)

    def decompress(codec: int, payload: memoryview) -> bytes:
        assert codec == 1
        return zlib.decompress(payload)

    arrow = to_arrow(decode_columns(data, read_batches(data), decompress))
    assert arrow["value"].to_pylist() == [b"v" * 100]
    with pytest.raises(ValueError, match="compressed"):
        decode_columns(data, read_batches(data))


def test_an_emptied_batch_is_not_decompressed() -> None:
    data = batch_of(b"", count=0, last_offset_delta=3, attributes=4)
    assert decode_columns(data, read_batches(data)).row_count == 0


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xe2\x82", b"a\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
)
def test_a_header_key_that_is_not_utf8_is_repaired_as_python_does(bad: bytes) -> None:
    key = b"<" + bad + b">"
    data = batch_of(body(b"\0\0\0\x01\x01\x02" + reference.sized(key) + b"\x01"))
    ((header,),) = to_arrow(decode_columns(data, read_batches(data)))["headers"].to_pylist()
    assert header["key"] == key.decode(errors="replace")


@RELAXED
@given(st.lists(st.binary(max_size=8) | st.text(max_size=4).map(str.encode), max_size=20))
def test_any_header_key_is_repaired_as_python_does(keys: list[bytes]) -> None:
    headers = b"".join(reference.sized(key) + b"\x01" for key in keys)
    data = batch_of(body(b"\0\0\0\x01\x01" + reference.varint(len(keys)) + headers))
    (found,) = to_arrow(decode_columns(data, read_batches(data)))["headers"].to_pylist()
    assert [header["key"] for header in found] == [key.decode(errors="replace") for key in keys]


def test_a_malformed_batch_names_the_record() -> None:
    data = batch_of(PLAIN + b"\x02", count=2)
    with pytest.raises(InvalidRecordError, match="record 1: the length is too small"):
        decode_columns(data, read_batches(data))


@pytest.mark.parametrize("column", ["key", "value", "header key", "header value"])
def test_a_column_with_too_many_bytes_is_refused(column: str) -> None:
    record = {
        "key": Record(0, 0, b"x" * 60, b""),
        "value": Record(0, 0, b"", b"x" * 60),
        "header key": Record(0, 0, b"", b"", (("x" * 60, b""),)),
        "header value": Record(0, 0, b"", b"", (("", b"x" * 60),)),
    }[column]
    data = write([record]) * 2
    assert decode_columns(data, read_batches(data), column_bytes_max=120).row_count == 2
    with pytest.raises(OverflowError, match="fewer batches"):
        decode_columns(data, read_batches(data), column_bytes_max=119)
    with pytest.raises(OverflowError, match="fewer batches"):
        decode_columns(data, read_batches(data), column_bytes_max=-1)


def test_batches_of_another_buffer_are_refused() -> None:
    data = batch_of(PLAIN)
    for wrong in (data[:-1], b""):
        with pytest.raises(ValueError, match="not in this buffer"):
            decode_columns(wrong, read_batches(data))
    with pytest.raises(ValueError, match="not in this buffer"):
        decode_columns(data, [Batch()])
    with pytest.raises(TypeError):
        decode_columns(data, [None])  # type: ignore[list-item]


def test_a_huge_record_count_takes_no_memory() -> None:
    data = batch_of(PLAIN, count=2**31 - 1, last_offset_delta=2**31 - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidRecordError, match="record 1: the batch ends"):
        decode_columns(data, read_batches(data))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10


def test_exports_outlive_the_columns_and_each_other() -> None:
    data = write([Record(n, n, b"k%d" % n, b"v" * n, (("h", b"%d" % n),)) for n in range(50)])
    expected = to_records(to_arrow(decode_columns(data, read_batches(data))))
    columns = decode_columns(data, read_batches(data))
    first, second = to_arrow(columns), to_arrow(columns)
    alone = first["headers"]
    del columns, first
    gc.collect()
    # Whatever was freed too early would be taken, and overwritten, by these.
    others = [decode_columns(data, read_batches(data), start_offset=n) for n in range(20)]
    assert to_records(second) == expected
    del second
    assert alone.to_pylist()[49] == [{"key": "h", "value": b"49"}]
    assert others[10].row_count == 40


def test_capsules_that_nobody_takes_are_freed() -> None:
    columns = decode_columns(PLAIN, [])
    for _ in range(100):
        columns.__arrow_c_schema__()
        columns.__arrow_c_array__()
        columns.__arrow_c_array__(requested_schema=columns.__arrow_c_schema__())


def test_a_stream_has_chunks_of_several_partitions_and_outlives_them() -> None:
    chunks = []
    for partition in range(3):
        data = write([Record(k, 0, None, b"%d" % k, ()) for k in range(partition)] or [PLAIN_ROW])
        columns = decode_columns(data, read_batches(data), start_offset=0 if partition else 1)
        columns.place("a" * partition, partition)
        chunks.append(columns)
    capsules = [export_stream(chunks) for _ in range(3)]
    streams = [pa.RecordBatchReader._import_from_c_capsule(each) for each in capsules[:2]]
    del chunks, columns, capsules
    gc.collect()
    for stream in streams:
        table = stream.read_all()
        table.validate(full=True)
        assert table.column("topic").to_pylist() == ["a", "aa", "aa"]
        assert table.column("partition").to_pylist() == [1, 2, 2]
        assert table.column("offset").to_pylist() == [0, 0, 1]


def test_a_place_must_fit_and_a_stream_must_have_columns() -> None:
    data = write([Record(k, 0, None, b"", ()) for k in range(9)])
    columns = decode_columns(data, read_batches(data), column_bytes_max=80)
    with pytest.raises(OverflowError):
        columns.place("nine bytes", 0)
    columns.place("eight by", 0)
    with pytest.raises(ValueError, match="its columns from its first chunk"):
        export_stream([])
    with pytest.raises(TypeError):
        export_stream([None])  # type: ignore[list-item]


def test_a_schema_alone_can_be_asked_for() -> None:
    assert pa.schema(Columns()).equals(SCHEMA)


LEAK_CHECK = """
import pyarrow as pa
from moldau._native.columns import decode_columns, export_stream, open_arrow
from moldau._native.records import BatchWriter, read_batches

writer = BatchWriter()
for n in range(2000):
    writer.append(n, b"key", b"v" * 400, [("header", b"x" * 50)])
data = writer.finish()
batches = read_batches(data)

def cycle():
    columns = decode_columns(data, batches)
    arrow = pa.record_batch(columns)
    kept = arrow["value"], pa.record_batch(columns)
    columns.__arrow_c_array__()
    for rows in open_arrow(arrow):
        rows.encode(None, 0, timestamp=0, batch_bytes_max=1 << 20, codec=0, compress=None)
    columns.place("topic", 1)
    export_stream([columns])
    pa.RecordBatchReader._import_from_c_capsule(export_stream([columns, columns])).read_all()

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

for _ in range(50):
    cycle()
before = resident()
for _ in range(500):
    cycle()
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cycles_leak_nothing() -> None:
    """A cycle that leaked its columns would leak 0.8 MB, one that leaked a node 100 bytes."""
    run = subprocess.run([sys.executable, "-c", LEAK_CHECK], capture_output=True, check=True)
    assert int(run.stdout) < 4 << 20
