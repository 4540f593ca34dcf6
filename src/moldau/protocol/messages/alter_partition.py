"""AlterPartition, API key 56: v2-v3, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    field,
    int8,
    int16,
    int32,
    int64,
    uuid,
)


class BrokerState(Struct):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)


class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = field(int32)
    leader_epoch: int = field(int32)
    new_isr: Sequence[int] = field(Array(int32), until=2)
    new_isr_with_epochs: Sequence[BrokerState] = field(Array(BrokerState), since=3)
    leader_recovery_state: int = field(int8)
    partition_epoch: int = field(int32)


class AlterPartitionRequestTopicData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[AlterPartitionRequestPartitionData] = field(
        Array(AlterPartitionRequestPartitionData)
    )


class AlterPartitionRequest(Message, api_key=56, versions=(2, 3), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    topics: Sequence[AlterPartitionRequestTopicData] = field(Array(AlterPartitionRequestTopicData))


class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    isr: Sequence[int] = field(Array(int32))
    leader_recovery_state: int = field(int8)
    partition_epoch: int = field(int32)


class AlterPartitionResponseTopicData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[AlterPartitionResponsePartitionData] = field(
        Array(AlterPartitionResponsePartitionData)
    )


class AlterPartitionResponse(Message, api_key=56, versions=(2, 3), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    topics: Sequence[AlterPartitionResponseTopicData] = field(
        Array(AlterPartitionResponseTopicData)
    )
