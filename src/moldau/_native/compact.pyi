"""The compaction kernel: the last offset of every key, and the sieve that drops the others."""

from collections.abc import Callable, Sequence
from typing import Literal, final

from moldau._native.records import Batch

Buffer = bytes | bytearray | memoryview

KEY_BYTES: int
"""What one key takes in the map, whatever its length."""

def siphash128(secret: bytes, data: Buffer) -> bytes:
    """SipHash-2-4 with 16 bytes of output, under a secret of 16 bytes."""

@final
class KeyMap:
    """The last offset of every key, for at most `key_count_max` keys of any length.

    Keys are told apart by a hash of 128 bits under `secret`, which must be unpredictable: who can
    make two keys collide makes the older one's record disappear.
    """

    def __init__(self, key_count_max: int, secret: bytes, *, load_factor: float = 0.9) -> None: ...
    @property
    def key_count(self) -> int: ...
    @property
    def key_count_max(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def full_at(self) -> int:
        """The offset of the first record that found no room, -1 while all did."""
    def feed(self, data: Buffer, position: int, first_offset: int) -> tuple[int, int]:
        """Take the keys of the plain batches at `position`, from `first_offset` on.

        Returns where it stopped and why: the size of the batch there, if that is compressed, of a
        transaction or a marker and so somebody else decides, or 0: the data ends, perhaps within a
        batch, or the map is full. Lock-free for other threads. `CorruptBatchError`,
        `InvalidRecordError`.
        """
    def feed_records(self, batch: Batch, payload: Buffer, first_offset: int) -> None:
        """Take the keys of one batch from its uncompressed records."""
    def find(self, key: Buffer) -> int:
        """Return the key's last offset, -1 if it is not here."""

@final
class Sieve:
    """Keeps what compaction keeps, and builds the segment's files in memory: drain it often.

    `end_offset` ends the range that the keys were collected from. Batches whose last offset is in
    `needed` (ascending) stay even if they are empty.
    """

    def __init__(
        self,
        keys: KeyMap,
        *,
        base_offset: int,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        needed: Sequence[int],
        index_interval_bytes: int,
    ) -> None: ...
    @property
    def pending_bytes(self) -> int:
        """How many bytes wait to be drained."""
    @property
    def log_bytes(self) -> int:
        """The size of the new segment's log so far."""
    @property
    def last_offset(self) -> int:
        """The last offset of the last batch written, -1 if there is none."""
    @property
    def max_timestamp(self) -> int: ...
    @property
    def records_read(self) -> int: ...
    @property
    def records_kept(self) -> int: ...
    @property
    def records_keyless(self) -> int: ...
    def run(self, data: Buffer, position: int) -> tuple[int, int]:
        """Sift the plain batches at `position`; returns and raises as `KeyMap.feed` does."""
    def sift(
        self,
        data: Buffer,
        batch: Batch,
        payload: Buffer,
        *,
        keep_empty: bool,
        compress: Callable[[memoryview], Buffer] | None = None,
    ) -> None:
        """Sift one data batch of `data`, whose uncompressed records are `payload`."""
    def copy(self, data: Buffer, batch: Batch, *, set_horizon: bool = False) -> None:
        """Keep a batch as it is, or with a delete horizon that it does not have yet."""
    def keep_empty(self, batch: Batch) -> None:
        """Keep a batch without its records."""
    def finish(self) -> None:
        """Add the time index's last entry."""
    def drain(self, sink: Callable[[Literal[0, 1, 2], memoryview], object]) -> None:
        """Hand out the bytes of log (0), offset index (1) and time index (2); not to be kept."""
