"""Batches as producers and coordinators write them."""

from struct import pack
from typing import Any

from moldau._native.records import Batch, BatchWriter, read_batches

TRANSACTIONAL = 0x10
CONTROL = 0x20


def data_batch_bytes(
    producer_id: int = 1,
    epoch: int = 0,
    sequence: int = 0,
    *,
    offset: int = 0,
    count: int = 1,
    transactional: bool = False,
    timestamp: int = 1000,
) -> bytes:
    writer = BatchWriter(base_offset=offset)
    for _ in range(count):
        writer.append(timestamp, None, b"v")
    return writer.finish(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL if transactional else 0,
    )


def data_batch(*args: Any, **fields: Any) -> Batch:
    (batch,) = read_batches(data_batch_bytes(*args, **fields))
    return batch


def marker_bytes(
    producer_id: int = 1,
    epoch: int = 0,
    *,
    offset: int = 0,
    abort: bool = False,
    coordinator_epoch: int = 0,
    timestamp: int = 1000,
    kind: int | None = None,
) -> bytes:
    writer = BatchWriter(base_offset=offset)
    kind = int(not abort) if kind is None else kind
    writer.append(timestamp, pack(">hh", 0, kind), pack(">hi", 0, coordinator_epoch))
    return writer.finish(
        producer_id=producer_id, producer_epoch=epoch, attributes=TRANSACTIONAL | CONTROL
    )
