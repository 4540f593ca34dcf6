"""Group commit: which sync comes next, and what it will have made durable."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from moldau.kernel.disk import DiskError
from moldau.kernel.ids import Offset, TopicPartition


@dataclass(frozen=True, slots=True)
class Dirty:
    """A partition was written up to `end`, in these files; the directories have new names."""

    partition: TopicPartition
    end: Offset
    files: Sequence[str]
    directories: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """Event: what one wake-up wrote."""

    dirty: Sequence[Dirty]


@dataclass(frozen=True, slots=True)
class Truncated:
    """Event: a partition lost everything from `end` on; what follows there is other data."""

    partition: TopicPartition
    end: Offset


@dataclass(frozen=True, slots=True)
class SyncDone:
    """Event: the sync that was started is complete."""


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """Event: the sync that was started failed."""

    error: DiskError


@dataclass(frozen=True, slots=True)
class StartSync:
    """Effect: sync these, off the event loop."""

    files: Sequence[str]
    directories: Sequence[str]


@dataclass(frozen=True, slots=True)
class Synced:
    """Effect: the partition is durable up to `end`."""

    partition: TopicPartition
    end: Offset


@dataclass(frozen=True, slots=True)
class GoOffline:
    """Effect: the directory has lost writes; nothing in it may be acknowledged any more."""

    error: DiskError


Event: TypeAlias = Written | Truncated | SyncDone | SyncFailed
Effect: TypeAlias = StartSync | Synced | GoOffline


@dataclass(slots=True)
class _Batch:
    """What one sync covers; dicts, because a set has no order to replay."""

    ends: dict[TopicPartition, Offset] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    directories: dict[str, None] = field(default_factory=dict)

    def add(self, dirty: Dirty) -> None:
        assert dirty.files, "nothing to sync, so nobody to say when it is done"
        self.ends[dirty.partition] = dirty.end
        self.files.update(dict.fromkeys(dirty.files))
        self.directories.update(dict.fromkeys(dirty.directories))


class GroupCommit:
    """The syncs of one log directory: idle, syncing (and gathering meanwhile), or offline.

        idle     Written    -> syncing   start a sync of what was written
        syncing  Written    -> syncing   gather
        syncing  SyncDone   -> idle      nothing gathered
        syncing  SyncDone   -> syncing   start a sync of what was gathered
        syncing  SyncFailed -> offline   for good: a failed sync is never tried again

    So a lone write never waits for company, and under load one sync serves everyone who came while
    the last one ran.
    """

    def __init__(self) -> None:
        self._running: _Batch | None = None
        self._gathered = _Batch()
        self._offline = False

    def handle(self, event: Event) -> list[Effect]:
        """Return what to do about an event."""
        if self._offline:
            return []
        match event:
            case Written(dirty):
                for each in dirty:
                    self._gathered.add(each)
                return self._start() if self._running is None else []
            case Truncated(partition, end):
                # A running sync started before the cut: it vouches for nothing written after it.
                for batch in (self._running, self._gathered):
                    if batch is not None and partition in batch.ends:
                        batch.ends[partition] = min(batch.ends[partition], end)
                return []
            case SyncDone():
                assert self._running is not None
                ends = self._running.ends.items()
                self._running = None
                # The device goes first: it works while everybody is told of the last sync.
                return [*self._start(), *(Synced(partition, end) for partition, end in ends)]
            case SyncFailed(error):
                self._offline = True
                return [GoOffline(error)]

    def _start(self) -> list[Effect]:
        batch = self._gathered
        if not batch.ends:
            return []
        self._running = batch
        self._gathered = _Batch()
        return [StartSync(tuple(batch.files), tuple(batch.directories))]
