"""What comes in and goes out of a topic, counted."""

from dataclasses import dataclass


@dataclass(slots=True)
class TopicTraffic:
    """The counts of one topic on this broker; all its partitions share them.

    They mean what Kafka's BrokerTopicMetrics mean. A request counts once for each partition in it.
    """

    partitions: int = 0
    """How many share them: they go with the last."""
    messages_in: int = 0
    bytes_in: int = 0
    bytes_rejected: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    produce_failed: int = 0
    fetch_requests: int = 0
    fetch_failed: int = 0
