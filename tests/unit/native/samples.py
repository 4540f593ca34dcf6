"""Batches and records to test with, by hand and by Hypothesis."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st

from moldau._native.columns import open_arrow
from moldau._native.records import Batch, BatchWriter, read_batches
from tests.reference import records as reference
from tests.reference.records import Header, Record, encode_batch

HEADER_SIZE = reference.HEADER_SIZE
# Machines that do other things as well are slow at times.
RELAXED = settings(deadline=None, print_blob=True)

timestamps = st.integers(-1, 2**42) | st.integers(-(2**63), 2**63 - 1)
contents = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=70)
headers = st.lists(st.tuples(st.text(max_size=6), contents), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, *, gaps: bool = False, size_max: int = 8) -> list[Record]:
    """Draw records from offset 0 on, with gaps where compaction may leave some."""
    records = []
    offset = -1
    for _ in range(draw(st.integers(1, size_max))):
        offset += draw(st.integers(1, 300)) if gaps else 1
        records.append(
            Record(offset, draw(timestamps), draw(contents), draw(contents), draw(headers))
        )
    return records


def write(records: list[Record], **fields: int) -> bytes:
    """Build a batch with the kernel."""
    writer = BatchWriter(base_offset=fields.pop("base_offset", 0))
    for record in records:
        writer.append_at(*record)
    return writer.finish(**fields)


def body(fields: bytes) -> bytes:
    """Put a record's length in front of its fields."""
    return reference.varint(len(fields)) + fields


PLAIN = body(b"\0" + b"\0" + b"\0" + b"\x01" + b"\x02v" + b"\0")
"""Record 0 with no key and a value of one byte."""


def batch_of(payload: bytes, *, count: int = 1, **fields: int) -> bytes:
    """Build a batch around any payload; length and checksum are right."""
    header = Header(record_count=count, last_offset_delta=count - 1, base_timestamp=0)
    return encode_batch(header._replace(**fields), payload)


def header_of(data: bytes) -> Batch:
    """Read the one batch of `data`."""
    (batch,) = read_batches(data)
    return batch


def values(record: object) -> Record:
    """Turn the kernel's record into the reference's, to compare them."""
    return Record(*(getattr(record, name) for name in Record._fields))


def encode_columns(
    columns: object,
    *,
    batch_bytes_max: int = 1 << 20,
    codec: int = 0,
    compress: Callable[[memoryview], bytes] | None = None,
    timestamp: int = -1,
) -> list[bytes]:
    """Encode all rows of Arrow data, whatever their partitions."""
    batches = []
    for rows in open_arrow(columns):  # type: ignore[arg-type]
        first = 0
        while first < len(rows):
            batch, first = rows.encode(
                None,
                first,
                timestamp=timestamp,
                batch_bytes_max=batch_bytes_max,
                codec=codec,
                compress=compress,
            )
            batches.append(batch)
    return batches
