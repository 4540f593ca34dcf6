"""InitProducerId, API key 22: v0-v6, flexible from v2, v6 unstable."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, boolean, field, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions=(0, 6), flexible=2):
    transactional_id: str | None = field(string, nullable=0)
    transaction_timeout_ms: int = field(int32)
    producer_id: int = field(int64, since=3, default=-1)
    producer_epoch: int = field(int16, since=3, default=-1)
    enable2_pc: bool = field(boolean, since=6)
    keep_prepared_txn: bool = field(boolean, since=6)


class InitProducerIdResponse(Message, api_key=22, versions=(0, 6), flexible=2):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, default=-1)
    producer_epoch: int = field(int16)
    ongoing_txn_producer_id: int = field(int64, since=6, default=-1)
    ongoing_txn_producer_epoch: int = field(int16, since=6, default=-1)
