"""The append kernel: what an ordinary append touches, from the replica to the disk and back.

Python decides about everything else, with the same pieces: a batch that is not ordinary is declined
here before anything has changed, and a write that is more than pieces for one segment is not begun.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, final

from moldau._native.log import Ordinary, Tail
from moldau._native.producers import ProducerTable
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Buffer, Disk, DiskError, DiskFullError
from moldau.kernel.ids import LeaderEpoch, Offset, Position

@final
class Place:
    """An offset that begins a batch, or ends the log, with its place in a segment."""

    def __init__(
        self, offset: Offset, segment_base_offset: Offset, position: Position, /
    ) -> None: ...
    @property
    def offset(self) -> Offset: ...
    @property
    def segment_base_offset(self) -> Offset: ...
    @property
    def position(self) -> Position: ...

class SegmentBase:
    """What of a segment every write touches; the one that is written has a tail."""

    disk: Disk
    path: str
    tail: Tail | None
    size: int
    has_files: bool

    def __init__(self, disk: Disk, path: str, base_offset: Offset, /) -> None: ...
    @property
    def base_offset(self) -> Offset: ...
    def note_written(self) -> None:
        """Count what was written: the disk has taken it."""

class Room:
    """How many bytes may still be written to a volume."""

    free_bytes: int
    floor_bytes: int
    """Below it nothing is admitted."""

    def __init__(self, *, free_bytes: int) -> None: ...
    def admits(self, size: int, /) -> bool:
        """Say whether records of `size` bytes may be written, and count them if so."""

@final
class StagedLogs:
    """The ends of the logs to which something was appended since the last write."""

    def __init__(self) -> None: ...
    def __bool__(self) -> bool: ...
    @property
    def now(self) -> Instant:
        """The time of the last append: clocks are slow to read."""

    def take(self) -> list[LogEnd]:
        """Hand out the ends, in the order of their first append; others gather from here on."""

class LogEnd:
    """What of a log every append touches.

    What is appended is staged in `pieces` until it is written; until then it can be taken back.
    """

    segments: list[Any]
    log_start: Offset
    synced: Offset
    """Everything below is on the device: the recovery point."""
    producers: ProducerTable
    ordinary: Ordinary | None
    """Which batches need not be looked at closer; None if all do."""
    epoch: LeaderEpoch
    """The newest leader epoch, -1 if there is none."""
    is_plain: bool
    """Whether what is staged is nothing but pieces for the last segment."""
    is_noted: bool
    """Whether the log directory knows of everything that a write would tell it."""
    needs_sync: bool
    """Whether only what is synced is durable."""
    held_at: Offset
    """The end of what may count as durable; -1: everything that is."""
    dirty: Any
    """The files to be synced, `log.dirty.DirtyFiles`."""
    take_back: Callable[[DiskFullError], Exception]
    """Undoes what is staged when it could not be written; returns what to tell of it."""
    high_place: Place | None
    """Where the high watermark is, if that is known."""

    def __init__(self, segments: list[Any], log_start: Offset, synced: Offset, /) -> None: ...
    @property
    def pieces(self) -> list[Buffer]:
        """What is staged for the last segment."""

    @property
    def tail(self) -> Tail:
        """Where the log ends."""

    @property
    def end_offset(self) -> Offset:
        """The next offset, what is staged included."""

    @property
    def written_offset(self) -> Offset:
        """The end of what was given to the disk."""

    @property
    def durable_offset(self) -> Offset:
        """The end of what is durable here: synced or only written, as `needs_sync` says."""

    @property
    def high_watermark(self) -> Offset:
        """The end of what consumers see."""

    # Staging.

    @property
    def berth(self) -> Any:
        """What the shell has given to `berth_in`."""

    @property
    def is_staged(self) -> bool:
        """Whether it waits for the turn's write."""

    def berth_in(self, staged: StagedLogs, room: Room | None, berth: object, /) -> None:
        """Have what is appended written by a shell; None: there is always room."""

    def enlist(self, size: int, now: Instant, /) -> bool:
        """Have the log written when the turn ends, if it has a berth with room; say whether."""

    # Writing.

    def try_write(self) -> bool:
        """Write what is staged if it is plain; say whether anything was written.

        What `take_back` returns is raised when the disk is full.
        """

    def note_written(self) -> None:
        """What was staged is written: the last segment ends there, and nothing is taken back."""

    def take_pieces(self) -> list[Buffer]:
        """Hand out what is staged for the last segment."""

    # Writing elsewhere.

    @property
    def handed_write(self) -> Any:
        """The write that is under way; None if there is none."""

    @property
    def mean_piece_bytes(self) -> int:
        """How large the pieces are that could be handed over.

        0 if there are none, if they are not plain, and while a write is under way.
        """

    def hand_over(self, write: object, /) -> None:
        """Have what is staged written elsewhere; what is staged from here on is written after it.

        Until `end_write` only `try_append` may stage anything.
        """

    def end_write(self, error: DiskError | None, /) -> None:
        """What was handed over is written, or could not be: then this raises.

        On a full disk everything since the last good write is undone, and what `take_back` returns
        is raised.
        """

    def settle(self) -> None:
        """Wait until no write is under way."""

    # How far readers see.

    def find_place(self, offset: Offset, /) -> Place | None:
        """Return the place of an offset if one of the last writes ended there."""

    def forget_places(self) -> None:
        """Segments were replaced."""

    def advance(self, offset: Offset, /) -> bool:
        """Move the high watermark up to `offset`, as far as the log goes; say whether it moved."""

    def set_high_watermark(self, offset: Offset, /) -> None:
        """Put the high watermark at `offset`."""

    def commit(self) -> bool:
        """Have the replica that leads commit what is durable; say whether there is one."""

@final
class TopicTraffic:
    """The counts of one topic on this broker; all its partitions share them.

    They mean what Kafka's BrokerTopicMetrics mean. A request counts once for each partition in it.
    """

    partitions: int
    """How many share them: they go with the last."""
    messages_in: int
    bytes_in: int
    bytes_rejected: int
    bytes_out: int
    produce_requests: int
    produce_failed: int
    fetch_requests: int
    fetch_failed: int

class ReplicaBase:
    """What of a replica every append and every commit touches."""

    leader_epoch: LeaderEpoch
    is_under_min_in_sync: bool
    """Whether acks=all is refused, and nothing more is committed (KIP-966)."""
    log: Any
    """None while it is being made, and when its directory has failed."""
    callbacks: deque[tuple[Offset, Any]]
    """Callbacks of appends, with the offsets that the high watermark has to reach."""
    readers: dict[Any, None]

    def __init__(self, traffic: TopicTraffic, /) -> None: ...
    @property
    def traffic(self) -> TopicTraffic: ...
    @property
    def log_start(self) -> Offset:
        """The first offset that may be read; -1 without a log."""

    def try_append(
        self,
        data: bytearray | memoryview,
        start: int,
        end: int,
        now: Instant,
        acks: int,
        callback: object,
        /,
    ) -> int:
        """Append the batch of a client in data[start:end] if it is ordinary; return its offset.

        -1 declines, and nothing has changed: `Replica.append` finds what is wrong, if anything.
        """

    def commit(self) -> None:
        """Move the high watermark up to what is durable, and run the callbacks that it passes."""

    def wake(self) -> None:
        """Have all readers look again."""
