"""The record formats before batches, magic 0 and 1: read them, and turn them into a batch.

A message set is a sequence of messages, each with its offset, size and CRC-32. A compressed one is
a message (the wrapper) whose value is another, compressed, message set. Inside a wrapper of magic 1
offsets are relative, and the wrapper has the offset of its last message.
"""

from collections.abc import Iterator
from struct import Struct as Layout
from typing import NamedTuple
from zlib import crc32

from moldau._native.records import NO_TIMESTAMP, BatchWriter
from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CompressionError, CorruptBatchError, InvalidRecordError
from moldau.records.batch import LOG_APPEND_TIME, compressor
from moldau.records.compression import Codec, decompress

LEGACY_BYTES_MAX = 16 << 20
"""The largest message set, opened: these are walked in Python, a microsecond or two per message."""

_MAGIC_POSITION = 16
_CODEC_MASK = 0x07
_ENTRY = Layout(">qi")  # offset, size of the message
_MESSAGE = Layout(">Ibb")  # CRC, magic, attributes
_TIMESTAMP = Layout(">q")
_LENGTH = Layout(">i")


class LegacyMessage(NamedTuple):
    """One message; a wrapper if it has a codec."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        """What its value is compressed with, if it is a wrapper."""
        return self.attributes & _CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether its timestamp was set by the broker; magic 0 has none."""
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME)


def magic_of(data: Buffer, start: int = 0) -> int:
    """Return the magic of the batch or message at `start`: it has the same place in all formats."""
    try:
        return data[start + _MAGIC_POSITION]
    except IndexError:
        raise CorruptBatchError("the records are too short to have a magic") from None


def read_messages(data: Buffer, *, bytes_max: int = LEGACY_BYTES_MAX) -> Iterator[LegacyMessage]:
    """Read a message set, its wrappers opened and all offsets absolute.

    `CorruptBatchError`, `CompressionError` and `InvalidRecordError` tell what is wrong with it.
    """
    for message in _read_set(data, bytes_max):
        yield from _opened(message, bytes_max)


def up_convert(
    data: Buffer, *, level: int | None = None, bytes_max: int = LEGACY_BYTES_MAX
) -> bytes:
    """Turn a message set that a client sent into one batch with the same codec.

    Offsets are counted anew from 0, because some old clients do not set them right.
    """
    first = None
    writer = BatchWriter()
    for message in _read_set(data, bytes_max):
        if first is None:
            first = message
        elif message.magic != first.magic:
            raise InvalidRecordError("the messages are of more than one magic")
        elif message.codec or first.codec:
            raise InvalidRecordError("a compressed message set does not stand alone")
        for inner in _opened(message, bytes_max):
            writer.append(inner.timestamp, inner.key, inner.value)
    if first is None:
        raise InvalidRecordError("there is no message")
    return writer.finish(
        codec=first.codec,
        compress=compressor(first.codec, level),
        attributes=LOG_APPEND_TIME if first.is_log_append_time else 0,
    )


def _read_set(data: Buffer, bytes_max: int) -> Iterator[LegacyMessage]:
    """Read the messages of a set as they stand there."""
    view = memoryview(data)
    if len(view) > bytes_max:
        raise CompressionError(f"the message set is larger than {bytes_max} bytes")
    position = 0
    while position < len(view):
        offset, start, end = _entry(view, position)
        crc, magic, attributes = _MESSAGE.unpack_from(view, start)
        if magic not in (0, 1):
            raise CorruptBatchError(f"the message at byte {position} has magic {magic}")
        if crc32(view[start + 4 : end]) != crc:
            raise CorruptBatchError(f"the message at byte {position} has a wrong checksum")
        start += _MESSAGE.size
        timestamp = NO_TIMESTAMP
        if magic == 1:
            if end - start < _TIMESTAMP.size:
                raise CorruptBatchError(f"the message at byte {position} is too short")
            (timestamp,) = _TIMESTAMP.unpack_from(view, start)
            start += _TIMESTAMP.size
        key, start = _read_bytes(view, start, end)
        value, start = _read_bytes(view, start, end)
        if start != end:
            raise CorruptBatchError(f"the message at byte {position} has bytes left over")
        yield LegacyMessage(offset, magic, attributes, timestamp, key, value)
        position = end


