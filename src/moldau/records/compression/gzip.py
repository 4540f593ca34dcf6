"""gzip, by zlib."""

import zlib
from collections.abc import Iterator

from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CompressionError
from moldau.records.compression import DecompressionLimits

_GZIP_WRAPPER = 16 + zlib.MAX_WBITS
# zlib copies what it could not use yet, so it gets the input in small pieces as well.
_INPUT_BYTES = 16 << 10


def compress(payload: Buffer, level: int | None) -> bytes:
    """Compress with level 1 to 9, or -1 for zlib's own choice."""
    level = zlib.Z_DEFAULT_COMPRESSION if level is None else level
    if level != zlib.Z_DEFAULT_COMPRESSION and not 1 <= level <= 9:
        raise ValueError(f"gzip has the levels 1 to 9 and -1, not {level}")
    return zlib.compress(payload, level, _GZIP_WRAPPER)


def decompress_pieces(payload: memoryview, limits: DecompressionLimits) -> Iterator[Buffer]:
    """Decompress one gzip member, and those that follow it without a gap."""
    position = 0
    while True:
        member = zlib.decompressobj(_GZIP_WRAPPER)
        unused: Buffer = b""
        while not member.eof:
            if not unused:
                unused = payload[position : position + _INPUT_BYTES]
                position += len(unused)
            try:
                piece = member.decompress(unused, limits.piece_bytes_max)
            except zlib.error as error:
                raise CompressionError(f"gzip: {error}") from None
            if not piece and not unused:
                raise CompressionError("gzip: the payload is cut off")
            unused = member.unconsumed_tail
            limits.spend(len(piece))
            if piece:
                yield piece
        position -= len(member.unused_data)
        if position == len(payload):
            return
