"""Compression of record payloads: Kafka's codecs, bounded and in pieces.

Each codec lives in a module of its own, imported when a batch first asks for it: a broker that
never meets zstd does not pay for its library.
"""

import enum
from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from moldau.kernel.disk import Buffer
from moldau.kernel.errors import CompressionError

DECOMPRESSED_BYTES_MAX = 100 << 20
"""How large one batch may become; legitimate text compresses 1:100, a bomb 1:32,000."""

PIECE_BYTES = 64 << 10
_WHOLE_PIECE_BYTES = 1 << 20


class Codec(enum.IntEnum):
    """The codecs, with the numbers that batches carry in their attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _CodecModule(Protocol):
    def compress(self, payload: Buffer, level: int | None) -> bytes: ...

    def decompress_pieces(
        self, payload: memoryview, limits: "DecompressionLimits"
    ) -> Iterator[Buffer]: ...


class DecompressionLimits:
    """How much a payload may still become, and how much of it to make at a time."""

    __slots__ = ("bytes_left", "bytes_max", "piece_bytes")

    def __init__(self, bytes_max: int, piece_bytes: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_left = bytes_max
        self.piece_bytes = piece_bytes

    @property
    def piece_bytes_max(self) -> int:
        """The most to ask of a decompressor: one byte past the limit shows that it is passed."""
        return min(self.piece_bytes, self.bytes_left + 1)

    def spend(self, size: int) -> None:
        """Count `size` bytes, made or announced; `CompressionError` past the limit."""
        if size > self.bytes_left:
            raise CompressionError(f"the payload is larger than {self.bytes_max} bytes")
        self.bytes_left -= size


def compress(codec: int, payload: Buffer, level: int | None = None) -> bytes:
    """Compress `payload`; `level` is Kafka's `compression.<codec>.level`, None its default.

    `ValueError` names the levels that the codec has when `level` is none of them.
    """
    if codec == Codec.NONE:
        if level is not None:
            raise ValueError("no compression has no levels")
        return bytes(payload)
    return _module(codec).compress(payload, level)


def decompress(codec: int, payload: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """Decompress all of `payload`; `CompressionError` if that is damaged or past `bytes_max`."""
    pieces = decompress_pieces(codec, payload, bytes_max=bytes_max, piece_bytes=_WHOLE_PIECE_BYTES)
    return b"".join(pieces)


def decompress_pieces(
    codec: int,
    payload: Buffer,
    *,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
    piece_bytes: int = PIECE_BYTES,
) -> Iterator[Buffer]:
    """Decompress `payload` piece by piece, so that it never stands in memory as a whole.

    Pieces have at most `piece_bytes` bytes; only a snappy block, which cannot be opened in part,
    comes whole. `CompressionError` if the payload is damaged, cut off, followed by other bytes, or
    larger than `bytes_max`; it may come after the first pieces.
    """
    limits = DecompressionLimits(bytes_max, piece_bytes)
    if codec == Codec.NONE:
        return _plain_pieces(memoryview(payload), limits)
    return _module(codec).decompress_pieces(memoryview(payload), limits)


def _plain_pieces(payload: memoryview, limits: DecompressionLimits) -> Iterator[Buffer]:
    limits.spend(len(payload))
    for start in range(0, len(payload), limits.piece_bytes):
        yield payload[start : start + limits.piece_bytes]


_modules: dict[int, _CodecModule] = {}


def _module(codec: int) -> _CodecModule:
    module = _modules.get(codec)
    if module is None:
        try:
            name = Codec(codec).name.lower()
        except ValueError:
            raise CompressionError(f"there is no codec {codec}") from None
        module = cast("_CodecModule", import_module(f"{__name__}.{name}"))
        _modules[codec] = module
    return module
