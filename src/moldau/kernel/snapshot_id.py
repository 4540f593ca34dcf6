"""Names of snapshots of the metadata log."""

import re
from typing import Final, NamedTuple

from moldau.kernel.ids import LeaderEpoch, Offset

SUFFIX: Final = ".checkpoint"

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Which log a snapshot replaces: everything below an offset, the last of it in an epoch."""

    end_offset: Offset
    epoch: LeaderEpoch

    @property
    def file_name(self) -> str:
        """The name of the snapshot's file in the directory of the metadata log."""
        return f"{self.end_offset:020}-{self.epoch:010}{SUFFIX}"


FIRST_SNAPSHOT: Final = SnapshotId(Offset(0), LeaderEpoch(0))
"""In a formatted directory: the first voters, where the quorum can change, and nothing else."""


def find_snapshot_id(file_name: str) -> SnapshotId | None:
    """Return the id in the name of a finished snapshot's file."""
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    return SnapshotId(Offset(int(match[1])), LeaderEpoch(int(match[2])))
