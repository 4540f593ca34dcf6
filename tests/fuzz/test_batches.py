"""Damaged batches through every way into the record kernel: refused or read, and nothing else.

MOLDAU_FUZZ_FRAMES says how many, MOLDAU_FUZZ_SEED which ones. The kernel and the readable reference
must come to the same verdict, and to the same values. docs/sanitizer.md runs it under a sanitizer.
"""

import ctypes
import os
import random
import secrets

import pyarrow as pa
import pytest

from moldau._native.columns import Columns, decode_columns
from moldau._native.fetched import Record as FetchedRecord
from moldau._native.fetched import RecordReader
from moldau._native.records import (
    Batch,
    RecordWalk,
    check_batches,
    decode_records,
    patch_offsets,
    patch_timestamps,
    read_batches,
)
from moldau.kernel.errors import CorruptBatchError, InvalidRecordError, ProtocolError
from tests.reference import records as reference
from tests.reference.records import HEADER, HEADER_SIZE, Header, Record
from tests.unit.native.samples import encode_columns

FRAMES = int(os.environ.get("MOLDAU_FUZZ_FRAMES", "20000")) // 4  # the reference is slow
SEED = os.environ.get("MOLDAU_FUZZ_SEED") or secrets.token_hex(4)
CONTROL = 0x20
# Varints and fixed numbers at the ends of their ranges, null, and text that is not UTF-8.
TELLING = (
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x03",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\x80\x00",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80",
    b"\x7f\xff\xff\xff",
    b"\xed\xa0\x80",
)


def exact(data: bytes) -> memoryview:
    """Copy to memory that ends with the last byte: behind `bytes` there is always one more."""
    memory = (ctypes.c_char * len(data)).from_buffer_copy(data)
    return memoryview(pa.foreign_buffer(ctypes.addressof(memory), len(data), memory))


def random_bytes(rng: random.Random) -> bytes | None:
    size = rng.choice((-1, 0, 1, 3, 63, 64, 100))
    return None if size < 0 else rng.randbytes(size)


def random_batch(rng: random.Random) -> bytes:
    base_timestamp = rng.choice((-1, 0, 1_700_000_000_000, 2**63 - 1))
    records = []
    offset = -1
    for _ in range(rng.randrange(1, 6)):
        offset += rng.choice((1, 1, 1, 1, 1, 5, 200))
        headers = [
            (rng.choice(("", "h", "häder")), random_bytes(rng))
            for _ in range(rng.choice((0, 0, 2)))
        ]
        timestamp = reference.int64(base_timestamp + rng.choice((0, 1, 100, 2**40, -(2**62))))
        records.append(
            Record(offset, timestamp, random_bytes(rng), random_bytes(rng), tuple(headers))
        )
    return reference.build(records, attributes=rng.choice((0, 0, 0, 0x08, 0x10, 0x20, 0x04)))


def damage(rng: random.Random, data: bytes) -> bytes:
    """Change bytes in a few places, or cut the end off."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 6))):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1:
                piece = rng.choice(TELLING)
                changed[at : at + len(piece)] = piece
            case 2:
                changed[at:at] = rng.choice(TELLING)
            case 3:
                del changed[at : at + rng.randrange(1, 6)]
            case 4:
                del changed[at:]
            case _:
                start = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[start : start + rng.randrange(1, 40)]
    return bytes(changed)


def summed_again(data: bytes) -> bytes:
    """Give damaged bytes the frame of a good batch, so that what is behind it is looked at."""
    data = data.ljust(HEADER_SIZE, b"\0")
    header = Header(*HEADER.unpack_from(data))
    return reference.encode_batch(header._replace(magic=2), data[HEADER_SIZE:])


def verdict_on_frames(data: bytes) -> list[Batch]:
    """Read the headers with both; the kernel's if they agree."""
    try:
        expected = reference.read_headers(data)
    except CorruptBatchError:
        with pytest.raises(CorruptBatchError):
            read_batches(exact(data))
        return []
    batches = read_batches(exact(data))
    assert [(b.position, b.size) for b in batches] == [(p, h.length + 12) for p, h in expected]
    for batch, (_, header) in zip(batches, expected, strict=True):
        for name in set(Header._fields) - {"length", "magic"}:
            assert getattr(batch, name) == getattr(header, name)
    return batches


