"""Requests about offsets, in few words."""

from typing import Any

from moldau.groups.commands import FetchOffsets
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP = "readers"
TOPIC = "orders"
TOPIC_ID = b"orders".ljust(16, b".")


def commit(offset: int = 5, *, partition: int = 0, **fields: Any) -> OffsetCommitRequest:
    """Commit one offset."""
    row = OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_metadata=fields.pop("metadata", ""),
        committed_leader_epoch=fields.pop("leader_epoch", -1),
        commit_timestamp=fields.pop("commit_timestamp", -1),
    )
    topic = OffsetCommitRequestTopic(
        name=fields.pop("topic", TOPIC),
        topic_id=fields.pop("topic_id", TOPIC_ID),
        partitions=[row],
    )
    return OffsetCommitRequest(group_id=fields.pop("group", GROUP), topics=[topic], **fields)


def commit_in_transaction(
    producer: tuple[int, int], offset: int = 5, *, partition: int = 0, **fields: Any
) -> TxnOffsetCommitRequest:
    """Commit one offset as part of a producer's transaction."""
    row = TxnOffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_metadata=fields.pop("metadata", ""),
    )
    topic = TxnOffsetCommitRequestTopic(
        name=fields.pop("topic", TOPIC),
        topic_id=fields.pop("topic_id", TOPIC_ID),
        partitions=[row],
    )
    return TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=fields.pop("group", GROUP),
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[topic],
        **fields,
    )


def fetch(
    *partitions: int, group: str = GROUP, topic: str = TOPIC, is_stable: bool = False, **fields: Any
) -> FetchOffsets:
    """Ask for offsets of some partitions, of all if none is named."""
    topic_id = fields.pop("topic_id", bytes(16))
    topics = [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=partitions)]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics if partitions else None, **fields)
    return FetchOffsets(asked, is_stable)


def delete(*partitions: int, group: str = GROUP, topic: str = TOPIC) -> OffsetDeleteRequest:
    """Delete offsets of some partitions."""
    rows = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    return OffsetDeleteRequest(
        group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=rows)]
    )
