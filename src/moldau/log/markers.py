"""The control record that ends a transaction in a partition."""

from struct import Struct
from struct import error as StructError  # noqa: N812 - struct's own name says nothing here
from typing import Final, NamedTuple

from moldau._native.records import Batch, decode_records
from moldau.kernel.disk import Buffer
from moldau.kernel.errors import InvalidRecordError

BATCH_HEADER_BYTES: Final = 61
ABORT: Final = 0
COMMIT: Final = 1

_KEY = Struct(">hh")  # version, type; later versions may be longer
_VALUE = Struct(">hi")  # version, coordinator epoch


class Marker(NamedTuple):
    """How a transaction ended, and under which term of its coordinator."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def find_marker(batch: Batch, data: Buffer) -> Marker | None:
    """Return the marker in a control batch of `data`, None if it is not a transaction's end.

    Compaction leaves an empty batch behind when nothing of the transaction is left.
    """
    payload = memoryview(data)[batch.position + BATCH_HEADER_BYTES : batch.position + batch.size]
    records = decode_records(payload, batch)
    if not records:
        return None
    record = records[0]
    try:
        _, kind = _KEY.unpack_from(record.key or b"")
        if kind not in (ABORT, COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except StructError:
        raise InvalidRecordError(f"the control record at {record.offset} is too short") from None
    return Marker(kind == ABORT, coordinator_epoch, record.timestamp)
