"""A fetch session (KIP-227): after the first request only what has changed is said."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from moldau.kernel.ids import TopicPartition
from moldau.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
FULL_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFFFFFF


class PartitionFetch(NamedTuple):
    """What is asked of one partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    last_epoch: int
    bytes_max: int


class SessionRequest(NamedTuple):
    """What a request says of the session and of the partitions."""

    session_id: int
    epoch: int
    topics: Sequence[FetchTopic]
    forgotten: Sequence[ForgottenTopic]


class FetchSessionHandler:
    """What the broker at the other end remembers of the last request."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._said: dict[TopicPartition, PartitionFetch] = {}

    def next_request(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> SessionRequest:
        """Say what is wanted: all of it at first, later the difference."""
        if self._epoch == FULL_EPOCH:
            self._said = dict(wanted)
            return SessionRequest(self._id, FULL_EPOCH, _topics(wanted), ())
        changed = {key: what for key, what in wanted.items() if self._said.get(key) != what}
        gone = {
            key: said
            for key, said in self._said.items()
            # A topic that was created anew has another id: the old one is to be forgotten.
            if key not in wanted or wanted[key].topic_id != said.topic_id
        }
        self._said = dict(wanted)
        return SessionRequest(self._id, self._epoch, _topics(changed), _forgotten(gone))

    def answered(self, session_id: int) -> None:
        """An answer has come, and it names the session, 0 if the broker keeps none."""
        self._id = session_id
        if session_id == NO_SESSION:
            self._epoch = FULL_EPOCH
        else:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def reset(self) -> None:
        """Begin another session: the broker has forgotten this one, or may have."""
        self._id = NO_SESSION
        self._epoch = FULL_EPOCH


def _topics(wanted: Mapping[TopicPartition, PartitionFetch]) -> list[FetchTopic]:
    topics: dict[tuple[str, bytes], list[FetchPartition]] = {}
    for key, what in wanted.items():
        topics.setdefault((key.topic, what.topic_id), []).append(
            FetchPartition(
                partition=key.partition,
                current_leader_epoch=what.leader_epoch,
                fetch_offset=what.offset,
                last_fetched_epoch=what.last_epoch,
                partition_max_bytes=what.bytes_max,
            )
        )
    return [
        FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
        for (name, topic_id), partitions in topics.items()
    ]


def _forgotten(gone: Mapping[TopicPartition, PartitionFetch]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], list[int]] = {}
    for key, said in gone.items():
        topics.setdefault((key.topic, said.topic_id), []).append(key.partition)
    return [
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=partitions)
        for (name, topic_id), partitions in topics.items()
    ]
