"""Record batches, slow and readable: what the kernel must agree with."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.kernel.errors import CorruptBatchError, InvalidRecordError

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LOG_APPEND_TIME = 0x08


class Header(NamedTuple):
    """The fields of a batch header, in their order."""

    base_offset: int = 0
    length: int = 0
    leader_epoch: int = -1
    magic: int = 2
    crc: int = 0
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp: int = -1
    max_timestamp: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    record_count: int = 0


class Record(NamedTuple):
    """One record; equals the kernel's `Record` field by field."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Stats(NamedTuple):
    """What the kernel's walk reports."""

    record_count: int
    max_timestamp: int
    max_timestamp_delta: int
    min_timestamp: int
    keyless_count: int


def crc32c(data: bytes) -> int:
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def int64(number: int) -> int:
    """Wrap as a 64-bit number does."""
    return (number + 2**63) % 2**64 - 2**63


# ---- writing


def varint(number: int) -> bytes:
    """Encode a zigzag varint."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*encoded, rest))


def sized(data: bytes | None) -> bytes:
    """Encode a length and what has it."""
    return varint(-1) if data is None else varint(len(data)) + data


def encode_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    """Encode one record."""
    body = b"\0" + varint(int64(record.timestamp - base_timestamp))
    body += varint(record.offset - base_offset) + sized(record.key) + sized(record.value)
    body += varint(len(record.headers))
    for key, value in record.headers:
        body += sized(key.encode()) + sized(value)
    return varint(len(body)) + body


def encode_batch(header: Header, payload: bytes) -> bytes:
    """Put a header in front of a payload, with the right length and checksum."""
    unsummed = header._replace(length=HEADER_SIZE - 12 + len(payload))
    covered = HEADER.pack(*unsummed)[21:] + payload
    return HEADER.pack(*unsummed._replace(crc=crc32c(covered))) + payload


def build(records: Iterable[Record], **fields: int) -> bytes:
    """Encode records to one uncompressed batch, as `BatchWriter` does."""
    records = list(records)
    base_offset = fields.pop("base_offset", 0)
    base_timestamp = records[0].timestamp
    header = Header(
        base_offset=base_offset,
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max(-1, *(record.timestamp for record in records)),
        record_count=len(records),
    )
    payload = b"".join(encode_record(r, base_offset, base_timestamp) for r in records)
    return encode_batch(header._replace(**fields), payload)


# ---- reading


@dataclass
class Reader:
    """Bytes and a place in them; nothing is read beyond the end."""

    data: bytes
    position: int = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.position:
            raise InvalidRecordError("out of bounds")
        self.position += size
        return self.data[self.position - size : self.position]

    def varint(self, bits: int = 32) -> int:
        number = shift = 0
        while True:
            (byte,) = self.take(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                raise InvalidRecordError("varint too long")
        if number >= 1 << bits:
            raise InvalidRecordError("varint too large")
        return -(number + 1 >> 1) if number & 1 else number >> 1

    def sized(self) -> bytes | None:
        size = self.varint()
        return None if size == -1 else self.take(size)


def read_headers(data: bytes) -> list[tuple[int, Header]]:
    """Read the headers of all whole batches, with their positions."""
    found = []
    position = 0
    while len(data) - position >= 12:
        rest = data[position:]
        if len(rest) > 16 and rest[16] != 2:
            raise CorruptBatchError("magic")
        size = 12 + int.from_bytes(rest[8:12], signed=True)
        if size < HEADER_SIZE:
            raise CorruptBatchError("length")
        if len(rest) < size:
            break
        header = Header(*HEADER.unpack_from(rest))
        if crc32c(rest[21:size]) != header.crc:
            raise CorruptBatchError("checksum")
        found.append((position, header))
        position += size
    return found


def read_records(header: Header, payload: bytes, *, consecutive: bool) -> list[Record]:
    """Read the records of an uncompressed payload by the rules of the walk."""
    deltas = range(header.last_offset_delta + 1)
    if header.record_count < (1 if consecutive else 0):
        raise InvalidRecordError("record count")
    if not deltas or len(deltas) < header.record_count:
        raise InvalidRecordError("offset range")
    if consecutive and len(deltas) != header.record_count:
        raise InvalidRecordError("offset range")
    reader = Reader(payload)
    records: list[Record] = []
    delta = -1
    for index in range(header.record_count):
        body = Reader(reader.take(reader.varint()))
        body.take(1)
        timestamp = int64(header.base_timestamp + body.varint(64))
        before, delta = delta, body.varint()
        if delta not in deltas or delta <= before or (consecutive and delta != index):
            raise InvalidRecordError("offset delta")
        key, value = body.sized(), body.sized()
        headers = tuple(read_header(body) for _ in range(checked_count(body)))
        if body.position != len(body.data):
            raise InvalidRecordError("record size")
        records.append(Record(int64(header.base_offset + delta), timestamp, key, value, headers))
    if reader.position != len(payload):
        raise InvalidRecordError("left over")
    return records


def checked_count(body: Reader) -> int:
    count = body.varint()
    if not 0 <= count <= len(body.data):
        raise InvalidRecordError("header count")
    return count


def read_header(body: Reader) -> tuple[str, bytes | None]:
    key = body.sized()
    if key is None:
        raise InvalidRecordError("header key")
    return key.decode(errors="replace"), body.sized()


def stored_records(header: Header, payload: bytes) -> list[Record]:
    """Read the records of a stored batch with the timestamps that readers see."""
    records = read_records(header, payload, consecutive=False)
    if header.attributes & LOG_APPEND_TIME:
        return [record._replace(timestamp=header.max_timestamp) for record in records]
    return records


def stats(header: Header, records: list[Record]) -> Stats:
    """Sum up what a walk finds."""
    timestamps = [record.timestamp for record in records]
    largest = max(-1, *timestamps) if timestamps else -1
    first = next((r.offset for r in records if largest != -1 and r.timestamp == largest), None)
    return Stats(
        record_count=len(records),
        max_timestamp=largest,
        max_timestamp_delta=-1 if first is None else int64(first - header.base_offset),
        min_timestamp=min((t for t in timestamps if t != -1), default=-1),
        keyless_count=sum(record.key is None for record in records),
    )
