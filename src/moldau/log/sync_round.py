"""What is synced together in one log directory: databases call it a group commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from moldau.kernel.ids import TopicPartition
from moldau.log.dirty import Dirty
from moldau.log.partition import PartitionLog


class PartitionSync(NamedTuple):
    """A partition's share of a round."""

    partition: TopicPartition
    log: PartitionLog
    dirty: Dirty


@dataclass(frozen=True, slots=True)
class SyncRound:
    """First the files are synced, then small files replaced, then the directories' names synced.

    What is missing by then was removed or renamed together with its partition, which is fine.
    """

    files: Sequence[str] = ()
    replacements: Sequence[tuple[str, bytes]] = ()
    directories: Sequence[str] = ()
    partitions: Sequence[PartitionSync] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.files or self.replacements or self.directories)
