"""What a test asks of a client, whichever language it is written in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Acks = Literal["0", "1", "all", "idempotent"]
ACKS: tuple[Acks, ...] = ("0", "1", "all", "idempotent")
EARLIEST, LATEST = -2, -1
SECONDS_MAX = 30
FETCH_WAIT_MS = 50  # a consumer asks for other places only after the fetch under way


class ClientError(Exception):
    """What the broker said no to, in the words of the client."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record as every client can write and read it: text, and a key that may be absent."""

    timestamp: int
    key: str | None
    value: str


class Client(Protocol):
    """A client for one broker."""

    def produce(
        self, topic: str, partition: int, rows: Sequence[Row], *, codec: str, acks: Acks
    ) -> None:
        """Send all rows with a producer made for it; return when all are acknowledged."""

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Row]:
        """Read `count` records by assignment, from `offset` on."""

    def find_offset(self, topic: str, partition: int, timestamp: int) -> int:
        """Return the first offset at or after a time, EARLIEST or LATEST; -1 if there is none."""

    def list_topics(self) -> list[str]:
        """Name the topics."""

    def create_topic(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Create a topic of one replica."""

    def count_partitions(self, topic: str) -> int:
        """Describe a topic: the number of its partitions, each of which has a leader."""

    def get_config(self, topic: str, name: str) -> str:
        """Describe a topic's configs; return one."""

    def set_config(self, topic: str, name: str, value: str) -> None:
        """Change one of a topic's configs."""

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic grow to so many partitions."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""

    def close(self) -> None:
        """Let go of what the client holds."""


class GroupClient(Protocol):
    """A client that joins groups and has transactions."""

    def read_as_group(self, topic: str, group: str, count: int) -> set[str]:
        """Read so many records as two members, and commit; return each `partition:offset`.

        They go on until both have had something to do.
        """

    def transact(self, topic: str, count: int) -> None:
        """Produce numbers to partition 0, a transaction each; the second of three is aborted.

        Commit each number as the offset of a group called like the topic, where the client can.
        """
