"""The log kernel: batches at a segment's end, and the search for one by its offset."""

from array import array
from collections.abc import Sequence
from typing import final

from moldau._native.records import Batch, RecordStats
from moldau.kernel.ids import Offset

Buffer = bytes | bytearray | memoryview

@final
class Ordinary:
    """The batches that a topic takes as they are, which are nearly all."""

    def __init__(
        self,
        *,
        batch_bytes_max: int,
        total_bytes_max: int,
        before_ms_max: int,
        after_ms_max: int,
        is_keyed: bool,
    ) -> None: ...
    def take(
        self, checked: Sequence[tuple[Batch, RecordStats | None]], is_client: bool, now_ms: int
    ) -> list[Batch] | None:
        """Return the batches if there is nothing to refuse or to change; None: look closer.

        What has no stats is of the broker's own making, and right.
        """

def assign(
    data: bytearray | memoryview,
    batches: list[Batch],
    base_offset: int,
    leader_epoch: int,
    append_time: int,
) -> Offset:
    """Give consecutive offsets and the epoch to batches of `data`; return the offset after them.

    With an `append_time` that is not negative they get log append time and a new checksum as well.
    `data` and `batches` both change. (Arguments by position, here and below: the hot path.)
    """

@final
class Entries:
    """Index entries to be added: relative offsets with positions, timestamps with offsets."""

    @property
    def offsets(self) -> array[int]: ...
    @property
    def positions(self) -> array[int]: ...
    @property
    def timestamps(self) -> array[int]: ...
    @property
    def timestamp_offsets(self) -> array[int]: ...

@final
class Tail:
    """Where a segment ends, what its next batch means for the indexes, and when it is full."""

    base_offset: int
    created_ms: int

    def __init__(
        self,
        base_offset: int,
        *,
        created_ms: int,
        end_offset: int = -1,
        position: int = 0,
        first_timestamp: int = -1,
        max_timestamp: int = -1,
        max_timestamp_offset: int = -1,
        entry_timestamp: int = -1,
        offset_entries: int = 0,
        time_entries: int = 0,
    ) -> None: ...
    def limit(
        self, *, bytes_max: int, age_ms_max: int, interval_bytes: int, index_bytes_max: int
    ) -> None:
        """Set when the segment is full, and how many bytes lie between index entries."""
    @property
    def end_offset(self) -> Offset: ...
    @property
    def position(self) -> int: ...
    @property
    def first_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def max_timestamp_offset(self) -> Offset: ...
    @property
    def marked_end_offset(self) -> Offset: ...
    @property
    def marked_position(self) -> int: ...
    @property
    def entry_count(self) -> int:
        """How many entries of the offset index wait to be taken."""
    def stage(self, batches: list[Batch], start: int, now_ms: int) -> int:
        """Put the batches from number `start` on at the end; return the first that does not fit."""
    def mark(self) -> None:
        """What was staged is written."""
    def rewind(self) -> None:
        """What was staged since the last mark never was."""
    def take_entries(self) -> Entries | None:
        """Hand out the index entries that gathered; everything is marked then."""

def find_batch(window: Buffer, offset: int) -> tuple[int, int, int]:
    """Find the first batch that ends at `offset` or later, from one that begins the window.

    Returns its position in the window, its size and its last offset. When it is not there, the
    position is where to go on, the size is 0 and the last offset the one before.
    """
