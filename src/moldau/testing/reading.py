"""All that readers see of a topic now."""

from moldau import Consumer, Record, TopicPartition


def read_committed(servers: str, topic: str, partitions: int) -> list[Record]:
    """Return the committed records of all partitions, those of each in their order."""
    places = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[Record] = []
    with Consumer(
        servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < end for place, end in ends.items()):
            found += consumer.poll(timeout_ms=100)
    return sorted(found, key=lambda each: (each.partition, each.offset))
