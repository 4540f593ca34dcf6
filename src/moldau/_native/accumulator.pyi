"""The producer's open batches: which partition a record goes to, and how it gets there quickly."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, final

from moldau._native.records import Buffer

HeaderRows = Sequence[tuple[str, Buffer | None]] | Mapping[str, Buffer | None]
Choose = Callable[[str, bytes | None, bytes | None, int], int]

STICKY: int
ROUND_ROBIN: int

def murmur2(data: bytes) -> int:
    """Kafka's hash of a key, as a number without sign."""

def record_size_max(key: Buffer | None, value: Buffer | None, headers: HeaderRows) -> int:
    """Return how many bytes a record has at most, before compression."""

class RecordMetadata(NamedTuple):
    """Where a record is stored."""

    topic: str
    partition: int
    offset: int
    """-1 where it is not known: with acks=0, or when the broker said that it had it already."""
    timestamp_ms: int
    """The record's own time; the broker's with message.timestamp.type=LogAppendTime."""

class Waiting(Protocol):
    """How somebody waits for a delivery: the kernel knows neither threads nor loops."""

    def wait(self, delivery: Delivery, timeout: float | None) -> None: ...
    def wait_async(self, delivery: Delivery) -> Awaitable[None]: ...

@final
class Delivery:
    """What becomes of a record that was sent: await it, ask for its `result()`, or be called.

    Nothing has to be done with it. A record whose `Delivery` nobody holds and that cannot be
    delivered is reported with an `UndeliveredWarning`.
    """

    def done(self) -> bool:
        """Whether the record is delivered, or given up."""
    def exception(self) -> Exception | None:
        """Return why it was given up; None when it is delivered, or on its way."""
    def metadata(self) -> RecordMetadata:
        """Return where a delivered record is; raise why it was given up."""
    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait in a thread, at most so many seconds, and return where the record is."""
    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Have something called when it is done, in the client's loop; at once if it is."""
    def __await__(self) -> Generator[object, None, RecordMetadata]: ...

@final
class PendingBatch:
    """Records of one partition that travel together."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def size(self) -> int:
        """What it holds of the buffer, in bytes."""
    @property
    def created(self) -> float:
        """When its first record was sent, by the accumulator's clock."""
    @property
    def is_done(self) -> bool: ...
    @property
    def error(self) -> Exception | None: ...
    @property
    def delivery_count(self) -> int:
        """How many of its `Delivery` objects somebody still holds."""
    def encode(self, codec: int, compress: Callable[[memoryview], Buffer] | None) -> None:
        """Make it the bytes of a batch; a second time does nothing."""
    def stamp(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        is_transactional: bool = False,
    ) -> bytes:
        """Return the encoded batch with these in its header."""
    def split(self, first: bytes, second: bytes) -> list[PendingBatch]:
        """Let two encoded batches, which have its records between them, take its place."""
    def finish(self, base_offset: int, append_time_ms: int, error: Exception | None) -> None:
        """Say what became of it, to everybody who waits for one of its records."""

@final
class Accumulator:
    """Open batches, one for each partition that has records; thread-safe.

    `append` declines with None whenever something must be looked into first: the topic is not
    known, it has no such partition, the record is too large, there is no room, it is closed or
    paused.
    Records without a time have that of `wall_clock`, the machine's if it is None.
    `wake` is called when there is something to take, or a first batch has begun to linger; not
    again before `take`.
    """

    is_closed: bool
    is_paused: bool
    """Whether nothing is taken for now: a transactional producer is between transactions."""

    def __init__(
        self,
        *,
        batch_size: int,
        linger: float,
        buffer_memory: int,
        record_bytes_max: int,
        partitioner: int = ...,
        ignores_keys: bool = False,
        choose: Choose | None = None,
        clock: Callable[[], float],
        wall_clock: Callable[[], int] | None = None,
        wake: Callable[[], object],
        waiting: Waiting,
        seed: int,
    ) -> None: ...
    @property
    def used(self) -> int:
        """How many bytes wait to be delivered."""
    def is_due(self) -> bool:
        """Whether so many batches are full that a loop should give way to whoever takes them."""
    def set_topic(self, name: str, partition_count: int, available: Iterable[int]) -> None:
        """Learn of a topic; records without keys go only where there is a leader."""
    def partition_count(self, name: str) -> int | None:
        """Return how many partitions a topic has, None if it is not known."""
    def append(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: HeaderRows = (),
    ) -> Delivery | None:
        """Add a record to the open batch of its partition."""
    def add(self, topic: str, partition: int, encoded: bytes) -> Delivery | None:
        """Take a batch that is whole already, behind what is open for its partition.

        It may exceed the buffer when that is empty. The `Delivery` is its first record's.
        """
    def choose_partition(self, topic: str, size: int) -> int:
        """Return the sticky choice for so many bytes without keys, for a topic that is known."""
    def take(
        self, now: float, *, everything: bool = False
    ) -> tuple[list[PendingBatch], float | None]:
        """Hand out what is full or has lingered, and say when the next will have."""
    def release(self, size: int) -> None:
        """Have room again for what a finished batch held."""
