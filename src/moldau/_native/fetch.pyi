"""The fetch kernel: a fetch that finds nothing unusual, from its partitions to its response."""

from collections.abc import Mapping
from typing import Any, Protocol, final

from moldau._native.fetch_request import FetchedPartition, FetchSession
from moldau._native.files import FileRegion
from moldau.kernel.disk import Buffer

class BytesOut(Protocol):
    """Counts what is read and not sent yet: a broker."""

    fetch_bytes_out: int

@final
class ReadPlaces:
    """Where readers of a log go on: the ends of the last reads, by offset."""

    def clear(self) -> None:
        """Forget all."""

@final
class PlainRead:
    """What one partition has for a reader: a range of a segment's file, or nothing new."""

    wanted: FetchedPartition
    replica: Any
    segment: Any
    position: int
    length: int
    high_watermark: int
    stable_offset: int
    log_start: int

@final
class PlainReads:
    """What a fetch finds, of each partition in order."""

    reads: list[PlainRead]
    size: int
    is_urgent: bool
    """Whether to answer with less than was asked for."""
    left_out: FetchedPartition | None
    """The first that has more, and nothing here."""
    memory_bytes: int
    """How much of it the answer has in memory."""

def find_plain(
    leaders: Mapping[bytes, Any],
    wanted: list[FetchedPartition],
    is_stable: bool,
    bytes_max: int,
) -> PlainReads | None:
    """Find what a fetch gets of each partition; None if any of it is unusual.

    Raises what a look into a log may raise: then the long way finds the same.
    """

def try_read(replica: Any, offset: int, is_stable: bool, bytes_max: int) -> Buffer | None:
    """Return what one partition has from the batch on that holds `offset`.

    None if there is nothing, or anything is unusual, or not in memory. Raises what a look into a
    log may raise: then the long way finds the same.
    """

def answer_plain(
    found: PlainReads,
    session: FetchSession | None,
    version: int,
    correlation_id: int,
    is_stable: bool,
    region_bytes_min: int,
) -> bytes | list[Buffer | FileRegion] | None:
    """Return the response with what was found; None, and nothing changes, if it is not in memory.

    Of files, ranges of `region_bytes_min` bytes and more stay there; -1: none do. The session
    knows then what its client was told, and the traffic of the topics is counted.
    """

def encode_plain(
    version: int,
    correlation_id: int,
    session_id: int,
    reads: list[PlainRead],
    contents: list[Buffer | FileRegion],
    is_incremental: bool,
    is_stable: bool,
    region_bytes_min: int,
) -> bytes | list[Buffer | FileRegion] | None:
    """Encode a response; None if records are not in memory.

    `contents` are those of the reads that have any. In an incremental session the client hears
    only of what it was not told before.
    """

@final
class SentBytes:
    """Counts bytes as read and not sent, until it is called."""

    def __init__(self, broker: BytesOut, count: int) -> None: ...
    def __call__(self) -> None: ...
