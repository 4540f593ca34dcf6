"""Segments and snapshots of metadata: batch after batch, the damaged ones, too."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moldau._native.records import Batch, Record, crc32c, read_batches
from moldau.kernel.errors import CorruptBatchError
from moldau.protocol.schema import Buffer
from moldau.records.batch import HEADER_BYTES, read_records

PREFIX_BYTES = 12
"""Of a batch, what its length does not count: the base offset and the length itself."""
CRC_FROM = 21
"""What the checksum covers begins there, behind itself and what a leader rewrites."""


class StoredBatch(NamedTuple):
    """A batch where it is in its file."""

    batch: Batch
    data: Buffer
    """The file that it is in."""
    is_valid: bool
    """Whether its checksum is right."""

    def records(self) -> list[Record]:
        """Decode its records; `InvalidRecordError` and `CompressionError` if that is impossible."""
        return read_records(self.data, self.batch)


class SegmentFile:
    """One file of batches, read while it is walked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            size = file.seek(0, 2)
            # What a running broker appends from now on is not seen.
            self.data: Buffer = (
                memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)) if size else b""
            )
        self.end = 0
        """Where the last whole batch ended."""

    @property
    def trailing_bytes(self) -> int:
        """How much lies behind the last whole batch, once all are walked."""
        return len(self.data) - self.end

    def batches(self, start: int = 0, bytes_max: int | None = None) -> Iterator[StoredBatch]:
        """Walk the batches from a position; stop where no whole batch follows.

        `CorruptBatchError` for what has a length and is no batch.
        """
        data, position = self.data, start
        limit = len(data) if bytes_max is None else min(len(data), start + bytes_max)
        while limit - position >= HEADER_BYTES:
            size = PREFIX_BYTES + int.from_bytes(data[position + 8 : position + 12], signed=True)
            end = position + size
            if size < HEADER_BYTES or end > limit:
                return
            try:
                [batch] = read_batches(data, position, end, check_crc=False)
            except CorruptBatchError as error:
                raise CorruptBatchError(f"{self.path}: at byte {position}: {error}") from None
            is_valid = crc32c(memoryview(data)[position + CRC_FROM : end]) == batch.crc
            yield StoredBatch(batch, data, is_valid)
            self.end = position = end
