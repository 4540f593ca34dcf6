"""Where received bytes are: one arena for all connections, and buffers for what does not fit."""

import mmap
from typing import Final

from moldau._native.client_stream import ReceiveArena

CHUNK_BYTES: Final = 256 << 10
"""How much is read at once: many requests of the usual size, so that few of them are cut."""

ARENA_BYTES: Final = 1 << 20
KEPT_BYTES_MAX: Final = 16 << 20
GROWTH_BYTES_MAX: Final = 2 << 20


class ReceiveBuffers(ReceiveArena):
    """Memory to receive into; nothing is reused before the turn ends, because the log refers to it.

    Most requests arrive whole, and are read into the arena, one behind the other. A connection
    that has read a part of a request continues in a buffer of its own. An idle one holds nothing.
    """

    def __init__(self, own_bytes_max: int | None) -> None:
        super().__init__(_allocate(ARENA_BYTES), CHUNK_BYTES)
        self.own_bytes = 0
        """The size of all buffers that connections own."""
        self.claimed_bytes = 0
        """The size of all large frames that are being read: their buffers grow as bytes come."""
        self._own_bytes_max = own_bytes_max
        # Fresh memory costs page faults, ten times what copying costs.
        self._kept: dict[int, list[memoryview]] = {}
        self._kept_bytes = 0

    @property
    def has_room(self) -> bool:
        """Whether a large frame may begin; the last one may exceed the bound."""
        if self._own_bytes_max is None:
            return True
        return max(self.own_bytes, self.claimed_bytes) < self._own_bytes_max

    def take(self, size: int) -> memoryview:
        """Return a buffer with at least this size, for one connection."""
        size = max(CHUNK_BYTES, 1 << (size - 1).bit_length())
        self.own_bytes += size
        kept = self._kept.get(size)
        if kept:
            self._kept_bytes -= size
            return kept.pop()
        return _allocate(size)

    def retire(self, buffer: memoryview) -> None:
        """Give a buffer back; somebody may refer to it until the turn ends."""
        self.own_bytes -= len(buffer)
        self.retired.append(buffer)

    def reuse(self) -> None:
        """Take everything that was given back: the turn has ended."""
        for buffer in self.retired:
            size = len(buffer)
            if self._kept_bytes + size <= KEPT_BYTES_MAX:
                self._kept.setdefault(size, []).append(buffer)
                self._kept_bytes += size
        self.retired.clear()


def _allocate(size: int) -> memoryview:
    """Return memory that the system gives when it is first written: a claim alone costs nothing."""
    return memoryview(mmap.mmap(-1, size))
