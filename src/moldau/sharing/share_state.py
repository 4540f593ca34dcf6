"""What the share coordinator keeps of one partition for one group."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from moldau.coordination.stored_record import StoredRecord
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import Offset, TopicId
from moldau.kernel.uuid_text import uuid_to_text
from moldau.protocol.stored import share_group_state as stored
from moldau.sharing.combination import combine
from moldau.sharing.states import RecordState, StateBatch

KEYS_MAX: Final = 4096
"""How many keys' texts are remembered."""

UNSET = -1
"""An epoch, start or count that is not said."""


class ShareKey(NamedTuple):
    """A partition, for a group."""

    group_id: str
    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


# A record's fetch, acknowledgement and state each ask for its key, and for the coordinator's.
@lru_cache(maxsize=KEYS_MAX)
def share_key(group_id: str, topic_id: bytes, partition: int) -> ShareKey:
    """Return the key of a partition, for a group."""
    return ShareKey(group_id, TopicId(topic_id), partition)


@lru_cache(maxsize=KEYS_MAX)
def coordinator_key(key: ShareKey) -> str:
    """Return the text by which a state's coordinator is found."""
    return str(key)


@dataclass(frozen=True, slots=True)
class ShareState:
    """What was told last, and under which epochs."""

    state_epoch: int
    """Grows when the state is begun anew, with another start."""
    leader_epoch: int = 0
    """That of the partition's leader that told it."""
    start_offset: int = UNSET
    delivery_complete_count: int = UNSET
    batches: tuple[StateBatch, ...] = ()
    snapshot_epoch: int = 0
    created_ms: int = 0
    written_ms: int = 0

    def changed(
        self,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[StateBatch],
    ) -> "ShareState":
        """Return the state after something was told; what comes late moves the start not back."""
        start = max(self.start_offset, start_offset)
        return ShareState(
            self.state_epoch,
            self.leader_epoch if leader_epoch == UNSET else leader_epoch,
            start,
            delivery_complete_count,
            combine(self.batches, batches, start),
            self.snapshot_epoch,
            self.created_ms,
            self.written_ms,
        )

    def snapshot(self, key: ShareKey) -> StoredRecord:
        """Return the record that says all of it."""
        return StoredRecord(
            stored.ShareSnapshotKey(
                group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
            ),
            stored.ShareSnapshotValue(
                snapshot_epoch=self.snapshot_epoch,
                state_epoch=self.state_epoch,
                leader_epoch=self.leader_epoch,
                start_offset=self.start_offset,
                delivery_complete_count=self.delivery_complete_count,
                create_timestamp=self.created_ms,
                write_timestamp=self.written_ms,
                state_batches=_to_wire(self.batches),
            ),
        )

    @classmethod
    def of_snapshot(cls, value: stored.ShareSnapshotValue) -> "ShareState":
        """Return what a record says."""
        return cls(
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=_of_wire(value.state_batches),
            snapshot_epoch=value.snapshot_epoch,
            created_ms=value.create_timestamp,
            written_ms=value.write_timestamp,
        )

    def updated(self, value: stored.ShareUpdateValue) -> "ShareState":
        """Return the state after a record of what was told since the snapshot."""
        return self.changed(
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            _of_wire(value.state_batches),
        )


def update_record(
    key: ShareKey,
    snapshot_epoch: int,
    leader_epoch: int,
    start_offset: int,
    delivery_complete_count: int,
    batches: Iterable[StateBatch],
) -> StoredRecord:
    """Return the record of something that was told."""
    return StoredRecord(
        stored.ShareUpdateKey(
            group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
        ),
        stored.ShareUpdateValue(
            snapshot_epoch=snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=_to_wire(combine((), batches, UNSET)),
        ),
    )


def tombstone(key: ShareKey) -> StoredRecord:
    """Return the record that makes a state forgotten."""
    return StoredRecord(
        stored.ShareSnapshotKey(
            group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
        ),
        None,
    )


def _to_wire(batches: Iterable[StateBatch]) -> list[stored.StateBatch]:
    return [
        stored.StateBatch(
            first_offset=batch.first,
            last_offset=batch.last,
            delivery_state=batch.state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    ]


class WireBatch(Protocol):
    """States, as they are recorded and as leaders tell them."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def state_batches(batches: Iterable[WireBatch]) -> tuple[StateBatch, ...]:
    """Return what batches say; `ValueError` for a state that is not known here."""
    return tuple(
        [
            StateBatch(
                Offset(batch.first_offset),
                Offset(batch.last_offset),
                RecordState(batch.delivery_state),
                batch.delivery_count,
            )
            for batch in batches
        ]
    )


def _of_wire(batches: Iterable[stored.StateBatch]) -> tuple[StateBatch, ...]:
    try:
        return state_batches(batches)
    except ValueError as error:
        raise ProtocolError(f"a share state: {error}") from error
