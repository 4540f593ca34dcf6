"""Zstandard: one or more frames."""

from collections.abc import Iterator

import zstandard

from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CompressionError
from moldau.records.compression import DecompressionLimits

_LEVEL_MIN, _LEVEL_MAX, _LEVEL_DEFAULT = -131072, 22, 3
# The largest window that libraries open unless told otherwise, Java's among them; level 22 uses it.
_WINDOW_BYTES_MAX = 1 << 27

_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_HEADER_BYTES_MAX = 18
_RLE_BLOCK, _RESERVED_BLOCK = 1, 3

# Setting up a context costs more than opening a small batch, and a context serves one payload at a
# time, so idle ones are kept: few, and none that a large window has made large.
_idle: list[zstandard.ZstdDecompressor] = []
_IDLE_MAX = 4
_IDLE_WINDOW_BYTES_MAX = 8 << 20


def compress(payload: Buffer, level: int | None) -> bytes:
    """Compress to one frame with level -131072 to 22."""
    level = _LEVEL_DEFAULT if level is None else level
    if not _LEVEL_MIN <= level <= _LEVEL_MAX:
        raise ValueError(f"zstd has the levels {_LEVEL_MIN} to {_LEVEL_MAX}, not {level}")
    return zstandard.ZstdCompressor(level=level).compress(payload)


def decompress_pieces(payload: memoryview, limits: DecompressionLimits) -> Iterator[Buffer]:
    """Decompress frame after frame."""
    # The library's stream reader ends without a word when a frame is cut off, so look before.
    window_bytes = _check_frames(payload, limits)
    try:
        decompressor = _idle.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES_MAX)
    with decompressor.stream_reader(payload, read_across_frames=True) as reader:
        while True:
            try:
                piece = reader.read(limits.piece_bytes_max)
            except zstandard.ZstdError as error:
                raise CompressionError(f"zstd: {error}") from None
            if not piece:
                break
            limits.spend(len(piece))
            yield piece
    if window_bytes <= _IDLE_WINDOW_BYTES_MAX and len(_idle) < _IDLE_MAX:
        _idle.append(decompressor)


def _check_frames(payload: memoryview, limits: DecompressionLimits) -> int:
    """See that whole frames fill `payload` and announce no more than allowed.

    Returns the largest window that they need.
    """
    position = announced = window_bytes_max = 0
    while position < len(payload) or position == 0:
        if _is_skippable(payload, position):
            position += 8 + int.from_bytes(payload[position + 4 : position + 8], "little")
            if position > len(payload):
                raise CompressionError("zstd: the payload is cut off")
            continue
        head = payload[position : position + _HEADER_BYTES_MAX]
        try:
            frame = zstandard.get_frame_parameters(head)
            position += zstandard.frame_header_size(head)
        except zstandard.ZstdError as error:
            raise CompressionError(f"zstd: {error}") from None
        if frame.dict_id:
            raise CompressionError("zstd: a frame needs a dictionary")
        if frame.window_size > _WINDOW_BYTES_MAX:
            raise CompressionError(f"zstd: a window of {frame.window_size} bytes is too large")
        if frame.content_size != zstandard.CONTENTSIZE_UNKNOWN:
            announced += frame.content_size
        if announced > limits.bytes_left:
            raise CompressionError(f"zstd: the payload is larger than {limits.bytes_max} bytes")
        window_bytes_max = max(window_bytes_max, frame.window_size)
        position = _skip_blocks(payload, position) + (4 if frame.has_checksum else 0)
        if position > len(payload):
            raise CompressionError("zstd: the payload is cut off")
    return window_bytes_max


def _is_skippable(payload: memoryview, position: int) -> bool:
    magic = int.from_bytes(payload[position : position + 4], "little")
    return magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC


def _skip_blocks(payload: memoryview, position: int) -> int:
    """Return the position after a frame's last block; it may lie beyond the payload."""
    last = 0
    while not last and position + 3 <= len(payload):
        header = payload[position] | payload[position + 1] << 8 | payload[position + 2] << 16
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED_BLOCK:
            raise CompressionError("zstd: a block of an unknown kind")
        position += 3 + (1 if kind == _RLE_BLOCK else size)
    return position if last else len(payload) + 1
