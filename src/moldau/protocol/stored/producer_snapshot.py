"""A partition's producer snapshot file."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, int64, uint32


class ProducerEntry(Struct):
    producer_id: int = field(int64)
    epoch: int = field(int16)
    last_sequence: int = field(int32)
    last_offset: int = field(int64)
    offset_delta: int = field(int32)
    timestamp: int = field(int64)
    coordinator_epoch: int = field(int32)
    current_txn_first_offset: int = field(int64)


class ProducerSnapshot(Message, versions=(1, 1)):
    crc: int = field(uint32)
    producer_entries: Sequence[ProducerEntry] = field(Array(ProducerEntry))
