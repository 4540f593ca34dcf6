"""What readers see of a topic, up to its end."""

import time
from collections import Counter

from moldau import Admin, Consumer, Record, TopicPartition

DEADLINE_SECONDS = 30


def read(servers: str, topic: str) -> list[Record]:
    """Return the committed records; every transaction must be over, or soon be."""
    with Admin(servers) as admin:
        found = admin.list_topics()[topic]
        places = [TopicPartition(topic, each.index) for each in found.partitions]
        ends = admin.list_offsets(dict.fromkeys(places, "latest"))
    records: list[Record] = []
    with Consumer(
        servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(consumer.position(place) < end.offset for place, end in ends.items()):
            assert time.monotonic() < deadline, "a transaction is open"
            records += consumer.poll(timeout_ms=500)
    return records


def read_values(servers: str, topic: str) -> Counter[bytes]:
    """Return how often each value is visible."""
    return Counter(record.value or b"" for record in read(servers, topic))


def open_transactions(servers: str) -> list[str]:
    with Admin(servers) as admin:
        return [each.transactional_id for each in admin.list_transactions(states=["Ongoing"])]
