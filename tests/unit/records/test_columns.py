import pyarrow as pa
import pytest

from moldau._native.records import Record, read_batches
from moldau.kernel.errors import CompressionError
from moldau.records.batch import CONTROL, build_batch
from moldau.records.columns import read_columns
from moldau.records.compression import Codec

RECORDS = [
    Record(offset, 1000 + offset, b"key" if offset % 2 else None, b"value" * 20, [("h", b"1")])
    for offset in range(500)
]


@pytest.mark.parametrize("codec", Codec)
def test_batches_become_columns(codec: Codec) -> None:
    data = (
        build_batch(RECORDS[:100], codec=codec)
        + build_batch([Record(100, 0, b"\0\0\0\1", b"")], attributes=CONTROL)
        + build_batch(RECORDS[101:], codec=codec)
    )
    columns = read_columns(data, read_batches(data), start_offset=50)
    table = pa.record_batch(columns)
    kept = RECORDS[50:100] + RECORDS[101:]
    assert columns.row_count == table.num_rows == len(kept)
    assert table["offset"].to_pylist() == [record.offset for record in kept]
    assert table["key"].to_pylist() == [record.key for record in kept]
    assert table["value"].to_pylist() == [record.value for record in kept]
    assert table["headers"][0].as_py() == [{"key": "h", "value": b"1"}]


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec != Codec.NONE])
def test_a_batch_that_becomes_too_large_is_refused(codec: Codec) -> None:
    data = build_batch([Record(0, 1, None, bytes(1 << 20))], codec=codec)
    with pytest.raises(CompressionError, match="larger than"):
        read_columns(data, read_batches(data), bytes_max=1 << 20)
