"""A share session (KIP-932): what a broker remembers of a member, one request after the other."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from moldau.client.acknowledgements import Acks

FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
EPOCH_MAX: Final = 0x7FFFFFFF

SharePartitionKey: TypeAlias = tuple[bytes, int]
"""A partition by its topic's id."""


class ShareRequest(NamedTuple):
    """What a ShareFetch says of the session and of the partitions."""

    epoch: int
    topics: Mapping[bytes, Mapping[int, Acks | None]]
    forgotten: Mapping[bytes, list[int]]


class ShareSessionHandler:
    """What the broker at the other end remembers of the last request."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self._said: set[SharePartitionKey] = set()

    @property
    def is_open(self) -> bool:
        """Whether the broker holds anything for it."""
        return self.epoch != FIRST_EPOCH

    def next_fetch(
        self, wanted: Iterable[SharePartitionKey], acks: Mapping[SharePartitionKey, Acks]
    ) -> ShareRequest:
        """Say what is wanted, all of it at first, later the difference; and what was done."""
        now = set(wanted)
        assert self.is_open or not acks, "a new session has nothing to acknowledge"
        topics: dict[bytes, dict[int, Acks | None]] = {}
        for topic_id, index in sorted((now - self._said) | set(acks)):
            topics.setdefault(topic_id, {})[index] = acks.get((topic_id, index))
        forgotten: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(self._said - now):
            forgotten.setdefault(topic_id, []).append(index)
        self._said = now
        return ShareRequest(self.epoch, topics, forgotten)

    def answered(self) -> None:
        """The broker has taken the request: the next one has the next number."""
        self.epoch = self.epoch + 1 if self.epoch < EPOCH_MAX else 1

    def lost(self) -> None:
        """The broker knows of no session, or perhaps not: begin another."""
        self.epoch = FIRST_EPOCH
        self._said.clear()
