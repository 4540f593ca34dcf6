"""What the folders and files at the top of a log directory are."""

import re
from enum import Enum
from typing import Final, NamedTuple

from moldau.kernel.disk import TEMPORARY_SUFFIX
from moldau.kernel.ids import TopicPartition
from moldau.log.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
)
from moldau.log.identity import META_PROPERTIES

NAME_BYTES_MAX: Final = 255

_FILES: Final = {
    META_PROPERTIES, RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED_OFFSETS, CLEAN_SHUTDOWN,
}  # fmt: skip
# What other parts of a node, or the file system, keep here.
_OTHERS: Final = {".lock", "bootstrap.checkpoint", "__cluster_metadata-0/", "lost+found/"}

# Topic names as Kafka has them; the ids are what its UUIDs look like without dashes.
_PARTITION = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_MARKED = re.compile(r"([a-zA-Z0-9._-]+-[0-9]+)\.[^.]+-(delete|future|stray)")


class FolderState(Enum):
    """What a partition's folder is there for."""

    IN_USE = "in use"
    DELETED = "delete"  # its files are being removed
    FUTURE = "future"  # a replica on its way from another log directory
    STRAY = "stray"  # set aside: damaged, or of a topic that is no more


class Folder(NamedTuple):
    """A partition's folder, and of whose it is: none for what is going, whose name may be cut."""

    state: FolderState
    partition: TopicPartition | None


def parse_folder(name: str) -> Folder | None:
    """Tell what a folder is by its name; None if it is none of ours."""
    if match := _MARKED.fullmatch(name):
        state = FolderState(match[2])
        partition = _parse_partition(match[1]) if state is FolderState.FUTURE else None
        return Folder(state, partition)
    partition = _parse_partition(name)
    return None if partition is None else Folder(FolderState.IN_USE, partition)


def _parse_partition(name: str) -> TopicPartition | None:
    match = _PARTITION.fullmatch(name)
    if match is None or int(match[2]) >= 1 << 31 or match[1] in (".", ".."):
        return None
    return TopicPartition(match[1], int(match[2]))


def marked_name(partition: TopicPartition, unique: bytes, state: FolderState) -> str:
    """Return what a partition's folder is renamed to; a long topic name is cut."""
    suffix = f"-{partition.partition}.{unique.hex()}-{state.value}"
    return partition.topic[: NAME_BYTES_MAX - len(suffix)] + suffix


def remarked_name(name: str, unique: bytes, state: FolderState) -> str:
    """Return what a folder that was renamed before is renamed to."""
    return f"{name.rpartition('.')[0]}.{unique.hex()}-{state.value}"


def is_known(name: str) -> bool:
    """Return whether an entry at the top is expected there, and is no partition."""
    return name in _OTHERS or name.removesuffix(TEMPORARY_SUFFIX) in _FILES
