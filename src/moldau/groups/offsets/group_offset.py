"""A committed offset, and the records that keep it."""

from typing import Final, NamedTuple

from moldau.coordination.stored_record import StoredRecord
from moldau.kernel.ids import Offset
from moldau.protocol.stored.offsets import OffsetCommitKey, OffsetCommitValue

NEVER: Final = -1
"""No time of its own at which it expires: the broker's retention counts."""

NO_ID: Final = bytes(16)
"""Instead of a topic's id where it is not known."""

_LATEST: Final = 4
_WITH_EXPIRY: Final = 1
"""The only version of the value that has room for a time of expiry."""


class GroupOffset(NamedTuple):
    """How far a group came in a partition."""

    offset: Offset
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int
    """Set by clients that ask for a retention of their own, else `NEVER`."""
    topic_id: bytes
    """`NO_ID` where it was not recorded."""
    record_offset: Offset
    """Where it is recorded: the later one of two counts."""


def commit_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue
) -> StoredRecord:
    """Return what records a commit."""
    version = _LATEST if value.expire_timestamp == NEVER else _WITH_EXPIRY
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return StoredRecord(key, value, version)


def tombstone(group_id: str, topic: str, partition: int) -> StoredRecord:
    """Return what takes a commit back."""
    return StoredRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)
