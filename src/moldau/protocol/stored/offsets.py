"""Records of classic groups and committed offsets in __consumer_offsets."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    blob,
    field,
    int32,
    int64,
    string,
    uuid,
)


class LegacyOffsetCommitKey(Message, api_key=0, versions=(0, 0)):
    group: str = field(string)
    topic: str = field(string)
    partition: int = field(int32)


class LegacyOffsetCommitValue(Message, api_key=0, versions=(0, 0)):
    offset: int = field(int64)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)


class OffsetCommitKey(Message, api_key=1, versions=(0, 0)):
    group: str = field(string)
    topic: str = field(string)
    partition: int = field(int32)


class OffsetCommitValue(Message, api_key=1, versions=(0, 4), flexible=4):
    offset: int = field(int64)
    leader_epoch: int = field(int32, since=3, default=-1, ignorable=True)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)
    expire_timestamp: int = field(int64, since=1, until=1, default=-1, ignorable=True)
    topic_id: Uuid = field(uuid, since=4, tag=0, ignorable=True)


class GroupMetadataKey(Message, api_key=2, versions=(0, 0)):
    group: str = field(string)


class MemberMetadata(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, since=3, nullable=3, default=None, ignorable=True)
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout: int = field(int32, since=1, default=-1, ignorable=True)
    session_timeout: int = field(int32)
    subscription: bytes = field(blob)
    assignment: bytes = field(blob)


class GroupMetadataValue(Message, api_key=2, versions=(0, 4), flexible=4):
    protocol_type: str = field(string)
    generation: int = field(int32)
    protocol: str | None = field(string, nullable=0)
    leader: str | None = field(string, nullable=0)
    current_state_timestamp: int = field(int64, since=2, default=-1, ignorable=True)
    members: Sequence[MemberMetadata] = field(Array(MemberMetadata))
