"""LZ4 in its frame format, with independent blocks as Kafka's Java reader demands."""

from collections.abc import Iterator

from lz4 import frame  # type: ignore[import-untyped]

from moldau.kernel.errors import CompressionError
from moldau.records.compression import Buffer, Limits

_MAGIC = b"\x04\x22\x4d\x18"
# The flags of a frame descriptor.
_CONTENT_CHECKSUM = 0x04
_CONTENT_SIZE = 0x08
_BLOCK_CHECKSUM = 0x10
_BLOCK_INDEPENDENT = 0x20
_VERSION_MASK, _VERSION = 0xC0, 0x40
_FLAGS_RESERVED = 0x03  # a dictionary id is one of them
_BLOCK_SIZE_RESERVED = 0x8F

# Kafka's default level 9 means the fast compressor; every other level the high-compression one,
# whose levels go from 3 to 12 in the C library.
_LEVEL_DEFAULT = 9
_HIGH_LEVEL_MIN, _HIGH_LEVEL_MAX = 3, 12


def compress(payload: Buffer, level: int | None) -> bytes:
    """Compress to one frame of 64 KB blocks with level 1 to 17."""
    level = _LEVEL_DEFAULT if level is None else level
    if not 1 <= level <= 17:
        raise ValueError(f"lz4 has the levels 1 to 17, not {level}")
    if level == _LEVEL_DEFAULT:
        level = frame.COMPRESSIONLEVEL_MIN
    else:
        level = min(max(level, _HIGH_LEVEL_MIN), _HIGH_LEVEL_MAX)
    compressed: bytes = frame.compress(
        payload,
        compression_level=level,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def decompress_pieces(
    payload: memoryview, limits: Limits, *, check_header: bool = True
) -> Iterator[Buffer]:
    """Decompress one frame; Java reads no further, so nothing may follow it.

    `check_header=False` passes over the header's checksum: with message format 0 old Java clients
    computed it over the wrong bytes, and so the readers of that format ignore it (KIP-57).
    """
    header_size = _check_descriptor(payload)
    context = frame.create_decompression_context()
    position = 0
    finished = False
    if not check_header:
        _decompress(context, _plain_header(payload[4], payload[5]), 0)
        position = header_size
    while not finished:
        piece, used, finished = _decompress(context, payload[position:], limits.piece_bytes_max)
        position += used
        limits.spend(len(piece))
        if piece:
            yield piece
        elif not used and not finished:
            raise CompressionError("lz4: the payload is cut off")
    if position != len(payload):
        raise CompressionError(f"lz4: {len(payload) - position} bytes follow the frame")


def _decompress(context: object, data: Buffer, bytes_max: int) -> tuple[bytes, int, bool]:
    try:
        result: tuple[bytes, int, bool] = frame.decompress_chunk(context, data, bytes_max)
    except RuntimeError as error:
        raise CompressionError(f"lz4: {error}") from None
    return result


def _check_descriptor(payload: memoryview) -> int:
    """Refuse what Java's reader refuses; return the size of the frame's header."""
    if len(payload) < 7:
        raise CompressionError("lz4: the header is cut off")
    if payload[:4] != _MAGIC:
        raise CompressionError("lz4: this is no lz4 frame")
    flags, block_size = payload[4], payload[5]
    if flags & _VERSION_MASK != _VERSION:
        raise CompressionError("lz4: the frame has an unknown version")
    if not flags & _BLOCK_INDEPENDENT:
        raise CompressionError("lz4: blocks that depend on each other are not allowed")
    if flags & _FLAGS_RESERVED or block_size & _BLOCK_SIZE_RESERVED or not block_size & 0x40:
        raise CompressionError("lz4: the frame's descriptor has bits that are not allowed")
    header_size = 15 if flags & _CONTENT_SIZE else 7
    if len(payload) < header_size:
        raise CompressionError("lz4: the header is cut off")
    return header_size


def _plain_header(flags: int, block_size: int) -> bytes:
    """Write a header for the same blocks, with a checksum that is right."""
    header: bytes = frame.compress_begin(
        frame.create_compression_context(),
        block_size=block_size >> 4,
        block_linked=False,
        block_checksum=bool(flags & _BLOCK_CHECKSUM),
        content_checksum=bool(flags & _CONTENT_CHECKSUM),
    )
    return header
