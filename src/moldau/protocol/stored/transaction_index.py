"""An entry of a segment's transaction index."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, field, int64


class AbortedTxn(Message, versions=(0, 0)):
    producer_id: int = field(int64)
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    last_stable_offset: int = field(int64)