def verdict_on_records(rng: random.Random, data: bytes, batch: Batch) -> bool:
    """Whether the records of a batch are right, by every way in."""
    piece = data[batch.position : batch.position + batch.size]
    header = Header(*HEADER.unpack_from(piece))
    payload = piece[HEADER_SIZE:]
    try:
        expected = reference.stored_records(header, payload)
    except InvalidRecordError:
        with pytest.raises(InvalidRecordError):
            decode_records(exact(payload), batch)
        with pytest.raises(InvalidRecordError):
            read_some(rng, payload, batch)
        with pytest.raises(InvalidRecordError):
            walk(rng, payload, batch)
        if not header.attributes & CONTROL:
            with pytest.raises(InvalidRecordError):
                decode_all(data, batch)
        return False
    walk(rng, payload, batch)
    decoded = decode_records(exact(payload), batch)
    assert [tuple(getattr(r, name) for name in Record._fields) for r in decoded] == expected
    fetched = read_some(rng, payload, batch)
    assert [(each.offset, each.key, each.value, each.headers) for each in fetched] == [
        (each.offset, each.key, each.value, each.headers) for each in decoded
    ]
    columns = decode_all(data, batch)
    arrow = pa.record_batch(columns)
    arrow.validate(full=True)
    if not header.attributes & CONTROL:
        assert arrow["offset"].to_pylist() == [record.offset for record in expected]
        assert arrow["value"].to_pylist() == [record.value for record in expected]
        assert sum(header_of(b).record_count for b in encode_columns(columns)) == len(expected)
    return True


def read_some(rng: random.Random, payload: bytes, batch: Batch) -> list[FetchedRecord]:
    """Read as a consumer does, a few records at a time."""
    reader = RecordReader(exact(payload), batch, "t", 0)
    records: list[FetchedRecord] = []
    while reader.read(records, rng.randint(1, 5), -(2**63)):
        pass
    return records


def decode_all(data: bytes, batch: Batch) -> Columns:
    """Decode to columns what has hostile, negative offsets as well; codecs change nothing here."""
    return decode_columns(exact(data), [batch], lambda _, payload: payload, start_offset=-(2**63))


def header_of(data: bytes) -> Batch:
    (batch,) = read_batches(data)
    return batch


def walk(rng: random.Random, payload: bytes, batch: Batch) -> None:
    """Walk in random pieces; what the checks on produced batches say beyond is theirs."""
    walk = RecordWalk(batch, consecutive=False)
    position = 0
    while position < len(payload):
        size = rng.choice((1, 2, 7, 64, 1000))
        walk.feed(exact(payload[position : position + size]))
        position += size
    walk.finish()


def verdict_on_produce(data: bytes) -> None:
    """Check as a broker does."""
    try:
        expected = reference.check(data)
    except ProtocolError:
        with pytest.raises(ProtocolError):
            check_batches(exact(data))
        return
    for (_, stats), wanted in zip(check_batches(exact(data)), expected, strict=True):
        if wanted is None:
            assert stats is None
        else:
            assert tuple(getattr(stats, name) for name in wanted._fields) == wanted


def patch(data: bytes, batch: Batch) -> None:
    patched = bytearray(data)
    patch_offsets(patched, batch, base_offset=123, leader_epoch=5)
    patch_timestamps(patched, batch, max_timestamp=99, log_append_time=True)
    start, end = batch.position, batch.position + batch.size
    (again,) = read_batches(patched, start, end)
    assert (again.base_offset, again.max_timestamp, again.crc) == (123, 99, batch.crc)
    assert patched[:start] == data[:start]
    assert patched[end:] == data[end:]


@pytest.mark.long
def test_damaged_batches() -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED} MOLDAU_FUZZ_FRAMES={FRAMES * 4}")  # noqa: T201 - to run it again
    rng = random.Random(SEED)
    read = refused = 0
    for number in range(FRAMES):
        data = damage(rng, random_batch(rng))
        if rng.random() < 0.8:
            data = summed_again(data)
        if rng.random() < 0.2:
            data = random_batch(rng) + data
        try:
            batches = verdict_on_frames(data)
            verdict_on_produce(data)
            for batch in batches:
                if verdict_on_records(rng, data, batch):
                    read += 1
                else:
                    refused += 1
                patch(data, batch)
        except BaseException as error:
            error.add_note(f"batch {number}: {data.hex()}")
            raise
    assert read > FRAMES / 20
    assert refused > FRAMES / 20