def _entry(view: memoryview, position: int) -> tuple[int, int, int]:
    """Return the offset of the message at `position`, and where it starts and ends."""
    start = position + _ENTRY.size
    if len(view) >= start:
        offset, size = _ENTRY.unpack_from(view, position)
        if _MESSAGE.size <= size <= len(view) - start:
            return offset, start, start + size
    raise CorruptBatchError(f"the message at byte {position} is cut off or has a false size")


def _read_bytes(view: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    start = position + _LENGTH.size
    if start <= end:
        (length,) = _LENGTH.unpack_from(view, position)
        if length == -1:
            return None, start
        if 0 <= length <= end - start:
            return bytes(view[start : start + length]), start + length
    raise CorruptBatchError(f"the key or value at byte {position} reaches beyond its message")


def _opened(message: LegacyMessage, bytes_max: int) -> Iterator[LegacyMessage]:
    """Return the messages inside a wrapper; another message is its own content."""
    if message.codec == Codec.NONE:
        yield message
        return
    content = _content(message, bytes_max)
    base_offset = _base_offset(message, content)
    for inner in _read_set(content, bytes_max):
        if inner.magic != message.magic:
            raise InvalidRecordError(f"magic {inner.magic} inside of magic {message.magic}")
        if inner.codec != Codec.NONE:
            raise InvalidRecordError("a compressed message set inside of another")
        # The broker's time was written to the wrapper only.
        timestamp = message.timestamp if message.is_log_append_time else inner.timestamp
        yield inner._replace(offset=base_offset + inner.offset, timestamp=timestamp)


def _content(wrapper: LegacyMessage, bytes_max: int) -> bytes:
    if wrapper.value is None:
        raise InvalidRecordError("a compressed message set is null")
    if wrapper.codec == Codec.ZSTD:
        raise InvalidRecordError(f"magic {wrapper.magic} has no zstd")
    value = wrapper.value
    if wrapper.codec == Codec.LZ4 and wrapper.magic == 0:
        value = _with_right_checksum(value)
    content = decompress(wrapper.codec, value, bytes_max=bytes_max)
    if not content:
        raise InvalidRecordError("a compressed message set is empty")
    return content


def _base_offset(wrapper: LegacyMessage, content: bytes) -> int:
    """Return what to add to the offsets inside of `wrapper`."""
    # Some versions of librdkafka produced wrappers with the offset 0, whatever is inside.
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    view = memoryview(content)
    position = last_offset = 0
    while position < len(view):
        last_offset, _, position = _entry(view, position)
    if wrapper.offset < last_offset:
        raise InvalidRecordError(f"offset {last_offset} inside of offset {wrapper.offset}")
    return wrapper.offset - last_offset


# The lz4 frames of magic 0. Old Java clients took the checksum of a frame's header over the wrong
# bytes, so with this magic, and only with it, readers pass over it (KIP-57). The library does not,
# so it gets a header with the right one.

_XXH32_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_LZ4_FLAGS_POSITION = 4
_LZ4_CONTENT_SIZE_FLAG = 0x08


def _with_right_checksum(frame: bytes) -> bytes:
    if len(frame) <= _LZ4_FLAGS_POSITION:
        return frame
    has_size = frame[_LZ4_FLAGS_POSITION] & _LZ4_CONTENT_SIZE_FLAG
    end = _LZ4_FLAGS_POSITION + (10 if has_size else 2)
    checksum = _xxh32_short(frame[_LZ4_FLAGS_POSITION:end]) >> 8 & 0xFF
    return frame[:end] + bytes([checksum]) + frame[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """Return xxHash32 with seed 0 of fewer than 16 bytes."""
    prime1, prime2, prime3, prime4, prime5 = _XXH32_PRIMES
    tail = len(data) & ~3
    total = prime5 + len(data)
    for start in range(0, tail, 4):
        word = int.from_bytes(data[start : start + 4], "little")
        total = _rotate(total + word * prime3, 17) * prime4
    for byte in data[tail:]:
        total = _rotate(total + byte * prime5, 11) * prime1
    total &= 0xFFFFFFFF
    total = (total ^ total >> 15) * prime2 & 0xFFFFFFFF
    total = (total ^ total >> 13) * prime3 & 0xFFFFFFFF
    return total ^ total >> 16


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> 32 - bits) & 0xFFFFFFFF
