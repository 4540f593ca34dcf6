"""LZ4 in its frame format, with independent blocks as Kafka's Java reader demands."""

from collections.abc import Iterator

from lz4 import frame  # type: ignore[import-untyped]

from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CompressionError
from moldau.records.compression import DecompressionLimits

_MAGIC = b"\x04\x22\x4d\x18"
_HEADER_BYTES_MIN = 7
# The flags of a frame descriptor.
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


def decompress_pieces(payload: memoryview, limits: DecompressionLimits) -> Iterator[Buffer]:
    """Decompress one frame; Java reads no further, so nothing may follow it."""
    _check_descriptor(payload)
    context = frame.create_decompression_context()
    position = 0
    finished = False
    while not finished:
        try:
            piece, used, finished = frame.decompress_chunk(
                context, payload[position:], limits.piece_bytes_max
            )
        except RuntimeError as error:
            raise CompressionError(f"lz4: {error}") from None
        position += used
        limits.spend(len(piece))
        if piece:
            yield piece
        elif not used and not finished:
            raise CompressionError("lz4: the payload is cut off")
    if position != len(payload):
        raise CompressionError(f"lz4: {len(payload) - position} bytes follow the frame")


def _check_descriptor(payload: memoryview) -> None:
    """Refuse the frames that Java's reader refuses."""
    if len(payload) < _HEADER_BYTES_MIN:
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
