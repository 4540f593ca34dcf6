"""Numbers and names that must not be mixed up."""

from typing import NamedTuple, NewType

Offset = NewType("Offset", int)
"""A record's logical place in its partition."""

Position = NewType("Position", int)
"""A byte's place in a file."""

LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
TopicId = NewType("TopicId", bytes)


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
