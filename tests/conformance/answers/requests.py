"""Short ways to write the requests of groups and transactions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from moldau.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
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
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

Places = Mapping[str, Sequence[int]]
"""Partitions by the topic's name."""


def subscription(*topics: str) -> bytes:
    """Write what a consumer of these topics joins with."""
    return b"\0\0" + ConsumerProtocolSubscription(topics=topics).encode(0)


def assignment(places: Places) -> bytes:
    """Write what a leader hands a member."""
    rows = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
        for topic, partitions in places.items()
    ]
    return b"\0\0" + ConsumerProtocolAssignment(assigned_partitions=rows).encode(0)


def join(
    group: str, member_id: str = "", protocols: Iterable[str] = ("range",), **fields: Any
) -> JoinGroupRequest:
    """Ask to join a group of consumers of topic `a`, unless told otherwise."""
    metadata = fields.pop("metadata", subscription("a"))
    defaults = {
        "session_timeout_ms": 300_000,
        "rebalance_timeout_ms": 300_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **{**defaults, **fields})


def sync(
    group: str,
    member_id: str,
    generation: int,
    assignments: Mapping[str, bytes] | None = None,
    **fields: Any,
) -> SyncGroupRequest:
    """Ask for an assignment; the leader brings all of them."""
    rows = [
        SyncGroupRequestAssignment(member_id=member, assignment=data)
        for member, data in (assignments or {}).items()
    ]
    words = {"protocol_type": "consumer", "protocol_name": "range", **fields}
    return SyncGroupRequest(
        group_id=group, member_id=member_id, generation_id=generation, assignments=rows, **words
    )


def commit(
    group: str,
    places: Mapping[str, Mapping[int, int]],
    generation: int = -1,
    member_id: str = "",
    **fields: Any,
) -> OffsetCommitRequest:
    """Commit offsets by topic and partition; topics may be named by their ids' owners."""
    ids: Mapping[str, bytes] = fields.pop("ids", {})
    metadata = fields.pop("metadata", "")
    leader_epoch = fields.pop("leader_epoch", -1)
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            topic_id=ids.get(topic, bytes(16)),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offset,
                    committed_metadata=metadata,
                    committed_leader_epoch=leader_epoch,
                )
                for index, offset in offsets.items()
            ],
        )
        for topic, offsets in places.items()
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=topics,
        **fields,
    )


def fetch_offsets(group: str, places: Places | None, **fields: Any) -> OffsetFetchRequest:
    """Ask for committed offsets, of all topics if None, as versions below 8 do."""
    topics = None
    if places is not None:
        topics = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in places.items()
        ]
    return OffsetFetchRequest(group_id=group, topics=topics, **fields)


def of_group(
    group: str, places: Places | None, ids: Mapping[str, bytes] | None = None, **fields: Any
) -> OffsetFetchRequestGroup:
    """Ask for the committed offsets of one group of several."""
    topics = None
    if places is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=topic, topic_id=(ids or {}).get(topic, bytes(16)), partition_indexes=partitions
            )
            for topic, partitions in places.items()
        ]
    return OffsetFetchRequestGroup(group_id=group, topics=topics, **fields)


def delete_offsets(group: str, places: Places) -> OffsetDeleteRequest:
    """Ask to forget committed offsets."""
    topics = [
        OffsetDeleteRequestTopic(
            name=topic,
            partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for topic, indexes in places.items()
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def beat(group: str, member_id: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """Say that a member of the new protocol is there; with epoch 0, that it wants to join."""
    owned: Mapping[bytes, Sequence[int]] | None = fields.pop("owned", None)
    if owned is not None:
        fields["topic_partitions"] = [
            TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in owned.items()
        ]
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=epoch, **fields
    )


def joining(group: str, member_id: str, *topics: str, **fields: Any) -> Any:
    """Join by the new protocol as its clients do."""
    defaults = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": list(topics),
        "owned": {},
    }
    return beat(group, member_id, 0, **{**defaults, **fields})
