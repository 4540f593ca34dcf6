"""Records as a consumer hands them out: read from a batch, some at a time."""

from collections.abc import Iterable
from typing import ClassVar, Literal, final

from moldau._native.records import Batch, Buffer

@final
class Record:
    """One record, and where it was."""

    __hash__: ClassVar[None]  # type: ignore[assignment]
    delivery_count: int
    """How often a share group has handed it out, this time included; 0 for other consumers."""

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        timestamp_ms: int = -1,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        leader_epoch: int = -1,
        log_append_time: bool = False,
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int:
        """Milliseconds since 1970, -1 for none."""
    @property
    def timestamp_type(self) -> Literal["CreateTime", "LogAppendTime"]:
        """Who set the time: the producer, or the broker."""
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None:
        """None marks the key as deleted in a compacted topic."""
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader who wrote it, -1 if that is not known."""

@final
class RecordReader:
    """Reads an uncompressed payload (what follows the 61 header bytes) of a fetched batch.

    It keeps the payload until the last record is read, or until it is closed.
    """

    def __init__(self, payload: Buffer, batch: Batch, topic: str, partition: int) -> None: ...
    def read(self, records: list[Record], count: int, start_offset: int = 0) -> bool:
        """Append the next records at or behind `start_offset`, `count` at most.

        False when there are no more. `InvalidRecordError` when the batch is malformed.
        """
    def close(self) -> None:
        """Let the payload go."""
