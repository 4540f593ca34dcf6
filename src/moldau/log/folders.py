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
_MARKED = re.compile(r"[a-zA-Z0-9._-]+-[0-9]+\.[^.]+-(delete|future|stray)")


class FolderState(Enum):
    """What a partition's folder is there for."""

    IN_USE = "in use"
    DELETED = "delete"  # its files are being removed
    FUTURE = "future"  # a replica on its way from another log directory
    STRAY = "stray"  # set aside: damaged, or of a topic that is no more


class Folder(NamedTuple):
    """A partition's folder; only what is in use can tell its partition, others' may be cut."""

    state: FolderState
    partition: TopicPartition | None


def parse_folder(name: str) -> Folder | None:
    """Tell what a folder is by its name; None if it is none of ours."""
    if match := _MARKED.fullmatch(name):
        return Folder(FolderState(match[1]), None)
    match = _PARTITION.fullmatch(name)
    if match is None or int(match[2]) >= 1 << 31 or match[1] in (".", ".."):
        return None
    return Folder(FolderState.IN_USE, TopicPartition(match[1], int(match[2])))


def marked_name(partition: TopicPartition, unique: bytes, state: FolderState) -> str:
    """Return what a partition's folder is renamed to; a long topic name is cut."""
    suffix = f"-{partition.partition}.{unique.hex()}-{state.value}"
    return partition.topic[: NAME_BYTES_MAX - len(suffix)] + suffix


def is_known(name: str) -> bool:
    """Return whether an entry at the top is expected there, and is no partition."""
    return name in _OTHERS or name.removesuffix(TEMPORARY_SUFFIX) in _FILES
