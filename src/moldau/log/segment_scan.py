"""Reading a segment from one batch to the next, in pieces that bound memory."""

from collections.abc import Iterator
from typing import Final

from moldau._native.records import Batch
from moldau._native.segment_scan import SegmentScan
from moldau.kernel.disk import Disk

CHUNK_BYTES: Final = 1 << 20
HEADERS_CHUNK_BYTES: Final = 64 << 10
SMALL_BYTES: Final = 4 << 10


def scan_segment(
    disk: Disk, path: str, scan: SegmentScan, size: int
) -> Iterator[tuple[int, list[Batch]]]:
    """Feed the file to `scan`: yield for each chunk its size and the producers' batches in it.

    Ends at the end of the file, or when the scan has failed.
    """
    while scan.failure is None and scan.next_position < size:
        position = scan.next_position
        chunk_bytes = CHUNK_BYTES if scan.is_checking else HEADERS_CHUNK_BYTES
        chunk = disk.read(path, position, min(chunk_bytes, size - position))
        if not chunk:
            break
        yield len(chunk), scan.feed(chunk)
    if scan.failure is None:
        scan.finish()


def read_whole(disk: Disk, path: str) -> bytes:
    """Read a small file; asking for its size first would cost as much as reading it."""
    parts = []
    position = 0
    while True:
        part = disk.read(path, position, SMALL_BYTES)
        parts.append(part)
        position += len(part)
        if len(part) < SMALL_BYTES:
            return b"".join(parts)
