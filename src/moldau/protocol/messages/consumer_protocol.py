"""What classic consumers say to each other inside JoinGroup and SyncGroup."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, blob, field, int32, string


class ConsumerProtocolSubscriptionTopicPartition(Struct):
    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class ConsumerProtocolSubscription(Message, versions=(0, 3)):
    topics: Sequence[str] = field(Array(string))
    user_data: bytes | None = field(blob, nullable=0, default=None)
    owned_partitions: Sequence[ConsumerProtocolSubscriptionTopicPartition] = field(
        Array(ConsumerProtocolSubscriptionTopicPartition), since=1, ignorable=True
    )
    generation_id: int = field(int32, since=2, default=-1, ignorable=True)
    rack_id: str | None = field(string, since=3, nullable=3, default=None, ignorable=True)


class ConsumerProtocolAssignmentTopicPartition(Struct):
    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class ConsumerProtocolAssignment(Message, versions=(0, 3)):
    assigned_partitions: Sequence[ConsumerProtocolAssignmentTopicPartition] = field(
        Array(ConsumerProtocolAssignmentTopicPartition)
    )
    user_data: bytes | None = field(blob, nullable=0, default=None)
