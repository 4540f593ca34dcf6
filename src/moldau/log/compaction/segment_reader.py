"""Reading a closed segment in pieces of whole batches."""

from typing import Final

from moldau._native.records import Batch, read_batches
from moldau.kernel.disk import Buffer, Disk
from moldau.kernel.errors import CorruptBatchError
from moldau.log.markers import BATCH_HEADER_BYTES
from moldau.records.compression import Codec, decompress

IO_BYTES_MIN: Final = 64 << 10
SPECIAL_BATCHES_MAX: Final = 16
"""How many batches a step takes one by one: compressed ones, and those of transactions."""


class SegmentReader:
    """Hands out a segment's bytes from `position` on; what was not used comes again."""

    def __init__(self, disk: Disk, path: str, position: int, io_bytes: int) -> None:
        self.path = path
        self._disk = disk
        self._position = position
        self._size = disk.size(path)
        self._io_bytes = self._chunk_bytes = max(io_bytes, IO_BYTES_MIN)

    def read(self) -> bytes:
        """Return the next bytes, at least one whole batch of them, or none at the end."""
        return self._disk.read(self.path, self._position, self._chunk_bytes)

    def advance(self, data: bytes, used: int) -> None:
        """Note that the first `used` bytes of what was read are done."""
        if used:
            self._chunk_bytes = self._io_bytes
        elif self._position + len(data) < self._size:
            self._chunk_bytes *= 2  # the batch is larger than that
        else:
            raise CorruptBatchError(f"{self.path}: cut off in the batch at {self._position}")
        self._position += used


def batch_in(data: bytes, position: int, size: int) -> Batch:
    """Return the header of a batch whose checksum the kernel has looked at."""
    return read_batches(data, position, position + size, check_crc=False)[0]


def records_of(data: bytes, batch: Batch) -> Buffer:
    """Return the uncompressed records of a batch."""
    payload = memoryview(data)[batch.position + BATCH_HEADER_BYTES : batch.position + batch.size]
    if batch.codec == Codec.NONE:
        return payload
    return decompress(batch.codec, payload)
