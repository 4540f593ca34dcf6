"""Records in __transaction_state."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, int64, string


class TransactionLogKey(Message, api_key=0, versions=(0, 0)):
    transactional_id: str = field(string)


class PartitionsSchema(Struct):
    topic: str = field(string)
    partition_ids: Sequence[int] = field(Array(int32))


class TransactionLogValue(Message, api_key=0, versions=(0, 1), flexible=1):
    producer_id: int = field(int64)
    previous_producer_id: int = field(int64, since=1, tag=0, default=-1)
    next_producer_id: int = field(int64, since=1, tag=1, default=-1)
    producer_epoch: int = field(int16)
    next_producer_epoch: int = field(int16, since=1, tag=3, default=-1)
    transaction_timeout_ms: int = field(int32)
    transaction_status: int = field(int8)
    transaction_partitions: Sequence[PartitionsSchema] | None = field(
        Array(PartitionsSchema), nullable=0
    )
    transaction_last_update_timestamp_ms: int = field(int64)
    transaction_start_timestamp_ms: int = field(int64)
    client_transaction_version: int = field(int16, since=1, tag=2)
