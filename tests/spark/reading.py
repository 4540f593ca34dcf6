"""What readers see of a topic, up to its end."""

import time
from collections import Counter
from typing import Literal

from moldau import Admin, Consumer, Record, TopicPartition
from moldau.client.errors import ClientError

DEADLINE_SECONDS = 30


def read(
    servers: str,
    topic: str,
    end: Literal["read_committed", "read_uncommitted"] = "read_uncommitted",
) -> list[Record]:
    """Return the committed records; every transaction must be over, or soon be.

    With `end="read_committed"`, only those before the first open transaction.
    """
    with Admin(servers) as admin:
        found = admin.list_topics()[topic]
        places = [TopicPartition(topic, each.index) for each in found.partitions]
        ends = admin.list_offsets(dict.fromkeys(places, "latest"), isolation_level=end)
    records: list[Record] = []
    with Consumer(
        servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(consumer.position(place) < last.offset for place, last in ends.items()):
            assert time.monotonic() < deadline, "a transaction is open"
            records += consumer.poll(timeout_ms=500)
    return records


def read_values(servers: str, topic: str) -> Counter[bytes]:
    """Return how often each value is visible."""
    return Counter(record.value or b"" for record in read(servers, topic))


def open_transactions(servers: str, topic: str) -> list[str]:
    """Return which transactions hold up the readers of a topic."""
    with Admin(servers) as admin:
        ids = [each.transactional_id for each in admin.list_transactions(states=["Ongoing"])]
        described = admin.describe_transactions(ids)
    return [
        name
        for name, found in described.items()
        if isinstance(found, ClientError) or topic in {key.topic for key in found.partitions}
    ]
