"""Snappy in the framing of the xerial library, which Kafka's Java client writes.

A stream is a header of 16 bytes (magic, version, lowest compatible version), then blocks: a length
of four bytes and a raw snappy block. librdkafka and others write one raw block without any framing;
that is read as well.
"""

import struct
from collections.abc import Iterator

from cramjam import DecompressionError, snappy

from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CompressionError
from moldau.records.compression import DecompressionLimits

_MAGIC = b"\x82SNAPPY\x00"
_SIZE = struct.Struct(">i")
_VERSIONS = struct.Struct(">ii")
_VERSION = 1
_HEADER = _MAGIC + _VERSIONS.pack(_VERSION, _VERSION)
(_MAGIC_AS_SIZE,) = _SIZE.unpack_from(_MAGIC)
# Java writes 32 KB; snappy itself looks back no further than 64 KB, so more would gain nothing.
_BLOCK_BYTES = 64 << 10

# The densest element of the format is a copy of 64 bytes in 3; the shortest is a literal byte in 2.
# A block that announces more than its elements can make is refused before memory is set aside.
_EXPANSION_MAX = 64 / 3


def compress(payload: Buffer, level: int | None) -> bytes:
    """Compress to a xerial stream; snappy has no levels."""
    if level is not None:
        raise ValueError("snappy has no levels")
    view = memoryview(payload)
    parts: list[Buffer] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress_pieces(payload: memoryview, limits: DecompressionLimits) -> Iterator[Buffer]:
    """Decompress a xerial stream or a single raw block."""
    if payload[: len(_MAGIC)] != _MAGIC:
        yield _block(payload, limits)
        return
    position = _skip_header(payload, 0)
    while position < len(payload):
        start = position + _SIZE.size
        if start > len(payload):
            raise CompressionError("snappy: the payload is cut off")
        (size,) = _SIZE.unpack_from(payload, position)
        if size == _MAGIC_AS_SIZE:  # another stream was appended to this one
            position = _skip_header(payload, position)
            continue
        position = start + size
        if size < 0 or position > len(payload):
            raise CompressionError("snappy: a block reaches beyond the payload")
        yield _block(payload[start:position], limits)


def _skip_header(payload: memoryview, position: int) -> int:
    end = position + len(_HEADER)
    if end > len(payload) or payload[position : position + len(_MAGIC)] != _MAGIC:
        raise CompressionError("snappy: a header is cut off")
    _, compatible = _VERSIONS.unpack_from(payload, position + len(_MAGIC))
    if compatible > _VERSION:
        raise CompressionError(f"snappy: framing version {compatible} is unknown")
    return end


def _block(block: memoryview, limits: DecompressionLimits) -> bytearray:
    size = _announced_size(block)
    if size > len(block) * _EXPANSION_MAX:
        raise CompressionError(f"snappy: {len(block)} bytes cannot become {size}")
    limits.spend(size)
    content = bytearray(size)
    try:
        written = snappy.decompress_raw_into(block, content)
    except DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from None
    if written != size:
        raise CompressionError("snappy: a block is shorter than it says")
    return content


def _announced_size(block: memoryview) -> int:
    """Read the varint that every raw block opens with: its uncompressed size."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return size
    raise CompressionError("snappy: a block has no size")
