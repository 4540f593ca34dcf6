"""The scan of a segment after a crash: which batches are whole, and what follows from them."""

from typing import final

from moldau._native.log import Tail
from moldau._native.records import Batch

Buffer = bytes | bytearray | memoryview

@final
class SegmentScan:
    """Checks a segment fed in chunks, from the end of `tail` on; feeding releases the GIL.

    Checksums are checked from offset `check_from` on; below, only headers are looked at. Whole
    batches go into the tail; `failure` says what is wrong with the first that is not.
    """

    def __init__(
        self, tail: Tail, *, size: int, check_from: int, latest_epoch: int = -1
    ) -> None: ...
    @property
    def tail(self) -> Tail: ...
    @property
    def failure(self) -> str | None: ...
    @property
    def next_position(self) -> int:
        """Where the next chunk must begin; bodies that are not checked are left out."""
    @property
    def is_checking(self) -> bool:
        """Whether bodies are read, too, from here on."""
    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each change of leader epoch, with the offset that it came at."""
    def feed(self, chunk: Buffer) -> list[Batch]:
        """Go on; return the batches that have a producer id, with their positions in the file."""
    def finish(self) -> None:
        """The file has ended: what is left over is a failure."""

def read_header(front: Buffer, position: int = 0) -> Batch:
    """Read a header whose body is elsewhere; `position` is its place. `CorruptBatchError`."""

def find_whole_batch(data: Buffer, offset_min: int, start: int = 0) -> int:
    """Return where the first batch with a right checksum begins, at any byte; -1 if none does.

    Its offset lies at `offset_min` or less than 2^31 behind.
    """
